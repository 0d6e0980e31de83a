"""Where registers hold %tid.x, and what is zero because that is a small number."""

from __future__ import annotations

import pytest

from .small import analysed

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
