"""The floating formats: flushing, canonical NaNs, saturation, and rounding from a wide format to a narrow one.

Narrowing in two steps rounds twice, which is wrong on ties. *Rounding to odd* repairs that: when the wide
result is inexact its last bit is made 1, so that it lies on no tie and on no value of a format that is at least
two bits narrower, and the second rounding, in whatever direction, sees on which side the exact result was.
"""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import BITS, Value

from .registry import Operation

DIRECTED = ("rz", "rm", "rp")


def flush_subnormal(b: Builder, x: Value) -> Value:
    """A float with subnormal numbers replaced by zero of the same sign."""
    bits = b.bitcast(x, "i32")
    exponent = b.binary("and", bits, constant("i32", 0x7F800000))
    small = b.compare("icmp eq", exponent, constant("i32", 0))
    zero = b.bitcast(b.binary("and", bits, constant("i32", 0x80000000)), "float")
    return b.select(small, zero, x)


def flush(b: Builder, op: Operation, x: Value) -> Value:
    """``x`` as an operand or result of an instruction that may have ``.ftz``."""
    return flush_subnormal(b, x) if op.has("ftz") and x.type == "float" else x


def is_nan(b: Builder, x: Value) -> Value:
    return b.compare("fcmp uno", x, x)


CANONICAL_NAN = {"float": 0x7FFFFFFF, "double": 0xFFF8000000000000}


def canonical(b: Builder, x: Value) -> Value:
    """``x`` with the hardware's NaN in place of any other.

    In double precision the hardware keeps the payload of an operand, as the host does, and its own NaN is the
    host's default NaN; so nothing is to be done.
    """
    if x.type != "float":
        return x
    if not b.canonical_nans:
        return replace(x, raw_nan=True)
    return b.select(is_nan(b, x), constant("float", CANONICAL_NAN["float"]), x)


def settle_nans(b: Builder, x: Value) -> Value:
    """``x`` without ``raw_nan``: with the hardware's NaN in place of any other, whatever its type says it is."""
    if not x.raw_nan:
        return x
    return b.bitcast(_canonical_bits(b, b.bitcast(x, "i32")), x.type)


def is_raw_or_number(x: Value) -> bool:
    """Whether any NaN that ``x`` holds is one of the host's: its sign and payload do not count."""
    if x.raw_nan or not x.is_constant:
        return x.raw_nan
    bits = x.integer
    return not x.ir.startswith("bitcast") if bits is None else bits & 0x7FFFFFFF <= 0x7F800000


def _canonical_bits(b: Builder, bits: Value) -> Value:
    size = b.binary("and", bits, constant("i32", 0x7FFFFFFF))
    nan = b.compare("icmp ugt", size, constant("i32", 0x7F800000))
    return b.select(nan, constant("i32", CANONICAL_NAN["float"]), bits)


def canonical_root(b: Builder, x: Value) -> Value:
    """:func:`canonical` for a square root.

    To LLVM one NaN is as good as another: it knows which operands make a root NaN and drops the choice again.
    It does not see through a test of the bits.
    """
    if x.type != "float" or not b.canonical_nans:
        return canonical(b, x)
    return b.bitcast(_canonical_bits(b, b.bitcast(x, "i32")), "float")


def saturate(b: Builder, x: Value) -> Value:
    """``x`` limited to 0..1, with +0 for NaN and -0."""
    positive = b.select(b.compare("fcmp ogt", x, real(x.type, 0.0)), x, real(x.type, 0.0))
    return b.select(b.compare("fcmp olt", positive, real(x.type, 1.0)), positive, real(x.type, 1.0))


def finish(b: Builder, op: Operation, x: Value) -> Value:
    """The result of an arithmetic instruction: flushed, saturated, with canonical NaN, as the modifiers say."""
    x = flush(b, op, x)
    return saturate(b, x) if op.has("sat") else canonical(b, x)


