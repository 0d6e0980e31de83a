"""Calls of functions that are parts of the kernel, and the stack of a thread (see `passes.join_functions`).

``.enter``, ``.leave`` and PTX's own stack operations (PTX ISA, "alloca", "stacksave", "stackrestore") are left to
helpers in engine/schedule/stack.c, which keep for each thread where its frame begins and where its stack ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.threads.layout import code_address
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast

from .lowerings import lowers

if TYPE_CHECKING:
    from .body import Body


def end_call(body: Body, block: Block, call: ast.Instruction) -> None:
    """End a block with ``.call``."""
    builder, control = body.builder, body.control
    target = call.operands[0]
    if isinstance(target, ast.LabelRef):
        control.go(block.successors[0])
        return
    pointer = body.operand(target, "i64")
    base = body.layout.code_base
    ways = [(code_address(base, number), part) for number, part in zip(block.cases, block.successors, strict=True)]
    if not pointer.vector:
        control.switch(pointer, ways, lambda: _fail(body, call, pointer, control.mask))
        return
    rest = control.mask
    moves: list[tuple[Block | None, Value]] = []
    for address, part in ways:
        here = builder.ballot(builder.compare("icmp eq", pointer, constant("i64", address)))
        moves.append((part, builder.binary("and", rest, here)))
        rest = builder.binary("xor", rest, moves[-1][1])
    _fail_if_any(body, call, pointer, rest)
    control.part(moves)


def end_return(body: Body, block: Block, end: ast.Instruction) -> None:
    """End a block with ``.return``: threads go back to where they were called."""
    builder, control = body.builder, body.control
    site = body.operand(end.operands[0], "i32")
    ways = list(zip(block.cases, block.successors, strict=True))
    if not control.divided():  # all live threads run the function, so they came by one call
        site = builder.lane(site, control.first_lane())
    if not site.vector:
        control.switch(site, ways, lambda: _fail(body, end, site, control.mask))
        return
    rest = control.mask
    moves: list[tuple[Block | None, Value]] = []
    for number, back in ways:
        here = builder.ballot(builder.compare("icmp eq", site, constant("i32", number)))
        moves.append((back, builder.binary("and", rest, here)))
        rest = builder.binary("xor", rest, moves[-1][1])
    _fail_if_any(body, end, site, rest)
    control.part(moves)


def _fail_if_any(body: Body, instruction: ast.Instruction, target: Value, mask: Value) -> None:
    """Leave the body when threads of a mask want to go where no code is."""
    builder = body.builder
    lost, fine = builder.new_label("lost"), builder.new_label("known")
    anybody = builder.emit(f"icmp ne i32 {mask.ir}, 0")
    builder.line(f"br i1 {anybody}, label %{lost}, label %{fine}, !prof !2")
    builder.label(lost)
    _fail(body, instruction, target, mask)
    builder.label(fine)


def _fail(body: Body, instruction: ast.Instruction, target: Value, mask: Value) -> None:
    """Raise the fault for a call or a return to an address where no function is."""
    builder = body.builder
    name = "cupola_bad_call" if instruction.opcode == ".call" else "cupola_bad_return"
    addresses = body.spill("addresses", builder.cast("zext", target, "i64") if target.type != "i64" else target)
    builder.declarations[f"declare void @{name}(ptr, ptr, i32, ptr, i32)"] = None
    builder.line(
        f"call void @{name}(ptr %context, ptr %warp, i32 {mask.ir}, ptr {addresses}, i32 {body.new_site(instruction)})"
    )
    builder.line("br label %fault")


@lowers(".enter")
def enter(body: Body, instruction: ast.Instruction) -> None:
    """``.enter``."""
    builder = body.builder
    number, size = instruction.operands
    assert isinstance(size, ast.Immediate)
    numbers = body.spill("numbers", body.operand(number, "i32"))
    builder.declarations["declare i32 @cupola_enter(ptr, ptr, i32, ptr, i32, i32)"] = None
    status = builder.emit(
        f"call i32 @cupola_enter(ptr %context, ptr %warp, i32 {body.control.lanes().ir}, ptr {numbers}, "
        f"i32 {size.value}, i32 {body.new_site(instruction)})"
    )
    body.control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))


@lowers(".leave")
def leave(body: Body, instruction: ast.Instruction) -> None:
    """``.leave``."""
    builder = body.builder
    numbers = body.scratch("numbers", 4)
    builder.declarations["declare void @cupola_leave(ptr, ptr, i32, ptr)"] = None
    builder.line(f"call void @cupola_leave(ptr %context, ptr %warp, i32 {body.control.lanes().ir}, ptr {numbers})")
    body.write(instruction.operands[0], _lanes(body, numbers, "i32"))


@lowers(".frame")
def frame(body: Body, instruction: ast.Instruction) -> None:
    """``.frame``."""
    body.write(instruction.operands[0], _lanes(body, body.warp_field("frames", "ptr").ir, "i32"))


def _lanes(body: Body, pointer: str, type: str) -> Value:
    builder = body.builder
    vector = builder.vector_type(type)
    return Value(builder.emit(f"load {vector}, ptr {pointer}, align 4"), type, body.width > 1)


@lowers("alloca")
def allocate(body: Body, instruction: ast.Instruction) -> None:
    """``alloca``: more room at the end of the thread's stack, until its function returns."""
    builder = body.builder
    destination, size, *alignment = instruction.operands
    least = alignment[0].value if alignment and isinstance(alignment[0], ast.Immediate) else 8
    type = f"i{instruction.modifiers[-1][1:]}"
    sizes = body.spill("addresses", builder.cast("zext", body.operand(size, type), "i64"))
    results = body.scratch("numbers", 4)
    builder.declarations["declare i32 @cupola_alloca(ptr, ptr, i32, ptr, i32, ptr, i32)"] = None
    status = builder.emit(
        f"call i32 @cupola_alloca(ptr %context, ptr %warp, i32 {body.control.lanes().ir}, ptr {sizes}, "
        f"i32 {least}, ptr {results}, i32 {body.new_site(instruction)})"
    )
    body.control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
    body.write(destination, builder.cast("zext", _lanes(body, results, "i32"), type))


def _stack_ends(body: Body) -> str:
    """Where the ends of the threads' stacks are kept: behind the places of their frames."""
    frames = body.warp_field("frames", "ptr").ir
    return body.builder.emit(f"getelementptr i32, ptr {frames}, i32 {body.width}")


@lowers("stacksave")
def save_stack(body: Body, instruction: ast.Instruction) -> None:
    """``stacksave``."""
    type = f"i{instruction.modifiers[-1][1:]}"
    value = body.builder.cast("zext", _lanes(body, _stack_ends(body), "i32"), type)
    body.write(instruction.operands[0], value)


@lowers("stackrestore")
def restore_stack(body: Body, instruction: ast.Instruction) -> None:
    """``stackrestore``."""
    builder = body.builder
    value = builder.extend(
        body.operand(instruction.operands[0], f"i{instruction.modifiers[-1][1:]}"), "i32", is_signed=False
    )
    pointer = _stack_ends(body)
    lanes = body.control.active()
    if lanes.ir != "true":
        value = builder.select(lanes, value, _lanes(body, pointer, "i32"))
    builder.line(f"store {builder.typed(builder.splat(value))}, ptr {pointer}, align 4")
