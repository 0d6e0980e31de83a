"""Loops that a compiler has unrolled, with what it has split off in front of them, are one loop again."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.passes import prepare, roll_loops
from cupola.cpu.compiler.ptx import ast

from .small import kernel

# As NVIDIA's compilers write a loop from %r2 to %r3 that sums up what %rd1 has at the places that %rd2 lists.
UNROLLED = """
ld.param.u64 %rd1, [p];
ld.param.u64 %rd2, [q];
ld.global.u32 %r2, [%rd1];
ld.global.u32 %r3, [%rd1+4];
setp.ge.s32 %p2, %r2, %r3;
mov.f32 %f1, 0f00000000;
@%p2 bra END;
add.s32 %r4, %r2, 1;
max.s32 %r5, %r3, %r4;
sub.s32 %r6, %r5, %r2;
and.b32 %r7, %r6, 1;
setp.eq.s32 %p3, %r7, 0;
mov.f32 %f1, 0f00000000;
mov.u32 %r8, %r2;
@%p3 bra JOIN;
mul.wide.s32 %rd3, %r2, 4;
add.s64 %rd4, %rd2, %rd3;
mov.f32 %f1, 0f00000000;
mov.u32 %r8, %r2;
FIRST:
ld.global.u32 %r9, [%rd4];
mul.wide.s32 %rd5, %r9, 4;
add.s64 %rd6, %rd1, %rd5;
ld.global.f32 %f2, [%rd6];
add.f32 %f1, %f1, %f2;
add.s32 %r8, %r8, 1;
add.s64 %rd4, %rd4, 4;
add.s32 %r7, %r7, -1;
setp.ne.s32 %p4, %r7, 0;
@%p4 bra FIRST;
JOIN:
not.b32 %r10, %r2;
add.s32 %r11, %r5, %r10;
setp.lt.u32 %p5, %r11, 1;
@%p5 bra END;
mul.wide.s32 %rd7, %r8, 4;
add.s64 %rd8, %rd7, 4;
add.s64 %rd9, %rd2, %rd8;
SECOND:
ld.global.u32 %r12, [%rd9+-4];
mul.wide.s32 %rd10, %r12, 4;
add.s64 %rd11, %rd1, %rd10;
ld.global.f32 %f3, [%rd11];
add.f32 %f4, %f1, %f3;
ld.global.u32 %r13, [%rd9];
mul.wide.s32 %rd12, %r13, 4;
add.s64 %rd13, %rd1, %rd12;
ld.global.f32 %f5, [%rd13];
add.f32 %f1, %f4, %f5;
add.s64 %rd9, %rd9, 8;
add.s32 %r8, %r8, 2;
setp.lt.s32 %p6, %r8, %r3;
@%p6 bra SECOND;
END:
st.global.f32 [%rd1], %f1;
ret;
"""


def rolled(old: str = "", new: str = "") -> list[ast.Statement]:
    """What comes to a kernel with something else in it."""
    assert old in UNROLLED
    function = prepare(*kernel(UNROLLED.replace(old, new, 1)))
    before, after = function.body or [], roll_loops(function).body or []
    assert [statement for statement in after if statement in before] == before
    return [statement for statement in after if statement not in before]


def test_one_loop() -> None:
    text = [str(s.name if isinstance(s, ast.Label) else s.opcode) for s in rolled()]
    begin = text.index("$rolled0.again")
    assert text[begin + 1 :] == [
        *("ld", "mul", "add", "ld", "add", "add", "add", "add", "setp", "bra"),  # as the first, with a counter
        *("bra", "$rolled0.not"),
    ]
    assert text[:begin][-1] == "mov" and "setp" in text[:begin]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max.s32 %r5, %r3, %r4", "mov.u32 %r5, %r3"),
        ("add.s32 %r11, %r5, %r10;\nsetp.lt.u32 %p5, %r11, 1", "setp.lt.u32 %p5, %r6, 2"),
        ("mov.f32 %f1, 0f00000000;\nmov.u32 %r8, %r2;\nFIRST", "mov.f32 %f1, 0f3F800000;\nmov.u32 %r8, %r2;\nFIRST"),
        ("add.s64 %rd8, %rd7, 4;\nadd.s64 %rd9, %rd2, %rd8", "add.s64 %rd8, %rd2, %rd7;\nadd.s64 %rd9, %rd8, 4"),
    ],
)
def test_other_ways_to_say_it(old: str, new: str) -> None:
    assert rolled(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[%rd9+-4]", "[%rd9]"),  # the places
        ("[%rd9]", "[%rd9+4]"),
        ("add.s64 %rd8, %rd7, 4", "add.s64 %rd8, %rd7, 8"),
        ("add.s64 %rd9, %rd2, %rd8", "add.s64 %rd9, %rd1, %rd8"),
        ("mul.wide.s32 %rd7, %r8", "mul.wide.u32 %rd7, %r8"),
        ("add.s64 %rd9, %rd9, 8", "add.s64 %rd9, %rd9, 4"),
        ("add.s64 %rd4, %rd4, 4", "add.s64 %rd4, %rd4, 8"),
        ("add.f32 %f1, %f4, %f5", "sub.f32 %f1, %f4, %f5"),  # what is computed
        ("add.f32 %f4, %f1, %f3", "add.f32 %f4, %f3, %f1"),
        ("add.s64 %rd13, %rd1", "add.s64 %rd13, %rd2"),
        ("ld.global.f32 %f5", "ld.volatile.global.f32 %f5"),
        ("add.f32 %f4, %f1, %f3;", "add.f32 %f4, %f1, %f3; st.global.f32 [%rd1], %f4;"),
        ("add.f32 %f4, %f1, %f3;", "@%p3 add.f32 %f4, %f1, %f3;"),
        ("JOIN:", "JOIN: mov.u64 %rd1, %rd2;"),
        ("JOIN:", "JOIN: mov.f32 %f1, 0f00000000;"),
        ("and.b32 %r7, %r6, 1", "and.b32 %r7, %r6, 3"),  # how often
        ("sub.s32 %r6, %r5, %r2", "sub.s32 %r6, %r5, %r4"),
        ("max.s32", "max.u32"),
        ("max.s32", "min.s32"),
        ("setp.eq.s32 %p3", "add.s32 %r6, %r6, 1; setp.eq.s32 %p3"),
        ("setp.eq.s32 %p3, %r7, 0", "setp.eq.s32 %p3, %r7, 1"),
        ("setp.lt.u32 %p5, %r11, 1", "setp.lt.u32 %p5, %r11, 2"),
        ("setp.lt.u32 %p5, %r11", "setp.lt.s32 %p5, %r11"),
        ("setp.lt.u32 %p5", "setp.ge.u32 %p5"),
        ("setp.lt.s32 %p6, %r8, %r3", "setp.le.s32 %p6, %r8, %r3"),
        ("setp.lt.s32 %p6, %r8, %r3", "setp.lt.s32 %p6, %r8, %r6"),
        ("setp.lt.s32 %p6", "setp.lt.u32 %p6"),
        ("add.s32 %r8, %r8, 2", "add.s32 %r8, %r8, 1"),
        ("setp.ne.s32 %p4, %r7, 0", "setp.ne.s32 %p4, %r7, -1"),
        ("mov.u32 %r8, %r2;\n@%p3", "mov.u32 %r8, %r3;\n@%p3"),  # where it begins
        ("mov.u32 %r8, %r2;\nFIRST", "mov.u32 %r8, %r4;\nFIRST"),
        ("mov.f32 %f1, 0f00000000;\nmov.u32 %r8, %r2;\nFIRST", "mov.u32 %r7, 1;\nmov.u32 %r8, %r2;\nFIRST"),
        ("[%rd1], %f1", "[%rd9], %f1"),  # what is left behind
        ("[%rd1], %f1", "[%rd1], %r8"),
        ("[%rd1], %f1", "[%rd1], %f2"),
        ("@%p2 bra END", "@%p2 bra JOIN"),  # ways into them
        ("@%p2 bra END", "@%p2 bra SECOND"),
        ("@%p6 bra SECOND", "@!%p6 bra SECOND"),
    ],
)
def test_what_is_something_else(old: str, new: str) -> None:
    assert rolled(old, new) == []
