"""Functions that make one of several elements: sums, extremes, statistics, running totals."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy

from cupola.numpy import _ndarray
from cupola.numpy._index import getitem
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import reduce
from cupola.numpy._ndarray import _axes, array, into, known_type, mean, ndarray, on_device, one_axis
from cupola.numpy._rows import as_rows, back, scan, sort
from cupola.numpy.functions._choosing import take_along_axis
from cupola.numpy.functions._choosing import where as _where
from cupola.numpy.functions._creation import full
from cupola.numpy.functions._shapes import concatenate, expand_dims, moveaxis

__all__ = [
    "all", "amax", "amin", "any", "average", "corrcoef", "cov", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum",
    "max", "mean", "median", "min", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanpercentile",
    "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "percentile", "prod", "ptp", "quantile", "std", "sum",
    "var",
]  # fmt: skip


def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> ndarray:  # fmt: skip
    """The sum of elements, as ``numpy.sum``."""
    return reduce("sum", a, axis, dtype, out, keepdims, initial, where)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> ndarray:  # fmt: skip
    """The product of elements, as ``numpy.prod``."""
    return reduce("prod", a, axis, dtype, out, keepdims, initial, where)


def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> ndarray:
    """The greatest element, or a NaN, as ``numpy.max``."""
    return reduce("max", a, axis, None, out, keepdims, initial, where)


def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> ndarray:
    """The least element, or a NaN, as ``numpy.min``."""
    return reduce("min", a, axis, None, out, keepdims, initial, where)


amax, amin = max, min


def any(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> ndarray:
    """Whether any element is not zero, as ``numpy.any``."""
    return reduce("any", a, axis, None, out, keepdims, None, where)


def all(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> ndarray:
    """Whether no element is zero, as ``numpy.all``."""
    return reduce("all", a, axis, None, out, keepdims, None, where)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """The greatest element less the least one, as ``numpy.ptp``."""
    made: ndarray = UFUNCS["subtract"](max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims), out=out)
    return made


def _count(values: ndarray, axis: Any) -> int:
    return math.prod([values.shape[one] for one in _axes(axis, values.ndim)])


def _less(ddof: float, correction: float | None) -> float:
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = True, mean: Any = None, correction: float | None = None,
) -> ndarray:  # fmt: skip
    """The variance, as ``numpy.var``."""
    values = on_device(a)
    to = known_type(dtype) if dtype is not None else values.dtype if values.dtype.kind in "fc" else numpy.dtype(float)
    inner = numpy.dtype("float32") if to.char == "e" else to
    less = _less(ddof, correction)
    if mean is None:
        mean = _ndarray.mean(values, axis, inner, keepdims=True, where=where)
    # The type that is asked for is that of the sums; the squares may have a wider one.
    kind = numpy.result_type(values.dtype, mean if _ndarray.is_weak(mean) else on_device(mean).dtype)
    away = values.astype(kind, copy=False) - mean
    in_parts = kind.kind == "c" and values.dtype.kind in "bc"
    squares = away.real * away.real + away.imag * away.imag if in_parts else away * away
    if dtype is None and to.kind == "c":
        to = inner = squares.dtype
    total = reduce("sum", squares, axis, None if squares.dtype == inner else inner, None, keepdims, None, where)
    by = total.dtype if inner.kind in "fc" else numpy.dtype(float)
    if where is True:
        left: Any = by.type(builtins.max(_count(values, axis) - less, 0))
    else:
        counted = _ndarray.counted(where, values.shape, axis, keepdims)
        left = UFUNCS["maximum"](counted.astype(by) - by.type(less), by.type(0))
    made: ndarray = (total / left).astype(to, copy=False)
    return into(out, made)


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = True, mean: Any = None, correction: float | None = None,
) -> ndarray:  # fmt: skip
    """The standard deviation, as ``numpy.std``."""
    spread = var(a, axis, dtype, None, ddof, keepdims, where=where, correction=correction, mean=mean)
    if out is None and spread.dtype.kind in "biu" and spread.ndim:
        out = spread  # where NumPy takes the roots, which is an error
    made: ndarray = UFUNCS["sqrt"](spread, out=out)
    return made if out is not None else made.astype(spread.dtype, copy=False)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The weighted mean, as ``numpy.average``.

    Weights that sum to zero are a ZeroDivisionError if they are lists. Those in arrays of the device are not waited
    for: they give NaN or an infinity.
    """
    values = on_device(a)
    if weights is None:
        made = mean(values, axis, keepdims=keepdims)
        total: Any = full(made.shape, _count(values, axis), made.dtype)
    else:
        scale = _along(on_device(weights), values, axis)
        to = numpy.result_type(values.dtype, scale.dtype, *(["f8"] if values.dtype.kind in "biu" else []))
        total = sum(_ndarray.broadcast(scale, values.shape), axis, to, keepdims=keepdims)
        if not isinstance(weights, ndarray) and _sums_to_zero(weights, values.shape, axis):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        made = sum(UFUNCS["multiply"](values, scale, dtype=known_type(to)), axis, keepdims=keepdims) / total
    return (made, total) if returned else made


