"""Which registers hold pointers that a kernel got as parameters."""

from __future__ import annotations

from collections.abc import Sequence

from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast

from .layout import Layout

_WIDE = frozenset(["u64", "s64", "b64"])


def is_wide(instruction: ast.Instruction) -> bool:
    """Whether an instruction is about integers of 64 bits."""
    return not _WIDE.isdisjoint(instruction.modifiers)


def pointer_parameters(blocks: Sequence[Block], layout: Layout) -> dict[str, int]:
    """The registers that hold a parameter of 64 bits whenever they hold anything, with its place."""
    writers: dict[str, list[ast.Instruction]] = {}
    for block in blocks:
        for instruction, effect in zip(block.code(), block.effects, strict=False):
            for name in effect.writes:
                writers.setdefault(name, []).append(instruction)
    found: dict[str, int] = {}
    copies: list[tuple[str, str]] = []
    for name, (instruction, *others) in writers.items():
        if others or instruction.guard is not None or not is_wide(instruction):
            continue
        match instruction.opcode, instruction.operands:
            case "ld", (ast.Register(), ast.Address(ast.Symbol(symbol, begin), offset)):
                place = layout.places[symbol]
                begin += offset
                if place.space == "param" and 0 <= begin <= place.size - 8 and not place.misalignment(begin, 8):
                    found[name] = place.offset + begin
            case (("cvta" | "mov"), (ast.Register(), ast.Register(source))):
                if {"shared", "local", "param", "shared::cta", "shared::cluster"}.isdisjoint(instruction.modifiers):
                    copies.append((name, source))
    for _ in copies:
        found.update({name: found[source] for name, source in copies if source in found})
    return found
