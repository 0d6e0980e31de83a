"""Loads and stores (PTX ISA, "ld", "ld.global.nc", "ldu", "st").

An address that is the same for all lanes gives one scalar access. Addresses that go up by the size of the access from
lane to lane, a row, give one vector access when none of them wraps; a store only when all lanes take part, a load
also when some do not, as long as all of the row may be read. Everything else goes to helpers: for the part of a
row that some lanes want, for lanes at regular distances, and for any addresses. The checks are in bounds.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.instructions import settle_nans
from cupola.cpu.compiler.emit.instructions.registry import LLVM_TYPE
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.objects.machine import stores_by_mask
from cupola.cpu.compiler.ptx import ast

from .accessors import call_accessor
from .addresses import base_of
from .array_elements import is_within_reach
from .bounds import Access, check, pointer_in_shared, site_of
from .elements import element_pointer, load_elements, load_row, store_elements, store_row
from .fetches import fetched
from .runs import Run, plan_runs
from .scattered import find_row, gather, gather_run, scatter
from .spans import Span, in_shared, load_span, span_fits, span_of, store_span

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_LARGEST = 16  # bytes
_LARGEST_GLOBAL = 32  # since compute capability 10.0


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why a load or store cannot be run, or None."""
    access = Access.of(instruction, write=False)
    if access.size > _LARGEST and (access.space, access.size) != ("global", _LARGEST_GLOBAL):
        return "accesses have up to 128 bits, and 256 bits in the state space '.global'"
    value = instruction.operands[1 if instruction.opcode == "st" else 0]
    given = len(value.items) if isinstance(value, ast.Vector) else 1
    return None if given == access.count else f"it is for {access.count} values, but names {given}"


@lowers("ld", "ldu", objection=problem_with)
def load(body: Body, instruction: ast.Instruction) -> None:
    """``ld``, ``ldu``."""
    access = Access.of(instruction, write=False)
    source = instruction.operands[1]
    assert isinstance(source, ast.Address)
    values = load_access(body, access, source)
    if "acquire" in instruction.modifiers:
        body.builder.line("fence acquire")
    write_loaded(body, instruction, values)


def write_loaded(body: Body, instruction: ast.Instruction, values: Sequence[Value]) -> None:
    """Write what a load has loaded to its registers."""
    destination = instruction.operands[0]
    signed = next(m for m in reversed(instruction.modifiers) if m in LLVM_TYPE)[0] == "s"
    items = destination.items if isinstance(destination, ast.Vector) else (destination,)
    for item, value in zip(items, values, strict=True):
        body.write(item, value, signed=signed)


@lowers("st", objection=problem_with)
def store(body: Body, instruction: ast.Instruction) -> None:
    """``st``."""
    access = Access.of(instruction, write=True)
    destination, source = instruction.operands[:2]
    items = source.items if isinstance(source, ast.Vector) else (source,)
    values = [_stored(body, item, access.type) for item in items]
    if "release" in instruction.modifiers:
        body.builder.line("fence release")
    store_access(body, access, destination, values)


def _stored(body: Body, item: ast.Operand, type: str) -> Value:
    """What is stored of a source: of a single thread, NaNs are a case of their own, for which nothing has to wait."""
    if body.width > 1 or type != "float":
        return body.operand(item, type)
    builder, value = body.builder, body.operand(item, type, raw_nans=True)
    if not value.raw_nan:
        return value
    before, rare, join = builder.new_label("number"), builder.new_label("nan"), builder.new_label("settled")
    builder.line(f"br label %{before}")
    builder.label(before)
    is_nan = builder.emit(f"fcmp uno {builder.typed(value)}, {value.ir}")
    builder.line(f"br i1 {is_nan}, label %{rare}, label %{join}, !prof !2")
    builder.label(rare)
    settled = settle_nans(builder, value)
    builder.line(f"br label %{join}")
    builder.label(join)
    return Value(builder.emit(f"phi {type} [ {value.ir}, %{before} ], [ {settled.ir}, %{rare} ]"), type)


