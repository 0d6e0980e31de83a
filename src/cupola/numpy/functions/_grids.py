"""Grids, and lists of indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from cupola.numpy._ndarray import array, ndarray, on_device
from cupola.numpy.functions._choosing import nonzero
from cupola.numpy.functions._creation import ones
from cupola.numpy.functions._shapes import broadcast_arrays, concatenate, stack

__all__ = [
    "c_", "diag_indices", "diag_indices_from", "diagonal", "mask_indices", "mgrid", "ndenumerate", "ndindex", "ogrid",
    "r_", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
]  # fmt: skip

ndindex = numpy.ndindex


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """The diagonal as a view, as ``numpy.diagonal``."""
    return on_device(a).diagonal(offset, axis1, axis2)


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Indices and elements, as ``numpy.ndenumerate``. The elements are copied to the host once."""
    return iter(numpy.ndenumerate(on_device(arr).to_numpy()))


def _indices(name: str) -> Any:
    theirs = getattr(numpy, name)

    def function(*args: Any, **kwargs: Any) -> tuple[ndarray, ...]:
        return tuple(map(array, theirs(*args, **kwargs)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As ``numpy.{name}``."
    return function


diag_indices, tril_indices, triu_indices = map(_indices, ("diag_indices", "tril_indices", "triu_indices"))


def diag_indices_from(arr: Any) -> Any:
    """The indices of the diagonal of an array, as ``numpy.diag_indices_from``."""
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len({*arr.shape}) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(arr.shape[0], arr.ndim)


def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """The indices of the lower triangle of an array, as ``numpy.tril_indices_from``."""
    return tril_indices(_matrix(arr)[0], k, arr.shape[1])


def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """The indices of the upper triangle of an array, as ``numpy.triu_indices_from``."""
    return triu_indices(_matrix(arr)[0], k, arr.shape[1])


def _matrix(arr: Any) -> tuple[int, ...]:
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    shape: tuple[int, ...] = arr.shape
    return shape


def mask_indices(n: int, mask_func: Any, k: Any = 0) -> Any:
    """The indices that a function leaves of a matrix of ones, as ``numpy.mask_indices``."""
    return nonzero(mask_func(ones((n, n), int), k))


class _Grid:
    """Points of a grid by slices, as the object of NumPy of that name."""

    def __init__(self, name: str, dense: bool) -> None:
        self.__name__, self._dense = name, dense

    def __getitem__(self, key: Any) -> Any:
        # The points along each axis are few, and a grid of them is made on the device.
        if not isinstance(key, tuple):
            return array(numpy.ogrid[key])
        axes = tuple(map(array, numpy.ogrid[key]))
        return stack(broadcast_arrays(*axes)) if self._dense and axes else axes

    def __repr__(self) -> str:
        return f"cupola.numpy.{self.__name__}"


mgrid, ogrid = _Grid("mgrid", True), _Grid("ogrid", False)


class _Joined:
    """Slices, numbers and arrays as one array, as the object of NumPy of that name."""

    def __init__(self, name: str, axis: int, least: int, first: int) -> None:
        self.__name__, self._plan = name, (axis, least, first)

    def __getitem__(self, key: Any) -> ndarray:
        axis, least, first = self._plan
        items = list(key) if isinstance(key, tuple) else [key]
        if items and isinstance(items[0], str):
            text = items.pop(0)
            try:
                numbers = [int(one) for one in text.split(",")]
            except ValueError:
                raise ValueError(
                    f"unknown special directive {text!r}: up to three integers with commas, and no matrices"
                ) from None
            axis, least, first = (*numbers, *(axis, least, first)[len(numbers) :])[:3]
        found: list[Any] = []
        arrays: list[ndarray] = []
        numbers_of: list[Any] = []
        for item in items:
            one = array(numpy.r_[item]) if isinstance(item, slice) else item
            weak = isinstance(one, (bool, int, float, complex))
            one = one if weak else on_device(one)
            (numbers_of if weak else arrays).append(one)
            found.append(one)
        to = numpy.result_type(*[one.dtype for one in arrays], *numbers_of) if found else None
        parts = [self._lifted(on_device(one).astype(to, copy=False), least, first) for one in found]
        return concatenate(parts, axis)

    def _lifted(self, part: ndarray, least: int, first: int) -> ndarray:
        """With as many dimensions as are asked for; those that it has begin at `first`."""
        if not part.ndim:
            return part.reshape((1,) * max(least, 1))
        more = max(least - part.ndim, 0)
        before = more if first == -1 else first + more + 1 if first < 0 else first
        if not 0 <= before <= more:
            before = more
        return part.reshape((1,) * before + part.shape + (1,) * (more - before))

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"cupola.numpy.{self.__name__}"


r_, c_ = _Joined("r_", 0, 1, -1), _Joined("c_", -1, 2, 0)
