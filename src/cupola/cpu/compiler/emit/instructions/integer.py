"""Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer …").

A carry is an ordinary i1: ``.cc`` gives it as a second result, ``addc`` and its kin take it as a last source. The ISA
calls what subtractions leave there a borrow, but the hardware subtracts by adding the complement, so it is the inverse
of one; NVVM's division of 128-bit integers reads it with ``addc`` behind a ``subc.cc``.
"""

from __future__ import annotations

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import BITS, Value

from .registry import LLVM_TYPE, OperandTypes, Operation, Results, fixed, instruction

INTEGERS = "u16 s16 u32 s32 u64 s64"


def sign(op: Operation) -> str:
    return "s" if op.is_signed else "u"


@instruction("add", "sub", on=INTEGERS, modifiers="sat cc", sources=2, types=fixed("T i1", "T T"))
def add(b: Builder, op: Operation, x: Value, y: Value) -> Results:
    if op.has("sat"):
        return b.intrinsic(f"{sign(op)}{op.opcode}.sat", x, y)
    result = b.binary(op.opcode, x, y)
    if not op.has("cc"):
        return result
    carry = b.compare("icmp ult", result, x) if op.opcode == "add" else b.compare("icmp uge", x, y)
    return result, carry


@instruction("addc", "subc", on="u32 s32 u64 s64", modifiers="cc", sources=3, types=fixed("T i1", "T T i1"))
def add_with_carry(b: Builder, op: Operation, x: Value, y: Value, carry: Value) -> Results:
    if op.opcode == "subc":
        y = b.binary("xor", y, constant(y.type, -1))
    first = b.binary("add", x, y)
    result = b.binary("add", first, b.cast("zext", carry, x.type))
    if not op.has("cc"):
        return result
    return result, b.binary("or", b.compare("icmp ult", first, x), b.compare("icmp ult", result, first))


