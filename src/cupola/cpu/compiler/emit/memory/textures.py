"""Textures and surfaces (PTX ISA 9.7.10, "tex", "tld4", "txq", "istypep"; 9.7.11, "suld", "sust", "sured", "suq").

Helpers do the work, lane by lane (engine/texture/{texture,surface}.c). They get the objects and the coordinates of all
lanes in buffers, in which each number has a row with one element for each lane, and leave results in the same way.

An object is 64 bits: what a register holds, or what lies in the memory of a ``.texref`` or ``.surfref`` variable and of
a parameter that is named in its place. In the unified mode, the only one, the sampler belongs to the texture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

from . import atomics
from .accessors import call_accessor

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_GEOMETRIES = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube")
"""In the order of ``enum geometry``."""

_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3}
"""Coordinates beside the layer, which comes first."""

_LAYERED = frozenset(["a1d", "a2d", "acube"])

_LEVEL_MODES = ("base", "level", "grad")
_FLOAT, _OFFSET, _COMPARE, _HALF = 1, 2, 4, 8
_ROW_LAYER, _ROW_AT, _ROW_LEVEL, _ROW_DX, _ROW_DY, _ROW_OFFSET, _ROW_COMPARE, _ROWS = 0, 1, 4, 4, 7, 10, 13, 14
"""``enum row`` of engine/texture/texture.c."""

_QUERIES = {
    "width": 0,
    "height": 1,
    "depth": 2,
    "channel_data_type": 3,
    "channel_order": 4,
    "normalized_coords": 5,
    "array_size": 6,
    "num_mipmap_levels": 7,
    "num_samples": 8,
    "force_unnormalized_coords": 9,
    "filter_mode": 10,
    "addr_mode_0": 11,
    "addr_mode_1": 12,
    "addr_mode_2": 13,
    "memory_layout": 14,
}
"""``enum query`` of engine/texture/texture.c."""

OPCODES = frozenset(["tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq"])

_BOUNDS = ("trap", "clamp", "zero")
_TYPES = frozenset(["u16", "s16", "u32", "s32", "u64", "s64", "b8", "b16", "b32", "b64", "f16", "f16x2", "f32"])
_OPERATIONS = ("add", "min", "max", "and", "or")
_LARGEST = 16  # bytes of a surface access


# --- what is supported --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The operands of ``tex`` and ``tld4``; offsets and the reference of a comparison may be missing."""

    geometry: str
    results: tuple[ast.Operand, ...]
    predicate: ast.Operand
    object: ast.Operand
    coordinates: tuple[ast.Operand, ...]
    level: str
    levels: tuple[ast.Operand, ...]
    offsets: tuple[ast.Operand, ...]
    compare: ast.Operand | None

    @classmethod
    def of(cls, instruction: ast.Instruction) -> _Lookup:
        destination, address, *rest = instruction.operands
        first: ast.Operand = destination
        second: ast.Operand = ast.Sink()
        if isinstance(destination, ast.Pair):
            first, second = destination.first, destination.second
        names = address.items if isinstance(address, ast.AddressList) else ()
        level = next((m for m in instruction.modifiers if m in _LEVEL_MODES), "base")
        taken = _LEVEL_MODES.index(level)
        levels, rest = rest[:taken], rest[taken:]
        offsets: tuple[ast.Operand, ...] = ()
        if rest and (isinstance(rest[0], ast.Vector) or len(rest) > 1):
            offsets, rest = _items(rest[0]), rest[1:]
        if rest and not isinstance(rest[0], ast.Vector) and _is_integer(instruction):
            offsets, rest = _items(rest[0]), rest[1:]  # a single offset may lack its braces
        return cls(
            geometry=next(m for m in instruction.modifiers if m in _DIMENSIONS or m.endswith("2dms")),
            results=_items(first),
            predicate=second,
            object=names[0] if names else ast.Sink(),
            coordinates=_items(names[-1]) if names else (),
            level=level,
            levels=tuple(levels),
            offsets=offsets,
            compare=rest[0] if rest else None,
        )


def _types(instruction: ast.Instruction) -> list[str]:
    """The types in the name of an instruction: of a texture's results and coordinates, or of a surface's elements."""
    return [m for m in instruction.modifiers if m in _TYPES]


def _items(operand: ast.Operand) -> tuple[ast.Operand, ...]:
    return operand.items if isinstance(operand, ast.Vector) else (operand,)


