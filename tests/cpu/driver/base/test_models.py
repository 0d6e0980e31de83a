"""The models of the newest GPUs run code for them, and refuse by name what the CPU device lacks of them."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

pytestmark = pytest.mark.cpu_only

Run = Callable[..., CompletedProcess[str]]

FACTS = {
    "l4": "(8, 9) 58 1536 24 49152 101376 102400 50331648 64",
    "rtx5090": "(12, 0) 170 1536 24 49152 101376 102400 100663296 64",
}

ATTRIBUTES = """
from cupola import Device
p = Device(0).properties
print(tuple(Device(0).compute_capability), p.multiprocessor_count, p.max_threads_per_multiprocessor,
      p.max_blocks_per_multiprocessor, p.max_shared_memory_per_block, p.max_shared_memory_per_block_optin,
      p.max_shared_memory_per_multiprocessor, p.l2_cache_size, p.single_to_double_precision_perf_ratio)
"""


@pytest.mark.parametrize("model", FACTS)
def test_facts(run_python: Run, model: str) -> None:
    done = run_python(ATTRIBUTES, CUPOLA_CPU_MODEL=model)
    assert done.stdout.strip() == FACTS[model], done.stderr


PROGRAM = r"""
import numpy as np
from tests.cpu.engine.kernels import run
SOURCE = '''
extern "C" __global__ void k(const unsigned* a, float* out) {
    extern __shared__ float tile[];
    unsigned x = a[threadIdx.x];
    float d[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, "
                 "{%0, %1, %2, %3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x));
    tile[threadIdx.x] = d[0];
    __syncthreads();
    out[threadIdx.x] = tile[31 - threadIdx.x] + __shfl_xor_sync(~0u, d[3], 1);
}
'''
out = np.zeros(32, np.float32)
run(SOURCE, "k", 1, 32, np.full(32, 0x3C003C00, np.uint32), out, shared=4096)
assert (out == 32).all(), out
"""


@pytest.mark.parametrize("model", ["l4", "b200", "rtx5090"])
def test_a_program(run_python: Run, model: str) -> None:
    """Compiled for the model's own architecture."""
    done = run_python(PROGRAM, CUPOLA_CPU_MODEL=model)
    assert done.returncode == 0, done.stdout + done.stderr


REFUSED = [
    ("b200", "sm_100a", "tcgen05.wait::ld.sync.aligned", "it needs compute capability 10.0a"),
    ("b200", "sm_100a", "tcgen05.shift.cta_group::1.down [%r0]", "it needs compute capability 10.0a"),
    (
        "rtx5090", "sm_120a",
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32 {%f0, %f1, %f2, %f3}, "
        "{%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3}",
        "'.kind::f8f6f4' needs compute capability 12.0a",
    ),
]  # fmt: skip

LOADING = """
from cupola import Device, ObjectCode
Device(0).set_current()
text = ".version 8.7 .target {target} .address_size 64 .visible .entry k() {{ .reg .b32 %r<8>; .reg .f32 %f<8>; {code}; ret; }}"
try:
    ObjectCode.from_ptx(text.encode()).get_kernel("k")
except Exception as error:
    print(error)
"""  # noqa: E501


@pytest.mark.parametrize(("model", "target", "code", "reason"), REFUSED)
def test_refused_by_name(run_python: Run, model: str, target: str, code: str, reason: str) -> None:
    done = run_python(LOADING.format(target=target, code=code), CUPOLA_CPU_MODEL=model)
    assert f"unsupported PTX instruction '{code.split()[0]}'" in done.stdout, done.stdout + done.stderr
    assert reason in done.stdout
