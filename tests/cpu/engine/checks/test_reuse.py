"""What is kept of shared memory lies elsewhere in each kernel: nothing that others have left there hides a race."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device, LaunchConfig, Program, ProgramOptions, Stream, cpu, launch

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="it switches checks on itself, and runs faulty programs to see what they find"),
]

SOURCE = r"""
#define K extern "C" __global__ void
#define I threadIdx.x
K more(int* x) { __shared__ int s[256]; s[I] = x[I]; x[I] = s[I]; }
K none(int* x) { x[I] = 1; }
K local(int* x) { int a[64]; for (int i = 0; i < x[I] % 8 + 40; i++) a[i] = i; x[I] = a[x[I] & 31]; }
K reverse(int* x) { __shared__ int s[64]; s[I] = x[I]; x[I] = s[63 - I]; }
"""
BEFORE = [("none",), ("more",), ("local",), ("more", "none"), ("more", "local"), ("more", "local", "none")]


@pytest.mark.parametrize("before", BEFORE, ids=" ".join)
@pytest.mark.parametrize("init", [False, True])
def test_no_race_is_hidden(device: Device, stream: Stream, before: tuple[str, ...], init: bool) -> None:
    code = Program(SOURCE, "c++", ProgramOptions(name="reuse.cu")).compile("cubin")
    x = device.array(np.zeros(256, np.int32), stream=stream)
    counts = []
    for _ in range(4):
        with cpu.checks(race=True, init=init) as checks:
            for name in (*before, "reverse"):
                block = 256 if name == "more" else 64
                launch(stream, LaunchConfig(grid=1, block=block), code.get_kernel(name), x)
            stream.sync()
        assert {finding.kernel for finding in checks.findings} == {"reverse"}
        counts.append(sum(finding.count for finding in checks.findings if finding.kind == "race"))
    assert counts == [64] * 4
