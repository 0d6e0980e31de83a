"""The approximate functions (PTX ISA, "Floating-Point Instructions"), as the hardware has them, or fast.

The instructions with ``.ftz`` are the special function unit itself (unit.py), or a few steps around it. Where subnormal
numbers count, NVIDIA's assembler brings the operand into the unit's range before, and the result back behind it, by
products rounded to nearest. All of that is what an H200 gives, bit for bit, unless the fast way is asked for
(polynomials.py): then quotients and roots are those of the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cupola.cpu.compiler import numerics
from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import Value

from . import polynomials, unit
from .formats import canonical, canonical_root, flush, flush_subnormal, narrow
from .registry import Operation, instruction
from .unit import LEAST, SIZE, Function

UP = 2.0**24
HUGE = 0x7E800000
"""The bits of 2**126, the largest number whose reciprocal is normal."""


def single(number: float) -> Value:
    return real("float", number)


def size_of(b: Builder, x: Value) -> Value:
    return b.binary("and", b.bitcast(x, "i32"), constant("i32", SIZE))


def is_small(b: Builder, x: Value) -> Value:
    """Whether a number is subnormal or zero."""
    return b.compare("icmp ult", size_of(b, x), constant("i32", LEAST))


# In single precision


def whole_reciprocal(b: Builder, x: Value) -> Value:
    scale = reach(b, x)
    return b.binary("fmul", unit.reciprocal(b, b.binary("fmul", x, scale)), scale)


def reach(b: Builder, x: Value) -> Value:
    """What a divisor is multiplied with, and the quotient then, so that the reciprocal is a normal number."""
    size = size_of(b, x)
    huge = b.compare("icmp ugt", size, constant("i32", HUGE))
    small = b.compare("icmp ult", size, constant("i32", LEAST))
    return b.select(small, single(UP), b.select(huge, single(0.25), single(1.0)))


def lifted(function: Function, back: float) -> Function:
    """A function that takes subnormal numbers 2**24 times as large, and what it makes of them times ``back``."""

    def whole(b: Builder, x: Value) -> Value:
        small = is_small(b, x)
        result = function(b, b.binary("fmul", x, b.select(small, single(UP), single(1.0))))
        return b.binary("fmul", result, b.select(small, single(back), single(1.0)))

    return whole


def whole_logarithm(b: Builder, x: Value) -> Value:
    small = is_small(b, x)
    result = unit.logarithm(b, b.binary("fmul", x, b.select(small, single(UP), single(1.0))))
    return b.binary("fsub", result, b.select(small, single(24.0), single(0.0)))


def whole_power(b: Builder, x: Value) -> Value:
    """Where the power would be subnormal, the square of the power of half."""
    low = b.compare("fcmp olt", x, single(-126.0))
    power = unit.power(b, b.binary("fmul", x, b.select(low, single(0.5), single(1.0))))
    return b.select(low, b.binary("fmul", power, power), power)


UNIT: dict[str, tuple[Function, Function]] = {
    "rcp": (unit.reciprocal, whole_reciprocal),
    "rsqrt": (unit.reciprocal_root, lifted(unit.reciprocal_root, 2.0**12)),
    "sqrt": (unit.root, lifted(unit.root, 2.0**-12)),
    "ex2": (unit.power, whole_power),
    "lg2": (unit.logarithm, whole_logarithm),
    "sin": (unit.sine, unit.sine),
    "cos": (unit.cosine, unit.cosine),
    "tanh": (unit.hyperbolic_tangent, unit.hyperbolic_tangent),
}
"""What each instruction is: with ``.ftz``, and without."""

CYCLES: dict[str, Function] = {"sin": unit.sine_of_cycles, "cos": unit.cosine_of_cycles}
"""With ``.2pi`` the operand is in cycles, as the unit has it."""

FAST: dict[str, Function] = {
    "rcp": lambda b, x: b.binary("fdiv", real(x.type, 1.0), x),
    "rsqrt": polynomials.reciprocal_root,
    "lg2": polynomials.logarithm,
    "sin": polynomials.sine,
    "cos": lambda b, x: polynomials.sine(b, x, cosine=True),
    "tanh": polynomials.tanh,
}


INLINED = 16
"""So many calls of each function in a kernel are inlined: that of ``ex2`` has a hundred instructions."""


def shared(b: Builder, name: str, function: Callable[..., Value], *operands: Value) -> Value:
    return b.function(name, "float", operands, lambda inner, values: function(inner, *values), inlined=INLINED)


def fast(b: Builder, op: Operation, x: Value) -> Value:
    x = flush(b, op, x)
    if op.has("2pi"):
        part = b.binary("fsub", x, b.intrinsic("roundeven", x))
        x = b.binary("fmul", part, single(2 * math.pi))
    if op.opcode == "sqrt":
        return canonical_root(b, b.intrinsic("sqrt", x))
    if op.opcode == "ex2":
        return canonical(b, polynomials.exp2(b, x, subnormal=not op.has("ftz")))
    result = FAST[op.opcode](b, x)
    return canonical(b, flush(b, op, result) if op.opcode in ("rcp", "sin", "cos") else result)


def applied(b: Builder, op: Operation, x: Value) -> Value:
    """One of these functions, by the instruction's name; floating.py hands ``rcp`` and ``sqrt`` over."""
    if not numerics.is_exact():
        return fast(b, op, x)
    if op.has("2pi"):
        return shared(b, f"{op.opcode}.2pi", CYCLES[op.opcode], x)
    flushes = op.has("ftz")
    function = UNIT[op.opcode][0 if flushes else 1]
    return shared(b, f"{op.opcode}{'.ftz' if flushes else ''}", function, x)


