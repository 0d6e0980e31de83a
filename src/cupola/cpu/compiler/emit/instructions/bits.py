"""Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions" and "Integer Arithmetic …").

Shift amounts are unsigned 32-bit numbers that may exceed the width; LLVM's shifts are undefined there, so every
amount is either a literal in range or clamped.
"""

from __future__ import annotations

from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import BITS, Value

from .registry import OperandTypes, Operation, Results, fixed, instruction

BITS_TYPES = "pred b16 b32 b64"


@instruction("and", "or", "xor", on=BITS_TYPES, sources=2)
def logic(b: Builder, op: Operation, x: Value, y: Value) -> Value:
    return b.binary(op.opcode, x, y)


@instruction("not", on=BITS_TYPES, sources=1)
def complement(b: Builder, op: Operation, x: Value) -> Value:
    return b.binary("xor", x, constant(x.type, -1))


@instruction("cnot", on="b16 b32 b64", sources=1)
def logical_not(b: Builder, op: Operation, x: Value) -> Value:
    return b.cast("zext", b.compare("icmp eq", x, constant(x.type, 0)), x.type)


def shift(b: Builder, op: str, x: Value, amount: Value) -> Value:
    """``shl``, ``lshr`` or ``ashr`` by an i32 amount that may be larger than the width."""
    bits = BITS[x.type]
    number = amount.integer
    if number is not None:
        number &= 0xFFFFFFFF
        if number >= bits and op != "ashr":
            return constant(x.type, 0)
        return b.binary(op, x, constant(x.type, min(number, bits - 1)))
    within = b.extend(b.intrinsic("umin", amount, constant("i32", bits - 1)), x.type, is_signed=False)
    shifted = b.binary(op, x, within)
    if op == "ashr":
        return shifted
    return b.select(b.compare("icmp ult", amount, constant("i32", bits)), shifted, constant(x.type, 0))


def shift_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    own = f"i{op.type[1:]}"
    return OperandTypes((own,), (own, "i32"), op.is_signed)


@instruction("shl", on="b16 b32 b64", sources=2, types=shift_types)
def shift_left(b: Builder, op: Operation, x: Value, amount: Value) -> Value:
    return shift(b, "shl", x, amount)


@instruction("shr", on="b16 b32 b64 u16 u32 u64 s16 s32 s64", sources=2, types=shift_types)
def shift_right(b: Builder, op: Operation, x: Value, amount: Value) -> Value:
    return shift(b, "ashr" if op.is_signed else "lshr", x, amount)


@instruction("shf", on="b32", modifiers="l r clamp wrap", sources=3)
def funnel_shift(b: Builder, op: Operation, low: Value, high: Value, amount: Value) -> Value:
    """The upper (l) or lower (r) word of the shifted 64-bit value high:low."""
    name = "fshl" if op.has("l") else "fshr"
    result = b.intrinsic(name, high, low, b.binary("and", amount, constant("i32", 31)))
    if op.has("wrap"):
        return result
    whole = b.compare("icmp ugt", amount, constant("i32", 31))
    return b.select(whole, low if op.has("l") else high, result)


def two_inputs(b: Builder, table: int, y: Value, z: Value) -> Value:
    """The function of two operands whose truth table has bit (y << 1 | z)."""
    ones = constant("i32", -1)
    if table in (0x0, 0xF):
        return constant("i32", -(table & 1))
    if table & 8:  # the complement has the simpler form
        return b.binary("xor", two_inputs(b, table ^ 0xF, y, z), ones)
    if table == 0x6:
        return b.binary("xor", y, z)
    if table in (0x3, 0x5):
        return b.binary("xor", y if table == 0x3 else z, ones)
    left = y if table & 0x4 else b.binary("xor", y, ones)
    right = z if table & 0x2 else b.binary("xor", z, ones)
    if table == 0x7:
        return b.binary("xor", b.binary("and", y, z), ones)
    if table == 0x1:
        return b.binary("and", left, right)
    # 0x2: not y and z; 0x4: y and not z
    return b.binary("and", left, right)


@instruction("lop3", on="b32", modifiers="or and", sources=(4, 5), types=fixed("i32 i1", "i32 i32 i32 i32 i1"))
def lop3(b: Builder, op: Operation, x: Value, y: Value, z: Value, table: Value, *more: Value) -> Results:
    """Any function of three operands: bit (x << 2 | y << 1 | z) of the table, by Shannon's expansion in x."""
    lut = table.integer
    if lut is None:
        raise NotImplementedError("the truth table of lop3 must be a constant")
    low, high = lut & 0xF, lut >> 4 & 0xF
    if low == high:
        result = two_inputs(b, low, y, z)
    elif low == high ^ 0xF:
        result = b.binary("xor", two_inputs(b, low, y, z), x)
    else:
        flipped = b.binary("xor", x, constant("i32", -1))
        result = b.binary(
            "or",
            b.binary("and", x, two_inputs(b, high, y, z)),
            b.binary("and", flipped, two_inputs(b, low, y, z)),
        )
    if not more:
        return result
    nonzero = b.compare("icmp ne", result, constant("i32", 0))
    return result, b.binary("or" if op.has("or") else "and", nonzero, more[0])


