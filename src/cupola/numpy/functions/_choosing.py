"""Functions that choose elements: by conditions, by places, and where something is."""

from __future__ import annotations

import operator
from typing import Any

import numpy

from cupola.numpy import _index, _lazy, _ndarray
from cupola.numpy._index import getitem, setitem
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import pending, write
from cupola.numpy._ndarray import _axes, array, broadcast, known_type, ndarray, on_device
from cupola.numpy._rows import as_rows, back, best
from cupola.numpy._rows import nonzero as _nonzero
from cupola.numpy.functions._creation import arange, asarray
from cupola.numpy.functions._shapes import broadcast_arrays

__all__ = [
    "argmax", "argmin", "argwhere", "choose", "clip", "compress", "copyto", "count_nonzero", "extract", "fill_diagonal",
    "flatnonzero", "ix_", "nanargmax", "nanargmin", "nonzero", "piecewise", "place", "put", "put_along_axis", "putmask",
    "ravel_multi_index", "select", "take", "take_along_axis", "unravel_index", "where",
]  # fmt: skip


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Elements of `x` where the condition holds, else of `y`; without these, the indices where it holds."""
    chosen = on_device(condition)
    if x is None and y is None:
        return nonzero(chosen)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    given = [_ndarray._operand(value) for value in (x, y)]
    to = known_type(numpy.result_type(*[value if _ndarray.is_weak(value) else value.dtype for value in given]))
    one, other = (_ndarray._operand(value, to) for value in given)
    shape = numpy.broadcast_shapes(chosen.shape, getattr(one, "shape", ()), getattr(other, "shape", ()))
    return pending(_lazy.make_node("where", (chosen, one, other), (numpy.dtype(bool), to, to), to, shape))


def clip(
    x: Any, /, min: Any = None, max: Any = None, *, out: Any = None, a_min: Any = None, a_max: Any = None
) -> ndarray:
    """Values limited to an interval, as ``numpy.clip``."""
    result = on_device(x)
    min, max = (a_min if min is None else min), (a_max if max is None else max)
    if result.dtype.kind in "iu":
        # Bounds that are numbers of Python may lie outside of the type, where they limit nothing.
        info = numpy.iinfo(result.dtype)
        if type(min) is int:
            min = info.max if min > info.max else None if min < info.min else min
        if type(max) is int:
            max = info.min if max < info.min else None if max > info.max else max
    given = result
    if min is not None:
        result = UFUNCS["maximum"](result, min)
    if max is not None:
        result = UFUNCS["minimum"](result, max)
    if result is given:
        result = given.copy()
    if out is not None:
        write(out, result)
        result = out
    return result


# --- where something is -------------------------------------------------------------------------------------------


def nonzero(x: Any, /) -> tuple[ndarray, ...]:
    """The indices of what is not zero, as ``numpy.nonzero``. Waits for their number."""
    values = on_device(x)
    if values.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    return _nonzero(values)


def flatnonzero(x: Any) -> ndarray:
    """As ``numpy.flatnonzero``. Waits for the number."""
    return _nonzero(on_device(x).ravel())[0]


def argwhere(x: Any) -> ndarray:
    """As ``numpy.argwhere``. Waits for the number."""
    values = on_device(x)
    places = _nonzero(values if values.ndim else values.reshape(1))
    made = _ndarray.empty((places[0].size, values.ndim), numpy.int64)
    for k in range(values.ndim):
        write(made._part((slice(None), k)), places[k])
    return made


def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """How many elements are not zero, as ``numpy.count_nonzero``."""
    return _lazy.reduce("sum", on_device(x).astype(bool, copy=False), axis, numpy.int64, None, keepdims)


def _best(x: Any, axis: Any, keepdims: bool, out: Any, greatest: bool) -> ndarray:
    values = on_device(x)
    if values.size == 0 and (axis is None or values.shape[axis] == 0):
        raise ValueError(f"attempt to get {'argmax' if greatest else 'argmin'} of an empty sequence")
    if axis is None:
        made = best(as_rows(values.reshape(-1), 0)[0], greatest).reshape((1,) * values.ndim if keepdims else ())
    else:
        (axis,) = _axes(operator.index(axis), values.ndim)
        rows, shape = as_rows(values, axis)
        made = back(best(rows, greatest), (*shape[:-1], 1), axis)
        if not keepdims:
            made = made.squeeze(axis)
    if out is not None:
        write(out, made)
        made = out
    return made


def argmax(x: Any, /, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
    """Where the greatest element is, the first of several; as ``numpy.argmax``."""
    return _best(x, axis, keepdims, out, True)


def argmin(x: Any, /, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
    """Where the least element is, the first of several; as ``numpy.argmin``."""
    return _best(x, axis, keepdims, out, False)


def nanargmax(x: Any, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """As ``argmax``, without NaN."""
    values = on_device(x)
    return argmax(
        where(values != values, -numpy.inf, values) if values.dtype.kind == "f" else values, axis, keepdims=keepdims
    )


def nanargmin(x: Any, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """As ``argmin``, without NaN."""
    values = on_device(x)
    return argmin(
        where(values != values, numpy.inf, values) if values.dtype.kind == "f" else values, axis, keepdims=keepdims
    )


# --- by places ----------------------------------------------------------------------------------------------------


def _within(indices: Any, extent: int, mode: str) -> Any:
    """Indices made to lie in the extent, as `mode` says."""
    if mode == "raise":
        return indices
    found = on_device(indices)
    if mode == "wrap":
        return found % extent
    if mode != "clip":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    return clip(found, 0, extent - 1)


def take(x: Any, indices: Any, /, axis: int | None = None, out: Any = None, mode: str = "raise") -> ndarray:
    """Elements at places along an axis, as ``numpy.take``."""
    values = on_device(x)
    if axis is None:
        values, axis = values.ravel(), 0
    (axis,) = _axes(axis, values.ndim)
    indices = _within(indices, values.shape[axis], mode)
    if not isinstance(indices, (int, numpy.integer)):
        indices = indices if isinstance(indices, ndarray) else numpy.asarray(indices)
    made = getitem(values, (*[slice(None)] * axis, indices))
    if isinstance(indices, (int, numpy.integer)):
        made = made.copy()
    if out is not None:
        write(out, made)
        made = out
    return made


def take_along_axis(x: Any, indices: Any, /, axis: int | None = -1) -> ndarray:
    """An element for each index along an axis, as ``numpy.take_along_axis``."""
    values, places = on_device(x), asarray(indices)
    if axis is None:
        values, axis = values.ravel(), 0
    return _index.gather(*_index.along(values, places, axis))


def put_along_axis(x: ndarray, indices: Any, values: Any, axis: int | None) -> None:
    """Overwrite an element for each index along an axis, as ``numpy.put_along_axis``."""
    places = on_device(indices)
    if axis is None:
        x, axis = x._view_only(-1), 0
    layout, at = _index.along(x, places, axis)
    write(layout, _ndarray._operand(values, x.dtype), at)


def put(x: ndarray, indices: Any, values: Any, mode: str = "raise") -> None:
    """Overwrite elements by their places in row-major order, as ``numpy.put``."""
    places = on_device(_within(indices, x.size, mode)).reshape(-1)
    new = _ndarray._operand(values, x.dtype)
    if isinstance(new, ndarray) and new.size not in (1, places.size):
        new = getitem(new.reshape(-1), arange(places.size) % new.size)
    elif isinstance(new, ndarray):
        new = new.reshape(-1)
    flat = x.reshape(-1)
    setitem(flat, places, new)
    if flat.buffer is not x.buffer:
        write(x, flat.reshape(x.shape))


def choose(which: Any, choices: Any, out: Any = None, mode: str = "raise") -> ndarray:
    """An element of one of several arrays, as ``numpy.choose``."""
    given = broadcast_arrays(_within(on_device(which), len(choices), mode), *[on_device(one) for one in choices])
    stacked = _ndarray.empty((len(choices), *given[0].shape), numpy.result_type(*[one.dtype for one in given[1:]]))
    for k, one in enumerate(given[1:]):
        write(stacked._part(k), one)
    made = take_along_axis(stacked, given[0].reshape((1, *given[0].shape)), 0).reshape(given[0].shape)
    if out is not None:
        write(out, made)
        made = out
    return made


def fill_diagonal(x: ndarray, value: Any, wrap: bool = False) -> None:
    """Overwrite the diagonal, as ``numpy.fill_diagonal``."""
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    x._compute_now()
    if x.ndim == 2 and wrap and x.shape[0] > x.shape[1]:
        flat = x._view_only(-1)
        part = flat._part(slice(None, None, x.shape[1] + 1))
    else:
        if x.ndim > 2 and len(set(x.shape)) > 1:
            raise ValueError("All dimensions of input must be of equal length")
        part = x._view_of([min(x.shape)], [sum(x.strides)])
    write(part, _ndarray._operand(value, x.dtype))


def ix_(*sequences: Any) -> tuple[ndarray, ...]:
    """Indices of an open grid, as ``numpy.ix_``."""
    found = []
    for k, one in enumerate(sequences):
        index = on_device(one) if not hasattr(one, "__len__") or len(one) else array(numpy.empty(0, numpy.int64))
        if index.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if index.dtype == bool:
            (index,) = _nonzero(index)
        found.append(index.reshape(tuple([-1 if j == k else 1 for j in range(len(sequences))])))
    return tuple(found)


def unravel_index(indices: Any, shape: Any) -> tuple[ndarray, ...]:
    """Indices for places in row-major order, as ``numpy.unravel_index``; out of bounds they are wrapped."""
    places = on_device(indices).astype(numpy.int64, copy=False)
    found: list[ndarray] = []
    for extent in reversed((shape,) if isinstance(shape, int) else tuple(shape)):
        found.append(places % extent)
        places = places // extent
    return tuple(reversed(found))


def ravel_multi_index(indices: Any, dims: Any) -> ndarray:
    """Places in row-major order for indices, as ``numpy.ravel_multi_index``; their bounds are not checked."""
    place: Any = 0
    for index, extent in zip(indices, dims, strict=True):
        place = place * extent + on_device(index).astype(numpy.int64, copy=False)
    return on_device(place)


# --- by conditions --------------------------------------------------------------------------------------------------


def compress(condition: Any, x: Any, axis: int | None = None) -> ndarray:
    """Slices for which a condition holds, as ``numpy.compress``. Waits for their number."""
    (places,) = _nonzero(on_device(condition))
    return take(x, places, axis)


def extract(condition: Any, x: Any) -> ndarray:
    """Elements for which a condition holds, as ``numpy.extract``. Waits for their number."""
    return take(on_device(x).ravel(), flatnonzero(condition))


def putmask(x: ndarray, mask: Any, values: Any) -> None:
    """Overwrite elements where a mask holds, as ``numpy.putmask``."""
    new = _ndarray._operand(values, x.dtype)
    if isinstance(new, ndarray) and new.shape != x.shape:
        new = getitem(new.reshape(-1), (arange(x.size) % new.size).reshape(x.shape))
    kinds = (numpy.dtype(bool), x.dtype, x.dtype)
    write(x, _lazy.make_node("where", (on_device(mask), new, x), kinds, x.dtype, x.shape))


def place(x: ndarray, mask: Any, values: Any) -> None:
    """Overwrite elements where a mask holds by the next of these values, as ``numpy.place``."""
    flags = on_device(mask).astype(bool, copy=False)
    new = on_device(values).reshape(-1).astype(x.dtype, copy=False)
    (places,) = _nonzero(flags.reshape(-1))
    if places.size == 0:
        return
    if new.size == 0:
        raise ValueError("Cannot insert from an empty array!")
    setitem(x, flags, getitem(new, arange(places.size) % new.size))


def copyto(x: ndarray, values: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Overwrite elements, as ``numpy.copyto``."""
    new = _ndarray._operand(values, x.dtype)
    if isinstance(new, ndarray) and not numpy.can_cast(new.dtype, x.dtype, casting):
        raise TypeError(f"Cannot cast array data from {new.dtype!r} to {x.dtype!r} according to the rule {casting!r}")
    if where is True:
        write(x, new)
        return
    kinds = (numpy.dtype(bool), x.dtype, x.dtype)
    write(x, _lazy.make_node("where", (on_device(where), new, x), kinds, x.dtype, x.shape))


def select(conditions: Any, choices: Any, default: Any = 0) -> ndarray:
    """The choice of the first condition that holds, as ``numpy.select``."""
    if len(conditions) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    made = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        made = where(condition, choice, made)
    return on_device(made)


def piecewise(x: Any, conditions: Any, functions: Any, *args: Any, **kwargs: Any) -> ndarray:
    """Functions of elements, by conditions, as ``numpy.piecewise``; each is computed for all elements."""
    values = on_device(x)
    conditions = [on_device(one) for one in conditions]
    made: Any = 0
    if len(functions) == len(conditions) + 1:
        made = functions[-1](values, *args, **kwargs) if callable(functions[-1]) else functions[-1]
    for condition, function in zip(conditions, functions, strict=False):
        made = where(condition, function(values, *args, **kwargs) if callable(function) else function, made)
    return broadcast(on_device(made), values.shape).astype(values.dtype, copy=False)
