"""Where threads meet: barriers of the block and the cluster, operations of the threads of a warp named in a mask.

PTX ISA, "bar, barrier", "bar.warp.sync", "barrier.cluster" and "wgmma.wait_group"; the ``.sync`` forms of shfl, vote,
match, redux and elect wait in the same way "until all non-exited threads corresponding to membermask have executed" the
instruction.
Matrix instructions (PTX ISA 9.7.14) are for all threads of a warp. See control.py for what the two bodies do when
threads are missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast

from .gatherings import come
from .lowerings import lowers

if TYPE_CHECKING:
    from .body import Body


def is_meeting(block: Block) -> bool:
    return block.terminator is not None and block.terminator.description.suspends


def emit_meeting(body: Body, block: Block, instruction: ast.Instruction) -> None:
    """Write the instruction at which threads meet, and the end of its block."""
    does = instruction.description
    if does.waits == "cluster":
        _emit_cluster_wait(body, block, instruction)
        return
    if does.waits == "group":
        _emit_group_wait(body, block, instruction)
        return
    if does.waits == "block":
        _emit_barrier(body, block, instruction)
        return
    if body.independent and block.index in body.gatherings.by_block:
        come(body, block, instruction)
        return
    if body.control.divided():
        if does.lowered == "meeting" and body.independent:
            _park_in_warp(body, block, instruction)
            return
        _wait_for_members(body, block, instruction)
    if does.whole_warp:
        _require_whole_warp(body, instruction)
    for each in body.instruments:
        each.met(instruction)
    if does.lowered != "meeting":
        body.instruction(instruction)
    body.control.go(block.successors[0])


# The threads of a warp


def _members(body: Body, instruction: ast.Instruction) -> Value:
    if instruction.description.whole_warp:
        return body.control.everyone
    return body.operand(instruction.operands[-1], "i32")


def _wait_for_members(body: Body, block: Block, instruction: ast.Instruction) -> None:
    """Go on with the threads whose members have all come; the members are those that have not exited."""
    builder, control = body.builder, body.control
    mask = control.mask
    absent = builder.binary("and", control.live(), builder.binary("xor", mask, constant("i32", -1)))
    members = _members(body, instruction)
    missing = builder.compare("icmp ne", builder.binary("and", members, absent), constant("i32", 0))
    waiting = builder.binary("and", builder.ballot(missing), mask)
    if members.vector:
        waiting = _unless_masks_differ(body, members, waiting)
    go_on = builder.new_label("together")
    if not body.independent:
        anybody = builder.emit(f"icmp ne i32 {waiting.ir}, 0")
        give_up = builder.new_label("apart")
        builder.line(f"br i1 {anybody}, label %{give_up}, label %{go_on}, !prof !2")
        builder.label(give_up)
        control.suspend_everything(abi.INDEPENDENT, control.meeting_index(block), mask)
        builder.label(go_on)
        return
    index = control.meeting_index(block)
    builder.line(f"store i32 {waiting.ir}, ptr {control.frame_mask(index)}")
    builder.line(f"store i32 {waiting.ir}, ptr {control.waiting_mask(index)}")
    complete = builder.binary("xor", mask, waiting)
    nobody = builder.emit(f"icmp eq i32 {complete.ir}, 0")
    wait = builder.new_label("wait")
    builder.line(f"br i1 {nobody}, label %{wait}, label %{go_on}")
    builder.label(wait)
    site = constant("i32", body.new_site(instruction))
    body.store_field("site", site)
    control.dispatch_from(index + 1)
    builder.label(go_on)
    control.set_mask(complete)


def _unless_masks_differ(body: Body, members: Value, waiting: Value) -> Value:
    """Who waits, given who does if all threads name the same members; else members must have come with that very mask.

    One instruction can be several operations at a time, by threads at different depths of a recursion.
    """
    builder, control = body.builder, body.control
    other = builder.ballot(builder.compare("icmp ne", members, builder.lane(members, control.first_lane())))
    other = builder.binary("and", other, control.mask)
    slot = body.scratch("waiting", 4)
    builder.line(f"store i32 {waiting.ir}, ptr {slot}")
    several, decided = builder.new_label("several"), builder.new_label("decided")
    differ = builder.emit(f"icmp ne i32 {other.ir}, 0")
    builder.line(f"br i1 {differ}, label %{several}, label %{decided}, !prof !2")
    builder.label(several)
    builder.declarations["declare i32 @cupola_missing_members(ptr, i32, i32)"] = None
    named = body.spill("members", members)
    waits = builder.emit(
        f"call i32 @cupola_missing_members(ptr {named}, i32 {control.mask.ir}, i32 {control.live().ir})"
    )
    builder.line(f"store i32 {waits}, ptr {slot}")
    builder.line(f"br label %{decided}")
    builder.label(decided)
    return Value(builder.emit(f"load i32, ptr {slot}"), "i32")


def _require_whole_warp(body: Body, instruction: ast.Instruction) -> None:
    """End the kernel when threads of the warp have exited, or never were: what would happen then is undefined."""
    builder, control = body.builder, body.control
    if control.mask.ir == control.everyone.ir:
        return
    partial, whole = builder.new_label("partial"), builder.new_label("whole")
    test = builder.emit(f"icmp eq i32 {control.mask.ir}, {control.everyone.ir}")
    builder.line(f"br i1 {test}, label %{whole}, label %{partial}, !prof !1")
    builder.label(partial)
    builder.declarations["declare void @cupola_partial_warp(ptr, ptr, i32, i32)"] = None
    builder.line(
        f"call void @cupola_partial_warp(ptr %context, ptr %warp, i32 {control.mask.ir}, "
        f"i32 {body.new_site(instruction)})"
    )
    builder.line("br label %fault")
    builder.label(whole)


def _park_in_warp(body: Body, block: Block, instruction: ast.Instruction) -> None:
    """``bar.warp.sync`` in the independent body: threads may meet there from different instructions."""
    builder = body.builder
    members = body.spill("members", _members(body, instruction))
    builder.declarations["declare void @cupola_warp_park(ptr, ptr, i32, ptr, i32, i32)"] = None
    successor = body.control.entry_index(block.successors[0])
    site = body.new_site(instruction)
    builder.line(
        f"call void @cupola_warp_park(ptr %context, ptr %warp, i32 {body.control.mask.ir}, ptr {members}, "
        f"i32 {successor}, i32 {site})"
    )
    body.control.dispatch_from(0)


# Barriers of the block


def _barrier_operands(body: Body, instruction: ast.Instruction) -> tuple[Value, Value, Value | None]:
    """Number, thread count (0: all), and predicate of ``bar.red``."""
    operands = list(instruction.operands)
    predicate = None
    if "red" in instruction.modifiers:
        predicate = body.operand(operands.pop(), "i1")
        operands = operands[1:]
    number = body.operand(operands[0], "i32")
    count = body.operand(operands[1], "i32") if len(operands) > 1 else constant("i32", 0)
    return number, count, predicate


def _emit_barrier(body: Body, block: Block, instruction: ast.Instruction) -> None:
    if body.independent:
        _park_at_barrier(body, block, instruction)
        return
    builder, control = body.builder, body.control
    number, count, predicate = _barrier_operands(body, instruction)
    apart: list[str] = []
    if control.divided():
        apart.append(_somebody_is_missing(body))
    scalars = [_agreed(body, value, apart) for value in (number, count)]
    _give_up_if(body, block, apart)
    everybody = scalars[0].integer == scalars[1].integer == 0 and predicate is None
    if not everybody:
        body.store_field("barrier", scalars[0])
        body.store_field("expected", scalars[1])
        body.store_field("votes", builder.ballot(predicate) if predicate is not None else constant("i32", 0))
    _return_and_resume(body, block, instruction, abi.SYNC if everybody else abi.BARRIER)
    if predicate is not None:
        body.write(instruction.operands[0], _barrier_result(body, instruction))
    control.resumed(block.successors[0])


def _somebody_is_missing(body: Body) -> str:
    """The i1 that says that not all live threads of the unit are here."""
    return body.builder.emit(f"icmp ne i32 {body.control.mask.ir}, {body.control.live().ir}")


def _give_up_if(body: Body, block: Block, apart: list[str]) -> None:
    """Go on in the independent body when any of the conditions holds."""
    if not apart:
        return
    builder, control = body.builder, body.control
    here, together = builder.new_label("apart"), builder.new_label("together")
    condition = apart[0]
    for more in apart[1:]:
        condition = builder.emit(f"or i1 {condition}, {more}")
    builder.line(f"br i1 {condition}, label %{here}, label %{together}, !prof !2")
    builder.label(here)
    control.suspend_everything(abi.INDEPENDENT, control.meeting_index(block), control.mask)
    builder.label(together)


def _return_and_resume(body: Body, block: Block, instruction: ast.Instruction, kind: int) -> None:
    """Return with all live threads of the unit waiting; then go on with them."""
    builder, control = body.builder, body.control
    code, label = control.new_resume_point(kind, body.new_site(instruction))
    if not control.always_full:
        body.store_field("mask", control.live())
    live = body.analysis.live_in(block.successors[0])
    body.registers.save(body.analysis.to_save(block))
    builder.line(f"ret i32 {code}")
    builder.label(label)
    body.registers.restore(live)
    body.registers.begin_block()
    control.set_mask(control.load("live") if body.width > 1 else control.everyone)


def _agreed(body: Body, value: Value, apart: list[str]) -> Value:
    """The one value that all lanes have, with a test for lanes that have another."""
    if not value.vector:
        return value
    builder, mask = body.builder, body.control.mask
    scalar = builder.lane(value, body.control.first_lane())
    other = builder.ballot(builder.compare("icmp ne", value, scalar))
    apart.append(builder.emit(f"icmp ne i32 {builder.binary('and', other, mask).ir}, 0"))
    return scalar


def _barrier_result(body: Body, instruction: ast.Instruction) -> Value:
    builder = body.builder
    agreed = body.load_field(builder, "%warp", abi.WARP["agreed"], "i32")
    if "popc" in instruction.modifiers:
        return agreed
    if "or" in instruction.modifiers:
        return builder.compare("icmp ne", agreed, constant("i32", 0))
    voters = body.load_field(builder, "%warp", abi.WARP["voters"], "i32")
    return builder.compare("icmp eq", agreed, voters)


def _park_at_barrier(body: Body, block: Block, instruction: ast.Instruction) -> None:
    builder, control = body.builder, body.control
    number, count, predicate = _barrier_operands(body, instruction)
    votes = builder.ballot(predicate) if predicate is not None else constant("i32", 0)
    kind, slot = abi.RESULT_NONE, 0
    if predicate is not None:
        destination = instruction.operands[0]
        home = body.registers.homes.get(destination.name) if isinstance(destination, ast.Register) else None
        if home is not None:
            popc = "popc" in instruction.modifiers
            any_all = abi.RESULT_ANY if "or" in instruction.modifiers else abi.RESULT_ALL
            kind, slot = abi.RESULT_COUNT if popc else any_all, home.slot
    builder.declarations["declare i32 @cupola_barrier_park(ptr, ptr, i32, ptr, ptr, i32, i32, i32, i32, i32)"] = None
    numbers, counts = body.spill("numbers", number), body.spill("counts", count)
    status = builder.emit(
        f"call i32 @cupola_barrier_park(ptr %context, ptr %warp, i32 {control.mask.ir}, ptr {numbers}, "
        f"ptr {counts}, i32 {votes.ir}, i32 {control.entry_index(block.successors[0])}, i32 {kind}, i32 {slot}, "
        f"i32 {body.new_site(instruction)})"
    )
    control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
    control.dispatch_from(0)


@lowers("bar", "barrier")
def arrive(body: Body, instruction: ast.Instruction) -> None:
    """``bar.arrive`` and ``barrier.cluster.arrive``: count the threads, and go on."""
    builder, control = body.builder, body.control
    if "cluster" in instruction.modifiers:
        builder.declarations["declare i32 @cupola_cluster_arrive(ptr, ptr, i32, i32)"] = None
        status = builder.emit(
            f"call i32 @cupola_cluster_arrive(ptr %context, ptr %warp, i32 {control.lanes().ir}, "
            f"i32 {body.new_site(instruction)})"
        )
        control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
        return
    number, count, _ = _barrier_operands(body, instruction)
    if not body.independent and body.width > 1:
        body.store_field("mask", control.live())
    builder.declarations["declare i32 @cupola_barrier_arrive(ptr, ptr, i32, ptr, ptr, i32)"] = None
    numbers, counts = body.spill("numbers", number), body.spill("counts", count)
    status = builder.emit(
        f"call i32 @cupola_barrier_arrive(ptr %context, ptr %warp, i32 {control.lanes().ir}, ptr {numbers}, "
        f"ptr {counts}, i32 {body.new_site(instruction)})"
    )
    control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))


# The four warps of a warpgroup


def _emit_group_wait(body: Body, block: Block, instruction: ast.Instruction) -> None:
    """``wgmma.wait_group``: complete are products that all four warps have executed (engine/instructions/wgmma.c)."""
    builder, control = body.builder, body.control
    if not body.independent:
        _give_up_if(body, block, [_somebody_is_missing(body)] if control.divided() else [])
        _return_and_resume(body, block, instruction, abi.WARPGROUP)
        control.resumed(block.successors[0])
        return
    builder.declarations["declare i32 @cupola_warpgroup_park(ptr, ptr, i32, i32, i32)"] = None
    status = builder.emit(
        f"call i32 @cupola_warpgroup_park(ptr %context, ptr %warp, i32 {control.mask.ir}, "
        f"i32 {control.entry_index(block.successors[0])}, i32 {body.new_site(instruction)})"
    )
    control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
    control.dispatch_from(0)


# The barrier of the cluster


def _emit_cluster_wait(body: Body, block: Block, instruction: ast.Instruction) -> None:
    """``barrier.cluster.wait``. Threads that need not wait go on at once."""
    builder, control = body.builder, body.control
    if not body.independent:
        _give_up_if(body, block, [_somebody_is_missing(body)] if control.divided() else [])
        _return_and_resume(body, block, instruction, abi.CLUSTER)
        control.resumed(block.successors[0])
        return
    successor = control.entry_index(block.successors[0])
    builder.declarations["declare i32 @cupola_cluster_park(ptr, ptr, i32, i32, i32)"] = None
    free = builder.emit(
        f"call i32 @cupola_cluster_park(ptr %context, ptr %warp, i32 {control.mask.ir}, i32 {successor}, "
        f"i32 {body.new_site(instruction)})"
    )
    control.add_threads(successor, Value(free, "i32"))
    control.dispatch_from(0)
