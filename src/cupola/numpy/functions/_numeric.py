"""Functions of numbers that are made of others: rounding, differences, comparisons of arrays, interpolation."""

from __future__ import annotations

import builtins
import math
import operator
import sys
from typing import Any

import numpy

from cupola.numpy import _ndarray
from cupola.numpy._index import getitem
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import write
from cupola.numpy._ndarray import _axes, array, broadcast, into, known_type, mean, ndarray, on_device, one_axis
from cupola.numpy._order import turns
from cupola.numpy._rows import MOST_COUNTED, counts
from cupola.numpy._user_kernels import ElementwiseKernel
from cupola.numpy.functions._choosing import clip, where
from cupola.numpy.functions._creation import asarray, empty_like
from cupola.numpy.functions._reductions import all as _all
from cupola.numpy.functions._reductions import max as _max
from cupola.numpy.functions._reductions import min as _min
from cupola.numpy.functions._reductions import percentile, std
from cupola.numpy.functions._reductions import sum as _sum
from cupola.numpy.functions._shapes import broadcast_arrays, concatenate, moveaxis
from cupola.numpy.functions._sorting import argsort, searchsorted

__all__ = [
    "allclose", "angle", "around", "array_equal", "array_equiv", "bartlett", "bincount", "blackman", "convolve",
    "correlate", "diff", "ediff1d", "fix", "gradient", "hamming", "hanning", "histogram",
    "histogram2d", "histogram_bin_edges", "histogramdd", "i0", "imag",
    "interp", "isclose", "iscomplex", "isneginf", "isposinf", "isreal", "kaiser",
    "nan_to_num", "real", "real_if_close", "round", "sinc", "trapezoid", "unwrap",
]  # fmt: skip

_BESSEL = ElementwiseKernel("T x", "T y", "y = cyl_bessel_i0(x)", "i0")


def real(val: Any) -> ndarray:
    """The real parts, as ``numpy.real``: a view."""
    return on_device(val).real


def imag(val: Any) -> ndarray:
    """The imaginary parts, as ``numpy.imag``: a view, or zeros."""
    return on_device(val).imag


def angle(z: Any, deg: bool = False) -> ndarray:
    """The angles of complex numbers, as ``numpy.angle``."""
    values = on_device(z)
    made: ndarray = UFUNCS["arctan2"](values.imag if values.dtype.kind == "c" else 0, values.real)
    return made * (180 / math.pi) if deg else made


def isreal(x: Any) -> ndarray:
    """Whether the imaginary parts are zero."""
    made: ndarray = on_device(x).imag == 0
    return made


def iscomplex(x: Any) -> ndarray:
    """Whether the imaginary parts are not zero."""
    made: ndarray = on_device(x).imag != 0
    return made


def real_if_close(a: Any, tol: float = 100) -> ndarray:
    """The real parts if all imaginary parts are almost zero. Waits for them."""
    values = on_device(a)
    if values.dtype.kind != "c":
        return values
    limit = tol * numpy.finfo(values.dtype).eps if tol > 1 else tol
    return values.real if bool(_all(UFUNCS["absolute"](values.imag) < limit)) else values


def isposinf(x: Any, out: Any = None) -> ndarray:
    """Whether elements are positive infinities."""
    made: ndarray = UFUNCS["equal"](_real_numbers(x), numpy.inf, out=out)
    return made


def isneginf(x: Any, out: Any = None) -> ndarray:
    """Whether elements are negative infinities."""
    made: ndarray = UFUNCS["equal"](_real_numbers(x), -numpy.inf, out=out)
    return made


def _real_numbers(x: Any) -> ndarray:
    values = on_device(x)
    if values.dtype.kind == "c":
        raise TypeError("complex numbers have no positive or negative infinities")
    return values


# --- rounding -------------------------------------------------------------------------------------------------------


