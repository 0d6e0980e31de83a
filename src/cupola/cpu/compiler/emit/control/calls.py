"""Calls that remain after inlining, traps, and instructions that only matter to real hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects.device_calls import ASKED, FUNCTIONS, asked
from cupola.cpu.compiler.ptx import ast

from .lowerings import lowers

if TYPE_CHECKING:
    from .body import Body


def called_function(instruction: ast.Instruction) -> str | None:
    """The name of the function that a call calls; None when it is indirect."""
    callee = instruction.operands[1]
    return callee.name if isinstance(callee, ast.Symbol) else None


def _print(body: Body, instruction: ast.Instruction, arguments: ast.ArgumentList) -> None:
    """``vprintf(format, arguments)``."""
    builder, control = body.builder, body.control
    format, values = (
        body.spill(name, body.operand(argument, "i64"))
        for name, argument in zip(("message", "arguments"), arguments.items, strict=True)
    )
    results = body.scratch("results", 4)
    builder.declarations["declare i32 @cupola_vprintf(ptr, ptr, i32, ptr, ptr, ptr, i32)"] = None
    status = builder.emit(
        f"call i32 @cupola_vprintf(ptr %context, ptr %warp, i32 {control.lanes().ir}, ptr {format}, ptr {values}, "
        f"ptr {results}, i32 {body.new_site(instruction)})"
    )
    control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
    _return(body, instruction, results, "i32")


def _return(body: Body, instruction: ast.Instruction, results: str, type: str) -> None:
    """Write the result of a call from a buffer."""
    returns = instruction.operands[0]
    if isinstance(returns, ast.ArgumentList) and returns.items:
        value = body.builder.emit(f"load {body.builder.vector_type(type)}, ptr {results}, align 4")
        body.write(returns.items[0], Value(value, type, body.width > 1))


def _allocate(body: Body, instruction: ast.Instruction, arguments: ast.ArgumentList) -> None:
    """``malloc(size)``."""
    sizes, results = body.spill("sizes", body.operand(arguments.items[0], "i64")), body.scratch("pointers", 8)
    body.builder.declarations["declare void @cupola_malloc(ptr, i32, ptr, ptr)"] = None
    body.builder.line(
        f"call void @cupola_malloc(ptr %context, i32 {body.control.lanes().ir}, ptr {sizes}, ptr {results})"
    )
    _return(body, instruction, results, "i64")


def _free(body: Body, instruction: ast.Instruction, arguments: ast.ArgumentList) -> None:
    """``free(pointer)``."""
    pointers = body.spill("pointers", body.operand(arguments.items[0], "i64"))
    body.builder.declarations["declare i32 @cupola_free(ptr, ptr, i32, ptr, i32)"] = None
    status = body.builder.emit(
        f"call i32 @cupola_free(ptr %context, ptr %warp, i32 {body.control.lanes().ir}, ptr {pointers}, "
        f"i32 {body.new_site(instruction)})"
    )
    body.control.fault_if(body.builder.emit(f"icmp ne i32 {status}, 0"))


def _fail(body: Body, instruction: ast.Instruction, arguments: ast.ArgumentList) -> None:
    """``__assertfail(message, file, line, function, character size)``, which ends the kernel."""
    builder = body.builder
    message, file, line, function = (
        body.spill(name, body.operand(argument, type))
        for name, argument, type in zip(
            ("message", "file", "line", "function"), arguments.items, ("i64", "i64", "i32", "i64"), strict=False
        )
    )
    builder.declarations["declare void @cupola_assertfail(ptr, ptr, i32, ptr, ptr, ptr, ptr, i32)"] = None
    builder.line(
        f"call void @cupola_assertfail(ptr %context, ptr %warp, i32 {body.control.lanes().ir}, ptr {message}, "
        f"ptr {file}, ptr {line}, ptr {function}, i32 {body.new_site(instruction)})"
    )
    body.control.fault()


def _ask(body: Body, instruction: ast.Instruction, arguments: ast.ArgumentList) -> None:
    """A function of the device runtime that the driver carries out: words of 64 bits in, one out."""
    builder = body.builder
    results = body.scratch("answers", 8)
    given = body.scratch("asked", 8 * max(1, len(arguments.items)))
    for number, argument in enumerate(arguments.items):
        value = builder.splat(body.operand(argument, "i64"))
        place = builder.emit(f"getelementptr i64, ptr {given}, i32 {number * body.width}")
        builder.line(f"store {builder.typed(value)}, ptr {place}, align 8")
    builder.declarations["declare i32 @cupola_ask(ptr, ptr, i32, i32, ptr, ptr, i32)"] = None
    function = ASKED[called_function(instruction) or ""]
    status = builder.emit(
        f"call i32 @cupola_ask(ptr %context, ptr %warp, i32 {body.control.lanes().ir}, i32 {function}, ptr {given}, "
        f"ptr {results}, i32 {body.new_site(instruction)})"
    )
    body.control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
    _return(body, instruction, results, "i64")


_ARGUMENTS = {"__assertfail": (4, 5), "vprintf": (2,), "malloc": (1,), "free": (1,)}
_ARGUMENTS |= {asked(name): (function.words,) for name, function in FUNCTIONS.items()}


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why a call of a function without a body cannot be run, or None when it can."""
    name = called_function(instruction)
    if name not in CALLABLE:
        return f"there is no function '{name}'"
    arguments = instruction.operands[2]
    count = len(arguments.items) if isinstance(arguments, ast.ArgumentList) else 0
    return None if count in _ARGUMENTS[name] else f"'{name}' does not take {count} arguments"


