"""Functions that choose elements: by conditions, by places, and where something is."""

from __future__ import annotations

import math
from typing import Any

import numpy

from cupola.numpy import _index, _lazy, _ndarray
from cupola.numpy._index import getitem, setitem
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import pending, write
from cupola.numpy._ndarray import axis_or_all, broadcast, into, known_type, ndarray, on_device, one_axis
from cupola.numpy._order import is_column_major
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
    node = _lazy.make_node("where", (chosen, one, other), (numpy.dtype(bool), to, to), to, shape)
    return pending(node, (chosen, one, other))


def clip(a: Any, min: Any = None, max: Any = None, out: Any = None, *, a_min: Any = None, a_max: Any = None) -> ndarray:
    """Values limited to an interval, as ``numpy.clip``."""
    result = on_device(a)
    min, max = (a_min if min is None else min), (a_max if max is None else max)
    if result.dtype.kind in "iu":
        # Bounds that are numbers of Python may lie outside of the type, where they limit nothing.
        info = numpy.iinfo(result.dtype)
        if type(min) is int:
            min = info.max if min > info.max else None if min < info.min else min
        if type(max) is int:
            max = info.min if max < info.min else None if max > info.max else max
    if min is None and max is None:
        return into(out, result.copy(), "same_kind")
    if min is not None:
        result = UFUNCS["maximum"](result, min, out=None if max is not None else out)
    if max is not None:
        result = UFUNCS["minimum"](result, max, out=out)
    return result


# --- where something is -------------------------------------------------------------------------------------------


def nonzero(a: Any) -> tuple[ndarray, ...]:
    """The indices of what is not zero, as ``numpy.nonzero``. Waits for their number."""
    values = on_device(a)
    if values.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    return _nonzero(values)


def flatnonzero(a: Any) -> ndarray:
    """As ``numpy.flatnonzero``. Waits for the number."""
    return _nonzero(on_device(a).ravel())[0]


def argwhere(a: Any) -> ndarray:
    """As ``numpy.argwhere``. Waits for the number."""
    values = on_device(a)
    places = _nonzero(values if values.ndim else values.reshape(1))
    made = _ndarray.empty((places[0].size, values.ndim), numpy.int64)
    for k in range(values.ndim):
        write(made._part((slice(None), k)), places[k])
    return made


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """How many elements are not zero, as ``numpy.count_nonzero``."""
    return _lazy.reduce("sum", on_device(a).astype(bool, copy=False), axis, numpy.int64, None, keepdims)


def _best(x: Any, axis: Any, keepdims: bool, out: Any, greatest: bool) -> ndarray:
    values = on_device(x)
    if isinstance(out, ndarray) and not numpy.can_cast(out.dtype, numpy.int64):
        raise TypeError(f"out is for places, which are int64, and has elements of {out.dtype}")
    axis = axis_or_all(axis, values.ndim)
    if values.size == 0 and (axis is None or values.shape[axis] == 0):
        raise ValueError(f"attempt to get {'argmax' if greatest else 'argmin'} of an empty sequence")
    if axis is None:
        made = best(as_rows(values.reshape(-1), 0)[0], greatest).reshape((1,) * values.ndim if keepdims else ())
    else:
        axis = one_axis(axis, values.ndim)
        rows, shape = as_rows(values, axis)
        made = back(best(rows, greatest), (*shape[:-1], 1), axis)
        if not keepdims:
            made = made.squeeze(axis)
    return into(out, made)


def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
    """Where the greatest element is, the first of several; as ``numpy.argmax``."""
    return _best(a, axis, keepdims, out, True)


def argmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
    """Where the least element is, the first of several; as ``numpy.argmin``."""
    return _best(a, axis, keepdims, out, False)


def nanargmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
    """As ``argmax``, without NaN."""
    values = on_device(a)
    filled = where(values != values, -numpy.inf, values) if values.dtype.kind in "fc" else values
    return argmax(filled, axis, out, keepdims=keepdims)


def nanargmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
    """As ``argmin``, without NaN."""
    values = on_device(a)
    filled = where(values != values, numpy.inf, values) if values.dtype.kind in "fc" else values
    return argmin(filled, axis, out, keepdims=keepdims)


# --- by places ----------------------------------------------------------------------------------------------------


