"""Atomic operations (PTX ISA, "atom", "red"), lane by lane, in ascending order.

A helper does them. Only the common ones in shared memory, which belongs to one thread of the host, are made of plain
instructions, in a function of the module: if all lanes run, and one vector comparison says that all are inside.

A vector of elements is so many atomic operations, as the ISA has it ("each of the individual scalar operations").
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.instructions.registry import LLVM_TYPE
from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.ptx import ast

from .accessors import call_accessor, fault_unless_zero
from .addresses import address_of
from .bounds import Access, site_of
from .gathers import can_gather, check_lanes
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


_PLAIN = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exch": ""}
"""What the machine code does itself in shared memory, on integers: the instruction of LLVM."""
_PLAIN_TYPES = frozenset(f"{kind}{bits}" for kind in "bus" for bits in (32, 64))


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
        if not vector and _is_plain(body, instruction, access):
            is_read = isinstance(destination, ast.Register) and destination.name in body.read_registers
            result = _call_plain(body, access, operation, helper, at, value, wanted=is_read)
            if result is None:
                return
            results.append(result)
        else:
            results.append(_call(body, checked, helper, at, value, compare))
    for target, value in zip(targets if vector else (destination,), results, strict=True):
        body.write(target, value, signed=name[0] == "s")


def _is_plain(body: Body, instruction: ast.Instruction, access: Access) -> bool:
    """Whether the machine code does an operation itself."""
    return (
        access.space == "shared"
        and body.width > 1
        and _type(instruction) in _PLAIN_TYPES
        and _operation(instruction) in _PLAIN
        and can_gather(replace(access, write=False, volatile=False))
    )


def _call_plain(
    body: Body, access: Access, operation: str, helper: str, address: Value, value: Value, *, wanted: bool
) -> Value | None:
    """Call the function that does it; what was in memory before, if that is wanted."""
    builder = body.builder
    _, packed = site_of(body, access, row=False)
    address = builder.splat(address)
    name = f"cupola.{helper}.{'varying' if value.vector else 'same'}{'.old' * wanted}"
    result = f"{{ {builder.vector_type(value.type)}, i32 }}" if wanted else "i32"
    typed = f"{builder.typed(address)}, {builder.typed(value)}"
    if name not in builder.functions:
        inner = Builder(builder.width, declarations=builder.declarations)
        operand = Value("%value", value.type, value.vector)
        _write_plain(inner, access, operation, helper, Value("%lanes", address.type, True), operand, wanted=wanted)
        text = [
            f"define internal {result} @{name}(ptr %context, ptr %warp, ptr %shared, ptr %sites, i64 %packed, "
            f"i32 %mask, {builder.type_of(address)} %lanes, {builder.type_of(value)} %value) noinline nounwind {{"
        ]
        builder.functions[name] = "\n".join([*text, "entry:", *inner.allocas, *inner.lines, "}"])
    status = builder.emit(
        f"call {result} @{name}(ptr %context, ptr %warp, ptr %shared, ptr %sites, i64 {packed}, "
        f"i32 {body.control.lanes().ir}, {typed})"
    )
    if not wanted:
        fault_unless_zero(body, status)
        return None
    fault_unless_zero(body, builder.emit(f"extractvalue {result} {status}, 1"))
    return Value(builder.emit(f"extractvalue {result} {status}, 0"), value.type, True)


def _write_plain(
    b: Builder, access: Access, operation: str, helper: str, address: Value, operand: Value, *, wanted: bool
) -> None:
    address = b.freeze(address)  # lanes that do not run may have none
    mask = Value("%mask", "i32")
    lanes = check_lanes(b, access, address, mask, "")
    everyone = b.compare("icmp eq", mask, constant("i32", (1 << b.width) - 1)).ir
    element, vector = operand.type, b.vector_type(operand.type)
    operands, results = b.alloca(vector), b.alloca(vector)
    places = b.alloca(b.vector_type(address.type))
    b.line(f"store {b.typed(b.splat(operand))}, ptr {operands}, align 64")
    b.line(f"br i1 {b.both(lanes.inside, everyone)}, label %inside, label %careful, !prof !1")
    b.label("inside")
    b.line(f"store {b.typed(address)}, ptr {places}, align 64")
    for lane in range(b.width):
        # From memory, since taking a vector apart costs more; volatile, lest the optimizer does that after all.
        at = b.emit(f"getelementptr {address.type}, ptr {places}, i64 {lane}")
        distance = b.emit(f"load volatile {address.type}, ptr {at}")
        far = b.emit(f"zext {address.type} {distance} to i64")
        place = b.emit(f"getelementptr i8, ptr %shared, i64 {far}")
        value = operand
        if operand.vector:
            at = b.emit(f"getelementptr {element}, ptr {operands}, i64 {lane}")
            value = Value(b.emit(f"load volatile {element}, ptr {at}"), element)
        old = Value(b.emit(f"load {element}, ptr {place}, align {access.size}"), element)
        if wanted:
            b.line(f"store {b.typed(old)}, ptr {b.emit(f'getelementptr {element}, ptr {results}, i64 {lane}')}")
        new = b.binary(_PLAIN[operation], old, value) if _PLAIN[operation] else value
        b.line(f"store {b.typed(new)}, ptr {place}, align {access.size}")
    b.line("br label %done")
    b.label("careful")
    addresses = b.alloca(f"[{8 * b.width} x i8]")
    b.line(f"store {b.typed(b.cast('zext', address, 'i64'))}, ptr {addresses}, align 64")
    b.declarations[f"declare i32 @{helper}(ptr, ptr, ptr, ptr, i64, i32, ptr, ptr, ptr, ptr)"] = None
    status = b.emit(
        f"call i32 @{helper}(ptr %context, ptr %warp, ptr %shared, ptr %sites, i64 %packed, i32 %mask, "
        f"ptr {addresses}, ptr {operands}, ptr null, ptr {results})"
    )
    b.line("br label %done")
    b.label("done")
    status = b.emit(f"phi i32 [ 0, %inside ], [ {status}, %careful ]")
    if not wanted:
        b.line(f"ret i32 {status}")
        return
    record = f"{{ {vector}, i32 }}"
    old_lanes = b.emit(f"load {vector}, ptr {results}, align 64")
    first = b.emit(f"insertvalue {record} poison, {vector} {old_lanes}, 0")
    b.line(f"ret {record} {b.emit(f'insertvalue {record} {first}, i32 {status}, 1')}")


def element_bytes(instruction: ast.Instruction) -> int:
    """Bytes of one element."""
    return BITS[LLVM_TYPE[_type(instruction)]] // 8


def helper_name(instruction: ast.Instruction, kind: str) -> str:
    """The helper that does the operation on elements: ``"shared"`` on offsets, ``"atomic"`` on generic addresses."""
    name = helper_of(_operation(instruction), _type(instruction), kind)
    return f"{name}_subnormal" if "noftz" in instruction.modifiers and name.endswith("add_f32") else name


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
