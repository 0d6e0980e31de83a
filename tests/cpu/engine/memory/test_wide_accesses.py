"""Accesses of 256 bits, which compute capability 10.0 has in global memory (PTX ISA, "ld" and "st")."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import numpy as np
import pytest

from cupola import Device, LaunchConfig, ObjectCode, launch
from tests.cpu.engine.kernels import copy_to_device, copy_to_host

pytestmark = pytest.mark.cpu_only  # a GPU of the tests may be older

# Each thread copies the 32 bytes with its number, or what `%j` makes of it.
PTX = """
.version 8.8
.target sm_100
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{{
    .reg .b64 %in, %out, %i, %a, %w<4>;
    .reg .b32 %t, %j, %x<8>;
    .reg .pred %p;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %j, %t;
    {where}
    mul.wide.u32 %i, %j, 32;
    add.u64 %a, %in, %i;
    {load}
    mul.wide.u32 %i, %t, 32;
    add.u64 %out, %out, %i;
    {store}
    ret;
}}
"""
WHERE = {
    "row": "",
    "one place": "mov.u32 %j, 3;",
    "every other": "shl.b32 %j, %t, 1;",
    "scattered": "xor.b32 %j, %t, 5;",
}
INDEX = {
    "row": lambda t: t,
    "one place": lambda t: 0 * t + 3,
    "every other": lambda t: 2 * t,
    "scattered": lambda t: t ^ 5,
}
WORDS = "{%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}"
LONGS = "{%w0, %w1, %w2, %w3}"
KINDS = {
    "v8.b32": (f"ld.global.v8.b32 {WORDS}, [%a];", f"st.global.v8.b32 [%out], {WORDS};"),
    "v4.u64": (f"ld.global.nc.v4.u64 {LONGS}, [%a];", f"st.global.v4.u64 [%out], {LONGS};"),
    "some": (
        f"setp.lt.u32 %p, %t, 9; @%p ld.global.v8.f32 {WORDS}, [%a];".replace("%x", "%f"),
        f"@%p st.global.v8.f32 [%out], {WORDS};".replace("%x", "%f"),
    ),
}


def run(kind: str, where: str, threads: int, *, skew: int = 0, vectors: int | None = None) -> tuple[np.ndarray, ...]:
    """What the threads read, if all is right, and what they have stored."""
    load, store = KINDS[kind]
    text = PTX.format(where=WHERE[where], load=load, store=store).replace("%p;", "%p; .reg .f32 %f<8>;", 1)
    device = Device(0)
    device.set_current()
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel("k")
    stream = device.create_stream()
    random = np.random.default_rng(3)
    values = random.integers(0, 1 << 30, (vectors or 2 * threads + 6, 8), np.uint32)
    result = np.zeros((threads, 8), np.uint32)
    source, target = (device.allocate(array.nbytes, stream=stream) for array in (values, result))
    copy_to_device(source, values, stream)
    copy_to_device(target, result, stream)
    launch(stream, LaunchConfig(grid=1, block=threads), kernel, int(source.handle) + skew, target)
    stream.sync()
    copy_to_host(result, target, stream)
    stream.sync()
    t = np.arange(threads)
    expected = values[np.minimum(INDEX[where](t), len(values) - 1)]
    if kind == "some":
        expected[t >= 9] = 0
    return expected, result


@pytest.mark.parametrize("kind", KINDS)
def test_copies(kind: str, run_python: Callable[..., CompletedProcess[str]]) -> None:
    done = run_python(
        f"""
import numpy as np
from tests.cpu.engine.memory import test_wide_accesses as t
for where in t.WHERE:
    for threads in (1, 3, 32, 70):
        expected, found = t.run({kind!r}, where, threads)
        np.testing.assert_array_equal(found, expected, f"{{where}}, {{threads}} threads")
""",
        CUPOLA_CPU_MODEL="b200",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("where", "options", "said"),
    [
        ("row", {"vectors": 31}, "out-of-bounds read of 32 bytes"),
        ("scattered", {"vectors": 31}, "out-of-bounds read of 32 bytes"),
        ("row", {"skew": 16}, "misaligned read of 32 bytes"),
        ("one place", {"skew": 8}, "misaligned read of 32 bytes"),
    ],
)
def test_faults(
    where: str, options: dict[str, int], said: str, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    done = run_python(
        f"""
from tests.cpu.engine.memory import test_wide_accesses as t
try:
    t.run("v8.b32", {where!r}, 32, **{options!r})
except Exception as error:
    print(error)
""",
        CUPOLA_CPU_MODEL="b200",
    )
    assert said in done.stdout, done.stdout + done.stderr
