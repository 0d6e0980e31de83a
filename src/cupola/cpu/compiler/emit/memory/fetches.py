"""Loads of one block from places at constant distances (unrolled loops), which are tested once.

If all of them are in bounds, and are rows if the addresses differ from lane to lane, each load is one instruction.
Otherwise everything is loaded at the first of the loads, place after place; nothing accesses memory between them. The
elements go to a buffer with the same layout as memory, so the same instructions load them from there. Only if the lanes
are not in a row, the places are further apart in the buffer than in memory, by a pitch that is zero otherwise.
"""

from __future__ import annotations

from dataclasses import field
from itertools import count
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import BITS, Affine, Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.records import dataclass

from .accessors import call_accessor, fault_unless_zero
from .array_elements import is_within_reach
from .bounds import Access, Group, check, plan_groups, site_of
from .scattered import find_row, gather_all

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_LARGEST = 8192
"""Bytes of the largest buffer."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Where the loads of a group find their elements: ``offset`` + ``rank`` * pitch from the base.

    ``places`` has the rank and the offset of each by the ``id`` of the instruction; ``pitch`` is an i64 operand.
    ``buffer`` is the number of the buffer, which is in use until the last of the loads has been written (``waiting``).
    """

    base: str
    pitch: str
    places: dict[int, tuple[int, int]]
    buffer: int
    waiting: set[int] = field(default_factory=set)


def _fetches(block: Block) -> dict[int, Fetch | None]:
    """The fetch of each group of a block, by the group's ``id``, once its first load has been written."""
    return {}


def fetched(body: Body, access: Access, base: Value) -> str | None:
    """The pointer from which a load of a group is done, a row unless its address is uniform.

    None when the access is no such load. ``base`` is the value of the address register.
    """
    group = body.of_block(plan_groups).get(id(access.instruction))
    if group is None or len(group.early) == 1 or body.control.is_guarded:
        return None
    fetches = body.of_block(_fetches)
    if id(group) not in fetches:
        fetches[id(group)] = _begin(body, group, base)
    fetch = fetches[id(group)]
    if fetch is None or id(access.instruction) not in fetch.places:
        return None
    builder = body.builder
    fetch.waiting.discard(id(access.instruction))
    rank, offset = fetch.places[id(access.instruction)]
    pointer = builder.emit(f"getelementptr i8, ptr {fetch.base}, i64 {offset}") if offset else fetch.base
    if rank and fetch.pitch != "0":
        distance = builder.emit(f"mul i64 {fetch.pitch}, {rank}")
        pointer = builder.emit(f"getelementptr i8, ptr {pointer}, i64 {distance}")
    return pointer


def _begin(body: Body, group: Group, base: Value) -> Fetch | None:
    """Test the places of a group; None when it cannot be treated like this."""
    builder = body.builder
    loads = sorted(group.early, key=lambda load: load[1])
    if len(loads) < 2:
        return None
    access, low = loads[0]
    size, span = access.size, loads[-1][1] - low
    line = base.line()
    if access.space in ("local", "param", "cluster") or (access.space == "shared" and line is not None):
        return None
    if access.space == "generic" and (not base.vector and (body.layout.local_bytes > 0 or body.layout.has_stack)):
        return None
    if base.vector and any(load.count > 1 for load, _ in loads):
        return None
    if line is None:
        row = find_row(body, access, base)
        if row is None:
            return None
        line = Affine(row.first.ir, size, row.exact)
    elif line.stride != (size if base.vector else 0):
        return None
    row_bytes = body.width * size if base.vector else size
    pitch = 0 if line.exact == "true" else row_bytes
    room = span + (len(loads) - 1) * pitch + row_bytes
    if room > _LARGEST:
        return None

    sites = [site_of(body, load, row=base.vector) for load, _ in loads]
    number = sites[0][0]
    packed = abi.with_unused(sites[0][1], sites[-1][1])  # what is inside of the last place is inside of the others
    first, lowest = Value(line.base, base.type), base
    if low:
        first, lowest = (builder.binary("add", place, constant(base.type, low)) for place in (first, base))
    offsets = body.table("i32", [offset - low for _, offset in loads])
    there, apart, join = builder.new_label("there"), builder.new_label("apart"), builder.new_label("fetched")
    quick = is_within_reach(body, access, number, together=True)
    if quick is not None:
        usual = builder.new_label("usual")
        builder.line(f"br i1 {quick}, label %{there}, label %{usual}, !prof !1")
        builder.label(usual)
    test = builder.both(check(body, access, number, first, row=base.vector), line.exact)
    builder.line(f"br i1 {test}, label %{there}, label %{apart}{'' if base.line() is None else ', !prof !1'}")
    builder.label(apart)
    number_of_buffer = _free_buffer(body)
    buffer = body.scratch(f"fetched {number_of_buffer}", -(-room // body.width))
    rest = f"ptr {offsets}", f"i32 {len(loads)}", f"ptr {buffer}"
    if not base.vector:
        place = builder.typed(builder.cast("zext", first, "i64"))
        status = call_accessor(body, "cupola_load_places", "i32", packed, place, *rest)
    elif line.exact == "true" or line.origin is not None:
        status = _load_lines(body, packed, first, line, *rest, f"i64 {pitch}")
    else:
        status = gather_all(body, access, packed, lowest, offsets, len(loads), buffer)
    fault_unless_zero(body, status)
    done = builder.new_label("apart")
    builder.line(f"br label %{done}")
    builder.label(done)
    builder.line(f"br label %{join}")
    builder.label(there)
    if access.space == "shared":
        distance = builder.cast("zext", first, "i64")
        pointer = builder.emit(f"getelementptr i8, ptr %shared, i64 {distance.ir}")
    else:
        pointer = builder.emit(f"inttoptr i64 {first.ir} to ptr")
    builder.line(f"br label %{join}")
    builder.label(join)
    start = builder.emit(f"phi ptr [ {pointer}, %{there} ], [ {buffer}, %{done} ]")
    step = builder.emit(f"phi i64 [ 0, %{there} ], [ {pitch}, %{done} ]") if pitch else "0"
    places = {id(load.instruction): (r, o - low) for r, (load, o) in enumerate(loads)}
    return Fetch(start, step, places, number_of_buffer, set(places))


def _free_buffer(body: Body) -> int:
    """The first buffer out of which no group of the block has anything left to load: groups may alternate."""
    used = {fetch.buffer for fetch in body.of_block(_fetches).values() if fetch is not None and fetch.waiting}
    return next(number for number in count() if number not in used)


def _load_lines(body: Body, packed: int, first: Value, line: Affine, *rest: str) -> str:
    """Have a helper load from the places of each lane at regular distances."""
    builder, origin = body.builder, line.origin
    narrow, kind, scale = constant("i64", 0), 0, 0
    if line.exact != "true" and origin is not None:
        narrow = builder.cast("sext" if origin.signed else "zext", Value(origin.narrow, origin.type), "i64")
        kind = origin.step & 0xFFFFFFFF | BITS[origin.type] << 32 | origin.signed << 40
        scale = origin.scale
    where = builder.typed(first), f"i64 {line.stride}", builder.typed(narrow), f"i64 {kind}", f"i64 {scale}"
    return call_accessor(body, "cupola_load_lines", "i32", packed, *where, *rest)
