"""How often each basic block ran, with how many threads, and which ways its threads went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.ptx import ast

from .instrument import Instrument

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body, Facts
    from cupola.cpu.compiler.passes import Block

RUNS, THREADS, DISTINCT, APART = range(4)
"""The first counters of a block: how often warps ran it, with how many threads in all, how many threads ever ran it,
and how often warps came to the barrier at its end without some of their threads. RUNS and THREADS follow for each of
its ways."""


def is_branch(block: Block) -> bool:
    """Whether threads choose among ways at the end of a block."""
    end = block.terminator
    return end is not None and (end.opcode == "brx" or (end.guard is not None and end.description.lowered == "control"))


def ways(block: Block) -> int:
    """How many ways threads may choose among at the end of a block; 0 when there is no choice."""
    end = block.terminator
    if end is None or not is_branch(block):
        return 0
    return len(block.successors) if end.opcode == "brx" else 2


def places(facts: Facts) -> list[int]:
    """Where the counters of each block begin, and behind them where they end."""
    found = [0]
    for block in facts.analysis.blocks:
        found.append(found[-1] + 4 + 2 * ways(block))
    return found


@lowers(".here")
def here(body: Body, instruction: ast.Instruction) -> None:
    """``.here``: a line of the source that has no other code (passes/mark_lines.py)."""


class Blocks(Instrument):
    """Counts what runs (coverage)."""

    def __init__(self, body: Body, first: int) -> None:
        super().__init__(body, first)
        self._places = places(body.facts)

    @classmethod
    def counters_of(cls, facts: Facts) -> int:
        return places(facts)[-1]

    @classmethod
    def frame_bytes_of(cls, facts: Facts) -> int:
        return 4 * len(facts.analysis.blocks)  # for each, the threads that have run it

    def enter(self, lanes: Value) -> None:
        size = self.frame_bytes_of(self.body.facts)
        self.builder.declarations["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"] = None
        self.builder.line(f"call void @llvm.memset.p0.i64(ptr {self.memory(0)}, i8 0, i64 {size}, i1 false)")

    def block(self, block: Block) -> None:
        at, builder, lanes = self._places[block.index], self.builder, self.lanes
        self.count(at + RUNS, constant("i64", 1))
        self.count(at + THREADS, self.population(lanes))
        seen = self.memory(4 * block.index)
        before = Value(builder.emit(f"load i32, ptr {seen}"), "i32")
        after = builder.binary("or", before, lanes)
        builder.line(f"store i32 {after.ir}, ptr {seen}")
        self.count(at + DISTINCT, self.population(builder.binary("xor", after, before)))

    def instruction(self, instruction: ast.Instruction) -> None:
        if instruction.description.waits in ("block", "cluster") and instruction.description.suspends:
            control = self.body.control
            absent = self.builder.binary("xor", control.live(), control.mask)
            self.count(self._places[control.block.index] + APART, self.any(absent))

    def branch(self, block: Block, way: int, lanes: Value) -> None:
        at = self._places[block.index] + 4 + 2 * way
        self.count(at + RUNS, self.any(lanes))
        self.count(at + THREADS, self.population(lanes))
