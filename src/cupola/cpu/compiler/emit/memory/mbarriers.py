"""mbarrier objects (PTX ISA, "mbarrier"): a helper does each operation, lane by lane (engine/instructions/mbarrier.c).

Their addresses, in whichever space they are given, become generic ones, which may be in another block of the cluster.
A thread that finds its phase incomplete gives way at the next opportunity, because the phase may be completed by a
thread of its own warp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast

from .accessors import call_accessor
from .addresses import address_of, space_of
from .memory import lane_addresses

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body


def shared_address(body: Body, operand: ast.Operand, space: str) -> Value:
    """The generic address of what is addressed as shared memory, of the cluster or the block, or generically."""
    return address_of(body, operand, "generic" if space == "generic" else "cluster")


def site_for(body: Body, instruction: ast.Instruction) -> int:
    """The description of a new site at which an mbarrier is accessed."""
    number = body.new_site(instruction, "generic", 8, write=True)
    return abi.pack_site(number, 8, 8, "generic", write=True, contiguous=False)


@lowers("mbarrier")
def mbarrier(body: Body, instruction: ast.Instruction) -> None:
    """All of ``mbarrier`` but ``pending_count``, which only looks at a state."""
    operation = instruction.modifiers[0]
    if operation == "pending_count":
        _pending_count(body, instruction)
    elif operation in ("test_wait", "try_wait"):
        _wait(body, instruction)
    elif operation in ("arrive", "arrive_drop"):
        _arrive(body, instruction)
    else:
        name = {"expect_tx": "expect", "complete_tx": "complete"}.get(operation, operation)
        addresses, *counts = instruction.operands
        buffers = [body.spill("counts", body.operand(count, "i32")) for count in counts]
        _call(body, instruction, f"cupola_mbarrier_{name}", addresses, *(f"ptr {buffer}" for buffer in buffers))


def _call(body: Body, instruction: ast.Instruction, helper: str, operand: ast.Operand, *arguments: str) -> str:
    """Call a helper for the object at an address; leaves the body when it has raised a fault."""
    addresses = lane_addresses(body, shared_address(body, operand, space_of(instruction)))
    status = call_accessor(body, helper, "i32", site_for(body, instruction), f"ptr {addresses}", *arguments)
    body.control.fault_if(body.builder.emit(f"icmp eq i32 {status}, 1"))
    return status


def _arrive(body: Body, instruction: ast.Instruction) -> None:
    builder, modifiers = body.builder, instruction.modifiers
    destination, address, *rest = instruction.operands
    number = body.operand(rest[0], "i32") if rest else constant("i32", 1)
    expects = "expect_tx" in modifiers
    counts = body.spill("counts", constant("i32", 1) if expects else number)
    expected = body.spill("bytes", number if expects else constant("i32", 0))
    states = body.scratch("states", 8)
    flags = abi.MBARRIER_DROP * (modifiers[0] == "arrive_drop") | abi.MBARRIER_NO_COMPLETE * ("noComplete" in modifiers)
    buffers = (f"ptr {counts}", f"ptr {expected}", f"ptr {states}", f"i32 {flags}")
    _call(body, instruction, "cupola_mbarrier_arrive", address, *buffers)
    state = builder.emit(f"load {builder.vector_type('i64')}, ptr {states}, align 16")
    body.write(destination, Value(state, "i64", body.width > 1))


def arrive_for_copies(body: Body, instruction: ast.Instruction) -> None:
    """``cp.async.mbarrier.arrive``: the copies are done, so the thread arrives now.

    Without ``.noinc`` one arrival more is pending for it, so that nothing changes.
    """
    counts = body.spill("counts", constant("i32", "noinc" in instruction.modifiers))
    expected, states = body.spill("bytes", constant("i32", 0)), body.scratch("states", 8)
    buffers = (f"ptr {counts}", f"ptr {expected}", f"ptr {states}", "i32 0")
    _call(body, instruction, "cupola_mbarrier_arrive", instruction.operands[0], *buffers)


def _wait(body: Body, instruction: ast.Instruction) -> None:
    """``test_wait`` and ``try_wait``; how long the latter may suspend the thread is up to the device."""
    builder, control = body.builder, body.control
    destination, address, phase = instruction.operands[:3]
    parity = "parity" in instruction.modifiers
    value = body.operand(phase, "i32" if parity else "i64")
    place = shared_address(body, address, space_of(instruction))
    together = not value.vector and not place.vector
    flags = abi.MBARRIER_PARITY * parity | abi.MBARRIER_TOGETHER * together
    phases = body.spill("phases", builder.cast("zext", value, "i64") if parity else value)
    results = body.scratch("results", 4)
    status = _call(
        body, instruction, "cupola_mbarrier_wait", address, f"ptr {phases}", f"ptr {results}", f"i32 {flags}"
    )
    control.give_way_if(builder.emit(f"icmp ne i32 {status}, 0"))
    if together:
        complete = Value(builder.emit(f"icmp eq i32 {status}, 0"), "i1")
    else:
        found = builder.emit(f"load {builder.vector_type('i32')}, ptr {results}, align 16")
        complete = builder.compare("icmp ne", Value(found, "i32", body.width > 1), constant("i32", 0))
    body.write(destination, complete)


def _pending_count(body: Body, instruction: ast.Instruction) -> None:
    builder = body.builder
    destination, state = instruction.operands
    low = builder.cast("trunc", body.operand(state, "i64"), "i32")
    body.write(destination, builder.binary("and", low, constant("i32", (1 << abi.MBARRIER_COUNT_BITS) - 1)))
