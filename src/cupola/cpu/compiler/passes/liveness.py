"""Establishes: for each block, the registers whose values may still be read when it begins.

A backward data flow over bit sets (Python integers, a bit for each register). A guarded instruction may leave its
destination as it was, so it does not end the life of the value before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from cupola.cpu.compiler.passes.control_flow import Block


class Liveness:
    """Registers that are live where blocks begin.

    Attributes
    ----------
    bit : dict
        The bit of each register, in order of first appearance.
    live_in : list of int
        By block index: the set of live registers, as bits.
    """

    def __init__(self, blocks: list[Block]) -> None:
        self.bit: dict[str, int] = {}
        self.live_in = [0] * len(blocks)
        self._names: list[str] = []
        reads = [0] * len(blocks)
        writes = [0] * len(blocks)
        bit = self.bit
        for block in blocks:
            read = written = 0
            for instruction, effect in zip(block.code(), block.effects, strict=True):
                for name in effect.reads:
                    mask = bit.get(name) or self._add(name)
                    if not written & mask:
                        read |= mask
                for name in effect.writes:
                    mask = bit.get(name) or self._add(name)
                    if instruction.guard is None:
                        written |= mask
            reads[block.index] = read
            writes[block.index] = written
        self._solve(blocks, reads, writes)

    def _add(self, name: str) -> int:
        mask = self.bit[name] = 1 << len(self._names)
        self._names.append(name)
        return mask

    def _solve(self, blocks: list[Block], reads: list[int], writes: list[int]) -> None:
        live = self.live_in
        waiting = deque(reversed(blocks))
        queued = set(waiting)
        while waiting:
            block = waiting.popleft()
            queued.discard(block)
            index = block.index
            out = 0
            for successor in block.successors:
                out |= live[successor.index]
            found = reads[index] | (out & ~writes[index])
            if found != live[index]:
                live[index] = found
                for predecessor in block.predecessors:
                    if predecessor not in queued:
                        queued.add(predecessor)
                        waiting.append(predecessor)

    def names(self, bits: int) -> Iterator[str]:
        """The registers of a set, in order of first appearance."""
        while bits:
            lowest = bits & -bits
            yield self._names[lowest.bit_length() - 1]
            bits ^= lowest
