"""The datapath of the special function unit: parabolas whose coefficients come from tables, computed in fixed point.

An argument is reduced to a place: a segment, which chooses C0, C1 and C2, and 17 bits within it, i. The unit adds

    V = C0 + C1 * i + C2 * q(i)

exactly, and cuts the result to 24 bits. q(i) is i * i / 2**19 as a squarer has it that leaves out the partial products
below 2**19: those of bits a < b in the columns a + b + 1, and of a bit with itself in the columns 2 * a. This is the
design of Oberman and Siu ("A High-Performance Area-Efficient Multifunction Interpolator", ARITH 2005); the widths, the
squarer and the coefficients are those that give the results of an H200 (coefficients.py), bit for bit.

Where the result has its leading bit always in the same place, :func:`significand` computes in 32 bits what remains.
Otherwise :func:`total` has V as a double, which is exact, and :func:`cut` normalizes and cuts it.
"""

from __future__ import annotations

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import machine
from cupola.cpu.compiler.records import dataclass

KEPT = 0xFFFFFFFFE0000000
"""The bits of a double that a float has, but for the exponent's range."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A function on its reduced argument.

    The coefficients count in units of C1; ``steps`` is the binary logarithm of C0's unit, ``bias`` what C0 has beyond a
    multiple of it, and ``bends`` C2's unit with its sign.
    """

    name: str
    words: tuple[int, ...]
    steps: int
    bias: float
    bends: int
    falls: bool = False


def number(value: int) -> Value:
    return constant("i32", value)


def shifted(b: Builder, x: Value, count: int) -> Value:
    return b.binary("lshr", x, number(count)) if count else x


def masked(b: Builder, x: Value, mask: int) -> Value:
    return b.binary("and", x, number(mask))


def coefficients(b: Builder, curve: Curve, segment: Value) -> tuple[Value, Value, Value]:
    """C0, C1 and C2 of a segment, in their units; of its number, a table of a power of two takes the bits it needs."""
    if len(curve.words) & (len(curve.words) - 1) == 0:
        segment = b.binary("and", segment, constant("i16", len(curve.words) - 1))
    if segment.vector and b.width == IN_REGISTERS and machine.permutes_words():
        low, high, c2, c1 = (b.cast("zext", part, "i32") for part in permuted(b, curve, segment))
        return b.binary("or", low, b.binary("shl", high, number(16))), c1, c2
    table = f"@cupola.table.{curve.name}"
    words = ", ".join(f"i64 {word}" for word in curve.words)
    b.declarations[f"{table} = internal unnamed_addr constant [{len(curve.words)} x i64] [{words}]"] = None
    place = b.emit(f"getelementptr i64, ptr {table}, {b.typed(b.cast('zext', segment, 'i32'))}")
    if segment.vector:
        word = b.gather("i64", place, align=8)
    else:
        word = Value(b.emit(f"load i64, ptr {place}, align 8"), "i64")
    upper = b.cast("trunc", b.binary("lshr", word, constant("i64", 32)), "i32")
    return b.cast("trunc", word, "i32"), shifted(b, upper, 16), masked(b, upper, 0xFFFF)


IN_REGISTERS = 32
"""16-bit numbers in a vector, of which an instruction of AVX-512 chooses any out of two vectors for each lane."""


def permuted(b: Builder, curve: Curve, segment: Value) -> list[Value]:
    """The four 16-bit parts of a segment's word from tables in registers, which takes less time than a gather."""
    vector = b.vector_type("i16")
    name = "llvm.x86.avx512.vpermi2var.hi.512"
    b.declarations[f"declare {vector} @{name}({vector}, {vector}, {vector})"] = None
    parts = []
    for part in range(0, 64, 16):
        numbers = [word >> part & 0xFFFF for word in curve.words]
        numbers += [0] * (-len(numbers) % (2 * IN_REGISTERS))
        starts = range(0, len(numbers), IN_REGISTERS)
        halves = [b.per_lane("i16", numbers[start : start + IN_REGISTERS]).ir for start in starts]
        result: Value | None = None
        for index, (low, high) in enumerate(zip(halves[::2], halves[1::2], strict=True)):
            call = f"call {vector} @{name}({vector} {low}, {b.typed(segment)}, {vector} {high})"
            chosen = Value(b.emit(call), "i16", True)
            below = b.compare("icmp ult", segment, constant("i16", 2 * IN_REGISTERS * index))
            result = chosen if result is None else b.select(below, result, chosen)
        assert result is not None
        parts.append(result)
    return parts


