"""What each elementwise operation computes: facts, as CUDA C++ expressions of its operands.

An operand has the type in which NumPy computes (the "loop" of the ufunc), called T; so has the result, but for
comparisons and the like. The names in the expressions are functions of CUDA, or of preamble.cu. Narrow integers are
computed as ``int`` and cut back by the cast to the type of the result, which wraps around as in NumPy.
"""

from __future__ import annotations

_INFINITE = "__longlong_as_double(0x7ff0000000000000)"

# Kinds of NumPy's types: b bool, i and u integers, f floating-point numbers, c complex numbers. The first row of an
# operation that has the kind of the loop counts. {0} and {1} are the operands, T is the name of their type.
OPERATIONS: dict[str, dict[str, str]] = {
    # arithmetic
    "add": {"b": "{0} || {1}", "iufc": "{0} + {1}"},
    "subtract": {"iufc": "{0} - {1}"},
    "multiply": {"b": "{0} && {1}", "iufc": "{0} * {1}"},
    "divide": {"fc": "{0} / {1}"},
    "floor_divide": {"iuf": "floor_divide<T>({0}, {1})"},
    "remainder": {"iuf": "remainder<T>({0}, {1})"},
    "fmod": {"iu": "truncated_remainder<T>({0}, {1})", "f": "fmod({0}, {1})"},
    "power": {"iu": "power<T>({0}, {1})", "f": "pow({0}, {1})", "c": "complex_power({0}, {1})"},
    "float_power": {"f": "pow({0}, {1})", "c": "complex_power({0}, {1})"},
    "negative": {"iufc": "-{0}"},
    "positive": {"iufc": "{0}"},
    "fabs": {"f": "fabs({0})"},
    "absolute": {"bu": "{0}", "i": "({0} < 0 ? -{0} : {0})", "f": "fabs({0})", "c": "hypot({0}.re, {0}.im)"},
    "sign": {"u": "{0} > 0", "i": "({0} > 0) - ({0} < 0)", "f": "({0} != {0} ? {0} : T(({0} > 0) - ({0} < 0)))",
             "c": "complex_sign({0})"},
    "square": {"iufc": "{0} * {0}"},
    "reciprocal": {"iu": "({0} == 0 ? 0 : 1 / {0})", "fc": "T(1) / {0}"},
    "maximum": {"b": "{0} || {1}", "iu": "({0} > {1} ? {0} : {1})", "f": "({0} >= {1} || {0} != {0} ? {0} : {1})",
                "c": "({0} >= {1} || is_nan({0}) ? {0} : {1})"},
    "minimum": {"b": "{0} && {1}", "iu": "({0} < {1} ? {0} : {1})", "f": "({0} <= {1} || {0} != {0} ? {0} : {1})",
                "c": "({0} <= {1} || is_nan({0}) ? {0} : {1})"},
    "fmax": {"b": "{0} || {1}", "iu": "({0} > {1} ? {0} : {1})", "f": "({0} >= {1} || {1} != {1} ? {0} : {1})",
             "c": "({0} >= {1} || is_nan({1}) ? {0} : {1})"},
    "fmin": {"b": "{0} && {1}", "iu": "({0} < {1} ? {0} : {1})", "f": "({0} <= {1} || {1} != {1} ? {0} : {1})",
             "c": "({0} <= {1} || is_nan({1}) ? {0} : {1})"},
    "conjugate": {"iuf": "{0}", "c": "conjugate<T>({0})"},
    # comparisons and logic
    "equal": {"biufc": "{0} == {1}"},
    "not_equal": {"biufc": "{0} != {1}"},
    "less": {"biufc": "{0} < {1}"},
    "less_equal": {"biufc": "{0} <= {1}"},
    "greater": {"biufc": "{0} > {1}"},
    "greater_equal": {"biufc": "{0} >= {1}"},
    "logical_and": {"biuf": "{0} && {1}", "c": "is_true({0}) && is_true({1})"},
    "logical_or": {"biuf": "{0} || {1}", "c": "is_true({0}) || is_true({1})"},
    "logical_xor": {"biuf": "({0} != 0) != ({1} != 0)", "c": "is_true({0}) != is_true({1})"},
    "logical_not": {"biuf": "!{0}", "c": "!is_true({0})"},
    "isnan": {"biu": "((void){0}, false)", "f": "{0} != {0}", "c": "{0}.re != {0}.re || {0}.im != {0}.im"},
    "isinf": {"biu": "((void){0}, false)", "f": "isinf({0})", "c": "isinf({0}.re) || isinf({0}.im)"},
    "isfinite": {"biu": "((void){0}, true)", "f": "isfinite({0})", "c": "isfinite({0}.re) && isfinite({0}.im)"},
    "signbit": {"f": "signbit({0})"},
    # bits
    "bitwise_and": {"b": "{0} && {1}", "iu": "{0} & {1}"},
    "bitwise_or": {"b": "{0} || {1}", "iu": "{0} | {1}"},
    "bitwise_xor": {"b": "{0} != {1}", "iu": "{0} ^ {1}"},
    "invert": {"b": "!{0}", "iu": "~{0}"},
    "left_shift": {"iu": "shift_left<T>({0}, {1})"},
    "right_shift": {"iu": "shift_right<T>({0}, {1})"},
    # rounding
    "floor": {"biu": "{0}", "f": "floor({0})"},
    "ceil": {"biu": "{0}", "f": "ceil({0})"},
    "trunc": {"biu": "{0}", "f": "trunc({0})"},
    "rint": {"f": "rint({0})", "c": "complex_rint({0})"},
    # functions of real numbers
    **{
        name: {"f": f"{function}({{0}})", **({"c": f"complex_{function}({{0}})"} if complex_too else {})}
        for names, complex_too in (
            ({"sqrt": "sqrt", "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "arcsin": "asin",
              "arccos": "acos", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsinh": "asinh", "arccosh": "acosh",
              "arctanh": "atanh"}, True),
            ({"cbrt": "cbrt"}, False),
        )
        for name, function in names.items()
    },
    "exp2": {"f": "exp2({0})", "c": "complex_exp(scaled({0}, 0.6931471805599453))"},
    "log2": {"f": "log2({0})", "c": "scaled(complex_log({0}), 1.4426950408889634)"},
    "log10": {"f": "log10({0})", "c": "scaled(complex_log({0}), 0.4342944819032518)"},
    "sin": {"f": "sin({0})", "c": "over_i(complex_sinh(times_i({0})))"},
    "cos": {"f": "cos({0})", "c": "complex_cosh(times_i({0}))"},
    "tan": {"f": "tan({0})", "c": "over_i(complex_tanh(times_i({0})))"},
    "arctan": {"f": "atan({0})", "c": "over_i(complex_atanh(times_i({0})))"},
    "arctan2": {"f": "atan2({0}, {1})"},
    "hypot": {"f": "hypot({0}, {1})"},
    "copysign": {"f": "copysign({0}, {1})"},
    "logaddexp": {"f": "logaddexp<T>({0}, {1})"},
    "logaddexp2": {"f": "logaddexp2<T>({0}, {1})"},
    "heaviside": {"f": "({0} != {0} ? {0} : {0} == 0 ? {1} : T({0} > 0))"},
    # NumPy has the distance away from zero, with a sign, but of halves that to the next greater one.
    "spacing": {"e": f"next_half({{0}}, T({_INFINITE})) - {{0}} + ({{0}} - {{0}})",
                "f": f"nextafter({{0}}, {{0}} < 0 ? T(-{_INFINITE}) : T({_INFINITE})) - {{0}}"},
    "nextafter": {"e": "next_half({0}, {1})", "f": "nextafter({0}, {1})"},
    "ldexp": {"f": "ldexp({0}, {1} > 99999 ? 99999 : {1} < -99999 ? -99999 : (int){1})"},
    "gcd": {"iu": "greatest_divisor<T>({0}, {1})"},
    "lcm": {"iu": "least_multiple<T>({0}, {1})"},
    "bitwise_count": {"iu": "ones<T>({0})"},
    "deg2rad": {"f": "{0} * T(0.017453292519943295)"},
    "rad2deg": {"f": "{0} * T(57.29577951308232)"},
}  # fmt: skip

