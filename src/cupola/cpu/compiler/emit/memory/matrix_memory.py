"""Matrices between memory and registers (PTX ISA, "wmma.load", "wmma.store", "ldmatrix", "stmatrix").

The work is done by helpers (engine/instructions/matrix.c), which get the fragment as a buffer with the registers one
after the other. Threads of the warp meet at these instructions (see meetings.py), so all 32 lanes run them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.instructions import supported
from cupola.cpu.compiler.emit.instructions.fragments import ELEMENT_BITS, Fragment, Product, products
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast

from .accessors import call_accessor
from .addresses import address_of, space_of
from .memory import lane_addresses

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_NEWER = frozenset(["b8", "b8x16", "m16n16", "m8n16", "m16n8"])
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_SHAPES = tuple(products("wmma"))


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why a load or store of a matrix cannot be run, or None."""
    modifiers = instruction.modifiers
    if instruction.opcode == "wmma":
        return supported(instruction) if "mma" in modifiers else _problem_with_fragment(instruction)
    newer = next((m for m in modifiers if m in _NEWER), None)
    if newer is not None:
        return f"'.{newer}' needs compute capability 10.0a, which the CPU device does not have"
    count = next(_COUNTS[m] for m in modifiers if m in _COUNTS)
    registers = instruction.operands[0 if instruction.opcode == "ldmatrix" else 1]
    given = len(registers.items) if isinstance(registers, ast.Vector) else 1
    return None if given == count else f"'.x{count}' takes {count} registers, not {given}"


def _problem_with_fragment(instruction: ast.Instruction) -> str | None:
    modifiers = instruction.modifiers
    shape = next(m for m in modifiers if m in _SHAPES)
    type = next(m for m in modifiers if m in ELEMENT_BITS)
    role = _role(instruction)
    matches = [p for p in products("wmma")[shape] if p["dabc".index(role)] == type]
    if not matches:
        return f"shape '.{shape}' has no matrix {role.upper()} of '.{type}'"
    along = ("row" if role != "b" else "col") in modifiers
    if not along and ELEMENT_BITS[type] < 8:
        return f"a matrix {role.upper()} of '.{type}' is stored by {'columns' if role == 'b' else 'rows'}"
    wanted = Product(shape, matches[0], is_wmma=True).registers(role)
    vector = instruction.operands[1 if role == "d" else 0]
    given = len(vector.items) if isinstance(vector, ast.Vector) else 1
    return None if given == wanted else f"the fragment has {wanted} registers, not {given}"


def _role(instruction: ast.Instruction) -> str:
    return next(m for m in instruction.modifiers if m in ("a", "b", "c", "d"))


@lowers("wmma", objection=problem_with)
def wmma(body: Body, instruction: ast.Instruction) -> None:
    """``wmma.load``, ``wmma.store`` and ``wmma.mma``."""
    if "mma" in instruction.modifiers:
        body.values(instruction)
    else:
        _move_fragment(body, instruction)