@instruction("clmad", on="u64 s64", modifiers="lo hi", sources=3)
def carryless_product(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Value:
    """Half of the product of two polynomials of bits, and the sum with a third one, all without carries."""
    high = op.has("hi")

    def body(b: Builder, operands: list[Value]) -> Value:
        x, y = operands
        type, none = b.type_of(x), b.splat(constant("i64", 0)).ir if x.vector else "0"
        begin = b.emit(f"freeze {b.typed(x)}")
        b.line("br label %bits")
        b.label("bits")
        at = len(b.lines)  # where the values of a round are chosen, once their names are known
        left, rest, total = "%left", Value("%rest", "i64", x.vector), Value("%total", "i64", x.vector)
        # Of the high half the lowest bit of y counts least, and of the low half the highest one counts most.
        chosen = b.compare("icmp slt", rest, constant("i64", 0))
        if high:
            chosen = b.cast("trunc", rest, "i1")
        part = b.select(chosen, Value(begin, "i64", x.vector), constant("i64", 0))
        if high:
            after = b.binary("lshr", b.binary("xor", total, part), constant("i64", 1))
        else:
            after = b.binary("xor", b.binary("shl", total, constant("i64", 1)), part)
        following = b.binary("lshr" if high else "shl", rest, constant("i64", 1))
        fewer = b.emit(f"sub i32 {left}, 1")
        done = b.emit(f"icmp eq i32 {fewer}, 0")
        b.lines[at:at] = [
            f"  {left} = phi i32 [ 64, %entry ], [ {fewer}, %bits ]",
            f"  {rest.ir} = phi {type} [ {y.ir}, %entry ], [ {following.ir}, %bits ]",
            f"  {total.ir} = phi {type} [ {none}, %entry ], [ {after.ir}, %bits ]",
        ]
        b.line(f"br i1 {done}, label %finish, label %bits")
        b.label("finish")
        return after

    half = b.function(f"clmul.{'hi' if high else 'lo'}", "i64", [x, y], body)
    return b.binary("xor", half, z)


def wide_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    """Types of mul and mad: the result and the addend of ``.wide`` have twice the width."""
    own = LLVM_TYPE[op.type]
    result = f"i{2 * BITS[own]}" if op.has("wide") else own
    return OperandTypes((result, "i1")[:destinations], (own, own, result, "i1")[:sources], op.is_signed)


def product(b: Builder, op: Operation, x: Value, y: Value) -> Value:
    """The low or high half of the product, or all of it."""
    if not op.has("hi") and not op.has("wide"):
        return b.binary("mul", x, y)
    bits = BITS[x.type]
    double = f"i{2 * bits}"
    wide = b.binary("mul", b.extend(x, double, is_signed=op.is_signed), b.extend(y, double, is_signed=op.is_signed))
    if op.has("wide"):
        return wide
    return b.cast("trunc", b.binary("lshr", wide, constant(double, bits)), x.type)


@instruction("mul", on=INTEGERS, modifiers="lo hi wide", sources=2, types=wide_types)
def mul(b: Builder, op: Operation, x: Value, y: Value) -> Value:
    return product(b, op, x, y)


@instruction("mad", on=INTEGERS, modifiers="lo hi wide sat cc", sources=3, types=wide_types)
def mad(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Results:
    left = product(b, op, x, y)
    if op.has("sat"):
        return b.intrinsic("sadd.sat", left, z)
    result = b.binary("add", left, z)
    return (result, b.compare("icmp ult", result, z)) if op.has("cc") else result


@instruction("madc", on="u32 s32 u64 s64", modifiers="lo hi cc", sources=4, types=wide_types)
def mad_with_carry(b: Builder, op: Operation, x: Value, y: Value, z: Value, carry: Value) -> Results:
    left = product(b, op, x, y)
    return add_with_carry(b, Operation("addc", op.modifiers, op.types), left, z, carry)


def product24(b: Builder, op: Operation, x: Value, y: Value) -> Value:
    """Of the 48-bit product of the low 24 bits: bits 0 to 31 (.lo) or 16 to 47 (.hi)."""

    def extend24(v: Value) -> Value:
        wide = b.binary("shl", b.cast("zext", v, "i64"), constant("i64", 40))
        return b.binary("ashr" if op.is_signed else "lshr", wide, constant("i64", 40))

    wide = b.binary("mul", extend24(x), extend24(y))
    if op.has("hi"):
        wide = b.binary("lshr", wide, constant("i64", 16))
    return b.cast("trunc", wide, "i32")


@instruction("mul24", on="u32 s32", modifiers="lo hi", sources=2)
def mul24(b: Builder, op: Operation, x: Value, y: Value) -> Value:
    return product24(b, op, x, y)


@instruction("mad24", on="u32 s32", modifiers="lo hi sat", sources=3)
def mad24(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Value:
    left = product24(b, op, x, y)
    return b.intrinsic("sadd.sat", left, z) if op.has("sat") else b.binary("add", left, z)


@instruction("sad", on=INTEGERS, sources=3)
def sad(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Value:
    s = sign(op)
    difference = b.binary("sub", b.intrinsic(f"{s}max", x, y), b.intrinsic(f"{s}min", x, y))
    return b.binary("add", difference, z)


@instruction("div", "rem", on=INTEGERS, sources=2)
def divide(b: Builder, op: Operation, x: Value, y: Value) -> Value:
    """Division that never traps: lanes that do not execute hold anything, zero included.

    The ISA leaves division by zero open; as on a GPU both the quotient and the remainder then have all bits
    set. INT_MIN / -1 is INT_MIN.
    """
    s = sign(op)
    number = y.integer
    if number is not None and number not in (0, -1):
        return b.binary(f"{s}{op.opcode}", x, y)
    x, y = b.freeze(x), b.freeze(y)
    zero = b.compare("icmp eq", y, constant(y.type, 0))
    minus = b.compare("icmp eq", y, constant(y.type, -1)) if op.is_signed else constant("i1", 0)
    unsafe = b.binary("or", zero, minus) if op.is_signed else zero
    divisor = b.select(unsafe, constant(y.type, 1), y)
    if BITS[x.type] < 64 and (x.vector or y.vector):
        # There is no vector division of integers, but doubles hold 32 bits, and the rounded quotient cannot
        # reach the next integer: it is at least 1/y away.
        exact, by = b.cast(f"{s}itofp", x, "double"), b.cast(f"{s}itofp", divisor, "double")
        if divisor.vector:
            ratio = b.binary("fdiv", exact, by)
        else:  # a little more than the reciprocal, so that multiples of y reach their quotient whatever is rounded
            reciprocal = b.binary("fdiv", real("double", 1 + 2**-50), by)
            ratio = b.binary("fmul", exact, reciprocal)
        quotient = b.cast(f"fpto{s}i", ratio, x.type)
    else:
        quotient = b.binary(f"{s}div", x, divisor)
    quotient = b.select(minus, b.binary("sub", constant(x.type, 0), x), quotient)
    result = b.binary("sub", x, b.binary("mul", quotient, y)) if op.opcode == "rem" else quotient
    return b.select(zero, constant(x.type, -1), result)


@instruction("abs", on="s16 s32 s64", sources=1)
def absolute(b: Builder, op: Operation, x: Value) -> Value:
    return b.intrinsic("abs", x, "i1 false")


@instruction("neg", on="s16 s32 s64", sources=1)
def negate(b: Builder, op: Operation, x: Value) -> Value:
    return b.binary("sub", constant(x.type, 0), x)


@instruction("min", "max", on=INTEGERS, modifiers="relu", sources=(2, 3))
def minimum(b: Builder, op: Operation, x: Value, y: Value, *more: Value) -> Value:
    result = b.intrinsic(sign(op) + op.opcode, x, y)
    for z in more:
        result = b.intrinsic(sign(op) + op.opcode, result, z)
    return b.intrinsic("smax", result, constant(x.type, 0)) if op.has("relu") else result


def dot_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    return OperandTypes(("i32",), ("i32",) * sources, op.is_signed)


@instruction("dp4a", on="u32 s32", sources=3, types=dot_types)
def dp4a(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Value:
    """Four-way dot product of bytes, accumulated; each side has its own signedness."""
    total = z
    for byte in range(4):
        parts = [field(b, v, 8 * byte, 8, type.startswith("s")) for v, type in zip((x, y), op.types, strict=True)]
        total = b.binary("add", total, b.binary("mul", *parts))
    return total


@instruction("dp2a", on="u32 s32", modifiers="lo hi", sources=3, types=dot_types)
def dp2a(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Value:
    """Two-way dot product of the halves of x with the low or high two bytes of y, accumulated."""
    total = z
    signs = [type.startswith("s") for type in op.types]
    base = 16 if op.has("hi") else 0
    for part in range(2):
        left = field(b, x, 16 * part, 16, signs[0])
        right = field(b, y, base + 8 * part, 8, signs[1])
        total = b.binary("add", total, b.binary("mul", left, right))
    return total


def field(b: Builder, x: Value, position: int, length: int, is_signed: bool) -> Value:
    """Bits ``position`` to ``position + length - 1`` of an i32, extended."""
    if position + length < 32:
        x = b.binary("shl", x, constant("i32", 32 - position - length))
    return b.binary("ashr" if is_signed else "lshr", x, constant("i32", 32 - length))