@instruction("popc", on="b32 b64", sources=1, types=fixed("i32", "T"))
def count_ones(b: Builder, op: Operation, x: Value) -> Value:
    return b.extend(b.intrinsic("ctpop", x), "i32", is_signed=False)


@instruction("clz", on="b32 b64", sources=1, types=fixed("i32", "T"))
def count_leading_zeros(b: Builder, op: Operation, x: Value) -> Value:
    return b.extend(b.intrinsic("ctlz", x, "i1 false"), "i32", is_signed=False)


@instruction("brev", on="b32 b64", sources=1)
def reverse(b: Builder, op: Operation, x: Value) -> Value:
    return b.intrinsic("bitreverse", x)


@instruction("bfind", on="u32 s32 u64 s64", modifiers="shiftamt", sources=1, types=fixed("i32", "T"))
def find_leading(b: Builder, op: Operation, x: Value) -> Value:
    """The position of the leading one (for negative numbers: the leading zero), or -1."""
    bits = BITS[x.type]
    if op.is_signed:
        x = b.binary("xor", x, b.binary("ashr", x, constant(x.type, bits - 1)))
    zeros = b.extend(b.intrinsic("ctlz", x, "i1 false"), "i32", is_signed=False)
    if not op.has("shiftamt"):
        return b.binary("sub", constant("i32", bits - 1), zeros)
    none = b.compare("icmp eq", zeros, constant("i32", bits))
    return b.select(none, constant("i32", -1), zeros)


@instruction("fns", on="b32", sources=3)
def find_nth_set(b: Builder, op: Operation, mask: Value, base: Value, offset: Value) -> Value:
    """The |offset|-th set bit of mask from bit base upwards (offset > 0) or downwards (< 0), or base itself (0).

    The ISA wants a base below 32. From another one a GPU finds nothing, or bit 0 for the least of all offsets.
    """

    def body(b: Builder, arguments: list[Value]) -> Value:
        mask, base, offset = arguments
        one, zero = constant("i32", 1), constant("i32", 0)
        at = b.binary("shl", one, b.binary("and", base, constant("i32", 31)))
        below = b.binary("sub", at, one)
        upper = b.binary("and", mask, b.binary("xor", below, constant("i32", -1)))
        lower = b.binary("and", mask, b.binary("or", below, at))
        down = b.compare("icmp slt", offset, zero)
        here = b.compare("icmp eq", offset, zero)
        field = b.select(down, b.intrinsic("bitreverse", lower), upper)
        field = b.select(here, b.binary("and", mask, at), field)
        count = b.select(here, one, b.intrinsic("abs", offset, "i1 false"))
        missing = b.compare("icmp ugt", count, b.intrinsic("ctpop", field))
        position = zero
        for step in (16, 8, 4, 2, 1):
            # Go to the upper half of what is left when the lower one has too few bits.
            ones = b.intrinsic("ctpop", b.binary("and", field, constant("i32", (1 << step) - 1)))
            up = b.compare("icmp ugt", count, ones)
            count = b.select(up, b.binary("sub", count, ones), count)
            field = b.select(up, b.binary("lshr", field, constant("i32", step)), field)
            position = b.select(up, b.binary("add", position, constant("i32", step)), position)
        position = b.select(down, b.binary("sub", constant("i32", 31), position), position)
        position = b.select(missing, constant("i32", -1), position)
        least = b.compare("icmp eq", offset, constant("i32", 1 << 31))
        nowhere = b.select(least, zero, constant("i32", -1))
        return b.select(b.compare("icmp ugt", base, constant("i32", 31)), nowhere, position)

    return b.function("fns", "i32", [mask, base, offset], body)


def low_ones(b: Builder, type: str, count: Value) -> Value:
    """A value with ``count`` (an i32, any size) low bits set."""
    ones = shift(b, "shl", constant(type, -1), count)
    return b.binary("xor", ones, constant(type, -1))


def _place(b: Builder, x: Value, number: Value) -> Value:
    """Position or length of a bit field.

    The ISA restricts them to 0..255. Beyond that, a GPU takes the low 8 bits when the field is one of 32 bits, and all
    of the number when it is one of 64.
    """
    most = constant("i32", 255)
    return b.binary("and", number, most) if x.type == "i32" else b.intrinsic("umin", number, most)


@instruction("bfe", on="u32 s32 u64 s64", sources=3, types=fixed("T", "T i32 i32"))
def extract_field(b: Builder, op: Operation, x: Value, position: Value, length: Value) -> Value:
    """A bit field, for s types filled up with its last bit (x's last bit when the field ends beyond x)."""
    bits = BITS[x.type]
    position, length = (_place(b, x, v) for v in (position, length))
    mask = low_ones(b, x.type, length)
    if not op.is_signed:
        return b.binary("and", shift(b, "lshr", x, position), mask)
    field = b.binary("and", shift(b, "ashr", x, position), mask)
    last = b.binary("sub", b.binary("add", position, length), constant("i32", 1))
    sign = shift(b, "lshr", x, b.intrinsic("umin", last, constant("i32", bits - 1)))
    fill = b.binary("sub", constant(x.type, 0), b.binary("and", sign, constant(x.type, 1)))
    result = b.binary("or", field, b.binary("and", fill, b.binary("xor", mask, constant(x.type, -1))))
    empty = b.compare("icmp eq", length, constant("i32", 0))
    return b.select(empty, constant(x.type, 0), result)