def load_access(body: Body, access: Access, source: ast.Operand) -> list[Value]:
    """Load the elements of each lane."""
    if access.space == "param" and not access.volatile:
        place = _known_place(body, access, source)
        if place is not None:
            places = range(place, place + access.size, access.element)
            return [body.parameter(at, access.type, math.gcd(at, access.size)) for at in places]
    pointer = _known_pointer(body, access, source)
    if pointer is not None:
        return scalar_load(body, access, pointer)
    address, offset = base_of(body, source, access.space)
    if _is_known(address) and not _is_row(address, access):
        span = span_of(body, access, _moved(body, address, offset))
        if span is not None:
            return _span_load(body, access, _moved(body, address, offset), span)
    pointer = fetched(body, access, address)
    if pointer is not None:
        if not address.vector:
            return scalar_load(body, access, pointer)
        return [Value(row, access.type, True) for row in load_row(body.builder, access, pointer)]
    if _is_scattered(body, access, address):
        return _scattered_load(body, access, address, offset)
    address = _moved(body, address, offset)
    if body.width == 1 or (not address.vector and not _is_private(body, access)):
        return scalar_load(body, access, _checked_pointer(body, access, address))
    if _is_row(address, access):
        return _row_load(body, access, address)
    _, packed = site_of(body, access, row=False)
    out = _element_buffer(body, access)
    _call_line(body, "load", access, packed, address, out)
    return load_elements(body.builder, access, out)


def store_access(body: Body, access: Access, destination: ast.Operand, values: list[Value]) -> None:
    """Store the elements of each lane; where lanes store to one place, the highest lane's value stays."""
    pointer = _known_pointer(body, access, destination) if access.space == "shared" else None
    if pointer is not None:
        _scalar_store(body, access, pointer, [_last_lane(body, value) for value in values])
        return
    address, offset = base_of(body, destination, access.space)
    if _is_known(address) and not _is_row(address, access) and _takes_span(body, address):
        span = span_of(body, access, _moved(body, address, offset))
        if span is not None:
            return _span_store(body, access, _moved(body, address, offset), span, values)
    if _is_scattered(body, access, address):
        return _scattered_store(body, access, address, offset, values)
    address = _moved(body, address, offset)
    if body.width == 1 or (not address.vector and not _is_private(body, access)):
        values = [_last_lane(body, value) for value in values]
        _scalar_store(body, access, _checked_pointer(body, access, address), values)
    elif _is_row(address, access):
        _row_store(body, access, address, values)
    else:
        _, packed = site_of(body, access, row=False)
        _call_line(body, "store", access, packed, address, _spill_elements(body, access, values))


def _is_private(body: Body, access: Access) -> bool:
    """Whether one address may mean another place for each lane."""
    return access.space == "local" or (
        access.space == "generic" and (body.layout.local_bytes > 0 or body.layout.has_stack)
    )


def _is_scattered(body: Body, access: Access, address: Value) -> bool:
    """Whether nothing is known of how the addresses of the lanes lie to each other."""
    if access.space == "local":
        return body.width > 1
    return body.width > 1 and (address.affine is None if address.vector else _is_private(body, access))


def _is_known(address: Value) -> bool:
    """Whether it is known how the addresses of the lanes lie to each other."""
    return address.vector and (address.affine is not None or address.pattern is not None)


def _is_row(address: Value, access: Access) -> bool:
    return address.affine is not None and address.affine.stride == access.size


def _moved(body: Body, address: Value, offset: int) -> Value:
    return body.builder.binary("add", address, constant(address.type, offset)) if offset else address


def _last_lane(body: Body, value: Value) -> Value:
    if not value.vector:
        return value
    builder = body.builder
    builder.declarations["declare i32 @llvm.ctlz.i32(i32, i1)"] = None
    zeros = builder.emit(f"call i32 @llvm.ctlz.i32(i32 {body.control.lanes().ir}, i1 true)")
    return builder.lane(value, builder.binary("sub", constant("i32", 31), Value(zeros, "i32")))


# Pointers


def _pointer(body: Body, access: Access, address: Value) -> str:
    builder = body.builder
    if access.space == "local":
        local = body.warp_field("local", "ptr")
        return builder.emit(f"getelementptr i8, ptr {local.ir}, i32 {address.ir}")
    return builder.emit(f"inttoptr i64 {address.ir} to ptr")


