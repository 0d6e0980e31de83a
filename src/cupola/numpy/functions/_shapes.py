"""Functions that arrange elements in another way: views where there are some, else copies."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy

from cupola.numpy import _ndarray
from cupola.numpy._index import getitem, setitem
from cupola.numpy._known import NAMESPACE
from cupola.numpy._lazy import write
from cupola.numpy._ndarray import _axes, axis_or_all, broadcast, empty, known_type, ndarray, on_device, one_axis
from cupola.numpy._order import in_order
from cupola.numpy.functions._creation import full

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "column_stack", "concat", "concatenate", "delete", "dsplit", "dstack", "expand_dims", "flip",
    "fliplr", "flipud", "hsplit", "hstack", "insert", "matrix_transpose", "moveaxis", "ndim", "pad", "permute_dims",
    "ravel", "repeat", "require", "reshape", "resize", "roll", "rollaxis", "rot90", "shape", "size", "split", "squeeze",
    "stack", "swapaxes", "tile", "transpose", "trim_zeros", "unstack", "vsplit", "vstack",
]  # fmt: skip


def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> ndarray:
    """As ``numpy.reshape``: a view if there is one."""
    return on_device(a).reshape(shape, order=order, copy=copy)


def transpose(a: Any, axes: Any = None) -> ndarray:
    """As ``numpy.transpose``: a view."""
    return on_device(a).transpose(axes)


def permute_dims(a: Any, axes: Any) -> ndarray:
    """As ``numpy.permute_dims``: a view."""
    return on_device(a).transpose(axes)


def matrix_transpose(x: Any, /) -> ndarray:
    """As ``numpy.matrix_transpose``: a view."""
    return on_device(x).mT


def ravel(a: Any, order: str = "C") -> ndarray:
    """As ``numpy.ravel``: a view if there is one."""
    return on_device(a).ravel(order)


def squeeze(a: Any, axis: Any = None) -> ndarray:
    """As ``numpy.squeeze``: a view."""
    return on_device(a).squeeze(axis)


def expand_dims(a: Any, axis: Any) -> ndarray:
    """As ``numpy.expand_dims``: a view with dimensions of one element."""
    values = on_device(a)
    axis = axis if isinstance(axis, (tuple, list)) else (operator.index(axis),)
    count = len(axis)
    axes = _axes(axis, values.ndim + count)
    return values._part(tuple([None if i in axes else slice(None) for i in range(values.ndim + count)]))


def moveaxis(a: Any, source: Any, destination: Any) -> ndarray:
    """As ``numpy.moveaxis``: a view."""
    values = on_device(a)
    sources, places = _axes(source, values.ndim), _axes(destination, values.ndim)
    if len(sources) != len(places):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    axes = [axis for axis in range(values.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        axes.insert(place, axis)
    return values.transpose(axes)


def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
    """As ``numpy.rollaxis``: a view."""
    values = on_device(a)
    axis = one_axis(axis, values.ndim)
    start = start + values.ndim if start < 0 else start
    return moveaxis(values, axis, start - 1 if axis < start else start)


def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """As ``numpy.swapaxes``: a view."""
    values = on_device(a)
    axes = list(range(values.ndim))
    (one,), (other,) = _axes(axis1, values.ndim), _axes(axis2, values.ndim)
    axes[one], axes[other] = other, one
    return values.transpose(axes)


def flip(m: Any, axis: Any = None) -> ndarray:
    """As ``numpy.flip``: a view."""
    values = on_device(m)
    axes = _axes(axis, values.ndim)
    return values._part(tuple([slice(None, None, -1) if i in axes else slice(None) for i in range(values.ndim)]))


def fliplr(m: Any) -> ndarray:
    """As ``numpy.fliplr``: a view."""
    return flip(m, axis=1)


def flipud(m: Any) -> ndarray:
    """As ``numpy.flipud``: a view."""
    return flip(m, axis=0)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> ndarray:
    """As ``numpy.rot90``: a view."""
    values = on_device(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    if not all([-values.ndim <= axis < values.ndim for axis in axes]):
        raise ValueError(f"Axes={tuple(axes)} out of range for array of ndim={values.ndim}.")
    one, other = (axis % values.ndim for axis in axes)
    if one == other:
        raise ValueError("Axes must be different.")
    if k % 4 == 0:
        return values
    if k % 4 == 2:
        return flip(flip(values, axis=one), axis=other)
    swapped = list(range(values.ndim))
    swapped[one], swapped[other] = swapped[other], swapped[one]
    return flip(values, axis=other).transpose(swapped) if k % 4 == 1 else flip(values.transpose(swapped), axis=other)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> ndarray:
    """As ``numpy.broadcast_to``: a view, in which elements appear several times."""
    return broadcast(on_device(array), (shape,) if isinstance(shape, int) else tuple(shape))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """As ``numpy.broadcast_shapes``."""
    return numpy.broadcast_shapes(*shapes)


def broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple[ndarray, ...]:
    """As ``numpy.broadcast_arrays``: views of the same shape."""
    given = [on_device(one) for one in arrays]
    shape = numpy.broadcast_shapes(*[one.shape for one in given])
    return tuple([broadcast(one, shape) for one in given])


def shape(a: Any) -> tuple[int, ...]:
    """The extents."""
    return a.shape if isinstance(a, ndarray) else numpy.shape(a)


def ndim(a: Any) -> int:
    """The number of dimensions."""
    return a.ndim if isinstance(a, ndarray) else numpy.ndim(a)


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or of those along axes."""
    extents = shape(a)
    return math.prod([extents[one] for one in _axes(axis, len(extents))])


