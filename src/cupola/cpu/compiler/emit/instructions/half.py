"""Half precision and bfloat16, single and packed in pairs (PTX ISA, "Half Precision Floating-Point …").

Sums and products of two are computed in single precision, where they are exact or have bits enough that the
second rounding is harmless; fma goes through double precision rounded to odd.
"""

from __future__ import annotations

from collections.abc import Callable

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import Value

from .approximate import half_function
from .compare import COMBINATIONS, FLOAT_COMPARISONS, as_flag, combine
from .floating import arithmetic, extremum, rounding
from .formats import HALF_NAN, finish, narrow, narrow_to_odd, round_to_odd, two_sum, widen
from .registry import LLVM_TYPE, OperandTypes, Operation, Results, instruction

SINGLE = "f16 bf16"
PACKED = "f16x2 bf16x2"


def halves(b: Builder, x: Value) -> tuple[Value, Value]:
    """The low and the high half of a word."""
    return b.cast("trunc", x, "i16"), b.cast("trunc", b.binary("lshr", x, constant("i32", 16)), "i16")


def join(b: Builder, low: Value, high: Value) -> Value:
    upper = b.binary("shl", b.cast("zext", high, "i32"), constant("i32", 16))
    return b.binary("or", upper, b.cast("zext", low, "i32"))


def each(b: Builder, op: Operation, values: tuple[Value, ...], f: Callable[..., Value]) -> Value:
    """``f(format, *operands)`` for a single operation, or on both halves for a packed one."""
    if not op.type.endswith("x2"):
        return f(op.type, *values)
    parts = [halves(b, v) for v in values]
    return join(b, *(f(op.type[:-2], *(part[side] for part in parts)) for side in (0, 1)))


def flush_half(b: Builder, op: Operation, x: Value, format: str) -> Value:
    """``.ftz`` on a half: subnormal numbers become zero of the same sign."""
    if not op.has("ftz") or format != "f16":
        return x
    small = b.compare("icmp eq", b.binary("and", x, constant("i16", 0x7C00)), constant("i16", 0))
    return b.select(small, b.binary("and", x, constant("i16", 0x8000)), x)


def finish_half(b: Builder, op: Operation, result: Value, format: str) -> Value:
    """Flush and limit a rounded result; all numbers in 0..1 have patterns from 0 to that of 1.0."""
    result = flush_half(b, op, result, format)
    if op.has("relu") or op.has("sat"):
        negative = b.compare("icmp slt", result, constant("i16", 0))
        result = b.select(negative, constant("i16", 0), result)
    if op.has("sat"):
        one = constant("i16", 0x3C00 if format == "f16" else 0x3F80)
        nan = b.compare("icmp eq", result, HALF_NAN)
        result = b.select(nan, constant("i16", 0), b.intrinsic("umin", result, one))
    return result


def is_outside(b: Builder, x: Value) -> Value:
    """Whether it is the NaN that copies of tensors write for elements outside; of either format, as an H200 has it."""
    return b.compare("icmp eq", b.binary("and", x, constant("i16", 0x7FFF)), constant("i16", 0x7FF7))


