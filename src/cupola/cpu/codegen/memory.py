"""Loads and stores (PTX ISA, "ld", "ld.global.nc", "ldu", "st", "cp.async").

An address that is the same for all lanes gives one scalar access; addresses that go up by the size of the access from
lane to lane give one vector access, as long as all lanes take part and none wraps. Everything else goes to a helper,
lane by lane. Each site remembers the allocation that it touched last (abi.h), so that the usual check is one
subtraction, one rotation (which makes a misaligned offset enormous) and one comparison; when it fails the helper
decides, and names the first lane that is at fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cupola.cpu.ptx import ast

from . import abi
from .addresses import address_of, space_of
from .builder import constant
from .instructions.registry import LLVM_TYPE
from .values import BITS, Value

if TYPE_CHECKING:
    from .body import Body

_COUNTS = {"v2": 2, "v4": 4, "v8": 8}


@dataclass(frozen=True, slots=True)
class Access:
    """What an instruction does to memory.

    ``type`` is the LLVM type of an element, ``count`` the elements of one lane, ``size`` their bytes.
    """

    instruction: ast.Instruction
    space: str
    type: str
    count: int
    write: bool
    volatile: bool

    @classmethod
    def of(cls, instruction: ast.Instruction, *, write: bool) -> Access:
        modifiers = instruction.modifiers
        type = LLVM_TYPE[next(m for m in reversed(modifiers) if m in LLVM_TYPE)]
        count = next((_COUNTS[m] for m in modifiers if m in _COUNTS), 1)
        strong = any(m in modifiers for m in ("volatile", "relaxed", "acquire", "release", "mmio", "sc", "cv"))
        return cls(instruction, space_of(instruction), type, count, write, strong)

    @property
    def element(self) -> int:
        return BITS[self.type] // 8

    @property
    def size(self) -> int:
        return self.element * self.count

    @property
    def in_window(self) -> bool:
        return self.space in ("shared", "local")


def load(body: Body, instruction: ast.Instruction) -> None:
    """``ld``, ``ldu``."""
    access = Access.of(instruction, write=False)
    destination, source = instruction.operands[:2]
    assert isinstance(source, ast.Address)
    values = load_access(body, access, source)
    if "acquire" in instruction.modifiers:
        body.builder.line("fence acquire")
    signed = next(m for m in reversed(instruction.modifiers) if m in LLVM_TYPE)[0] == "s"
    items = destination.items if isinstance(destination, ast.Vector) else (destination,)
    for item, value in zip(items, values, strict=True):
        body.write(item, value, signed=signed)


def store(body: Body, instruction: ast.Instruction) -> None:
    """``st``."""
    access = Access.of(instruction, write=True)
    destination, source = instruction.operands[:2]
    items = source.items if isinstance(source, ast.Vector) else (source,)
    values = [body.operand(item, access.type) for item in items]
    if "release" in instruction.modifiers:
        body.builder.line("fence release")
    store_access(body, access, destination, values)


def load_access(body: Body, access: Access, source: ast.Operand) -> list[Value]:
    """Load the elements of each lane."""
    pointer = _known_pointer(body, access, source)
    if pointer is not None:
        return _scalar_load(body, access, pointer)
    address = address_of(body, source, access.space)
    if body.width == 1 or (not address.vector and not _is_private(body, access)):
        return _scalar_load(body, access, checked_pointer(body, access, address))
    if _is_contiguous(address, access):
        return _contiguous_load(body, access, address)
    return _gather(body, access, address)


def store_access(body: Body, access: Access, destination: ast.Operand, values: list[Value]) -> None:
    """Store the elements of each lane; where lanes store to one place, the highest lane's value stays."""
    address = address_of(body, destination, access.space)
    if body.width == 1 or (not address.vector and not _is_private(body, access)):
        values = [_last_lane(body, value) for value in values]
        _scalar_store(body, access, checked_pointer(body, access, address), values)
    elif _is_contiguous(address, access):
        _contiguous_store(body, access, address, values)
    else:
        _scatter(body, access, address, values)