def _sums_to_zero(weights: Any, shape: tuple[int, ...], axis: Any) -> bool:
    """Whether weights of the host have a sum of zero along axes: all of them, unless there is one for each element."""
    host = numpy.asarray(weights)
    return not host.sum(axis if host.shape == shape else None).all()


def _along(weights: ndarray, values: ndarray, axis: Any) -> ndarray:
    """Weights of elements, or of the places along axes, with the dimensions of the elements."""
    if weights.shape == values.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = _axes(axis, values.ndim)
    if weights.shape != tuple([values.shape[one] for one in axes]):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    return weights.transpose(order).reshape([extent if k in axes else 1 for k, extent in enumerate(values.shape)])


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> ndarray:  # fmt: skip
    """The covariances of variables, as ``numpy.cov``."""
    values = _variables(m, rowvar)
    if y is not None:
        values = concatenate([values, _variables(y, rowvar)], 0)
    to = known_type(numpy.result_type(values.dtype, numpy.float64) if dtype is None else dtype)
    if to.kind not in "fc":
        raise TypeError(f"covariances are no numbers of {to}")
    values = values.astype(to, copy=False)
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    less = (0 if bias else 1) if ddof is None else ddof
    scale = _weights(fweights, aweights, values.shape[1])
    if scale is None:
        away = scaled = values - mean(values, 1, keepdims=True)
        down: Any = numpy.float64(builtins.max(values.shape[1] - less, 0))
    else:
        total = sum(scale)
        away = values - sum(values * scale, 1, keepdims=True) / total
        scaled = away * scale
        down = total - less * (1 if aweights is None else sum(scale * on_device(aweights)) / total)
        down = UFUNCS["maximum"](down, 0.0)
    made: ndarray = (scaled @ UFUNCS["conjugate"](away).T) * (numpy.float64(1) / down)
    return made.squeeze().astype(to, copy=False)


def _weights(fweights: Any, aweights: Any, count: int) -> ndarray | None:
    """The product of how often each observation was made and how much it counts; None if neither is given."""
    made = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        one = on_device(given)
        if name == "fweights" and one.dtype.kind not in "biu":
            raise TypeError("fweights must be integer")
        if one.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if one.shape[0] != count:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        if bool((one < 0).any()):
            raise ValueError(f"{name} cannot be negative")
        one = one.astype(numpy.float64, copy=False)
        made = one if made is None else made * one
    return made


def _variables(x: Any, rowvar: bool) -> ndarray:
    values = on_device(x)
    if values.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    values = values.reshape((1, -1)) if values.ndim < 2 else values
    return values.T if not rowvar and values.shape[0] != 1 else values


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> ndarray:
    """The correlations of variables, as ``numpy.corrcoef``."""
    found = cov(x, y, rowvar, dtype=dtype)
    if found.ndim == 0:
        return found / found
    spread = UFUNCS["sqrt"](found.diagonal().real)
    made: ndarray = found / spread.reshape((-1, 1)) / spread
    return made if made.dtype.kind == "c" else UFUNCS["minimum"](UFUNCS["maximum"](made, -1), 1)


# --- running totals -------------------------------------------------------------------------------------------------


