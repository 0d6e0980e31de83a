"""Lists of places and elements, of which sparse matrices are made, and the kernels of their products."""

from __future__ import annotations

from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._known import UFUNCS
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupy._kernels import ElementwiseKernel

TYPES = "?fdFD"

# A row of the matrix times a column of dense numbers, of which there are `width`.
_PRODUCT = ElementwiseKernel(
    "raw I starts, raw I places, raw T data, raw T x, int64 width",
    "raw T y",
    """
    long long row = i / width, column = i % width;
    T sum = T(0);
    for (long long k = starts[row]; k < starts[row + 1]; ++k) sum = sum + data[k] * x[places[k] * width + column];
    y[i] = sum;
    """,
    "sparse_product",
)


def number_type(dtype: Any) -> numpy.dtype:
    """The type of elements.

    Raises
    ------
    ValueError
        When sparse matrices of CuPy have it not.
    """
    found: numpy.dtype = numpy.dtype(dtype)
    if found.char not in TYPES:
        raise ValueError(
            f"Only bool, float32, float64, complex64 and complex128 are supported, not {found}: x.astype(float)"
        )
    return found


def index_type(shape: Any, count: int) -> numpy.dtype:
    """The type of places: 32 bits if all fit."""
    return numpy.dtype(numpy.int32 if max(*shape, count) < 1 << 31 else numpy.int64)


def positions(count: int) -> Any:
    """0, 1, 2, ..."""
    return _np.arange(count, dtype=numpy.int64)


def starts_of(majors: Any, extent: int, dtype: Any) -> Any:
    """Where each row begins in a sorted list of the rows of elements."""
    return _np.searchsorted(majors, _np.arange(extent + 1, dtype=majors.dtype)).astype(dtype)


def majors_of(starts: Any, count: int) -> Any:
    """The row of each element."""
    return (_np.searchsorted(starts, _np.arange(count, dtype=starts.dtype), "right") - 1).astype(starts.dtype)


def keys_of(rows: Any, columns: Any, width: int) -> Any:
    """One number for each place, in row-major order."""
    return rows.astype(numpy.int64) * width + columns


def places_of(keys: Any, width: int, dtype: Any) -> tuple[Any, Any]:
    """The rows and columns of `keys_of`."""
    width = max(width, 1)
    return (keys // width).astype(dtype), (keys % width).astype(dtype)


def total(count: int, places: Any, data: Any) -> Any:
    """The sums of the elements at each place."""
    made = _np.zeros(count, data.dtype)
    UFUNCS["logical_or" if data.dtype.kind == "b" else "add"].at(made, places, data)
    return made


def canonical(keys: Any, data: Any) -> tuple[Any, Any]:
    """Sorted places, each once, and the sums of their elements."""
    if not keys.size:
        return keys, data
    order = _np.argsort(keys, stable=True)
    keys, data = keys[order], data[order]
    first = _np.concatenate([_np.ones(1, bool), keys[1:] != keys[:-1]])
    group = _np.cumsum(first) - 1
    count = int(group[-1]) + 1
    return (keys, data) if count == keys.size else (keys[first], total(count, group, data))


def elements_at(keys: Any, data: Any, wanted: Any) -> Any:
    """The elements at places, of sorted ones; zero where there is none."""
    if not keys.size:
        return _np.zeros(wanted.shape, data.dtype)
    found = _np.searchsorted(keys, wanted)
    near = _np.minimum(found, keys.size - 1)
    return _np.where(keys[near] == wanted, data[near], data.dtype.type(0))


def places_in(starts: Any, wanted: Any) -> tuple[Any, Any]:
    """Where the elements of some rows are, and where each of these rows begins among them."""
    first = starts[wanted].astype(numpy.int64)
    counts = starts[wanted + 1] - first
    begins = _np.concatenate([_np.zeros(1, numpy.int64), _np.cumsum(counts)])
    place = positions(int(begins[-1]))
    row = _np.searchsorted(begins, place, "right") - 1
    return first[row] + place - begins[row], begins


def dense_product(starts: Any, places: Any, data: Any, extent: int, x: Any) -> Any:
    """The product with a dense vector or matrix."""
    to = numpy.result_type(data.dtype, x.dtype)
    shape = (extent, *x.shape[1:])
    made = _np.empty(shape, to)
    if made.size:
        width = x.shape[1] if x.ndim == 2 else 1
        dense = _np.ascontiguousarray(x.astype(to, copy=False)).reshape(-1)
        if not dense.size or not data.size:
            made.fill(0)
        else:
            _PRODUCT(
                starts, places, data.astype(to, copy=False), dense, width, made.reshape(-1), size=made.size
            )  # fmt: skip
    return made


def dense_of(value: Any) -> Any:
    """An array of the device; None for what is none.

    Raises
    ------
    TypeError
        When it is an array of NumPy.
    """
    if isinstance(value, numpy.ndarray) and value.ndim:
        raise TypeError("an array of NumPy beside a sparse matrix of the device: cupy.asarray(a) copies it")
    return value if isinstance(value, ndarray) else None
