"""Special registers (PTX ISA, "Special Registers"). Those that nothing sets here read as zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.patterns import Pattern
from cupola.cpu.compiler.emit.values.values import Affine, Value
from cupola.cpu.compiler.ptx import ast

from .layout import SHARED_RESERVED

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_CONTEXT_FIELDS = {"dynamic_smem_size": "dynamic_shared"} | {
    name: name for name in ("cluster_ctarank", "cluster_nctarank", "is_explicit_cluster", "nsmid")
}
_CONTEXT_VECTORS = frozenset(["ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"])

_SHARED_LOT = 128
"""Bytes: shared memory is given out in multiples of it."""

_RESERVED = {"begin": 0, "0": 0, "1": 128, "end": SHARED_RESERVED}
"""Where in the memory that is reserved for the system the registers %reserved_smem_offset_<name> point."""


def read_special(body: Body, special: ast.Special) -> Value:
    """The value of a special register, as an i32 or i64."""
    name, component = special.name.lstrip("%"), special.component
    if component == "w" or (component is None and (name == "tid" or name in _CONTEXT_VECTORS)):
        return constant("i32", 0)
    if name == "tid":
        return _thread_index(body, component or "x")
    if name in _CONTEXT_VECTORS:
        return body.context_field(f"{name}.{component}")
    if name in _CONTEXT_FIELDS:
        return body.context_field(_CONTEXT_FIELDS[name])
    if name in ("total_smem_size", "aggr_smem_size"):
        return _shared_size(body, with_reserved=name == "aggr_smem_size")
    if name == "current_graph_exec":
        return body.context_field("current_graph", "i64")
    if name == "reserved_smem_offset_cap":
        return constant("i32", SHARED_RESERVED)
    if name.startswith("reserved_smem_offset_"):  # behind the program's own
        place = constant("i32", _RESERVED[name.removeprefix("reserved_smem_offset_")] - SHARED_RESERVED)
        return body.at_entry(name, lambda b: b.binary("add", body.context_field("shared_size"), place))
    if name == "gridid":
        return body.context_field("grid_id", "i64")
    if name in ("envreg1", "envreg2"):  # where cooperative groups find the address of the grid's barrier
        half = constant("i64", 32 if name == "envreg1" else 0)
        workspace = body.context_field("grid_workspace", "i64")
        return body.at_entry(name, lambda b: b.cast("trunc", b.binary("lshr", workspace, half), "i32"))
    if name == "smid":
        return body.context_field("multiprocessor")
    if name in ("laneid", "warpid", "nwarpid") or name.startswith("lanemask_"):
        return _WARP_REGISTERS[name](body)
    if name.startswith(("clock", "globaltimer")):
        return _clock(body, name)
    return constant("i64" if name.endswith("_64") else "i32", 0)  # %pm and other %envreg, which nothing sets


def _shared_size(body: Body, *, with_reserved: bool) -> Value:
    def size(b: Builder) -> Value:
        most = constant("i32", body.layout.static_shared + _SHARED_LOT - 1)
        whole = b.binary("add", body.context_field("dynamic_shared"), most)
        lots = b.binary("and", whole, constant("i32", -_SHARED_LOT))
        return b.binary("add", lots, constant("i32", SHARED_RESERVED)) if with_reserved else lots

    return body.at_entry(f"shared size {with_reserved}", size)


def _thread_index(body: Body, component: str) -> Value:
    builder = body.builder
    if component == "x" and body.counts_units:
        return Value("%unit.number", "i32")
    if body.width == 1 or (body.shape.contiguous and component != "x"):
        return body.warp_field(f"tid.{component}")
    if body.shape.contiguous:
        first = body.warp_field("tid.x")

        def count_up(b: Builder) -> Value:
            vector = b.binary("add", b.splat(first), b.iota())
            return _line_of_lanes(body, vector, first, body.shape.largest_x)

        return body.at_entry("tid.x of each lane", count_up)

    def load(b: Builder) -> Value:
        table = body.context_field(f"thread_ids.{component}", "ptr")
        first = body.warp_field("first")
        address = b.emit(f"getelementptr i32, ptr {table.ir}, i32 {first.ir}")
        return Value(b.emit(f"load {builder.vector_type('i32')}, ptr {address}, align 4"), "i32", True)

    return body.at_entry(f"tid.{component} of each lane", load)


def _lane(body: Body) -> Value:
    """The lane in the warp, of which a narrow unit is a part."""
    if body.width == 32:
        return body.builder.iota()

    def lane(b: Builder) -> Value:
        first = b.binary("and", body.warp_field("first"), constant("i32", 31))
        if body.width == 1:
            return first
        vector = b.binary("add", b.splat(first), b.iota())
        return _line_of_lanes(body, vector, first, 31)

    return body.at_entry("laneid", lane)


def _line_of_lanes(body: Body, vector: Value, first: Value, largest: int) -> Value:
    """Numbers of threads; that of lane 0 is a multiple of the width."""
    pattern = Pattern(first.ir, tuple(range(body.width)), largest & -body.width)
    return Value(vector.ir, vector.type, True, Affine(first.ir, 1), pattern=pattern)


def _warp(body: Body) -> Value:
    return body.at_entry("warpid", lambda b: b.binary("lshr", body.warp_field("first"), constant("i32", 5)))


def _warp_count(body: Body) -> Value:
    def count(b: Builder) -> Value:
        x, y, z = (body.context_field(f"ntid.{c}") for c in "xyz")
        threads = b.binary("mul", b.binary("mul", x, y), z)
        return b.binary("lshr", b.binary("add", threads, constant("i32", 31)), constant("i32", 5))

    return body.at_entry("nwarpid", count)


def _lane_mask(body: Body, *, below: bool, above: bool, itself: bool) -> Value:
    def mask(b: Builder) -> Value:
        bit = b.binary("shl", constant("i32", 1), Value(_lane(body).ir, "i32", _lane(body).vector))
        lower = b.binary("sub", bit, constant("i32", 1))
        result = bit if itself else constant("i32", 0)
        if below:
            result = b.binary("or", result, lower)
        if above:
            upper = b.binary("xor", b.binary("or", lower, bit), constant("i32", -1))
            result = b.binary("or", result, upper)
        return result

    return body.at_entry(f"lanemask {below} {above} {itself}", mask)


_WARP_REGISTERS: dict[str, Callable[[Body], Value]] = {
    "laneid": _lane,
    "warpid": _warp,
    "nwarpid": _warp_count,
    "lanemask_eq": lambda body: _lane_mask(body, below=False, above=False, itself=True),
    "lanemask_lt": lambda body: _lane_mask(body, below=True, above=False, itself=False),
    "lanemask_le": lambda body: _lane_mask(body, below=True, above=False, itself=True),
    "lanemask_gt": lambda body: _lane_mask(body, below=False, above=True, itself=False),
    "lanemask_ge": lambda body: _lane_mask(body, below=False, above=True, itself=True),
}


def _clock(body: Body, name: str) -> Value:
    """Cycles of the modeled GPU, or nanoseconds."""
    builder = body.builder
    helper = "cupola_clock" if name.startswith("globaltimer") else "cupola_cycles"
    builder.declarations[f"declare i64 @{helper}()"] = None
    now = Value(builder.emit(f"call i64 @{helper}()"), "i64")
    if name in ("clock64", "globaltimer"):
        return now
    if name.endswith("_hi"):
        now = builder.binary("lshr", now, constant("i64", 32))
    return builder.cast("trunc", now, "i32")