def _known_place(body: Body, access: Access, source: ast.Operand) -> int | None:
    """Where an access by a symbol is in its space, when it is certainly inside that variable, and aligned."""
    if not isinstance(source, ast.Address) or not isinstance(source.base, ast.Symbol):
        return None
    place = body.layout.places[source.base.name]
    offset = source.base.offset + source.offset
    if place.space != access.space or not 0 <= offset <= place.size - access.size:
        return None
    return None if place.misalignment(offset, access.size) else place.offset + offset


def _known_pointer(body: Body, access: Access, source: ast.Operand) -> str | None:
    """The pointer of an access that needs no check: a parameter, or a variable at a constant offset."""
    place = _known_place(body, access, source)
    if place is None:
        return None
    assert isinstance(source, ast.Address) and isinstance(source.base, ast.Symbol)
    if access.space == "param":
        return body.builder.emit(f"getelementptr i8, ptr %params, i64 {place}")
    if access.space == "shared":
        return element_pointer(body.builder, "%shared", place)
    if access.space in ("global", "const"):
        address = body.builder.binary("add", body.symbol(source.base), constant("i64", source.offset))
        return _pointer(body, access, address)
    return None


def _checked_pointer(body: Body, access: Access, address: Value) -> str:
    """The pointer of a uniform access, after its check."""
    if access.space == "shared":
        return pointer_in_shared(body, access, address, row=False)
    builder = body.builder
    number, packed = site_of(body, access, row=False)
    quick = is_within_reach(body, access, number)
    fast, slow, join = builder.new_label("hit"), builder.new_label("miss"), builder.new_label("at")
    if quick is not None:
        usual = builder.new_label("usual")
        builder.line(f"br i1 {quick}, label %{fast}, label %{usual}, !prof !1")
        builder.label(usual)
    verdict = check(body, access, number, address, row=False)
    builder.line(f"br i1 {verdict}, label %{fast}, label %{slow}, !prof !1")
    builder.label(slow)
    found = call_accessor(body, "cupola_resolve", "ptr", packed, builder.typed(builder.cast("zext", address, "i64")))
    bad = builder.emit(f"icmp eq ptr {found}, null")
    builder.line(f"br i1 {bad}, label %fault, label %{join}, !prof !2")
    builder.label(fast)
    pointer = _pointer(body, access, address)
    builder.line(f"br label %{join}")
    builder.label(join)
    return builder.emit(f"phi ptr [ {pointer}, %{fast} ], [ {found}, %{slow} ]")


# Uniform accesses


def scalar_load(body: Body, access: Access, pointer: str) -> list[Value]:
    """Load the elements of a uniform access that has been checked."""
    builder, values = body.builder, []
    tail = ", !invariant.load !0" if access.space == "param" else ""
    for index in range(access.count):
        at = element_pointer(builder, pointer, index * access.element)
        align = access.size if index == 0 else access.element
        if access.volatile and access.count == 1 and access.element <= 8:
            bits = f"i{access.element * 8}"
            loaded = Value(builder.emit(f"load atomic volatile {bits}, ptr {at} monotonic, align {align}"), bits)
            values.append(builder.bitcast(loaded, access.type))
            continue
        volatile = "volatile " if access.volatile else ""
        values.append(Value(builder.emit(f"load {volatile}{access.type}, ptr {at}, align {align}{tail}"), access.type))
    return values


def _scalar_store(body: Body, access: Access, pointer: str, values: list[Value]) -> None:
    builder = body.builder
    for index, value in enumerate(values):
        at = element_pointer(builder, pointer, index * access.element)
        align = access.size if index == 0 else access.element
        if access.volatile and access.count == 1 and access.element <= 8:
            bits = builder.bitcast(value, f"i{access.element * 8}")
            builder.line(f"store atomic volatile {builder.typed(bits)}, ptr {at} monotonic, align {align}")
            continue
        volatile = "volatile " if access.volatile else ""
        builder.line(f"store {volatile}{builder.typed(value)}, ptr {at}, align {align}")


# Rows

_LIKELY = ", !prof !1"


def _row_test(body: Body, access: Access, site: int, address: Value) -> str:
    """The i1 that says that the lanes are on a line and all of the row is inside."""
    assert address.affine is not None
    verdict = check(body, access, site, _first_lane(address), row=True)
    return body.builder.both(verdict, address.affine.exact)