def round(a: Any, decimals: int = 0, out: Any = None) -> ndarray:
    """The nearest number of so many decimals, half to even, as ``numpy.round``."""
    values = on_device(a)
    if values.dtype.kind in "iu" or (values.dtype.kind == "b" and decimals):
        made = values.copy()
        if decimals < 0:
            tens = numpy.float64(_power_of_ten(-decimals))  # the types of integers may not have it
            made = (UFUNCS["rint"](values / tens) * tens).astype(values.dtype)
    elif values.dtype.kind == "c":
        made = empty_like(values, order="A")
        write(made.real, round(values.real, decimals))
        write(made.imag, round(values.imag, decimals))
    elif decimals == 0:
        made = UFUNCS["rint"](values)
    else:
        scale = values.dtype.type(_power_of_ten(abs(decimals)))
        by, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
        order = "F" if turns(values, "A") else "C"
        made = UFUNCS[back](UFUNCS["rint"](UFUNCS[by](values, scale)), scale, order=order)
    return into(out, made, "same_kind")


def _power_of_ten(exponent: int) -> float:
    """That power, or an infinity."""
    return 10.0**exponent if exponent <= sys.float_info.max_10_exp else math.inf


around = round


def fix(x: Any, out: Any = None) -> ndarray:
    """The nearest integer toward zero, as ``numpy.fix``."""
    made: ndarray = UFUNCS["trunc"](x, out=out)
    return made


def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> ndarray:
    """Numbers in place of NaN and infinities, as ``numpy.nan_to_num``."""
    values = on_device(x)
    if 0 in values.strides and copy:
        values = values.copy("K")
    if values.dtype.kind == "c":
        made = values.copy("K")
        write(made.real, nan_to_num(values.real, True, nan, posinf, neginf))
        write(made.imag, nan_to_num(values.imag, True, nan, posinf, neginf))
    elif values.dtype.kind == "f":
        info, kind = numpy.finfo(values.dtype), values.dtype.type
        made = where(values != values, kind(nan), values)
        made = where(made == numpy.inf, kind(info.max if posinf is None else posinf), made)
        made = where(made == -numpy.inf, kind(info.min if neginf is None else neginf), made)
    else:
        made = values.copy("K")
    if not copy:
        write(values, made)
        made = values
    return made


def sinc(x: Any) -> ndarray:
    """sin(pi x) / (pi x), as ``numpy.sinc``."""
    values = on_device(x)
    # Half precision has no 1e-20.
    tiny = numpy.finfo(values.dtype).eps if values.dtype.kind == "f" else 1e-20
    turned = math.pi * where(values == 0, tiny, values)
    made: ndarray = UFUNCS["sin"](turned) / turned
    return made


# --- comparing arrays -----------------------------------------------------------------------------------------------


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """Whether elements are almost equal, as ``numpy.isclose``."""
    one, other = asarray_of(a), asarray_of(b)
    if other.dtype.kind in "biu":
        other = other.astype(numpy.float64)
    near = (UFUNCS["absolute"](one - other) <= atol + rtol * UFUNCS["absolute"](other)) & UFUNCS["isfinite"](other)
    made = near | (one == other)
    result: ndarray = made | ((one != one) & (other != other)) if equal_nan else made
    return result


