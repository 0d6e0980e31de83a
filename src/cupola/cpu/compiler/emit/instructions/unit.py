"""The special function unit: what it makes of a float, subnormal numbers being zero to it.

Each function reduces its argument (interpolation.py has the rest), and says what the special operands give. PTX's
instructions with ``.ftz`` are these functions; those without wrap them (approximate.py).
"""

from __future__ import annotations

from collections.abc import Callable

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import Value

from . import coefficients
from .formats import CANONICAL_NAN
from .interpolation import Curve, cut, masked, number, scaled, shifted, significand, total, weighted, wide
from .interpolation import coefficients as coefficients_of

BY_SIXTEENTHS = tuple(word for word in coefficients.TANH for _ in range(1 << (word >> 24 & 15) - 2))
"""tanh's coefficients of each sixteenth of a power of two."""

RCP = Curve("rcp", coefficients.RCP, 14, 4046, 1, falls=True)
RSQRT = Curve("rsqrt", coefficients.RSQRT, 14, 0x3FFF, 1, falls=True)
SQRT = Curve("sqrt", coefficients.SQRT, 15, 0x7FFF, -1)
EX2 = Curve("ex2", coefficients.EX2, 13, 6114, 1)
LG2 = Curve("lg2", coefficients.LG2, 12, 837.25, -2)
SIN = Curve("sin", coefficients.SIN, 11, 0, -1)
TANH = Curve("tanh", BY_SIXTEENTHS, 15, 0, -2)

INFINITY = 0x7F800000
SIZE = 0x7FFFFFFF
SIGN = 0x80000000
LEAST = 0x00800000
"""The least normal number."""

Function = Callable[[Builder, Value], Value]


def single(bits: int) -> Value:
    return constant("float", bits)


def where(b: Builder, condition: Value, bits: int, otherwise: Value) -> Value:
    return b.select(condition, number(bits), otherwise)


def normal_or_zero(b: Builder, bits: Value) -> Value:
    """A positive float that a sum of its exponent and its significand has made, or 0 below the normal range."""
    return where(b, b.compare("icmp slt", bits, number(LEAST)), 0, bits)


def finished(b: Builder, bits: Value, is_nan: Value) -> Value:
    return b.bitcast(where(b, is_nan, CANONICAL_NAN["float"], bits), "float")


def reciprocal(b: Builder, x: Value) -> Value:
    """1 / x: of x = m * 2**e it is V * 2**(-e - 40), with V from 2**39 to 2**40."""
    bits = b.bitcast(x, "i32")
    size, sign = masked(b, bits, SIZE), masked(b, bits, SIGN)
    value = reciprocal_significand(b, bits)
    exponent = b.binary("sub", number(252 << 23), masked(b, bits, INFINITY))
    result = normal_or_zero(b, b.binary("add", value, exponent))
    result = where(b, b.compare("icmp ult", size, number(LEAST)), INFINITY, result)
    return finished(b, b.binary("or", result, sign), b.compare("icmp ugt", size, number(INFINITY)))


def reciprocal_significand(b: Builder, fraction: Value) -> Value:
    """Of the lowest 23 bits, a number's fraction."""
    return significand(b, RCP, b.binary("shl", fraction, number(1)))


def half_exponent(b: Builder, size: Value) -> Value:
    """(e + 1) >> 1 of a biased exponent e, in the place of the exponent."""
    return masked(b, shifted(b, b.binary("add", size, number(LEAST)), 1), INFINITY)


def reciprocal_root(b: Builder, x: Value) -> Value:
    """1 / sqrt(x), with V from 2**39 to 2**40. What is no power of two is below the power of two that 1 gives."""
    bits = b.bitcast(x, "i32")
    size = masked(b, bits, SIZE)
    value = reciprocal_root_significand(b, masked(b, size, 0xFFFFFF))
    result = b.binary("sub", b.binary("add", value, number(189 << 23)), half_exponent(b, size))
    result = where(b, b.compare("icmp eq", size, number(INFINITY)), 0, result)
    zero = b.compare("icmp ult", size, number(LEAST))
    result = b.select(zero, b.binary("or", masked(b, bits, SIGN), number(INFINITY)), result)
    return finished(b, result, outside_of_root(b, bits, size))


def reciprocal_root_significand(b: Builder, fraction: Value) -> Value:
    """Of the 23 bits of a number's fraction and the last one of its biased exponent."""
    value = significand(b, RSQRT, fraction)
    return where(b, b.compare("icmp eq", fraction, number(LEAST)), 1 << 24, value)


