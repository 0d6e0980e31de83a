"""What arrays have with CuPy's interface besides cupola.numpy's: attributes of the class that both share."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy

from cupola.core.array._array import Array
from cupola.core.memory._buffer import Buffer
from cupola.numpy import ndarray
from cupola.numpy._evaluate import current_stream
from cupola.numpy._known import UFUNCS
from cupola.numpy._ndarray import known_type
from cupola.numpy._order import is_column_major, letter, turns
from cupola.numpy._sharing import borrowed
from cupola.standins.cupy._errors import CUDARuntimeError, as_cupy
from cupola.standins.cupy._kernels import layout
from cupola.standins.cupy.cuda._state import may_wait
from cupola.standins.cupy.cuda.device import Device
from cupola.standins.cupy.cuda.memory import MemoryPointer, pointer_of
from cupola.standins.cupy.cuda.stream import core_stream

_plain = {name: getattr(ndarray, name) for name in ("astype", "__setitem__", "__init__", "to_numpy")}
_METHODS: dict[str, Any] = {}
CUPY = "cupy"


def _method(function: Any) -> Any:
    _METHODS[function.__name__] = function
    return function


def _address(self: ndarray) -> MemoryPointer:
    """MemoryPointer: where the first element is. Others may write there: expressions of the array are computed now."""
    memory = self.buffer
    pointer = pointer_of(memory)
    return pointer + (int(Array.handle.__get__(self)) - int(memory.handle)) if self.size else pointer


def column_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of the column-major order."""
    strides, step = [], itemsize
    for extent in shape:
        strides.append(step)
        step *= extent
    return tuple(strides)


@_method
def __init__(
    self: ndarray,
    shape: Any,
    dtype: Any = float,
    memptr: Any = None,
    strides: Any = None,
    order: Any = "C",
) -> None:
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    kind = known_type(dtype)
    if strides is None and is_column_major(order):
        strides = column_major(extents, kind.itemsize)
    if memptr is None:
        _plain["__init__"](self, extents, kind)
        if strides is not None:
            made = self._view_of(extents, tuple(strides))
            self._describe(extents, kind)
            _become(self, made)
        return
    made = over(memptr, extents, kind, None if strides is None else tuple(strides))
    self._describe(extents, kind)
    _become(self, made)


def _become(self: ndarray, made: ndarray) -> None:
    """Be the same array as a new one."""
    self._node, self._stream = None, made._stream
    self._settle(made._memory())
    if self.strides != made.strides:
        raise NotImplementedError("cupy.ndarray(...) with strides: cupy.lib.stride_tricks.as_strided makes such views")


def bytes_of(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> int:
    """How many bytes there are from the first element of an array to behind its last one."""
    if 0 in shape:
        return 0
    if strides is None:
        return math.prod(shape) * itemsize
    return sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True)) + itemsize


def over(pointer: Any, shape: tuple[int, ...], dtype: numpy.dtype, strides: tuple[int, ...] | None) -> ndarray:
    """An array over memory that is there."""
    if strides is not None and any(step < 0 for step in strides):
        raise ValueError("negative strides of memory of another library")
    if 0 in shape:
        return ndarray(shape, dtype)
    memory = Buffer.from_handle(int(pointer.ptr), bytes_of(shape, strides, dtype.itemsize), owner=pointer)
    return borrowed(memory, shape, dtype, strides, current_stream())


@_method
def to_numpy(self: ndarray, *, stream: Any = None) -> numpy.ndarray:
    """Copy the elements to the host, and wait for them: what ``get``, ``item``, ``float`` and printing do."""
    may_wait()
    with as_cupy(CUDARuntimeError):
        found: numpy.ndarray = _plain["to_numpy"](self, stream=stream)
    return found


