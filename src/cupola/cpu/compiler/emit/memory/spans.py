"""Accesses whose lanes are at known distances from each other: lines of any stride, and patterns (see patterns.py).

The lowest and the highest place are checked as scalars; when both are inside one allocation, all are. What lies close
together is then loaded as a few vectors, *windows*, that one shuffle puts in order, and stored likewise. Between the
places that are stored to, windows leave memory as it is: by a mask where other threads may write meanwhile, and by
loading first in shared memory, which no other processor uses. What lies far apart is gathered and scattered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import BITS, Value, signed
from cupola.cpu.compiler.objects import machine
from cupola.cpu.compiler.records import dataclass

from .bounds import Access, inside, lowest_in_shared, shared_fits

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_FARTHEST = 1 << 24
"""Bytes between lanes, beyond which it is not worth the while."""

_WINDOW = 64
"""Bytes of a window at most: what the largest vector registers hold."""

_ROOM = 1024
"""Bytes around shared memory that may be read (lanes that do not run do); ROW_BYTES of engine/schedule/scheduler.c."""

_CLOSE = 4
"""How many elements may lie between the first and the last place, over those that are accessed."""


@dataclass(frozen=True, slots=True)
class Span:
    """Places of all lanes.

    ``first`` is the lowest address, a uniform value, ``offsets`` the distances of the lanes from there in elements,
    ``exact`` the i1 that says that the lanes are there.
    """

    first: Value
    exact: str
    offsets: tuple[int, ...]

    def places(self, access: Access) -> list[tuple[int, ...]]:
        """Of each element, the places of the lanes, in elements."""
        return [tuple(offset + index for offset in self.offsets) for index in range(access.count)]

    def length(self, access: Access) -> int:
        """Elements from the first place to the end of the last."""
        return max(self.offsets) + access.count

    def is_close(self, access: Access) -> bool:
        return self.length(access) <= _CLOSE * len(set(self.offsets)) * access.count


@dataclass(frozen=True, slots=True)
class Place:
    """Where a span in shared memory is: behind the pointer ``start``, with the windows there that are loaded already.

    These are found by their type, where they begin and how many elements they have.
    """

    start: str
    span: Span
    windows: dict[tuple[str, int, int], str]


def span_of(body: Body, access: Access, address: Value) -> Span | None:
    """The places of an access, if they are at known distances and the access can be done that way."""
    if access.space == "local" or access.volatile or access.element > 8:
        return None
    line, pattern = address.affine, address.pattern
    if line is not None:
        base, exact, distances = line.base, line.exact, tuple(lane * line.stride for lane in range(body.width))
    elif pattern is not None:
        bits = BITS[address.type]
        base, exact, distances = pattern.base, "true", tuple(signed(offset, bits) for offset in pattern.offsets)
    else:
        return None
    lowest, highest = min(distances), max(distances)
    if highest - lowest > _FARTHEST or any((distance - lowest) % access.size for distance in distances):
        return None
    first = body.builder.binary("add", Value(base, address.type), constant(address.type, lowest))
    span = Span(first, exact, tuple((distance - lowest) // access.element for distance in distances))
    by_instruction = (machine.scatters() if access.write else machine.gathers()) and access.element >= 4
    if access.write and span.is_close(access):
        by_mask = machine.scatters() and machine.stores_by_mask(access.element)
        return span if access.space == "shared" or by_mask else None
    return span if span.is_close(access) or by_instruction else None


def span_fits(body: Body, access: Access, site: int, span: Span) -> str:
    """The i1 that says that all lanes are at their places, and these are inside."""
    builder = body.builder
    if access.space == "shared":
        fits = shared_fits(body, access, span.first, span.length(access) * access.element)
        return builder.both(span.exact, fits)
    highest = max(span.offsets) * access.element
    last = builder.binary("add", span.first, constant(span.first.type, highest))
    low, high = (inside(body, access, site, place, row=False) for place in (span.first, last))
    return builder.both(span.exact, builder.both(low, high))


def _start(body: Body, access: Access, span: Span) -> str:
    builder = body.builder
    if access.space == "shared":
        return builder.emit(f"getelementptr i8, ptr %shared, i64 {builder.cast('zext', span.first, 'i64').ir}")
    return builder.emit(f"inttoptr i64 {span.first.ir} to ptr")


def _windows(places: set[int], length: int, size: int) -> list[int]:
    """Where windows begin that cover all places, each of ``size`` places and none beyond the end."""
    begins: list[int] = []
    for place in sorted(places):
        if not begins or place >= begins[-1] + size:
            begins.append(min(place, length - size))
    return begins


def _window_size(access: Access, length: int) -> tuple[int, int]:
    """How many elements a window has, and how many there are in all; shared memory has room behind its end."""
    size = min(_WINDOW // access.element, 1 << (length.bit_length() - 1))
    return size, -(-length // size) * size if access.space == "shared" else length


def in_shared(body: Body, access: Access, span: Span) -> Place | None:
    """Where a span in shared memory is, after its check; None where the check may fail for lanes that do not run.

    Accesses of a group have their windows at common places, so what one has loaded serves the others.
    """
    reach = span.length(access) * access.element
    if access.space != "shared" or span.exact != "true" or not span.is_close(access) or reach + _WINDOW > _ROOM:
        return None
    distances = [offset * access.element for offset in span.offsets]
    start, behind, group = lowest_in_shared(body, access, span.first, distances, reach)
    if behind % access.element:
        return Place(_behind(body, start, behind), span, {})
    moved = replace(span, offsets=tuple(offset + behind // access.element for offset in span.offsets))
    is_early = any(early.instruction is access.instruction for early, _ in group.early)
    return Place(start, moved, group.windows if is_early else {})


def _behind(body: Body, start: str, distance: int) -> str:
    return body.builder.emit(f"getelementptr i8, ptr {start}, i64 {distance}")


def load_span(body: Body, access: Access, span: Span, place: Place | None = None) -> list[str]:
    """Load the elements of all lanes, which are inside; a vector for each element."""
    builder, length = body.builder, span.length(access)
    known: dict[tuple[str, int, int], str] = {}
    if place is None:
        start = _start(body, access, span)
    else:
        start, span, known = place.start, place.span, place.windows
    if not span.is_close(access):
        return [
            builder.gather(access.type, p, align=access.element).ir for p in _far_pointers(body, access, span, start)
        ]
    size, length = _window_size(access, length)
    lanes = span.places(access)
    wanted = {at for places in lanes for at in places}
    begins = _windows(wanted, length, size) if place is None else sorted({at // size * size for at in wanted})
    at = {begin + i: number * size + i for number, begin in enumerate(begins) for i in range(size)}
    for begin in begins:
        if (access.type, begin, size) not in known:
            pointer = _place(body, access, start, begin)
            vector = f"<{size} x {access.type}>"
            known[access.type, begin, size] = builder.emit(f"load {vector}, ptr {pointer}, align {access.element}")
    parts = [known[access.type, begin, size] for begin in begins]
    whole, count = _joined(body, access.type, parts, size)
    return [_shuffled(body, access.type, whole, count, [at[place] for place in places]) for places in lanes]


def store_span(body: Body, access: Access, span: Span, values: list[Value], place: Place | None = None) -> None:
    """Store the elements of all lanes, which are inside; of lanes at one place the highest counts."""
    builder, length = body.builder, span.length(access)
    if place is None:
        start = _start(body, access, span)
    else:
        start, span = place.start, place.span
    values = [builder.splat(value) for value in values]
    if not span.is_close(access):
        for value, pointers in zip(values, _far_pointers(body, access, span, start), strict=True):
            builder.scatter(value, pointers, constant("i1", 1), align=access.element)
        return
    size, length = _window_size(access, length)
    sources = {
        at: index * body.width + lane
        for index, places in enumerate(span.places(access))
        for lane, at in enumerate(places)
    }
    begins = _windows(set(sources), length, size) if place is None else sorted({at // size * size for at in sources})
    whole, count = _joined(body, access.type, [value.ir for value in values], body.width)
    for begin in begins:
        wanted = [sources.pop(at, None) for at in range(begin, begin + size)]
        pointer = _place(body, access, start, begin)
        vector = f"<{size} x {access.type}>"
        new = _shuffled(body, access.type, whole, count, [0 if w is None else w for w in wanted])
        if None in wanted and access.space == "shared":
            old = builder.emit(f"load {vector}, ptr {pointer}, align {access.element}")
            picks = ", ".join(f"i32 {i if w is None else size + i}" for i, w in enumerate(wanted))
            new = builder.emit(f"shufflevector {vector} {old}, {vector} {new}, <{size} x i32> <{picks}>")
        elif None in wanted:
            mask = ", ".join(f"i1 {str(w is not None).lower()}" for w in wanted)
            name = f"llvm.masked.store.v{size}{builder.overload(access.type)}.p0"
            builder.declarations[f"declare void @{name}({vector}, ptr, i32 immarg, <{size} x i1>)"] = None
            builder.line(
                f"call void @{name}({vector} {new}, ptr {pointer}, i32 {access.element}, <{size} x i1> <{mask}>)"
            )
            continue
        builder.line(f"store {vector} {new}, ptr {pointer}, align {access.element}")


def _place(body: Body, access: Access, start: str, place: int) -> str:
    return body.builder.emit(f"getelementptr i8, ptr {start}, i64 {place * access.element}") if place else start


def _far_pointers(body: Body, access: Access, span: Span, start: str) -> list[str]:
    """For each element, the vector of pointers to the lanes' places."""
    builder = body.builder
    return [
        builder.emit(
            f"getelementptr i8, ptr {start}, "
            + builder.typed(builder.per_lane("i32", [place * access.element for place in places]))
        )
        for places in span.places(access)
    ]


def _joined(body: Body, type: str, parts: list[str], size: int) -> tuple[str, int]:
    """One vector of several, each of ``size`` elements, and its length."""
    builder = body.builder
    while len(parts) > 1:
        vector = f"<{size} x {type}>"
        parts = [*parts, "poison"] if len(parts) % 2 else parts
        picks = ", ".join(f"i32 {i}" for i in range(2 * size))
        parts = [
            builder.emit(f"shufflevector {vector} {a}, {vector} {b}, <{2 * size} x i32> <{picks}>")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        size *= 2
    return parts[0], size


def _shuffled(body: Body, type: str, vector: str, count: int, picks: list[int]) -> str:
    """The elements of a vector with the given numbers."""
    if picks == list(range(count)):
        return vector
    chosen = ", ".join(f"i32 {pick}" for pick in picks)
    return body.builder.emit(
        f"shufflevector <{count} x {type}> {vector}, <{count} x {type}> poison, <{len(picks)} x i32> <{chosen}>"
    )