def fused(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z of three numbers of a half format as a float rounded to odd."""
    x, y, z = (b.cast("fpext", v, "double") for v in (x, y, z))
    product = b.binary("fmul", x, y)  # exact
    total, error = two_sum(b, product, z)
    return narrow_to_odd(b, round_to_odd(b, total, error))


def arithmetic_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    """All of the same type; in mixed precision the result and the addend are f32."""
    own = LLVM_TYPE[op.type]
    outer = LLVM_TYPE[op.types[0]]
    return OperandTypes((outer,), (own,) * (sources - 1) + (outer,))


@instruction(
    "add",
    "sub",
    on=f"{SINGLE} {PACKED}",
    modifiers="rn rz rm rp ftz sat",
    sources=2,
    types=arithmetic_types,
)
@instruction("mul", on=f"{SINGLE} {PACKED}", modifiers="rn ftz sat", sources=2)
@instruction(
    "fma", on=f"{SINGLE} {PACKED}", modifiers="rn rz rm rp ftz sat relu oob", sources=3, types=arithmetic_types
)
def calculate(b: Builder, op: Operation, *values: Value) -> Value:
    if len(op.types) == 2:
        wide = [v if v.type == "float" else widen(b, v, op.type) for v in values]
        return finish(b, op, arithmetic(b, op.opcode, rounding(op), *wide))

    def one(format: str, *operands: Value) -> Value:
        wide = [widen(b, flush_half(b, op, v, format), format) for v in operands]
        if op.opcode == "fma":
            exact = fused(b, *wide)
        elif op.opcode == "mul" and format == "bf16":
            # The product of two small bfloat16 may be subnormal in single precision.
            exact = narrow_to_odd(b, b.binary("fmul", *(b.cast("fpext", v, "double") for v in wide)))
        else:
            exact = b.binary(f"f{op.opcode}", *wide)
        result = narrow(b, exact, format)
        if op.has("ftz") and format == "f16":
            # What is below the normal range before it is rounded is flushed, though rounding would take it in.
            small = b.compare("fcmp olt", b.intrinsic("fabs", exact), real("float", 2.0**-14))
            zero = b.binary("and", result, constant("i16", 0x8000))
            result = b.select(small, zero, result)
        result = finish_half(b, op, result, format)
        if op.has("oob"):
            outside = b.binary("or", is_outside(b, operands[0]), is_outside(b, operands[1]))
            result = b.select(outside, constant("i16", 0), result)
        return result

    return each(b, op, values, one)


@instruction("neg", "abs", on=f"{SINGLE} {PACKED}", modifiers="ftz", sources=1)
def change_sign(b: Builder, op: Operation, x: Value) -> Value:
    def one(format: str, v: Value) -> Value:
        v = flush_half(b, op, v, format)
        if op.opcode == "neg":
            return b.binary("xor", v, constant("i16", 0x8000))
        return b.binary("and", v, constant("i16", 0x7FFF))

    return each(b, op, (x,), one)


@instruction("min", "max", on=f"{SINGLE} {PACKED}", modifiers="ftz NaN xorsign abs", sources=(2, 3))
def minimum(b: Builder, op: Operation, *values: Value) -> Value:
    """As for single precision (:func:`.floating.extremum`), in which every operand is exact."""

    def one(format: str, *operands: Value) -> Value:
        wide = tuple(widen(b, flush_half(b, op, v, format), format) for v in operands)
        return narrow(b, extremum(b, op, wide), format)

    return each(b, op, values, one)


@instruction("ex2", "tanh", on=f"{SINGLE} {PACKED}", modifiers="approx ftz", sources=1)
def approximate(b: Builder, op: Operation, x: Value) -> Value:
    """What the function gives in single precision, cut to the bits that there are; in the fast way, rounded."""

    def one(format: str, v: Value) -> Value:
        wide = widen(b, flush_half(b, op, v, format), format)
        return flush_half(b, op, half_function(b, op, wide, format), format)

    return each(b, op, (x,), one)


@instruction("rcp", on="f16", modifiers="approx ftz", sources=1)
def reciprocal(b: Builder, op: Operation, x: Value) -> Value:
    return narrow(b, b.binary("fdiv", real("float", 1.0), widen(b, x, "f16")), "f16")


def compare_halves(b: Builder, op: Operation, format: str, x: Value, y: Value) -> Value:
    left, right = (widen(b, flush_half(b, op, v, format), format) for v in (x, y))
    return b.compare(FLOAT_COMPARISONS[op.one_of(*FLOAT_COMPARISONS)], left, right)


COMPARISON_MODIFIERS = f"{' '.join(FLOAT_COMPARISONS)} {COMBINATIONS} ftz"


def setp_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    own = LLVM_TYPE[op.type]
    return OperandTypes(("i1",) * destinations, (own, own, "i1")[:sources])


@instruction("setp", on=f"{SINGLE} {PACKED}", modifiers=COMPARISON_MODIFIERS, sources=(2, 3), types=setp_types)
def set_predicate(b: Builder, op: Operation, x: Value, y: Value, *more: Value) -> Results:
    """The two results of a packed comparison are those of the halves; of a single one, itself and its inverse."""
    if op.type.endswith("x2"):
        sides = zip(halves(b, x), halves(b, y), strict=True)
        first, second = (compare_halves(b, op, op.type[:-2], *side) for side in sides)
    else:
        first = compare_halves(b, op, op.type, x, y)
        second = b.binary("xor", first, constant("i1", 1))
    return combine(b, op, first, more), combine(b, op, second, more)


def set_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    own = LLVM_TYPE[op.type]
    return OperandTypes((LLVM_TYPE[op.types[0]],), (own, own, "i1")[:sources])


def set_objection(op: Operation, sources: int) -> str | None:
    if op.type.endswith("x2") and op.types[0] not in ("f16x2", "bf16x2", "u32", "s32"):
        return f"a packed comparison has no result of type '{op.types[0]}'"
    return None


@instruction(
    "set",
    on=f"{SINGLE} {PACKED}",
    modifiers=COMPARISON_MODIFIERS,
    sources=(2, 3),
    types=set_types,
    objection=set_objection,
)
def set_value(b: Builder, op: Operation, x: Value, y: Value, *more: Value) -> Value:
    if not op.type.endswith("x2"):
        return as_flag(b, op.types[0], combine(b, op, compare_halves(b, op, op.type, x, y), more))
    target = op.types[0]
    part = target[:-2] if target.endswith("x2") else "u16"
    flags = [
        as_flag(b, part, combine(b, op, compare_halves(b, op, op.type[:-2], *side), more))
        for side in zip(halves(b, x), halves(b, y), strict=True)
    ]
    return join(b, *flags)
