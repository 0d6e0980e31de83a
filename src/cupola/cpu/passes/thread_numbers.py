"""Establishes: where registers hold ``%tid.x``, and which hold zero because it is a small number.

A compiler that has no more use for ``threadIdx.x`` may count a loop by the very register it is in, so that the register
alone says nothing; in a block that only the copy of ``%tid.x`` reaches, it still is the thread's number. And signed
division by a power of two adds what the sign of ``threadIdx.x`` asks for: nothing, since it has ten bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from cupola.cpu.passes.control_flow import Block
from cupola.cpu.ptx import ast

LARGEST = 1023
"""The largest ``%tid.x``, and all of its bits."""

_WORD = (1 << 32) - 1
_WORDS = frozenset([("u32",), ("s32",), ("b32",)])
_FOLLOWED = frozenset(["mov", "and", "add", "shr", "shl"])


def copies_of_thread_number(blocks: list[Block]) -> list[frozenset[str]]:
    """The registers that hold ``%tid.x`` in all threads that begin a block, for each block."""
    names: dict[str, int] = {}
    for block in blocks:
        for instruction in block.code():
            if _is_copy(instruction):
                names.setdefault(_target(instruction), 1 << len(names))
    if not names:
        return [frozenset()] * len(blocks)
    every = (1 << len(names)) - 1
    keeps, makes = [], []
    for block in blocks:
        kept, made = every, 0
        for instruction, effect in zip(block.code(), block.effects, strict=True):
            for name in effect.writes:
                bit = names.get(name, 0)
                kept, made = kept & ~bit, made & ~bit
            if _is_copy(instruction):
                made |= names[_target(instruction)]
        keeps.append(kept)
        makes.append(made)
    before = [0] + [every] * (len(blocks) - 1)
    waiting = list(blocks)
    while waiting:
        block = waiting.pop()
        behind = before[block.index] & keeps[block.index] | makes[block.index]
        for successor in block.successors:
            if before[successor.index] & ~behind:
                before[successor.index] &= behind
                waiting.append(successor)
    return [frozenset(name for name, bit in names.items() if bits & bit) for bits in before]


def zeros(
    blocks: list[Block], copies: list[frozenset[str]], single: Set[str], constants: Mapping[str, int]
) -> dict[str, int]:
    """Registers with one definition that is always zero, each with that zero."""
    masks = {name: number & _WORD for name, number in constants.items()}

    def bits(operand: ast.Operand) -> int:
        """The bits that may be set in an operand."""
        if isinstance(operand, ast.Immediate) and operand.kind == "int":
            return operand.value & _WORD
        if isinstance(operand, ast.Register):
            return LARGEST if operand.name in here else masks.get(operand.name, _WORD)
        return LARGEST if operand == ast.Special("tid", "x") else _WORD

    found: dict[str, int] = {}
    if not any(_is_copy(instruction) for block in blocks for instruction in block.instructions):
        return found
    for block in blocks:
        here = set(copies[block.index])
        for instruction, effect in zip(block.code(), block.effects, strict=True):
            mask = None
            if instruction.opcode in _FOLLOWED and instruction.modifiers in _WORDS and instruction.guard is None:
                mask = _bits_of(instruction, [bits(operand) for operand in instruction.operands[1:]])
            here.difference_update(effect.writes)
            if _is_copy(instruction):
                here.add(_target(instruction))
            elif mask is not None and _target(instruction) in single:
                masks[_target(instruction)] = mask
                if not mask:
                    found[_target(instruction)] = 0
    return found


def _is_copy(instruction: ast.Instruction) -> bool:
    if instruction.opcode != "mov" or instruction.guard is not None or instruction.modifiers not in _WORDS:
        return False
    target, source = instruction.operands
    return isinstance(target, ast.Register) and source == ast.Special("tid", "x")


def _target(instruction: ast.Instruction) -> str:
    target = instruction.operands[0]
    assert isinstance(target, ast.Register)
    return target.name


def _bits_of(instruction: ast.Instruction, sources: list[int]) -> int | None:
    """The bits that may be set in the result of an instruction; None where that is not known."""
    if not isinstance(instruction.operands[0], ast.Register):
        return None
    match instruction.opcode, sources:
        case "mov", [source]:
            return source
        case "and", [first, second]:
            return first & second
        case "add", [first, second]:
            total = first + second
            return (1 << total.bit_length()) - 1 if total <= _WORD else None
        case "shr" | "shl", [source, _]:
            amount = instruction.operands[2]
            if not isinstance(amount, ast.Immediate) or not 0 <= amount.value < 32:
                return None
            if instruction.opcode == "shl":
                return source << amount.value & _WORD
            return source >> amount.value if source >> 31 == 0 or instruction.modifiers != ("s32",) else None
    return None