def asarray_of(x: Any) -> ndarray:
    """An operand as an array; a NumPy scalar keeps its type."""
    return on_device(x) if not isinstance(x, numpy.generic) else asarray(x)


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are almost equal, as ``numpy.allclose``. Waits for the answer."""
    return bool(_all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether shapes and elements are equal, as ``numpy.array_equal``. Waits for the answer."""
    one, other = on_device(a1), on_device(a2)
    if one.shape != other.shape:
        return False
    same = one == other
    if equal_nan:
        same = same | ((one != one) & (other != other))
    return bool(_all(same))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether elements are equal where the shapes are broadcast, as ``numpy.array_equiv``. Waits for the answer."""
    try:
        one, other = broadcast_arrays(a1, a2)
    except ValueError:
        return False
    return bool(_all(one == other))


# --- differences and sums along an axis -----------------------------------------------------------------------------


def _slice(axis: int, start: int | None, end: int | None) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, slice(start, end))


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> ndarray:
    """Differences of neighbors, as ``numpy.diff``."""
    values = on_device(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return values
    if values.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = one_axis(axis, values.ndim)
    if prepend is not None or append is not None:
        parts = []
        for part in (prepend, values, append):
            if part is not None:
                one = on_device(part)
                if one.ndim == 0:
                    one = broadcast(one, (*values.shape[:axis], 1, *values.shape[axis + 1 :]))
                parts.append(one)
        values = concatenate(parts, axis)
    for _ in range(n):
        right, left = values._part(_slice(axis, 1, None)), values._part(_slice(axis, None, -1))
        values = right != left if values.dtype == bool else right - left
    return values


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> ndarray:
    """Differences of neighbors of all elements, as ``numpy.ediff1d``."""
    flat = on_device(ary).ravel()
    made = flat._part(slice(1, None)) - flat._part(slice(None, -1))
    parts = [on_device(one).reshape(-1) for one in (to_begin, made, to_end) if one is not None]
    for one in parts:
        if not numpy.can_cast(one.dtype, flat.dtype, "same_kind"):
            raise TypeError(
                f"{one.dtype} of what is put at an end cannot be cast to {flat.dtype} by the rule 'same_kind'"
            )
    return made if len(parts) == 1 else concatenate(parts).astype(made.dtype)


def gradient(f: Any, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Slopes by differences, as ``numpy.gradient``; steps are numbers or coordinates."""
    values = on_device(f)
    axes = _axes(axis, values.ndim)
    steps = [1.0] * len(axes) if not spacing else list(spacing) * (len(axes) if len(spacing) == 1 else 1)
    if len(steps) != len(axes):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    if values.dtype.kind == "b":
        raise TypeError("gradient of bool: x.astype(float) has differences")
    values = values if values.dtype.kind in "fc" else values.astype(numpy.float64)
    found = []
    for one, step in zip(axes, steps, strict=True):
        if values.shape[one] < edge_order + 1:
            raise ValueError("Shape of array too small to calculate a numerical gradient")
        made = empty_like(values)

        def part(start: int | None, end: int | None, one: int = one) -> ndarray:
            return values._part(_slice(one, start, end))

        if isinstance(step, (ndarray, list, tuple, numpy.ndarray)) and numpy.ndim(step):
            _uneven(made, part, step, one, edge_order)
            found.append(made)
            continue
        write(made._part(_slice(one, 1, -1)), (part(2, None) - part(None, -2)) / (2.0 * step))
        if edge_order == 1:
            first, last = (part(1, 2) - part(0, 1)) / step, (part(-1, None) - part(-2, -1)) / step
        else:
            first = (-1.5 / step) * part(0, 1) + (2.0 / step) * part(1, 2) + (-0.5 / step) * part(2, 3)
            last = (0.5 / step) * part(-3, -2) + (-2.0 / step) * part(-2, -1) + (1.5 / step) * part(-1, None)
        write(made._part(_slice(one, 0, 1)), first)
        write(made._part(_slice(one, -1, None)), last)
        found.append(made)
    return found[0] if len(found) == 1 else tuple(found)


def _uneven(made: ndarray, part: Any, places: Any, axis: int, edge_order: int) -> None:
    """Slopes where elements have coordinates: those of the parabola through three neighbors."""
    at = on_device(places)
    if at.ndim != 1:
        raise ValueError("distances must be either scalars or 1d")
    if at.size != made.shape[axis]:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    steps = diff(at.astype(made.dtype, copy=False) if at.dtype.kind in "biu" else at)
    steps = steps.reshape((-1, *[1] * (made.ndim - 1 - axis)))
    before, behind = steps._part(slice(None, -1)), steps._part(slice(1, None))
    both = before + behind

    def sloped(a: Any, b: Any, c: Any, start: int, end: int) -> Any:
        """The sum of three neighbors with weights; the first of them are from start to end."""
        return a * part(start, end) + b * part(start + 1, end + 1 or None) + c * part(start + 2, end + 2 or None)

    inner = sloped(-behind / (before * both), (behind - before) / (before * behind), before / (behind * both), 0, -2)
    write(made._part(_slice(axis, 1, -1)), inner)
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / steps._part(slice(0, 1))
        last = (part(-1, None) - part(-2, -1)) / steps._part(slice(-1, None))
    else:
        x, y, both_ends = before._part(slice(0, 1)), behind._part(slice(0, 1)), both._part(slice(0, 1))
        first = sloped(-(x + both_ends) / (x * both_ends), both_ends / (x * y), -x / (y * both_ends), 0, 1)
        x, y = before._part(slice(-1, None)), behind._part(slice(-1, None))
        both_ends = both._part(slice(-1, None))
        last = sloped(y / (x * both_ends), -both_ends / (x * y), (y + both_ends) / (y * both_ends), -3, -2)
    write(made._part(_slice(axis, 0, 1)), first)
    write(made._part(_slice(axis, -1, None)), last)


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> ndarray:
    """The integral by the trapezoidal rule, as ``numpy.trapezoid``."""
    values = moveaxis(on_device(y), operator.index(axis), -1)
    width: Any = dx
    if x is not None:
        places = on_device(x)
        width = diff(places if places.ndim == 1 else moveaxis(places, axis, -1))
    pairs = width * (values._part((..., slice(1, None))) + values._part((..., slice(None, -1)))) / 2.0
    return _sum(pairs, -1)