@instruction("bfi", on="b32 b64", sources=4, types=fixed("T", "T T i32 i32"))
def insert_field(b: Builder, op: Operation, x: Value, into: Value, position: Value, length: Value) -> Value:
    position, length = (_place(b, x, v) for v in (position, length))
    mask = shift(b, "shl", low_ones(b, x.type, length), position)
    kept = b.binary("and", into, b.binary("xor", mask, constant(x.type, -1)))
    return b.binary("or", kept, b.binary("and", shift(b, "shl", x, position), mask))


@instruction("bmsk", on="b32", modifiers="clamp wrap", sources=2)
def bit_mask(b: Builder, op: Operation, position: Value, width: Value) -> Value:
    """``width`` ones from bit ``position`` upwards; both modulo 32 or, with clamp, as they are."""
    if op.has("wrap"):
        position = b.binary("and", position, constant("i32", 31))
        width = b.binary("and", width, constant("i32", 31))
    return shift(b, "shl", low_ones(b, "i32", width), position)


@instruction("szext", on="u32 s32", modifiers="clamp wrap", sources=2, types=fixed("T", "T i32"))
def extend_low_bits(b: Builder, op: Operation, x: Value, length: Value) -> Value:
    """The low ``length`` bits extended by sign or zeros; none of them gives 0."""
    within = b.binary("and", length, constant("i32", 31))
    gap = b.binary("and", b.binary("sub", constant("i32", 0), within), constant("i32", 31))
    result = b.binary("ashr" if op.is_signed else "lshr", b.binary("shl", x, gap), gap)
    result = b.select(b.compare("icmp eq", within, constant("i32", 0)), constant("i32", 0), result)
    if op.has("clamp"):
        result = b.select(b.compare("icmp ugt", length, constant("i32", 31)), x, result)
    return result


PERMUTE_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""The byte selectors that the modes of prmt stand for, by the low two bits of the control operand."""


@instruction("prmt", on="b32", modifiers=" ".join(PERMUTE_MODES), sources=3)
def permute_bytes(b: Builder, op: Operation, x: Value, y: Value, control: Value) -> Value:
    """Four bytes picked out of the eight of y:x; bit 3 of a selector spreads the byte's sign over it instead."""
    modes = [PERMUTE_MODES[m] for m in op.modifiers if m in PERMUTE_MODES]
    number = control.integer
    if modes and number is not None:
        number = modes[0][number & 3]
    elif modes:
        low = b.binary("and", control, constant("i32", 3))
        control = constant("i32", modes[0][0])
        for index in (1, 2, 3):
            chosen = b.compare("icmp eq", low, constant("i32", index))
            control = b.select(chosen, constant("i32", modes[0][index]), control)
    if number is not None and not number & 0x8888:
        return _shuffle_bytes(b, x, y, number)
    both = b.binary("or", b.cast("zext", x, "i64"), b.binary("shl", b.cast("zext", y, "i64"), constant("i64", 32)))
    if number is not None:
        control = constant("i32", number)
    result = constant("i32", 0)
    for index in range(4):
        selector = b.binary("lshr", control, constant("i32", 4 * index))
        amount = b.binary("shl", b.binary("and", selector, constant("i32", 7)), constant("i32", 3))
        byte = b.cast("trunc", b.binary("lshr", both, b.cast("zext", amount, "i64")), "i8")
        filled = b.binary("ashr", byte, constant("i8", 7))
        spread = b.compare("icmp ne", b.binary("and", selector, constant("i32", 8)), constant("i32", 0))
        byte = b.cast("zext", b.select(spread, filled, byte), "i32")
        result = b.binary("or", result, b.binary("shl", byte, constant("i32", 8 * index)))
    return result


def _shuffle_bytes(b: Builder, x: Value, y: Value, selectors: int) -> Value:
    """prmt with a literal control and no signs: one shuffle of the bytes of all lanes."""
    x, y = b.align_shapes(x, y)
    lanes = b.width if x.vector else 1
    bytes_type = f"<{4 * lanes} x i8>"
    left = b.emit(f"bitcast {b.typed(x)} to {bytes_type}")
    right = b.emit(f"bitcast {b.typed(y)} to {bytes_type}")
    picks = []
    for lane in range(lanes):
        for index in range(4):
            selector = selectors >> 4 * index & 7
            picks.append(4 * lane + (selector & 3) + (4 * lanes if selector & 4 else 0))
    mask = ", ".join(f"i32 {pick}" for pick in picks)
    bytes_of = b.emit(f"shufflevector {bytes_type} {left}, {bytes_type} {right}, <{4 * lanes} x i32> <{mask}>")
    return Value(b.emit(f"bitcast {bytes_type} {bytes_of} to {b.type_of(x)}"), "i32", x.vector)
