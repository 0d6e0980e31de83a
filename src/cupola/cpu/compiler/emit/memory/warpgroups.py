"""Products of matrices by the four warps of a warpgroup: ``wgmma`` (PTX ISA 9.7.15).

The helper does the work of a warp at once (engine/instructions/wgmma.c says why that is allowed). It gets D and what
there is of A in registers as a buffer with the registers one after the other, and everything else packed into integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

from .accessors import call_accessor, fault_unless_zero
from .matrix_memory import common, read_registers, spill_registers

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_TYPES = ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "b1")
_SUMS = ("f32", "f16", "s32")
_UNIT = 16  # bytes of a matrix in shared memory that are together

# By the types of A and B: those of D, K of a dense product, and whether matrices may be transposed.
_PRODUCTS = {
    "f16": (("f32", "f16"), 16, True),
    "bf16": (("f32",), 16, True),
    "tf32": (("f32",), 8, False),
    "f8": (("f32", "f16"), 32, False),
    "i8": (("s32",), 32, False),
    "b1": (("s32",), 256, False),
}
_KINDS = {"e4m3": "f8", "e5m2": "f8", "s8": "i8", "u8": "i8"}


@dataclass(frozen=True, slots=True)
class _Product:
    """What the modifiers and operands of ``wgmma.mma_async`` say."""

    columns: int
    k: int
    types: tuple[str, ...]
    sparse: bool
    accumulators: tuple[ast.Operand, ...]
    a: ast.Operand
    b: ast.Operand
    metadata: ast.Operand | None
    selector: ast.Operand | None
    rest: tuple[ast.Operand, ...]
    """scale-d, and the immediate values behind it."""

    @classmethod
    def of(cls, instruction: ast.Instruction) -> _Product:
        modifiers, operands = instruction.modifiers, list(instruction.operands)
        shape = next(m for m in modifiers if m.startswith("m64n"))
        columns, k = map(int, shape.removeprefix("m64n").split("k"))
        sparse = "sp" in modifiers
        d, a, b = operands[:3]
        metadata, selector = operands[3:5] if sparse else (None, None)
        types = tuple(m for m in modifiers if m in _TYPES or m in _SUMS)
        items = d.items if isinstance(d, ast.Vector) else (d,)
        return cls(columns, k, types, sparse, items, a, b, metadata, selector, tuple(operands[5 if sparse else 3 :]))

    @property
    def kind(self) -> str:
        return _KINDS.get(self.types[1], self.types[1])

    @property
    def registers_of_a(self) -> tuple[ast.Operand, ...]:
        return self.a.items if isinstance(self.a, ast.Vector) else ()

    @property
    def is_floating(self) -> bool:
        return self.types[0] != "s32"

    @property
    def transpositions(self) -> int:
        """How many of the last operands say whether a matrix is transposed; of A only in shared memory."""
        if not _PRODUCTS[self.kind][2]:
            return 0
        return 1 if self.registers_of_a else 2

    def numbers(self) -> list[int]:
        """The immediate values behind scale-d: the signs of A and B, and the transpositions."""
        return [_signed(operand) for operand in self.rest[1:]]


def _signed(operand: ast.Operand) -> int:
    assert isinstance(operand, ast.Immediate)
    value = operand.value & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why a product cannot be run, or None."""
    if "mma_async" not in instruction.modifiers:
        return None
    p = _Product.of(instruction)
    if len(p.types) != 3 or p.types[0] not in _SUMS or p.types[1] not in _TYPES:
        return "there is no product of these types"
    known = _PRODUCTS.get(p.kind)
    same = p.types[1] == p.types[2] or p.kind in ("f8", "i8") and _KINDS.get(p.types[2]) == p.kind
    if known is None or p.types[0] not in known[0] or not same or (p.sparse and p.kind == "b1"):
        return f"there is no product with the types '.{'.'.join(p.types)}'"
    integers = p.types[0] == "s32"
    if p.k != known[1] * (2 if p.sparse else 1) or (integers and p.columns > 32 and p.columns % 16):
        return f"there is no shape '.m64n{p.columns}k{p.k}' for the types '.{'.'.join(p.types)}'"
    if "satfinite" in instruction.modifiers and p.kind != "i8":
        return "'.satfinite' is for sums of integers"
    if (p.kind == "b1") != ("and" in instruction.modifiers and "popc" in instruction.modifiers):
        return "products of bits, and no others, are '.and.popc'"
    return _problem_with_operands(p)


