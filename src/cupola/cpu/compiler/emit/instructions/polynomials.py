"""The approximate functions in the fast way: rsqrt, ex2, lg2, sin, cos, tanh, within the error bounds of the ISA.

Polynomials in vector arithmetic, so that all lanes are computed at once; an H200's bits are not these (unit.py). Their
coefficients are minimax fits in the relative error (Lawson's algorithm on Chebyshev nodes). Adding and then
subtracting 1.5 * 2**23 rounds a float to an integer, which the low bits of the sum also hold.
"""

from __future__ import annotations

from collections.abc import Callable

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import Value

from .formats import is_nan

EX2 = (
    1.0,
    0.6931472057372617,
    0.2402264689062018,
    0.05550328776973953,
    0.00961848895860677,
    0.0013399931216269802,
    0.0001534581160548577,
)
"""2**x on [-1/2, 1/2], relative error 2**-29."""

LG2 = (
    1.4426950036523816,
    -0.7213473468082097,
    0.48091064295653485,
    -0.36070368237870326,
    0.287916247337823,
    -0.2389448308182874,
    0.21571562348541984,
    -0.2072696872095607,
    0.12583689840974074,
)
"""log2(1 + t) / t on [sqrt(1/2) - 1, sqrt(2) - 1], relative error 2**-25."""

SIN = (-0.16666657092694454, 0.00833301719757882, -0.00019806608368156558, 2.6000395670691007e-06)
"""(sin(r) / r - 1) / r**2 in powers of r**2 on [-pi/2, pi/2], absolute error of sin 2**-27."""

PI_HIGH, PI_LOW = 3.141592502593994, 1.509957990978376e-07
"""Both positive, so that no step of the reduction turns -0 into +0."""
ROUNDER = 12582912.0


def single(number: float) -> Value:
    return real("float", number)