# Comparisons of signed numbers with unsigned ones of 64 bits, by the kinds of both: no type has both, and C++ would
# convert the signed ones. The first row is of those that hold where the signed number is negative.
_SIGNS = {
    "iu": (
        {"not_equal": "!=", "less": "<", "less_equal": "<="},
        {"equal": "==", "greater": ">", "greater_equal": ">="},
        0,
    ),
    "ui": (
        {"not_equal": "!=", "greater": ">", "greater_equal": ">="},
        {"equal": "==", "less": "<", "less_equal": "<="},
        1,
    ),
}
MIXED = {
    (name, kinds): f"{{{signed}}} {check} (unsigned long long){{0}} {sign} (unsigned long long){{1}}"
    for kinds, (*rows, signed) in _SIGNS.items()
    for check, row in zip(("< 0 ||", ">= 0 &&"), rows, strict=True)
    for name, sign in row.items()
}  # fmt: skip

# The same operation under other names of NumPy, and under those of the Array API standard.
ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert", "bitwise_right_shift": "right_shift", "conj": "conjugate", "degrees": "rad2deg",
    "mod": "remainder", "pow": "power", "radians": "deg2rad", "true_divide": "divide",
}  # fmt: skip

# NumPy's types in CUDA C++: how they lie in memory, and what is computed with.
MEMORY = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short", "i": "int",
    "I": "unsigned int", "l": "long long", "L": "unsigned long long", "q": "long long", "Q": "unsigned long long",
    "e": "half_bits", "f": "float", "d": "double", "F": "complex_number<float>", "D": "complex_number<double>",
}  # fmt: skip
# A half is computed as a float, and rounded behind each operation, as NumPy does.
COMPUTED = {**MEMORY, "e": "float"}


def expression(name: str, kind: str, char: str = "") -> str | None:
    """The expression of an operation for a kind of type; None if there is none. Halves may have one of their own."""
    found = OPERATIONS[name].get("e") if char == "e" else None
    return found or next((text for kinds, text in OPERATIONS[name].items() if kind in kinds), None)
