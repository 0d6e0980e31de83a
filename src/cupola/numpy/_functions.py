"""Functions of the namespace that are not ufuncs: creation, shapes, choice."""

from __future__ import annotations

from typing import Any

import numpy

from cupola.numpy import _ndarray
from cupola.numpy._known import UFUNCS
from cupola.numpy._ndarray import array, known_type, ndarray, on_device, pending


def asarray(obj: Any, dtype: Any = None) -> ndarray:
    """As ``numpy.asarray``: an array of the device as it is, else a copy of the data there."""
    if isinstance(obj, ndarray) and (dtype is None or known_type(dtype) == obj.dtype):
        return obj
    return array(obj, dtype)


def asnumpy(x: Any) -> numpy.ndarray:
    """The elements in an array of NumPy; waits for them."""
    return x.to_numpy() if isinstance(x, ndarray) else numpy.asarray(x)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> ndarray:
    """An array of one value, as ``numpy.full``."""
    made = _ndarray.empty(shape, numpy.asarray(fill_value).dtype if dtype is None else dtype)
    made[...] = fill_value
    return made


def zeros(shape: Any, dtype: Any = "float64") -> ndarray:
    """An array of zeros, as ``numpy.zeros``."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = "float64") -> ndarray:
    """An array of ones, as ``numpy.ones``."""
    return full(shape, 1, dtype)


def empty_like(x: Any, dtype: Any = None) -> ndarray:
    """An array of the shape and type of another one, as ``numpy.empty_like``."""
    return _ndarray.empty(x.shape, x.dtype if dtype is None else dtype)


def zeros_like(x: Any, dtype: Any = None) -> ndarray:
    """Zeros of the shape and type of another array, as ``numpy.zeros_like``."""
    return full(x.shape, 0, x.dtype if dtype is None else dtype)


def ones_like(x: Any, dtype: Any = None) -> ndarray:
    """Ones of the shape and type of another array, as ``numpy.ones_like``."""
    return full(x.shape, 1, x.dtype if dtype is None else dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> ndarray:
    """One value in the shape and type of another array, as ``numpy.full_like``."""
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """Evenly spaced values in an interval, as ``numpy.arange``. The host computes them."""
    values = numpy.arange(start, dtype=dtype) if stop is None else numpy.arange(start, stop, step, dtype=dtype)
    return array(values)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None) -> ndarray:
    """Evenly spaced values, as ``numpy.linspace``. The host computes them."""
    return array(numpy.linspace(start, stop, num, endpoint=endpoint, dtype=dtype))


def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = "float64") -> ndarray:
    """Ones on a diagonal, as ``numpy.eye``. The host computes them."""
    return array(numpy.eye(n, m, k, dtype=dtype))


def reshape(x: Any, shape: Any) -> ndarray:
    """As ``numpy.reshape``: a view if there is one."""
    return on_device(x).reshape(shape)


def transpose(x: Any, axes: Any = None) -> ndarray:
    """As ``numpy.transpose``: a view."""
    return on_device(x).transpose(axes)


def ravel(x: Any) -> ndarray:
    """As ``numpy.ravel``: a view if there is one."""
    return on_device(x).ravel()


def squeeze(x: Any, axis: Any = None) -> ndarray:
    """As ``numpy.squeeze``: a view."""
    return on_device(x).squeeze(axis)


def expand_dims(x: Any, axis: Any) -> ndarray:
    """As ``numpy.expand_dims``: a view with dimensions of one element."""
    values = on_device(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = _ndarray._axes(axis, values.ndim + count)
    key = [None if i in axes else slice(None) for i in range(values.ndim + count)]
    return values[tuple(key)]


def moveaxis(x: Any, source: Any, destination: Any) -> ndarray:
    """As ``numpy.moveaxis``: a view."""
    values = on_device(x)
    order = numpy.moveaxis(numpy.empty((1,) * values.ndim), source, destination)  # which checks the axes
    assert order.ndim == values.ndim
    sources, places = _ndarray._axes(source, values.ndim), _ndarray._axes(destination, values.ndim)
    axes = [axis for axis in range(values.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        axes.insert(place, axis)
    return values.transpose(axes)


def swapaxes(x: Any, axis1: int, axis2: int) -> ndarray:
    """As ``numpy.swapaxes``: a view."""
    values = on_device(x)
    axes = list(range(values.ndim))
    (one,), (other,) = _ndarray._axes(axis1, values.ndim), _ndarray._axes(axis2, values.ndim)
    axes[one], axes[other] = other, one
    return values.transpose(axes)


def flip(x: Any, axis: Any = None) -> ndarray:
    """As ``numpy.flip``: a view."""
    values = on_device(x)
    axes = _ndarray._axes(axis, values.ndim)
    return values[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(values.ndim))]


def broadcast_to(x: Any, shape: Any) -> ndarray:
    """As ``numpy.broadcast_to``: a view, in which elements appear several times."""
    values = on_device(x)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if numpy.broadcast_shapes(values.shape, shape) != shape:
        raise ValueError(f"an array of shape {values.shape} cannot be broadcast to the shape {shape}")
    values._compute_now()
    own = [0 if extent == 1 else stride for extent, stride in zip(values.shape, values.strides, strict=True)]
    return values._view_of(shape, [0] * (len(shape) - len(own)) + own)


def where(condition: Any, x: Any, y: Any) -> ndarray:
    """Elements of `x` where the condition holds, else of `y`, as ``numpy.where`` of three arguments."""
    chosen = on_device(condition)
    kinds = [value if _ndarray.is_weak(value) else value.dtype for value in map(_ndarray._operand, (x, y))]
    to = known_type(numpy.result_type(*kinds))
    one, other = _ndarray._operand(x, to), _ndarray._operand(y, to)
    shape = numpy.broadcast_shapes(chosen.shape, getattr(one, "shape", ()), getattr(other, "shape", ()))
    return pending(_ndarray._node("where", (chosen, one, other), (numpy.dtype(bool), to, to), to, shape))


def clip(x: Any, min: Any = None, max: Any = None, *, out: Any = None) -> ndarray:
    """Values limited to an interval, as ``numpy.clip``."""
    result = on_device(x)
    if min is not None:
        result = UFUNCS["maximum"](result, min)
    if max is not None:
        result = UFUNCS["minimum"](result, max)
    if out is not None:
        _ndarray.write(out, result)
        result = out
    return result


def copy(x: Any) -> ndarray:
    """As ``numpy.copy``."""
    return on_device(x).copy()


def sum(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """The sum of elements, as ``numpy.sum``."""
    return _ndarray.reduce("sum", x, axis, dtype, out, keepdims)


def prod(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """The product of elements, as ``numpy.prod``."""
    return _ndarray.reduce("prod", x, axis, dtype, out, keepdims)


def max(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """The greatest element, or a NaN, as ``numpy.max``."""
    return _ndarray.reduce("max", x, axis, None, out, keepdims)


def min(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """The least element, or a NaN, as ``numpy.min``."""
    return _ndarray.reduce("min", x, axis, None, out, keepdims)


def any(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """Whether any element is not zero, as ``numpy.any``."""
    return _ndarray.reduce("any", x, axis, None, out, keepdims)


def all(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """Whether no element is zero, as ``numpy.all``."""
    return _ndarray.reduce("all", x, axis, None, out, keepdims)