def _is_private(body: Body, access: Access) -> bool:
    """Whether one address may mean another place for each lane."""
    return access.space == "local" or (access.space == "generic" and body.layout.local_bytes > 0)


def _is_contiguous(address: Value, access: Access) -> bool:
    return access.space != "local" and address.affine is not None and address.affine.stride == access.size


def _last_lane(body: Body, value: Value) -> Value:
    if not value.vector:
        return value
    builder = body.builder
    builder.declarations["declare i32 @llvm.ctlz.i32(i32, i1)"] = None
    zeros = builder.emit(f"call i32 @llvm.ctlz.i32(i32 {body.control.lanes().ir}, i1 true)")
    return builder.lane(value, builder.binary("sub", constant("i32", 31), Value(zeros, "i32")))


# Checks


def site_of(body: Body, access: Access, *, contiguous: bool) -> tuple[int, int]:
    """A new site: its number, and its description for the helpers."""
    number = body.new_site(access.instruction, access.space, access.size, write=access.write)
    packed = abi.pack_site(number, access.size, access.element, access.space, write=access.write, contiguous=contiguous)
    return number, packed


def _rotated(body: Body, offset: Value, size: int) -> Value:
    if size == 1:
        return offset
    shift = constant(offset.type, size.bit_length() - 1)
    return body.builder.intrinsic("fshr", offset, offset, shift)


def _inside(body: Body, access: Access, number: int, address: Value, span: int) -> Value:
    """Whether ``span`` bytes at a uniform address are aligned and inside the window or the site's allocation."""
    builder = body.builder
    if access.space == "shared":
        limit = body.at_entry(
            f"shared limit {span} {access.size}",
            lambda b: b.binary(
                "lshr",
                b.intrinsic(
                    "usub.sat",
                    b.binary("add", body.context_field("shared_size"), constant("i32", access.size)),
                    constant("i32", span),
                ),
                constant("i32", access.size.bit_length() - 1),
            ),
        )
        return builder.compare("icmp ult", _rotated(body, address, access.size), limit)
    if access.space == "local":
        limit = constant("i32", max(0, body.layout.local_bytes - access.size + 1))
        aligned = builder.binary("and", address, constant("i32", access.size - 1))
        inside = builder.compare("icmp ult", address, limit)
        return builder.binary("and", inside, builder.compare("icmp eq", aligned, constant("i32", 0)))
    entry = builder.emit(f"getelementptr i8, ptr %sites, i64 {number * abi.SITE_CACHE_BYTES}")
    low = Value(builder.emit(f"load i64, ptr {entry}"), "i64")
    second = builder.emit(f"getelementptr i8, ptr {entry}, i64 8")
    limit = Value(builder.emit(f"load i64, ptr {second}"), "i64")
    return builder.compare("icmp ult", _rotated(body, builder.binary("sub", address, low), access.size), limit)


def _pointer(body: Body, access: Access, address: Value) -> str:
    builder = body.builder
    if access.space == "shared":
        offset = builder.cast("zext", address, "i64")
        return builder.emit(f"getelementptr i8, ptr %shared, i64 {offset.ir}")
    if access.space == "local":
        local = body.warp_field("local", "ptr")
        return builder.emit(f"getelementptr i8, ptr {local.ir}, i32 {address.ir}")
    return builder.emit(f"inttoptr i64 {address.ir} to ptr")


def _known_pointer(body: Body, access: Access, source: ast.Operand) -> str | None:
    """The pointer of an access that needs no check: a parameter, or a variable at a constant offset."""
    if not isinstance(source, ast.Address) or not isinstance(source.base, ast.Symbol):
        return None
    place = body.layout.places[source.base.name]
    offset = source.base.offset + source.offset
    if place.space != access.space or not 0 <= offset <= place.size - access.size or offset % access.size:
        return None
    if place.space == "param":
        return body.builder.emit(f"getelementptr i8, ptr %params, i64 {place.offset + offset}")
    if place.space in ("global", "const"):
        address = body.builder.binary("add", body.symbol(source.base), constant("i64", source.offset))
        return _pointer(body, access, address)
    return None


