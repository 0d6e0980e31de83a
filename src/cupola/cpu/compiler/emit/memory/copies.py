"""Asynchronous copies to shared memory (PTX ISA, "cp.async"), done at once: waiting for them is then no work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast

from . import bulk, mbarriers
from .accessors import call_accessor
from .addresses import address_of
from .bounds import Access
from .memory import lane_addresses, load_access, store_access

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_WORDS = {4: ("i32", 1), 8: ("i32", 2), 16: ("i32", 4)}


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why a copy cannot be run, or None."""
    modifiers = instruction.modifiers
    if "bulk" in modifiers:
        return bulk.problem_with(instruction)
    if len(instruction.operands) > 2:
        size = instruction.operands[2]
        sizes = (16,) if "cg" in modifiers else tuple(_WORDS)
        if not isinstance(size, ast.Immediate) or size.value not in sizes:
            return f"it copies {' or '.join(map(str, sizes))} bytes"
    return None


@lowers("cp", objection=problem_with)
def copy_async(body: Body, instruction: ast.Instruction) -> None:
    """``cp.async`` and its relatives."""
    modifiers = instruction.modifiers
    if "bulk" in modifiers:
        bulk.copy(body, instruction)
    elif "mbarrier" in modifiers:
        mbarriers.arrive_for_copies(body, instruction)
    elif not {"commit_group", "wait_group", "wait_all"}.isdisjoint(modifiers):
        return
    else:
        _copy(body, instruction)


def _copy(body: Body, instruction: ast.Instruction) -> None:
    """Copy 4, 8 or 16 bytes; what lies beyond the size of the source is not read, and becomes zero."""
    destination, source, size = instruction.operands[:3]
    assert isinstance(size, ast.Immediate) and isinstance(source, ast.Address)
    present = _present(body, instruction, size.value)
    if present is not None:
        _copy_some(body, instruction, present, size.value)
        return
    type, count = _WORDS[size.value]
    values = load_access(body, Access(instruction, "global", type, count, write=False, volatile=False), source)
    store_access(body, Access(instruction, "shared", type, count, write=True, volatile=False), destination, values)


def is_partial(instruction: ast.Instruction) -> bool:
    """Whether a copy has an operand that says how much of the source there is."""
    return len(instruction.operands) > 3 + ("L2::cache_hint" in instruction.modifiers)


def _present(body: Body, instruction: ast.Instruction, size: int) -> Value | None:
    """How many bytes the source has, of the operand that gives their number or says to ignore it; None: all."""
    if not is_partial(instruction):
        return None
    operand = instruction.operands[3]
    if isinstance(operand, ast.Immediate):
        return constant("i32", min(operand.value, size))
    register = operand.register if isinstance(operand, ast.Negated) else operand
    if isinstance(register, ast.Register) and body.registers.declared[register.name] == "pred":
        return body.builder.select(body.operand(operand, "i1"), constant("i32", 0), constant("i32", size))
    return body.operand(operand, "i32")


def _copy_some(body: Body, instruction: ast.Instruction, present: Value, size: int) -> None:
    destination, source = instruction.operands[:2]
    sites = []
    for space, write in (("shared", True), ("global", False)):
        number = body.new_site(instruction, space, size, write=write)
        sites.append(abi.pack_site(number, size, 4, space, write=write, contiguous=False))
    to = lane_addresses(body, address_of(body, destination, "shared"), "to")
    origin = lane_addresses(body, address_of(body, source, "global"), "from")
    sizes = body.spill("sizes", present)
    status = call_accessor(
        body, "cupola_copy_some", "i32", sites[0], f"i64 {sites[1]}", f"ptr {to}", f"ptr {origin}", f"ptr {sizes}"
    )
    body.control.fault_if(body.builder.emit(f"icmp ne i32 {status}, 0"))
