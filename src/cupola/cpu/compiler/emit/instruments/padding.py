"""Which loads only take along the padding of a structure.

Where a structure is passed by value or changed in part, NVRTC moves it member by member, and the bytes between its
members one by one. Nobody writes those, and nobody uses them. A load of bytes is taken for one of these if they are
only moved, and stored, if at all, as bytes beside something larger that is stored or loaded by the same pointer.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from cupola.cpu.compiler.passes.effects import effects
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.names import TYPE_BITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cupola.cpu.compiler.passes import Block

_MOVES = {"mov": 1, "cvt": 1, "selp": 2}
"""How many operands behind the destination may be the value."""


def padding_loads(blocks: list[Block]) -> set[int]:
    """The loads, by ``id``, whose bytes are no more than moved, and stored beside the members of a structure."""
    loads = [i for block in blocks for i in block.code() if i.opcode == "ld" and _is_of_bytes(i)]
    used = _used_registers(blocks) if loads else set()
    return {id(load) for load in loads if used.isdisjoint(effects(load).writes)}


def _used_registers(blocks: list[Block]) -> set[str]:
    """Registers of which something is made, on whatever way."""
    used: set[str] = set()
    sources: dict[str, list[str]] = defaultdict(list)
    for block in blocks:
        members = {_pointer(i) for i in block.code() if i.opcode in ("ld", "st") and not _is_of_bytes(i)}
        for instruction in block.code():
            reads = list(effects(instruction).reads)
            if instruction.opcode == "st" and _is_of_bytes(instruction) and _pointer(instruction) in members:
                value = instruction.operands[1]
                for name in _names(value.items if isinstance(value, ast.Vector) else (value,)):
                    reads.remove(name)
            elif _is_move(instruction):
                target, *values = instruction.operands[: _MOVES[instruction.opcode] + 1]
                assert isinstance(target, ast.Register)
                for name in _names(values):
                    reads.remove(name)
                    sources[target.name].append(name)
            used.update(reads)
    waiting = list(used)
    while waiting:
        for name in sources[waiting.pop()]:
            if name not in used:
                used.add(name)
                waiting.append(name)
    return used


def _is_of_bytes(access: ast.Instruction) -> bool:
    return TYPE_BITS.get(access.modifiers[-1]) == 8  # st.bulk has no type


def _pointer(access: ast.Instruction) -> ast.Operand | None:
    """What the address of a load or store begins with, in front of the offset."""
    address = access.operands[access.opcode == "ld"]
    return address.base if isinstance(address, ast.Address) else None


def _is_move(instruction: ast.Instruction) -> bool:
    """Whether an instruction puts a register elsewhere as it is, or a byte into a wider one."""
    if instruction.opcode not in _MOVES or not isinstance(instruction.operands[0], ast.Register):
        return False
    return instruction.opcode != "cvt" or not any(word[0] in "fbe" for word in instruction.modifiers)


def _names(operands: Sequence[ast.Operand]) -> list[str]:
    return [operand.name for operand in operands if isinstance(operand, ast.Register)]
