"""``cvt`` between integers, floating formats, and the packed and short ones (PTX ISA, "cvt").

The results of conversions to integers saturate. A NaN becomes 0, but from f64 or to 64 bits 1 << (bits - 1).
Conversions that must round in other ways than to nearest start from a result that is exact or rounded to odd
(see :mod:`.formats`).
"""

from __future__ import annotations

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import BITS, Value

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
from .registry import LLVM_TYPE, OperandTypes, Operation, Results, instruction

INTEGERS = "u8 s8 u16 s16 u32 s32 u64 s64"
TO_INTEGER = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
HALVES = ("f16", "bf16")
MODIFIERS = "rn rz rm rp rna rni rzi rmi rpi ftz sat relu satfinite"


def convert_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    to, source = op.types
    return OperandTypes((LLVM_TYPE[to],), (LLVM_TYPE[source],) * sources, to.startswith("s"))


SIMPLE = frozenset(INTEGERS.split()) | {"f16", "bf16", "f32", "f64"}
PAIRS: dict[tuple[str, ...], int] = {
    **dict.fromkeys((("f16x2", "f32"), ("bf16x2", "f32"), ("e4m3x2", "f32"), ("e5m2x2", "f32")), 2),
    **dict.fromkeys((("e4m3x2", "f16x2"), ("e5m2x2", "f16x2"), ("f16x2", "e4m3x2"), ("f16x2", "e5m2x2")), 1),
    ("tf32", "f32"): 1,
}
"""Conversions to and from packed and short formats, with their number of sources."""


def objection(op: Operation, sources: int) -> str | None:
    wanted = 1 if len(op.types) == 2 and SIMPLE.issuperset(op.types) else PAIRS.get(op.types)
    name = ".".join(op.types)
    if wanted is None:
        return f"there is no conversion '{name}'"
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
    sources=(1, 2),
    types=convert_types,
    objection=objection,
)
def from_floating(b: Builder, op: Operation, x: Value, *more: Value) -> Results:
    to, source = op.types
    if to in ("f16x2", "bf16x2"):
        low = b.cast("zext", float_to_half(b, op, to[:-2], more[0]), "i32")
        high = b.cast("zext", float_to_half(b, op, to[:-2], x), "i32")
        return b.binary("or", b.binary("shl", high, constant("i32", 16)), low)
    if to == "tf32":
        return float_to_tf32(b, op, x)
    if to in EIGHT_BITS:
        return pack_eight(b, op, to, x, more[0])
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


def float_to_half(b: Builder, op: Operation, to: str, x: Value) -> Value:
    """f16 or bf16 of a float that is exact or rounded to odd."""
    if op.has("sat"):
        x = saturate(b, x)
    result = narrow(b, x, to, op.one_of("rz", "rm", "rp", default="rn"))
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


EIGHT_BITS = {"e4m3x2": (3, 7, 0x7E, 0x7F), "e5m2x2": (2, 15, 0x7B, 0x7F)}
"""Mantissa bits, exponent bias, largest finite number and NaN of the 8-bit formats."""


def float_to_eight(b: Builder, op: Operation, to: str, x: Value) -> Value:
    """A float in an 8-bit format, in the low bits of an i32: round to nearest even, saturate to finite."""
    mantissa, bias, largest, nan = EIGHT_BITS[to]
    bits = b.bitcast(x, "i32")
    sign = b.binary("and", b.binary("lshr", bits, constant("i32", 24)), constant("i32", 0x80))
    size = b.bitcast(b.binary("and", bits, constant("i32", 0x7FFFFFFF)), "float")
    # Below the normal range numbers are multiples of a fixed step: adding a number whose last bit is that step
    # rounds to it. Above, the mantissa is rounded in place.
    smallest = 2.0 ** (1 - bias)
    magic = real("float", 2.0 ** (1 - bias - mantissa + 23))
    low = b.binary("sub", b.bitcast(b.binary("fadd", size, magic), "i32"), b.bitcast(magic, "i32"))
    drop = 23 - mantissa
    plain = b.bitcast(size, "i32")
    odd = b.binary("and", b.binary("lshr", plain, constant("i32", drop)), constant("i32", 1))
    rounded = b.binary("add", b.binary("add", plain, odd), constant("i32", (1 << (drop - 1)) - 1))
    high = b.binary("sub", b.binary("lshr", rounded, constant("i32", drop)), constant("i32", (127 - bias) << mantissa))
    result = b.select(b.compare("fcmp olt", size, real("float", smallest)), low, high)
    result = b.intrinsic("smin", result, constant("i32", largest))
    result = b.binary("or", result, sign)
    if op.has("relu"):
        result = b.select(b.compare("icmp ne", sign, constant("i32", 0)), constant("i32", 0), result)
    return b.select(is_nan(b, x), constant("i32", nan), result)


def pack_eight(b: Builder, op: Operation, to: str, high: Value, low: Value) -> Value:
    upper = b.binary("shl", float_to_eight(b, op, to, high), constant("i32", 8))
    return b.cast("trunc", b.binary("or", upper, float_to_eight(b, op, to, low)), "i16")


@instruction("cvt", on="f16x2", modifiers="rn satfinite relu", sources=1, types=convert_types, objection=objection)
def from_half_pair(b: Builder, op: Operation, x: Value) -> Value:
    halves = [b.cast("trunc", b.binary("lshr", x, constant("i32", at)), "i16") for at in (16, 0)]
    return pack_eight(b, op, op.types[0], *(widen(b, half, "f16") for half in halves))


@instruction("cvt", on="e4m3x2 e5m2x2", modifiers="rn relu", sources=1, types=convert_types, objection=objection)
def from_eight_pair(b: Builder, op: Operation, x: Value) -> Value:
    """Two 8-bit numbers to f16x2; every one of them is an f16."""
    result = constant("i32", 0)
    for at in (0, 8):
        byte = b.binary("and", b.binary("lshr", x, constant("i16", at)), constant("i16", 0xFF))
        if op.type == "e5m2x2":
            half = b.binary("shl", byte, constant("i16", 8))
            magnitude = b.binary("and", half, constant("i16", 0x7FFF))
            nan = b.compare("icmp ugt", magnitude, constant("i16", 0x7C00))
        else:
            # As an f16 with the bias of e4m3, to be multiplied by 2**(15 - 7); exact, subnormals included.
            sign = b.binary("shl", b.binary("and", byte, constant("i16", 0x80)), constant("i16", 8))
            size = b.binary("and", byte, constant("i16", 0x7F))
            wide = widen(b, b.binary("shl", size, constant("i16", 7)), "f16")
            scaled = narrow(b, b.binary("fmul", wide, real("float", 256.0)), "f16")
            half = b.binary("or", scaled, sign)
            nan = b.compare("icmp eq", size, constant("i16", 0x7F))
        if op.has("relu"):
            negative = b.compare("icmp slt", half, constant("i16", 0))
            half = b.select(negative, constant("i16", 0), half)
        half = b.select(nan, constant("i16", 0x7FFF), half)
        result = b.binary("or", result, b.binary("shl", b.cast("zext", half, "i32"), constant("i32", 2 * at)))
    return result


def pack_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    return OperandTypes(("i32",), ("i32",) * sources)


NARROW = {f"{sign}{bits}": (sign == "s", bits) for sign in "us" for bits in (2, 4, 8, 16)}
"""The integers that cvt.pack packs: signedness and bits."""


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
