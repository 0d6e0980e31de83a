"""Operations between the lanes of a warp (PTX ISA, "Parallel Synchronization and Communication Instructions").

The lanes of ``builder.active`` execute the instruction together; each gives the mask of those it expects. Lanes
of one instruction may give different masks (two groups of the warp in the same statement), so masks count lane by
lane unless they are uniform. Lanes beyond the width of the vector do not exist and never take part.
"""

from __future__ import annotations

from collections.abc import Callable

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import Value

from .floating import extremum
from .formats import canonical
from .registry import LLVM_TYPE, OperandTypes, Operation, Results, fixed, instruction

ALL_LANES = constant("i32", -1)


def gather_lanes(b: Builder, x: Value, source: Value) -> Value:
    """Lane i of the result is lane ``source[i]`` of ``x``; sources are below 32 and, out of range, arbitrary."""
    if not x.vector:
        return x
    slot = b.alloca(b.vector_type(x.type))
    b.line(f"store {b.typed(x)}, ptr {slot}")
    source = b.binary("and", source, constant("i32", b.width - 1))
    if not source.vector:
        at = b.emit(f"getelementptr {x.type}, ptr {slot}, i32 {source.ir}")
        return Value(b.emit(f"load {x.type}, ptr {at}"), x.type)
    places = b.emit(f"getelementptr {x.type}, ptr {slot}, {b.typed(source)}")
    return b.gather(x.type, places, align=4)


def shuffle_constant(b: Builder, x: Value, lanes: list[int]) -> Value:
    """:func:`gather_lanes` with lanes known now."""
    if not x.vector:
        return x
    picks = ", ".join(f"i32 {lane if lane < b.width else 0}" for lane in lanes)
    vector = b.type_of(x)
    return Value(b.emit(f"shufflevector {vector} {x.ir}, {vector} poison, <{b.width} x i32> <{picks}>"), x.type, True)


def source_lane(mode: str, lane: int, offset: int, clamp: int) -> tuple[int, bool]:
    """The lane that shfl reads, and whether it is in range; the ISA's pseudo-code for one lane."""
    offset, bound, segment = offset & 31, clamp & 31, clamp >> 8 & 31
    highest = (lane & segment) | (bound & ~segment & 31)
    lowest = lane & segment
    source = {
        "up": lane - offset,
        "down": lane + offset,
        "bfly": lane ^ offset,
        "idx": lowest | (offset & ~segment & 31),
    }[mode]
    inside = source >= highest if mode == "up" else source <= highest
    return (source, True) if inside else (lane, False)


@instruction(
    "shfl",
    on="b32",
    modifiers="sync up down bfly idx",
    sources=(3, 4),
    types=fixed("i32 i1", "i32 i32 i32 i32"),
)
def shuffle(b: Builder, op: Operation, x: Value, offset: Value, clamp: Value, *mask: Value) -> Results:
    """Read another lane's value. Reading a lane that does not execute gives whatever its register holds."""
    mode = op.one_of("up", "down", "bfly", "idx")
    distance, bounds = offset.integer, clamp.integer
    if distance is not None and bounds is not None:
        table = [source_lane(mode, lane, distance, bounds) for lane in range(b.width)]
        inside = b.per_lane("i1", [int(known) for _, known in table])
        return shuffle_constant(b, x, [source for source, _ in table]), inside
    lane = b.iota()
    whole = constant("i32", 31)
    offset = b.binary("and", offset, whole)
    segment = b.binary("and", b.binary("lshr", clamp, constant("i32", 8)), whole)
    free = b.binary("xor", segment, whole)
    lowest = b.binary("and", lane, segment)
    highest = b.binary("or", lowest, b.binary("and", b.binary("and", clamp, whole), free))
    if mode == "idx":
        if segment.integer == 0 and not offset.vector and bounds is not None and bounds & 31 == 31:
            return gather_lanes(b, x, offset), constant("i1", 1)
        source = b.binary("or", lowest, b.binary("and", offset, free))
    else:
        source = b.binary({"up": "sub", "down": "add", "bfly": "xor"}[mode], lane, offset)
    inside = b.compare("icmp sge" if mode == "up" else "icmp sle", source, highest)
    return gather_lanes(b, x, b.select(inside, source, lane)), inside


def participants(b: Builder, mask: tuple[Value, ...]) -> Value:
    """The executing lanes that belong to the mask operand, as an i32 mask."""
    return b.binary("and", b.active_mask(), mask[0]) if mask else b.active_mask()


def vote_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    return OperandTypes((LLVM_TYPE[op.type],), ("i1", "i32")[:sources])


