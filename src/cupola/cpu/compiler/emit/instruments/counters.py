"""What memory accesses cost, and how many threads guards let through; with `blocks`, all that a profile counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast

from .instrument import Instrument, MemoryAccess, accesses_of, instructions_of

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body, Facts

(
    GLOBAL_REQUESTS,
    GLOBAL_THREADS,
    SECTORS,
    LEAST_SECTORS,
    SHARED_REQUESTS,
    SHARED_THREADS,
    WAVEFRONTS,
    LEAST_WAVEFRONTS,
    SAME_ADDRESS,
    SLOTS,
) = range(10)
"""The counters of an access, as ``engine/instruments/counters.c`` has them: for global memory requests of warps,
threads, sectors, and how many would do; for shared memory requests, threads, how often the banks were read, and how
often would do; and for atomic operations the most threads of each request at one address, added up."""

COUNTED = ("global", "shared", "generic", "cluster")


def counted(instruction: ast.Instruction) -> list[MemoryAccess]:
    """The accesses of an instruction that are counted."""
    return [access for access in accesses_of(instruction) if access.space in COUNTED]


def guard_counts(instruction: ast.Instruction) -> bool:
    """Whether the threads that a guard lets through are counted; those of branches are counted by their ways."""
    return instruction.guard is not None and instruction.description.lowered != "control"


def places(facts: Facts) -> list[int]:
    """Where the counters of each instruction begin, by its number, and behind them where they end.

    First comes that of the guard, if it has one, then those of its accesses.
    """
    found = [0]
    for instruction in instructions_of(facts):
        found.append(found[-1] + guard_counts(instruction) + SLOTS * len(counted(instruction)))
    return found


class Counters(Instrument):
    """Counts what accesses and guards do."""

    def __init__(self, body: Body, first: int) -> None:
        super().__init__(body, first)
        self._places = places(body.facts)

    @classmethod
    def counters_of(cls, facts: Facts) -> int:
        return places(facts)[-1]

    def instruction(self, instruction: ast.Instruction) -> None:
        if guard_counts(instruction):
            self.count(self._places[self.number(instruction)], self.population(self.lanes_of(instruction)))

    def access(self, access: MemoryAccess) -> None:
        if access.space not in COUNTED:
            return
        instruction = access.instruction
        order = [other.operand for other in counted(instruction)].index(access.operand)
        place = self._first + self._places[self.number(instruction)] + guard_counts(instruction) + SLOTS * order
        is_store = access.writes and not access.reads
        what = access.size | abi.SPACES[access.space] << 8 | access.atomic << 16 | is_store << 17
        self.call("cupola_count_access", f"ptr {self.addresses(access)}", f"i32 {what}", f"i64 {place}")
