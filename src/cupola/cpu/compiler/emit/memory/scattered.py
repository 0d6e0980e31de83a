"""Accesses of lanes at any addresses.

Such an access takes many instructions, so it is a function of the module, one for each kind of access: kernels have
dozens of them, and a call is compiled in a tenth of the time. It has the processor gather or scatter (gathers.py), or
calls a helper. But what lanes have computed one by one may be neighboring places after all (what a loop counts up by
itself in each lane, for example); this is found out first, and one vector access does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

from . import runs
from .accessors import fault_unless_zero
from .bounds import Access
from .elements import buffer_bytes, load_elements, store_elements
from .gathers import can_gather, check_lanes, gather_elements, scatter_elements

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_PARAMETERS = "ptr %context, ptr %warp, ptr %shared, ptr %sites, i64 %packed, i32 %mask"
_PACKED = Value("%packed", "i64")
_MASK = Value("%mask", "i32")
_Write = Callable[[Builder, Access, str, Value, Sequence[Value]], None]


@dataclass(frozen=True, slots=True)
class Row:
    """A register whose lanes may be in a row: the address in lane 0, and the i1 that says that they are."""

    first: Value
    exact: str


def _rows(block: Block) -> dict[object, Row]:
    """The rows that have been found in a block."""
    return {}


def find_row(body: Body, access: Access, base: Value) -> Row | None:
    """Whether the lanes that run are in a row, as far as that can be: what was read from memory hardly ever is.

    It is asked once in a block for all accesses with the same register.
    """
    operand = access.instruction.operands[0 if access.write else 1]
    place = operand.base if isinstance(operand, ast.Address) else operand
    if access.space == "local" or (isinstance(place, ast.Register) and place.name in body.analysis.loaded):
        return None
    builder, mask = body.builder, body.control.lanes()
    key = base.ir, access.size, mask.ir
    row = body.of_block(_rows).get(key)
    if row is None:
        lanes = builder.freeze(builder.splat(base))  # lanes that do not run may have no address
        first = builder.lane(lanes, 0)
        steps = builder.per_lane(base.type, [lane * access.size for lane in range(body.width)])
        elsewhere = builder.ballot(
            builder.compare("icmp ne", lanes, builder.binary("add", builder.splat(first), steps))
        )
        missing = builder.binary("and", elsewhere, mask)
        row = Row(first, builder.compare("icmp eq", missing, constant("i32", 0)).ir)
        if not body.control.is_guarded:
            body.of_block(_rows)[key] = row
    return row


def gather(body: Body, access: Access, packed: int, address: Value) -> list[Value]:
    """Load the elements of each lane."""
    builder = body.builder
    type = builder.vector_type(access.type)
    result = f"{{ {f'{type}, ' * access.count}i32 }}"
    record = _call(body, "gather", access, result, packed, [address], _write_gather)
    fault_unless_zero(body, builder.emit(f"extractvalue {result} {record}, {access.count}"))
    return [
        Value(builder.emit(f"extractvalue {result} {record}, {index}"), access.type, True)
        for index in range(access.count)
    ]


def gather_run(body: Body, access: Access, packed: int, address: Value) -> tuple[list[Value], str]:
    """Load a run (runs.py) for each lane, and the i1 that says that all were inside."""
    builder, count = body.builder, runs.LENGTH
    result = f"{{ {f'{builder.vector_type(access.type)}, ' * count}i32 }}"
    record = _call(body, "run", access, result, packed, [address], _write_run)
    values = [builder.emit(f"extractvalue {result} {record}, {index}") for index in range(count + 1)]
    return [Value(ir, access.type, True) for ir in values[:-1]], builder.emit(f"icmp ne i32 {values[-1]}, 0")


def scatter(body: Body, access: Access, packed: int, address: Value, values: Sequence[Value]) -> None:
    """Store the elements of each lane."""
    status = _call(body, "scatter", access, "i32", packed, [address, *values], _write_scatter)
    fault_unless_zero(body, status)


def gather_all(body: Body, access: Access, packed: int, lowest: Value, offsets: str, count: int, out: str) -> str:
    """Load elements of each lane from several places: at ``lowest``, and at so many offsets from there.

    The vector with rank r of the offset d goes to ``out`` + d + r times its size. The result is not zero after a fault.
    """
    builder, lowest = body.builder, body.builder.splat(lowest)
    space = "shared" if access.space == "shared" else "global"
    name = f"cupola.gather_all.{space}.i{8 * access.size}.{lowest.type}"
    typed = builder.typed(lowest)
    if name not in builder.functions:
        inner = Builder(builder.width, declarations=builder.declarations)
        _write_gather_all(inner, replace(access, type=f"i{8 * access.size}"), Value("%lowest", lowest.type, True))
        text = [
            f"define internal i32 @{name}({_PARAMETERS}, {typed.rpartition(' ')[0]} %lowest, ptr %offsets, i32 %count, "
            "ptr %out) noinline nounwind {"
        ]
        builder.functions[name] = "\n".join([*text, "entry:", *inner.allocas, *inner.lines, "}"])
    return builder.emit(
        f"call i32 @{name}(ptr %context, ptr %warp, ptr %shared, ptr %sites, i64 {packed}, "
        f"i32 {body.control.lanes().ir}, {typed}, ptr {offsets}, i32 {count}, ptr {out})"
    )


def _write_gather_all(b: Builder, access: Access, lowest: Value) -> None:
    vector = b.vector_type(access.type)
    lowest = b.freeze(lowest)
    b.line("br label %next")
    b.label("next")
    b.line("%rank = phi i32 [ 0, %entry ], [ %following, %done ]")
    at = b.emit("getelementptr i32, ptr %offsets, i32 %rank")
    offset = Value(b.emit(f"load i32, ptr {at}"), "i32")
    address = b.binary("add", lowest, b.cast("zext", offset, lowest.type))
    rank = b.cast("zext", Value("%rank", "i32"), "i64")
    packed = b.binary("add", Value("%packed", "i64"), rank)
    start = b.emit(f"getelementptr i8, ptr %out, i32 {offset.ir}")
    place = b.emit(f"getelementptr {vector}, ptr {start}, i64 {rank.ir}")
    if can_gather(access):
        lanes = check_lanes(b, access, address, _MASK, _entry(b, packed))
        b.line(f"br i1 {lanes.inside}, label %inside, label %careful, !prof !1")
        b.label("inside")
        (elements,) = gather_elements(b, access, lanes)
        b.line(f"store {b.typed(elements)}, ptr {place}, align {access.size}")
        b.line("br label %done")
        b.label("careful")
    status = _call_helper(b, "cupola_load", address, place, packed)
    good = b.emit(f"icmp eq i32 {status}, 0")
    b.line(f"br i1 {good}, label %done, label %fault, !prof !1")
    b.label("done")
    b.line("%following = add i32 %rank, 1")
    more = b.emit("icmp ult i32 %following, %count")
    b.line(f"br i1 {more}, label %next, label %end")
    b.label("end")
    b.line("ret i32 0")
    b.label("fault")
    b.line("ret i32 1")


def _call(
    body: Body,
    verb: str,
    access: Access,
    result: str,
    packed: int,
    arguments: Sequence[Value],
    write: _Write,
) -> str:
    builder = body.builder
    arguments = [builder.splat(argument) for argument in arguments]
    space = access.space if access.space in ("shared", "local") else "global"
    strong = ".volatile" * access.volatile
    name = f"cupola.{verb}.{space}.{access.type}.{access.count}.{arguments[0].type}{strong}"
    if name not in builder.functions:
        inner = Builder(builder.width, declarations=builder.declarations)
        parameters = [Value(f"%a{index}", argument.type, True) for index, argument in enumerate(arguments)]
        typed = ", ".join(map(inner.typed, parameters))
        address = inner.freeze(parameters[0])  # lanes that do not run may have none
        write(inner, access, result, address, parameters[1:])
        text = [f"define internal {result} @{name}({_PARAMETERS}, {typed}) noinline nounwind {{"]
        builder.functions[name] = "\n".join([*text, "entry:", *inner.allocas, *inner.lines, "}"])
    return builder.emit(
        f"call {result} @{name}(ptr %context, ptr %warp, ptr %shared, ptr %sites, i64 {packed}, "
        f"i32 {body.control.lanes().ir}, {', '.join(map(builder.typed, arguments))})"
    )


def _write_gather(b: Builder, access: Access, result: str, address: Value, _: Sequence[Value]) -> None:
    if can_gather(access):
        lanes = check_lanes(b, access, address, _MASK, _entry(b))
        b.line(f"br i1 {lanes.inside}, label %inside, label %careful, !prof !1")
        b.label("inside")
        _return(b, result, gather_elements(b, access, lanes), "0")
        b.label("careful")
    buffer = b.alloca(f"[{buffer_bytes(b, access)} x i8]")
    status = _call_helper(b, "cupola_load", address, buffer)
    _return(b, result, load_elements(b, access, buffer), status)


def _write_run(b: Builder, access: Access, result: str, address: Value, _: Sequence[Value]) -> None:
    lanes = check_lanes(b, access, address, _MASK, _entry(b), run=runs.LENGTH)
    b.line(f"br i1 {lanes.inside}, label %inside, label %careful, !prof !1")
    b.label("inside")
    _return(b, result, runs.load_pieces(b, access.type, lanes), "1")
    b.label("careful")
    nothing = [Value("poison", access.type, True)] * runs.LENGTH
    _return(b, result, nothing, "0")


def _write_scatter(b: Builder, access: Access, result: str, address: Value, values: Sequence[Value]) -> None:
    if can_gather(access):
        lanes = check_lanes(b, access, address, _MASK, _entry(b))
        b.line(f"br i1 {lanes.inside}, label %inside, label %careful, !prof !1")
        b.label("inside")
        scatter_elements(b, access, lanes, values)
        _return(b, result, [], "0")
        b.label("careful")
    buffer = b.alloca(f"[{buffer_bytes(b, access)} x i8]")
    store_elements(b, access, buffer, values)
    _return(b, result, [], _call_helper(b, "cupola_store", address, buffer))


def _return(b: Builder, result: str, values: Sequence[Value], status: str) -> None:
    if not values:
        b.line(f"ret {result} {status}")
        return
    record = "poison"
    for index, value in enumerate(values):
        record = b.emit(f"insertvalue {result} {record}, {b.typed(value)}, {index}")
    b.line(f"ret {result} {b.emit(f'insertvalue {result} {record}, i32 {status}, {len(values)}')}")


def _call_helper(b: Builder, name: str, address: Value, elements: str, packed: Value = _PACKED) -> str:
    """Have a helper do it for each lane; what it returns."""
    addresses = b.alloca(f"[{8 * b.width} x i8]")
    b.line(f"store {b.typed(b.cast('zext', address, 'i64'))}, ptr {addresses}, align 64")
    b.declarations[f"declare i32 @{name}(ptr, ptr, ptr, ptr, i64, i32, ptr, ptr)"] = None
    site = _PARAMETERS.replace(_PACKED.ir, packed.ir)
    return b.emit(f"call i32 @{name}({site}, ptr {addresses}, ptr {elements})")


def _entry(b: Builder, packed: Value = _PACKED) -> str:
    """Pointer to the site's entry in the cache; nothing reads it in accesses of shared memory."""
    number = b.binary("and", packed, constant("i64", (1 << 32) - 1))
    return b.emit(f"getelementptr [{abi.SITE_CACHE_BYTES} x i8], ptr %sites, i64 {number.ir}")