def polynomial(b: Builder, x: Value, coefficients: tuple[float, ...]) -> Value:
    """Horner's scheme; coefficients from the constant term upwards."""
    result = single(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = b.intrinsic("fma", result, x, single(c))
    return result


def round_with_bits(b: Builder, x: Value) -> tuple[Value, Value]:
    """A float of modest size rounded to an integer: as a float, and as an i32."""
    shifted = b.binary("fadd", x, single(ROUNDER))
    whole = b.binary("fsub", shifted, single(ROUNDER))
    return whole, b.binary("sub", b.bitcast(shifted, "i32"), b.bitcast(single(ROUNDER), "i32"))


def guarded(
    b: Builder,
    name: str,
    x: Value,
    fast: Callable[[Builder, Value], Value],
    exact: Callable[[Builder, Value], Value],
) -> Value:
    """``fast(x)`` where all executing lanes hold positive normal numbers, else ``exact(x)`` for all lanes."""
    masked = x.vector and b.active.vector

    def body(b: Builder, arguments: list[Value]) -> Value:
        x = arguments[0]
        offset = b.binary("sub", b.bitcast(x, "i32"), constant("i32", 0x00800000))
        special = b.compare("icmp uge", offset, constant("i32", 0x7F000000))
        if masked:
            special = b.binary("and", special, arguments[1])
        usual = fast(b, x)
        found = b.freeze(b.reduce("or", special))
        b.line(f'br i1 {found.ir}, label %special, label %done, !prof !{{!"branch_weights", i32 1, i32 9999}}')
        b.label("special")
        other = exact(b, x)
        b.line("br label %done")
        b.label("done")
        type = b.type_of(x)
        return Value(b.emit(f"phi {type} [ {usual.ir}, %entry ], [ {other.ir}, %special ]"), x.type, x.vector)

    arguments = [x, b.active] if masked else [x]
    full = f"{name}.masked" if masked else name
    return b.function(full, x.type, arguments, body, attributes="alwaysinline nounwind")


def exact_reciprocal_root(b: Builder, x: Value) -> Value:
    return b.binary("fdiv", real(x.type, 1.0), b.intrinsic("sqrt", x))


def fast_reciprocal_root(b: Builder, x: Value) -> Value:
    """The host's estimate, which the flags on the division ask for, and a step of Newton's iteration."""
    root = b.intrinsic("sqrt", x, flags="afn arcp ")
    estimate = b.binary("fdiv arcp afn", single(1.0), root)
    residue = b.intrinsic("fma", b.unary("fneg", b.binary("fmul", x, estimate)), estimate, single(1.0))
    return b.intrinsic("fma", b.binary("fmul", estimate, single(0.5)), residue, estimate)


def reciprocal_root(b: Builder, x: Value) -> Value:
    return guarded(b, "rsqrt", x, fast_reciprocal_root, exact_reciprocal_root)


def exp2(b: Builder, x: Value, *, subnormal: bool) -> Value:
    """2**x; results below the normal range are flushed unless ``subnormal``."""
    low, high = -151.0, 129.0
    clamped = b.select(b.compare("fcmp olt", x, single(low)), single(low), x)
    clamped = b.select(b.compare("fcmp ogt", clamped, single(high)), single(high), clamped)
    whole, exponent = round_with_bits(b, clamped)
    power = polynomial(b, b.binary("fsub", clamped, whole), EX2)
    if not subnormal:
        scaled = b.binary("add", b.bitcast(power, "i32"), b.binary("shl", exponent, constant("i32", 23)))
        result = b.bitcast(scaled, "float")
        result = b.select(b.compare("fcmp olt", x, single(-126.0)), single(0.0), result)
        result = b.select(b.compare("fcmp oge", x, single(128.0)), single(float("inf")), result)
        return b.select(is_nan(b, x), x, result)
    # Two factors, because 2**exponent itself may be out of range.
    half = b.binary("ashr", exponent, constant("i32", 1))
    for part in (half, b.binary("sub", exponent, half)):
        biased = b.binary("shl", b.binary("add", part, constant("i32", 127)), constant("i32", 23))
        power = b.binary("fmul", power, b.bitcast(biased, "float"))
    return power


def log2_normal(b: Builder, x: Value) -> Value:
    """log2 of positive normal numbers: the exponent plus the logarithm of a number in [sqrt(1/2), sqrt(2)]."""
    bits = b.bitcast(x, "i32")
    exponent = b.binary("ashr", b.binary("sub", bits, b.bitcast(single(0.5**0.5), "i32")), constant("i32", 23))
    mantissa = b.bitcast(b.binary("sub", bits, b.binary("shl", exponent, constant("i32", 23))), "float")
    t = b.binary("fsub", mantissa, single(1.0))
    return b.intrinsic("fma", t, polynomial(b, t, LG2), b.cast("sitofp", exponent, "float"))


def log2_any(b: Builder, x: Value) -> Value:
    small = b.compare("fcmp olt", x, single(2.0**-126))
    result = log2_normal(b, b.select(small, b.binary("fmul", x, single(2.0**23)), x))
    result = b.select(small, b.binary("fsub", result, single(23.0)), result)
    infinite = single(float("inf"))
    result = b.select(b.compare("fcmp oeq", x, infinite), infinite, result)
    result = b.select(b.compare("fcmp oeq", x, single(0.0)), single(float("-inf")), result)
    return b.select(b.compare("fcmp oge", x, single(0.0)), result, constant("float", 0x7FFFFFFF))


def logarithm(b: Builder, x: Value) -> Value:
    return guarded(b, "lg2", x, log2_normal, log2_any)


def sine(b: Builder, x: Value, *, cosine: bool = False) -> Value:
    """sin(x) = (-1)**k sin(x - k pi), and cos(x) = (-1)**k sin(x - (k - 1/2) pi).

    Far out, where no approximation is asked for, the reduced argument is kept in range so that the result is.
    """
    turns = b.binary("fmul", x, single(0.3183098861837907))
    if cosine:
        turns = b.binary("fadd", turns, single(0.5))
    count, bits = round_with_bits(b, turns)
    if cosine:
        count = b.binary("fsub", count, single(0.5))
    r = b.intrinsic("fma", count, single(-PI_HIGH), x)
    r = b.intrinsic("fma", count, single(-PI_LOW), r)
    limit = 1.5707964
    r = b.select(b.compare("fcmp ogt", r, single(limit)), single(limit), r)
    r = b.select(b.compare("fcmp olt", r, single(-limit)), single(-limit), r)
    square = b.binary("fmul", r, r)
    # A product, not a sum, so that the sine of -0 is -0.
    ratio = b.intrinsic("fma", square, polynomial(b, square, SIN), single(1.0))
    result = b.binary("fmul", r, ratio)
    odd = b.binary("shl", bits, constant("i32", 31))
    result = b.bitcast(b.binary("xor", b.bitcast(result, "i32"), odd), "float")
    return result


def tanh(b: Builder, x: Value) -> Value:
    """(1 - e) / (1 + e) with e = exp(-2|x|), and a Taylor polynomial near zero, where that cancels."""
    size = b.intrinsic("fabs", x)
    e = exp2(b, b.binary("fmul", size, single(-2.8853900817779268)), subnormal=False)
    one = single(1.0)
    far = b.binary("fdiv", b.binary("fsub", one, e), b.binary("fadd", one, e))
    near = b.binary("fmul", size, polynomial(b, b.binary("fmul", x, x), (1.0, -1 / 3, 2 / 15)))
    result = b.select(b.compare("fcmp olt", size, single(0.25)), near, far)
    return b.intrinsic("copysign", result, x)


def coarse(b: Builder, x: Value, *, root: bool) -> Value:
    """The ``.approx.ftz.f64`` functions: only the upper words of operand and result count, subnormal is zero."""
    upper = constant("i64", 0xFFFFFFFF00000000)
    bits = b.binary("and", b.bitcast(x, "i64"), upper)  # so that a NaN of few low bits counts as an infinity
    value = b.bitcast(_flush_double(b, bits), "double")
    if root:
        value = b.intrinsic("sqrt", value)
    value = b.binary("fdiv", real("double", 1.0), value)
    bits = _flush_double(b, b.binary("and", b.bitcast(value, "i64"), upper))
    return b.bitcast(b.select(is_nan(b, value), constant("i64", 0x7FFFFFFF00000000), bits), "double")


def _flush_double(b: Builder, bits: Value) -> Value:
    exponent = b.binary("and", bits, constant("i64", 0x7FF0000000000000))
    small = b.compare("icmp eq", exponent, constant("i64", 0))
    return b.select(small, b.binary("and", bits, constant("i64", 1 << 63)), bits)
