"""Functions that make arrays: of one value, of a sequence of numbers, from the data of others."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy

from cupola.core.array._array import Array
from cupola.core.device._device import Device
from cupola.numpy import _lazy, _ndarray
from cupola.numpy._evaluate import current_stream
from cupola.numpy._index import setitem
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import Node, compute_into, write
from cupola.numpy._ndarray import array, brought_here, empty, known_type, ndarray, on, on_device
from cupola.numpy._order import copied, extents_of, is_column_major, letter, nested, turns, undone

__all__ = [
    "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "asnumpy", "copy", "diag",
    "diagflat", "empty", "empty_like", "eye", "from_dlpack", "frombuffer", "fromfunction", "full", "full_like",
    "geomspace", "identity", "indices", "linspace", "logspace", "meshgrid", "ones", "ones_like", "tri", "tril", "triu",
    "vander", "zeros", "zeros_like",
]  # fmt: skip

LARGE = 1 << 14  # elements of sequences that the device computes; the host computes shorter ones
_NUMBERS = (int, float)


def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None) -> ndarray:
    """As ``numpy.asarray``: an array of the device as it is, else a copy of the data there.

    What is on another device is copied to the current one, and waited for.
    """
    on(device)
    if order is None and copy is None:
        if not isinstance(a, ndarray):
            return array(a, dtype)
        if dtype is None or known_type(dtype) == a.dtype:
            return brought_here(a)
    return array(a, dtype, copy=copy, order="K" if order is None else order)


def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None) -> ndarray:
    """As ``asarray``."""
    return asarray(a, dtype, order, device=device, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """As ``numpy.ascontiguousarray``: in one piece, of at least one dimension."""
    found = asarray(a, dtype)
    found = found.reshape(1) if found.ndim == 0 else found
    return found if found.is_contiguous else found.copy()


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    """As ``numpy.asfortranarray``: in column-major order, of at least one dimension."""
    found = asarray(a, dtype)
    found = found.reshape(1) if found.ndim == 0 else found
    return found if found.transpose().is_contiguous else found.transpose().copy().transpose()


def asnumpy(x: Any) -> numpy.ndarray:
    """The elements in an array of NumPy; waits for them."""
    return x.to_numpy() if isinstance(x, Array) else numpy.asarray(x)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """As ``numpy.from_dlpack``: the elements of another library's array, in a copy on the device."""
    on(device)
    if isinstance(x, ndarray):
        return x.copy() if copy else x
    if copy is False:
        raise BufferError("cupola.numpy.from_dlpack makes a copy")
    if x.__dlpack_device__()[0] in (1, 3):
        return array(numpy.from_dlpack(x))
    queue = current_stream()
    return _lazy.adopt(Device().array(x, stream=queue), queue)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> ndarray:
    """As ``numpy.frombuffer``, in a copy on the device."""
    return array(numpy.frombuffer(buffer, dtype, count, offset))


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> ndarray:
    """An array of one value, as ``numpy.full``."""
    on(device)
    if dtype is None:
        dtype = fill_value.dtype if hasattr(fill_value, "dtype") else numpy.asarray(fill_value).dtype
    return _filled(empty(shape, dtype, order), fill_value)


def _filled(made: ndarray, fill_value: Any) -> ndarray:
    # What is no integer is converted as elements are, and not refused as by x.fill().
    weak = None if type(fill_value) is float and made.dtype.kind in "iu" else made.dtype
    value = _ndarray._operand(numpy.float64(fill_value) if weak is None else fill_value, weak)
    if made.is_contiguous and isinstance(value, numpy.generic):
        _lazy.fill(made, value)
    else:
        write(made, value)
    return made


def _uniform(shape: Any, dtype: Any, order: Any, device: Any, one: bool) -> ndarray:
    if device is not None:
        on(device)
    if order != "C" and is_column_major(order):
        return full(extents_of(shape)[::-1], int(one), dtype or float).transpose()
    made = _lazy.made_uniform(shape, dtype, one)
    return full(shape, int(one), dtype) if made is None else made


