"""Pairs of 16-bit integers, pairs of floats, and the four-byte SIMD video instructions (PTX ISA, same names)."""

from __future__ import annotations

from cupola.cpu.codegen.builder import Builder, constant
from cupola.cpu.codegen.values import Value

from .floating import ROUNDINGS, arithmetic, rounding
from .formats import finish, flush, settle_nans
from .half import halves, join
from .registry import Operation, Results, instruction


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


SIMD = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")


@instruction(*(f"{name}{count}" for name in SIMD for count in "24"), on="u32 s32", modifiers="sat add", sources=3)
def simd_video(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Results:
    """Two or four small integers at once; ``.add`` sums them up and adds z, else z is what is merged into.

    Types are those of the result and of both operands. Without masks, which the table does not admit, every
    part of the result is new.
    """
    name, count = op.opcode[:-1], int(op.opcode[-1])
    width = 32 // count
    to, left, right = op.types
    total = z if op.has("add") else constant("i32", 0)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if to[0] == "s" else (0, (1 << width) - 1)
    for index in range(count):
        parts = []
        for v, type in ((x, left), (y, right)):
            up = b.binary("shl", v, constant("i32", 32 - width * (index + 1)))
            parts.append(b.binary("ashr" if type[0] == "s" else "lshr", up, constant("i32", 32 - width)))
        part = _simd_part(b, name, *parts)
        if op.has("sat"):
            part = b.intrinsic("smin", b.intrinsic("smax", part, constant("i32", low)), constant("i32", high))
        if op.has("add"):
            total = b.binary("add", total, part)
        else:
            part = b.binary("and", part, constant("i32", (1 << width) - 1))
            total = b.binary("or", total, b.binary("shl", part, constant("i32", width * index)))
    return total


def _simd_part(b: Builder, name: str, x: Value, y: Value) -> Value:
    if name == "vadd":
        return b.binary("add", x, y)
    if name == "vsub":
        return b.binary("sub", x, y)
    if name == "vavrg":
        # Rounded away from zero on ties for negative sums too: (x + y + 1 - sign) / 2 towards zero.
        total = b.binary("add", x, y)
        negative = b.binary("lshr", total, constant("i32", 31))
        bias = b.binary("sub", constant("i32", 1), negative)
        return b.binary("ashr", b.binary("add", total, bias), constant("i32", 1))
    if name == "vabsdiff":
        return b.intrinsic("abs", b.binary("sub", x, y), "i1 false")
    return b.intrinsic(f"s{name[1:]}", x, y)
