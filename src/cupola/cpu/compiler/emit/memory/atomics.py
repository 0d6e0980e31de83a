"""Atomic operations (PTX ISA, "atom", "red"): a helper does them lane by lane, in ascending order.

A vector of elements is so many atomic operations, as the ISA has it ("each of the individual scalar operations").
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.instructions.registry import LLVM_TYPE
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.ptx import ast

from .accessors import call_accessor
from .addresses import address_of
from .bounds import Access, site_of
from .memory import lane_addresses

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_OPERATIONS = ("add", "and", "or", "xor", "exch", "cas", "min", "max", "inc", "dec")
_TYPES = {
    "add": {"u32": "u32", "s32": "u32", "u64": "u64", "s64": "u64", "b32": "u32", "b64": "u64"}
    | {name: name for name in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2")},
    **{
        operation: {name: name for name in ("u32", "s32", "u64", "s64", "f16", "bf16", "f16x2", "bf16x2")}
        for operation in ("min", "max")
    },
    "inc": {"u32": "u32"},
    "dec": {"u32": "u32"},
    "cas": {f"{kind}{bits}": f"b{bits}" for kind in "bus" for bits in (16, 32, 64)} | {"b128": "b128"},
    "exch": {f"{kind}{bits}": f"b{bits}" for kind in "bus" for bits in (32, 64)} | {"b128": "b128", "f32": "b32"},
} | {name: {f"{kind}{bits}": f"b{bits}" for kind in "bus" for bits in (32, 64)} for name in ("and", "or", "xor")}
"""For each operation, the type in the name of the helper that does it on a PTX type."""


def _operation(instruction: ast.Instruction) -> str:
    return next(m for m in instruction.modifiers if m in _OPERATIONS)


def _type(instruction: ast.Instruction) -> str:
    return next(m for m in reversed(instruction.modifiers) if m in LLVM_TYPE)


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why an atomic operation cannot be run, or None."""
    operation, type = _operation(instruction), _type(instruction)
    if "mmio" in instruction.modifiers:
        return "'.mmio' atomics need compute capability 10.0"
    if type not in _TYPES[operation]:
        return f"'{instruction.opcode}.{operation}' is not supported for the type '{type}'"
    return None


@lowers("atom", "red", objection=problem_with)
def atomic(body: Body, instruction: ast.Instruction) -> None:
    """``atom`` and ``red``."""
    operands = list(instruction.operands)
    destination = operands.pop(0) if instruction.opcode == "atom" else ast.Sink()
    address, operand = operands[:2]
    assert isinstance(address, ast.Address)
    vector = isinstance(operand, ast.Vector)
    items = operand.items if isinstance(operand, ast.Vector) else (operand,)
    targets = destination.items if isinstance(destination, ast.Vector) else (destination,) * len(items)
    operation, name = _operation(instruction), _type(instruction)
    access = replace(Access.of(instruction, write=True), count=1)
    bits = f"i{BITS[LLVM_TYPE[name]]}"
    values = [body.operand(item, bits) for item in items]
    compare = None
    if operation == "cas":
        compare, values = values[0], [body.operand(operands[2], bits)]
    results = []
    for index, value in enumerate(values):
        at = address_of(body, address, access.space)
        if index:
            at = body.builder.binary("add", at, constant(at.type, index * access.element))
        # The first element stands for the whole vector, which must be aligned and inside.
        checked = access if index else replace(access, count=len(values))
        helper = helper_name(instruction, "shared" if access.space == "shared" else "atomic")
        results.append(_call(body, checked, helper, at, value, compare))
    for target, value in zip(targets if vector else (destination,), results, strict=True):
        body.write(target, value, signed=name[0] == "s")


def element_bytes(instruction: ast.Instruction) -> int:
    """Bytes of one element."""
    return BITS[LLVM_TYPE[_type(instruction)]] // 8


def helper_name(instruction: ast.Instruction, kind: str) -> str:
    """The helper that does the operation on elements: ``"shared"`` on offsets, ``"atomic"`` on generic addresses."""
    return helper_of(_operation(instruction), _type(instruction), kind)


def helper_of(operation: str, type: str, kind: str) -> str:
    """The same for an operation and a type."""
    return f"cupola_{kind}_{operation}_{_TYPES[operation][type]}"


def _call(body: Body, access: Access, helper: str, address: Value, value: Value, compare: Value | None) -> Value:
    builder, control = body.builder, body.control
    _, packed = site_of(body, access, row=False)
    addresses = lane_addresses(body, address)
    operands = body.spill("operands", value)
    compares = body.spill("compares", compare) if compare is not None else "null"
    results = body.scratch("results", access.size)
    buffers = (f"ptr {buffer}" for buffer in (addresses, operands, compares, results))
    status = call_accessor(body, helper, "i32", packed, *buffers)
    control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
    type = builder.vector_type(value.type)
    return Value(builder.emit(f"load {type}, ptr {results}, align 16"), value.type, body.width > 1)