def _is_integer(instruction: ast.Instruction) -> bool:
    """Whether the coordinates of a texture are integers, which knows no comparison."""
    return _types(instruction)[-1] == "s32"


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why a texture or surface instruction cannot be run, or None."""
    opcode = instruction.opcode
    if opcode in ("tex", "tld4"):
        return _problem_with_lookup(instruction)
    if opcode in ("suld", "sust", "sured"):
        return _problem_with_surface(instruction)
    if opcode in ("txq", "suq"):
        operand = instruction.operands[1]
        if not isinstance(operand, ast.Address) or operand.base is None or operand.offset:
            return "it takes one texture, sampler or surface, without an offset"
    return None


def _problem_with_names(instruction: ast.Instruction, operand: ast.Operand, geometry: str) -> str | None:
    """What is wrong with a list of an object and coordinates."""
    if geometry.endswith("2dms"):
        return "CUDA has no multisample arrays"
    if not isinstance(operand, ast.AddressList) or len(operand.items) < 2:
        return "it takes an object and coordinates"
    if len(operand.items) > 2:
        return "separate samplers are not supported (independent texture mode): drivers load no module with one"
    if not isinstance(operand.items[0], ast.Register | ast.Symbol):
        return "a texture or surface is named by a register or a variable, without an offset"
    wanted = _DIMENSIONS[geometry] + (geometry in _LAYERED)
    given = len(_items(operand.items[1]))
    return None if given >= wanted else f"'.{geometry}' takes {wanted} coordinates, not {given}"


def _problem_with_lookup(instruction: ast.Instruction) -> str | None:
    modifiers, lookup = instruction.modifiers, _Lookup.of(instruction)
    problem = _problem_with_names(instruction, instruction.operands[1], lookup.geometry)
    if problem is not None:
        return problem
    if "s16" in modifiers or "u16" in modifiers:
        return "textures have no results of 16-bit integers"
    if ("v2" in modifiers) != ("f16x2" in modifiers):
        return "results of '.f16x2' come as '.v2', all others as '.v4'"
    wanted = 2 if "f16x2" in modifiers else 4
    if len(lookup.results) != wanted:
        return f"it gives {wanted} values, but names {len(lookup.results)}"
    on_cube = lookup.geometry.endswith("cube")
    if on_cube and _is_integer(instruction):
        return "directions into a cubemap are floats"
    count = _DIMENSIONS[lookup.geometry]
    if lookup.level == "grad":
        short = min((len(_items(vector)) for vector in lookup.levels), default=0)
        if len(lookup.levels) != 2 or short < count:
            return f"it takes two gradients of {count} numbers"
        if _is_integer(instruction):
            return "gradients go with coordinates that are floats"
    elif lookup.level == "level" and (not lookup.levels or isinstance(lookup.levels[0], ast.Vector)):
        return "it takes a level"
    if lookup.offsets and on_cube:
        return "cubemaps take no offsets"
    if lookup.offsets and len(lookup.offsets) < min(count, 3):
        return f"'.{lookup.geometry}' takes {count} offsets, not {len(lookup.offsets)}"
    if lookup.compare is not None and (lookup.geometry == "3d" or _is_integer(instruction)):
        return "depth comparisons go with coordinates that are floats, in up to two dimensions"
    if isinstance(lookup.compare, ast.Vector):
        return "a depth comparison takes one number"
    return None


def _problem_with_surface(instruction: ast.Instruction) -> str | None:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    at = 1 if opcode == "suld" else 0
    geometry = next(m for m in modifiers if m in _DIMENSIONS or m.endswith("2dms"))
    problem = _problem_with_names(instruction, instruction.operands[at], geometry)
    if problem is not None:
        return problem
    if geometry.endswith("cube"):
        return f"surfaces have no '.{geometry}': the faces of cubemaps are layers, '.a2d'"
    (type,) = _types(instruction)
    if opcode == "sured":
        return _problem_with_reduction(instruction, geometry, type)
    count = next((int(m[1:]) for m in modifiers if m in ("v2", "v4")), 1)
    if "v8" in modifiers or type[0] != "b" or count * int(type[1:]) // 8 > _LARGEST:
        return "it moves up to 128 bits, as one, two or four elements of '.b8' to '.b64'"
    if "p" in modifiers and (opcode == "suld" or type != "b32"):
        return "only stores are formatted, from elements of '.b32'"
    given = len(_items(instruction.operands[1 - at]))
    return None if given == count else f"it is for {count} values, but names {given}"


def _problem_with_reduction(instruction: ast.Instruction, geometry: str, type: str) -> str | None:
    formatted = "p" in instruction.modifiers
    operation = next(m for m in instruction.modifiers if m in _OPERATIONS)
    if geometry in _LAYERED:
        return "reductions know no layers"
    types = {"add": "u32 u64 s32", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64", "and": "b32", "or": "b32"}
    if formatted:
        types = dict.fromkeys(types, "b32") | dict.fromkeys(("min", "max"), "b32 b64")
    if type not in types[operation].split():
        return f"'sured.{'p' if formatted else 'b'}.{operation}' is not for the type '{type}'"
    return None if len(_items(instruction.operands[1])) == 1 else "it takes one value"


# --- buffers ------------------------------------------------------------------------------------------------------


def _object(body: Body, operand: ast.Operand) -> Value:
    """The 64 bits that name a texture or surface."""
    if isinstance(operand, ast.Address) and operand.base is not None:
        operand = operand.base
    if isinstance(operand, ast.Symbol):
        return body.opaque(operand)
    return body.operand(operand, "i64")


def _bits(body: Body, operand: ast.Operand, *, is_float: bool) -> Value:
    if is_float:
        return body.builder.bitcast(body.operand(operand, "float"), "i32")
    return body.operand(operand, "i32")


def _row(body: Body, buffer: str, row: int, type: str) -> str:
    """Where a row of elements begins."""
    return body.builder.emit(f"getelementptr i8, ptr {buffer}, i64 {row * body.width * BITS[type] // 8}")


def _alignment(body: Body, type: str) -> int:
    return min(64, body.width * BITS[type] // 8)


def _store_rows(body: Body, buffer: str, rows: dict[int, Value]) -> None:
    for row, value in rows.items():
        lanes = body.builder.splat(value)
        at = _row(body, buffer, row, value.type)
        body.builder.line(f"store {body.builder.typed(lanes)}, ptr {at}, align {_alignment(body, value.type)}")


def _load_row(body: Body, buffer: str, row: int, type: str) -> Value:
    at = _row(body, buffer, row, type)
    vector = body.builder.vector_type(type)
    text = f"load {vector}, ptr {at}, align {_alignment(body, type)}"
    return Value(body.builder.emit(text), type, body.width > 1)


def _call(body: Body, instruction: ast.Instruction, name: str, size: int, *arguments: str, write: bool = False) -> None:
    """Call a helper for the lanes that run; leaves the body when it has raised a fault."""
    site = body.new_site(instruction, "global", size, write=write)
    packed = abi.pack_site(site, size, size, "global", write=write, contiguous=False)
    status = call_accessor(body, name, "i32", packed, *arguments)
    body.control.fault_if(body.builder.emit(f"icmp ne i32 {status}, 0"))


# --- textures -----------------------------------------------------------------------------------------------------


@lowers("tex", "tld4", objection=problem_with)
def lookup(body: Body, instruction: ast.Instruction) -> None:
    """``tex`` and ``tld4``."""
    builder, modifiers, found = body.builder, instruction.modifiers, _Lookup.of(instruction)
    is_float = not _is_integer(instruction)
    rows = _coordinates(body, found.geometry, found.coordinates, is_float=is_float)
    if found.level == "level":
        rows[_ROW_LEVEL] = _bits(body, found.levels[0], is_float=is_float)
    elif found.level == "grad":
        for first, vector in zip((_ROW_DX, _ROW_DY), found.levels, strict=True):
            rows |= _vector(body, first, _items(vector)[: _DIMENSIONS[found.geometry]], is_float=True)
    rows |= _vector(body, _ROW_OFFSET, found.offsets[:3], is_float=False)
    if found.compare is not None:
        rows[_ROW_COMPARE] = _bits(body, found.compare, is_float=True)
    buffer = body.scratch("texture operands", 4 * _ROWS)
    results = body.scratch("texture results", 4 * 4)
    zero = constant("i32", 0)
    given = {row: zero for row in range(_ROW_AT + 3)} | {_ROW_OFFSET + i: zero for i in range(3) if found.offsets}
    if found.level == "grad":
        given |= {row: zero for row in range(_ROW_DX, _ROW_OFFSET)}
    _store_rows(body, buffer, given | rows)
    is_half = _types(instruction)[0] in ("f16", "f16x2")
    flags = is_float * _FLOAT | bool(found.offsets) * _OFFSET | (found.compare is not None) * _COMPARE | is_half * _HALF
    gather = next((1 + i for i, component in enumerate("rgba") if component in modifiers), 0)
    packed = _GEOMETRIES.index(found.geometry) | _LEVEL_MODES.index(found.level) << 8 | flags << 16 | gather << 24
    objects = body.spill("objects", _object(body, found.object))
    _call(
        body,
        instruction,
        "cupola_texture_sample",
        4,
        f"i64 {packed}",
        f"ptr {objects}",
        f"ptr {buffer}",
        f"ptr {results}",
    )
    values = [_load_row(body, results, row, "i32") for row in range(4)]
    if "f16" in modifiers:
        values = [builder.cast("trunc", value, "i16") for value in values]
    if "f16x2" in modifiers:
        sixteen = constant("i32", 16)
        values = [builder.binary("or", a, builder.binary("shl", b, sixteen)) for a, b in (values[:2], values[2:])]
    for destination, value in zip(found.results, values, strict=True):
        body.write(destination, value)
    body.write(found.predicate, constant("i1", 1))  # there are no sparse arrays: all texels are resident


def _coordinates(body: Body, geometry: str, operands: Sequence[ast.Operand], *, is_float: bool) -> dict[int, Value]:
    rows: dict[int, Value] = {}
    if geometry in _LAYERED:
        rows[_ROW_LAYER] = body.operand(operands[0], "i32")
        operands = operands[1:]
    return rows | _vector(body, _ROW_AT, operands[: _DIMENSIONS[geometry]], is_float=is_float)


def _vector(body: Body, first: int, operands: Sequence[ast.Operand], *, is_float: bool) -> dict[int, Value]:
    return {first + index: _bits(body, item, is_float=is_float) for index, item in enumerate(operands)}


@lowers("txq", "suq", objection=problem_with)
def query(body: Body, instruction: ast.Instruction) -> None:
    """``txq`` and ``suq``."""
    destination, address, *levels = instruction.operands
    name = next(m for m in instruction.modifiers if m in _QUERIES)
    object = _object(body, address)
    level = body.operand(levels[0], "i32") if levels else constant("i32", 0)
    results = body.scratch("texture results", 4 * 4)
    _call(
        body,
        instruction,
        "cupola_texture_query",
        4,
        f"i32 {_QUERIES[name]}",
        f"i32 {int(instruction.opcode == 'suq')}",
        f"ptr {body.spill('objects', object)}",
        f"ptr {body.spill('levels', level)}" if levels else "ptr null",
        f"ptr {results}",
    )
    value = _load_row(body, results, 0, "i32")
    if not (object.vector or level.vector):
        value = body.builder.lane(value, body.control.first_lane())
    body.write(destination, value)


@lowers("istypep", objection=problem_with)
def is_type(body: Body, instruction: ast.Instruction) -> None:
    """``istypep``: there are no samplers."""
    destination, source = instruction.operands
    if "samplerref" in instruction.modifiers:
        body.write(destination, constant("i1", 0))
        return
    builder, object = body.builder, body.operand(source, "i64")
    is_surface = constant("i32", int("surfref" in instruction.modifiers))
    found = builder.helper("cupola_is_object", "i32", object, is_surface)
    body.write(destination, builder.compare("icmp ne", found, constant("i32", 0)))


# --- surfaces -----------------------------------------------------------------------------------------------------


@lowers("suld", "sust", "sured", objection=problem_with)
def surface(body: Body, instruction: ast.Instruction) -> None:
    """``suld``, ``sust`` and ``sured``."""
    modifiers, is_load = instruction.modifiers, instruction.opcode == "suld"
    *_, address, others = instruction.operands if not is_load else instruction.operands[::-1]
    assert isinstance(address, ast.AddressList)
    geometry = next(m for m in modifiers if m in _DIMENSIONS)
    type = f"i{_types(instruction)[0][1:]}"
    size, items = BITS[type] // 8, _items(others)
    packed = (
        _GEOMETRIES.index(geometry)
        | next(i for i, bounds in enumerate(_BOUNDS) if bounds in modifiers) << 8
        | size << 16
        | len(items) << 24
        | ("p" in modifiers) << 32
    )
    coordinates = body.scratch("surface coordinates", 4 * 4)
    rows = _coordinates(body, geometry, _items(address.items[1]), is_float=False)
    _store_rows(body, coordinates, {row: constant("i32", 0) for row in range(_ROW_AT + 3)} | rows)
    objects = body.spill("objects", _object(body, address.items[0]))
    elements = body.scratch("surface elements", _LARGEST)
    arguments = [f"i64 {packed}", f"ptr {objects}", f"ptr {coordinates}", f"ptr {elements}"]
    if is_load:
        _call(body, instruction, "cupola_surface_load", size, *arguments)
        for index, item in enumerate(items):
            body.write(item, _load_row(body, elements, index, type))
        return
    _store_rows(body, elements, {index: body.operand(item, type) for index, item in enumerate(items)})
    name = "cupola_surface_store"
    if instruction.opcode == "sured":
        name = "cupola_surface_reduce"
        arguments += [f"ptr @{_reduction(body, instruction, kind)}" for kind in "us"]
    _call(body, instruction, name, size, *arguments, write=True)


def _reduction(body: Body, instruction: ast.Instruction, kind: str) -> str:
    """The helper for the atomic operation, in a formatted one for channels that are unsigned or signed integers."""
    operation = next(m for m in instruction.modifiers if m in _OPERATIONS)
    (type,) = _types(instruction)
    if "p" in instruction.modifiers and operation not in ("and", "or"):
        type = f"{kind}{type[1:]}"
    name = atomics.helper_of(operation, type, "atomic")
    body.builder.declarations[f"declare i32 @{name}(ptr, ptr, ptr, ptr, i64, i32, ptr, ptr, ptr, ptr)"] = None
    return name
