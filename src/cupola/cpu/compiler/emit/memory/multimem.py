"""Memory of several devices at one address (PTX ISA, "multimem.ld_reduce, multimem.st, multimem.red").

A helper finds the places and does the work, lane by lane (engine/instructions/multimem.c).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast

from .accessors import call_accessor, fault_unless_zero
from .addresses import address_of
from .bounds import Access
from .elements import load_elements, store_elements
from .memory import lane_addresses

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_OPERATIONS = ("ld_reduce", "st", "red")
_REDUCTIONS = ("add", "min", "max", "and", "or", "xor")
_KINDS = ("bits", "unsigned", "signed", "f16", "bf16", "f32", "f64")
_TYPES = {
    **{f"b{bits}": ("bits", bits) for bits in (32, 64)},
    **{f"u{bits}": ("unsigned", bits) for bits in (32, 64)},
    **{f"s{bits}": ("signed", bits) for bits in (32, 64)},
    **{"f16": ("f16", 16), "f16x2": ("f16", 32), "bf16": ("bf16", 16), "bf16x2": ("bf16", 32)},
    **{"f32": ("f32", 32), "f64": ("f64", 64)},
}
_HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_MOST = 16  # bytes of a vector


def _reduction(instruction: ast.Instruction) -> str:
    return next((m for m in instruction.modifiers if m in _REDUCTIONS), "")


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why an operation on multicast memory cannot be run, or None."""
    modifiers = instruction.modifiers
    name, reduction = modifiers[-1], _reduction(instruction)
    if name.startswith(("e4m3", "e5m2")) or "acc::f16" in modifiers:
        return "numbers of 8 bits in memory of several devices need compute capability 10.0a"
    if name not in _TYPES:
        return f"'.{name}' is no type for it"
    kind, bits = _TYPES[name]
    fits = {
        "": True,
        "add": kind != "bits",
        "min": kind in ("unsigned", "signed") or name in _HALVES,
        "max": kind in ("unsigned", "signed") or name in _HALVES,
    }
    if not fits.get(reduction, kind == "bits"):
        return f"'.{reduction}' is not for the type '.{name}'"
    count = Access.of(instruction, write=False).count
    if count > 1 and (kind not in ("f16", "bf16", "f32") or count * bits // 8 > _MOST):
        return f"there are no vectors of {count} elements of the type '.{name}'"
    if "acc::f32" in modifiers and (name not in _HALVES or reduction != "add"):
        return "'.acc::f32' is for sums of halves"
    return None


@lowers("multimem", "multimem.ld_reduce", objection=problem_with)
def multimem(body: Body, instruction: ast.Instruction) -> None:
    """``multimem.ld_reduce``, ``multimem.st``, ``multimem.red``."""
    builder, modifiers = body.builder, instruction.modifiers
    operation = next(m for m in modifiers if m in _OPERATIONS)
    kind, bits = _TYPES[modifiers[-1]]
    is_load = operation == "ld_reduce"
    operands = instruction.operands if is_load else instruction.operands[::-1]
    values, place = operands
    items = values.items if isinstance(values, ast.Vector) else (values,)
    access = replace(Access.of(instruction, write=not is_load), type=f"i{bits}", space="global")
    site = body.new_site(instruction, "global", access.size, write=not is_load)
    packed = abi.pack_site(site, access.size, access.element, "global", write=not is_load, contiguous=False)
    buffer = body.scratch("multimem", access.size)
    if not is_load:
        store_elements(builder, access, buffer, [builder.splat(body.operand(item, access.type)) for item in items])
    reduction = _reduction(instruction)
    description = (
        _OPERATIONS.index(operation)
        | (_REDUCTIONS.index(reduction) if reduction else 0) << 4
        | _KINDS.index(kind) << 8
        | access.element << 12
        | access.count << 16
        | int("acc::f32" in modifiers) << 20
    )
    addresses = lane_addresses(body, address_of(body, place, "global"))
    status = call_accessor(
        body, "cupola_multimem", "i32", packed, f"ptr {addresses}", f"i64 {description}", f"ptr {buffer}"
    )
    fault_unless_zero(body, status)
    if is_load:
        for item, value in zip(items, load_elements(builder, access, buffer), strict=True):
            body.write(item, value)
