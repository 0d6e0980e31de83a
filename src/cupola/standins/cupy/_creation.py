"""Functions that make arrays, with the parameters that they have in CuPy; memory of other libraries is not copied."""

from __future__ import annotations

from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._ndarray import as_on_host, known_type, ndarray
from cupola.numpy._order import copied, has_order, in_order
from cupola.standins.cupy._array import bytes_of, get, over
from cupola.standins.cupy.cuda import runtime
from cupola.standins.cupy.cuda.memory import MemoryPointer, UnownedMemory
from cupola.standins.cupy.cuda.stream import get_current_stream
from cupola.utils import StridedMemoryView

__all__ = [
    "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "asnumpy", "copy",
    "empty", "empty_like", "eye", "fromDlpack", "from_dlpack", "full", "full_like", "ones", "ones_like", "zeros",
    "zeros_like",
]  # fmt: skip


def _viewed(obj: Any) -> Any:
    """The array over the memory of another library's, by the CUDA array interface; None if it has none."""
    found = getattr(obj, "__cuda_array_interface__", None)
    if found is None:
        return None
    if found.get("mask") is not None:
        raise ValueError("mask currently not supported")
    shape, dtype = tuple(found["shape"]), known_type(numpy.dtype(found["typestr"]))
    strides = None if found.get("strides") is None else tuple(found["strides"])
    if found.get("stream"):
        runtime.streamSynchronize(found["stream"])
    address = int(found["data"][0] or 0)
    memory = UnownedMemory(address, bytes_of(shape, strides, dtype.itemsize), obj, 0 if not address else -1)
    return over(MemoryPointer(memory, 0), shape, dtype, strides)


def array(
    obj: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> Any:
    """An array of the device with the elements of `obj`: a copy, unless `copy` is None or False and none is needed.

    With False an array of the device that would have to be copied is a ValueError; those of the host always are.
    """
    made: Any
    if isinstance(obj, ndarray):
        same = dtype is None or known_type(dtype) == obj.dtype
        if copy is False and not (same and has_order(obj, as_on_host(obj, order))):
            raise ValueError(
                "Unable to avoid copy while creating an array as requested: another type or order is needed; copy=None "
                "copies where that is so"
            )
        made = obj if same else obj.astype(dtype)
        made = copied(obj, order or "K") if copy and same else in_order(made, order)
    else:
        view = _viewed(obj)
        if view is None:
            how = as_on_host(obj, order)
            if how in ("K", "A") and as_on_host(obj, "A") == "F":
                how = "F"
            made = in_order(_np.array(obj, dtype), how)
        else:
            made = array(view, dtype, copy, order)
    return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> Any:
    """An array of the device as it is, or over the memory of another library's; else a copy."""
    return array(a, dtype, copy, order)


def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, blocking: bool = False) -> Any:
    """As ``asarray``."""
    return asarray(a, dtype, order)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """As ``asarray``; ValueError for what is infinite or no number."""
    made = asarray(a, dtype, order)
    if not bool(_np.isfinite(made).all()):
        raise ValueError("array must not contain Infs or NaNs")
    return made


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """In row-major order, of at least one dimension."""
    made = asarray(a, dtype, "C")
    return made.reshape(1) if made.ndim == 0 else made


def asfortranarray(a: Any, dtype: Any = None) -> Any:
    """In column-major order, of at least one dimension."""
    made = asarray(a, dtype, "F")
    return made.reshape(1) if made.ndim == 0 else made


def asnumpy(a: Any, stream: Any = None, order: Any = "C", out: Any = None, *, blocking: bool = True) -> Any:
    """The elements in an array of NumPy."""
    if isinstance(a, ndarray):
        return get(a, stream, order, out)
    if hasattr(a, "__cuda_array_interface__"):
        return get(asarray(a), stream, order, out)
    found = numpy.asarray(a, order=order)
    if out is not None:
        out[...] = found
        return out
    return found


def copy(a: Any, order: Any = "K") -> Any:
    """A copy."""
    return asarray(a).copy(order)


def from_dlpack(array: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """The array over the memory of another library's, by DLPack."""
    if isinstance(array, ndarray):
        return array.copy() if copy else array
    if array.__dlpack_device__()[0] == 1:
        raise TypeError(
            "CPU arrays cannot be directly imported to CuPy. Use `cupy.array(numpy.from_dlpack(input))` instead."
        )
    view = StridedMemoryView.from_dlpack(array, stream_ptr=int(get_current_stream().ptr) or 1)
    dtype = known_type(view.dtype)
    strides = None if view.strides is None else tuple(step * dtype.itemsize for step in view.strides)
    shape = tuple(view.shape)
    memory = UnownedMemory(view.ptr, bytes_of(shape, strides, dtype.itemsize), view, max(view.device_id, 0))
    made = over(MemoryPointer(memory, 0), shape, dtype, strides)
    return made.copy() if copy else made


def fromDlpack(dltensor: Any) -> Any:
    """The array over the memory in a capsule of DLPack."""
    raise NotImplementedError("cupy.fromDlpack takes capsules, which CuPy has deprecated: cupy.from_dlpack(array)")


def empty(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    """An array whose elements are whatever the memory holds."""
    return _np.empty(shape, float if dtype is None else dtype, order)


def zeros(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    """An array of zeros."""
    return _np.zeros(shape, dtype, order)


def ones(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    """An array of ones."""
    return _np.ones(shape, dtype, order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C") -> Any:
    """An array of one value."""
    return _np.full(shape, fill_value, dtype, order)


def empty_like(prototype: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> Any:
    """An array of the shape and type of another one."""
    return _np.empty_like(prototype, dtype, order, shape=shape)


def zeros_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> Any:
    """Zeros of the shape and type of another array."""
    return _np.zeros_like(a, dtype, order, shape=shape)


def ones_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> Any:
    """Ones of the shape and type of another array."""
    return _np.ones_like(a, dtype, order, shape=shape)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None
) -> Any:
    """One value in the shape and type of another array."""
    return _np.full_like(a, fill_value, dtype, order, shape=shape)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, order: Any = "C") -> Any:
    """Ones on a diagonal."""
    return _np.eye(N, M, k, dtype, order)