def checked_pointer(body: Body, access: Access, address: Value) -> str:
    """The pointer of a uniform access, after its check."""
    builder, control = body.builder, body.control
    number, packed = site_of(body, access, contiguous=False)
    inside = _inside(body, access, number, address, access.size)
    fast, slow, join = builder.new_label("hit"), builder.new_label("miss"), builder.new_label("at")
    builder.line(f"br i1 {inside.ir}, label %{fast}, label %{slow}, !prof !1")
    builder.label(slow)
    builder.declarations["declare ptr @cupola_resolve(ptr, ptr, i64, i32, i64)"] = None
    wide = builder.cast("zext", address, "i64")
    found = builder.emit(
        f"call ptr @cupola_resolve(ptr %context, ptr %warp, i64 {packed}, i32 {control.lanes().ir}, i64 {wide.ir})"
    )
    bad = builder.emit(f"icmp eq ptr {found}, null")
    builder.line(f"br i1 {bad}, label %fault, label %{join}, !prof !2")
    builder.label(fast)
    pointer = _pointer(body, access, address)
    builder.line(f"br label %{join}")
    builder.label(join)
    return builder.emit(f"phi ptr [ {pointer}, %{fast} ], [ {found}, %{slow} ]")


# Uniform accesses


def _element_pointer(body: Body, pointer: str, offset: int) -> str:
    return body.builder.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer


def _scalar_load(body: Body, access: Access, pointer: str) -> list[Value]:
    builder, values = body.builder, []
    tail = ", !invariant.load !0" if access.space == "param" else ""
    for index in range(access.count):
        at = _element_pointer(body, pointer, index * access.element)
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
        at = _element_pointer(body, pointer, index * access.element)
        align = access.size if index == 0 else access.element
        if access.volatile and access.count == 1 and access.element <= 8:
            bits = builder.bitcast(value, f"i{access.element * 8}")
            builder.line(f"store atomic volatile {builder.typed(bits)}, ptr {at} monotonic, align {align}")
            continue
        volatile = "volatile " if access.volatile else ""
        builder.line(f"store {volatile}{builder.typed(value)}, ptr {at}, align {align}")


# Contiguous accesses


def _contiguous_test(body: Body, access: Access, number: int, address: Value) -> str:
    """The i1 that says that one vector access does it."""
    builder, control = body.builder, body.control
    line = address.affine
    assert line is not None
    first = Value(line.base, address.type)
    test = _inside(body, access, number, first, access.size * body.width).ir
    exact = "true" if access.space == "shared" else line.exact  # offsets wrap where addresses do
    test = builder.both(test, exact)
    if control.lanes().ir != control.everyone.ir:
        full = builder.emit(f"icmp eq i32 {control.lanes().ir}, {control.everyone.ir}")
        test = builder.both(test, full)
    return test


def _wide_pointer(body: Body, access: Access, address: Value) -> str:
    assert address.affine is not None
    return _pointer(body, access, Value(address.affine.base, address.type))


def _contiguous_load(body: Body, access: Access, address: Value) -> list[Value]:
    builder, width, count = body.builder, body.width, access.count
    number, packed = site_of(body, access, contiguous=True)
    test = _contiguous_test(body, access, number, address)
    fast, slow, join = builder.new_label("row"), builder.new_label("lanes"), builder.new_label("loaded")
    builder.line(f"br i1 {test}, label %{fast}, label %{slow}, !prof !1")
    builder.label(fast)
    pointer = _wide_pointer(body, access, address)
    volatile = "volatile " if access.volatile else ""
    vector = f"<{width * count} x {access.type}>"
    row = builder.emit(f"load {volatile}{vector}, ptr {pointer}, align {access.size}")
    rows = [row]
    if count > 1:
        rows = [
            builder.emit(f"shufflevector {vector} {row}, {vector} poison, {_picks(range(i, width * count, count))}")
            for i in range(count)
        ]
    builder.line(f"br label %{join}")
    builder.label(slow)
    lanes = _call_load(body, access, packed, address)
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


def _picks(indices: range) -> str:
    return f"<{len(indices)} x i32> <{', '.join(f'i32 {i}' for i in indices)}>"


