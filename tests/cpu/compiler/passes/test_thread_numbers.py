"""Where registers hold %tid.x, and what is known because that is a small number."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.passes.thread_numbers import largest_compared
from cupola.cpu.compiler.ptx import ast

from .small import analysed, kernel

REUSED = """
mov.u32 %r1, %tid.x;
shr.s32 %r2, %r1, 31;
shr.u32 %r3, %r2, 29;
add.s32 %r4, %r1, %r3;
bar.sync 0;
shr.u32 %r5, %r1, 10;
shr.u32 %r6, %r1, 9;
LOOP:
add.s32 %r1, %r1, 512;
shr.u32 %r7, %r1, 10;
setp.lt.s32 %p1, %r1, 2048;
@%p1 bra LOOP;
st.shared.u32 [s], %r1;
ret;
"""


def test_a_register_that_is_used_again() -> None:
    analysis = analysed(REUSED)
    held = {block.label: analysis.thread_numbers[block.index] for block in analysis.blocks if block.instructions}
    assert [sorted(names) for names in held.values()] == [[], ["%r1"], [], []]
    assert {name for name, known in analysis.constants.items() if known.value == 0} == {"%r2", "%r3", "%r5"}


@pytest.mark.parametrize(
    ("text", "zeros"),
    [
        ("mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1024; shl.b32 %r3, %r2, 4;", {"%r2", "%r3"}),
        ("mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 22; shr.s32 %r3, %r2, 31; shr.u32 %r4, %r2, 31;", set()),
        ("mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 20; shr.s32 %r3, %r2, 31;", {"%r3"}),
        ("mov.u32 %r1, %tid.x; @%p1 mov.u32 %r1, 7; shr.u32 %r2, %r1, 10;", set()),
        ("@%p1 mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 10;", set()),
        ("mov.u32 %r1, %tid.y; shr.u32 %r2, %r1, 10;", set()),
        ("mov.u32 %r1, %tid.x; add.s32 %r2, %r1, -1; shr.s32 %r3, %r2, 31;", set()),
        ("mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 10; add.s32 %r2, %r2, 1;", set()),
    ],
)
def test_zeros(text: str, zeros: set[str]) -> None:
    constants = analysed(text + " st.shared.u32 [s], %r1; ret;").constants
    assert {name for name, known in constants.items() if known.value == 0} == zeros


@pytest.mark.parametrize(
    ("text", "largest", "number"),
    [
        ("max.s32 %r2, %r1, 512;", 511, 512),
        ("max.s32 %r2, %r1, 512;", 513, None),
        ("max.u32 %r2, 40, %r1;", 40, 40),
        ("max.s32 %r2, %r1, -1;", 511, None),
        ("min.s32 %r3, %r1, 0; add.s32 %r2, %r3, 5;", 1023, 5),
        ("min.u32 %r3, %r1, -1; shr.u32 %r2, %r3, 9;", 511, 0),
        ("sub.s32 %r3, 1023, %r1; shr.u32 %r2, %r3, 9;", 511, 1),
        ("sub.s32 %r3, 1023, %r1; shr.u32 %r2, %r3, 9;", 512, None),
        ("sub.s32 %r3, %r1, 512; shr.u32 %r2, %r3, 31;", 511, 1),
        ("sub.s32 %r3, %r1, 511; shr.u32 %r2, %r3, 31;", 511, None),
        ("add.s32 %r3, %r1, -512; shr.u32 %r2, %r3, 31;", 511, 1),
        ("add.s32 %r3, %r1, -511; shr.u32 %r2, %r3, 31;", 511, None),
        ("sub.s32 %r3, %r1, 512; shr.s32 %r2, %r3, 31;", 511, None),
        ("shl.b32 %r3, %r1, 23; and.b32 %r2, %r3, 7;", 1023, 0),
        ("add.s32 %r3, %r1, 7; and.b32 %r2, %r3, 1024;", 1023, None),
    ],
)
def test_numbers(text: str, largest: int, number: int | None) -> None:
    body = f"mov.u32 %r1, %tid.x; {text} st.shared.u32 [s], %r2; ret;"
    known = analysed(body, largest_x=largest).constants.get("%r2")
    assert (None if known is None else known.value) == number


@pytest.mark.parametrize(
    ("comparison", "largest", "reached"),
    [
        ("gt.s32 %p1, %r1, 1023", 1023, "NEXT"),
        ("gt.s32 %p1, %r1, 1022", 1023, "NEXT THERE"),
        ("lt.u32 %p1, %r1, 512", 511, "THERE"),
        ("lt.u32 %p1, %r1, 512", 512, "NEXT THERE"),
        ("ge.s32 %p1, %r1, 0", 1023, "THERE"),
        ("ge.s32 %p1, %r1, -3", 1023, "THERE"),
        ("ge.u32 %p1, %r1, -3", 1023, "NEXT"),
        ("le.s32 %p1, %r1, 31", 31, "THERE"),
        ("ne.s32 %p1, %r1, 64", 63, "THERE"),
        ("eq.s32 %p1, %r1, 64", 63, "NEXT"),
        ("eq.s32 %p1, %r1, 64", 64, "NEXT THERE"),
        ("hi.u32 %p1, %r1, 63", 63, "NEXT"),
        ("ls.u32 %p1, %r1, 63", 63, "THERE"),
        ("gt.and.s32 %p1, %r1, 1023, %p2", 1023, "NEXT THERE"),
        ("gt.f32 %p1, %f1, 0f44800000", 1023, "NEXT THERE"),
    ],
)
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("negated", [False, True])
def test_ways_that_nobody_goes(comparison: str, largest: int, reached: str, negated: bool, ends: bool) -> None:
    """Blocks behind a branch, or behind an exit; what is only reached in the other case is not there."""
    guard = "@!%p1" if negated else "@%p1"
    way = f"{guard} ret;" if ends else f"{guard} bra THERE;"
    stores = "st.shared.u32 [s], 1; bra END; THERE: st.shared.u32 [s], 2; END: ret;"
    text = f"mov.u32 %r1, %tid.x; setp.{comparison}; {way} {stores}"
    stored = [
        operand.value
        for block in analysed(text, largest_x=largest).blocks
        for instruction in block.instructions
        if instruction.opcode == "st" and isinstance(operand := instruction.operands[1], ast.Immediate)
    ]
    names = {"NEXT THERE": "NEXT THERE", "NEXT": "THERE", "THERE": "NEXT"}[reached] if negated else reached
    wanted = [{"NEXT": 1, "THERE": 2}[name] for name in names.split()]
    assert sorted(stored) == ([number for number in wanted if number == 1] if ends else wanted)


def test_what_it_is_compared_with() -> None:
    text = """
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
        setp.gt.s32 %p1, %r1, 300; max.s32 %r3, %r1, 512; min.s32 %r4, -1, %r1;
        setp.gt.s32 %p2, %r2, 5000; setp.gt.s32 %p3, %r1, %r2;
        ret;
    """
    _, function = kernel(text)
    assert largest_compared(s for s in function.body or () if isinstance(s, ast.Instruction)) == 512