def running(how: str, x: Any, axis: int | None, dtype: Any = None, out: Any = None, initial: bool = False) -> ndarray:
    """Running totals along an axis; `how` is a key of COMBINE."""
    values = on_device(x)
    if axis is None:
        if initial and values.ndim != 1:
            raise ValueError("axis must be specified for an array of several dimensions")
        values, axis = values.ravel(), 0
    values = values if values.ndim else values.reshape(1)
    axis = one_axis(axis, values.ndim)
    _ndarray.check_truth(how, dtype)
    to = known_type(dtype) if dtype is not None else _ndarray._accumulator(how, values.dtype)
    inner = numpy.dtype("float32") if to.char == "e" and how in ("sum", "prod") else to
    rows, shape = as_rows(values.astype(inner, copy=False), axis)
    made = back(scan(rows, how), shape, axis, values).astype(to, copy=False)
    if initial:
        first = full((*made.shape[:axis], 1, *made.shape[axis + 1 :]), 0 if how == "sum" else 1, to)
        made = concatenate([first, made], axis)
    return into(out, made)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Running sums, as ``numpy.cumsum``."""
    return running("sum", a, axis, dtype, out)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Running products, as ``numpy.cumprod``."""
    return running("prod", a, axis, dtype, out)


def _cumulative(how: str, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool) -> ndarray:
    values = on_device(x)
    if isinstance(axis, tuple):
        if len(axis) != 1:
            raise ValueError("accumulate does not allow multiple axes")
        axis = axis[0]
    if axis is None and values.ndim > 1:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    return running(how, values if values.ndim else values.reshape(1), axis, dtype, out, include_initial)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> ndarray:
    """Running sums, as ``numpy.cumulative_sum``."""
    return _cumulative("sum", x, axis, dtype, out, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> ndarray:
    """Running products, as ``numpy.cumulative_prod``."""
    return _cumulative("prod", x, axis, dtype, out, include_initial)


# --- without NaN ----------------------------------------------------------------------------------------------------


def _filled(x: Any, value: Any) -> ndarray:
    values = on_device(x)
    return _where(values != values, values.dtype.type(value), values) if values.dtype.kind in "fc" else values


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> ndarray:  # fmt: skip
    """The sum of elements that are no NaN, as ``numpy.nansum``."""
    return reduce("sum", _filled(a, 0), axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = True,
) -> ndarray:  # fmt: skip
    """The product of elements that are no NaN, as ``numpy.nanprod``."""
    return reduce("prod", _filled(a, 1), axis, dtype, out, keepdims, initial, where)


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Running sums in which NaN counts as 0."""
    return running("sum", _filled(a, 0), axis, dtype, out)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Running products in which NaN counts as 1."""
    return running("prod", _filled(a, 1), axis, dtype, out)


def _nan_extreme(how: str, x: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any) -> ndarray:
    values = on_device(x)
    if values.dtype.kind not in "fc":
        return reduce(how, values, axis, None, out, keepdims, initial, where)
    filled = _filled(values, -numpy.inf if how == "max" else numpy.inf)
    made: ndarray = reduce(how, filled, axis, None, None, keepdims, initial, where)
    if initial is None:
        nothing = reduce("all", values != values, axis, None, None, keepdims)
        made = _where(nothing, values.dtype.type(numpy.nan), made)
    return into(out, made)


def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> ndarray:
    """The greatest element that is no NaN, as ``numpy.nanmax``."""
    return _nan_extreme("max", a, axis, out, keepdims, initial, where)


def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> ndarray:
    """The least element that is no NaN, as ``numpy.nanmin``."""
    return _nan_extreme("min", a, axis, out, keepdims, initial, where)


def _valid(values: ndarray, where: Any) -> ndarray:
    """Which elements count: those that are no NaN, and that a mask has."""
    valid: ndarray = values == values
    return valid if where is True else valid & on_device(where)


def _check_inexact(dtype: Any, out: Any) -> None:
    if dtype is not None and known_type(dtype).kind not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")
    if out is not None and out.dtype.kind not in "fc":
        raise TypeError("If a is inexact, then out must be inexact")


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> ndarray:
    """The mean of elements that are no NaN, as ``numpy.nanmean``."""
    values = on_device(a)
    if values.dtype.kind not in "fc":
        return mean(values, axis, dtype, out, keepdims, where=where)
    _check_inexact(dtype, out)
    total = nansum(values, axis, dtype, None, keepdims, where=where)
    counted = sum(_valid(values, where), axis, keepdims=keepdims)
    made: ndarray = UFUNCS["divide"](total, counted.astype(total.dtype), out=out)
    return made


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = True, mean: Any = None, correction: float | None = None,
) -> ndarray:  # fmt: skip
    """The variance of elements that are no NaN, as ``numpy.nanvar``."""
    values = on_device(a)
    if values.dtype.kind not in "fc":
        return var(values, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    _check_inexact(dtype, out)
    away = values - (nanmean(values, axis, dtype, keepdims=True, where=where) if mean is None else mean)
    squares = away * away if values.dtype.kind == "f" else away.real * away.real + away.imag * away.imag
    # An infinity less the mean of it may be NaN, and counts.
    squares = _where(values == values, squares, squares.dtype.type(0))
    total = sum(squares, axis, dtype, None, keepdims, where=where)
    counted = sum(_valid(values, where), axis, keepdims=keepdims)
    left = counted.astype(total.dtype) - total.dtype.type(_less(ddof, correction))
    made: ndarray = _where(left > 0, total / left, total.dtype.type(numpy.nan))
    return into(out, made)


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = True, mean: Any = None, correction: float | None = None,
) -> ndarray:  # fmt: skip
    """The standard deviation of elements that are no NaN, as ``numpy.nanstd``."""
    if on_device(a).dtype.kind not in "fc":
        return std(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    spread = nanvar(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    made: ndarray = UFUNCS["sqrt"](spread, out=out)
    return made


# --- quantiles ------------------------------------------------------------------------------------------------------

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")

# Those that give elements, and nothing between them.
DISCRETE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")

# Of the other methods, where a quantile is: the place is n q + a + q (1 - a - b) - 1 for these a and b.
PLACES = {
    "interpolated_inverted_cdf": (0.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
# Or how much of the upper neighbor of n q - 1 there is, from the place and its part behind the point.
STEPS: dict[str, Any] = {
    "inverted_cdf": lambda place, rest: 1.0 * (rest > 0),
    "averaged_inverted_cdf": lambda place, rest: numpy.where(rest > 0, 1.0, 0.5),
    "closest_observation": lambda place, rest: 1.0 - ((rest == 0) & (numpy.floor(place) % 2 == 1)),
}


def _neighbors(method: str, n: Any, q: Any) -> tuple[Any, Any, Any]:
    """The places of the elements on both sides of a quantile of n of them, and how much of the upper one there is."""
    if method in METHODS:
        place = (n - 1) * q
        below, above = numpy.floor(place), numpy.ceil(place)
        share = 0.5 if method == "midpoint" else place - below
        nearest = numpy.rint(place)
        below = {"higher": above, "nearest": nearest}.get(method, below)
        above = {"lower": below, "nearest": nearest}.get(method, above)
        return below, above, numpy.where(below == above, 0.0, share)
    if method in PLACES:
        a, b = PLACES[method]
        place = n * q + (a + q * (1 - a - b)) - 1
        rest = place - numpy.floor(place)
    else:
        place = n * q - (1.5 if method == "closest_observation" else 1)
        rest = place - numpy.floor(place)
        rest = STEPS[method](place, rest)
    below = numpy.floor(place)
    lower, upper = numpy.clip(below, 0, n - 1), numpy.clip(below + 1, 0, n - 1)
    return lower, upper, numpy.where(place < 0, 0.0 if method in PLACES else rest, rest)


def _ordered(values: ndarray, axis: Any) -> tuple[ndarray, tuple[int, ...]]:
    """Sorted rows of what the axes have, and the shape that is left."""
    axes = _axes(axis, values.ndim)
    kept = [k for k in range(values.ndim) if k not in axes]
    left = tuple([values.shape[k] for k in kept])
    flat = (
        values.transpose((*kept, *axes)).reshape((*left, _count(values, axis)))
        if len(axes) != 1
        else moveaxis(values, axes[0], -1)
    )
    rows, _ = as_rows(flat, flat.ndim - 1)
    return sort(rows, False, False)[0], left


def _quantile(
    x: Any, q: Any, axis: Any, keepdims: bool, method: str, without_nan: bool, out: Any = None, weights: Any = None
) -> ndarray:
    values = on_device(x)
    if method not in (*METHODS, *PLACES, *STEPS):
        raise ValueError(f"{method!r} is not a valid method of quantiles: {', '.join((*METHODS, *PLACES, *STEPS))} are")
    if values.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    weak = _ndarray.is_weak(q)
    wanted = numpy.asarray(q.to_numpy() if isinstance(q, ndarray) else q)
    if wanted.dtype.kind == "c":
        raise TypeError("q must be an array of real numbers")
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError("Quantiles must be in the range [0, 1]")
    if weights is not None:
        if method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        return _weighted_quantile(values, wanted, axis, keepdims, without_nan, out, on_device(weights))
    # Of the whole numbers 0 and 1 these are elements, too.
    whole = wanted.dtype.kind in "biu" and (method == "linear" or (method == "averaged_inverted_cdf" and not weak))
    discrete = method in DISCRETE or whole
    inner = values if values.dtype.kind == "f" or discrete else values.astype(numpy.float64)
    # Quantiles that are given as an array or a list have a type that counts, a number of Python has none.
    to = inner.dtype if weak or discrete else numpy.result_type(values.dtype, wanted.dtype)
    kind = wanted.dtype if wanted.dtype.kind == "f" else numpy.dtype(float)  # of places
    if not values.size and without_nan:
        return nanmean(values, axis, None, out, keepdims)
    if _count(values, axis) == 0:
        raise IndexError("there are no quantiles of no elements")
    if values.dtype == bool and not discrete:
        raise TypeError("numpy boolean subtract is not supported: of bool there are only quantiles that are elements")
    rows, left = _ordered(inner, axis)
    many, count = rows.shape
    if count == 0 or not wanted.size:
        made = full((*wanted.shape, *left), numpy.nan, numpy.result_type(to, numpy.float16))
        return expand_dims(made, tuple([one + wanted.ndim for one in _axes(axis, values.ndim)])) if keepdims else made
    counts = sum(rows == rows, 1, keepdims=True) if without_nan and rows.dtype.kind == "f" else None
    found = []
    share: Any
    for one in wanted.reshape(-1):
        if counts is None:
            lower, upper, share = map(float, _neighbors(method, count, one))
            a, b = (getitem(rows, (slice(None), slice(int(at), int(at) + 1))) for at in (lower, upper))
            if share in (0, 1) or lower == upper:
                made = b if share == 1 else a
            else:
                made = _between(a, b, share, 1 - share) if weak else _between(a, b, to.type(share), 1 - to.type(share))
            last = getitem(rows, (slice(None), slice(-1, None)))
            made = _where(last != last, last, made)
        else:  # the number of those that are no NaN is another one in each row
            lower, upper, share = _neighbors(method, numpy.maximum(counts.to_numpy(), 1).astype(kind), kind.type(one))
            a, b = (take_along_axis(rows, array(at.astype(numpy.int64)), 1) for at in (lower, upper))
            share = numpy.where(lower == upper, 0, share).astype(kind)
            parts = [array(part.astype(inner.dtype if weak else kind)) for part in (share, 1 - share)]
            made = _where(parts[0] == 0, a, _where(parts[1] == 0, b, _between(a, b, *parts)))
            made = _where(counts == 0, numpy.nan, made)
        made = made.astype(to, copy=False).reshape(many)
        found.append(made.reshape((1, *left)))
    result = concatenate(found, 0).reshape((*wanted.shape, *left))
    if keepdims:
        gone = [one + wanted.ndim for one in _axes(axis, values.ndim)]
        result = expand_dims(result, tuple(gone))
    return into(out, result)


def _between(a: ndarray, b: ndarray, share: Any, rest: Any) -> ndarray:
    """Linear interpolation as NumPy has it: from the nearer end; between two equal infinities it is they.

    `share` is how much of `b` there is, `rest` how much of `a`.
    """
    away = b - a
    if isinstance(share, ndarray):
        made = _where(share >= 0.5, b - away * rest, a + away * share)
    else:
        made = b - away * rest if share >= 0.5 else a + away * share
    result: ndarray = _where((away != away) & (a == b), a, made)
    return result


def _weighted_quantile(
    values: ndarray, wanted: numpy.ndarray, axis: Any, keepdims: bool, without_nan: bool, out: Any, weights: ndarray
) -> ndarray:
    """For each quantile the first of the sorted elements up to which there is that share of the weight."""
    axes = _axes(axis, values.ndim)
    weights = _ndarray.broadcast(_along(weights, values, axis), values.shape)
    if bool(any(weights < 0)):
        raise ValueError("Weights must be non-negative.")
    if without_nan:
        weights = _where(values != values, weights.dtype.type(0), weights)
    kept = [one for one in range(values.ndim) if one not in axes]
    left = tuple([values.shape[one] for one in kept])
    many, count = math.prod(left), math.prod([values.shape[one] for one in axes])
    rows, shares = (one.transpose((*kept, *axes)).reshape((many, count)) for one in (values, weights))
    ordered, order = sort(as_rows(rows, 1)[0], False, True)
    assert order is not None
    upto = cumsum(take_along_axis(shares.astype(numpy.float64, copy=False), order, 1), 1)
    upto = upto / upto._part((slice(None), slice(-1, None)))
    found = []
    for one in wanted.reshape(-1).tolist():
        below = upto < one if one else upto <= 0  # of no share at all it is the first that has a weight
        place = UFUNCS["minimum"](sum(below, 1, keepdims=True), count - 1)
        made = take_along_axis(ordered, place, 1)
        if not without_nan:
            last = ordered._part((slice(None), slice(-1, None)))
            made = _where(last != last, last, made)
        found.append(made.reshape((1, *left)))
    result = concatenate(found, 0).reshape((*wanted.shape, *left))
    if keepdims:
        result = expand_dims(result, tuple([one + wanted.ndim for one in axes]))
    return into(out, result)


def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> ndarray:  # fmt: skip
    """Quantiles, as ``numpy.quantile``; the input is never overwritten."""
    return _quantile(a, q, axis, keepdims, method, False, out, weights)


def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> ndarray:  # fmt: skip
    """Percentiles, as ``numpy.percentile``; the input is never overwritten."""
    return _quantile(a, _hundredth(q), axis, keepdims, method, False, out, weights)


def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> ndarray:  # fmt: skip
    """Quantiles of elements that are no NaN."""
    return _quantile(a, q, axis, keepdims, method, True, out, weights)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, *, weights: Any = None,
) -> ndarray:  # fmt: skip
    """Percentiles of elements that are no NaN."""
    return _quantile(a, _hundredth(q), axis, keepdims, method, True, out, weights)


def _hundredth(q: Any) -> Any:
    """Quantiles for percentiles."""
    if _ndarray.is_weak(q):
        return q / 100
    return numpy.true_divide(q.to_numpy() if isinstance(q, ndarray) else q, 100)


def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> ndarray:
    """The median, as ``numpy.median``; the input is never overwritten."""
    return _median(a, axis, keepdims, False, out)


def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> ndarray:
    """The median of elements that are no NaN."""
    return _median(a, axis, keepdims, True, out)


def _median(x: Any, axis: Any, keepdims: bool, without_nan: bool, out: Any) -> ndarray:
    """The element in the middle of the sorted ones, or the mean of the two there."""
    values = on_device(x)
    inner = values if values.dtype.kind in "fc" else values.astype(numpy.float64)
    rows, left = _ordered(inner, axis)
    many, count = rows.shape
    if count == 0:
        made = full(left, numpy.nan, inner.dtype)
    else:
        last = getitem(rows, (slice(None), slice(-1, None)))
        if without_nan:
            counts = sum(rows == rows, 1, keepdims=True)
            nothing = counts == 0
            a, b = (take_along_axis(rows, UFUNCS["maximum"](at, 0) // 2, 1) for at in (counts - 1, counts))
        else:
            nothing = last != last
            a, b = (getitem(rows, (slice(None), slice(at, at + 1))) for at in ((count - 1) // 2, count // 2))
        wide = numpy.dtype("float32") if inner.dtype.char == "e" else inner.dtype  # as in sums
        half = ((a.astype(wide, copy=False) + b) / wide.type(2)).astype(inner.dtype, copy=False)
        made = _where(nothing, last, _where(a == b, a, half)).reshape(left)
    if keepdims:
        made = expand_dims(made, _axes(axis, values.ndim))
    return into(out, made)