def truncated_square(b: Builder, place: Value, upper: Value) -> Value:
    """q(i) as 16 bits, of which a vector holds twice as many; ``upper`` is the place without its lowest 9 bits.

    With h = i >> 9, the bits above column 18 are those of h * h, and of each lower bit a >= 2 times h >> (9 - a). Two
    such terms that are neighbors are the upper half of one product: that of the two bits and of h without the bits that
    the upper one of them does not count, both so far up that the rest is below 2**16.
    """
    high = b.binary("and", upper, constant("i16", 0xFF))
    low = b.binary("shl", b.cast("trunc", place, "i16"), constant("i16", 1))
    raised = b.binary("shl", high, constant("i16", 6))
    result = b.binary("lshr", b.binary("mul", high, high), constant("i16", 1))
    for a, bits in ((8, 3), (6, 3), (4, 3), (2, 1)):
        pair = b.binary("and", low, constant("i16", bits << (a if bits == 3 else a + 1)))
        kept = b.binary("and", raised, constant("i16", -1 << (15 - a)))
        result = b.binary("add", result, upper_half(b, pair, kept))
    return result


def upper_half(b: Builder, x: Value, y: Value) -> Value:
    """Of a product of 16-bit numbers."""
    product = b.binary("mul", b.cast("zext", x, "i32"), b.cast("zext", y, "i32"))
    return b.cast("trunc", shifted(b, product, 16), "i16")


def significand(b: Builder, curve: Curve, place: Value, *, doubled: Value | None = None) -> Value:
    """V without what lies below its 24 upper bits; C1 counts twice where ``doubled`` is 1.

    C0's two lowest bits and its bias are below the result, the others in it. So is the lower part of C1 * i, and all
    of it has 32 bits once the lowest bits of i have been added to the rest, and as many bits fewer are kept.
    """
    upper = b.cast("trunc", shifted(b, place, 9), "i16")
    c0, c1, c2 = coefficients(b, curve, b.binary("lshr", upper, constant("i16", 8)))
    last, rest = masked(b, c0, 3), int(curve.bias)
    if curve.falls:  # C0 less what is rounded up is what is rounded down
        last, rest = b.binary("xor", last, number(3)), (1 << curve.steps) - 1 - rest
    below = b.binary("add", b.binary("shl", last, number(curve.steps)), number(rest))
    bend = b.binary("mul", b.cast("zext", truncated_square(b, place, upper), "i32"), c2)
    below = b.binary("sub" if (curve.bends < 0) != curve.falls else "add", below, bend)
    if doubled is None:
        spared, odd = 1, b.binary("sub", number(0), masked(b, place, 1))
        below = b.binary("add", below, b.binary("and", c1, odd))
    else:
        spared, c1 = 2, b.binary("shl", c1, doubled)
        below = b.binary("add", below, b.binary("mul", c1, masked(b, place, 3)))
    i = masked(b, shifted(b, place, spared), 0x1FFFF >> spared)
    change = b.binary("add", b.binary("mul", c1, i), b.binary("ashr", below, number(spared)))
    change = shifted(b, change, curve.steps + 2 - spared)
    return b.binary("sub" if curve.falls else "add", shifted(b, c0, 2), change)


def total(b: Builder, curve: Curve, place: Value) -> Value:
    """V as a double, in units of C1."""
    upper = b.cast("trunc", shifted(b, place, 9), "i16")
    c0, c1, c2 = coefficients(b, curve, b.binary("lshr", upper, constant("i16", 8)))
    return weighted(b, curve, c0, c1, c2, masked(b, place, 0x1FFFF))


def weighted(b: Builder, curve: Curve, c0: Value, c1: Value, c2: Value, i: Value) -> Value:
    """V of coefficients."""
    square = truncated_square(b, i, b.cast("trunc", shifted(b, i, 9), "i16"))
    start = scaled(b, wide(b, c0), 1 << curve.steps, real("double", curve.bias))
    straight = b.intrinsic("fmuladd", wide(b, c1), wide(b, i), start)
    return scaled(b, wide(b, b.binary("mul", b.cast("zext", square, "i32"), c2)), curve.bends, straight)


def scaled(b: Builder, x: Value, factor: float, addend: Value) -> Value:
    return b.intrinsic("fmuladd", x, real("double", factor), addend)


def wide(b: Builder, x: Value) -> Value:
    """A nonnegative number of 31 bits as a double."""
    return b.cast("sitofp", x, "double")


def cut(b: Builder, x: Value) -> Value:
    """A double in the range of floats, cut to 24 bits."""
    bits = b.binary("and", b.bitcast(x, "i64"), constant("i64", KEPT))
    return b.cast("fptrunc", b.bitcast(bits, "double"), "float")
