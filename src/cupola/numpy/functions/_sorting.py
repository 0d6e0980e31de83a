"""Sorting and searching in what is sorted. All sorts are stable, and NaN comes last."""

from __future__ import annotations

import operator
from typing import Any

import numpy

from cupola.numpy import _rows
from cupola.numpy._index import getitem
from cupola.numpy._ndarray import known_type, ndarray, on_device, one_axis
from cupola.numpy._rows import as_rows, back, ready
from cupola.numpy.functions._choosing import take_along_axis
from cupola.numpy.functions._creation import full

__all__ = [
    "argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort", "sort_complex",
]  # fmt: skip


KINDS = ("quicksort", "heapsort", "mergesort", "stable")


def _sorted(x: Any, axis: int | None, descending: bool, places: bool, kind: Any, order: Any, stable: Any) -> ndarray:
    values = on_device(x)
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if kind is not None and stable is not None:
        raise ValueError("`kind` and keyword parameters can't be provided at the same time. Use only one of them.")
    # Each of them is what a stable sort may be called.
    if kind is not None and not (isinstance(kind, str) and kind[:1].lower() in [one[0] for one in KINDS]):
        raise ValueError(f"sort kind must be one of {', '.join(map(repr, KINDS))} (got {kind!r})")
    if axis is None:
        values, axis = values.ravel(), -1
    if values.ndim == 0 and places and axis in (0, -1):
        return full(1, 0, numpy.int64)
    axis = one_axis(axis, values.ndim)
    if 0 in values.strides and not places:  # elements that are repeated lie as in a copy
        values = values.copy("K")
    rows, shape = as_rows(values, axis)
    made, found = _rows.sort(rows, descending, places)
    return back(made, shape, axis, values) if found is None else back(found, shape, axis)


def sort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: Any = None,
) -> ndarray:
    """Sorted elements, as ``numpy.sort``."""
    return _sorted(a, axis, descending, False, kind, order, stable)


def argsort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: Any = None,
) -> ndarray:
    """The places of sorted elements, as ``numpy.argsort``."""
    return _sorted(a, axis, descending, True, kind, order, stable)


def sort_complex(a: Any) -> ndarray:
    """Sorted elements as complex numbers, as ``numpy.sort_complex``."""
    made = sort(a)
    return made if made.dtype.kind == "c" else made.astype("F" if made.dtype.char in "bBhH" else "D")


def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> ndarray:
    """As ``numpy.partition``; the elements are sorted wholly."""
    values = on_device(a)
    _check_places(kth, values, axis)
    return sort(values, axis)


def _check_places(kth: Any, values: ndarray, axis: int | None) -> None:
    """Refuse places that no element along the axis has."""
    extent = values.size if axis is None or values.ndim == 0 else values.shape[one_axis(axis, values.ndim)]
    for one in numpy.asarray(kth.to_numpy() if isinstance(kth, ndarray) else kth).reshape(-1).tolist():
        if extent and not -extent <= operator.index(one) < extent:
            raise ValueError(f"kth(={one}) out of bounds ({extent})")


def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> ndarray:
    """As ``numpy.argpartition``; the elements are sorted wholly."""
    values = on_device(a)
    _check_places(kth, values, axis)
    return argsort(values, axis)


def lexsort(keys: Any, axis: int = -1) -> ndarray:
    """The places of elements sorted by several keys, the last one first, as ``numpy.lexsort``."""
    given = [on_device(key) for key in keys]
    axis = operator.index(axis)
    if len({key.shape for key in given}) > 1:
        raise ValueError("all keys need to be the same shape")
    if given and given[0].ndim == 0 and axis in (0, -1):
        return full((), 0, numpy.int64)
    order: ndarray | None = None
    for key in given:
        if order is None:
            order = argsort(key, axis)
        else:
            order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    if order is None:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    return order


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> ndarray:
    """Where values belong in a sorted array, as ``numpy.searchsorted``."""
    ordered = on_device(a)
    if ordered.ndim != 1:
        raise ValueError("object too deep for desired array" if ordered.ndim else "searchsorted needs one dimension")
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if sorter is not None:
        places = on_device(sorter)
        if places.dtype.kind not in "iu":
            raise TypeError("sorter must only contain integers")
        if places.size != ordered.size:
            raise ValueError("sorter.size must equal a.size")
        ordered = getitem(ordered, places)
    wanted = on_device(v)
    to = known_type(numpy.result_type(ordered.dtype, wanted.dtype))
    return _rows.search(ready(ordered.astype(to, copy=False)), ready(wanted.astype(to, copy=False)), side == "right")


def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """The bins that values belong to, as ``numpy.digitize``. Waits for the ends of bins on the device."""
    edges = on_device(bins)
    if on_device(x).dtype.kind == "c":
        raise TypeError("x may not be complex")
    if isinstance(bins, ndarray):
        falling = edges.size > 1 and bool(edges._part(0) > edges._part(-1))
    else:
        steps = numpy.diff(numpy.asarray(bins))
        falling = not (steps >= 0).all()
        if falling and not (steps <= 0).all():
            raise ValueError("bins must be monotonically increasing or decreasing")
    if falling:
        flipped = edges._part(slice(None, None, -1))
        made: ndarray = edges.size - searchsorted(flipped, x, "left" if right else "right")
        return made
    return searchsorted(edges, x, "left" if right else "right")
