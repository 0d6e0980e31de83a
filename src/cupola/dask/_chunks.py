"""What Dask does with chunks through tables by class: the entries for arrays of cupola.numpy.

Where Dask hands an array of NumPy to a function of chunks (numbers of elements, positions), it is copied to the device
here: it was made by Dask for this chunk, so no array of the user is copied unseen.
"""

from __future__ import annotations

import math
import uuid
from typing import Any

import dask.array
import numpy
from dask.array import dispatch
from dask.base import normalize_token
from dask.sizeof import sizeof

import cupola.numpy as device_numpy
from cupola.numpy import ndarray


def register() -> None:
    """Fill in Dask's tables."""
    dask.array.register_chunk_type(ndarray)  # type: ignore[no-untyped-call]
    for table, function in (
        (dispatch.concatenate_lookup, _concatenate),
        (dispatch.take_lookup, _take),
        (dispatch.tensordot_lookup, device_numpy.tensordot),
        (dispatch.einsum_lookup, _einsum),
        (dispatch.empty_lookup, device_numpy.empty),
        (dispatch.divide_lookup, _divide),
        (dispatch.percentile_lookup, _percentile),
        (dispatch.numel_lookup, _numel),
        (dispatch.nannumel_lookup, _nannumel),
        (dispatch.to_numpy_dispatch, _to_numpy),
        (sizeof, _nbytes),
        (normalize_token, _token),
    ):
        table.register(ndarray, function)  # type: ignore[no-untyped-call]


def on_device(x: Any) -> Any:
    """An array of Dask's own making on the device."""
    return device_numpy.asarray(x) if isinstance(x, numpy.ndarray) else x


def _concatenate(arrays: Any, axis: int = 0) -> Any:
    return device_numpy.concatenate([on_device(array) for array in arrays], axis=axis)


def _take(array: Any, indices: Any, axis: Any = None) -> Any:
    return device_numpy.take(array, on_device(indices), axis=axis)


def _einsum(*operands: Any, casting: str = "safe", order: str = "K", **keywords: Any) -> Any:
    """Without `casting` and `order`, which Dask hands on as NumPy has them by default."""
    return device_numpy.einsum(*operands, **keywords)


def _divide(a: Any, b: Any, dtype: Any = None) -> Any:
    return device_numpy.divide(on_device(a), on_device(b), dtype=dtype)


def _percentile(a: ndarray, q: Any, method: str = "linear") -> Any:
    """As Dask's for NumPy: the percentiles of one chunk, and how many elements it has."""
    if not a.size:
        return None, 0
    return device_numpy.percentile(a, on_device(q), method=method), a.size


def _numel(x: ndarray, axis: Any = None, keepdims: bool = False, dtype: Any = numpy.float64, **_: Any) -> Any:
    """How many elements a reduction counts, as an array of the shape of its results."""
    given = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else [axis]
    axes = {one % x.ndim for one in given} if x.ndim else set()
    count = math.prod(x.shape[one] for one in axes)
    shape = [1 if one in axes else extent for one, extent in enumerate(x.shape) if keepdims or one not in axes]
    return device_numpy.full(shape, count, dtype=dtype)


def _nannumel(x: ndarray, axis: Any = None, keepdims: bool = False, dtype: Any = None, **_: Any) -> Any:
    """How many elements that are numbers a reduction counts."""
    return device_numpy.sum(~device_numpy.isnan(x), axis=axis, keepdims=keepdims, dtype=dtype)


def _to_numpy(x: ndarray, **_: Any) -> numpy.ndarray:
    return x.to_numpy()


def _nbytes(x: ndarray) -> int:
    return int(x.nbytes)


def _token(x: ndarray) -> Any:
    """A name of its own: reading the elements to make one would wait for the device and copy them."""
    return "cupola.numpy", uuid.uuid4().hex