def _within(indices: Any, extent: int, mode: str) -> Any:
    """Indices made to lie in the extent, as `mode` says; those of the host are checked."""
    if mode == "raise":
        if not isinstance(indices, ndarray):
            host = numpy.asarray(indices)
            outside = host[(host < -extent) | (host >= extent)]
            if outside.size:
                raise IndexError(f"index {outside[0]} is out of bounds for axis 0 with size {extent}")
        return indices
    found = on_device(indices)
    if mode == "wrap":
        return found % extent
    if mode != "clip":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    return clip(found, 0, extent - 1)


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> ndarray:
    """Elements at places along an axis, as ``numpy.take``."""
    values = on_device(a)
    axis = axis_or_all(axis, values.ndim)
    if axis is None:
        values, axis = values.ravel(), 0
    axis = one_axis(axis, values.ndim)
    indices = _within(indices, values.shape[axis], mode)
    if not isinstance(indices, (int, numpy.integer)):
        indices = indices if isinstance(indices, ndarray) else numpy.asarray(indices)
        if indices.dtype.kind not in "biu" and indices.size:
            raise TypeError(f"Cannot cast array data from {indices.dtype!r} to dtype('int64')")
        if indices.dtype == bool:  # as an index it would be a mask
            indices = indices.astype(numpy.int64)
    made = getitem(values, (*[slice(None)] * axis, indices))
    if isinstance(indices, (int, numpy.integer)):
        made = made.copy()
    return into(out, made)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> ndarray:
    """An element for each index along an axis, as ``numpy.take_along_axis``."""
    values = on_device(arr)
    if axis is None:
        values, axis = values.ravel(), 0
    places = asarray(_within(indices, values.shape[one_axis(axis, values.ndim)], "raise"))
    return _index.gather(*_index.along(values, places, axis))


def put_along_axis(arr: ndarray, indices: Any, values: Any, axis: int | None) -> None:
    """Overwrite an element for each index along an axis, as ``numpy.put_along_axis``."""
    if axis is None:
        arr, axis = arr._view_only(-1), 0
    places = on_device(_within(indices, arr.shape[one_axis(axis, arr.ndim)], "raise"))
    layout, at = _index.along(arr, places, axis)
    write(layout, _ndarray._operand(values, arr.dtype), at)


def repeated(new: Any, count: int) -> Any:
    """So many elements of an array, from the beginning again where it ends; a number as it is."""
    if not isinstance(new, ndarray):
        return new
    new = new.reshape(-1)
    return new if new.size in (1, count) else getitem(new, arange(count) % new.size)


def put(a: ndarray, ind: Any, v: Any, mode: str = "raise") -> None:
    """Overwrite elements by their places in row-major order, as ``numpy.put``."""
    places = on_device(_within(ind, a.size, mode)).reshape(-1)
    new = _ndarray._operand(v, a.dtype)
    if not places.size or (isinstance(new, ndarray) and not new.size):
        return
    flat = a.reshape(-1)
    setitem(flat, places, repeated(new, places.size))
    if flat.buffer is not a.buffer:
        write(a, flat.reshape(a.shape))


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> ndarray:
    """An element of one of several arrays, as ``numpy.choose``; numbers below 0 count from the last array."""
    places = on_device(a)
    if places.dtype.kind not in "biu":
        raise TypeError(f"Cannot cast array data from {places.dtype!r} to dtype('int64') according to the rule 'safe'")
    places = places.astype(numpy.int64, copy=False)
    given = broadcast_arrays(_within(places, len(choices), mode), *[on_device(one) for one in choices])
    stacked = _ndarray.empty((len(choices), *given[0].shape), numpy.result_type(*[one.dtype for one in given[1:]]))
    for k, one in enumerate(given[1:]):
        write(stacked._part(k), one)
    made = take_along_axis(stacked, given[0].reshape((1, *given[0].shape)), 0).reshape(given[0].shape)
    return into(out, made)


def fill_diagonal(a: ndarray, val: Any, wrap: bool = False) -> None:
    """Overwrite the diagonal, as ``numpy.fill_diagonal``."""
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    a._compute_now()
    if a.ndim == 2 and wrap and a.shape[0] > a.shape[1]:
        flat = a._view_only(-1)
        part = flat._part(slice(None, None, a.shape[1] + 1))
    else:
        if a.ndim > 2 and len(set(a.shape)) > 1:
            raise ValueError("All dimensions of input must be of equal length")
        part = a._view_of([min(a.shape)], [sum(a.strides)])
    write(part, repeated(_ndarray._operand(val, a.dtype), part.size))


def ix_(*sequences: Any) -> tuple[ndarray, ...]:
    """Indices of an open grid, as ``numpy.ix_``."""
    found = []
    for k, one in enumerate(sequences):
        index = on_device(one)
        if index.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if index.size == 0:
            index = index.astype(numpy.int64)
        if index.dtype == bool:
            (index,) = _nonzero(index)
        found.append(index.reshape(tuple([-1 if j == k else 1 for j in range(len(sequences))])))
    return tuple(found)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[ndarray, ...]:
    """Indices for places in row-major or column-major order, as ``numpy.unravel_index``.

    Places in arrays of the device are not checked, since that would wait for them; they wrap around.
    """
    turned = is_column_major(order)
    places = on_device(indices)
    if places.dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    places = places.astype(numpy.int64, copy=False)
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if not isinstance(indices, ndarray):
        size = math.prod(extents)
        host = numpy.asarray(indices)
        outside = host[(host < 0) | (host >= size)]
        if outside.size:
            raise ValueError(f"index {outside[0]} is out of bounds for array with size {size}")
    found: list[ndarray] = []
    for extent in extents if turned else reversed(extents):
        found.append(places % extent)
        places = places // extent
    return tuple(found if turned else reversed(found))


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> ndarray:
    """Places in row-major or column-major order for indices, as ``numpy.ravel_multi_index``.

    Bounds of arrays of the device are not checked, since that would wait for them; the modes clip and wrap keep them.
    """
    given, extents = list(multi_index), list(dims) if isinstance(dims, (tuple, list)) else [dims]
    if len(given) != len(extents):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(extents)}")
    modes = [mode] * len(given) if isinstance(mode, str) else list(mode)
    if is_column_major(order):
        given, extents, modes = given[::-1], extents[::-1], modes[::-1]
    place: Any = 0
    for index, extent, how in zip(given, extents, modes, strict=True):
        if how == "raise" and not isinstance(index, ndarray):
            values = numpy.asarray(index)
            if ((values < 0) | (values >= extent)).any():
                raise ValueError("invalid entry in coordinates array")
        place = place * extent + on_device(_within(index, extent, how)).astype(numpy.int64, copy=False)
    return on_device(place)