def outside_of_root(b: Builder, bits: Value, size: Value) -> Value:
    """Whether it is a NaN or below zero."""
    nan = b.compare("icmp ugt", size, number(INFINITY))
    return b.binary("or", nan, b.compare("icmp ugt", bits, number(SIGN + LEAST - 1)))


def root(b: Builder, x: Value) -> Value:
    """sqrt(x), with V from 2**40 to 2**41."""
    bits = b.bitcast(x, "i32")
    size = masked(b, bits, SIZE)
    odd = b.binary("xor", masked(b, shifted(b, bits, 23), 1), number(1))
    value = significand(b, SQRT, bits, doubled=odd)
    result = b.binary("add", b.binary("add", value, number(62 << 23)), half_exponent(b, size))
    result = where(b, b.compare("icmp eq", size, number(INFINITY)), INFINITY, result)
    result = b.select(b.compare("icmp ult", size, number(LEAST)), masked(b, bits, SIGN), result)
    return finished(b, result, outside_of_root(b, bits, size))


def power(b: Builder, x: Value) -> Value:
    """2**x, with V from 2**40 to 2**41.

    The size of x is cut to 23 binary places, and the number is made negative by its complement: that is one step less,
    but for whole numbers.
    """
    bits = b.bitcast(x, "i32")
    size = b.intrinsic("fabs", x)
    near = b.select(b.compare("fcmp olt", size, real("float", 200.0)), size, real("float", 200.0))
    steps = b.cast("fptosi", b.binary("fmul", near, real("float", 2.0**23)), "i32")
    whole = b.compare("icmp eq", masked(b, steps, 0x7FFFFF), number(0))
    negative = b.binary("add", b.binary("xor", steps, number(-1)), b.cast("zext", whole, "i32"))
    steps = b.select(b.compare("icmp slt", bits, number(0)), negative, steps)
    value = significand(b, EX2, steps)
    exponent = b.binary("and", steps, number(~0x7FFFFF))
    result = normal_or_zero(b, b.binary("add", b.binary("add", value, exponent), number(126 << 23)))
    result = where(b, b.compare("fcmp oge", x, real("float", 128.0)), INFINITY, result)
    return finished(b, result, b.compare("fcmp uno", x, x))


def logarithm(b: Builder, x: Value) -> Value:
    """log2(x): the exponent and V cut to 36 places, and where that is negative its complement with a minus."""
    bits = b.bitcast(x, "i32")
    size = masked(b, bits, SIZE)
    fraction = total(b, LG2, bits)
    exponent = wide(b, b.binary("sub", shifted(b, size, 23), number(127)))
    sum = b.intrinsic("floor", scaled(b, exponent, 2.0**36, b.binary("fmul", fraction, real("double", 0.25))))
    negative = b.compare("fcmp olt", sum, real("double", 0.0))
    sum = b.select(negative, b.binary("fsub", real("double", -1.0), sum), sum)
    result = b.bitcast(cut(b, b.binary("fmul", sum, real("double", 2.0**-36))), "i32")
    result = b.binary("or", result, b.binary("and", b.cast("sext", negative, "i32"), number(SIGN)))
    result = where(b, b.compare("icmp eq", bits, number(0x3F800000)), 0, result)
    result = where(b, b.compare("icmp eq", size, number(INFINITY)), INFINITY, result)
    result = where(b, b.compare("icmp ult", size, number(LEAST)), SIGN | INFINITY, result)
    return finished(b, result, outside_of_root(b, bits, size))


def sine(b: Builder, x: Value) -> Value:
    return circular(b, x, cycles_of(b, x), 0)


def cosine(b: Builder, x: Value) -> Value:
    return circular(b, x, cycles_of(b, x), 1)


def sine_of_cycles(b: Builder, x: Value) -> Value:
    return circular(b, x, whole_cycles(b, x), 0)


def cosine_of_cycles(b: Builder, x: Value) -> Value:
    return circular(b, x, whole_cycles(b, x), 1)


TURN = 0x3E22F983
"""1 / (2 pi), as the driver's assembler multiplies by it."""


def whole_cycles(b: Builder, x: Value) -> Value:
    return b.cast("fpext", b.intrinsic("fabs", x), "double")


def cycles_of(b: Builder, x: Value) -> Value:
    """The size of an angle in cycles: the product with 1 / (2 pi), rounded toward zero to a float."""
    turn = b.cast("fpext", single(TURN), "double")
    turns = b.binary("fmul", whole_cycles(b, x), turn)
    kept = b.binary("and", b.bitcast(turns, "i64"), constant("i64", 0xFFFFFFFFE0000000))
    return b.bitcast(kept, "double")