def require(a: Any, dtype: Any = None, requirements: Any = None) -> ndarray:
    """As ``numpy.require``; arrays here are writable and aligned."""
    found = on_device(a) if dtype is None else on_device(a).astype(dtype, copy=False)
    given = [requirements] if isinstance(requirements, str) else requirements or ()
    for one in given:
        if one.upper() not in _REQUIREMENTS:
            raise KeyError(f"{one!r} is none of the requirements: {', '.join(_REQUIREMENTS)}")
    wanted = {_REQUIREMENTS[one.upper()] for one in given}
    if {"C", "F"} <= wanted:
        raise ValueError('Cannot specify both "C" and "F" order')
    (order,) = wanted & {"C", "F"} or {"K"}
    made: ndarray = in_order(found, order)
    return made.copy(order) if "O" in wanted and made.base is not None else made


_REQUIREMENTS = {
    name: names[0] for names in (
        ("C", "C_CONTIGUOUS", "CONTIGUOUS"), ("F", "F_CONTIGUOUS", "FORTRAN"), ("A", "ALIGNED"), ("W", "WRITEABLE"),
        ("O", "OWNDATA"), ("E", "ENSUREARRAY"),
    ) for name in names
}  # fmt: skip


# --- joining ----------------------------------------------------------------------------------------------------


def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> ndarray:
    """As ``numpy.concatenate``."""
    given = [on_device(one) for one in arrays]
    if not given:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        given, axis = [one.ravel() for one in given], 0
    if any([one.ndim == 0 for one in given]):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    first = given[0]
    axis = one_axis(axis, first.ndim)
    for k, one in enumerate(given):
        if one.ndim != first.ndim:
            raise ValueError(
                "all the input array dimensions must match exactly, but along dimension 0, the array at index 0 has "
                f"{first.ndim} dimension(s) and the array at index {k} has {one.ndim} dimension(s)"
            )
        if any([i != axis and one.shape[i] != first.shape[i] for i in range(first.ndim)]):
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match exactly, but the array at "
                f"index 0 has shape {first.shape} and the array at index {k} has shape {one.shape}"
            )
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    to = known_type(numpy.result_type(*[one.dtype for one in given]) if dtype is None else dtype)
    to = to if out is None else out.dtype
    for one in given:
        if one.dtype != to and not numpy.can_cast(one.dtype, to, casting):
            raise TypeError(f"Cannot cast array data from {one.dtype!r} to {to!r} according to the rule {casting!r}")
    extent = sum([one.shape[axis] for one in given])
    whole = (*first.shape[:axis], extent, *first.shape[axis + 1 :])
    if out is not None and out.shape != whole:
        raise ValueError(f"out has shape {out.shape}, the result {whole}")
    made = empty(whole, to) if out is None else out
    start = 0
    for one in given:
        end = start + one.shape[axis]
        if one.size:
            write(made._part((*[slice(None)] * axis, slice(start, end))), one)
        start = end
    return made


