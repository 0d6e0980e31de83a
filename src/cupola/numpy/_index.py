"""Indices of every kind, as NumPy has them: what they choose, read and written.

Ints, slices, ``...`` and None choose a view. With arrays of integers or of bool among them, elements are *gathered*:
the result reads the array through a layout in which the dimensions that indices go through have a stride of 0, and adds
the places of the indices. So it is an expression like others. Writing there scatters in the same way.

Indices may be arrays of NumPy, which are copied to the device. A key is named by the program, so
that is no silent copy.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy

from cupola.core.array._array import Array
from cupola.numpy import _faults, _lazy, _ndarray
from cupola.numpy._expression import INDEX
from cupola.numpy._lazy import pending, write
from cupola.numpy._ndarray import array, ndarray
from cupola.numpy._rows import nonzero


class Chosen(NamedTuple):
    """What a key with arrays chooses."""

    layout: ndarray  # a view of the shape of the result, with a stride of 0 where indices go through
    at: tuple[Any, ...]  # for each index its places, its extent, its stride and where faults are reported


def _is_basic(item: Any) -> bool:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return True
    if isinstance(item, (bool, numpy.bool_, ndarray, list, tuple, range, numpy.ndarray)):
        return False
    if isinstance(item, Array):
        raise TypeError("an index by a cupola.Array; cupola.numpy.asarray(x) makes it an array of cupola.numpy")
    try:
        operator.index(item)
    except TypeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are valid indices, "
            f"not {type(item).__name__}"
        ) from None
    return True


def getitem(x: ndarray, key: Any) -> ndarray:
    """What ``x[key]`` is: a view if there is one, else an expression of the elements."""
    keys = key if isinstance(key, tuple) else (key,)
    if all([_is_basic(item) for item in keys]):
        return x._part(key)
    if type(key) is numpy.ndarray and key.dtype == bool and key.shape == x.shape:
        key = array(key)
        keys = (key,)
    if len(keys) == 1 and isinstance(key, ndarray) and key.dtype == bool and key.ndim > 1 and key.shape == x.shape:
        x, keys = x.reshape(-1), (key.reshape(-1),)  # one index is quicker than several
    return gather(*choose(x, keys))


def setitem(x: ndarray, key: Any, value: Any) -> None:
    """``x[key] = value``: the value is broadcast and converted."""
    if isinstance(value, (list, tuple)):
        value = array(value, x.dtype)  # numbers that this type does not have are refused
    value = _ndarray._operand(value, x.dtype)
    keys = key if isinstance(key, tuple) else (key,)
    if all([_is_basic(item) for item in keys]):
        write(x if key is Ellipsis else x._part(key), value)
        return
    if type(key) is numpy.ndarray and key.dtype == bool and key.shape == x.shape:
        key = array(key)
        keys = (key,)
    if len(keys) == 1 and isinstance(key, ndarray) and key.dtype == bool and key.shape == x.shape:
        if getattr(value, "size", 1) == 1 and getattr(value, "ndim", 0) <= 1:
            kinds = (key.dtype, x.dtype, x.dtype)
            if isinstance(value, ndarray):
                value = value.reshape(())
            write(x, _lazy.make_node("where", (key, value, x), kinds, x.dtype, x.shape))
            return
        if x.is_contiguous:
            x, keys = x.reshape(-1), (key.reshape(-1),)
    layout, at = choose(x, keys)
    write(layout, value, at)


def gather(layout: ndarray, at: tuple[Any, ...]) -> ndarray:
    """The elements at these places."""
    operands = (layout._plain(), *at)
    kinds = tuple([operand.dtype for operand in operands])
    return pending(_lazy.make_node("gather", operands, kinds, layout.dtype, layout.shape))


def entry(index: ndarray, extent: int, stride: int) -> tuple[Any, ...]:
    """What a gather needs of one index."""
    if extent == 0 and index.size:
        raise IndexError("index is out of bounds for an axis of size 0")
    return index, numpy.int64(extent), numpy.int64(stride), _faults.report_address()


def _indices(item: Any, x: ndarray, axis: int) -> tuple[list[ndarray], int]:
    """The index arrays that one item of a key means, and how many dimensions they go through."""
    if not isinstance(item, ndarray):
        host = numpy.asarray(item)
        if host.size == 0 and host.dtype != bool:
            host = host.astype(numpy.int64)
        if host.dtype.kind in "iu" and axis < x.ndim and host.size:
            extent = x.shape[axis]
            for wrong in (host.min(), host.max()):
                if not -extent <= wrong < extent:
                    raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {extent}")
        if host.dtype.kind not in "biu":
            raise IndexError(f"arrays used as indices must be of integer (or boolean) type, not {host.dtype}")
        item = array(host)
    if item.dtype.kind not in "biu":
        raise IndexError(f"arrays used as indices must be of integer (or boolean) type, not {item.dtype}")
    if item.dtype != bool:
        return [item], 1
    for k, extent in enumerate(item.shape):
        # Where a mask has no elements, the standard lets it have none of them along any dimension.
        if axis + k >= x.ndim or extent not in (0, x.shape[axis + k]):
            size = x.shape[axis + k] if axis + k < x.ndim else 0
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + k}; size of axis is {size} but size of "
                f"corresponding boolean axis is {extent}"
            )
    return (list(nonzero(item)) if item.ndim else [nonzero(item.reshape(1))[0]]), item.ndim


def _used(item: Any) -> int:
    """How many dimensions of the array an item goes through."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, (bool, numpy.bool_)):
        return 0
    if isinstance(item, ndarray):
        return item.ndim if item.dtype == bool else 1
    if isinstance(item, (list, tuple, numpy.ndarray)):
        host = numpy.asarray(item)
        return host.ndim if host.dtype == bool else 1
    return 1