def circular(b: Builder, x: Value, turns: Value, ahead: int) -> Value:
    """The sine of x, whose size in cycles is given, ``ahead`` quadrants further on.

    That size is cut to 25 binary places: two bits are the quadrant, 23 the place in it, or its complement in odd
    quadrants.
    """
    bits = b.bitcast(x, "i32")
    part = b.binary("fsub", turns, b.intrinsic("floor", turns))
    special = b.compare("icmp uge", masked(b, bits, SIZE), number(INFINITY))
    part = b.select(special, real("double", 0.0), part)
    steps = b.cast("fptosi", b.binary("fmul", part, real("double", 2.0**25)), "i32")
    quadrant = b.binary("add", shifted(b, steps, 23), number(ahead))
    back = b.binary("sub", number(0), masked(b, quadrant, 1))
    place = b.binary("xor", steps, back)
    value = total(b, SIN, place)
    result = b.bitcast(cut(b, b.binary("fmul", value, real("double", 2.0**-37))), "i32")
    sign = masked(b, b.binary("shl", quadrant, number(30)), SIGN)
    if not ahead:
        sign = b.binary("xor", sign, masked(b, bits, SIGN))
    return finished(b, b.binary("or", result, sign), special)


def hyperbolic_tangent(b: Builder, x: Value) -> Value:
    """tanh(x): x below 2**-8, 1 from 8 on, and between them a table by powers of two (coefficients.py)."""
    bits = b.bitcast(x, "i32")
    size = masked(b, bits, SIZE)
    first, count = (127 - 8) << 4, len(TANH.words)
    place = b.binary("sub", shifted(b, size, 19), number(first))
    near = b.intrinsic("smin", b.intrinsic("smax", place, number(0)), number(count - 1))
    c0, c1, c2 = coefficients_of(b, TANH, b.cast("trunc", near, "i16"))
    i = masked(b, b.binary("lshr", masked(b, bits, 0x7FFFFF), masked(b, shifted(b, c0, 24), 15)), 0x1FFFF)
    c1 = b.binary("shl", c1, shifted(b, c0, 28))
    value = weighted(b, TANH, masked(b, c0, 0xFFFFFF), c1, c2, i)
    result = b.bitcast(cut(b, b.binary("fmul", value, real("double", 2.0**-39))), "i32")
    result = where(b, b.compare("icmp sge", place, number(count)), 0x3F800000, result)
    result = b.select(b.compare("icmp slt", place, number(0)), size, result)
    result = b.binary("or", result, masked(b, bits, SIGN))
    return finished(b, result, b.compare("icmp ugt", size, number(INFINITY)))


# In double precision


UPPER_NAN = 0x7FFFFFFF
UPPER_INFINITY = 0x7FF00000
UPPER_LEAST = 0x00100000


def coarse_reciprocal(b: Builder, upper: Value) -> Value:
    """The upper word of the reciprocal of a double, by its upper word: 20 bits of fraction to three more, and back."""
    size, sign = masked(b, upper, SIZE), masked(b, upper, SIGN)
    value = reciprocal_significand(b, b.binary("shl", upper, number(3)))
    exponent = b.binary("sub", number(2044 << 20), masked(b, upper, UPPER_INFINITY))
    result = b.binary("add", shifted(b, value, 3), exponent)
    result = where(b, b.compare("icmp slt", result, number(UPPER_LEAST)), 0, result)
    result = where(b, b.compare("icmp ult", size, number(UPPER_LEAST)), UPPER_INFINITY, result)
    nan = b.compare("icmp ugt", size, number(UPPER_INFINITY))
    return where(b, nan, UPPER_NAN, b.binary("or", result, sign))


def coarse_reciprocal_root(b: Builder, upper: Value) -> Value:
    """The same of 1 / sqrt(x)."""
    size = masked(b, upper, SIZE)
    value = reciprocal_root_significand(b, b.binary("shl", masked(b, upper, 0x1FFFFF), number(3)))
    half = masked(b, shifted(b, b.binary("add", size, number(UPPER_LEAST)), 1), UPPER_INFINITY)
    result = b.binary("sub", b.binary("add", shifted(b, value, 3), number(1533 << 20)), half)
    result = where(b, b.compare("icmp eq", size, number(UPPER_INFINITY)), 0, result)
    zero = b.compare("icmp ult", size, number(UPPER_LEAST))
    result = b.select(zero, b.binary("or", masked(b, upper, SIGN), number(UPPER_INFINITY)), result)
    nan = b.compare("icmp ugt", size, number(UPPER_INFINITY))
    below = b.compare("icmp ugt", upper, number(SIGN + UPPER_LEAST - 1))
    return where(b, b.binary("or", nan, below), UPPER_NAN, result)