concat = concatenate


def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> ndarray:
    """As ``numpy.stack``."""
    given = [on_device(one) for one in arrays]
    if not given:
        raise ValueError("need at least one array to stack")
    if len({one.shape for one in given}) > 1:
        raise ValueError("all input arrays must have the same shape")
    axis = one_axis(axis, given[0].ndim + 1)
    return concatenate([expand_dims(one, axis) for one in given], axis, out, dtype=dtype, casting=casting)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """As ``numpy.unstack``: the parts along an axis, views."""
    values = moveaxis(x, operator.index(axis), 0)
    return tuple([values._part(k) for k in range(len(values))])


def atleast_1d(*arrays: Any) -> Any:
    """As ``numpy.atleast_1d``."""
    found = tuple([x.reshape(1) if x.ndim == 0 else x for x in map(on_device, arrays)])
    return found[0] if len(found) == 1 else found


def atleast_2d(*arrays: Any) -> Any:
    """As ``numpy.atleast_2d``."""
    found = tuple([x if x.ndim > 1 else x.reshape((1, -1)) for x in map(on_device, arrays)])
    return found[0] if len(found) == 1 else found


def atleast_3d(*arrays: Any) -> Any:
    """As ``numpy.atleast_3d``."""
    found = tuple([
        x if x.ndim > 2 else x._part((..., None)) if x.ndim == 2 else x.reshape((1, -1, 1)) for x in map(on_device,
        arrays)
    ])  # fmt: skip
    return found[0] if len(found) == 1 else found


def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> ndarray:
    """As ``numpy.vstack``."""
    return concatenate([atleast_2d(one) for one in tup], 0, dtype=dtype, casting=casting)


