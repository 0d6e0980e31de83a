"""Conversions to and from formats of eight bits and fewer, their scales, and stochastic rounding (PTX ISA, "cvt").

A number is brought to units of its result's last place, where rounding is rounding to an integer; below the normal
range those are the units of the least normal number. So one way of rounding serves every format.
"""

from __future__ import annotations

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.records import dataclass

from .formats import HALF_NAN, is_nan, narrow, widen
from .half import halves, join
from .registry import LLVM_TYPE, Operation


@dataclass(frozen=True, slots=True)
class Format:
    """A floating format: its mantissa, the bias of its exponent, its patterns of the largest number and of a NaN."""

    bits: int
    mantissa: int
    bias: int
    largest: int
    nan: int

    @property
    def limit(self) -> float:
        """The largest number."""
        exponent, fraction = divmod(self.largest, 1 << self.mantissa)
        return (fraction + (1 << self.mantissa)) * 2.0 ** (exponent - self.bias - self.mantissa)


# A NaN becomes the largest number in the formats that have none.
FORMATS = {
    "e4m3": Format(8, 3, 7, 0x7E, 0x7F),
    "e5m2": Format(8, 2, 15, 0x7B, 0x7F),
    "e2m3": Format(6, 3, 1, 0x1F, 0x1F),
    "e3m2": Format(6, 2, 3, 0x1F, 0x1F),
    "e2m1": Format(4, 1, 1, 0x07, 0x07),
}
HALF = Format(16, 10, 15, 0x7C00, 0x7FFF)
"""f16 with its infinity as the largest number, to which what is larger is cut."""

SCALED = "scaled::n2::ue8m0"
_FLOATING = tuple(FORMATS)
_OF_BF16 = (*_FLOATING, "ue8m0", "s2f6")

SOURCES: dict[tuple[str, ...], int] = {
    **{(f"{name}x2", "f32"): 2 for name in _OF_BF16},
    **{(f"{name}x4", "f32"): 4 for name in _FLOATING},
    **{pair: 1 for name in _FLOATING for pair in ((f"{name}x2", "f16x2"), ("f16x2", f"{name}x2"))},
    **{pair: 1 for name in _OF_BF16 for pair in ((f"{name}x2", "bf16x2"), ("bf16x2", f"{name}x2"))},
}
"""The conversions of this module, with the numbers that they take."""

PAIRS = " ".join(["f16x2", "bf16x2", *(f"{name}x2" for name in _OF_BF16)])
"""The sources that hold two numbers."""


def random_bits(b: Builder, op: Operation, word: Value) -> tuple[Value, ...]:
    """What each source of ``.rs`` takes of the word of random bits.

    Each of four numbers of 8 or 6 bits shares 16 of them with its neighbor. The ISA's text says of four numbers of 4
    bits that each pair takes a byte of each half, here one for each number.
    """
    to = op.types[0]
    places: tuple[int, ...]
    if to == "f16x2":
        places, bits = (16, 0), 13
    elif to == "bf16x2":
        places, bits = (16, 0), 16
    elif to == "e2m1x4":
        places, bits = (24, 8, 16, 0), 8
    else:
        places, bits = (16, 16, 0, 0), 16
    return tuple(_field(b, word, at, bits) for at in places)


def _field(b: Builder, word: Value, at: int, bits: int) -> Value:
    mask = constant(word.type, (1 << bits) - 1)
    return b.binary("and", b.binary("lshr", word, constant(word.type, at)) if at else word, mask)


def _size(b: Builder, format: Format, limit: float, x: Value, random: tuple[Value, int] | None) -> Value:
    """The pattern of a float without its sign, in an i32; at most that of ``limit``, and this for a NaN.

    ``random`` is an integer of some bits, the first of which stands for half of the last place.
    """
    size = b.intrinsic("fabs", x)
    size = b.select(b.compare("fcmp olt", size, real("float", limit)), size, real("float", limit))
    first = 128 - format.bias  # the biased exponent of the least normal number
    exponent = b.intrinsic(
        "smax", b.binary("lshr", b.bitcast(size, "i32"), constant("i32", 23)), constant("i32", first)
    )
    unit = b.binary("shl", b.binary("sub", constant("i32", format.mantissa + 254), exponent), constant("i32", 23))
    units = b.binary("fmul", size, b.bitcast(unit, "float"))
    if random is None:
        whole = b.cast("fptosi", b.intrinsic("roundeven", units), "i32")
    else:
        given, bits = random
        parts = b.cast("fptosi", b.binary("fmul", units, real("float", 2.0**bits)), "i32")
        whole = b.binary("lshr", b.binary("add", parts, given), constant("i32", bits))
    above = b.binary("sub", exponent, constant("i32", first))
    return b.binary("add", b.binary("shl", above, constant("i32", format.mantissa)), whole)


