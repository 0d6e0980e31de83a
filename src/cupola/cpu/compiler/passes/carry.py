"""Establishes: the condition code is an operand like any other.

PTX ISA 9.7.2 keeps the carry of extended-precision arithmetic in a register that instructions use implicitly.
Afterwards ``add.cc`` and its kin have a destination pair ``d|%cc``, and ``addc``, ``subc`` and ``madc`` a last
source ``%cc``; both when they do both. ``%cc`` is a predicate.
"""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.compiler.passes.effects import CARRY
from cupola.cpu.compiler.ptx import ast


def make_carry_explicit(function: ast.Function) -> ast.Function:
    """The function with the condition code written out; the same object when it does not use it."""
    if function.body is None or not any(map(_uses_carry, function.body)):
        return function
    body = [_explicit(statement) if _uses_carry(statement) else statement for statement in function.body]
    return replace(function, body=body, registers={**function.registers, CARRY.name: "pred"})


def _uses_carry(statement: ast.Statement) -> bool:
    return isinstance(statement, ast.Instruction) and (statement.description.carry or "cc" in statement.modifiers)


def _explicit(statement: ast.Statement) -> ast.Statement:
    assert isinstance(statement, ast.Instruction)
    operands = statement.operands
    if "cc" in statement.modifiers and isinstance(operands[0], ast.Register | ast.Sink):
        operands = (ast.Pair(operands[0], CARRY), *operands[1:])
    if statement.description.carry:
        operands = (*operands, CARRY)
    return replace(statement, operands=operands)
