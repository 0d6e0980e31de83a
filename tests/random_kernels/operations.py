"""What random kernels compute: each operation as CUDA C++ and as NumPy, side by side.

Every operation has one defined result for all operands, and the same one from every compiler: signed arithmetic
is done in unsigned types, shift counts are masked, divisions guarded, NaNs replaced before their bits are looked at,
and products and sums of floats stay apart (``-fmad=false``) unless an ``fma`` says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.random_kernels.arithmetic import (
    Evaluate,
    bit_length,
    cast,
    dot,
    dot_half,
    field,
    funnel,
    fused,
    fused_double,
    high_product,
    insert,
    packed,
    permute,
    popcount,
    quotient,
    remainder,
    reverse,
    rotated,
    rounded,
    shift,
    signed_field,
    signed_high_product,
    to_integer,
    with_sign,
    word_bits,
)
from tests.random_kernels.scalars import (
    F16,
    F32,
    F64,
    I32,
    I64,
    INTEGERS,
    PRED,
    U16,
    U32,
    U64,
    Scalar,
)


@dataclass(frozen=True)
class Operation:
    """``text`` is the C++ with ``{0}``, ``{1}``… for the operands, ``evaluate`` the same for arrays of lanes."""

    result: Scalar
    operands: tuple[Scalar, ...]
    text: str
    evaluate: Evaluate
    weight: int = 4


OPERATIONS: dict[Scalar, list[Operation]] = {t: [] for t in (PRED, *INTEGERS, F16, F32, F64)}


def op(result: Scalar, operands: str, text: str, evaluate: Evaluate, weight: int = 4) -> None:
    """Register an operation; ``operands`` names their types."""
    kinds = tuple(_BY_NAME[name] for name in operands.split())
    OPERATIONS[result].append(Operation(result, kinds, text, evaluate, weight))


_BY_NAME = {t.name: t for t in (PRED, *INTEGERS, F16, F32, F64)}


# --- integers -------------------------------------------------------------------------------------

for t in INTEGERS:
    n, wide = t.name, "u64" if t.bits == 64 else "u32"
    unsigned = f"u{t.bits}"
    for sign, function in (("+", np.add), ("-", np.subtract), ("*", np.multiply)):
        op(t, f"{n} {n}", f"({n})(({wide}){{0}} {sign} ({wide}){{1}})", function, 8)
    for sign, function in (("&", np.bitwise_and), ("|", np.bitwise_or), ("^", np.bitwise_xor)):
        op(t, f"{n} {n}", f"({n})({{0}} {sign} {{1}})", function)
    op(t, n, f"({n})(~{{0}})", np.invert, 2)
    op(t, n, f"({n})(0 - ({wide}){{0}})", lambda x: np.zeros_like(x) - x, 2)
    op(t, f"{n} u32", f"({n})(({wide}){{0}} << ({{1}} & {t.bits - 1}))", shift(True, t.bits))
    op(t, f"{n} u32", f"({n})({{0}} >> ({{1}} & {t.bits - 1}))", shift(False, t.bits))
    op(t, f"{n} {n}", "quotient({0}, {1})", quotient, 2)
    op(t, f"{n} {n}", "remainder_({0}, {1})", remainder, 2)
    op(t, f"{n} {n}", "least({0}, {1})", np.minimum, 3)
    op(t, f"{n} {n}", "greatest({0}, {1})", np.maximum, 3)
    op(t, f"bool {n} {n}", "({0} ? {1} : {2})", lambda c, a, b: np.where(c, a, b), 6)
    op(t, "bool", f"({n}){{0}}", cast(t), 2)
    if t.kind == "unsigned":
        op(t, f"{n} u32", "rotate({0}, {1})", rotated, 2)
        for digits, constant in ((3, 10), (7, 7)):
            op(t, n, f"({n})({{0}} / {constant})", lambda x, k=constant: x // x.dtype.type(k), 1)
            op(t, n, f"({n})({{0}} % {digits})", lambda x, k=digits: x % x.dtype.type(k), 1)
    else:
        op(t, n, f"({n})({{0}} / 10)", lambda x: (x - np.fmod(x, x.dtype.type(10))) // x.dtype.type(10), 1)
        op(t, n, f"({n})({{0}} < 0 ? 0 - ({wide}){{0}} : ({wide}){{0}})", lambda x: np.abs(x), 1)
    for other in INTEGERS:
        if other is not t:
            op(t, other.name, f"({n}){{0}}", cast(t), 2)
    for sign, function in (
        ("<", np.less),
        ("<=", np.less_equal),
        ("==", np.equal),
        ("!=", np.not_equal),
        (">", np.greater),
    ):
        op(PRED, f"{n} {n}", f"({{0}} {sign} {{1}})", function, 2)
    op(
        PRED,
        f"{n} u32",
        f"(bool)(({unsigned}){{0}} >> ({{1}} & {t.bits - 1}) & 1)",
        lambda x, k: shift(False, 8 * x.dtype.itemsize)(x.view(f"u{x.dtype.itemsize}"), k) & 1 != 0,
        1,
    )

op(PRED, "bool bool", "({0} && {1})", np.logical_and, 4)
op(PRED, "bool bool", "({0} || {1})", np.logical_or, 4)
op(PRED, "bool bool", "({0} != {1})", np.logical_xor, 2)
op(PRED, "bool", "(!{0})", np.logical_not, 3)
op(PRED, "bool bool bool", "({0} ? {1} : {2})", lambda c, a, b: np.where(c, a, b), 2)

op(I32, "u32", "__popc({0})", popcount)
op(I32, "u64", "__popcll({0})", popcount, 2)
op(I32, "u32", "__clz((i32){0})", lambda x: 32 - bit_length(x))
op(I32, "u64", "__clzll((i64){0})", lambda x: 64 - bit_length(x), 2)
op(I32, "u32", "__ffs((i32){0})", lambda x: bit_length(x & (~x + np.uint32(1))))
op(I32, "u64", "__ffsll((i64){0})", lambda x: bit_length(x & (~x + np.uint64(1))), 2)
op(U32, "u32", "__brev({0})", reverse)
op(U64, "u64", "__brevll({0})", reverse)
op(U32, "u32 u32 u32", "__byte_perm({0}, {1}, {2})", permute)
op(U32, "u32 u32 u32", "__funnelshift_l({0}, {1}, {2})", funnel(True, False), 3)
op(U32, "u32 u32 u32", "__funnelshift_r({0}, {1}, {2})", funnel(False, False), 3)
op(U32, "u32 u32 u32", "__funnelshift_lc({0}, {1}, {2})", funnel(True, True), 2)
op(U32, "u32 u32 u32", "__funnelshift_rc({0}, {1}, {2})", funnel(False, True), 2)
op(U32, "u32 u32", "__umulhi({0}, {1})", lambda a, b: (a.astype("u8") * b.astype("u8") >> np.uint64(32)).astype("u4"))
op(I32, "i32 i32", "__mulhi({0}, {1})", lambda a, b: (a.astype("i8") * b.astype("i8") >> 32).astype("i4"))
op(U64, "u64 u64", "__umul64hi({0}, {1})", high_product, 3)
op(I64, "i64 i64", "__mul64hi({0}, {1})", signed_high_product, 3)
op(U64, "u32 u32", "((u64){0} * {1})", lambda a, b: a.astype("u8") * b.astype("u8"))
op(I64, "i32 i32", "((i64){0} * {1})", lambda a, b: a.astype("i8") * b.astype("i8"))
op(U32, "u16 u16", "((u32){0} * {1})", lambda a, b: a.astype("u4") * b.astype("u4"))
op(I32, "i16 i16", "({0} * {1})", lambda a, b: a.astype("i4") * b.astype("i4"))
op(U64, "u32 u32 u64", "((u64){0} * {1} + {2})", lambda a, b, c: a.astype("u8") * b.astype("u8") + c)
op(U32, "u32 u32 u32", "({0} * {1} + {2})", lambda a, b, c: a * b + c)
op(
    U32,
    "i32 i32 u32",
    "__sad({0}, {1}, {2})",
    lambda a, b, c: (np.abs(a.astype("i8") - b.astype("i8")) + c).astype("u4"),
    2,
)
op(
    U32,
    "u32 u32 u32",
    "__usad({0}, {1}, {2})",
    lambda a, b, c: (np.abs(a.astype("i8") - b.astype("i8")) + c).astype("u4"),
    2,
)
op(I32, "i32 i32", "__hadd({0}, {1})", lambda a, b: (a.astype("i8") + b.astype("i8") >> 1).astype("i4"), 2)
op(I32, "i32 i32", "__rhadd({0}, {1})", lambda a, b: (a.astype("i8") + b.astype("i8") + 1 >> 1).astype("i4"), 2)
op(U32, "u32 u32", "__uhadd({0}, {1})", lambda a, b: (a.astype("i8") + b.astype("i8") >> 1).astype("u4"), 2)
op(U32, "u32 u32", "__urhadd({0}, {1})", lambda a, b: (a.astype("i8") + b.astype("i8") + 1 >> 1).astype("u4"), 2)
op(
    I32,
    "i32 i32",
    "__mul24({0}, {1})",
    lambda a, b: ((a.astype("i8") << 40 >> 40) * (b.astype("i8") << 40 >> 40)).astype("i4"),
    2,
)
op(U32, "u32 u32", "__umul24({0}, {1})", lambda a, b: (a & np.uint32(0xFFFFFF)) * (b & np.uint32(0xFFFFFF)), 2)
op(I32, "i32 i32 i32", "__dp4a({0}, {1}, {2})", dot("i1", "i1"), 2)
op(U32, "u32 u32 u32", "__dp4a({0}, {1}, {2})", dot("u1", "u1"), 2)
op(I32, "i32 i32 i32", "__dp2a_lo({0}, {1}, {2})", dot_half(0), 2)
op(I32, "i32 i32 i32", "__dp2a_hi({0}, {1}, {2})", dot_half(1), 2)
op(U32, "u32 u32 u32", "logic({0}, {1}, {2})", lambda a, b, c: (a & b) ^ c)
op(U32, "u32 u32 u32", "field({0}, {1}, {2})", field)
op(I32, "i32 u32 u32", "signed_field({0}, {1}, {2})", signed_field)
op(U32, "u32 u32 u32 u32", "insert({0}, {1}, {2}, {3})", insert)
op(
    I32,
    "i32 i32",
    "saturating({0}, {1})",
    lambda a, b: np.clip(a.astype("i8") + b.astype("i8"), -(2**31), 2**31 - 1).astype("i4"),
    2,
)
op(U64, "u64 u64 u64 u64", "high_of_sum({0}, {1}, {2}, {3})", lambda a, b, c, d: c + d + (a + b < a), 2)
op(U64, "u64 u64 u64 u64", "high_of_difference({0}, {1}, {2}, {3})", lambda a, b, c, d: c - d - (a < b), 2)
op(U64, "u32 u32", "((u64){0} << 32 | {1})", lambda a, b: a.astype("u8") << np.uint64(32) | b.astype("u8"), 2)

for text, dtype, function in (
    ("__vadd4", "u1", lambda a, b: a + b),
    ("__vsub2", "u2", lambda a, b: a - b),
    ("__vmaxu4", "u1", np.maximum),
    ("__vmins2", "i2", np.minimum),
    ("__vabsdiffu4", "u1", lambda a, b: abs(a - b)),
    ("__vavgu4", "u1", lambda a, b: a + b + 1 >> 1),
    ("__vaddss2", "i2", lambda a, b: np.clip(a + b, -32768, 32767)),
    ("__vsubus4", "u1", lambda a, b: np.maximum(a - b, 0)),
    ("__vcmpgts2", "i2", lambda a, b: -(a > b).astype("i8")),
    ("__vseteq4", "u1", lambda a, b: (a == b).astype("i8")),
):
    op(U32, "u32 u32", f"{text}({{0}}, {{1}})", packed(dtype, function), 1)

# --- floats ---------------------------------------------------------------------------------------

for t, letter, suffix in ((F32, "f", "f"), (F64, "d", "")):
    n, unsigned = t.name, U32 if t is F32 else U64
    for sign, function in (("+", np.add), ("-", np.subtract), ("*", np.multiply)):
        op(t, f"{n} {n}", f"({{0}} {sign} {{1}})", function, 12)
    op(t, f"{n} {n}", "({0} / {1})", np.divide, 3)
    op(t, n, f"sqrt{suffix}({{0}})", np.sqrt, 2)
    op(t, f"{n} {n} {n}", f"fma{suffix}({{0}}, {{1}}, {{2}})", fused("rn", "f4") if t is F32 else fused_double, 8)
    for mode in ("rz", "ru", "rd"):
        for name, function in (("add", np.add), ("mul", np.multiply), ("div", np.divide)):
            if name != "div" or mode == "rz":
                op(t, f"{n} {n}", f"__{letter}{name}_{mode}({{0}}, {{1}})", rounded(mode, function), 1)
        multiply_add = fused(mode, "f4") if t is F32 else rounded(mode, fused_double)
        op(t, f"{n} {n} {n}", f"__fma{suffix}_{mode}({{0}}, {{1}}, {{2}})", multiply_add, 1)
    op(t, n, f"__{letter}sqrt_ru({{0}})", rounded("ru", np.sqrt), 1)
    op(t, n, f"__{letter}rcp_rd({{0}})", rounded("rd", lambda x: x.dtype.type(1) / x), 1)
    op(t, n, "(-{0})", np.negative, 3)
    op(t, n, f"fabs{suffix}({{0}})", np.abs, 3)
    zero = "0.0f" if t is F32 else "0.0"
    op(t, f"{n} {n}", f"(fmin{suffix}({{0}}, {{1}}) + {zero})", lambda a, b: np.fmin(a, b) + a.dtype.type(0), 3)
    op(t, f"{n} {n}", f"(fmax{suffix}({{0}}, {{1}}) + {zero})", lambda a, b: np.fmax(a, b) + a.dtype.type(0), 3)
    for name, function in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("rint", np.rint)):
        op(t, n, f"{name}{suffix}({{0}})", function, 2)
    op(t, f"{n} {n}", "with_sign({0}, {1})", with_sign, 2)
    op(t, f"bool {n} {n}", "({0} ? {1} : {2})", lambda c, a, b: np.where(c, a, b), 6)
    for integer in INTEGERS:
        op(t, integer.name, f"({n}){{0}}", cast(t), 2)
    as_float = "__uint_as_float({0})" if t is F32 else "__longlong_as_double((i64){0})"
    op(t, unsigned.name, as_float, lambda x: np.ascontiguousarray(x).view(f"f{x.dtype.itemsize}"), 3)
    op(unsigned, n, "bits({0})", word_bits, 4)
    for target, name in ((I32, "int"), (U32, "uint"), (I64, "ll"), (U64, "ull")):
        prefix = "float" if t is F32 else "double"
        for mode in ("rn", "rz", "ru", "rd"):
            op(target, n, f"to_{prefix}2{name}_{mode}({{0}})", to_integer(mode, target), 1)
    for sign, function in (
        ("<", np.less),
        ("<=", np.less_equal),
        ("==", np.equal),
        ("!=", np.not_equal),
        (">", np.greater),
        (">=", np.greater_equal),
    ):
        op(PRED, f"{n} {n}", f"({{0}} {sign} {{1}})", function, 2)
    op(PRED, n, "isnan({0})", np.isnan, 1)

op(F32, "f64", "(f32){0}", cast(F32), 4)
op(F32, "f64", "__double2float_rz({0})", rounded("rz", cast(F32)), 1)
op(F32, "f64", "__double2float_ru({0})", rounded("ru", cast(F32)), 1)
op(F32, "i32", "__int2float_rd({0})", rounded("rd", cast(F32)), 1)
op(F32, "u64", "__ull2float_ru({0})", rounded("ru", cast(F32)), 1)
op(F64, "i64", "__ll2double_rz({0})", rounded("rz", cast(F64)), 1)
op(F64, "f32", "(f64){0}", cast(F64), 4)
op(F32, "f16", "single({0})", cast(F32), 6)
op(F16, "f32", "half_({0})", cast(F16), 6)
op(F16, "f16 f16", "half_add({0}, {1})", np.add, 6)
op(F16, "f16 f16", "half_sub({0}, {1})", np.subtract, 4)
op(F16, "f16 f16", "half_mul({0}, {1})", np.multiply, 6)
op(F16, "f16 f16 f16", "half_fma({0}, {1}, {2})", fused("rn", "f2"), 6)
op(F16, "f16 f16", "half_min({0}, {1})", lambda a, b: np.fmin(a, b) + np.float16(0), 2)
op(F16, "f16 f16", "half_max({0}, {1})", lambda a, b: np.fmax(a, b) + np.float16(0), 2)
op(F16, "f16", "half_neg({0})", np.negative, 2)
op(F16, "f16", "half_abs({0})", np.abs, 2)
op(F16, "u16", "(f16){0}", lambda x: np.ascontiguousarray(x).view("f2"), 3)
op(F16, "bool f16 f16", "({0} ? {1} : {2})", lambda c, a, b: np.where(c, a, b), 3)
op(U16, "f16", "bits_of_half({0})", word_bits, 6)
