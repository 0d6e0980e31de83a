"""Basic blocks, their order and loops."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.passes import Block, analyze, prepare
from cupola.cpu.compiler.passes.control_flow import build_blocks
from cupola.cpu.compiler.ptx import PtxUnsupportedError

from .small import analysed, kernel


def shape(blocks: list[Block]) -> list[tuple[list[str], str | None, list[int]]]:
    """Opcodes, terminator and successors of each block."""
    return [
        (
            [i.opcode for i in block.instructions],
            None if block.terminator is None else ("@" if block.terminator.guard else "") + block.terminator.opcode,
            [successor.index for successor in block.successors],
        )
        for block in blocks
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", [([], "ret", [])]),
        ("ret;", [([], "ret", [])]),
        ("mov.u32 %r1, 1;", [(["mov"], "ret", [])]),
        ("mov.u32 %r1, 1; ret; mov.u32 %r2, 1;", [(["mov"], "ret", [])]),
        ("exit;", [([], "exit", [])]),
        ("A: mov.u32 %r1, 1; bra B; B: mov.u32 %r2, 1; C: ret;", [(["mov", "mov"], None, [1]), ([], "ret", [])]),
        ("@%p1 bra A; add.u32 %r1, 1, 2; A: ret;", [([], "@bra", [2, 1]), (["add"], None, [2]), ([], "ret", [])]),
        ("@%p1 ret; add.u32 %r1, 1, 2; ret;", [([], "@ret", [1]), (["add"], "ret", [])]),
        ("@%p1 exit;", [([], "@exit", [1]), ([], "ret", [])]),
        ("mov.u32 %r1, 1; bar.sync 0; mov.u32 %r2, 2; ret;", [(["mov"], "bar", [1]), (["mov"], "ret", [])]),
        ("bar.sync 0;", [([], "bar", [1]), ([], "ret", [])]),
        ("bar.arrive 0, 64; bar.warp.sync -1; ret;", [(["bar", "bar"], "ret", [])]),
        ("bar.red.popc.u32 %r1, 0, %p1; ret;", [([], "bar", [1]), ([], "ret", [])]),
        ("barrier.cluster.arrive; barrier.cluster.wait; ret;", [(["barrier"], "barrier", [1]), ([], "ret", [])]),
        ("@%p1 bar.sync 0; ret;", [([], "@bra", [2, 1]), ([], "bar", [2]), ([], "ret", [])]),
        ("@!%p1 trap; @%p1 mov.u32 %r1, 2; ret;", [(["trap", "mov"], "ret", [])]),
        ("A: bra A;", [([], None, [1]), ([], None, [1])]),
        ("A: @%p1 bra A; ret;", [([], None, [1]), ([], "@bra", [1, 2]), ([], "ret", [])]),
        ("bra C; A: ret; B: bra A; C: bra B;", [([], None, [1]), ([], "ret", [])]),
        (
            "t: .branchtargets A, B, A; brx.idx %r1, t; A: add.u32 %r1, 1, 1; bra C; B: add.u32 %r2, 1, 1; C: ret;",
            [([], "brx", [1, 2, 1]), (["add"], None, [3]), (["add"], None, [3]), ([], "ret", [])],
        ),
    ],
)
def test_blocks(body: str, expected: list[tuple[list[str], str | None, list[int]]]) -> None:
    assert shape(build_blocks(kernel(body)[1])) == expected


def test_guard_of_a_barrier_becomes_a_branch_around_it() -> None:
    first, barrier, behind = build_blocks(kernel("@%p1 bar.sync 0; ret;")[1])
    assert first.terminator is not None and first.terminator.guard is not None
    assert first.terminator.guard.negated and first.terminator.guard.register.name == "%p1"
    assert first.successors == [behind, barrier]
    assert barrier.terminator is not None and barrier.terminator.guard is None


def test_caller_says_what_suspends() -> None:
    module, function = kernel("@%p1 nanosleep.u32 5; bar.sync 0; ret;")
    analysis = analyze(
        prepare(module, function), width=32, x_is_contiguous=True, suspends=lambda i: i.opcode == "nanosleep"
    )
    assert [b.terminator.opcode for b in analysis.blocks if b.terminator] == ["bra", "nanosleep", "ret"]


@pytest.mark.parametrize("body", ["bra g;", "bra %r1;", "A: brx.idx %r1, A;", "bra k;"])
def test_branch_to_nowhere(body: str) -> None:
    with pytest.raises(PtxUnsupportedError, match="PTX line"):
        build_blocks(kernel(body)[1])


NESTED = """
mov.u32 %r1, 0;
OUTER: mov.u32 %r2, 0;
INNER: add.u32 %r2, %r2, 1; setp.eq.u32 %p3, %r2, 7; @%p3 bra BREAK; setp.lt.u32 %p1, %r2, 5; @%p1 bra INNER;
add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 5; @%p2 bra OUTER;
st.shared.u32 [s], %r1; ret;
BREAK: st.shared.u32 [s], %r2; ret;
"""


def test_loops() -> None:
    analysis = analysed(NESTED)
    outer, inner = analysis.loops
    assert (outer.header.label, inner.header.label) == ("OUTER", "INNER")
    assert inner.parent is outer and outer.parent is None
    assert inner.blocks < outer.blocks
    assert outer.latch.successors[0] is outer.header
    assert [block.label for block in inner.exits if block not in outer.blocks] == ["BREAK"]
    assert {block.label for block in outer.exits} >= {"BREAK"}


def test_order_keeps_loops_together_and_exits_behind() -> None:
    analysis = analysed(NESTED)
    for loop in analysis.loops:
        places = sorted(block.index for block in loop.blocks)
        assert places == list(range(places[0], places[-1] + 1))
        assert places[0] == loop.header.index and places[-1] == loop.latch.index
        assert all(block.index > places[-1] for block in loop.exits)
    closing = {loop.latch: loop.header for loop in analysis.loops}
    for block in analysis.blocks:
        for successor in block.successors:
            assert successor.index > block.index or closing[block] is successor
            assert block in successor.predecessors


def test_early_exit_of_a_loop_in_the_middle_of_the_text() -> None:
    """The way out comes first in the text, its block still comes behind the loop."""
    analysis = analysed(
        """LOOP: setp.lt.u32 %p1, %r1, 5; @%p1 bra MORE; OUT: st.shared.u32 [s], %r1; ret;
           MORE: add.u32 %r1, %r1, 1; bra LOOP;"""
    )
    place = {block.label: block.index for block in analysis.blocks}
    (loop,) = analysis.loops
    assert place["MORE"] in {block.index for block in loop.blocks}
    assert loop.exits[0].index > max(block.index for block in loop.blocks)


def test_liveness() -> None:
    analysis = analysed(
        """mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u32 %r3, 3; @%p1 bra A;
           add.u32 %r4, %r1, 1; @%p2 mov.u32 %r2, 5; st.shared.u32 [s], %r4; bra B;
           A: mov.u32 %r2, 6; st.shared.u32 [s], %r3;
           B: st.shared.u32 [s], %r2; ret;"""
    )
    live = {block.label: set(analysis.live_in(block)) for block in analysis.blocks}
    entry, then = analysis.blocks[0], analysis.blocks[0].successors[1]
    assert live[entry.label] == {"%p1", "%p2"}
    assert live[then.label] == {"%r1", "%r2", "%p2"}  # the guarded write may leave the old value
    assert live["A"] == {"%r3"} and live["B"] == {"%r2"}
