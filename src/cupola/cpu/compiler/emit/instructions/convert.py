"""``cvt`` between integers, floating formats, and the packed and short ones (PTX ISA, "cvt").

The results of conversions to integers saturate. A NaN becomes 0, but from f64 or to 64 bits 1 << (bits - 1).
Conversions that must round in other ways than to nearest start from a result that is exact or rounded to odd
(see :mod:`.formats`).
"""

from __future__ import annotations

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import BITS, Value

from . import narrow_formats
from .formats import (
    DIRECTED,
    canonical,
    double_to_float,
    flush,
    is_nan,
    narrow,
    narrow_to_odd,
    round_to_odd,
    saturate,
    settle_nans,
    step_toward,
    two_sum,
    widen,
)
from .half import join
from .registry import LLVM_TYPE, OperandTypes, Operation, Results, instruction

INTEGERS = "u8 s8 u16 s16 u32 s32 u64 s64"
TO_INTEGER = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
HALVES = ("f16", "bf16")
MODIFIERS = "rn rz rm rp rna rs rni rzi rmi rpi ftz sat relu satfinite scaled::n2::ue8m0"


def convert_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    """The sources have the type of the conversion; behind them come random bits or the factors of a scale."""
    to, source = op.types
    more = ("i32",) if op.has("rs") else ("i16",) if op.has(narrow_formats.SCALED) else ()
    signed = to.startswith("s") and to in INTEGERS.split()
    return OperandTypes((LLVM_TYPE[to],), (LLVM_TYPE[source],) * (sources - len(more)) + more, signed)


SIMPLE = frozenset(INTEGERS.split()) | {"f16", "bf16", "f32", "f64"}
PAIRS: dict[tuple[str, ...], int] = {
    ("f16x2", "f32"): 2,
    ("bf16x2", "f32"): 2,
    ("tf32", "f32"): 1,
    **narrow_formats.SOURCES,
}
"""Conversions to and from packed and short formats, with the numbers that they take."""


def objection(op: Operation, sources: int) -> str | None:
    wanted = 1 if len(op.types) == 2 and SIMPLE.issuperset(op.types) else PAIRS.get(op.types)
    name = ".".join(op.types)
    if wanted is None:
        return f"there is no conversion '{name}'"
    wanted += op.has("rs") + op.has(narrow_formats.SCALED)
    return None if sources == wanted else f"'cvt.{name}' takes {wanted} source operands, not {sources}"


@instruction("cvt", on=INTEGERS, modifiers=MODIFIERS, sources=1, types=convert_types, objection=objection)
def from_integer(b: Builder, op: Operation, x: Value) -> Value:
    to, source = op.types
    is_signed = source.startswith("s")
    if to[0] in "us":
        return integer_to_integer(b, op, x)
    mode = op.one_of("rz", "rm", "rp", default="rn")
    if to == "f64":
        result = integer_to_double(b, x, is_signed, mode)
        return saturate(b, result) if op.has("sat") else result
    if to == "f32" and mode == "rn":
        result = b.cast("sitofp" if is_signed else "uitofp", x, "float")
    else:
        wide = integer_to_double(b, x, is_signed, "odd")
        if to in HALVES:
            single = narrow_to_odd(b, wide)
            return narrow(b, saturate(b, single) if op.has("sat") else single, to, mode)
        result = double_to_float(b, wide, mode)
    return saturate(b, result) if op.has("sat") else result


def integer_to_integer(b: Builder, op: Operation, x: Value) -> Value:
    to, source = op.types
    is_signed = source.startswith("s")
    target = LLVM_TYPE[to]
    if not op.has("sat"):
        return b.extend(x, target, is_signed=is_signed)
    bits, own = BITS[target], BITS[x.type]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
    least, most = (-(1 << (own - 1)), (1 << (own - 1)) - 1) if is_signed else (0, (1 << own) - 1)
    kind = "s" if is_signed else "u"
    if low > least:
        x = b.intrinsic(f"{kind}max", x, constant(x.type, low))
    if high < most:
        x = b.intrinsic(f"{kind}min", x, constant(x.type, high))
    return b.extend(x, target, is_signed=is_signed)


