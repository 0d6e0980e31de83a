"""What happens between the same barriers: loads of shared memory that meet no store there, and so no race.

Between two barriers of the whole block, all threads are in code that begins behind the same one. A load with no store
to shared memory in any such piece of code is ordered with all of them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

from cupola.cpu.compiler.ptx import ast

if TYPE_CHECKING:
    from .control_flow import Block

_OTHERS = frozenset(["call", "mbarrier", "mapa", "tensormap", "multimem"])
_SPACES = frozenset(["global", "local", "param", "const"])


def calm_loads(blocks: list[Block], of_parameters: Container[int]) -> set[int]:
    """The loads of shared memory, by ``id``, that no store of the kernel can be a race with.

    Parameters
    ----------
    blocks
        Of the kernel.
    of_parameters
        Accesses, by ``id``, whose addresses come from parameters: those are not in shared memory.
    """
    if any(_is_beyond(instruction) for block in blocks for instruction in block.code()):
        return set()
    begins = {id(i): 1 << n for n, i in enumerate((i for b in blocks for i in b.code() if _is_barrier(i)), 1)}
    before = [0] * len(blocks)
    before[0] = 1
    changed = True
    while changed:
        changed = False
        for block in blocks:
            after = before[block.index]
            for instruction in block.code():
                after = begins.get(id(instruction), after)
            for successor in block.successors:
                if after & ~before[successor.index]:
                    before[successor.index] |= after
                    changed = True
    stored, loads = 0, []
    for block in blocks:
        here = before[block.index]
        for instruction in block.code():
            here = begins.get(id(instruction), here)
            if instruction.opcode in ("ld", "ldu") and "shared" in _spaces(instruction):
                loads.append((id(instruction), here))
            elif (
                instruction.description.writes_memory
                and id(instruction) not in of_parameters
                and _SPACES.isdisjoint(_spaces(instruction))
            ):
                stored |= here
    return {number for number, here in loads if not here & stored}


def _spaces(instruction: ast.Instruction) -> Iterator[str]:
    return (word.partition("::")[0] for word in instruction.modifiers)


def _is_beyond(instruction: ast.Instruction) -> bool:
    """Whether others than the block's own threads may write, or it is not known what is written."""
    words = instruction.modifiers
    if instruction.opcode in _OTHERS or any("cluster" in word for word in words) or "async" in words:
        return True
    return instruction.opcode == "cp" or (instruction.opcode == "fence" and "proxy" in _spaces(instruction))


def _is_barrier(instruction: ast.Instruction) -> bool:
    if instruction.opcode not in ("bar", "barrier") or instruction.guard is not None:
        return False
    if "sync" not in instruction.modifiers or {"warp", "cluster"} & set(instruction.modifiers):
        return False
    number = instruction.operands[0] if len(instruction.operands) == 1 else None
    return isinstance(number, ast.Immediate) and number.value == 0