@_method
def get(
    self: ndarray, stream: Any = None, order: Any = "C", out: numpy.ndarray | None = None, blocking: bool = True
) -> numpy.ndarray:
    """Copy the elements to the host, and wait for them."""
    if out is not None:
        if not isinstance(out, numpy.ndarray):
            raise TypeError(f"Only numpy.ndarray can be obtained from cupy.ndarray, not {type(out).__name__}")
        if out.dtype != self.dtype:
            raise TypeError(f"{out.dtype} array cannot be obtained from {self.dtype} array")
        if out.shape != self.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}")
    with as_cupy(CUDARuntimeError):
        self._join()
    found = to_numpy(self, stream=None if stream is None else core_stream(stream))
    if out is not None:
        out[...] = found
        return out
    return numpy.asfortranarray(found) if turns(self, order) else found


@_method
def set(self: ndarray, arr: Any, stream: Any = None) -> None:
    """Overwrite the elements with those of an array of NumPy."""
    if not isinstance(arr, numpy.ndarray):
        raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
    if arr.dtype != self.dtype:
        raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
    if arr.shape != self.shape:
        raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {arr.shape}")
    self._compute_now()
    self.copy_from(numpy.ascontiguousarray(arr), stream=core_stream(stream))


@_method
def __array__(self: ndarray, dtype: Any = None, copy: Any = None) -> numpy.ndarray:
    raise TypeError(
        "Implicit conversion to a NumPy array is not allowed. "
        "Please use `.get()` to construct a NumPy array explicitly."
    )


@_method
def __setitem__(self: ndarray, key: Any, value: Any) -> None:
    if isinstance(value, numpy.ndarray):
        if value.ndim:
            raise ValueError(
                "non-scalar numpy.ndarray cannot be used for fill: x.set(a) copies all, cupy.asarray(a) makes an array"
            )
        value = value[()]
    _plain["__setitem__"](self, key, value)


@_method
def astype(
    self: ndarray, dtype: Any, order: Any = "K", casting: Any = None, subok: Any = None, copy: bool = True
) -> ndarray:
    """The elements converted to another type."""
    to = known_type(dtype)
    if casting is not None and not numpy.can_cast(self.dtype, to, casting):
        raise TypeError(f"Cannot cast array data from {self.dtype!r} to {to!r} according to the rule {casting!r}")
    # Of another type, too, the elements lie as they did.
    made: ndarray = _plain["astype"](self, to, "F" if turns(self, order) else letter(order, "K"), copy=copy)
    return made


@_method
def ptp(self: ndarray, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """The greatest element less the least one."""
    found: ndarray = UFUNCS["subtract"](self.max(axis, keepdims=keepdims), self.min(axis, keepdims=keepdims), out=out)
    return found


@_method
def scatter_add(self: ndarray, slices: Any, value: Any) -> None:
    """Add values at indices; each counts where an index appears more than once."""
    UFUNCS["add"].at(self, slices, value)


@_method
def scatter_max(self: ndarray, slices: Any, value: Any) -> None:
    """Take the greater of elements and values at indices."""
    UFUNCS["maximum"].at(self, slices, value)


@_method
def scatter_min(self: ndarray, slices: Any, value: Any) -> None:
    """Take the lesser of elements and values at indices."""
    UFUNCS["minimum"].at(self, slices, value)


@_method
def reduced_view(self: ndarray, dtype: Any = None) -> ndarray:
    """The view with as few dimensions as possible."""
    return self.reshape(-1) if self.is_contiguous else self


@_method
def toDlpack(self: ndarray) -> Any:
    """A capsule of DLPack."""
    return self.__dlpack__()


@_method
def __copy__(self: ndarray) -> ndarray:
    return self.copy()


@_method
def __deepcopy__(self: ndarray, memo: Any) -> ndarray:
    return self.copy()


def _cstruct(self: Any) -> ctypes.Structure:
    """ctypes.Structure: the array as kernels of ElementwiseKernel get it."""
    return layout(self.data.ptr, self.size, self.shape, self.strides)


def _device(self: ndarray) -> Device:
    """Device: where the elements are."""
    return Device(self._place())


for _name, _function in _METHODS.items():
    _function.__qualname__ = f"ndarray.{_name}"
    setattr(ndarray, _name, _function)
for _name, _get in {"data": _address, "device": _device, "cstruct": _cstruct}.items():
    setattr(ndarray, _name, property(_get))
ndarray.__module__ = CUPY