def _first_lane(address: Value) -> Value:
    """The address of lane 0 of a row."""
    assert address.affine is not None
    return Value(address.affine.base, address.type)


def _row_load(body: Body, access: Access, address: Value) -> list[Value]:
    builder, first = body.builder, _first_lane(address)
    if access.space == "shared":
        pointer = pointer_in_shared(body, access, first, row=True)
        return [Value(row, access.type, True) for row in load_row(builder, access, pointer)]
    number, packed = site_of(body, access, row=True)
    fast, slow, join = builder.new_label("row"), builder.new_label("part"), builder.new_label("loaded")
    test = _row_test(body, access, number, address)
    builder.line(f"br i1 {test}, label %{fast}, label %{slow}{_LIKELY}")
    builder.label(slow)
    out = _element_buffer(body, access)
    _call_line(body, "load", access, packed, address, out)
    lanes = load_elements(builder, access, out) if access.count > 1 else []
    end = builder.new_label("lanes")
    builder.line(f"br label %{end}")
    builder.label(end)
    builder.line(f"br label %{join}")
    builder.label(fast)
    pointer = _pointer(body, access, first)
    rows = load_row(builder, access, pointer) if access.count > 1 else []
    builder.line(f"br label %{join}")
    builder.label(join)
    if access.count == 1:  # both lie in memory alike
        place = builder.emit(f"phi ptr [ {pointer}, %{fast} ], [ {out}, %{end} ]")
        return [Value(row, access.type, True) for row in load_row(builder, access, place)]
    type = builder.vector_type(access.type)
    return [
        Value(builder.emit(f"phi {type} [ {a}, %{fast} ], [ {b.ir}, %{end} ]"), access.type, True)
        for a, b in zip(rows, lanes, strict=True)
    ]


def _load_or(
    body: Body,
    access: Access,
    test: str,
    quick: Callable[[], list[str]],
    others: Callable[[], list[Value]],
    *,
    weights: str = "",
) -> list[Value]:
    """What ``quick`` loads, which has no branches, where the test, an i1, is true, else what ``others`` loads."""
    builder = body.builder
    fast, slow, join = builder.new_label("quick"), builder.new_label("part"), builder.new_label("loaded")
    builder.line(f"br i1 {test}, label %{fast}, label %{slow}{weights}")
    builder.label(fast)
    rows = quick()
    builder.line(f"br label %{join}")
    builder.label(slow)
    lanes = others()
    end = builder.new_label("lanes")
    builder.line(f"br label %{end}")
    builder.label(end)
    builder.line(f"br label %{join}")
    builder.label(join)
    type = builder.vector_type(access.type)
    return [
        Value(builder.emit(f"phi {type} [ {a}, %{fast} ], [ {b.ir}, %{end} ]"), access.type, True)
        for a, b in zip(rows, lanes, strict=True)
    ]


def _element_buffer(body: Body, access: Access) -> str:
    return body.scratch("elements", access.size)


def _spill_elements(body: Body, access: Access, values: Sequence[Value]) -> str:
    buffer = _element_buffer(body, access)
    store_elements(body.builder, access, buffer, [body.builder.splat(value) for value in values])
    return buffer


def _call_line(body: Body, verb: str, access: Access, packed: int, address: Value, elements: str) -> None:
    """Have a helper access a place for each lane at regular distances."""
    builder, line = body.builder, address.affine
    assert line is not None
    wraps = access.space != "shared" and line.exact != "true"  # offsets in shared memory wrap where addresses do
    if wraps and line.origin is not None:
        _call_wrapping_line(body, verb, access, packed, address, elements)
        return
    done = builder.new_label("helped")
    if wraps:
        on_line, scattered = builder.new_label("line"), builder.new_label("scattered")
        builder.line(f"br i1 {line.exact}, label %{on_line}, label %{scattered}, !prof !1")
        builder.label(scattered)
        _call_lanes(body, verb, access, packed, lane_addresses(body, address), elements)
        builder.line(f"br label %{done}")
        builder.label(on_line)
    # Signed, because lane 0 may be in front of shared memory when it does not run.
    first = builder.typed(builder.cast("sext", _first_lane(address), "i64"))
    step = f"i64 {line.stride}"
    status = call_accessor(body, f"cupola_{verb}_line", "i32", packed, first, step, f"ptr {elements}")
    body.control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
    builder.line(f"br label %{done}")
    builder.label(done)