def integer_to_double(b: Builder, x: Value, is_signed: bool, mode: str) -> Value:
    """An integer as a double rounded by ``mode``, which may also be ``odd``."""
    cast = "sitofp" if is_signed else "uitofp"
    if BITS[x.type] < 64 or mode == "rn":
        return b.cast(cast, x, "double")
    # Both halves are exact doubles; their sum is rounded, and its error is known.
    high = b.cast(cast, b.binary("ashr" if is_signed else "lshr", x, constant("i64", 32)), "double")
    low = b.cast("uitofp", b.cast("trunc", x, "i32"), "double")
    total, error = two_sum(b, b.binary("fmul", high, real("double", 2.0**32)), low)
    if mode == "odd":
        return round_to_odd(b, total, error)
    above = b.compare("fcmp olt", error, real("double", 0.0))
    below = b.compare("fcmp ogt", error, real("double", 0.0))
    if mode == "rm":
        return step_toward(b, total, constant("i1", 0), above)
    if mode == "rp":
        return step_toward(b, total, constant("i1", 1), below)
    negative = b.compare("fcmp olt", total, real("double", 0.0))
    return step_toward(b, total, negative, b.select(negative, below, above))


@instruction(
    "cvt",
    on="f32 f64 f16 bf16",
    modifiers=MODIFIERS,
    sources=(1, 2, 3, 5),
    types=convert_types,
    objection=objection,
)
def from_floating(b: Builder, op: Operation, x: Value, *more: Value) -> Results:
    to, source = op.types
    if to in ("f16x2", "bf16x2"):
        random = narrow_formats.random_bits(b, op, more[1]) if op.has("rs") else (None, None)
        low = float_to_half(b, op, to[:-2], more[0], random[1])
        return join(b, low, float_to_half(b, op, to[:-2], x, random[0]))
    if to == "tf32":
        return float_to_tf32(b, op, x)
    if op.types in narrow_formats.SOURCES:
        return narrow_formats.packed(b, op, x, *more)
    if source in HALVES:
        x = widen(b, x, source)
    elif source == "f32" and not (to == "f16" and op.one_of(*DIRECTED)):
        # A GPU flushes nothing when it rounds up or down to f16: what is above zero stays above it.
        x = flush(b, op, x)
    whole = op.one_of(*TO_INTEGER)
    if whole:
        x = b.intrinsic(TO_INTEGER[whole], x)
    if to[0] in "us":
        return floating_to_integer(b, op, x)
    if to in HALVES:
        return double_to_half(b, op, to, x) if source == "f64" else float_to_half(b, op, to, x)
    if to == "f64":
        x = settle_nans(b, canonical(b, x)) if op.has("ftz") else x
        x = x if source == "f64" else b.cast("fpext", x, "double")
        return saturate(b, x) if op.has("sat") else x
    if source == "f64":
        x = double_to_float(b, x, op.one_of(*DIRECTED, default="rn"))
    x = flush(b, op, x)
    if op.has("sat"):
        return saturate(b, x)
    # A NaN from f64, as the host narrows it, and one from bf16 keep their upper bits.
    keeps = source in ("f64", "bf16") or (source == "f32" and not op.has("ftz"))
    return x if keeps and not whole else canonical(b, x)


def floating_to_integer(b: Builder, op: Operation, x: Value) -> Value:
    to, source = op.types
    kind = "s" if to[0] == "s" else "u"
    target = LLVM_TYPE[to]
    result = b.intrinsic(f"fpto{kind}i.sat", x, type=target)
    if source != "f64" and BITS[target] < 64:
        return result  # LLVM's saturating conversion gives 0 for a NaN
    return b.select(is_nan(b, x), constant(target, 1 << (BITS[target] - 1)), result)


def double_to_half(b: Builder, op: Operation, to: str, x: Value) -> Value:
    """As of a float, but a NaN keeps its sign and upper bits; the host narrows it to a float with these."""
    single = narrow_to_odd(b, x)
    result = float_to_half(b, op, to, single)
    if op.has("sat"):
        return result
    bits, fraction = b.bitcast(single, "i32"), 10 if to == "f16" else 7
    sign = b.binary("and", b.binary("lshr", bits, constant("i32", 16)), constant("i32", 0x8000))
    upper = b.binary("lshr", bits, constant("i32", 23 - fraction))
    size = b.binary("and", upper, constant("i32", (1 << fraction) - 1))
    nan = b.binary("or", size, constant("i32", 0x7FFF >> fraction << fraction))
    return b.select(is_nan(b, single), b.cast("trunc", b.binary("or", nan, sign), "i16"), result)


