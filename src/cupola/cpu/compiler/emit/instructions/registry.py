"""The table of instructions: the function that computes each opcode and type.

A file of this package describes a family of instructions by functions ``f(builder, operation, *sources)``
that return the result (or a tuple of results); the decorator :func:`instruction` enters them here under the
opcode and the instruction's last type, which is what tells an integer ``add`` from a floating or packed one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from cupola.cpu.compiler.emit.values.builder import Builder
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

LLVM_TYPE = {
    "pred": "i1",
    **dict.fromkeys(("b8", "u8", "s8", "e2m1x2"), "i8"),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), "i16"),
    **dict.fromkeys(("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2", "s2f6x2", "e2m1x4"), "i16"),
    **dict.fromkeys(("b32", "u32", "s32", "f16x2", "bf16x2", "u16x2", "s16x2", "tf32"), "i32"),
    **dict.fromkeys(("u8x4", "s8x4", "e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4"), "i32"),
    **dict.fromkeys(("b64", "u64", "s64", "f32x2"), "i64"),
    "b128": "i128",
    "f32": "float",
    "f64": "double",
}
"""The LLVM type in which a PTX type travels. Types narrower than f32 and packed ones travel as integers."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An instruction's opcode and modifiers, the types among them, its number of destinations, and parts of registers.

    ``parts`` has for each operand the selector of a video instruction, such as ``h1``, with a minus in front of a
    negated operand; "" stands for the register as it is.
    """

    opcode: str
    modifiers: tuple[str, ...]
    types: tuple[str, ...]
    destinations: int = 1
    parts: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        """The last type, by which the instruction is looked up ("" when there is none)."""
        return self.types[-1] if self.types else ""

    @property
    def is_signed(self) -> bool:
        return self.type.startswith("s")

    def has(self, modifier: str) -> bool:
        return modifier in self.modifiers

    def one_of(self, *modifiers: str, default: str = "") -> str:
        """The first of ``modifiers`` that the instruction has."""
        return next((m for m in modifiers if m in self.modifiers), default)


@dataclass(frozen=True, slots=True)
class OperandTypes:
    """The LLVM types of an instruction's flattened operands.

    A destination register that is wider than its type takes the result extended by its sign when ``signed``
    is set, otherwise with zeros; a source register that is wider is truncated.
    """

    destinations: tuple[str, ...]
    sources: tuple[str, ...]
    signed: bool = False


Results = Value | Sequence[Value]
Lowering = Callable[..., Results]
Typing = Callable[[Operation, int, int], OperandTypes]
Objection = Callable[[Operation, int], str | None]
OperandObjection = Callable[[ast.Instruction], str | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """How one opcode works on one type."""

    lowering: Lowering
    typing: Typing
    modifiers: frozenset[str]
    sources: tuple[int, ...]
    objection: Objection | None
    operands: OperandObjection | None


TABLE: dict[tuple[str, str], Entry] = {}
"""Keyed by opcode and last type."""


def same_types(operation: Operation, destinations: int, sources: int) -> OperandTypes:
    """Every operand has the instruction's type."""
    type = LLVM_TYPE[operation.type]
    return OperandTypes((type,) * destinations, (type,) * sources, operation.is_signed)


def fixed(destinations: str, sources: str) -> Typing:
    """Operands of the given LLVM types; ``T`` stands for the instruction's own one."""

    def typing(operation: Operation, _destinations: int, _sources: int) -> OperandTypes:
        own = LLVM_TYPE.get(operation.type, "")
        return OperandTypes(
            tuple(own if t == "T" else t for t in destinations.split())[:_destinations],
            tuple(own if t == "T" else t for t in sources.split())[:_sources],
            operation.is_signed,
        )

    return typing