def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> ndarray:
    """As ``numpy.hstack``."""
    given = [atleast_1d(one) for one in tup]
    return concatenate(given, 0 if given and given[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup: Any) -> ndarray:
    """As ``numpy.dstack``."""
    return concatenate([atleast_3d(one) for one in tup], 2)


def column_stack(tup: Any) -> ndarray:
    """As ``numpy.column_stack``."""
    return concatenate([one.reshape((-1, 1)) if one.ndim < 2 else one for one in map(on_device, tup)], 1)


def block(arrays: Any) -> ndarray:
    """As ``numpy.block``: nested lists of arrays, joined."""

    def depth(one: Any) -> int:
        return 1 + depth(one[0]) if isinstance(one, list) else 0

    def most(one: Any) -> int:
        return max(map(most, one)) if isinstance(one, list) else on_device(one).ndim

    levels = depth(arrays)
    rank = max(levels, most(arrays))

    def join(one: Any, level: int) -> ndarray:
        if not isinstance(one, list):
            x = on_device(one)
            return x.reshape((*[1] * (rank - x.ndim), *x.shape))
        return concatenate([join(part, level + 1) for part in one], rank - levels + level)

    return join(arrays, 0)


def append(arr: Any, values: Any, axis: int | None = None) -> ndarray:
    """As ``numpy.append``."""
    return concatenate([arr, values], axis)


# --- parts ------------------------------------------------------------------------------------------------------


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """As ``numpy.array_split``: views."""
    values = on_device(ary)
    extent = values.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, more = divmod(extent, indices_or_sections)
        ends = [k * each + min(k, more) for k in range(indices_or_sections + 1)]
    else:
        ends = [0, *indices_or_sections, extent]
    axis = one_axis(axis, values.ndim)
    return [values._part((*[slice(None)] * axis, slice(ends[k], ends[k + 1]))) for k in range(len(ends) - 1)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """As ``numpy.split``: views of equal size."""
    values = on_device(ary)
    if isinstance(indices_or_sections, int) and values.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(values, indices_or_sections, axis)


def _at_least(dimensions: int, x: Any, name: str) -> ndarray:
    values = on_device(x)
    if values.ndim < dimensions:
        raise ValueError(f"{name} only works on arrays of {dimensions} or more dimensions")
    return values


def hsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """As ``numpy.hsplit``."""
    values = _at_least(1, ary, "hsplit")
    return split(values, indices_or_sections, 1 if values.ndim > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """As ``numpy.vsplit``."""
    return split(_at_least(2, ary, "vsplit"), indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """As ``numpy.dsplit``."""
    return split(_at_least(3, ary, "dsplit"), indices_or_sections, 2)


def delete(arr: Any, obj: Any, axis: int | None = None) -> ndarray:
    """As ``numpy.delete``; the places are numbers of the host: an int, a slice or a list."""
    values = on_device(arr)
    if axis is None:
        values, axis = values.ravel(), 0
    axis = one_axis(axis, values.ndim)
    keep = numpy.delete(numpy.arange(values.shape[axis]), obj.to_numpy() if isinstance(obj, ndarray) else obj)
    return getitem(values, (*[slice(None)] * axis, keep.tolist()))


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> ndarray:
    """As ``numpy.insert``; the places are numbers of the host: an int, a slice or a list."""
    given = on_device(arr)
    if axis is None:
        given, axis = given.ravel(), 0
    axis = one_axis(axis, given.ndim)
    extent = given.shape[axis]
    obj = obj.to_numpy() if isinstance(obj, ndarray) else obj
    new = _ndarray._operand(values, given.dtype)
    numbers = numpy.arange(extent)
    single = isinstance(obj, int)
    many = 1
    if isinstance(new, ndarray) and new.ndim:
        if single:
            part = new.reshape((*[1] * (given.ndim - new.ndim), *new.shape)) if new.ndim < given.ndim else new
            new = moveaxis(part, 0, axis)
        many = new.shape[axis] if new.ndim == given.ndim else new.size if given.ndim == 1 else 1
    places = numpy.insert(numbers, [obj] * many if single else obj, -1)
    made = empty((*given.shape[:axis], len(places), *given.shape[axis + 1 :]), given.dtype)
    before = (slice(None),) * axis
    setitem(made, (*before, numpy.flatnonzero(places >= 0).tolist()), given)
    setitem(made, (*before, numpy.flatnonzero(places < 0).tolist()), new)
    return made


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> ndarray:
    """As ``numpy.trim_zeros``: a view. Waits for the elements."""
    values = on_device(filt)
    if trim.lower() not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = _axes(axis, values.ndim)
    if not axes:
        return values
    found = numpy.nonzero(values.to_numpy())
    key = []
    for one, places in enumerate(found):
        if one not in axes:
            key.append(slice(None))
            continue
        start, end = (int(places.min()), int(places.max()) + 1) if len(places) else (values.shape[one],) * 2
        start = start if "f" in trim.lower() else 0
        end = end if "b" in trim.lower() else values.shape[one]
        key.append(slice(start, end if len(places) else start))
    return values._part(tuple(key))


# --- repetition ---------------------------------------------------------------------------------------------------


def repeat(a: Any, repeats: Any, axis: int | None = None) -> ndarray:
    """As ``numpy.repeat``; an array of repeats is waited for."""
    values = on_device(a)
    axis = axis_or_all(axis, values.ndim)
    if axis is None:
        values, axis = values.ravel(), 0
    axis = one_axis(axis, values.ndim)
    if isinstance(repeats, ndarray):
        repeats = repeats.to_numpy()
    counts = numpy.asarray(repeats)
    if counts.size == 1:
        times = int(counts.reshape(-1)[0])
        if times < 0:
            raise ValueError("repeats may not contain negative values.")
        part = expand_dims(values, axis + 1)
        wide = broadcast(part, (*part.shape[: axis + 1], times, *part.shape[axis + 2 :]))
        return wide.copy().reshape((*values.shape[:axis], values.shape[axis] * times, *values.shape[axis + 1 :]))
    places = numpy.repeat(numpy.arange(values.shape[axis]), counts)
    return getitem(values, (*[slice(None)] * axis, places.tolist()))


def tile(A: Any, reps: Any) -> ndarray:
    """As ``numpy.tile``."""
    values = on_device(A)
    times = (reps,) if isinstance(reps, int) else tuple(reps)
    rank = max(values.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    extents = (1,) * (rank - values.ndim) + values.shape
    apart = values.reshape(tuple([part for extent in extents for part in (1, extent)]))
    wide = broadcast(apart, tuple([part for pair in zip(times, extents, strict=True) for part in pair]))
    return wide.copy().reshape(tuple([time * extent for time, extent in zip(times, extents, strict=True)]))


def roll(a: Any, shift: Any, axis: Any = None) -> ndarray:
    """As ``numpy.roll``."""
    values = on_device(a)
    if axis is None:
        return roll(values.ravel(), shift, axis=0).reshape(values.shape)
    if type(shift) is int and type(axis) is int:
        steps: Any = ((shift, axis),)
    elif type(shift) is tuple and type(axis) is tuple and len(shift) == len(axis):
        steps = zip(shift, axis, strict=True)
    else:
        shifts, axes = numpy.broadcast_arrays(shift, axis)
        steps = zip(shifts.reshape(-1).tolist(), axes.reshape(-1).tolist(), strict=True)
    total = [0] * values.ndim
    for by, where in steps:
        if not -values.ndim <= where < values.ndim:
            raise numpy.exceptions.AxisError(where, values.ndim)
        total[where] += by
    made = empty(values.shape, values.dtype)
    if values.size == 0:
        return made
    pieces: list[tuple[tuple[slice, ...], tuple[slice, ...]]] = [((), ())]
    for by, extent in zip(total, values.shape, strict=True):
        by %= extent
        cuts = [(slice(by, None), slice(0, extent - by))]
        if by:
            cuts.append((slice(0, by), slice(extent - by, None)))
        pieces = [((*to, x), (*source, b)) for to, source in pieces for x, b in cuts]
    for to, source in pieces:
        write(made._part(to), values._part(source))
    return made


def resize(a: Any, new_shape: Any) -> ndarray:
    """As ``numpy.resize``: with repetitions."""
    values = on_device(a).ravel()
    wanted = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    count = math.prod(wanted)
    if any([extent < 0 for extent in wanted]):
        raise ValueError("all elements of `new_shape` must be non-negative")
    if values.size == 0:
        return full(wanted, 0, values.dtype)
    return tile(values, -(-count // values.size))._part(slice(0, count)).reshape(wanted)


def _pad_by(
    values: ndarray, widths: list[tuple[int, int]], mode: str, *, stat_length: Any = None, end_values: Any = 0
) -> ndarray:
    """Padding with a statistic of the elements at each edge, or with a ramp to other values."""
    ends = numpy.broadcast_to(numpy.asarray(end_values), (values.ndim, 2))
    lengths = numpy.broadcast_to(numpy.asarray(stat_length, object), (values.ndim, 2))
    (namespace,) = NAMESPACE
    for axis, (a, b) in enumerate(widths):
        before = (slice(None),) * axis
        n = values.shape[axis]
        parts: list[Any] = [values]
        for side, (width, at_end) in enumerate(((a, False), (b, True))):
            if width == 0:
                continue
            edge = values._part((*before, slice(n - 1, n) if at_end else slice(0, 1)))
            if mode == "linear_ramp":
                end = ends[axis, side]
                steps = numpy.arange(width) if not at_end else numpy.arange(width - 1, -1, -1)
                share = on_device((steps / width).tolist()).reshape((-1, *[1] * (values.ndim - 1 - axis)))
                made = (edge - end) * share + end
                if values.dtype.kind in "iu":
                    made = namespace.floor(made)
                made = made.astype(values.dtype, copy=False)
            else:
                count = n if lengths[axis, side] is None else min(int(lengths[axis, side]), n)
                if count < 1:
                    raise ValueError(f"stat_length must be at least 1, got {count}")
                of = values._part((*before, slice(n - count, n) if at_end else slice(0, count)))
                name = {"maximum": "max", "minimum": "min"}.get(mode, mode)
                made = getattr(namespace, name)(of, axis=axis, keepdims=True)
                if values.dtype.kind in "iu":
                    made = namespace.rint(made)
                made = broadcast_to(
                    made.astype(values.dtype, copy=False),
                    (*values.shape[:axis], width, *values.shape[axis + 1 :]),
                )
            parts = [*parts, made] if at_end else [made, *parts]
        values = concatenate(parts, axis)
    return values


def _pad_oddly(values: ndarray, widths: list[tuple[int, int]], mode: str) -> ndarray:
    """Padding by reflection at the points of the edges: twice the edge less the reflected element."""
    for axis, (a, b) in enumerate(widths):
        period = values.shape[axis] - (mode == "reflect")
        while a or b:
            n = values.shape[axis]
            before = (slice(None),) * axis
            most = (n - (mode == "reflect")) // max(period, 1) * period  # whole periods
            if most < 1:
                return pad(values, [(0, 0)] * axis + [(a, b)] + [(0, 0)] * (values.ndim - axis - 1), "edge")
            left, right = min(a, most), min(b, most)
            skip = int(mode == "reflect")
            first, last = values._part((*before, slice(0, 1))), values._part((*before, slice(n - 1, n)))
            parts: list[Any] = [values]
            if left:
                part = values._part((*before, slice(skip, skip + left)))
                parts.insert(0, 2 * first - part._part((*before, slice(None, None, -1))))
            if right:
                part = values._part((*before, slice(n - skip - right, n - skip)))
                parts.append(2 * last - part._part((*before, slice(None, None, -1))))
            values = concatenate(parts, axis)
            a, b = a - left, b - right
    return values


def pad(array: Any, pad_width: Any, mode: str = "constant", **more: Any) -> ndarray:
    """As ``numpy.pad``, with NumPy's modes, but no functions."""
    values = on_device(array)
    if values.ndim == 0:
        return values.copy()
    if isinstance(pad_width, dict):
        each = [pad_width.get(k, pad_width.get(k - values.ndim, (0, 0))) for k in range(values.ndim)]
        pad_width = [(one, one) if isinstance(one, int) else one for one in each]
    widths = [(int(a), int(b)) for a, b in numpy.broadcast_to(numpy.asarray(pad_width), (values.ndim, 2))]
    if callable(mode):
        raise TypeError("cupola.numpy.pad takes the names of NumPy's modes; a function would have to run on the host")
    if any([count < 0 for pair in widths for count in pair]):
        raise ValueError("index can't contain negative values")
    if mode in ("linear_ramp", "maximum", "mean", "median", "minimum"):
        return _pad_by(values, widths, mode, **more)
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap", "empty"):
        raise ValueError(f"mode {mode!r} is not supported")
    allowed = {"constant": "constant_values", "reflect": "reflect_type", "symmetric": "reflect_type"}.get(mode)
    if more.keys() - {allowed}:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {set(more) - {allowed}}")
    if mode in ("reflect", "symmetric") and more.get("reflect_type", "even") == "odd":
        return _pad_oddly(values, widths, mode)
    if mode in ("constant", "empty"):
        made = empty([a + n + b for (a, b), n in zip(widths, values.shape, strict=True)], values.dtype)
        constants = more.get("constant_values", 0)
        constants = constants.to_numpy() if isinstance(constants, ndarray) else numpy.asarray(constants)
        fill = numpy.broadcast_to(
            constants, (values.ndim, 2)
        ).tolist()  # numbers of Python, which must fit into the type
        inner = tuple([slice(a, a + n) for (a, _), n in zip(widths, values.shape, strict=True)])
        if mode == "constant":
            write(made, values.dtype.type(fill[0][0]))
            if any([one is not fill[0][0] and one != fill[0][0] for pair in fill for one in pair]):
                for k, (a, _) in enumerate(widths):
                    before = (slice(None),) * k
                    write(made._part((*before, slice(0, a))), values.dtype.type(fill[k][0]))
                    write(made._part((*before, slice(a + values.shape[k], None))), values.dtype.type(fill[k][1]))
        write(made._part(inner), values)
        return made
    for axis, width in enumerate(widths):
        if width != (0, 0):
            places = numpy.pad(numpy.arange(values.shape[axis]), width, mode)  # type: ignore[call-overload]
            values = getitem(values, (*[slice(None)] * axis, places.tolist()))
    return values.copy()