def _problem_with_operands(p: _Product) -> str | None:
    registers = p.columns // (4 if p.types[0] == "f16" else 2)
    if len(p.accumulators) != registers:
        return f"D has {registers} registers, not {len(p.accumulators)}"
    if p.registers_of_a and len(p.registers_of_a) != 4:
        return f"A has 4 registers, not {len(p.registers_of_a)}"
    if p.sparse:
        count = 1 if p.kind in ("f8", "i8") else 2
        if not isinstance(p.selector, ast.Immediate) or not 0 <= p.selector.value < count:
            return f"the selector must be a number below {count}" if count > 1 else "the selector must be 0"
    wanted = 1 + (2 if p.is_floating else 0) + p.transpositions
    if len(p.rest) != wanted:
        return f"behind the matrices there are {wanted} operands, not {len(p.rest)}"
    if not all(isinstance(operand, ast.Immediate) for operand in p.rest[1:]):
        return "the signs and transpositions of A and B are immediate values"
    numbers = p.numbers()
    if any(number not in (1, -1) for number in numbers[:2]):
        return "A and B may be scaled by 1 and by -1"
    if any(number not in (0, 1) for number in numbers[2:]):
        return "a transposition is 0 or 1"
    return None


def _describe(p: _Product, instruction: ast.Instruction) -> int:
    """``struct product`` of engine/instructions/wgmma.c."""
    numbers = p.numbers()
    negative = p.is_floating and numbers[0] != numbers[1]
    transposed = [0, *numbers[2:]] if p.registers_of_a else numbers[2:]
    a, b = transposed if p.transpositions else (0, 0)
    selector = p.selector.value if isinstance(p.selector, ast.Immediate) else 0
    return (
        p.columns
        | _TYPES.index(p.types[1]) << 12
        | _TYPES.index(p.types[2]) << 16
        | _SUMS.index(p.types[0]) << 20
        | a << 24
        | b << 25
        | int(negative) << 26
        | int("satfinite" in instruction.modifiers) << 27
        | int(p.sparse) << 28
        | selector << 29
    )


@lowers("wgmma", objection=problem_with)
def order(body: Body, instruction: ast.Instruction) -> None:
    """``wgmma.fence`` and ``wgmma.commit_group``: products are done in the order of the program, and at once."""


@lowers("wgmma.mma_async", objection=problem_with)
def multiply(body: Body, instruction: ast.Instruction) -> None:
    """``wgmma.mma_async``, by a warp."""
    builder, p = body.builder, _Product.of(instruction)
    site = body.new_site(instruction, "shared", _UNIT)
    packed = abi.pack_site(site, _UNIT, _UNIT, "shared", write=False, contiguous=False)

    def everywhere(value: Value) -> Value:
        return common(body, value, site, "cupola_uneven_wgmma")

    registers, a = "null", constant("i64", 0)
    if p.registers_of_a:
        registers = body.scratch("left", 16)
        spill_registers(body, registers, [body.operand(item, "i32") for item in p.registers_of_a])
    else:
        a = everywhere(body.operand(p.a, "i64"))
    b = everywhere(body.operand(p.b, "i64"))
    keeps = builder.cast("zext", everywhere(body.operand(p.rest[0], "i1")), "i32")
    metadata = body.spill("metadata", body.operand(p.metadata, "i32")) if p.metadata is not None else "null"
    buffer = body.scratch("matrix", 4 * len(p.accumulators))
    if keeps.integer != 0:
        spill_registers(body, buffer, [body.operand(item, "i32") for item in p.accumulators])
    status = call_accessor(
        body,
        "cupola_wgmma",
        "i32",
        packed,
        f"i64 {_describe(p, instruction)}",
        f"ptr {registers}",
        builder.typed(a),
        builder.typed(b),
        f"ptr {metadata}",
        builder.typed(keeps),
        f"i32 {instruction.location.ptx_line}",
        f"ptr {buffer}",
    )
    fault_unless_zero(body, status)
    read_registers(body, buffer, p.accumulators, "i32")
