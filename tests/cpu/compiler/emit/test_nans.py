"""NaNs get the hardware's bits where something looks at them, and only there."""

from __future__ import annotations

import numpy as np
import pytest

import cupola
from cupola import Device, LaunchConfig, ObjectCode
from cupola.cpu.compiler import passes, ptx
from cupola.cpu.compiler.emit.instructions import lower, settle_nans
from cupola.cpu.compiler.emit.values.builder import Builder
from cupola.cpu.compiler.emit.values.nans import float_registers, ignores_nan_bits
from cupola.cpu.compiler.emit.values.values import Value
from tests.ptx.harness import parse

KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 out, .param .f32 scale)
{
    .reg .b32 %r<20>; .reg .b64 %rd<4>; .reg .pred %p<4>;
    ld.param.u64 %rd1, [out];
    ld.param.b32 %r1, [scale];
    mov.b32 %r2, 0f00000000;
    mov.b32 %r3, 0;
    mov.b32 %r6, -1;
LOOP:
    fma.rn.f32 %r4, %r2, %r1, %r1;
    neg.f32 %r7, %r4;
    mov.b32 %r2, %r4;
    selp.f32 %r8, %r2, %r7, %p1;
    mov.b32 %r9, %r1;
    @%p1 mov.b32 %r6, %r4;
    add.s32 %r3, %r3, 1;
    setp.lt.s32 %p2, %r3, 100;
    @%p2 bra LOOP;
    st.global.b32 [%rd1], %r2;
    st.global.b32 [%rd1], %r6;
    ret;
}
"""


def blocks() -> list[passes.Block]:
    function = ptx.parse(KERNEL).functions["kernel"]
    return passes.analyze(function, width=32, x_is_contiguous=True).blocks


def test_registers_of_arithmetic_only() -> None:
    floats = float_registers(blocks())
    assert {"%r4", "%r2", "%r7", "%r8"} <= floats  # fma, its copy, its negative, a choice of them
    assert not floats & {"%r1", "%r9", "%r3"}  # a parameter, its copy, an integer
    assert "%r6" not in floats  # -1 has the bits of a NaN


@pytest.mark.parametrize(
    ("text", "ignores"),
    [
        ("add.f32 d, a, b", True),
        ("setp.lt.f32 p, a, b", True),
        ("min.f32 d, a, b", True),
        ("min.xorsign.abs.f32 d, a, b", False),
        ("cvt.rzi.s32.f32 d, a", True),
        ("cvt.f64.f32 d, a", False),
        ("cvt.f32.f32 d, a", False),
        ("copysign.f32 d, a, b", False),
        ("mov.b32 d, a", True),
        ("mov.b32 {d, e}, a", False),
        ("mov.b64 d, {a, b}", False),
        ("selp.b32 d, a, b, p", True),
        ("xor.b32 d, a, b", False),
        ("shfl.sync.bfly.b32 d, a, b, c, m", False),
        ("st.global.b32 [a], b", False),
        ("add.f64 d, a, b", False),
    ],
)
def test_which_instructions_look_at_the_bits(text: str, ignores: bool) -> None:
    assert ignores_nan_bits(parse(text.replace("[a]", "a"))) is ignores


def test_marks() -> None:
    b = Builder(8)
    b.canonical_nans = False
    x = Value("%x", "float", True)
    (total,) = lower(b, parse("add.f32 d, a, b"), [x, x])
    assert total.raw_nan and "select" not in "\n".join(b.lines)
    (negative,) = lower(b, parse("neg.f32 d, a"), [total])
    (chosen,) = lower(b, parse("selp.f32 d, a, b, p"), [total, negative, Value("%p", "i1")])
    (copy,) = lower(b, parse("mov.f32 d, a"), [chosen])
    assert negative.raw_nan and copy.raw_nan
    # Beside a value of memory, whose bits count, the other one is settled.
    (mixed,) = lower(b, parse("selp.f32 d, a, b, p"), [x, negative, Value("%p", "i1")])
    assert not mixed.raw_nan and "2147483647" in "\n".join(b.lines)
    assert not lower(b, parse("neg.f32 d, a"), [x])[0].raw_nan
    settled = settle_nans(b, copy)
    assert not settled.raw_nan and settled.type == "float" and "2147483647" in b.lines[-2]
    assert settle_nans(b, settled) is settled


WIDE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<3>; .reg .b64 %rd<4>; .reg .pred %p;
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, 0;
    cvt.rn.f32.s32 %rd1, %r1;
LOOP:
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, %r1;
    @%p bra LOOP;
    mul.wide.u32 %rd3, %r1, 8;
    add.u64 %rd2, %rd2, %rd3;
    st.global.b64 [%rd2], %rd1;
    ret;
}
"""


@pytest.mark.cpu_only
def test_a_wider_register_has_more_bits() -> None:
    """Destinations of conversions may be wider than the type (PTX ISA 9.4.1); this one lives across blocks."""
    device = Device()
    device.set_current()
    out = device.zeros(64, np.uint64)
    cupola.launch(
        device.default_stream, LaunchConfig(grid=1, block=64), ObjectCode.from_ptx(WIDE.encode()).get_kernel("k"), out
    )
    expected = np.arange(64, dtype=np.float32).view(np.uint32).astype(np.uint64)
    np.testing.assert_array_equal(out.to_numpy(), expected)
