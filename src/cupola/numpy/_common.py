"""What programs begin with: the statements whose kernels come with the package (_ahead.py).

Kernels depend on operations, types and on how arrays lie, and not on values or extents. So a statement stands for all
of its kind. Arrays lie in one piece, have a stride, or are broadcast or transposed in two dimensions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

NUMBERS = ("d", "f", "l", "i")
UNARY = (
    "absolute", "ceil", "cos", "exp", "floor", "log", "negative", "reciprocal", "rint", "sign", "sin", "sqrt", "square",
    "tanh",
)  # fmt: skip
MORE_UNARY = (
    "arccos", "arcsin", "arctan", "cbrt", "cosh", "deg2rad", "exp2", "expm1", "log10", "log1p", "log2", "rad2deg",
    "sinh", "tan", "trunc",
)  # fmt: skip
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

Statement = Callable[[], Any]


def statements(np: Any) -> Iterator[Statement]:
    """The statements, those that most programs have first.

    Parameters
    ----------
    np : module
        cupola.numpy.
    """
    yield from beginnings(np)
    for char in NUMBERS:
        yield from _first(np, char)
        yield from _arithmetic(np, char)
        yield from _reductions(np, char)
        yield from _choosing(np, char)
        yield from _order(np, char)
    yield from _truth(np)
    for char in ("d", "f"):
        yield from _functions(np, char)
        yield from _expressions(np, char)
        yield from _statistics(np, char)
        yield from _matrices(np, char)
    yield from _conversions(np)
    yield from _making(np)
    yield from _random(np)
    yield from _complex_numbers(np)


def beginnings(np: Any) -> Iterator[Statement]:
    """Those of nearly every program: some ninety kernels, those that take longest to compile first."""
    a = _Arrays(np, "d")
    x = a.x
    for count in (1 << 16, 1 << 11):
        for name in ("argsort", "sort", "cumsum"):
            yield _calls(getattr(np, name), np.zeros(count))
    for name in ("argmax", "std", "sin", "cos", "exp", "sqrt", "cumsum", "sort", "argsort", "nonzero"):
        yield _calls(getattr(np, name), x)
    source = np.random.default_rng(1)
    yield _now(lambda: source.normal(0, 1, 64))
    yield _now(lambda: source.random(64))
    yield _now(lambda: x[x > 1])
    for char in ("d", "f"):
        yield from _first(np, char)
    yield _calls(np.arange, 0, 1 << 15, 1, "l")
    yield _calls(np.asarray, [1, 2, 3])
    yield _now(lambda: x[np.zeros(5, int)])
    yield _now(lambda: x[np.zeros(256, int)])  # a long row
    yield _now(lambda: a.rows - a.rows[0])
    yield _now(lambda: np.where(x > 1, x, 0))
    yield _now(lambda: x**2)
    yield _now(lambda: x.astype("f"))


class _Arrays:
    """Arrays of one type that lie in the ways that there are."""

    def __init__(self, np: Any, char: str) -> None:
        def made(*shape: int) -> Any:
            return np.full(shape, 2, char)

        self.x, self.y, self.z = made(64), made(64), made(64)
        self.p, self.q = made(128)[::2], made(128)[::2]
        self.m, self.k = made(64, 9), made(64, 9)
        self.row, self.column = made(9), made(64, 1)
        self.t = made(9, 64).T
        self.wide = made(9, 64)
        self.few, self.flat, self.narrow = made(10), made(3, 64), made(64, 3)
        self.cube = made(4, 5, 6)
        self.rows, self.others = made(3, 256), made(3, 256)
        self.one = made()


def _now(function: Callable[[], Any]) -> Statement:
    """A statement whose result is needed at once."""

    def run() -> None:
        for one in _parts(function()):
            if hasattr(one, "_compute_now"):
                one._compute_now()

    return run


def _parts(made: Any) -> Any:
    return made if isinstance(made, (tuple, list)) else (made,)


def _calls(function: Any, *operands: Any) -> Statement:
    return _now(lambda: function(*operands))


def _set(target: Any, key: Any, value: Any) -> Statement:
    return _now(lambda: target.__setitem__(key, value))


def _first(np: Any, char: str) -> Iterator[Statement]:
    """What is in nearly every program."""
    a = _Arrays(np, char)
    yield _calls(np.zeros, 64, char)
    for name in ("add", "multiply", "subtract", "divide"):
        function = getattr(np, name)
        yield _calls(function, a.x, a.y)
        yield _calls(function, a.x, 2)
        yield _calls(function, 2, a.x)
    for name in ("sum", "max", "min", "mean"):
        yield _calls(getattr(np, name), a.x)
        yield _calls(getattr(np, name), a.m, 0)
    for name in ("add", "multiply"):
        yield _calls(getattr(np, name), a.x, a.x)
    yield _calls(np.greater, a.x, 2)
    yield _calls(np.copy, a.t)
    yield _calls(np.copy, a.p)


def _arithmetic(np: Any, char: str) -> Iterator[Statement]:
    a = _Arrays(np, char)
    spread = ((a.x, a.y), (a.p, a.q), (a.m, a.row))
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
        function = getattr(np, name)
        for one, other in spread:
            yield _calls(function, one, other)
        for one in (a.x, a.p, a.t):
            yield _calls(function, one, 2)
            if name in ("subtract", "divide") and char in "df":
                yield _calls(function, 2, one)
        # With a result of a reduction.
        yield _calls(function, a.x, a.one)
        yield _calls(function, a.one, a.one)
        yield _calls(function, a.one, 2)
    for one in (a.x, a.p, a.t):
        yield _calls(np.multiply, one, one)
    for name in ("power", "floor_divide", "remainder"):
        yield _calls(getattr(np, name), a.x, 2)
        yield _calls(getattr(np, name), a.x, a.y)
    for name in COMPARISONS:
        function = getattr(np, name)
        yield _calls(function, a.x, a.y)
        yield _calls(function, a.x, 2)
        if char in "df":
            yield _calls(function, a.m, a.row)
    for name in ("absolute", "negative", "square", "sign"):
        yield _calls(getattr(np, name), a.x)
    if char == "l":
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
            yield _calls(getattr(np, name), a.x, a.y)
            yield _calls(getattr(np, name), a.x, 2)
        for function in (np.add, np.multiply, np.subtract, np.divide, np.power):
            yield _calls(function, a.x, 0.5)
        yield _calls(np.sqrt, a.x)
        yield _calls(np.subtract, 0.5, a.x)
    for name in ("add", "subtract", "multiply", "divide"):
        function = getattr(np, name)
        for other in (a.others[0], a.others[:, :1], a.others[:, 1:]):
            yield _calls(function, a.rows[:, : other.shape[-1]] if other.shape[-1] > 1 else a.rows, other)
        yield _calls(function, a.rows[:, 1:], 2)
    # In place, and into parts.
    for target in (a.x, a.m[1], a.p, a.m[:, 1], a.m[1:3, 2:5], a.rows[:, 1:]):
        yield _set(target, ..., 2)
    yield _set(a.rows[:, 1:], ..., a.others[:, :-1])
    yield _set(a.x, ..., a.y)
    yield _set(a.p, ..., a.x)
    yield _set(a.m[1:3, 2:5], ..., a.k[1:3, 2:5])
    yield _set(a.cube[1:3, 2:4, 1:4], ..., 2)


def _reductions(np: Any, char: str) -> Iterator[Statement]:
    a = _Arrays(np, char)
    for name in ("sum", "max", "min", "mean", "prod", "any", "all"):
        function = getattr(np, name)
        for one in (a.x, a.few) if name != "prod" else (a.x,):
            yield _calls(function, one)
        if name in ("sum", "max", "min", "mean"):
            for one, axis in ((a.m, 0), (a.wide, 1), (a.flat, 0), (a.narrow, 1)):
                yield _calls(function, one, axis)
            yield _calls(function, a.t)
    yield _now(lambda: (a.x * a.y).sum())
    yield _now(lambda: (a.x * a.x).sum())
    yield _now(lambda: ((a.x - a.y) * (a.x - a.y)).sum())
    yield _now(lambda: abs(a.x - a.y).max())
    yield _now(lambda: abs(a.x).max())
    yield _now(lambda: abs(a.x).sum())
    yield _now(lambda: (a.x > 2).sum())
    yield _now(lambda: (a.x == a.y).all())
    yield _now(lambda: (a.x == a.y).sum())
    yield _now(lambda: (a.x > 2).any())
    yield _now(lambda: (a.x > 2).all())
    yield _calls(np.count_nonzero, a.x)
    yield _calls(np.array_equal, a.x, a.y)


def _choosing(np: Any, char: str) -> Iterator[Statement]:
    a = _Arrays(np, char)
    flags = np.ones(64, bool)
    for one, other in itertools.product((a.y, 2), (a.z, 0)):
        yield _calls(np.where, flags, one, other)
        yield _calls(lambda one, other: np.where(a.x > 1, one, other), one, other)
    yield _now(lambda: np.where(a.x > 1, a.x, 0))
    yield _now(lambda: np.where(a.x < a.y, a.x, a.y))
    yield _calls(np.clip, a.x, 1, 3)
    yield _now(lambda: a.x[flags])
    yield _now(lambda: a.x[a.x > 1])
    yield _now(lambda: a.m[flags])
    yield _set(a.x, flags, 0)
    places = np.zeros(5, int)
    yield _now(lambda: a.m[places, places])
    yield _now(lambda: np.add.at(a.x, places, 1))
    yield _now(lambda: np.add.at(a.x, places, a.y[:5]))
    yield _calls(np.nonzero, a.x)
    yield _calls(np.diff, a.x)
    yield _calls(np.concatenate, [a.x, a.y])
    yield _calls(np.concatenate, [a.m, a.k], 1)
    yield _calls(np.stack, [a.x, a.y], 1)
    yield _calls(np.roll, a.x, 3)
    yield _calls(np.repeat, a.x, 3)
    yield _calls(np.tile, a.x, 3)
    yield _calls(np.flip, a.x)
    yield _calls(np.copy, a.cube.transpose(2, 1, 0))
    yield _now(lambda: a.m[:, 1].copy())
    # Kernels go row by row if rows are long, and otherwise element by element.
    yield from _everyday(np, a.x, a.y, a.wide)
    yield from _everyday(np, a.rows.reshape(-1), a.others.reshape(-1), a.rows)


def _everyday(np: Any, x: Any, y: Any, m: Any) -> Iterator[Statement]:
    """Of two rows and of a matrix."""
    few, many = np.asarray([0, 1]), np.asarray(list(range(m.shape[1])))  # no two elements go to one place
    yield _now(lambda: x[many])
    yield _now(lambda: m[few])
    yield _now(lambda: m[:, many])
    yield _set(x, many, 0)
    yield _set(x, many, y[: len(many)])
    yield _now(lambda: x.__setitem__(many, y[many]))
    yield _set(m, m > 1, 0)
    yield _set(m, few, 0)
    yield _calls(np.nonzero, m)
    yield _calls(np.outer, x, x)
    yield _calls(np.tile, m, (2, 2))
    yield _calls(np.meshgrid, x, x)
    yield _calls(np.tril, m)
    yield _calls(np.triu, m)
    yield _now(lambda: m - m.mean(0))
    yield _now(lambda: m - m.mean(1, keepdims=True))
    yield _now(lambda: (m - m.mean(0)) / m.std(0))
    yield _calls(np.std, m, 1)


def _order(np: Any, char: str) -> Iterator[Statement]:
    a = _Arrays(np, char)
    middle, long = np.zeros(1 << 11, char), np.zeros(1 << 16, char)
    yield _calls(np.argmax, a.x)
    yield _calls(np.argmin, a.x)
    yield _calls(np.argmax, a.m, 1)
    yield _calls(np.cumsum, a.x)
    yield _calls(np.cumsum, a.m, 0)
    yield _calls(np.cumsum, long)
    for x in (middle, long) if char != "i" else (middle,):
        yield _calls(np.sort, x)
        yield _calls(np.argsort, x)
    yield _calls(np.searchsorted, a.x, a.y)
    yield _calls(np.unique, a.x)
    if char in "li":
        yield _calls(np.bincount, a.x)


def _truth(np: Any) -> Iterator[Statement]:
    a = _Arrays(np, "?")
    for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"):
        yield _calls(getattr(np, name), a.x, a.y)
    for name in ("logical_not", "invert"):
        yield _calls(getattr(np, name), a.x)
    for name in ("any", "all", "sum", "mean", "count_nonzero"):
        yield _calls(getattr(np, name), a.x)
    for name in ("any", "all", "sum"):
        yield _calls(getattr(np, name), a.m, 0)
        yield _calls(getattr(np, name), a.wide, 1)
    yield _calls(np.nonzero, a.x)
    yield _calls(np.copy, a.t)
    yield _calls(np.copy, a.p)
    yield _set(a.x, ..., True)


def _functions(np: Any, char: str) -> Iterator[Statement]:
    a = _Arrays(np, char)
    for name in UNARY:
        yield _calls(getattr(np, name), a.x)
    for name in ("absolute", "exp", "log", "sqrt"):
        yield _calls(getattr(np, name), a.t)
        yield _calls(getattr(np, name), a.one)
    for name in MORE_UNARY:
        yield _calls(getattr(np, name), a.x)
    for name in ("isnan", "isfinite", "isinf"):
        yield _calls(getattr(np, name), a.x)
    for name in ("arctan2", "hypot"):
        yield _calls(getattr(np, name), a.x, a.y)
    for places in (0, 2):
        yield _calls(np.round, a.x, places)
    for exponent in (0.5, -1, 3):
        yield _calls(np.power, a.x, exponent)
    yield _calls(np.nan_to_num, a.x)


def _expressions(np: Any, char: str) -> Iterator[Statement]:
    """Expressions that programs often have: each is one kernel."""
    a = _Arrays(np, char)
    x, y, z, one = a.x, a.y, a.z, a.one
    yield _now(lambda: x * y + z)
    yield _now(lambda: 2 * x + y)
    yield _now(lambda: x * 2 + 1)
    yield _now(lambda: x + 2 * y)
    yield _now(lambda: x - 2 * y)
    yield _now(lambda: 1 - x)
    yield _now(lambda: 1 / (1 + np.exp(-x)))
    yield _now(lambda: x * x + y * y)
    yield _now(lambda: x**2 + y**2)
    yield _now(lambda: np.sqrt(x * x + y * y))
    yield _now(lambda: np.sqrt(x**2 + y**2))
    yield _now(lambda: np.sqrt(x * x + y * y + z * z))
    yield _now(lambda: (x - y) ** 2)
    yield _now(lambda: ((x - y) ** 2).sum())
    yield _now(lambda: ((x - y) ** 2).mean())
    yield _now(lambda: (x**2).sum())
    yield _now(lambda: np.exp(-x))
    yield _now(lambda: np.exp(-x * x))
    yield _now(lambda: np.exp(-(x**2)))
    yield _now(lambda: np.exp(-(x**2) / 2))
    yield _now(lambda: np.exp(x).sum())
    yield _now(lambda: np.sin(x) * np.cos(y))
    yield _now(lambda: np.sin(x) ** 2 + np.cos(x) ** 2)
    yield _now(lambda: np.maximum(x, 0))
    yield _now(lambda: (x - one) / a.one)
    yield _now(lambda: (x > 1) & (x < 2))
    yield _now(lambda: (x + y) / 2)
    yield _now(lambda: 0.5 * (x + y))
    yield _now(lambda: a.m - a.m.mean(0))
    yield _now(lambda: (a.m - a.row) / a.k[0])
    yield _now(lambda: a.m / a.column)
    yield _now(lambda: ((a.m - a.row) ** 2).sum(1))
    yield _now(lambda: ((a.m[:, None, :] - a.k[None, :4, :]) ** 2).sum(2))
    yield _now(lambda: a.rows - a.rows.mean(0))
    yield _now(lambda: (a.rows - a.rows[0]) / a.others[0])
    for m in (a.cube[0], a.rows):
        yield _calls(_spread, m)
        yield _calls(_bent, m)


def _spread(m: Any) -> Any:
    return 0.25 * (m[:-2, 1:-1] + m[2:, 1:-1] + m[1:-1, :-2] + m[1:-1, 2:])


def _bent(m: Any) -> Any:
    return m[:-2, 1:-1] + m[2:, 1:-1] + m[1:-1, :-2] + m[1:-1, 2:] - 4 * m[1:-1, 1:-1]


def _statistics(np: Any, char: str) -> Iterator[Statement]:
    a = _Arrays(np, char)
    for name in ("std", "var"):
        yield _calls(getattr(np, name), a.x)
        yield _calls(getattr(np, name), a.few)
        yield _calls(getattr(np, name), a.m, 0)
        yield _calls(getattr(np, name), a.wide, 1)
    for name in ("median", "nansum", "nanmean", "nanmax", "nanmin", "ptp"):
        yield _calls(getattr(np, name), a.x)
    yield _calls(np.percentile, a.x, [25, 75])
    yield _calls(np.isclose, a.x, a.y)
    yield _calls(np.allclose, a.x, a.y)
    yield _calls(np.cov, a.wide)
    yield _calls(np.cumprod, a.x)
    yield _calls(np.maximum.accumulate, a.x)
    yield _calls(np.histogram, a.x, 10, (0.0, 1.0))
    yield _calls(np.interp, a.x, a.y, a.z)


def _matrices(np: Any, char: str) -> Iterator[Statement]:
    """What there is before and behind the calls of the math libraries."""
    a = _Arrays(np, char)
    yield _calls(np.linalg.norm, a.x)
    yield _calls(np.linalg.norm, a.m, None, 1)
    yield _calls(np.tril, a.m)
    yield _calls(np.triu, a.m)
    yield _calls(np.eye, 9, 9, 0, char)
    yield _calls(np.trace, a.m)
    yield _calls(np.matmul, a.m, a.m.T)
    yield _calls(np.diag, a.row)
    yield _calls(np.add, a.m, a.t)


def _conversions(np: Any) -> Iterator[Statement]:
    for one in "?Bilfd":
        a = _Arrays(np, one)
        for to in "?BilfdD":
            if one != to:
                yield _calls(lambda a, to: a.x.astype(to), a, to)
        yield _calls(lambda a: a.p.copy(), a)
        yield _calls(lambda a: a.t.copy(), a)
        yield _calls(lambda a: a.rows[:, 1:].copy(), a)
        yield _set(a.x, ..., 1)
    a, b = _Arrays(np, "d"), _Arrays(np, "l")
    c, d = _Arrays(np, "f"), _Arrays(np, "i")
    for name in ("add", "subtract", "multiply", "divide"):
        function = getattr(np, name)
        for one, other in ((a.x, b.x), (b.x, a.x), (c.x, d.x), (a.x, c.x), (c.x, a.x)):
            yield _calls(function, one, other)


def _making(np: Any) -> Iterator[Statement]:
    yield _calls(np.bincount, np.zeros(64, "B"))
    for char in NUMBERS:
        yield _calls(np.arange, 0, 1 << 15, 1, char)
    yield _calls(np.arange, 0.0, 3000.0, 0.125)
    yield _calls(np.linspace, 0.0, 1.0, 1 << 15)
    yield _now(lambda: np.meshgrid(np.arange(5.0), np.arange(6.0)))
    yield _now(lambda: np.indices((5, 6)))


def _random(np: Any) -> Iterator[Statement]:
    source = np.random.default_rng(1)
    for dtype in ("d", "f"):
        yield _calls(lambda dtype: source.random(64, dtype), dtype)
        yield _calls(lambda dtype: source.standard_normal(64, dtype), dtype)
    yield _now(lambda: source.normal(0, 1, 64))
    yield _now(lambda: source.uniform(0, 1, 64))
    yield _now(lambda: source.integers(0, 10, 64))
    yield _now(lambda: source.integers(0, 10, 64, "i"))
    yield _now(lambda: source.permutation(64))
    yield _now(lambda: source.choice(64, 5))
    yield _now(lambda: source.standard_exponential(64))


def _complex_numbers(np: Any) -> Iterator[Statement]:
    for char, real in (("D", "d"), ("F", "f")):
        a, b = _Arrays(np, char), _Arrays(np, real)
        for name in ("add", "subtract", "multiply", "divide"):
            function = getattr(np, name)
            yield _calls(function, a.x, a.y)
            yield _calls(function, a.x, 2)
            yield _calls(function, a.x, b.x)
        for name in ("absolute", "conjugate", "exp", "angle", "square", "negative"):
            yield _calls(getattr(np, name), a.x)
        yield _calls(np.sum, a.x)
        yield _calls(lambda a: a.x.real.copy(), a)
        yield _calls(lambda a: a.x.imag.copy(), a)
        yield _calls(lambda a: abs(a.x) ** 2, a)
        yield _calls(np.copy, a.t)
        yield _calls(np.copy, a.p)
        yield _set(a.x, ..., 1)