def _negative(b: Builder, x: Value) -> Value:
    return b.compare("icmp slt", b.bitcast(x, "i32"), constant("i32", 0))


def _narrowed(b: Builder, op: Operation, name: str, x: Value, random: Value | None) -> Value:
    """One float in a narrow format, in the low bits of an i32."""
    format = FORMATS[name]
    given = None if random is None else (random, 8 if name == "e2m1" else 16)
    result = _size(b, format, format.limit, x, given)
    negative = _negative(b, x)
    if op.has("relu"):
        result = b.select(negative, constant("i32", 0), result)
    else:
        sign = b.select(negative, constant("i32", 1 << (format.bits - 1)), constant("i32", 0))
        result = b.binary("or", result, sign)
    return b.select(is_nan(b, x), constant("i32", format.nan), result)


def half_by_chance(b: Builder, x: Value, to: str, random: Value) -> Value:
    """f16 or bf16 by stochastic rounding. For bf16 there is a random bit for each one that is cut off."""
    bits = b.bitcast(x, "i32")
    if to == "bf16":
        result = b.binary("lshr", b.binary("add", bits, random), constant("i32", 16))
    else:
        sign = b.binary("and", b.binary("lshr", bits, constant("i32", 16)), constant("i32", 0x8000))
        result = b.binary("or", _size(b, HALF, 2.0**16, x, (random, 13)), sign)
    return b.select(is_nan(b, x), HALF_NAN, b.cast("trunc", result, "i16"))


def limited_half(b: Builder, op: Operation, to: str, result: Value) -> Value:
    """A result in f16 or bf16 as ``.satfinite`` and ``.relu`` leave it."""
    sign = b.binary("and", result, constant("i16", 0x8000))
    size = b.binary("and", result, constant("i16", 0x7FFF))
    if op.has("satfinite"):
        infinity = constant("i16", 0x7C00 if to == "f16" else 0x7F80)
        largest = b.binary("or", sign, constant("i16", 0x7BFF if to == "f16" else 0x7F7F))
        result = b.select(b.compare("icmp eq", size, infinity), largest, result)
    if op.has("relu"):
        negative = b.compare("icmp slt", result, constant("i16", 0))
        result = b.select(negative, constant("i16", 0), result)
    return result


def _scale(b: Builder, x: Value) -> Value:
    """A factor of the format ue8m0, in the low byte of an i32, as a float: a power of two, or a NaN."""
    least = b.compare("icmp eq", x, constant("i32", 0))  # 2**-127 is subnormal
    bits = b.select(least, constant("i32", 1 << 22), b.binary("shl", x, constant("i32", 23)))
    nan = b.compare("icmp eq", x, constant("i32", 0xFF))
    return b.bitcast(b.select(nan, constant("i32", 0x7FFFFFFF), bits), "float")


def _scales(b: Builder, scale: tuple[Value, ...], *, divide: bool) -> tuple[Value, ...]:
    """The factors of the upper and of the lower number, or what to multiply by for a division."""
    factors = []
    for at in (8, 0) if scale else ():
        factor = _field(b, b.cast("zext", scale[0], "i32"), at, 8)
        if divide:  # 254 - x; the NaN stays one
            factor = b.binary("and", b.binary("sub", constant("i32", 254), factor), constant("i32", 0xFF))
        factors.append(_scale(b, factor))
    return tuple(factors)


def _to_scale(b: Builder, op: Operation, x: Value) -> Value:
    """The power of two at or (``.rp``) above the size of a float, as ue8m0; the sign does not count."""
    size = b.binary("and", b.bitcast(x, "i32"), constant("i32", 0x7FFFFFFF))
    result = b.binary("lshr", size, constant("i32", 23))
    if op.has("rp"):
        inexact = b.compare("icmp ne", b.binary("and", size, constant("i32", 0x7FFFFF)), constant("i32", 0))
        above = b.compare("icmp ugt", size, constant("i32", 1 << 22))  # 2**-127, the least one
        finite = b.compare("icmp ult", size, constant("i32", 0x7F800000))
        up = b.binary("and", inexact, b.binary("and", above, finite))
        result = b.binary("add", result, b.cast("zext", up, "i32"))
    if op.has("satfinite"):
        result = b.intrinsic("umin", result, constant("i32", 0xFE))
    return b.select(is_nan(b, x), constant("i32", 0xFF), result)