def zeros(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> ndarray:
    """An array of zeros, as ``numpy.zeros``."""
    return _uniform(shape, dtype, order, device, False)


def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> ndarray:
    """An array of ones, as ``numpy.ones``."""
    return _uniform(shape, dtype, order, device, True)


def empty_like(
    prototype: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ndarray:
    """An array of the shape and type of another one, as ``numpy.empty_like``."""
    on(device)
    extents, to = prototype.shape if shape is None else shape, prototype.dtype if dtype is None else dtype
    how = letter(order, "K")
    if how in ("C", "F"):
        return empty(extents, to, how)
    if getattr(prototype, "is_contiguous", True):
        return empty(extents, to)
    axes, whole = nested(prototype.strides), extents_of(extents)
    if len(axes) != len(whole) or (how == "A" and not turns(prototype, "A")):
        return empty(extents, to)
    return empty([whole[axis] for axis in axes], to).transpose(*undone(axes))


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> ndarray:
    """One value in the shape and type of another array, as ``numpy.full_like``."""
    return _filled(empty_like(a, dtype, order, subok, shape, device=device), fill_value)


def zeros_like(
    a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ndarray:
    """Zeros of the shape and type of another array, as ``numpy.zeros_like``."""
    return full_like(a, 0, dtype, order, subok, shape, device=device)


def ones_like(
    a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ndarray:
    """Ones of the shape and type of another array, as ``numpy.ones_like``."""
    return full_like(a, 1, dtype, order, subok, shape, device=device)


# --- sequences --------------------------------------------------------------------------------------------------


def positions(n: int) -> ndarray:
    """The numbers 0 to n - 1, computed by the device."""
    made = empty(n, numpy.int64)
    compute_into(made._plain(), Node("position", (), (), made.dtype, made.shape, "i"), current_stream())
    return made


def _of_host(host: numpy.ndarray) -> ndarray:
    """What the host has made for a new array."""
    made = _lazy.made_of(host)
    return array(host) if made is None else made


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None) -> ndarray:
    """Evenly spaced values in an interval, as ``numpy.arange``."""
    if device is not None:
        on(device)
    if step is None:
        step = 1
    if dtype is None and step and type(step) in _NUMBERS and type(start) in _NUMBERS:
        first, end = (0, start) if stop is None else (start, stop)
        if type(end) in _NUMBERS and -LARGE <= (end - first) / step <= LARGE:
            return _of_host(numpy.arange(first, end, step))
    first, end, by = (
        value.item() if isinstance(value, ndarray) else value
        for value in ((0, start, step) if stop is None else (start, stop, step))
    )
    to = known_type(numpy.result_type(*map(numpy.asarray, (first, end, by))) if dtype is None else dtype)
    to = numpy.dtype(numpy.int64) if dtype is None and to.kind == "b" else to
    length = (end - first) / by if by else 0
    if not -(1 << 63) < length < 1 << 60:  # infinite ones, too
        raise ValueError(f"Maximum allowed size exceeded: arange would have {float(length):.3g} elements")
    count = max(math.ceil(length), 0)
    if count <= LARGE or to.kind not in "iuf":
        return _of_host(numpy.arange(first, end, by, dtype=to))
    inner = numpy.dtype("float32") if to.char == "e" else to  # a half has no places above 65504
    delta = inner.type(inner.type(to.type(first + by)) - inner.type(to.type(first)))
    made = positions(count).astype(inner) * delta + inner.type(to.type(first))
    result: ndarray = made.astype(to, copy=False)
    return result


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Evenly spaced values, as ``numpy.linspace``."""
    on(device)
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if isinstance(start, ndarray) or isinstance(stop, ndarray) or axis != 0 or num > LARGE:
        parts = num - 1 if endpoint else num
        ends = [_ndarray._operand(value) for value in (start, stop)]
        kind = numpy.result_type(*[value if _ndarray.is_weak(value) else value.dtype for value in ends], 1.0)
        # Differences of integers would wrap around.
        first, last = (
            value.astype(kind, copy=False) if isinstance(value, ndarray) else kind.type(value) for value in ends
        )
        delta = last - first
        steps = positions(num).reshape((num, *[1] * getattr(delta, "ndim", 0))).astype(kind)
        step: Any = delta / parts if parts > 0 else numpy.nan
        if parts == 0:
            way = steps * delta
        elif isinstance(step, ndarray):
            operands = step == 0, steps / parts * delta, steps * step  # a step may be too small for its type
            shape = numpy.broadcast_shapes(steps.shape, step.shape)
            kinds = (numpy.dtype(bool), kind, kind)
            way = _lazy.pending(_lazy.make_node("where", operands, kinds, kind, shape), operands)
        else:
            way = steps / parts * delta if step == 0 else steps * step
        made = way + first
        if endpoint and num > 1:
            setitem(made, -1, last)
        to = kind if dtype is None else known_type(dtype)
        if to.kind in "iu":
            made = UFUNCS["floor"](made)
        made = made.astype(to, copy=False)
        if axis:
            made = made.transpose(*_moved_first(made.ndim, axis))
        return (made, step) if retstep else made
    if retstep:
        values, step = numpy.linspace(start, stop, num, endpoint=endpoint, retstep=True, dtype=dtype)
        return array(values), step
    return array(numpy.linspace(start, stop, num, endpoint=endpoint, dtype=dtype))


def _moved_first(ndim: int, axis: int) -> list[int]:
    order = list(range(1, ndim))
    order.insert(axis % ndim, 0)
    return order


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> ndarray:
    """Values evenly spaced on a logarithmic scale, as ``numpy.logspace``."""
    if not isinstance(base, (float, int)) and numpy.ndim(base):  # a base for each sequence
        given = [on_device(one) for one in (start, stop, base)]
        rank = len(numpy.broadcast_shapes(*[one.shape for one in given]))
        start, stop, base = (one.reshape((1,) * (rank - one.ndim) + one.shape) for one in given)
        extents = list(base.shape)
        extents.insert(axis % (rank + 1), 1)
        base = base.reshape(extents)
    made = UFUNCS["power"](base, linspace(start, stop, num, endpoint, axis=axis))
    result: ndarray = made if dtype is None else made.astype(dtype)
    return result


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> ndarray:
    """A geometric progression, as ``numpy.geomspace``. The host computes it; it waits for ends that are arrays."""
    first, last = (one.to_numpy() if isinstance(one, ndarray) else one for one in (start, stop))
    return array(numpy.geomspace(first, last, num, endpoint, dtype, axis))


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, order: Any = "C", *, device: Any = None
) -> ndarray:
    """Ones on a diagonal, as ``numpy.eye``."""
    if order != "C" and is_column_major(order):
        return eye(N if M is None else M, N, -k, dtype, device=device).transpose()
    made = zeros((N, N if M is None else M), dtype, device=device)
    columns = made.shape[1]
    length = min(N, columns - k) if k >= 0 else min(N + k, columns)
    if length > 0:
        start = k if k >= 0 else -k * columns
        write(made.reshape(-1)[start : start + (length - 1) * (columns + 1) + 1 : columns + 1], made.dtype.type(1))
    return made


def identity(n: int, dtype: Any = None) -> ndarray:
    """Ones on the diagonal, as ``numpy.identity``."""
    return eye(n, dtype=dtype)


def _from_diagonal(shape: tuple[int, ...]) -> ndarray:
    """How far right of the diagonal the elements of matrices are."""
    return arange(shape[-1]) - arange(shape[-2]).reshape((-1, 1))


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> ndarray:
    """Ones at and below a diagonal, as ``numpy.tri``."""
    return (_from_diagonal((N, N if M is None else M)) <= k).astype(dtype)


def _triangle(x: Any, keep: Any) -> ndarray:
    values = on_device(x)
    if values.ndim == 0:
        raise IndexError("tuple index out of range: a matrix has at least two dimensions")
    if values.ndim == 1:
        values = _ndarray.broadcast(values, (values.size, values.size))
    away = _from_diagonal(values.shape)
    kinds = (numpy.dtype(bool), values.dtype, values.dtype)
    node = _lazy.make_node("where", (keep(away), values, values.dtype.type(0)), kinds, values.dtype, values.shape)
    return _lazy.pending(node, (away, values))


def tril(m: Any, k: int = 0) -> ndarray:
    """The elements at and below a diagonal, as ``numpy.tril``."""
    return _triangle(m, lambda away: away <= k)


def triu(m: Any, k: int = 0) -> ndarray:
    """The elements at and above a diagonal, as ``numpy.triu``."""
    return _triangle(m, lambda away: away >= k)


def diag(v: Any, k: int = 0) -> ndarray:
    """The diagonal of a matrix, or a matrix with that diagonal, as ``numpy.diag``."""
    values = on_device(v)
    if values.ndim == 2:
        return values.diagonal(k)
    if values.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = values.size + abs(k)
    made = zeros((n, n), values.dtype)
    start = k if k >= 0 else -k * n
    if values.size:
        write(made.reshape(-1)[start : start + (values.size - 1) * (n + 1) + 1 : n + 1], values)
    return made


def diagflat(v: Any, k: int = 0) -> ndarray:
    """A matrix with these elements on its diagonal, as ``numpy.diagflat``."""
    return diag(on_device(v).ravel(), k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> ndarray:
    """Powers of numbers, as ``numpy.vander``."""
    values = on_device(x)
    if values.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = values.size if N is None else N
    powers = arange(count) if increasing else arange(count)[::-1]
    made: ndarray = values.reshape((-1, 1)) ** powers
    return made


def meshgrid(*arrays: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[ndarray, ...]:
    """Coordinates of a grid, as ``numpy.meshgrid``."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    given = [on_device(one) for one in arrays]
    n = len(given)
    found = []
    for k, one in enumerate(given):
        axis = 1 - k if indexing == "xy" and k < 2 and n > 1 else k
        found.append(one.reshape(tuple([-1 if j == axis else 1 for j in range(n)])))
    if not sparse:
        shape = numpy.broadcast_shapes(*[one.shape for one in found])
        found = [_ndarray.broadcast(one, shape) for one in found]
    return tuple([one.copy() if copy else one for one in found])


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The indices of a grid, as ``numpy.indices``."""
    parts = meshgrid(*[arange(n, dtype=dtype) for n in dimensions], indexing="ij", sparse=sparse)
    if sparse:
        return parts
    made = empty((len(parts), *dimensions), dtype)
    for k, part in enumerate(parts):
        write(made[k], part)
    return made


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **more: Any) -> Any:
    """What a function makes of the indices of a grid, as ``numpy.fromfunction``."""
    return function(*meshgrid(*[arange(n, dtype=dtype) for n in shape], indexing="ij"), **more)


def copy(a: Any, order: Any = "K", subok: bool = False) -> ndarray:
    """As ``numpy.copy``."""
    made: ndarray = copied(on_device(a), order)
    return made