def instruction(
    *opcodes: str,
    on: str = "",
    modifiers: str = "",
    types: Typing = same_types,
    sources: int | tuple[int, ...],
    objection: Objection | None = None,
    operands: OperandObjection | None = None,
) -> Callable[[Lowering], Lowering]:
    """Enter a function into the table.

    Parameters
    ----------
    opcodes
        The opcodes it lowers.
    on
        The PTX types it is for, separated by blanks; empty for instructions without a type.
    modifiers
        The other modifiers it understands.
    types
        Tells the LLVM types of the operands.
    sources
        How many source operands, flattened, there may be.
    objection
        Says what is wrong with a combination of modifiers and a number of sources, or None.
    operands
        Says what is wrong with the operands of an instruction, or None.
    """

    def enter(lowering: Lowering) -> Lowering:
        counts = (sources,) if isinstance(sources, int) else sources
        entry = Entry(lowering, types, frozenset(modifiers.split()), counts, objection, operands)
        for opcode in opcodes:
            for type in on.split() or [""]:
                if (opcode, type) in TABLE:
                    raise ValueError(f"{opcode}.{type} is in the table already")
                TABLE[opcode, type] = entry
        return lowering

    return enter


def opcodes() -> set[str]:
    """Those that the table has something for."""
    return {opcode.partition(".")[0] for opcode, _ in TABLE}


def operation_of(instruction: ast.Instruction) -> Operation:
    """Opcode, modifiers and types of an instruction."""
    return find(instruction)[0]


@functools.lru_cache(maxsize=4096)
def _find(
    opcode: str, modifiers: tuple[str, ...], destinations: int, parts: tuple[str, ...]
) -> tuple[Operation, Entry | None]:
    types = tuple(m for m in modifiers if m in LLVM_TYPE)
    operation = Operation(opcode, modifiers, types, destinations, parts)
    name = "cvt.pack" if opcode == "cvt" and operation.has("pack") else opcode
    return operation, TABLE.get((name, operation.type))


def _part(operand: ast.Operand) -> str:
    return f"{'-' * operand.negated}{operand.part}" if isinstance(operand, ast.Selector) else ""


def _flatten(operand: ast.Operand) -> list[ast.Operand]:
    if isinstance(operand, ast.Vector):
        return [item for inner in operand.items for item in _flatten(inner)]
    if isinstance(operand, ast.Pair):
        return [operand.first, operand.second]
    return [operand]


def split_operands(instruction: ast.Instruction) -> tuple[Sequence[ast.Operand], Sequence[ast.Operand]]:
    """The destination and the source operands, with vectors and pairs taken apart."""
    operands = instruction.operands
    if not any(isinstance(operand, ast.Vector | ast.Pair) for operand in operands):
        return operands[:1], operands[1:]
    first, *rest = operands
    return _flatten(first), [item for operand in rest for item in _flatten(operand)]


def find(instruction: ast.Instruction) -> tuple[Operation, Entry | None]:
    """The operation and its table entry (None when this package does not know the instruction)."""
    destinations, sources = split_operands(instruction)
    parts = tuple(map(_part, (*destinations, *sources)))
    return _find(instruction.opcode, instruction.modifiers, len(destinations), parts)


def describe_unsupported(instruction: ast.Instruction) -> str | None:
    """Why the table cannot lower this instruction; None when it can."""
    operation, entry = find(instruction)
    if entry is None:
        if not any(opcode == operation.opcode for opcode, _ in TABLE):
            return f"the opcode '{operation.opcode}' is not supported"
        return f"'{operation.opcode}' is not supported for the type '{operation.type or 'none'}'"
    for modifier in operation.modifiers:
        if modifier not in LLVM_TYPE and modifier not in entry.modifiers:
            return f"the modifier '.{modifier}' is not supported for '{operation.opcode}.{operation.type}'"
    _, sources = split_operands(instruction)
    if len(sources) not in entry.sources:
        counts = " or ".join(map(str, entry.sources))
        return f"'{operation.opcode}' takes {counts} source operands, not {len(sources)}"
    problem = entry.objection(operation, len(sources)) if entry.objection else None
    return entry.operands(instruction) if problem is None and entry.operands else problem


def lower(builder: Builder, instruction: ast.Instruction, sources: Sequence[Value]) -> list[Value]:
    """Write the code of one instruction; see the package's docstring."""
    operation, entry = find(instruction)
    if entry is None:
        raise NotImplementedError(instruction.text)
    results = entry.lowering(builder, operation, *sources)
    return [results] if isinstance(results, Value) else list(results)[: operation.destinations]
