"""Loads and stores of lanes with any addresses by the processor's own instructions for that.

One vector comparison checks all lanes that run: their distances from the allocation that the site remembers, each
rotated by the size of the access, which makes what is misaligned enormous (see bounds.py). The distance of lanes that
do not run is set to zero, so that they read what may be read: that needs no mask, and so no branches on processors
that have to take a gather apart. Where a check fails, a helper looks at each lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import abi, machine
from .bounds import Access
from .builder import constant
from .values import Value

if TYPE_CHECKING:
    from .body import Body


@dataclass(frozen=True, slots=True)
class Lanes:
    """Checked accesses of all lanes: ``inside`` is the i1 that says that those that run are inside.

    ``distances`` are those of the lanes from ``start``, an LLVM pointer.
    """

    inside: str
    start: str
    distances: Value


def can_gather(access: Access) -> bool:
    """Whether the processor loads, or stores, such elements of scattered lanes by instructions of its own."""
    available = machine.scatters() if access.write else machine.gathers()
    return available and access.element in (4, 8) and access.space != "local" and not access.volatile


def check_lanes(body: Body, access: Access, site: int, address: Value) -> Lanes:
    """Check the accesses of the lanes that run."""
    builder, size = body.builder, access.size
    address = builder.splat(address)
    if access.space == "shared":
        start, limit = "%shared", _multiples(body, size)
    else:
        entry = builder.emit(f"getelementptr i8, ptr %sites, i64 {site * abi.SITE_CACHE_BYTES}")
        low, base, bytes = (_field(body, entry, offset) for offset in (0, 16, 24))
        room = builder.intrinsic("usub.sat", builder.binary("add", base, bytes), low)
        limit = builder.binary("lshr", room, constant("i64", size.bit_length() - 1))
        start = builder.emit(f"inttoptr i64 {low.ir} to ptr")
        address = builder.binary("sub", address, low)
    distances = builder.select(body.control.active(), address, constant(address.type, 0))
    number = distances
    if size > 1:
        number = builder.intrinsic("fshr", distances, distances, constant(distances.type, size.bit_length() - 1))
    fits = builder.compare("icmp ult", number, limit)
    outside = builder.ballot(builder.binary("xor", fits, constant("i1", 1)))
    inside = builder.compare("icmp eq", outside, constant("i32", 0)).ir
    return Lanes(inside, start, distances)


def _field(body: Body, entry: str, offset: int) -> Value:
    pointer = body.builder.emit(f"getelementptr i8, ptr {entry}, i64 {offset}") if offset else entry
    return Value(body.builder.emit(f"load i64, ptr {pointer}"), "i64")


def _multiples(body: Body, size: int) -> Value:
    """How many elements of a size shared memory has room for."""
    shift = constant("i32", size.bit_length() - 1)
    return body.at_entry(
        f"shared elements {size}", lambda b: b.binary("lshr", body.context_field("shared_size"), shift)
    )


def _pointers(body: Body, lanes: Lanes, offset: int) -> str:
    start = body.builder.emit(f"getelementptr i8, ptr {lanes.start}, i64 {offset}") if offset else lanes.start
    return body.builder.emit(f"getelementptr i8, ptr {start}, {body.builder.typed(lanes.distances)}")


def gather(body: Body, access: Access, lanes: Lanes) -> list[str]:
    """Load the elements of all lanes; a vector for each element."""
    places = [_pointers(body, lanes, index * access.element) for index in range(access.count)]
    return [body.builder.gather(access.type, place, align=access.element).ir for place in places]


def scatter(body: Body, access: Access, lanes: Lanes, values: list[Value]) -> None:
    """Store the elements of the lanes that run."""
    active = body.control.active()
    for index, value in enumerate(values):
        body.builder.scatter(value, _pointers(body, lanes, index * access.element), active, align=access.element)
