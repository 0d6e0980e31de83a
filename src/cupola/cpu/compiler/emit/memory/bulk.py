"""Bulk copies and what else signals an mbarrier (PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk", "st.async",
"red.async"), done at once: a bulk group is complete when it is committed (engine/instructions/bulk.c). And ``st.bulk``,
which signals nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast

from . import atomics, tensors
from .accessors import call_accessor
from .addresses import address_of, space_of
from .bounds import Access
from .mbarriers import site_for
from .memory import lane_addresses, store_access

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_OPERATIONS = frozenset(["and", "or", "xor", "add", "inc", "dec", "min", "max"])
_UNIT = 16  # bytes
_FILL_UNIT = 8  # bytes


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why a bulk copy, ``st.async`` or ``red.async`` cannot be run, or None."""
    modifiers = instruction.modifiers
    if "tensor" in modifiers:
        return tensors.problem_with_copy(instruction)
    if "cp_mask" in modifiers:
        return "byte masks need compute capability 10.0"
    if instruction.opcode in ("st", "red") and ("mmio" in modifiers or "shared::cluster" not in modifiers):
        return "asynchronous accesses of global memory need compute capability 10.0"
    if instruction.opcode == "red" or (modifiers[0] == "reduce"):
        return atomics.problem_with(instruction)
    return None


def copy(body: Body, instruction: ast.Instruction) -> None:
    """``cp.async.bulk`` and ``cp.reduce.async.bulk``."""
    modifiers = instruction.modifiers
    if "tensor" in modifiers:
        tensors.copy(body, instruction)
        return
    if not {"commit_group", "wait_group", "prefetch"}.isdisjoint(modifiers):
        return
    operands = list(instruction.operands)
    to, source, size = operands[:3]
    signals = "mbarrier::complete_tx::bytes" in modifiers
    target_space, source_space = [m for m in modifiers if m.partition("::")[0] in ("global", "shared")][:2]
    packed = _site(body, instruction, target_space, write=True)
    arguments = [
        f"i64 {_site(body, instruction, source_space, write=False)}",
        f"ptr {_addresses(body, 'to', to, target_space)}",
        f"ptr {_addresses(body, 'from', source, source_space)}",
        f"ptr {body.spill('sizes', body.operand(size, 'i32'))}",
        f"ptr {_addresses(body, 'barriers', operands[3], 'shared') if signals else 'null'}",
    ]
    if modifiers[0] == "reduce":
        helper = atomics.helper_name(instruction, "atomic")
        if helper.endswith("add_f32"):
            helper += "_subnormal"  # a bulk reduction flushes nothing, unlike an atomic operation
        body.builder.declarations[f"declare i32 @{helper}(ptr, ptr, ptr, ptr, i64, i32, ptr, ptr, ptr, ptr)"] = None
        arguments += [f"ptr @{helper}", f"i32 {atomics.element_bytes(instruction)}"]
        status = call_accessor(body, "cupola_bulk_reduce", "i32", packed, *arguments)
    else:
        multicast = "multicast::cluster" in modifiers
        ranks = body.spill("ranks", body.operand(operands[4], "i32")) if multicast else "null"
        status = call_accessor(body, "cupola_bulk_copy", "i32", packed, *arguments, f"ptr {ranks}")
    body.control.fault_if(body.builder.emit(f"icmp ne i32 {status}, 0"))


def _site(body: Body, instruction: ast.Instruction, space: str, *, write: bool) -> int:
    space = "global" if space == "global" else "cluster"
    number = body.new_site(instruction, space, _UNIT, write=write)
    return abi.pack_site(number, _UNIT, _UNIT, space, write=write, contiguous=False)


def _addresses(body: Body, name: str, operand: ast.Operand, space: str) -> str:
    return lane_addresses(body, address_of(body, operand, "global" if space == "global" else "cluster"), name)


@lowers("st.async", objection=problem_with)
def store_async(body: Body, instruction: ast.Instruction) -> None:
    """``st.async``: store, and count the bytes at an mbarrier."""
    access = Access.of(instruction, write=True)
    destination, source, barrier = instruction.operands[:3]
    items = source.items if isinstance(source, ast.Vector) else (source,)
    store_access(body, access, destination, [body.operand(item, access.type) for item in items])
    _signal(body, instruction, destination, barrier, access.size)


def _fill_problem(instruction: ast.Instruction) -> str | None:
    value = instruction.operands[2] if len(instruction.operands) > 2 else ast.Immediate(0)
    if not isinstance(value, ast.Immediate) or value.value != 0:
        return "it stores zeros: the last operand must be 0"
    return "it is for the block's own shared memory" if "shared::cluster" in instruction.modifiers else None


@lowers("st.bulk", objection=_fill_problem)
def fill(body: Body, instruction: ast.Instruction) -> None:
    """``st.bulk``: zeros in a range of the block's shared memory, from a shared or a generic address."""
    destination, size = instruction.operands[:2]
    space = space_of(instruction)
    number = body.new_site(instruction, space, _FILL_UNIT, write=True)
    site = abi.pack_site(number, _FILL_UNIT, _FILL_UNIT, space, write=True, contiguous=False)
    addresses = lane_addresses(body, address_of(body, destination, space), "to")
    sizes = body.spill("sizes", body.operand(size, "i64"))
    status = call_accessor(body, "cupola_bulk_fill", "i32", site, f"ptr {addresses}", f"ptr {sizes}")
    body.control.fault_if(body.builder.emit(f"icmp ne i32 {status}, 0"))


@lowers("red.async", objection=problem_with)
def reduce_async(body: Body, instruction: ast.Instruction) -> None:
    """``red.async``: an atomic operation, whose bytes are counted at an mbarrier."""
    atomics.atomic(body, instruction)
    destination, _, barrier = instruction.operands[:3]
    _signal(body, instruction, destination, barrier, atomics.element_bytes(instruction))


def _signal(
    body: Body, instruction: ast.Instruction, destination: ast.Operand, barrier: ast.Operand, size: int
) -> None:
    to, barriers = _addresses(body, "to", destination, "shared"), _addresses(body, "barriers", barrier, "shared")
    arguments = (f"ptr {to}", f"ptr {barriers}", f"i32 {size}", f"i32 {int(instruction.opcode == 'red')}")
    status = call_accessor(body, "cupola_bulk_signal", "i32", site_for(body, instruction), *arguments)
    body.control.fault_if(body.builder.emit(f"icmp ne i32 {status}, 0"))
