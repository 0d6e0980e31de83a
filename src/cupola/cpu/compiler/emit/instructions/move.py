"""``mov``: copies, packing of ``{a, b}`` into a wider value, and unpacking (PTX ISA, "mov")."""

from __future__ import annotations

from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import BITS, Value

from .registry import LLVM_TYPE, OperandTypes, Operation, Results, instruction


def move_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    own = LLVM_TYPE[op.type]
    if destinations == sources == 1:
        return OperandTypes((own,), (own,), op.is_signed)
    parts = max(destinations, sources)
    part = f"i{BITS[own] // parts}"
    if destinations > 1:
        return OperandTypes((part,) * parts, (own,))
    return OperandTypes((own,), (part,) * parts)


@instruction(
    "mov",
    on="pred b8 b16 u16 s16 b32 u32 s32 b64 u64 s64 f16 bf16 f16x2 bf16x2 f32 f64 b128",
    sources=(1, 2, 4),
    types=move_types,
)
def move(b: Builder, op: Operation, *parts: Value) -> Results:
    if len(parts) > 1:
        return pack(b, LLVM_TYPE[op.type], parts)
    return unpack(b, parts[0], op.destinations) if op.destinations > 1 else parts[0]


def pack(b: Builder, type: str, parts: tuple[Value, ...]) -> Value:
    """The parts side by side, the first one lowest."""
    width = BITS[type] // len(parts)
    result = b.cast("zext", parts[0], type)
    for index, part in enumerate(parts[1:], 1):
        wide = b.cast("zext", part, type)
        result = b.binary("or", result, b.binary("shl", wide, constant(type, index * width)))
    return result


def unpack(b: Builder, value: Value, count: int) -> list[Value]:
    """The inverse of :func:`pack`."""
    width = BITS[value.type] // count
    return [
        b.cast("trunc", b.binary("lshr", value, constant(value.type, index * width)), f"i{width}")
        for index in range(count)
    ]