def step_toward(b: Builder, x: Value, up: Value, where: Value) -> Value:
    """``x``, or the next number of its format above it (``up``) or below where ``where`` is true."""
    integer = f"i{BITS[x.type]}"
    bits = b.bitcast(x, integer)
    negative = b.compare("icmp slt", bits, constant(integer, 0))
    away = b.binary("xor", up, negative)
    step = b.select(away, constant(integer, 1), constant(integer, -1))
    step = b.select(where, step, constant(integer, 0))
    return b.bitcast(b.binary("add", bits, step), x.type)


def round_to_odd(b: Builder, x: Value, error: Value) -> Value:
    """``x`` rounded to nearest, made odd where it is inexact; ``error`` has the sign of exact minus ``x``."""
    integer = f"i{BITS[x.type]}"
    zero = real(error.type, 0.0)
    inexact = b.compare("fcmp one", error, zero)
    last = b.cast("trunc", b.bitcast(x, integer), "i1")
    even = b.binary("xor", last, constant("i1", 1))
    return step_toward(b, x, b.compare("fcmp ogt", error, zero), b.binary("and", inexact, even))


def two_sum(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """The rounded sum and its exact error (Knuth)."""
    total = b.binary("fadd", x, y)
    part = b.binary("fsub", total, x)
    rest = b.binary("fsub", x, b.binary("fsub", total, part))
    return total, b.binary("fadd", rest, b.binary("fsub", y, part))


def direct(b: Builder, rounded: Value, exact: Value, back: Value, mode: str) -> Value:
    """Turn a result rounded to nearest into one rounded by ``mode``.

    ``back`` is ``rounded`` in the format of ``exact``; the two tell on which side the rounding went.
    """
    above = b.compare("fcmp ogt", back, exact)
    below = b.compare("fcmp olt", back, exact)
    if mode == "rm":
        return step_toward(b, rounded, constant("i1", 0), above)
    if mode == "rp":
        return step_toward(b, rounded, constant("i1", 1), below)
    negative = b.compare("fcmp olt", exact, real(exact.type, 0.0))
    outside = b.select(negative, below, above)
    return step_toward(b, rounded, negative, outside)


def narrow_to_odd(b: Builder, x: Value) -> Value:
    """A double as a float rounded to odd."""
    nearest = b.cast("fptrunc", x, "float")
    return round_to_odd(b, nearest, b.binary("fsub", x, b.cast("fpext", nearest, "double")))


def double_to_float(b: Builder, x: Value, mode: str = "rn") -> Value:
    nearest = b.cast("fptrunc", x, "float")
    return nearest if mode not in DIRECTED else direct(b, nearest, x, b.cast("fpext", nearest, "double"), mode)


def widen(b: Builder, x: Value, format: str) -> Value:
    """f16 or bf16, traveling as i16, to float."""
    if format == "f16":
        return b.cast("fpext", b.bitcast(x, "half"), "float")
    return b.bitcast(b.binary("shl", b.cast("zext", x, "i32"), constant("i32", 16)), "float")


HALF_NAN = constant("i16", 0x7FFF)


def narrow(b: Builder, x: Value, format: str, mode: str = "rn") -> Value:
    """A float to f16 or bf16, traveling as i16; NaNs become the hardware's 0x7fff."""
    nan = is_nan(b, x)
    if format == "f16":
        half = b.cast("fptrunc", x, "half")
        if mode in DIRECTED:
            half = direct(b, half, x, b.cast("fpext", half, "float"), mode)
        result = b.bitcast(half, "i16")
    else:
        bits = b.bitcast(x, "i32")
        if mode == "rz":
            increment = constant("i32", 0)
        elif mode in DIRECTED:
            negative = b.compare("icmp slt", bits, constant("i32", 0))
            away = negative if mode == "rm" else b.binary("xor", negative, constant("i1", 1))
            increment = b.select(away, constant("i32", 0xFFFF), constant("i32", 0))
        else:
            odd = b.binary("and", b.binary("lshr", bits, constant("i32", 16)), constant("i32", 1))
            increment = b.binary("add", odd, constant("i32", 0x7FFF))
        shifted = b.binary("lshr", b.binary("add", bits, increment), constant("i32", 16))
        result = b.cast("trunc", shifted, "i16")
    return b.select(nan, HALF_NAN, result)
