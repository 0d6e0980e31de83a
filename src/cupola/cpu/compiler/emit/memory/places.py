"""Where a walk (see walks.py) is, and where the careful block has been: what both ways to write walks share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast

from .bounds import plan_groups

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

    from .walks import Walk

FARTHEST = 1 << 47
"""More elements than there can be in an allocation."""


class Places:
    """The blocks of a walk while they are written.

    Attributes
    ----------
    steps
        What an iteration adds to registers that live across blocks.
    sites
        The number of the site of each load in the careful block, by the instruction's ``id``.
    led
        Registers that are at an element of an array which is a pointer parameter, while one index counts for all of
        them: the place of the pointer, the size of an element, and how far behind that.
    """

    def __init__(self, body: Body, block: Block, walk: Walk, steps: dict[str, int]) -> None:
        self.body = body
        self.block = block
        self.walk = walk
        self.builder = body.builder
        self.steps = steps
        self.sites: dict[int, int] = {}
        self.led: dict[str, tuple[int, int, int]] = {}
        self._groups = plan_groups(block)

    def element(self, name: str, index: Value) -> Value:
        """Where a register is that is led, by the index of the element."""
        builder = self.builder
        place, size, offset = self.led[name]
        way = builder.binary("mul", index, constant("i64", size))
        address = builder.binary("add", self.body.parameter(place, "i64", 8), way)
        return builder.binary("add", address, constant("i64", offset)) if offset else address

    def remembers(self, instruction: ast.Instruction) -> int:
        """The site of what the careful block checks for a load."""
        group = self._groups.get(id(instruction))
        if group is not None and len(group.early) > 1:
            instruction = min(group.early, key=lambda load: load[1])[0].instruction
        return self.sites[id(instruction)]

    def entry(self, instruction: ast.Instruction) -> str:
        """The pointer to what it has found."""
        at = self.remembers(instruction) * abi.SITE_CACHE_BYTES
        return self.builder.emit(f"getelementptr i8, ptr %sites, i64 {at}")
