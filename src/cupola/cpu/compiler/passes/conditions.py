"""Establishes: setting the condition of a graph is a store.

Kernels of a graph set a condition by ``cudaGraphSetConditional(handle, value)`` of the device runtime (CUDA C++
Programming Guide, "Conditional Graph Nodes"). In PTX that is a call of an external function. The CPU device's handle
is the address of the condition's value, so the call becomes ``st.global.u32 [handle], value``, which a wrong handle
makes a fault like any other bad address.
"""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.compiler.ptx import ast

SET_CONDITIONAL = "cudaGraphSetConditional"


def make_conditions_stores(function: ast.Function) -> ast.Function:
    """The function with such calls replaced; the same object when there are none. Arguments must be registers."""
    if not any(_sets_condition(statement) for statement in function.body or ()):
        return function
    return replace(function, body=[_as_store(statement) for statement in function.body or ()])


def _sets_condition(statement: ast.Statement) -> bool:
    if not isinstance(statement, ast.Instruction) or statement.opcode != "call":
        return False
    callee = statement.operands[1]
    return isinstance(callee, ast.Symbol) and callee.name == SET_CONDITIONAL


def _as_store(statement: ast.Statement) -> ast.Statement:
    if not isinstance(statement, ast.Instruction) or not _sets_condition(statement):
        return statement
    arguments = statement.operands[2]
    assert isinstance(arguments, ast.ArgumentList)
    handle, value = arguments.items
    assert isinstance(handle, ast.Register)
    return replace(statement, opcode="st", modifiers=("global", "u32"), operands=(ast.Address(handle), value))
