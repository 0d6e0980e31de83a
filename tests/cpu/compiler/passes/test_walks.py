"""Which kernels' threads are better run one by one: those that walk along memory and look up what they find."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.passes import prepare, walk_alone

from .small import kernel

# A thread sums up what it finds at the places that it reads, from a place in memory that is its own.
WALK = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 8;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r2, [%rd3];
ld.global.u32 %r3, [%rd3+4];
mul.wide.s32 %rd4, %r2, 4;
add.s64 %rd5, %rd1, %rd4;
mov.f32 %f1, 0f00000000;
LOOP:
ld.global.u32 %r4, [%rd5];
mul.wide.s32 %rd6, %r4, 4;
add.s64 %rd7, %rd1, %rd6;
ld.global.f32 %f2, [%rd7];
add.f32 %f1, %f1, %f2;
add.s64 %rd5, %rd5, 4;
add.s32 %r2, %r2, 1;
setp.lt.s32 %p1, %r2, %r3;
@%p1 bra LOOP;
st.global.f32 [%rd3], %f1;
ret;
"""


def is_taken(old: str = "", new: str = "") -> bool:
    assert old in WALK
    return walk_alone(prepare(*kernel(WALK.replace(old, new, 1))))


def test_a_walk_that_looks_things_up() -> None:
    assert is_taken()
    assert is_taken("add.f32 %f1", "fma.rn.f32 %f3, %f2, %f2, %f2; add.f32 %f1")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@%p1 bra LOOP;", ""),  # no loop
        ("ld.global.u32 %r2, [%rd3]", "mul.lo.u32 %r2, %r1, 77"),  # the lanes begin at known distances
        ("mul.wide.u32 %rd2, %r1, 8", "mov.u64 %rd2, 8"),  # all in the same place
        ("[%rd7]", "[%rd5+4]"),  # nothing is looked up
        ("add.s64 %rd5, %rd5, 4", "add.s64 %rd5, %rd7, 4"),  # a list
        ("setp.lt.s32 %p1, %r2, %r3", "setp.ne.s32 %p1, %r4, 0"),  # an end that is found on the way
        ("add.f32 %f1, %f1, %f2", "ex2.approx.f32 %f1, %f2"),  # much to compute
        ("add.f32 %f1, %f1, %f2", "add.f32 %f1, %f1, %f2;" * 20),
        ("add.s64 %rd5, %rd5, 4", "@%p1 add.s64 %rd5, %rd5, 4"),  # conditions
        ("add.s32 %r2", "setp.eq.u32 %p2, %r4, 0; @%p2 bra NEXT; add.f32 %f1, %f1, %f1; NEXT: add.s32 %r2"),
        ("add.s32 %r2", "st.global.f32 [%rd7], %f1; add.s32 %r2"),  # effects
        ("ld.global.f32 %f2, [%rd7]", "ld.shared.f32 %f2, [%rd7]"),
        ("st.global.f32", "mad.lo.u32 %r5, %r1, %r1, %r1;" * 80 + "st.global.f32"),  # mostly something else
        ("st.global.f32", "L: add.s32 %r5, %r5, 1; setp.lt.s32 %p2, %r5, 99; @%p2 bra L; st.global.f32"),
    ],
)
def test_what_lanes_are_better_for(old: str, new: str) -> None:
    assert not is_taken(old, new)


def test_a_loop_around_walks() -> None:
    around = WALK.replace("ld.global.u32 %r2", "OUTER: ld.global.u32 %r2", 1).replace(
        "st.global.f32", "add.s64 %rd3, %rd3, 512; setp.lt.u64 %p2, %rd3, %rd1; @%p2 bra OUTER; st.global.f32", 1
    )
    assert walk_alone(prepare(*kernel(around)))
