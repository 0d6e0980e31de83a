"""How often each basic block ran, with how many threads, and which ways its threads went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value

from .instrument import Instrument

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body, Facts
    from cupola.cpu.compiler.passes import Block

RUNS, THREADS = range(2)
"""The first counters of a block: how often warps ran it, and with how many threads in all. The same two follow for each
of its ways."""


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
        found.append(found[-1] + 2 + 2 * ways(block))
    return found


class Blocks(Instrument):
    """Counts what runs (coverage)."""

    def __init__(self, body: Body, first: int) -> None:
        super().__init__(body, first)
        self._places = places(body.facts)

    @classmethod
    def counters_of(cls, facts: Facts) -> int:
        return places(facts)[-1]

    def block(self, block: Block) -> None:
        at = self._places[block.index]
        self.count(at + RUNS, constant("i64", 1))
        self.count(at + THREADS, self.population(self.lanes))

    def branch(self, block: Block, way: int, lanes: Value) -> None:
        at = self._places[block.index] + 2 + 2 * way
        self.count(at + RUNS, self.any(lanes))
        self.count(at + THREADS, self.population(lanes))
