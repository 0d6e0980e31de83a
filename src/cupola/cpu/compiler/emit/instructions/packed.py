"""Pairs of 16-bit integers and of floats, and four bytes (PTX ISA, "Integer Arithmetic", "Floating-Point")."""

from __future__ import annotations

from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import Value

from .floating import ROUNDINGS, arithmetic, rounding
from .formats import finish, flush, settle_nans
from .half import halves, join
from .registry import Operation, instruction


@instruction("add", "sub", on="u16x2 s16x2", modifiers="sat", sources=2)
@instruction("min", "max", on="u16x2 s16x2", modifiers="relu", sources=2)
@instruction("neg", on="s16x2", sources=1)
def pair_of_shorts(b: Builder, op: Operation, *values: Value) -> Value:
    kind = "s" if op.is_signed else "u"
    parts = []
    for operands in zip(*(halves(b, v) for v in values), strict=True):
        if op.opcode in ("min", "max"):
            result = b.intrinsic(kind + op.opcode, *operands)
            if op.has("relu"):
                result = b.intrinsic("smax", result, constant("i16", 0))
        elif op.opcode == "neg":
            result = b.binary("sub", constant("i16", 0), operands[0])
        elif op.has("sat"):
            result = b.intrinsic(f"{kind}{op.opcode}.sat", *operands)
        else:
            result = b.binary(op.opcode, *operands)
        parts.append(result)
    return join(b, *parts)


@instruction("add", on="u8x4 s8x4", modifiers="sat", sources=2)
@instruction("sub", "min", "max", on="u8x4 s8x4", sources=2)
@instruction("neg", on="s8x4", sources=1)
def four_bytes(b: Builder, op: Operation, *values: Value) -> Value:
    """One operation on the bytes of all lanes."""
    words = b.align_shapes(*values)
    type = b.type_of(words[0])
    count = 4 * b.width if words[0].vector else 4
    vector = f"<{count} x i8>"
    operands = [b.emit(f"bitcast {b.typed(word)} to {vector}") for word in words]
    kind = "s" if op.is_signed else "u"
    if op.opcode in ("min", "max") or op.has("sat"):
        name = f"llvm.{kind}{op.opcode}{'.sat' if op.has('sat') else ''}.v{count}i8"
        b.declarations[f"declare {vector} @{name}({vector}, {vector})"] = None
        result = b.emit(f"call {vector} @{name}({vector} {operands[0]}, {vector} {operands[1]})")
    elif op.opcode == "neg":
        result = b.emit(f"sub {vector} zeroinitializer, {operands[0]}")
    else:
        result = b.emit(f"{op.opcode} {vector} {operands[0]}, {operands[1]}")
    return Value(b.emit(f"bitcast {vector} {result} to {type}"), "i32", words[0].vector)


@instruction("add", "sub", "mul", on="f32x2", modifiers=f"{ROUNDINGS} ftz", sources=2)
@instruction("fma", on="f32x2", modifiers=f"{ROUNDINGS} ftz", sources=3)
def pair_of_floats(b: Builder, op: Operation, *values: Value) -> Value:
    words = []
    for at in (0, 32):
        parts = []
        for v in values:
            word = b.cast("trunc", b.binary("lshr", v, constant("i64", at)), "i32")
            parts.append(flush(b, op, b.bitcast(word, "float")))
        result = settle_nans(b, finish(b, op, arithmetic(b, op.opcode, rounding(op), *parts)))
        words.append(b.cast("zext", b.bitcast(result, "i32"), "i64"))
    return b.binary("or", words[0], b.binary("shl", words[1], constant("i64", 32)))