def _call_wrapping_line(body: Body, verb: str, access: Access, packed: int, address: Value, elements: str) -> None:
    """The same when lanes may have wrapped: the helper finds out, by the narrow value that was widened."""
    builder, line = body.builder, address.affine
    assert line is not None and line.origin is not None
    origin = line.origin
    widen = "sext" if origin.signed else "zext"
    narrow = builder.cast(widen, Value(origin.narrow, origin.type), "i64")
    kind = origin.step & 0xFFFFFFFF | BITS[origin.type] << 32 | origin.signed << 40
    status = call_accessor(
        body,
        f"cupola_{verb}_wrapping_line",
        "i32",
        packed,
        builder.typed(_first_lane(address)),
        f"i64 {line.stride}",
        builder.typed(narrow),
        f"i64 {kind}",
        f"i64 {origin.scale}",
        f"ptr {elements}",
    )
    body.control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))


def _row_store(body: Body, access: Access, address: Value, values: list[Value]) -> None:
    number, packed = site_of(body, access, row=True)
    first = _first_lane(address)
    test, pointer = "true", ""
    if access.space == "shared":
        pointer = pointer_in_shared(body, access, first, row=True)
    else:
        test = _row_test(body, access, number, address)

    def others() -> None:
        _call_line(body, "store", access, packed, address, _spill_elements(body, access, values))

    _store_row_or(body, access, test, lambda: pointer or _pointer(body, access, first), values, others, weights=_LIKELY)


def _everyone_runs(body: Body) -> str:
    """The i1 that says that all lanes run."""
    control = body.control
    if control.lanes().ir == control.everyone.ir:
        return "true"
    return body.builder.emit(f"icmp eq i32 {control.lanes().ir}, {control.everyone.ir}")


def _store_row_or(
    body: Body,
    access: Access,
    test: str,
    pointer: Callable[[], str],
    values: list[Value],
    others: Callable[[], None],
    *,
    weights: str = "",
) -> None:
    """A vector store to ``pointer`` where the test, an i1, is true, else what ``others`` stores.

    When some lanes do not run, that is a store by mask, where there are such; else ``others`` does it, too.
    """
    builder, everyone = body.builder, _everyone_runs(body)
    values = [builder.splat(value) for value in values]
    if everyone == "true" or access.count > 1 or access.volatile or not stores_by_mask(access.element):
        test = builder.both(test, everyone)
        return _store_or(body, test, lambda: store_row(builder, access, pointer(), values), others, weights=weights)
    lanes = builder.splat(body.control.active())

    def quick() -> None:
        at = pointer()
        _store_or(
            body,
            everyone,
            lambda: store_row(builder, access, at, values),
            lambda: builder.store_by_mask(values[0], at, lanes, align=access.element),
        )

    _store_or(body, test, quick, others, weights=weights)


def _store_or(
    body: Body, test: str, quick: Callable[[], None], others: Callable[[], None], *, weights: str = ""
) -> None:
    """What ``quick`` stores where the test, an i1, is true, else what ``others`` stores."""
    builder = body.builder
    if test == "true":
        return quick()
    fast, slow, join = builder.new_label("quick"), builder.new_label("part"), builder.new_label("stored")
    builder.line(f"br i1 {test}, label %{fast}, label %{slow}{weights}")
    builder.label(fast)
    quick()
    builder.line(f"br label %{join}")
    builder.label(slow)
    others()
    builder.line(f"br label %{join}")
    builder.label(join)


# Places at known distances


def _span_load(body: Body, access: Access, address: Value, span: Span) -> list[Value]:
    place = in_shared(body, access, span)
    if place is not None:
        return [Value(lanes, access.type, True) for lanes in load_span(body, access, span, place)]
    number, packed = site_of(body, access, row=False)

    def others() -> list[Value]:
        if address.affine is None:
            return gather(body, access, packed, _lanes_of(body, address))
        out = _element_buffer(body, access)
        _call_line(body, "load", access, packed, address, out)
        return load_elements(body.builder, access, out)

    test = span_fits(body, access, number, span)
    return _load_or(body, access, test, lambda: load_span(body, access, span), others, weights=_LIKELY)