def float_to_half(b: Builder, op: Operation, to: str, x: Value, random: Value | None = None) -> Value:
    """f16 or bf16 of a float that is exact or rounded to odd, or is rounded by random bits."""
    if op.has("sat"):
        x = saturate(b, x)
    if random is None:
        result = narrow(b, x, to, op.one_of("rz", "rm", "rp", default="rn"))
    else:
        result = narrow_formats.half_by_chance(b, x, to, random)
    return narrow_formats.limited_half(b, op, to, result)


def float_to_tf32(b: Builder, op: Operation, x: Value) -> Value:
    """10 bits of mantissa in the upper 19 bits of a word; the other bits are zero."""
    bits = b.bitcast(x, "i32")
    if op.has("rna"):
        increment = constant("i32", 0x1000)
    elif op.has("rz"):
        increment = constant("i32", 0)
    else:
        odd = b.binary("and", b.binary("lshr", bits, constant("i32", 13)), constant("i32", 1))
        increment = b.binary("add", odd, constant("i32", 0xFFF))
    kept = constant("i32", 0xFFFFE000)
    rounded = b.binary("and", b.binary("add", bits, increment), kept)
    if op.has("rna"):
        return _away_from_zero(b, op, x, bits, rounded, kept)
    size = b.binary("and", bits, constant("i32", 0x7FFFFFFF))
    infinite = b.compare("icmp eq", size, constant("i32", 0x7F800000))
    result = b.select(infinite, bits, rounded)
    if op.has("satfinite"):
        over = b.binary("and", result, constant("i32", 0x7FFFFFFF))
        sign = b.binary("and", bits, constant("i32", 0x80000000))
        result = b.select(
            b.compare("icmp uge", over, constant("i32", 0x7F800000)),
            b.binary("or", sign, constant("i32", 0x7F7FE000)),
            result,
        )
    if op.has("relu"):
        result = b.select(b.compare("icmp slt", result, constant("i32", 0)), constant("i32", 0), result)
    return b.select(is_nan(b, x), constant("i32", 0x7FFFE000), result)


def _away_from_zero(b: Builder, op: Operation, x: Value, bits: Value, rounded: Value, kept: Value) -> Value:
    """``cvt.rna.tf32``, which is older than its kin: a NaN loses the bits that go, and may become an infinity.

    With ``.satfinite`` whatever has the greatest exponent comes down by one in the last place.
    """
    result = b.select(is_nan(b, x), b.binary("and", bits, kept), rounded)
    if not op.has("satfinite"):
        return result
    size = b.binary("and", result, constant("i32", 0x7FFFFFFF))
    over = b.compare("icmp uge", size, constant("i32", 0x7F800000))
    return b.select(over, b.binary("sub", result, constant("i32", 0x2000)), result)


def pack_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    return OperandTypes(("i32",), ("i32",) * sources)


NARROW = {f"{sign}{bits}": (sign == "s", bits) for sign in "us" for bits in (2, 4, 8, 16)}
"""The integers that cvt.pack packs: signedness and bits."""


@instruction(
    "cvt", on=narrow_formats.PAIRS, modifiers=MODIFIERS, sources=(1, 2), types=convert_types, objection=objection
)
def from_pair(b: Builder, op: Operation, x: Value, *scale: Value) -> Value:
    return (
        narrow_formats.packed(b, op, x, *scale)
        if op.type in ("f16x2", "bf16x2")
        else narrow_formats.unpacked(b, op, x, *scale)
    )


@instruction("cvt.pack", on="s32 b32", modifiers=f"pack sat {' '.join(NARROW)}", sources=(2, 3), types=pack_types)
def pack_integers(b: Builder, op: Operation, high: Value, low: Value, *above: Value) -> Value:
    """Two saturated integers side by side, below what is left of a third operand."""
    is_signed, bits = NARROW[op.one_of(*NARROW)]
    bounds = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
    result = constant("i32", 0)
    for at, x in ((bits, high), (0, low)):
        x = b.intrinsic("smax", b.intrinsic("smin", x, constant("i32", bounds[1])), constant("i32", bounds[0]))
        x = b.binary("and", x, constant("i32", (1 << bits) - 1))
        result = b.binary("or", result, b.binary("shl", x, constant("i32", at)))
    for x in above:
        result = b.binary("or", result, b.binary("shl", x, constant("i32", 2 * bits)))
    return result