def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> ndarray:
    """Angles without jumps, as ``numpy.unwrap``."""
    values = on_device(p)
    if values.dtype.kind == "c":
        raise TypeError("unwrap is of real numbers: angle(z) gives the angles of complex ones")
    to = known_type(numpy.result_type(values.dtype, period))
    steps = diff(values, axis=axis)
    axis = one_axis(axis, values.ndim)
    values = values.astype(to, copy=False)
    half = period // 2 if to.kind in "iu" else period / 2
    near = UFUNCS["remainder"](steps + half, period) - half
    if half == period / 2:
        near = where((near == -half) & (steps > 0), half, near)
    jumps = where(UFUNCS["absolute"](steps) < (period / 2 if discont is None else discont), 0, near - steps)
    made = values.copy("K")
    part = made._part(_slice(axis, 1, None))
    write(part, part + jumps.cumsum(axis))
    return made


# --- interpolation, windows ----------------------------------------------------------------------------


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> ndarray:
    """Linear interpolation between points, as ``numpy.interp``."""
    given, places, values = on_device(x), on_device(xp), on_device(fp)
    for one in (given, places):
        if one.dtype.kind == "c":
            raise TypeError(
                f"Cannot cast array data from {one.dtype!r} to dtype('float64') according to the rule 'safe'"
            )
    at = given.astype(numpy.float64, copy=False)
    places = places.astype(numpy.float64, copy=False)
    values = values.astype(numpy.complex128 if values.dtype.kind == "c" else numpy.float64, copy=False)
    if places.shape != values.shape or places.ndim != 1 or places.size == 0:
        raise ValueError("fp and xp are not of the same length, or have no elements")
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period = abs(period)
        at, places = UFUNCS["remainder"](at, period), UFUNCS["remainder"](places, period)
        order = argsort(places)
        places, values = getitem(places, order), getitem(values, order)
        places = concatenate([places._part(slice(-1, None)) - period, places, places._part(slice(0, 1)) + period])
        values = concatenate([values._part(slice(-1, None)), values, values._part(slice(0, 1))])
        left = right = None
    last = places.size - 1
    k = clip(searchsorted(places, at, "right") - 1, 0, builtins.max(last - 1, 0))
    if values.dtype.kind == "c":
        made = _ndarray.empty(at.shape, values.dtype)
        write(made.real, _on_lines(at, places, values.real, k))
        write(made.imag, _on_lines(at, places, values.imag, k))
    else:
        made = _on_lines(at, places, values, k)
    first, final = values._part(0), values._part(-1)
    made = where(at < places._part(0), first if left is None else left, made)
    made = where(at > places._part(-1), final if right is None else right, made)
    result: ndarray = where(at != at, numpy.nan, made) if places.size > 1 else made
    return result


def _on_lines(at: ndarray, places: ndarray, values: ndarray, k: ndarray) -> ndarray:
    """Linear interpolation between the points k and k + 1, which gives their values where it is at one of them."""
    after = UFUNCS["minimum"](k + 1, places.size - 1)
    a, b, start, end = getitem(values, k), getitem(values, after), getitem(places, k), getitem(places, after)
    slope = (b - a) / (end - start)
    made, other = slope * (at - start) + a, slope * (at - end) + b
    made = where(made != made, other, made)  # with infinities, one of both ends may tell where the other does not
    made = where((made != made) & (a == b), a, made)
    result: ndarray = where(at == end, b, where(at == start, a, made))
    return result


def _window(name: str) -> Any:
    def window(*args: Any, **kwargs: Any) -> ndarray:
        return array(getattr(numpy, name)(*args, **kwargs))

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"As ``numpy.{name}``. The host computes it."
    return window


