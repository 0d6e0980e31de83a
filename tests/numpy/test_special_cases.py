"""What the Array API standard says of infinities, NaN, signed zeros and branch cuts, for every function and operator.

`special_cases.txt` has the standard's cases. All values go through a function at once, ten functions through a kernel.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import re
from pathlib import Path

import numpy
import pytest

import cupola.numpy as np
from cupola.numpy._operations import ALIASES
from tests.numpy.test_elementwise import BINARY, UNARY, together

PARTS = [
    0.0, 1, 0.5, 1.5, 2, 2.5, 3, 7, 100, 1e-5, numpy.inf, numpy.nan,
]  # fmt: skip
VALUES = numpy.array([sign * abs(one) for one in PARTS for sign in (1.0, -1.0)])
VALUES[-2:] = numpy.copysign(numpy.nan, [1, -1])

KINDS = {
    "any": lambda x: numpy.ones(x.shape, bool),
    "finite": numpy.isfinite,
    "nonzero": lambda x: numpy.isfinite(x) & (x != 0),
    "positive": lambda x: numpy.isfinite(x) & (x > 0),
    "negative": lambda x: numpy.isfinite(x) & (x < 0),
    "nan": numpy.isnan,
    "+nan": lambda x: numpy.isnan(x) & ~numpy.signbit(x),
    "-nan": lambda x: numpy.isnan(x) & numpy.signbit(x),
    "inf": numpy.isinf,
    "0": lambda x: x == 0,
    "+0": lambda x: (x == 0) & ~numpy.signbit(x),
    "-0": lambda x: (x == 0) & numpy.signbit(x),
    "whole": lambda x: x == numpy.rint(x),
    "odd": lambda x: numpy.fmod(x, 2) ** 2 == 1,
}
COMPARISONS = {">": operator.gt, "<": operator.lt, "!=": lambda x, y: (x != y) & ((x == x) | (y == y))}


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """Unlike in other tests here, kernels are optimized, as in programs: no special case may be lost by that."""


def chosen(text: str, x: numpy.ndarray) -> numpy.ndarray:
    """Where the values are what the text says."""
    if "&" in text:
        return numpy.logical_and.reduce([chosen(one, x) for one in text.split("&")])
    if text[0] == "|":
        return chosen(text[1:-1], abs(x))
    if "|" in text:
        return numpy.logical_or.reduce([chosen(one, x) for one in text.split("|")])
    if text in KINDS:
        return KINDS[text](x)
    for sign, compare in COMPARISONS.items():
        if text.startswith(sign):
            return compare(x, float(text.removeprefix(sign)))
    return ~chosen(text[1:], x) if text[0] == "!" else x == float(text)


NAMES = {name: getattr(numpy, name) for name in ("pi", "inf", "nan", "cos", "sin", "floor_divide", "rint", "abs")}


def signed(size: float, *factors: numpy.ndarray) -> numpy.ndarray:
    negative = numpy.logical_xor.reduce([numpy.signbit(one) for one in factors])
    return numpy.where(negative, -size, size)


def agree(text: str, found: numpy.ndarray, names: dict[str, numpy.ndarray], *, exact: bool) -> numpy.ndarray:
    """Where the results are what the text says."""
    if " or " in text:
        parts = [agree(one, found, names, exact=exact) for one in text.split(" or ")]
        return numpy.logical_or.reduce(parts)
    if text in ("+nan", "-nan"):
        return chosen(text, found)
    source = re.sub(r"(?<![\w.])0(?![\w.])", "0.0", text.removeprefix("±"))
    value = eval(source, {**NAMES, **names, "signed": lambda size: signed(size, names["x1"], names["x2"])})
    right = numpy.broadcast_to(numpy.asarray(value, found.dtype), found.shape)
    if found.dtype.kind == "b":
        return found == right
    places = 0 if exact and "pi" not in text and "sin" not in text else 4 * numpy.finfo(found.dtype).eps
    near = numpy.isclose(found, right, rtol=places, atol=0, equal_nan=True)
    if text[0] == "±":
        return near | numpy.isclose(found, -right, rtol=places, atol=0)
    signs = numpy.isnan(right) | (numpy.signbit(found) == numpy.signbit(right))
    return near & signs


CASES: dict[tuple[str, int, str], list[tuple[list[str], list[str]]]] = {}
for _line in (Path(__file__).parent / "special_cases.txt").read_text().splitlines():
    if not _line.startswith("#"):
        _given, _, _result = _line.partition(" = ")
        _name, _given = _given.split(None, 1)
        _kind = "c" if ";" in _given else "f"
        _conditions = [one.strip() for one in re.split("[,;]", _given)]
        CASES.setdefault((_name, len(_conditions), _kind), []).append(
            (_conditions, _result.split(", ") if _kind == "c" else [_result])
        )

# The functions of complex numbers that are defined by others, with the argument and the result turned by a quarter.
TURNED = {"sin": "sinh", "cos": "cosh", "tan": "tanh", "asin": "asinh", "atan": "atanh"}


def arguments(kind: str, count: int, dtype: str) -> list[numpy.ndarray]:
    if count == 1:
        return [VALUES.astype(dtype)]
    left, right = (numpy.array(one) for one in zip(*itertools.product(VALUES, VALUES), strict=True))
    if kind == "f":
        return [left.astype(dtype), right.astype(dtype)]
    made = numpy.empty(left.shape, dtype)
    made.real, made.imag = left, right
    return [made]


def results(count: int, given: list[numpy.ndarray]) -> dict[str, numpy.ndarray]:
    """What all functions give: the same ones in the same order as in test_elementwise, which has the same kernels."""
    x = [np.asarray(one) for one in given]
    found = {}
    for name in UNARY if count == 1 else BINARY:
        with contextlib.suppress(TypeError):
            found[name] = getattr(np, name)(*x)
    return dict(zip(found, together(list(found.values())), strict=True))


def widths(request: pytest.FixtureRequest, *types: str) -> tuple[str, ...]:
    """The types to test: by hand all, otherwise those of test_elementwise, since kernels take long to compile."""
    return types if request.config.getoption("--examples") > 5 else types[:1]


@pytest.mark.parametrize("count", [1, 2])
def test_real_numbers(device, request, count):
    for dtype in widths(request, "f8", "f4"):
        check_real_numbers(count, dtype)


def check_real_numbers(count, dtype):
    given = arguments("f", count, dtype)
    everything = results(count, given)
    names = [name for name, number, kind in CASES if (number, kind) == (count, "f")]
    found = [everything[{"round": "rint"}.get(name) or ALIASES.get(name, name)] for name in names]
    named = {"x": given[0]} if count == 1 else dict(zip(("x1", "x2"), given, strict=True))
    wrong = []
    with numpy.errstate(all="ignore"):
        for name, values in zip(names, found, strict=True):
            for conditions, (result,) in CASES[name, count, "f"]:
                where = numpy.logical_and.reduce([chosen(*pair) for pair in zip(conditions, given, strict=True)])
                assert where.any(), (name, conditions)
                bad = where & ~agree(result, values, named, exact=name != "pow")
                wrong += [
                    f"{name}({', '.join(str(g[k]) for g in given)}) = {values[k]}, not {result}"
                    for k in numpy.flatnonzero(bad)
                ]
    assert not wrong, "\n".join(wrong)


ODD = ["sinh", "tanh", "asinh", "atanh"]


def test_complex_numbers(device, request):
    for dtype in widths(request, "c8", "c16"):
        check_complex_numbers(dtype)


def check_complex_numbers(dtype):
    """With what follows for conjugate and, for odd and even functions, for opposite arguments."""
    (z,) = arguments("c", 2, dtype)
    names = [name for name, _, kind in CASES if kind == "c"]
    x = np.asarray(z)
    quarter = numpy.empty_like(z)
    quarter.real, quarter.imag = -z.imag, z.real
    turned = np.asarray(quarter)
    more = [*TURNED, "log2", "log10"]
    results = [getattr(np, name)(x) for name in [*names, *more]] + [getattr(np, one)(turned) for one in TURNED.values()]
    found = together(results)
    wrong = []
    with numpy.errstate(all="ignore"):
        for name, values in zip(names, found, strict=False):
            for conditions, result in CASES[name, 2, "c"]:
                for opposite, conjugate in itertools.product((False, True), repeat=2):
                    if opposite and name not in (*ODD, "cosh"):
                        continue
                    a = -z.real if opposite else z.real
                    b = -z.imag if opposite != conjugate else z.imag
                    where = chosen(conditions[0], a) & chosen(conditions[1], b)
                    assert where.any(), (name, conditions)
                    parts = [values.real, values.imag] if len(result) == 2 else [values]
                    if opposite and name in ODD:
                        parts = [-one for one in parts]
                    if conjugate and len(parts) == 2:
                        parts[1] = -parts[1]
                    good = [agree(r, p, {"a": a, "b": b}, exact=False) for r, p in zip(result, parts, strict=True)]
                    bad = where & ~numpy.logical_and.reduce(good)
                    wrong += [f"{name}({z[k]}) = {values[k]}, not {result}" for k in numpy.flatnonzero(bad)]
        for k, name in enumerate(TURNED):
            ours, other = found[len(names) + k], found[len(names) + len(more) + k]
            expected = (other.real, other.imag) if name == "cos" else (other.imag, -other.real)
            for one, right in zip((ours.real, ours.imag), expected, strict=True):
                near = numpy.isclose(one, right, rtol=4 * numpy.finfo(one.dtype).eps, atol=0)
                same = near & (numpy.signbit(one) == numpy.signbit(right)) | numpy.isnan(one) & numpy.isnan(right)
                wrong += [f"{name}({z[k]}) = {ours[k]}" for k in numpy.flatnonzero(~same)]
        logarithm = found[names.index("log")]
        for k, base in ((-2, 2), (-1, 10)):
            ours = found[len(names) + len(more) + (k)]
            assert numpy.allclose(ours.real, logarithm.real / numpy.log(base), rtol=1e-6, equal_nan=True)
            assert numpy.allclose(ours.imag, logarithm.imag / numpy.log(base), rtol=1e-6, equal_nan=True)
    assert not wrong, "\n".join(wrong)