def choose(x: ndarray, keys: tuple[Any, ...]) -> Chosen:
    """What a key with arrays among its items chooses.

    The dimensions of the index arrays, broadcast together,
    stand where the arrays stand in the key if they are neighbors
    (ints among them count as arrays), else they come first.
    """
    used = sum([_used(item) for item in keys])
    if used > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {used} were indexed")
    dots = [k for k, item in enumerate(keys) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    rest: tuple[Any, ...] = (slice(None),) * (x.ndim - used)
    keys = keys[: dots[0]] + rest + keys[dots[0] + 1 :] if dots else keys + rest
    key: list[Any] = []  # of the view in which index arrays stand for whole dimensions
    kinds: list[str] = []  # of its dimensions: s for a slice, a for an array
    arrays: list[ndarray] = []
    spots: list[int] = []  # where arrays and ints are in the key
    axis = 0
    for spot, item in enumerate(keys):
        if item is None:
            key.append(None)
            kinds.append("s")
        elif isinstance(item, slice):
            key.append(item)
            kinds.append("s")
            axis += 1
        elif _is_basic(item):
            key.append(operator.index(item))
            spots.append(spot)
            axis += 1
        else:
            found, through = _indices(item, x, axis)
            key += [slice(None)] * through if through else [None]
            kinds += "a" * len(found)
            arrays += found
            spots.append(spot)
            axis += through
    view = x._part(tuple(key))
    try:
        broadcast = numpy.broadcast_shapes(*[one.shape for one in arrays])
    except ValueError:
        shapes = " ".join([str(one.shape) for one in arrays])
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    together = spots[-1] - spots[0] == len(spots) - 1
    first = len([item for item in keys[: spots[0]] if item is None or isinstance(item, slice)]) if together else 0
    slices = [k for k, kind in enumerate(kinds) if kind == "s"]
    before, behind = slices[:first], slices[first:]
    shape = [view.shape[k] for k in before] + list(broadcast) + [view.shape[k] for k in behind]
    strides = [view.strides[k] for k in before] + [0] * len(broadcast) + [view.strides[k] for k in behind]
    at: list[Any] = []
    for index, k in zip(arrays, [k for k, kind in enumerate(kinds) if kind == "a"], strict=True):
        if behind:
            index = index.reshape((*index.shape, *[1] * len(behind)))
        at += entry(index, view.shape[k], view.strides[k])
    return Chosen(view._view_of(shape, strides), tuple(at))


def along(x: ndarray, indices: ndarray, axis: int) -> Chosen:
    """The places of ``take_along_axis``: an index for each element of the result."""
    if x.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    axis = _ndarray.one_axis(axis, x.ndim)
    others = tuple([1 if k == axis else extent for k, extent in enumerate(x.shape)])
    try:
        shape = list(numpy.broadcast_shapes(others, indices.shape))
    except ValueError as error:
        raise IndexError(str(error)) from None
    x._compute_now()
    strides = [0 if k == axis or x.shape[k] == 1 else stride for k, stride in enumerate(x.strides)]
    return Chosen(x._view_of(shape, strides), entry(indices, x.shape[axis], x.strides[axis]))


_lazy.use(getitem=getitem, setitem=setitem, report_address=_faults.report_address)
assert numpy.intp == INDEX, "places are of the type of NumPy's indices"