@instruction("vote", on="pred b32", modifiers="sync all any uni ballot", sources=(1, 2), types=vote_types)
def vote(b: Builder, op: Operation, predicate: Value, *mask: Value) -> Value:
    present = participants(b, mask)
    yes = b.binary("and", b.ballot(predicate), present)
    if op.has("ballot"):
        return yes
    none = b.compare("icmp eq", yes, constant("i32", 0))
    every = b.compare("icmp eq", yes, present)
    if op.has("all"):
        return every
    return b.binary("xor", none, constant("i1", 1)) if op.has("any") else b.binary("or", none, every)


@instruction("activemask", on="b32", sources=0)
def active_mask(b: Builder, op: Operation) -> Value:
    return b.active_mask()


def equal_lanes(b: Builder, x: Value) -> Value:
    """For each lane the i32 mask of all lanes with the same value, executing or not."""
    if not x.vector:
        return ALL_LANES

    def body(b: Builder, arguments: list[Value]) -> Value:
        (x,) = arguments
        result = constant("i32", 0)
        for lane in range(b.width):
            same = b.compare("icmp eq", x, shuffle_constant(b, x, [lane] * b.width))
            bit = b.select(same, constant("i32", 1 << lane), constant("i32", 0))
            result = b.binary("or", result, bit)
        return result

    return b.function(f"match.{x.type}", "i32", [x], body)


@instruction("match", on="b32 b64", modifiers="sync any all", sources=2, types=fixed("i32 i1", "T i32"))
def match(b: Builder, op: Operation, x: Value, mask: Value) -> Results:
    """The lanes with the same value; with ``all`` the whole mask, or nothing when any of them differs."""
    present = participants(b, (mask,))
    same = b.binary("and", equal_lanes(b, x), present)
    if op.has("any"):
        return same
    agree = b.compare("icmp eq", same, present)
    return b.select(agree, present, constant("i32", 0)), agree


REDUCTIONS: dict[str, tuple[str, int]] = {
    "add": ("add", 0),
    "and": ("and", -1),
    "or": ("or", 0),
    "xor": ("xor", 0),
    "umin": ("umin", -1),
    "umax": ("umax", 0),
    "smin": ("smin", 0x7FFFFFFF),
    "smax": ("smax", 0x80000000),
}
"""The reduction of llvm.vector.reduce and its neutral element."""


def reduce_lanes(b: Builder, name: str, x: Value, mask: Value, neutral: Value, join: Callable[..., Value]) -> Value:
    """Reduce over the executing lanes of the mask, in order from lane 0 when masks differ."""
    present = participants(b, (mask,))
    if not present.vector:
        members = b.spread(present)
        return b.reduce(name, b.select(members, b.splat(x), neutral))
    total = neutral
    x = b.splat(x)
    for lane in range(b.width):
        bit = b.binary("and", present, constant("i32", 1 << lane))
        member = b.compare("icmp ne", bit, constant("i32", 0))
        total = join(b, total, b.select(member, shuffle_constant(b, x, [lane] * b.width), neutral))
    return total


@instruction("redux", on="b32 u32 s32", modifiers="sync add min max and or xor", sources=2, types=fixed("T", "T i32"))
def redux(b: Builder, op: Operation, x: Value, mask: Value) -> Value:
    name = op.one_of("add", "min", "max", "and", "or", "xor")
    if name in ("min", "max"):
        name = ("s" if op.is_signed else "u") + name
    reduction, neutral = REDUCTIONS[name]

    def join(b: Builder, left: Value, right: Value) -> Value:
        return b.intrinsic(name, left, right) if name[1:] in ("min", "max") else b.binary(name, left, right)

    return reduce_lanes(b, reduction, x, mask, constant("i32", neutral), join)


@instruction("redux", on="f32", modifiers="sync min max abs NaN", sources=2, types=fixed("T", "T i32"))
def redux_float(b: Builder, op: Operation, x: Value, mask: Value) -> Value:
    """Minimum or maximum of floats. The neutral element is a NaN, or an infinity when NaNs win."""
    present = participants(b, (mask,))
    name = op.one_of("min", "max")
    plain = Operation(name, tuple(m for m in op.modifiers if m == "NaN"), ("f32",))
    if op.has("abs"):
        x = b.intrinsic("fabs", x)
    infinity = real("float", float("inf") if name == "min" else float("-inf"))
    total = infinity if op.has("NaN") else constant("float", 0x7FFFFFFF)
    neutral = total
    x = b.splat(x)
    for lane in range(b.width):
        bit = b.binary("and", present, constant("i32", 1 << lane))
        member = b.compare("icmp ne", bit, constant("i32", 0))
        total = extremum(b, plain, (total, b.select(member, b.lane(x, lane), neutral)))
    return canonical(b, total)


@instruction("elect", modifiers="sync", sources=1, types=fixed("i32 i1", "i32"))
def elect(b: Builder, op: Operation, mask: Value) -> Results:
    """The lowest lane of those that execute becomes the leader; its number, and true in that lane."""
    present = participants(b, (mask,))
    leader = b.intrinsic("cttz", present, "i1 false")
    return leader, b.compare("icmp eq", b.iota(), leader)
