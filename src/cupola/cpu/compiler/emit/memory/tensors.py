"""Tensor copies by tensor maps, and what changes the maps (PTX ISA, "cp.async.bulk.tensor",
"cp.reduce.async.bulk.tensor", "cp.async.bulk.prefetch.tensor", "tensormap.replace", "tensormap.cp_fenceproxy").

Helpers do the work, lane by lane (engine/tensor). The coordinates of a copy are in a buffer that has a row of all lanes
for each dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast

from .accessors import call_accessor, fault_unless_zero
from .addresses import address_of, space_of
from .memory import lane_addresses

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_RANKS = ("1d", "2d", "3d", "4d", "5d")
_IMAGES = frozenset(["im2col", "im2col_no_offs"])
_REDUCTIONS = ("", "add", "min", "max", "inc", "dec", "and", "or", "xor")
"""``enum reduction`` of engine/instructions/atomics.h."""

_FIELDS = (
    "global_address",
    "rank",
    "box_dim",
    "global_dim",
    "global_stride",
    "element_stride",
    "elemtype",
    "interleave_layout",
    "swizzle_mode",
    "fill_mode",
)
"""``enum field`` of engine/tensor/replace.c."""

_ORDINALS = {"box_dim": 5, "global_dim": 5, "global_stride": 4, "element_stride": 5}
_CONSTANTS = {"elemtype": 13, "interleave_layout": 3, "swizzle_mode": 4, "fill_mode": 2}
"""Fields whose value is a constant, and how many there are in compute capability 9.0."""

_MAP_BYTES = 128
_BLACKWELL = frozenset(
    ["tile::gather4", "tile::scatter4", "im2col::w", "im2col::w::128", "cta_group::1", "cta_group::2"]
)


# --- what is supported --------------------------------------------------------------------------------------------


def problem_with_copy(instruction: ast.Instruction) -> str | None:
    """Why a tensor copy cannot be run, or None."""
    modifiers = instruction.modifiers
    if newer := sorted(_BLACKWELL.intersection(modifiers)):
        return f"'.{newer[0]}' needs compute capability 10.0"
    rank = _rank(modifiers)
    operands = list(instruction.operands)
    address = next((o for o in operands if isinstance(o, ast.AddressList)), None)
    if address is None or len(address.items) != 2 or not isinstance(address.items[1], ast.Vector):
        return "it takes a tensor map with coordinates, such as [map, {x, y}]"
    if len(address.items[1].items) != rank:
        return f"it takes {rank} coordinate{'s' * (rank > 1)}, not {len(address.items[1].items)}"
    if not _IMAGES.isdisjoint(modifiers) and rank < 3:
        return "images have 3 dimensions or more"
    if "im2col" in modifiers:
        offsets = next((o for o in operands if isinstance(o, ast.Vector)), None)
        if offsets is None or len(offsets.items) != rank - 2:
            return f"it takes {rank - 2} offset{'s' * (rank > 3)} of pixels"
    return None


def problem_with_map(instruction: ast.Instruction) -> str | None:
    """Why a tensor map cannot be changed or copied so, or None."""
    operands = instruction.operands
    if "cp_fenceproxy" in instruction.modifiers:
        size = operands[2]
        return None if size == ast.Immediate(_MAP_BYTES) else f"it copies {_MAP_BYTES} bytes"
    field = _field(instruction.modifiers)
    if not field:
        return "'.swizzle_atomicity' needs compute capability 10.0"
    expected = 3 if field in _ORDINALS else 2
    if len(operands) != expected:
        return f"'.{field}' takes {expected} operands"
    if field in _ORDINALS and not _is_constant(operands[1], _ORDINALS[field]):
        return f"the ordinal of '.{field}' is a constant from 0 to {_ORDINALS[field] - 1}"
    if field in _CONSTANTS and not _is_constant(operands[1], _CONSTANTS[field]):
        return f"the value of '.{field}' is a constant from 0 to {_CONSTANTS[field] - 1}"
    return None


def _is_constant(operand: ast.Operand, count: int) -> bool:
    return isinstance(operand, ast.Immediate) and operand.kind == "int" and 0 <= operand.value < count


def _field(modifiers: Sequence[str]) -> str:
    return next((modifier for modifier in modifiers if modifier in _FIELDS), "")


def _rank(modifiers: Sequence[str]) -> int:
    return next(1 + _RANKS.index(modifier) for modifier in modifiers if modifier in _RANKS)


# --- copies -------------------------------------------------------------------------------------------------------


def copy(body: Body, instruction: ast.Instruction) -> None:
    """``cp.async.bulk.tensor``, ``cp.reduce.async.bulk.tensor`` and ``cp.async.bulk.prefetch.tensor``."""
    modifiers, operands = instruction.modifiers, list(instruction.operands)
    prefetches = "prefetch" in modifiers
    loads = not prefetches and "mbarrier::complete_tx::bytes" in modifiers
    place, tensor = (None, operands[0]) if prefetches else operands[:2] if loads else (operands[1], operands[0])
    assert isinstance(tensor, ast.AddressList) and isinstance(tensor.items[1], ast.Vector)
    reduction = next((m for m in modifiers if m in _REDUCTIONS[1:]), "") if modifiers[0] == "reduce" else ""
    request = _rank(modifiers) | (not _IMAGES.isdisjoint(modifiers)) << 8 | _REDUCTIONS.index(reduction) << 16
    site = _site(body, instruction, "global", 1, write=not (loads or prefetches))
    maps = body.spill("maps", _map(body, tensor.items[0]))
    coordinates = _rows(body, "coordinates", [body.operand(item, "i32") for item in tensor.items[1].items])
    if place is None:
        status = call_accessor(
            body, "cupola_tensor_prefetch", "i32", site, f"i32 {request}", f"ptr {maps}", f"ptr {coordinates}"
        )
        fault_unless_zero(body, status)
        return
    box = _site(body, instruction, "cluster", 16, write=loads)
    arguments = [
        f"i64 {box}",
        f"i32 {request}",
        f"ptr {lane_addresses(body, address_of(body, place, 'cluster'), 'boxes')}",
        f"ptr {maps}",
        f"ptr {coordinates}",
    ]
    if loads:
        rest = operands[3:]
        offsets = "null"
        if "im2col" in modifiers:
            vector = rest.pop(0)
            assert isinstance(vector, ast.Vector)
            offsets = _rows(body, "offsets", [_sixteen(body, item) for item in vector.items])
        ranks = body.spill("ranks", _sixteen(body, rest[0])) if "multicast::cluster" in modifiers else "null"
        barriers = lane_addresses(body, address_of(body, operands[2], "cluster"), "barriers")
        arguments += [f"ptr {offsets}", f"ptr {barriers}", f"ptr {ranks}"]
    fault_unless_zero(
        body, call_accessor(body, f"cupola_tensor_{'load' if loads else 'store'}", "i32", site, *arguments)
    )


def _site(body: Body, instruction: ast.Instruction, space: str, size: int, *, write: bool) -> int:
    number = body.new_site(instruction, space, size, write=write)
    return abi.pack_site(number, size, size, space, write=write, contiguous=False)


def _map(body: Body, operand: ast.Operand) -> Value:
    """The generic address of a tensor map."""
    address = operand if isinstance(operand, ast.Address) else ast.Address(operand)  # type: ignore[arg-type]
    return address_of(body, address, "generic")


def _sixteen(body: Body, operand: ast.Operand) -> Value:
    return body.builder.cast("zext", body.operand(operand, "i16"), "i32")


def _rows(body: Body, name: str, values: Sequence[Value]) -> str:
    """A buffer with a row of all lanes for each value of 32 bits."""
    buffer = body.scratch(name, 4 * len(values))
    for row, value in enumerate(values):
        at = body.builder.emit(f"getelementptr i8, ptr {buffer}, i64 {4 * row * body.width}")
        body.builder.line(f"store {body.builder.typed(body.builder.splat(value))}, ptr {at}, align 4")
    return buffer


# --- maps ---------------------------------------------------------------------------------------------------------


@lowers("tensormap.cp_fenceproxy", objection=problem_with_map)
def publish(body: Body, instruction: ast.Instruction) -> None:
    """``tensormap.cp_fenceproxy``: the copy; there is one proxy only."""
    to, source, _ = instruction.operands
    arguments = [
        f"i64 {_site(body, instruction, 'cluster', 16, write=False)}",
        f"ptr {lane_addresses(body, address_of(body, to, 'global'), 'to')}",
        f"ptr {lane_addresses(body, address_of(body, source, 'cluster'), 'from')}",
    ]
    site = _site(body, instruction, "global", 16, write=True)
    fault_unless_zero(body, call_accessor(body, "cupola_tensor_publish", "i32", site, *arguments))


@lowers("tensormap", objection=problem_with_map)
def replace(body: Body, instruction: ast.Instruction) -> None:
    """``tensormap.replace``."""
    address, *numbers = instruction.operands
    field = _field(instruction.modifiers)
    ordinal = numbers[0].value if field in _ORDINALS and isinstance(numbers[0], ast.Immediate) else 0
    space = "cluster" if space_of(instruction) == "shared" else space_of(instruction)
    value = body.operand(numbers[-1], "i64" if "b64" in instruction.modifiers else "i32")
    values = body.spill("values", body.builder.cast("zext", value, "i64") if value.type == "i32" else value)
    maps = lane_addresses(body, address_of(body, address, space), "maps")
    site = _site(body, instruction, space, 16, write=True)
    status = call_accessor(
        body,
        "cupola_tensor_replace",
        "i32",
        site,
        f"i32 {_FIELDS.index(field) | ordinal << 8}",
        f"ptr {maps}",
        f"ptr {values}",
    )
    fault_unless_zero(body, status)