CALLABLE: dict[str, Callable[[Body, ast.Instruction, ast.ArgumentList], None]] = {
    "__assertfail": _fail,
    "vprintf": _print,
    "malloc": _allocate,
    "free": _free,
    **dict.fromkeys(ASKED, _ask),
}
"""External functions that the CPU device provides."""


@lowers("call", objection=problem_with)
def call(body: Body, instruction: ast.Instruction) -> None:
    """A call of one of the functions that the CPU device provides."""
    arguments = instruction.operands[2]
    assert isinstance(arguments, ast.ArgumentList)
    CALLABLE[called_function(instruction) or ""](body, instruction, arguments)


@lowers("trap", "brkpt")
def trap(body: Body, instruction: ast.Instruction) -> None:
    """``trap``; and ``brkpt``, unless there is a debugger, which stops there."""
    if instruction.opcode == "brkpt" and any(each.keeps_registers for each in body.instruments):
        return
    body.builder.declarations["declare void @cupola_trap(ptr, ptr, i32, i32)"] = None
    body.builder.line(
        f"call void @cupola_trap(ptr %context, ptr %warp, i32 {body.control.lanes().ir}, "
        f"i32 {body.new_site(instruction)})"
    )
    body.control.fault()


@lowers("membar", "fence")
def fence(body: Body, instruction: ast.Instruction) -> None:
    """``membar`` and ``fence``. A block runs on one thread, so within it only the compiler must keep the order."""
    if any(modifier in ("gl", "sys", "gpu", "cluster") for modifier in instruction.modifiers):
        body.builder.line("fence seq_cst")
    else:
        body.builder.line('fence syncscope("singlethread") seq_cst')


@lowers("nanosleep")
def nanosleep(body: Body, instruction: ast.Instruction) -> None:
    """``nanosleep``: give way at the next opportunity."""
    body.control.store("budget", constant("i32", 1))


@lowers("prefetch", "prefetchu", "applypriority", "discard", "pmevent", "griddepcontrol", "setmaxnreg")
def nothing(body: Body, instruction: ast.Instruction) -> None:
    """Hints and events."""


@lowers("createpolicy")
def create_policy(body: Body, instruction: ast.Instruction) -> None:
    """``createpolicy``: cache policies have no meaning here."""
    body.write(instruction.operands[0], constant("i64", 0))
