"""Arrays as sets of their elements."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any, NamedTuple

import numpy

from cupola.numpy import _rows
from cupola.numpy._index import getitem
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import reduce
from cupola.numpy._ndarray import known_type, ndarray, on_device
from cupola.numpy._rows import ready
from cupola.numpy.functions._creation import arange
from cupola.numpy.functions._shapes import concatenate, moveaxis
from cupola.numpy.functions._sorting import lexsort, searchsorted, sort

__all__ = [
    "in1d", "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip


def _runs(values: ndarray, equal_nan: bool) -> ndarray:
    """Whether each element of a sorted array differs from the one before."""
    before, behind = values._part(slice(None, -1)), values._part(slice(1, None))
    differs = before != behind
    if equal_nan and values.dtype.kind in "fc":
        differs = differs & ~((before != before) & (behind != behind))
    first = on_device([True])
    return concatenate([first, differs]) if values.size else differs.reshape(0)


def _unique(x: Any, equal_nan: bool, index: bool, inverse: bool, counts: bool) -> list[Any]:
    values = on_device(x)
    flat = ready(values.reshape(-1))
    if flat.size == 0:
        nothing = arange(0)
        return [flat.copy(), nothing, nothing.reshape(values.shape), nothing]
    made, order = _rows.sort(flat.reshape((1, -1)), False, index or inverse)
    ordered = made.reshape(-1)
    starts = _runs(ordered, equal_nan)
    places = _rows.true_places(starts)
    found: list[Any] = [getitem(ordered, places), None, None, None]
    if index and order is not None:
        found[1] = getitem(order.reshape(-1), places)
    if inverse and order is not None:
        numbers = _rows.scan(ready(starts.astype(numpy.int64)).reshape((1, -1)), "sum").reshape(-1) - 1
        where = _rows.fresh(flat.shape, numpy.int64)
        where[order.reshape(-1)] = numbers
        found[2] = where.reshape(values.shape)
    if counts:
        found[3] = concatenate([places._part(slice(1, None)), on_device([flat.size])]) - places
    return found


def _unique_parts(values: ndarray, axis: int) -> list[Any]:
    """What `_unique` gives, of the parts along an axis; they are sorted by their first elements, then the next ones."""
    moved = moveaxis(values, operator.index(axis), 0)
    n = len(moved)
    rows = moved.reshape((n, math.prod(moved.shape[1:])))
    if rows.size == 0:  # parts without elements are all the same
        first = builtins.min(n, 1)
        numbers = _rows.fresh(n, numpy.int64)
        numbers.fill(0)
        return [moveaxis(moved._part(slice(0, first)).copy(), 0, axis), numbers._part(slice(0, first)), numbers,
                on_device([n] * first).astype(numpy.int64)]  # fmt: skip
    order = lexsort([rows[:, k] for k in reversed(range(rows.shape[1]))])
    ordered = getitem(rows, order)
    differs = reduce("any", ordered[1:] != ordered[:-1], 1, None, None, False)
    starts = ready(concatenate([on_device([True]), differs]))
    places = _rows.true_places(starts)
    numbers = _rows.scan(ready(starts.astype(numpy.int64)).reshape((1, -1)), "sum").reshape(-1) - 1
    inverse = _rows.fresh(n, numpy.int64)
    inverse[order] = numbers
    parts = getitem(ordered, places).reshape((places.size, *moved.shape[1:]))
    counts = concatenate([places._part(slice(1, None)), on_device([n])]) - places
    return [moveaxis(parts, 0, axis), getitem(order, places), inverse, counts]


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None,
    *, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    """The different elements, sorted, as ``numpy.unique``. Waits for their number."""
    if axis is not None:
        found = _unique_parts(on_device(ar), axis)
    else:
        found = _unique(ar, equal_nan, return_index, return_inverse, return_counts)
    wanted = [True, return_index, return_inverse, return_counts]
    made = tuple([one for one, want in zip(found, wanted, strict=True) if want])
    return made[0] if len(made) == 1 else made


def unique_values(x: Any) -> ndarray:
    """The different elements; NaN differ. Waits for their number."""
    made: ndarray = _unique(x, False, False, False, False)[0]
    return made


def unique_counts(x: Any) -> Any:
    """The different elements and how often each occurs, as ``numpy.unique_counts``."""
    found = _unique(x, False, False, False, True)
    return _Counts(found[0], found[3])


def unique_inverse(x: Any) -> Any:
    """The different elements and the number of that of each element, as ``numpy.unique_inverse``."""
    found = _unique(x, False, False, True, False)
    return _Inverse(found[0], found[2])


def unique_all(x: Any) -> Any:
    """The different elements, where each is first, the numbers and how often, as ``numpy.unique_all``."""
    return _All(*_unique(x, False, True, True, True))


class _Counts(NamedTuple):
    values: ndarray
    counts: ndarray


class _Inverse(NamedTuple):
    values: ndarray
    inverse_indices: ndarray


class _All(NamedTuple):
    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


_Counts.__name__, _Inverse.__name__, _All.__name__ = "UniqueCountsResult", "UniqueInverseResult", "UniqueAllResult"


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> ndarray:
    """Whether each element is one of others, as ``numpy.isin``."""
    values, others = on_device(element), on_device(test_elements).reshape(-1)
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: {kind!r}. Please use None, 'sort' or 'table'.")
    if kind == "table" and not (values.dtype.kind in "biu" and others.dtype.kind in "biu"):
        raise ValueError("The 'table' method is only supported for boolean or integer arrays.")
    to = known_type(numpy.result_type(values.dtype, others.dtype))
    if others.size == 0:
        flags = values != values if values.dtype.kind != "f" else values.astype(bool) & False
        return ~flags if invert else flags
    ordered = sort(others.astype(to, copy=False))
    places = UFUNCS["minimum"](searchsorted(ordered, values), others.size - 1)
    found: ndarray = getitem(ordered, places) == values
    return ~found if invert else found


def in1d(x: Any, y: Any, assume_unique: bool = False, invert: bool = False) -> ndarray:
    """As ``isin``, in one dimension."""
    return isin(on_device(x).reshape(-1), y, invert=invert)


def union1d(ar1: Any, ar2: Any) -> ndarray:
    """The different elements of two arrays, as ``numpy.union1d``."""
    made: ndarray = unique(concatenate([on_device(ar1).reshape(-1), on_device(ar2).reshape(-1)]))
    return made


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The different elements that both arrays have, as ``numpy.intersect1d``."""
    (one, first), (other, second) = unique(ar1, return_index=True), unique(ar2, return_index=True)
    to = known_type(numpy.result_type(one.dtype, other.dtype))
    shared = isin(one, other)
    made: ndarray = getitem(one, shared).astype(to, copy=False)
    if not return_indices:
        return made
    return made, getitem(first, shared), getitem(second, isin(other, one))


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The different elements that only the first array has, as ``numpy.setdiff1d``."""
    one = on_device(ar1).reshape(-1) if assume_unique else unique(ar1)
    return getitem(one, isin(one, ar2, invert=True))


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The different elements that one of two arrays has, as ``numpy.setxor1d``."""
    return union1d(setdiff1d(ar1, ar2), setdiff1d(ar2, ar1))