def _contiguous_store(body: Body, access: Access, address: Value, values: list[Value]) -> None:
    builder, width, count = body.builder, body.width, access.count
    number, packed = site_of(body, access, contiguous=True)
    values = [builder.splat(value) for value in values]
    test = _contiguous_test(body, access, number, address)
    fast, slow, join = builder.new_label("row"), builder.new_label("lanes"), builder.new_label("stored")
    builder.line(f"br i1 {test}, label %{fast}, label %{slow}, !prof !1")
    builder.label(fast)
    pointer = _wide_pointer(body, access, address)
    volatile = "volatile " if access.volatile else ""
    builder.line(
        f"store {volatile}<{width * count} x {access.type}> {_interleave(body, access.type, values)}, "
        f"ptr {pointer}, align {access.size}"
    )
    builder.line(f"br label %{join}")
    builder.label(slow)
    _call_store(body, access, packed, address, values)
    builder.line(f"br label %{join}")
    builder.label(join)


def _interleave(body: Body, type: str, values: list[Value]) -> str:
    """One vector with the elements of lane 0, those of lane 1 and so on."""
    builder, width = body.builder, body.width
    parts, length = [value.ir for value in values], width
    while len(parts) > 1:  # append the second half of the elements to the first
        vector = f"<{length} x {type}>"
        parts = [
            builder.emit(f"shufflevector {vector} {a}, {vector} {b}, {_picks(range(2 * length))}")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        length *= 2
    if length == width:
        return parts[0]
    count, vector = len(values), f"<{length} x {type}>"
    order = ", ".join(f"i32 {element * width + lane}" for lane in range(width) for element in range(count))
    return builder.emit(f"shufflevector {vector} {parts[0]}, {vector} poison, <{length} x i32> <{order}>")


# Lane by lane


def _gather(body: Body, access: Access, address: Value) -> list[Value]:
    _, packed = site_of(body, access, contiguous=False)
    return _call_load(body, access, packed, address)


def _scatter(body: Body, access: Access, address: Value, values: list[Value]) -> None:
    _, packed = site_of(body, access, contiguous=False)
    _call_store(body, access, packed, address, [body.builder.splat(value) for value in values])


def lane_addresses(body: Body, address: Value) -> str:
    """A buffer with the address of each lane."""
    return body.spill("addresses", body.builder.cast("zext", body.builder.splat(address), "i64"))


def _call_load(body: Body, access: Access, packed: int, address: Value) -> list[Value]:
    builder = body.builder
    addresses = lane_addresses(body, address)
    out = body.scratch("elements", access.size)
    _call_helper(body, "load", access, packed, addresses, out)
    values = []
    for index in range(access.count):
        at = _element_pointer(body, out, index * access.element * body.width)
        type = builder.vector_type(access.type)
        values.append(Value(builder.emit(f"load {type}, ptr {at}, align 16"), access.type, body.width > 1))
    return values


def _call_store(body: Body, access: Access, packed: int, address: Value, values: list[Value]) -> None:
    builder = body.builder
    addresses = lane_addresses(body, address)
    out = body.scratch("elements", access.size)
    for index, value in enumerate(values):
        at = _element_pointer(body, out, index * access.element * body.width)
        builder.line(f"store {builder.typed(builder.splat(value))}, ptr {at}, align 16")
    _call_helper(body, "store", access, packed, addresses, out)


def _call_helper(body: Body, verb: str, access: Access, packed: int, addresses: str, elements: str) -> None:
    builder, control = body.builder, body.control
    shared = access.space == "shared"
    name = f"cupola_{verb}_shared" if shared else f"cupola_{verb}"
    builder.declarations[f"declare i32 @{name}(ptr, ptr, i64, i32, ptr, ptr{', ptr' if shared else ''})"] = None
    status = builder.emit(
        f"call i32 @{name}(ptr %context, ptr %warp, i64 {packed}, i32 {control.lanes().ir}, ptr {addresses}, "
        f"ptr {elements}{', ptr %shared' if shared else ''})"
    )
    control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