# --- by conditions --------------------------------------------------------------------------------------------------


def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> ndarray:
    """Slices for which a condition holds, as ``numpy.compress``. Waits for their number."""
    (places,) = _nonzero(on_device(condition))
    return take(a, places, axis, out)


def extract(condition: Any, arr: Any) -> ndarray:
    """Elements for which a condition holds, as ``numpy.extract``. Waits for their number."""
    return take(on_device(arr).ravel(), flatnonzero(condition))


def putmask(a: ndarray, mask: Any, values: Any) -> None:
    """Overwrite elements where a mask holds, as ``numpy.putmask``."""
    flags = on_device(mask)
    if flags.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    new = _ndarray._operand(values, a.dtype)
    if isinstance(new, ndarray) and new.shape != a.shape:
        new = getitem(new.reshape(-1), (arange(a.size) % new.size).reshape(a.shape))
    kinds = (numpy.dtype(bool), a.dtype, a.dtype)
    write(a, _lazy.make_node("where", (flags.reshape(a.shape), new, a), kinds, a.dtype, a.shape))


def place(arr: ndarray, mask: Any, vals: Any) -> None:
    """Overwrite elements where a mask holds by the next of these values, as ``numpy.place``."""
    flags = on_device(mask).astype(bool, copy=False)
    if flags.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    new = on_device(vals).reshape(-1).astype(arr.dtype, copy=False)
    (places,) = _nonzero(flags.reshape(-1))
    if places.size == 0:
        return
    if new.size == 0:
        raise ValueError("Cannot insert from an empty array!")
    setitem(arr, flags.reshape(arr.shape), repeated(new, places.size))


_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}  # a number of Python fits into what has its kind, or a higher one


def copyto(dst: ndarray, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Overwrite elements, as ``numpy.copyto``."""
    new = _ndarray._operand(src, dst.dtype)
    if _ndarray.is_weak(src) and casting != "unsafe" and _KINDS[numpy.asarray(src).dtype.kind] > _KINDS[dst.dtype.kind]:
        raise TypeError(f"Cannot cast scalar from {type(src).__name__} to {dst.dtype!r} according to {casting!r}")
    if isinstance(new, ndarray) and not numpy.can_cast(new.dtype, dst.dtype, casting):
        raise TypeError(f"Cannot cast array data from {new.dtype!r} to {dst.dtype!r} according to the rule {casting!r}")
    if where is True:
        write(dst, new)
        return
    kinds = (numpy.dtype(bool), dst.dtype, dst.dtype)
    mask = _ndarray.mask_for(dst, where)
    write(dst, _lazy.make_node("where", (mask, new, dst), kinds, dst.dtype, dst.shape))


def select(condlist: Any, choicelist: Any, default: Any = 0) -> ndarray:
    """The choice of the first condition that holds, as ``numpy.select``."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    made = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        if on_device(condition).dtype != bool:
            raise TypeError(f"invalid entry in condlist: should be boolean, not {on_device(condition).dtype}")
        made = where(condition, choice, made)
    return on_device(made)


def _is_one_condition(given: Any, dimensions: int) -> bool:
    """Whether it is no list of conditions, but one for elements of so many dimensions."""
    if not isinstance(given, (list, tuple)):
        return numpy.ndim(given) < 2 if dimensions else numpy.ndim(given) == 0
    return dimensions > 0 and not isinstance(given[0], ndarray) and numpy.ndim(given[0]) == 0


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kwargs: Any) -> ndarray:
    """Functions of elements, by conditions, as ``numpy.piecewise``; each is computed for all elements."""
    values = on_device(x)
    condlist = [on_device(one) for one in ([condlist] if _is_one_condition(condlist, values.ndim) else condlist)]
    if len(funclist) - len(condlist) not in (0, 1):
        raise ValueError(
            f"with {len(condlist)} condition(s), either {len(condlist)} or {len(condlist) + 1} functions are expected"
        )
    made: Any = 0
    if len(funclist) == len(condlist) + 1:
        made = funclist[-1](values, *args, **kwargs) if callable(funclist[-1]) else funclist[-1]
    for condition, function in zip(condlist, funclist, strict=False):
        made = where(condition, function(values, *args, **kwargs) if callable(function) else function, made)
    return broadcast(on_device(made), values.shape).astype(values.dtype, copy=False)