bartlett, blackman, hamming, hanning, kaiser = map(_window, ("bartlett", "blackman", "hamming", "hanning", "kaiser"))


def convolve(a: Any, v: Any, mode: str = "full") -> ndarray:
    """The convolution of two sequences, as ``numpy.convolve``."""
    one, other = on_device(a), on_device(v)
    one, other = (x.reshape(1) if x.ndim == 0 else x for x in (one, other))
    if one.ndim != 1 or other.ndim != 1:
        raise ValueError("object too deep for desired array")
    if one.size == 0 or other.size == 0:
        raise ValueError(f"{'a' if one.size == 0 else 'v'} cannot be empty")
    if one.size < other.size:
        one, other = other, one
    n, m = one.size, other.size
    to = known_type(numpy.result_type(one.dtype, other.dtype))
    # How many elements there are before and after the sequence that no window of the mode may use.
    outside = {"full": (m - 1, m - 1), "same": (m - 1 - (m - 1) // 2, (m - 1) // 2), "valid": (0, 0)}
    if mode not in outside:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    before, after = outside[mode]
    count = n + before + after - (m - 1)
    # Each result is the sum along a window, read through overlapping strides.
    windows = _between_zeros(one.astype(to, copy=False), before, after, (count, m))
    products = windows * other.astype(to, copy=False)._part(slice(None, None, -1))
    if to.kind in "fc" and before + after:  # zeros would make NaN of what is infinite or NaN
        inside = _ndarray.empty(n, bool)
        inside.fill(True)
        products = where(_between_zeros(inside, before, after, (count, m)), products, to.type(0))
    return _sum(products, 1, to)


def _between_zeros(x: ndarray, before: int, after: int, windows: tuple[int, int]) -> ndarray:
    """So many windows of so many elements, each one element after the other, of a sequence between zeros."""
    wide = x
    if before + after or not x.is_contiguous:
        wide = _ndarray.empty(before + x.size + after, x.dtype)
        wide.fill(0)
        write(wide._part(slice(before, before + x.size)), x)
    wide._compute_now()
    return wide._view_of(windows, (wide.itemsize, wide.itemsize))


def correlate(a: Any, v: Any, mode: str = "valid") -> ndarray:
    """The correlation of two sequences, as ``numpy.correlate``."""
    other = on_device(v)
    turned = (
        UFUNCS["conjugate"](other)._part(slice(None, None, -1))
        if other.dtype.kind == "c"
        else other._part(slice(None, None, -1))
    )
    one = on_device(a)
    made = convolve(one, turned, mode)
    if mode == "same" and one.size < other.size and one.size % 2 == 0:
        whole = convolve(one, turned, "full")
        start = one.size // 2
        made = whole._part(slice(start, start + other.size))
    return made


# --- counts ---------------------------------------------------------------------------------------------------------


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> ndarray:
    """How often each number occurs, as ``numpy.bincount``.

    It waits for the greatest number, unless the type has none above `minlength` - 1: of bytes and bool.
    """
    values = on_device(x)
    if values.ndim != 1:
        raise ValueError(f"bincount of an array of {values.ndim} dimensions: it must have one")
    if values.dtype.kind not in "biu" and (values.size or isinstance(x, ndarray)):
        raise TypeError(f"Cannot cast array data from {values.dtype!r} to dtype('int64') according to the rule 'safe'")
    minlength = operator.index(minlength)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    if not values.size:
        values = values.astype(numpy.int64)
        weights = None  # they do not matter then, not for the type either
    if weights is not None:
        weights = on_device(weights)
        if weights.dtype.kind == "c":
            raise TypeError(
                f"Cannot cast array data from {weights.dtype!r} to dtype('float64') according to the rule 'safe'"
            )
        weights = weights.astype(numpy.float64, copy=False)
        if weights.shape != values.shape:
            raise ValueError("The weights and list don't have the same length.")
    least = {"?": 2, "B": 256}.get(values.dtype.char)  # which no element reaches
    if not values.size or (least is not None and minlength >= least):
        count = minlength
    elif values.dtype.kind == "i" and int(_min(values)) < 0:
        raise ValueError("'list' argument must have no negative elements")
    else:
        count = builtins.max(int(_max(values)) + 1, minlength)
    if weights is None and count <= MOST_COUNTED:
        return counts(values, count)
    made = _ndarray.empty(count, numpy.int64 if weights is None else numpy.float64)
    made.fill(0)
    if values.size:
        places = values.astype(numpy.uint8) if values.dtype.kind == "b" else values  # bool would be a mask
        UFUNCS["add"].at(made, places, 1 if weights is None else weights)
    return made


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> ndarray:
    """The edges of bins, as ``numpy.histogram_bin_edges``; without a range it waits for the extremes."""
    if weights is not None and isinstance(bins, str):
        raise TypeError("Automated estimation of the number of bins is not supported for weighted data")
    if isinstance(bins, ndarray) and bins.ndim:
        return bins
    if numpy.ndim(bins) and not isinstance(bins, numpy.ndarray):
        edges = numpy.asarray(bins)
        if not ((edges[1:] >= edges[:-1]) | (edges[1:] != edges[1:])).all():  # NaN comes last
            raise ValueError("`bins` must increase monotonically, when an array")
        return asarray(bins)
    if not isinstance(bins, str):
        try:
            bins = operator.index(bins)
        except TypeError:
            raise TypeError("`bins` must be an integer, a string, or an array") from None
    if not isinstance(bins, str) and bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    values = on_device(a)
    if values.dtype.kind == "c":
        raise TypeError("complex numbers have no range that could be divided into bins: give the edges of the bins")
    if range is None:
        low, high = (_min(values).item(), _max(values).item()) if values.size else (0, 1)
    else:
        low, high = range
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{'autodetected' if range is None else 'supplied'} range of [{low}, {high}] is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    if isinstance(bins, str):
        bins = _bins_by_rule(values.reshape(-1), bins, range, low, high)
    to = values.dtype if values.dtype.kind == "f" else numpy.float64
    edges = numpy.linspace(low, high, int(bins) + 1, dtype=to)
    if not (edges[:-1] < edges[1:]).all():
        raise ValueError(f"Too many bins for data range. Cannot create {int(bins)} finite-sized bins.")
    return array(edges)


RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")


def _bins_by_rule(values: ndarray, rule: str, range: Any, low: float, high: float) -> int:
    """How many bins a rule of NumPy's gives. Waits for the figures that it needs."""
    if rule not in RULES:
        raise ValueError(f"{rule!r} is not a valid estimator for `bins`: {', '.join(RULES)} are")
    if range is not None:
        values = values[(values >= low) & (values <= high)]
    n = values.size
    if n == 0:
        return 1
    spread = float(_max(values).item()) - float(_min(values).item())
    sturges, root = spread / (math.log2(n) + 1), spread / math.sqrt(n)

    def quartiles() -> float:
        upper, lower = percentile(values, [75, 25]).tolist()
        return float(2.0 * (upper - lower) / math.cbrt(n))

    if rule == "auto":
        width = builtins.min(builtins.max(quartiles(), root / 2), sturges)
    elif rule == "fd":
        width = quartiles()
    elif rule == "scott":
        width = (24.0 * math.sqrt(math.pi) / n) ** (1 / 3) * float(std(values).item())
    elif rule == "doane":
        width = _doane(values, spread)
    elif rule == "stone":
        width = _stone(values, spread, (low, high))
    else:
        width = {"sturges": sturges, "sqrt": root, "rice": spread / (2.0 * n ** (1 / 3))}[rule]
    if not width:
        return 1
    if values.dtype.kind in "iu" and width < 1:
        width = 1
    return math.ceil((high - low) / width)


def _doane(values: ndarray, spread: float) -> float:
    """The width of bins by the skewness of the elements."""
    n, deviation = values.size, float(std(values).item())
    if n <= 2 or deviation <= 0:
        return 0.0
    third = float(((values - mean(values)) / deviation * ((values - mean(values)) / deviation) ** 2).mean().item())
    error = math.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    return spread / (1.0 + math.log2(n) + math.log2(1.0 + abs(third) / error))


def _stone(values: ndarray, spread: float, ends: tuple[float, float]) -> float:
    """The width of bins whose estimated error is least."""
    n = values.size
    if n <= 1 or spread == 0:
        return 0.0
    most = builtins.max(100, int(math.sqrt(n)))
    errors: list[float] = []
    for count in builtins.range(1, most + 1):
        shares = histogram(values, count, ends)[0].to_numpy() / n
        errors.append((2 - (n + 1) * float(shares @ shares)) / (spread / count))
    return spread / (errors.index(builtins.min(errors)) + 1)


def histogram(a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None) -> Any:
    """How many elements are in each bin, as ``numpy.histogram``."""
    values = on_device(a).reshape(-1)
    edges = histogram_bin_edges(values, bins, range, weights)
    counts = _counts([(values, edges)], weights).reshape(-1)
    if weights is not None and counts.dtype.kind in "fc" and not isinstance(bins, (int, numpy.integer, str)):
        counts = _as_differences(counts, values, edges, weights)
    if density:
        return counts / diff(edges) / _sum(counts), edges
    return counts, edges


def _as_differences(counts: ndarray, values: ndarray, edges: ndarray, weights: Any) -> ndarray:
    """Sums of weights in bins whose edges were given: NumPy takes differences of running sums, which NaN spoils."""
    scale = on_device(weights).reshape(-1)
    before = _sum(where(values < edges._part(0), scale, scale.dtype.type(0)), keepdims=True)
    upto = concatenate([before, counts]).cumsum()
    below, above = upto._part(slice(None, -1)), upto._part(slice(1, None))
    made: ndarray = where(UFUNCS["isfinite"](below) & UFUNCS["isfinite"](above), counts, above - below)
    return made


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> Any:
    """How many pairs are in each bin, as ``numpy.histogram2d``."""
    pair = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else (bins, bins)
    ranges = (None, None) if range is None else range
    one, other = on_device(x).reshape(-1), on_device(y).reshape(-1)
    rows, columns = (histogram_bin_edges(v, b, r) for v, b, r in zip((one, other), pair, ranges, strict=True))
    counts = _counts([(one, rows), (other, columns)], weights).astype(numpy.float64, copy=False)
    if density:
        counts = counts / _sum(counts) / diff(rows).reshape((-1, 1)) / diff(columns)
    return counts, rows, columns


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> Any:
    """How many points are in each bin of several dimensions, as ``numpy.histogramdd``."""
    if isinstance(sample, (list, tuple)):
        columns = [on_device(one).reshape(-1) for one in sample]
    else:
        points = on_device(sample)
        points = points.reshape((-1, 1)) if points.ndim < 2 else points
        columns = [points._part((slice(None), k)) for k in builtins.range(points.shape[1])]
    each = [bins] * len(columns) if isinstance(bins, int) else list(bins)
    ranges = [None] * len(columns) if range is None else list(range)
    if len(each) != len(columns):
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    if len(ranges) != len(columns):
        raise ValueError("range argument must have one entry per dimension")
    edges = [histogram_bin_edges(v, b, r) for v, b, r in zip(columns, each, ranges, strict=True)]
    counts = _counts(list(zip(columns, edges, strict=True)), weights).astype(numpy.float64, copy=False)
    if density:
        counts = counts / _sum(counts)
        for place, one in enumerate(edges):
            counts = counts / diff(one).reshape((-1,) + (1,) * (len(edges) - place - 1))
    return counts, edges


def i0(x: Any) -> ndarray:
    """The modified Bessel function of order 0, as ``numpy.i0``."""
    values = on_device(x)
    if values.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    made: ndarray = _BESSEL(values if values.dtype.kind == "f" else values.astype(float))
    return made


def _counts(parts: list[tuple[ndarray, ndarray]], weights: Any) -> ndarray:
    place: Any = 0
    inside: Any = True
    shape = []
    for values, edges in parts:
        n = edges.size - 1
        shape.append(n)
        bin_of = searchsorted(edges, values, "right") - 1
        bin_of = where(values == edges._part(-1), n - 1, bin_of)
        inside = (bin_of >= 0) & (bin_of < n) & inside
        place = place * n + bin_of
    total = math.prod(shape)
    to = numpy.dtype(numpy.int64) if weights is None else on_device(weights).dtype
    made = _ndarray.empty(total + 1, to)  # the last one is for what is in no bin
    made.fill(0)
    UFUNCS["add"].at(
        made, where(inside, place, total), to.type(1) if weights is None else on_device(weights).reshape(-1)
    )
    return made._part(slice(0, total)).reshape(shape)
