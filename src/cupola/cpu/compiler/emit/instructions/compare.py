"""Comparisons and choices (PTX ISA, "Comparison and Selection Instructions"), and ``testp`` and ``copysign``."""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import BITS, Value

from .formats import flush, is_raw_or_number, settle_nans
from .registry import LLVM_TYPE, OperandTypes, Operation, Results, fixed, instruction

FLOAT_COMPARISONS = {
    **{name: f"fcmp o{name}" for name in ("eq", "lt", "le", "gt", "ge")},
    "ne": "fcmp one",
    **{f"{name}u": f"fcmp u{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "num": "fcmp ord",
    "nan": "fcmp uno",
}
UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
INTEGER_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", *UNSIGNED_NAMES)

INTEGERS = "b16 u16 s16 b32 u32 s32 b64 u64 s64"
COMBINATIONS = "and or xor"


def compare(b: Builder, op: Operation, x: Value, y: Value) -> Value:
    """The comparison that the operation's modifiers name."""
    if op.type in ("f32", "f64"):
        name = op.one_of(*FLOAT_COMPARISONS)
        return b.compare(FLOAT_COMPARISONS[name], flush(b, op, x), flush(b, op, y))
    name = op.one_of(*INTEGER_COMPARISONS)
    if name in ("eq", "ne"):
        return b.compare(f"icmp {name}", x, y)
    return b.compare(f"icmp {'s' if op.is_signed else 'u'}{UNSIGNED_NAMES.get(name, name)}", x, y)


def combine(b: Builder, op: Operation, outcome: Value, more: tuple[Value, ...]) -> Value:
    """The outcome combined with the predicate operand, if there is one."""
    return b.binary(op.one_of("and", "or", "xor"), outcome, more[0]) if more else outcome


def setp_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    own = LLVM_TYPE[op.type]
    return OperandTypes(("i1",) * destinations, (own, own, "i1")[:sources])


@instruction(
    "setp",
    on=INTEGERS,
    modifiers=f"{' '.join(INTEGER_COMPARISONS)} {COMBINATIONS}",
    sources=(2, 3),
    types=setp_types,
)
@instruction(
    "setp",
    on="f32 f64",
    modifiers=f"{' '.join(FLOAT_COMPARISONS)} {COMBINATIONS} ftz",
    sources=(2, 3),
    types=setp_types,
)
def set_predicate(b: Builder, op: Operation, x: Value, y: Value, *more: Value) -> Results:
    """p = (x ? y) combined with c, and q = !(x ? y) combined with c."""
    outcome = compare(b, op, x, y)
    opposite = b.binary("xor", outcome, constant("i1", 1))
    return combine(b, op, outcome, more), combine(b, op, opposite, more)


def set_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    own = LLVM_TYPE[op.type]
    return OperandTypes((LLVM_TYPE[op.types[0]],), (own, own, "i1")[:sources])


def as_flag(b: Builder, type: str, outcome: Value) -> Value:
    """What ``set`` makes of true: all ones, or 1.0 in the destination's format."""
    if type == "f32":
        return b.select(outcome, real("float", 1.0), real("float", 0.0))
    one = {"f16": 0x3C00, "bf16": 0x3F80}.get(type)
    llvm = LLVM_TYPE[type]
    if one is not None:
        return b.select(outcome, constant(llvm, one), constant(llvm, 0))
    return b.cast("sext", outcome, llvm)


@instruction(
    "set",
    on=INTEGERS,
    modifiers=f"{' '.join(INTEGER_COMPARISONS)} {COMBINATIONS}",
    sources=(2, 3),
    types=set_types,
)
@instruction(
    "set",
    on="f32 f64",
    modifiers=f"{' '.join(FLOAT_COMPARISONS)} {COMBINATIONS} ftz",
    sources=(2, 3),
    types=set_types,
)
def set_value(b: Builder, op: Operation, x: Value, y: Value, *more: Value) -> Value:
    return as_flag(b, op.types[0], combine(b, op, compare(b, op, x, y), more))


@instruction("selp", on=f"{INTEGERS} f32 f64", sources=3, types=fixed("T", "T T i1"))
def select_by_predicate(b: Builder, op: Operation, x: Value, y: Value, p: Value) -> Value:
    raw = x.raw_nan or y.raw_nan
    if raw and not (is_raw_or_number(x) and is_raw_or_number(y)):
        # One of them may be a NaN from memory, whose sign and payload stay what they are.
        x, y, raw = settle_nans(b, x), settle_nans(b, y), False
    return replace(b.select(p, x, y), raw_nan=raw)


def slct_types(op: Operation, destinations: int, sources: int) -> OperandTypes:
    own = LLVM_TYPE[op.types[0]]
    return OperandTypes((own,), (own, own, LLVM_TYPE[op.type]), op.types[0].startswith("s"))


@instruction("slct", on="s32 f32", modifiers="ftz", sources=3, types=slct_types)
def select_by_sign(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Value:
    """x where z >= 0 (so where it is -0.0, and not where it is NaN), else y."""
    if op.type == "f32":
        return b.select(b.compare("fcmp oge", flush(b, op, z), real("float", 0.0)), x, y)
    return b.select(b.compare("icmp sge", z, constant("i32", 0)), x, y)


CLASSES = {
    "finite": 0x1F8,
    "infinite": 0x204,
    "number": 0x3FC,
    "notanumber": 0x003,
    "normal": 0x168,  # zero counts as normal
    "subnormal": 0x090,
}
"""Masks of llvm.is.fpclass for the properties that testp knows."""


@instruction("testp", on="f32 f64", modifiers=" ".join(CLASSES), sources=1, types=fixed("i1", "T"))
def test_property(b: Builder, op: Operation, x: Value) -> Value:
    return b.intrinsic("is.fpclass", x, f"i32 {CLASSES[op.one_of(*CLASSES)]}", type="i1")


@instruction("copysign", on="f32 f64", sources=2)
def copy_sign(b: Builder, op: Operation, x: Value, y: Value) -> Value:
    """The sign of the first operand with the magnitude of the second."""
    bits = BITS[x.type]
    integer = f"i{bits}"
    sign = b.binary("and", b.bitcast(x, integer), constant(integer, 1 << (bits - 1)))
    size = b.binary("and", b.bitcast(y, integer), constant(integer, (1 << (bits - 1)) - 1))
    return b.bitcast(b.binary("or", sign, size), x.type)
