"""Divergent regions of the control flow graph: what threads that parted run before they meet again (see control.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast


@dataclass(slots=True)
class Region:
    """A set of blocks that threads enter together and leave together.

    Attributes
    ----------
    blocks
        Indices of the blocks, ascending.
    exits
        Indices of the convergent blocks where it is left.
    """

    blocks: list[int] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)

    @property
    def meeting(self) -> str:
        """The label where the threads meet."""
        return f"meet{self.blocks[0]}"

    def after(self, index: int) -> str:
        """The label that looks for threads in the blocks behind the given one."""
        following = next((b for b in self.blocks if b > index), None)
        return self.meeting if following is None else f"check{following}"


def is_exit(instruction: ast.Instruction) -> bool:
    """Whether the instruction ends the thread (a kernel's ``ret`` does as well)."""
    return instruction.description.exits


def find_regions(blocks: list[Block], convergent: set[int], is_uniform: Callable[[Block], bool]) -> dict[int, Region]:
    """The region of each block that is not convergent."""
    parent = {block.index: block.index for block in blocks if block.index not in convergent}

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for block in blocks:
        here = [block.index] if block.index in parent else []
        ways = [s.index for s in block.successors if s.index in parent]
        joined = here + ways if here or not is_uniform(block) else []
        for index in joined[1:]:
            parent[root(index)] = root(joined[0])
    regions: dict[int, Region] = {}
    members: dict[int, Region] = {}
    for index in sorted(parent):
        region = regions.setdefault(root(index), Region())
        region.blocks.append(index)
        members[index] = region
    for block in blocks:
        around = [block.index, *(s.index for s in block.successors)]
        if block.index in members:
            region = members[block.index]
        elif not is_uniform(block) and any(i in members for i in around):
            region = next(members[i] for i in around if i in members)
        else:
            continue
        for successor in block.successors:
            outside = successor.index not in members and not successor.returns_only
            if outside and successor.index not in region.exits:
                region.exits.append(successor.index)
    return members


def loses_threads(blocks: list[Block], regions: dict[int, Region], is_uniform: Callable[[Block], bool]) -> bool:
    """Whether some threads of a unit may exit while others go on."""
    for block in blocks:
        end = block.terminator
        exits = end is not None and is_exit(end)
        partly = exits and end is not None and end.guard is not None
        partly |= len(block.successors) > 1 and any(s.returns_only for s in block.successors)
        if block.index in regions:
            if exits or partly or any(s.returns_only for s in block.successors):
                return True
        elif partly and not is_uniform(block):
            return True
    return False