def _move_fragment(body: Body, instruction: ast.Instruction) -> None:
    modifiers, builder = instruction.modifiers, body.builder
    role = _role(instruction)
    is_store = role == "d"
    shape = next(m for m in modifiers if m in _SHAPES)
    type = next(m for m in modifiers if m in ELEMENT_BITS)
    types = next(p for p in products("wmma")[shape] if p["dabc".index(role)] == type)
    product = Product(shape, types, is_wmma=True)
    fragment = product.fragment(role)
    along = ("row" if role != "b" else "col") in modifiers
    m, n, k = product.size
    line, beside = (n, m) if role in "cd" else (k, m if role == "a" else n)
    bits = ELEMENT_BITS[type]
    if len(instruction.operands) > 2:
        elements = builder.cast("zext", body.operand(instruction.operands[2], "i32"), "i64")
    else:
        elements = constant("i64", line if along else beside)
    pitch = builder.binary("mul", elements, constant("i64", bits))
    pitch = builder.binary("lshr", pitch, constant("i64", 3))
    vector, place = instruction.operands[:2] if not is_store else instruction.operands[1::-1]
    address = address_of(body, place, space_of(instruction))
    run = (line if along else beside) * bits // 8
    unit = min(16, run, fragment.registers * fragment.word_bits // 8)
    site = body.new_site(instruction, space_of(instruction), unit, write=is_store)
    packed = abi.pack_site(site, unit, unit, space_of(instruction), write=is_store, contiguous=False)
    where = [builder.typed(builder.cast("zext", common(body, value, site), "i64")) for value in (address, pitch)]
    items = vector.items if isinstance(vector, ast.Vector) else (vector,)
    word = f"i{fragment.word_bits}"
    buffer = body.scratch("matrix", fragment.registers * fragment.word_bits // 8)
    if is_store:
        spill_registers(body, buffer, [body.operand(item, word) for item in items])
    name = "cupola_matrix_store" if is_store else "cupola_matrix_load"
    status = call_accessor(body, name, "i32", packed, *where, f"i64 {_describe(fragment, along)}", f"ptr {buffer}")
    body.control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
    if not is_store:
        read_registers(body, buffer, items, word)


def _describe(fragment: Fragment, along: bool) -> int:
    """``struct layout`` of engine/instructions/matrix.c."""
    flags = fragment.lines_first | along << 1 | fragment.pairs << 2
    return (
        ELEMENT_BITS[fragment.type]
        | fragment.lines << 8
        | fragment.across << 16
        | fragment.registers << 24
        | flags << 32
    )


def common(body: Body, value: Value, site: int, complaint: str = "cupola_uneven_matrix") -> Value:
    """The value that all lanes have; where one has another, the ISA leaves open what happens, and a helper says so."""
    if not value.vector:
        return value
    builder = body.builder
    first = builder.lane(value, 0)
    others = builder.ballot(builder.compare("icmp ne", value, first))
    apart, go_on = builder.new_label("uneven"), builder.new_label("even")
    test = builder.emit(f"icmp eq i32 {others.ir}, 0")
    builder.line(f"br i1 {test}, label %{go_on}, label %{apart}, !prof !1")
    builder.label(apart)
    builder.declarations[f"declare void @{complaint}(ptr, ptr, i32, i32)"] = None
    builder.line(f"call void @{complaint}(ptr %context, ptr %warp, i32 {others.ir}, i32 {site})")
    builder.line("br label %fault")
    builder.label(go_on)
    return first


def spill_registers(body: Body, buffer: str, values: list[Value]) -> None:
    """Registers to a buffer, one after the other."""
    builder = body.builder
    for index, value in enumerate(values):
        value = builder.splat(value)
        at = builder.emit(f"getelementptr {builder.type_of(value)}, ptr {buffer}, i64 {index}")
        builder.line(f"store {builder.typed(value)}, ptr {at}, align 64")


def read_registers(body: Body, buffer: str, items: tuple[ast.Operand, ...], word: str) -> None:
    builder = body.builder
    vector = builder.vector_type(word)
    for index, item in enumerate(items):
        at = builder.emit(f"getelementptr {vector}, ptr {buffer}, i64 {index}")
        body.write(item, Value(builder.emit(f"load {vector}, ptr {at}, align 64"), word, True))


@lowers("ldmatrix", objection=problem_with)
def ldmatrix(body: Body, instruction: ast.Instruction) -> None:
    """``ldmatrix``: rows of 16 bytes, whose addresses the lanes give in turn."""
    vector, place = instruction.operands
    items = vector.items if isinstance(vector, ast.Vector) else (vector,)
    buffer = body.scratch("matrix", 4 * len(items))
    _move_rows(body, instruction, place, buffer, len(items))
    read_registers(body, buffer, items, "i32")


@lowers("stmatrix", objection=problem_with)
def stmatrix(body: Body, instruction: ast.Instruction) -> None:
    """``stmatrix``."""
    place, vector = instruction.operands
    items = vector.items if isinstance(vector, ast.Vector) else (vector,)
    buffer = body.scratch("matrix", 4 * len(items))
    spill_registers(body, buffer, [body.operand(item, "i32") for item in items])
    _move_rows(body, instruction, place, buffer, len(items))


def _move_rows(body: Body, instruction: ast.Instruction, place: ast.Operand, buffer: str, count: int) -> None:
    builder, space = body.builder, space_of(instruction)
    write = instruction.opcode == "stmatrix"
    site = body.new_site(instruction, space, 16, write=write)
    packed = abi.pack_site(site, 16, 16, space, write=write, contiguous=False)
    addresses = lane_addresses(body, address_of(body, place, space))
    transposed = int("trans" in instruction.modifiers)
    status = call_accessor(
        body,
        f"cupola_{instruction.opcode}",
        "i32",
        packed,
        f"ptr {addresses}",
        f"i32 {count}",
        f"i32 {transposed}",
        f"ptr {buffer}",
    )
    body.control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