def _takes_span(body: Body, address: Value) -> bool:
    """Whether all lanes are likely to store; where some are missing, a scatter does better with a pattern."""
    return address.affine is not None or not (body.control.divided() or body.control.is_guarded)


def _span_store(body: Body, access: Access, address: Value, span: Span, values: list[Value]) -> None:
    place = in_shared(body, access, span) if _everyone_runs(body) == "true" else None
    if place is not None:
        return store_span(body, access, span, values, place)
    number, packed = site_of(body, access, row=False)

    def others() -> None:
        if address.affine is None:
            scatter(body, access, packed, _lanes_of(body, address), values)
        else:
            _call_line(body, "store", access, packed, address, _spill_elements(body, access, values))

    test = body.builder.both(span_fits(body, access, number, span), _everyone_runs(body))
    _store_or(body, test, lambda: store_span(body, access, span, values), others, weights=_LIKELY)


def _lanes_of(body: Body, address: Value) -> Value:
    """A pattern of addresses as a vector, made here, on the path that needs it."""
    builder, pattern = body.builder, address.pattern
    assert pattern is not None
    distances = builder.per_lane(address.type, list(pattern.offsets))
    return builder.binary("add", builder.splat(Value(pattern.base, address.type)), distances)


# Rows that only turn out to be some at run time


def _scattered_load(body: Body, access: Access, base: Value, offset: int) -> list[Value]:
    builder = body.builder
    row = find_row(body, access, base)
    number, packed = site_of(body, access, row=row is not None)
    run = body.of_block(plan_runs).get(id(access.instruction)) if body.width >= 16 else None
    if row is None and run is not None:
        return _load_of_run(body, access, packed, base, offset, run)
    if row is None:
        return gather(body, access, packed, _moved(body, base, offset))
    first = _moved(body, row.first, offset)
    test = builder.both(check(body, access, number, first, row=True), row.exact)
    return _load_or(
        body,
        access,
        test,
        lambda: load_row(builder, access, _row_pointer(body, access, first)),
        lambda: gather(body, access, packed, _moved(body, base, offset)),
    )


def _load_of_run(body: Body, access: Access, packed: int, base: Value, offset: int, run: Run) -> list[Value]:
    if not run.values:
        run.values, run.verdict = gather_run(body, access, packed, _moved(body, base, run.start))
    value = run.values[run.places[id(access.instruction)]]

    def alone() -> list[Value]:
        return gather(body, access, packed, _moved(body, base, offset))

    return _load_or(body, access, run.verdict, lambda: [value.ir], alone, weights=_LIKELY)


def _scattered_store(body: Body, access: Access, base: Value, offset: int, values: list[Value]) -> None:
    builder = body.builder
    row = find_row(body, access, base)
    number, packed = site_of(body, access, row=row is not None)
    if row is None:
        return scatter(body, access, packed, _moved(body, base, offset), values)
    first = _moved(body, row.first, offset)
    test = builder.both(check(body, access, number, first, row=True), row.exact)
    _store_row_or(
        body,
        access,
        test,
        lambda: _row_pointer(body, access, first),
        values,
        lambda: scatter(body, access, packed, _moved(body, base, offset), values),
    )


def _row_pointer(body: Body, access: Access, first: Value) -> str:
    if access.space == "shared":
        distance = body.builder.cast("zext", first, "i64")
        return body.builder.emit(f"getelementptr i8, ptr %shared, i64 {distance.ir}")
    return _pointer(body, access, first)


def lane_addresses(body: Body, address: Value, name: str = "addresses") -> str:
    """A buffer with the address of each lane.

    Addresses that are known by scalars are made into a vector here, on the path that needs one.
    """
    builder, line = body.builder, address.affine
    if line is not None and (line.exact == "true" or line.origin is not None):
        address = builder.lanes_on_line(address.type, line)
    return body.spill(name, builder.cast("zext", builder.splat(address), "i64"))


def _call_lanes(body: Body, verb: str, access: Access, packed: int, addresses: str, elements: str) -> None:
    status = call_accessor(body, f"cupola_{verb}", "i32", packed, f"ptr {addresses}", f"ptr {elements}")
    body.control.fault_if(body.builder.emit(f"icmp ne i32 {status}, 0"))
