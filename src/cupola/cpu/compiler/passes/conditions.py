"""Establishes: setting the condition of a graph is a store.

Kernels of a graph set a condition by ``cudaGraphSetConditional(handle, value)`` of the device runtime (CUDA C++
Programming Guide, "Conditional Graph Nodes"). In PTX that is a call of an external function. The CPU device's handle
is the address of the condition's value, so the call becomes ``st.global.u32 [handle], value``, which a wrong handle
makes a fault like any other bad address. As on an H200, of several lanes that set one condition by one call the first
one counts: the others find a lane before them that has the same handle, and do not store.
"""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.compiler.ptx import ast

SET_CONDITIONAL = "cudaGraphSetConditional"
# The lanes that make the call with this one's handle, those before this one, and whether there are none. No program can
# have such names.
_REGISTERS = {"%.lanes": "b32", "%.before": "b32", "%.first": "pred"}


def make_conditions_stores(function: ast.Function) -> ast.Function:
    """The function with such calls replaced; the same object when there are none. Arguments must be registers."""
    if not any(_sets_condition(statement) for statement in function.body or ()):
        return function
    body = [made for statement in function.body or () for made in _as_store(statement)]
    return replace(function, body=body, registers={**function.registers, **_REGISTERS})


def _sets_condition(statement: ast.Statement) -> bool:
    if not isinstance(statement, ast.Instruction) or statement.opcode != "call":
        return False
    callee = statement.operands[1]
    return isinstance(callee, ast.Symbol) and callee.name == SET_CONDITIONAL


def _as_store(statement: ast.Statement) -> list[ast.Statement]:
    if not isinstance(statement, ast.Instruction) or not _sets_condition(statement):
        return [statement]
    arguments = statement.operands[2]
    assert isinstance(arguments, ast.ArgumentList)
    handle, value = arguments.items
    assert isinstance(handle, ast.Register)
    lanes, before, first = (ast.Register(name) for name in _REGISTERS)
    zero = ast.Immediate(0)
    steps: tuple[tuple[str, tuple[str, ...], tuple[ast.Operand, ...], ast.Guard | None], ...] = (
        ("setp", ("ne", "u32"), (first, zero, zero), None),
        ("activemask", ("b32",), (lanes,), statement.guard),
        ("match", ("any", "sync", "b64"), (lanes, handle, lanes), statement.guard),
        ("mov", ("u32",), (before, ast.Special("lanemask_lt")), statement.guard),
        ("and", ("b32",), (before, before, lanes), statement.guard),
        ("setp", ("eq", "u32"), (first, before, zero), statement.guard),
        ("st", ("global", "u32"), (ast.Address(handle), value), ast.Guard(first)),
    )
    return [
        replace(statement, opcode=opcode, modifiers=modifiers, operands=operands, guard=guard)
        for opcode, modifiers, operands, guard in steps
    ]