@instruction("sin", "cos", on="f32", modifiers="approx ftz 2pi", sources=1)
@instruction("rsqrt", "ex2", "lg2", "tanh", on="f32", modifiers="approx ftz", sources=1)
def approximate(b: Builder, op: Operation, x: Value) -> Value:
    return applied(b, op, x)


def quotient(b: Builder, op: Operation, x: Value, y: Value) -> Value:
    """``div.approx`` and ``div.full``: a product with the reciprocal. In the fast way it is the host's quotient."""
    x, y = flush(b, op, x), flush(b, op, y)
    if not numerics.is_exact():
        return canonical(b, flush(b, op, b.binary("fdiv", x, y)))

    def full(b: Builder, x: Value, y: Value) -> Value:
        scale = reach(b, y)
        return b.binary("fmul", b.binary("fmul", x, scale), unit.reciprocal(b, b.binary("fmul", y, scale)))

    def plain(b: Builder, x: Value, y: Value) -> Value:
        scale = b.select(is_small(b, y), single(UP), single(1.0))
        part = unit.reciprocal(b, b.binary("fmul", y, scale))
        return b.binary("fmul", b.binary("fmul", x, part), scale)

    def flushing(b: Builder, x: Value, y: Value) -> Value:
        return b.binary("fmul", x, unit.reciprocal(b, y))

    name, function = ("full", full) if op.has("full") else ("ftz", flushing) if op.has("ftz") else ("approx", plain)
    return canonical(b, flush(b, op, shared(b, f"div.{name}", function, x, y)))


# In half precision


def half_function(b: Builder, op: Operation, x: Value, format: str) -> Value:
    """``ex2`` or ``tanh`` of a float, as f16 or bf16."""
    if numerics.is_exact():
        result = shared(b, f"{op.opcode}.ftz", UNIT[op.opcode][0], x)
        outside = b.compare("fcmp oge", result, single(2.0**16))
        if format == "f16":  # cutting gives the largest number instead
            result = b.select(outside, single(float("inf")), result)
        return narrow(b, result, format, "rz")
    if op.opcode == "tanh":
        return narrow(b, polynomials.tanh(b, x), format)
    if op.has("ftz") and format == "bf16":
        return narrow(b, flush_subnormal(b, polynomials.exp2(b, flush_subnormal(b, x), subnormal=True)), format)
    return narrow(b, polynomials.exp2(b, x, subnormal=True), format)


# In double precision


@instruction("rsqrt", on="f64", modifiers="approx ftz", sources=1)
def reciprocal_root_of_double(b: Builder, op: Operation, x: Value) -> Value:
    if op.has("ftz"):
        return coarse(b, op, x)
    return b.binary("fdiv", real("double", 1.0), b.intrinsic("sqrt", x))


def coarse(b: Builder, op: Operation, x: Value) -> Value:
    """The ``.approx.ftz.f64`` functions: only the upper words of operand and result count, subnormal is zero."""
    is_root = op.opcode == "rsqrt"
    if not numerics.is_exact():
        return polynomials.coarse(b, x, root=is_root)
    upper = b.cast("trunc", b.binary("lshr", b.bitcast(x, "i64"), constant("i64", 32)), "i32")
    function = unit.coarse_reciprocal_root if is_root else unit.coarse_reciprocal
    upper = b.function(f"{op.opcode}.f64", "i32", [upper], lambda inner, values: function(inner, *values))
    return b.bitcast(b.binary("shl", b.cast("zext", upper, "i64"), constant("i64", 32)), "double")
