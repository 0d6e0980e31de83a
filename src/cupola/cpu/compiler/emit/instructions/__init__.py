"""The meaning of every PTX instruction that only maps source values to destination values.

``lower(builder, instruction, sources)`` appends LLVM code to the builder and returns the values of the
destinations. Sources and destinations are the flattened operands (vectors ``{a, b}`` and pairs ``p|q`` taken
apart by ``split_operands``), with the LLVM types that ``operand_types(instruction)`` names. ``supported``
gives the reason why an instruction cannot be lowered, or None: ask it when a module is loaded. Memory,
control flow and special registers are the emitter's own.
"""

from __future__ import annotations

from cupola.cpu.compiler.ptx import ast

from . import approximate, bits, compare, convert, floating, half, integer, matrix, move, packed, video, warp  # noqa: F401
from .formats import settle_nans
from .registry import OperandTypes, describe_unsupported, find, lower, opcodes, split_operands

__all__ = [
    "OperandTypes",
    "lower",
    "opcodes",
    "operand_types",
    "settle_nans",
    "split_operands",
    "supported",
]


def operand_types(instruction: ast.Instruction) -> OperandTypes:
    """The LLVM types in which ``lower`` takes the sources and returns the destinations."""
    operation, entry = find(instruction)
    if entry is None:
        raise NotImplementedError(instruction.text)
    destinations, sources = split_operands(instruction)
    return entry.typing(operation, len(destinations), len(sources))


def supported(instruction: ast.Instruction) -> str | None:
    """None, or the reason why ``lower`` does not know this instruction."""
    return describe_unsupported(instruction)
