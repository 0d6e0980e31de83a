"""Arithmetic in single and double precision (PTX ISA, "Floating-Point Instructions").

Rounding to nearest is the host's own arithmetic. The directed roundings switch the host's rounding mode inside
internal functions marked ``strictfp``, so LLVM neither folds nor moves anything across the switch.
"""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import BITS, Value

from .approximate import applied, coarse, quotient
from .formats import DIRECTED, canonical, canonical_root, finish, flush
from .registry import Operation, instruction

FLOATS = "f32 f64"
ROUNDINGS = "rn rz rm rp"

_MODE = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}
"""Arguments of llvm.set.rounding."""

_SUFFIX = {"float": "f32", "double": "f64"}

_PLAIN = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def arithmetic(b: Builder, name: str, mode: str, *values: Value) -> Value:
    """``add``, ``sub``, ``mul``, ``div``, ``fma`` or ``sqrt`` in a rounding mode."""
    if mode not in DIRECTED:
        if name in _PLAIN:
            return b.binary(_PLAIN[name], *values)
        return b.intrinsic(name, *values)

    def body(b: Builder, arguments: list[Value]) -> Value:
        b.declarations["declare void @llvm.set.rounding(i32)"] = None
        b.line(f"call void @llvm.set.rounding(i32 {_MODE[mode]}) strictfp")
        type = b.type_of(arguments[0])
        overload = _SUFFIX[arguments[0].type]
        if arguments[0].vector:
            overload = f"v{b.width}{overload}"
        full = f"@llvm.experimental.constrained.{_PLAIN.get(name, name)}.{overload}"
        types = ", ".join([type] * len(arguments) + ["metadata", "metadata"])
        b.declarations[f"declare {type} {full}({types})"] = None
        operands = ", ".join(map(b.typed, arguments))
        result = b.emit(
            f'call {type} {full}({operands}, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp'
        )
        b.line("call void @llvm.set.rounding(i32 1) strictfp")
        return Value(result, arguments[0].type, arguments[0].vector)

    return b.function(
        f"{name}.{mode}.{_SUFFIX[values[0].type]}",
        values[0].type,
        values,
        body,
        attributes="noinline nounwind strictfp",
    )


def rounding(op: Operation) -> str:
    return op.one_of(*_MODE, default="rn")


@instruction("add", "sub", "mul", on=FLOATS, modifiers=f"{ROUNDINGS} ftz sat", sources=2)
@instruction("fma", "mad", on=FLOATS, modifiers=f"{ROUNDINGS} ftz sat", sources=3)
@instruction("div", on=FLOATS, modifiers=f"{ROUNDINGS} ftz approx full", sources=2)
def calculate(b: Builder, op: Operation, *values: Value) -> Value:
    if op.has("approx") or op.has("full"):
        return quotient(b, op, *values)
    name = "fma" if op.opcode == "mad" else op.opcode
    operands = [flush(b, op, v) for v in values]
    result = arithmetic(b, name, rounding(op), *operands)
    if name == "div" and op.has("ftz") and op.one_of(*ROUNDINGS.split()):
        result = flush_quotient(b, operands[0], operands[1], result)
    return finish(b, op, result)


def flush_quotient(b: Builder, x: Value, y: Value, quotient: Value) -> Value:
    """A quotient that is below the normal range before it is rounded is flushed, though rounding would take it in.

    Where one of the scaled operands leaves the range, the comparison is still right: such a quotient is far off.
    """
    left = b.binary("fmul", b.intrinsic("fabs", x), real("float", 2.0**64))
    right = b.binary("fmul", b.intrinsic("fabs", y), real("float", 2.0**-62))
    small = b.compare("fcmp olt", left, right)
    sign = b.binary("and", b.bitcast(quotient, "i32"), constant("i32", 0x80000000))
    return b.select(small, b.bitcast(sign, "float"), quotient)


@instruction("sqrt", on=FLOATS, modifiers=f"{ROUNDINGS} ftz approx", sources=1)
def square_root(b: Builder, op: Operation, x: Value) -> Value:
    """A root is never subnormal, so there is nothing to flush after it."""
    if op.has("approx"):
        return applied(b, op, x)
    return canonical_root(b, arithmetic(b, "sqrt", rounding(op), flush(b, op, x)))


@instruction("rcp", on=FLOATS, modifiers=f"{ROUNDINGS} ftz approx", sources=1)
def reciprocal(b: Builder, op: Operation, x: Value) -> Value:
    if op.has("approx"):
        return coarse(b, op, x) if op.type == "f64" else applied(b, op, x)
    return finish(b, op, arithmetic(b, "div", rounding(op), real(x.type, 1.0), flush(b, op, x)))


@instruction("neg", "abs", on=FLOATS, modifiers="ftz", sources=1)
def change_sign(b: Builder, op: Operation, x: Value) -> Value:
    raw = x.raw_nan
    x = flush(b, op, x)
    return replace(b.unary("fneg", x) if op.opcode == "neg" else b.intrinsic("fabs", x), raw_nan=raw)


def _scalar_extremum(b: Builder, opcode: str, x: Value, y: Value) -> Value:
    """Minimum or maximum of two scalars in plain comparisons.

    LLVM 22 for x86 lowers ``llvm.maximumnum`` of scalars, not of vectors, to an instruction that lets a NaN win when
    it knows that the other operand is a number (one converted from an integer, say).
    """
    integer = f"i{BITS[x.type]}"
    wins = b.compare("fcmp ogt" if opcode == "max" else "fcmp olt", x, y)
    result = b.select(b.compare("fcmp uno", y, y), x, b.select(wins, x, y))
    # Equal operands differ at most in the sign of zero.
    both = b.binary("and" if opcode == "max" else "or", b.bitcast(x, integer), b.bitcast(y, integer))
    return b.select(b.compare("fcmp oeq", x, y), b.bitcast(both, x.type), result)


def extremum(b: Builder, op: Operation, values: tuple[Value, ...]) -> Value:
    """Minimum or maximum with -0 < +0; a NaN loses against a number, or with ``.NaN`` wins against all."""
    name = f"{op.opcode}imum" if op.has("NaN") else f"{op.opcode}imumnum"
    integer = f"i{BITS[values[0].type]}"
    signs = constant(integer, 0)
    if op.has("xorsign"):
        for v in values:
            signs = b.binary("xor", signs, b.bitcast(v, integer))
    if op.has("abs"):
        values = tuple(b.intrinsic("fabs", v) for v in values)
    result = values[0]
    for v in values[1:]:
        scalar = not result.vector and not v.vector and not op.has("NaN")
        result = _scalar_extremum(b, op.opcode, result, v) if scalar else b.intrinsic(name, result, v)
    if not op.has("xorsign"):
        return result
    signs = b.binary("and", signs, constant(integer, 1 << (BITS[integer] - 1)))
    return b.bitcast(b.binary("or", b.bitcast(result, integer), signs), result.type)


@instruction("min", "max", on=FLOATS, modifiers="ftz NaN xorsign abs", sources=(2, 3))
def minimum(b: Builder, op: Operation, *values: Value) -> Value:
    return canonical(b, extremum(b, op, tuple(flush(b, op, v) for v in values)))