def _to_fixed(b: Builder, op: Operation, x: Value) -> Value:
    """A float as s2f6: 64ths in two's complement, from -2 to 127 / 64, which a NaN becomes, too."""
    units = b.binary("fmul", x, real("float", 64.0))
    low, high = real("float", 0.0 if op.has("relu") else -128.0), real("float", 127.0)
    units = b.select(b.compare("fcmp olt", units, high), units, high)
    units = b.select(b.compare("fcmp ogt", units, low), units, low)
    return b.binary("and", b.cast("fptosi", b.intrinsic("roundeven", units), "i32"), constant("i32", 0xFF))


def packed(b: Builder, op: Operation, *sources: Value) -> Value:
    """Two or four numbers side by side in a narrow format, the first one in the highest bits."""
    to, source = op.types
    name, count = to[:-2], int(to[-1])
    if source == "f32":
        numbers, more = sources[:count], sources[count:]
    else:
        low, high = halves(b, sources[0])
        numbers, more = tuple(widen(b, x, source[:-2]) for x in (high, low)), sources[1:]
    if op.has(SCALED):
        factors = _scales(b, more, divide=True)
        numbers = tuple(b.binary("fmul", x, y) for x, y in zip(numbers, factors, strict=True))
    random: tuple[Value | None, ...] = random_bits(b, op, more[0]) if op.has("rs") else (None,) * count
    width = 4 if name == "e2m1" else 8
    result = constant("i32", 0)
    for x, given in zip(numbers, random, strict=True):
        if name == "ue8m0":
            pattern = _to_scale(b, op, x)
        elif name == "s2f6":
            pattern = _to_fixed(b, op, x)
        else:
            pattern = _narrowed(b, op, name, x, given)
        result = b.binary("or", b.binary("shl", result, constant("i32", width)), pattern)
    type = LLVM_TYPE[to]
    return result if type == "i32" else b.cast("trunc", result, type)


def _widened(b: Builder, name: str, x: Value) -> Value:
    """The float of a number in the low bits of an i32; every number of a narrow format is one."""
    if name == "ue8m0":
        return _scale(b, x)
    if name == "s2f6":
        signed = b.cast("sext", b.cast("trunc", x, "i8"), "i32")
        return b.binary("fmul", b.cast("sitofp", signed, "float"), real("float", 1 / 64))
    format = FORMATS[name]
    size = b.binary("and", x, constant("i32", (1 << (format.bits - 1)) - 1))
    bits = b.binary("shl", size, constant("i32", 23 - format.mantissa))
    value = b.binary("fmul", b.bitcast(bits, "float"), real("float", 2.0 ** (127 - format.bias)))
    bits = b.bitcast(value, "i32")
    if name == "e5m2":
        infinite = b.compare("icmp eq", size, constant("i32", format.largest + 1))
        bits = b.select(infinite, constant("i32", 0x7F800000), bits)
    if format.nan != format.largest:
        nan = b.compare("icmp ugt", size, constant("i32", format.largest + (name == "e5m2")))
        bits = b.select(nan, constant("i32", 0x7FFFFFFF), bits)
    sign = b.binary("and", x, constant("i32", 1 << (format.bits - 1)))
    return b.bitcast(b.binary("or", bits, b.binary("shl", sign, constant("i32", 32 - format.bits))), "float")


def unpacked(b: Builder, op: Operation, x: Value, *scale: Value) -> Value:
    """The two numbers of a narrow format as f16x2 or bf16x2, times their factors."""
    to, source = op.types
    name = source[:-2]
    word = b.cast("zext", x, "i32")
    width = 4 if name == "e2m1" else 8
    factors = _scales(b, scale, divide=False)
    results = []
    for index, at in enumerate((width, 0)):
        value = _widened(b, name, _field(b, word, at, width))
        if factors:
            value = b.binary("fmul", value, factors[index])
        results.append(limited_half(b, op, to[:-2], narrow(b, value, to[:-2])))
    high, low = results
    return join(b, low, high)
