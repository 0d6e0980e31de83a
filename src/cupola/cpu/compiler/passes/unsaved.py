"""Establishes: for each block, the registers that may have changed since the last barrier when it ends.

At a barrier that all threads reach together, registers that are wanted later are kept in the frame. Of those that only
pass through between two barriers the frame still has the values.
"""

from __future__ import annotations

from cupola.cpu.compiler.passes.control_flow import Block, waits_for_warps
from cupola.cpu.compiler.passes.liveness import Liveness


def unsaved_registers(blocks: list[Block], liveness: Liveness) -> list[int]:
    """By block index: the registers, as bits of ``liveness``, whose values may not be in the frame before it ends."""
    everything = (1 << len(liveness.bit)) - 1
    writes, ends = [], []
    for block in blocks:
        written = [0] * len(block.effects)
        for place, effect in enumerate(block.effects):
            for name in effect.writes:
                written[place] |= liveness.bit[name]
        waits = block.terminator is not None and waits_for_warps(block.terminator)
        ends.append(written.pop() if waits else None)
        total = 0
        for bits in written:
            total |= bits
        writes.append(total)
    before = [everything if block.index == 0 else 0 for block in blocks]
    waiting = list(reversed(blocks))
    while waiting:
        block = waiting.pop()
        index = block.index
        end = ends[index]
        behind = before[index] | writes[index] if end is None else end
        for successor in block.successors:
            if behind & ~before[successor.index]:
                before[successor.index] |= behind
                waiting.append(successor)
    return [bits | written for bits, written in zip(before, writes, strict=True)]
