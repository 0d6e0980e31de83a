"""Loads and stores of lanes with any addresses by the processor's own instructions for that.

One vector comparison checks all lanes that run: their distances from the allocation that the site remembers, each
rotated by the size of the access, which makes what is misaligned enormous (see bounds.py). The distance of lanes that
do not run is set to zero, so that they read what may be read: that needs no mask, and so no branches on processors
that have to take a gather apart. Where a check fails, a helper looks at each lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi, machine
from cupola.cpu.compiler.records import dataclass

from .bounds import Access


@dataclass(frozen=True, slots=True)
class Lanes:
    """Checked accesses of all lanes: ``inside`` is the i1 that says that those that run are inside.

    ``distances`` are those of the lanes from ``start``, an LLVM pointer; ``active`` tells which run.
    """

    inside: str
    start: str
    distances: Value
    active: Value


def can_gather(access: Access) -> bool:
    """Whether the processor loads, or stores, such elements of scattered lanes by instructions of its own."""
    available = machine.scatters() if access.write else machine.gathers()
    return available and access.element in (4, 8) and access.space != "local" and not access.volatile


def check_lanes(b: Builder, access: Access, address: Value, mask: Value, entry: str, *, run: int = 1) -> Lanes:
    """Check the accesses of the lanes of a mask, by the site's entry in the cache, or by the size of shared memory.

    There are ``run`` accesses one behind the other.
    """
    size = access.size
    if access.space == "shared":
        start, room = "%shared", _field(b, "%context", abi.CONTEXT["shared_size"], "i32")
    else:
        low, base, bytes = (_field(b, entry, offset, "i64") for offset in (0, 16, 24))
        room = b.intrinsic("usub.sat", b.binary("add", base, bytes), low)
        start = b.emit(f"inttoptr i64 {low.ir} to ptr")
        address = b.binary("sub", address, low)
    limit = b.binary("lshr", room, constant(room.type, size.bit_length() - 1))
    if run > 1:
        limit = b.intrinsic("usub.sat", limit, constant(limit.type, run - 1))
    active = b.spread(mask)
    distances = b.select(active, address, constant(address.type, 0))
    number = distances
    if size > 1:
        number = b.intrinsic("fshr", distances, distances, constant(distances.type, size.bit_length() - 1))
    fits = b.compare("icmp ult", number, limit)
    outside = b.ballot(b.binary("xor", fits, constant("i1", 1)))
    inside = b.compare("icmp eq", outside, constant("i32", 0)).ir
    return Lanes(inside, start, distances, active)


def _field(b: Builder, record: str, offset: int, type: str) -> Value:
    pointer = b.emit(f"getelementptr i8, ptr {record}, i64 {offset}") if offset else record
    return Value(b.emit(f"load {type}, ptr {pointer}"), type)


def _pointers(b: Builder, lanes: Lanes, offset: int) -> str:
    start = b.emit(f"getelementptr i8, ptr {lanes.start}, i64 {offset}") if offset else lanes.start
    return b.emit(f"getelementptr i8, ptr {start}, {b.typed(lanes.distances)}")


def gather_elements(b: Builder, access: Access, lanes: Lanes) -> list[Value]:
    """Load the elements of all lanes; a vector for each element."""
    if _in_pairs(access):
        pairs = [b.gather("i64", _pointers(b, lanes, place), align=8) for place in range(0, access.size, 8)]
        return [value for pair in pairs for value in _apart(b, access.type, pair)]
    places = [_pointers(b, lanes, index * access.element) for index in range(access.count)]
    return [b.gather(access.type, place, align=access.element) for place in places]


def scatter_elements(b: Builder, access: Access, lanes: Lanes, values: Sequence[Value]) -> None:
    """Store the elements of the lanes that run."""
    if _in_pairs(access):
        for index in range(0, access.count, 2):
            pair = _together(b, access.type, values[index], values[index + 1])
            b.scatter(pair, _pointers(b, lanes, index * access.element), lanes.active, align=8)
        return
    for index, value in enumerate(values):
        b.scatter(value, _pointers(b, lanes, index * access.element), lanes.active, align=access.element)


def _in_pairs(access: Access) -> bool:
    """Whether elements are accessed two at a time: each place costs the same, whether it has 32 bits or 64."""
    return access.element == 4 and access.count % 2 == 0


def _apart(b: Builder, type: str, pair: Value) -> list[Value]:
    """The two elements of each lane's pair."""
    both = f"<{2 * b.width} x {type}>"
    mixed = b.emit(f"bitcast {b.typed(pair)} to {both}")
    parts = []
    for part in (0, 1):
        picks = ", ".join(f"i32 {2 * lane + part}" for lane in range(b.width))
        parts.append(b.emit(f"shufflevector {both} {mixed}, {both} poison, <{b.width} x i32> <{picks}>"))
    return [Value(part, type, True) for part in parts]


def _together(b: Builder, type: str, first: Value, second: Value) -> Value:
    """The reverse."""
    picks = ", ".join(f"i32 {lane + part * b.width}" for lane in range(b.width) for part in (0, 1))
    first, second = b.splat(first), b.splat(second)
    mixed = b.emit(f"shufflevector {b.typed(first)}, {b.typed(second)}, <{2 * b.width} x i32> <{picks}>")
    pair = b.emit(f"bitcast <{2 * b.width} x {type}> {mixed} to {b.vector_type('i64')}")
    return Value(pair, "i64", True)
