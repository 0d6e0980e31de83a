"""Functions of the program's that are applied to parts of arrays, and bits in bytes."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy

from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import reduce
from cupola.numpy._ndarray import array, broadcast, known_type, ndarray, on_device, one_axis
from cupola.numpy.functions._shapes import broadcast_arrays, concatenate, expand_dims, moveaxis, stack

__all__ = ["apply_along_axis", "apply_over_axes", "packbits", "unpackbits", "vectorize"]


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> ndarray:
    """Apply a function to each row along an axis, one after the other, as ``numpy.apply_along_axis``."""
    values = on_device(arr)
    if not -values.ndim <= axis < values.ndim:
        raise numpy.exceptions.AxisError(axis, values.ndim)
    rows = moveaxis(values, axis, -1)
    outer = rows.shape[:-1]
    if not math.prod(outer):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    parts = [on_device(func1d(row, *args, **kwargs)) for row in rows.reshape((math.prod(outer), rows.shape[-1]))]
    made = stack(parts).reshape((*outer, *parts[0].shape))
    more = parts[0].ndim
    first = axis % values.ndim
    return moveaxis(made, range(len(outer), len(outer) + more), range(first, first + more)) if more else made


def apply_over_axes(func: Any, a: Any, axes: Any) -> ndarray:
    """Apply a reduction to one axis after the other, as ``numpy.apply_over_axes``."""
    values = on_device(a)
    count = values.ndim
    for axis in (axes,) if isinstance(axes, int) else axes:
        place = one_axis(axis, count)
        found = on_device(func(values, place))
        values = found if found.ndim == count else expand_dims(found, place)
        if values.ndim != count:
            raise ValueError("function is not returning an array of the correct shape")
    return values


class vectorize:
    """A function of numbers as a function of arrays, as ``numpy.vectorize``.

    The function is not called for each element but once, with arrays: its operations and functions of
    ``cupola.numpy`` are elementwise anyway. It cannot branch by values: ``where(condition, a, b)`` does.

    Parameters
    ----------
    pyfunc : callable
        The function.
    otypes : str or list of dtypes, optional
        Types of the results.
    doc : str, optional
        The documentation.
    excluded : set of int or str, optional
        Arguments that it gets as they are.
    cache : bool, optional
        Makes no difference.
    signature : None
        Functions of rows are not there: `apply_along_axis` is.
    """

    def __init__(
        self,
        pyfunc: Any = None,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: Any = None,
    ) -> None:
        if signature is not None:
            raise NotImplementedError("vectorize(signature=) is not in cupola.numpy: apply_along_axis and einsum are")
        self.pyfunc, self.excluded = pyfunc, set(excluded or ())
        self.otypes = None if otypes is None else [known_type(one) for one in otypes]
        self.__doc__ = doc or getattr(pyfunc, "__doc__", None)
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is None:  # a decorator with arguments
            self.__init__(args[0], self.otypes, None, self.excluded)  # type: ignore[misc]
            return self
        places = [place for place in range(len(args)) if place not in self.excluded]
        names = [name for name in kwargs if name not in self.excluded]
        given = [on_device(args[place]) for place in places] + [on_device(kwargs[name]) for name in names]
        whole = broadcast_arrays(*given)
        arguments: list[Any] = list(args)
        for place, one in zip(places, whole, strict=False):
            arguments[place] = one
        keywords = {**kwargs, **dict(zip(names, whole[len(places) :], strict=True))}
        try:
            found = self.pyfunc(*arguments, **keywords)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"vectorize calls {self.__name__}() once, with arrays, and it raises {type(error).__name__}: {error}. "
                "Write where(condition, a, b) in place of branches, and functions of cupola.numpy in place of those of "
                "math; numpy.vectorize calls it for each element, on the host"
            ) from error
        shape = numpy.broadcast_shapes(*[one.shape for one in given])
        results = found if isinstance(found, tuple) else (found,)
        types: list[Any] = [None] * len(results) if self.otypes is None else list(self.otypes)
        made = [
            broadcast(value if to is None else value.astype(to, copy=False), shape)
            for value, to in zip(map(on_device, results), types, strict=True)
        ]
        return tuple(made) if isinstance(found, tuple) else made[0]


_SHIFTS = {"big": [7, 6, 5, 4, 3, 2, 1, 0], "little": [0, 1, 2, 3, 4, 5, 6, 7]}


def _shifts(bitorder: str) -> ndarray:
    if bitorder not in _SHIFTS:
        raise ValueError("'order' must be either 'little' or 'big'")
    return array(_SHIFTS[bitorder], numpy.uint8)


def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> ndarray:
    """Eight elements in a byte each, as ``numpy.packbits``."""
    shifts = _shifts(bitorder)
    values = on_device(a)
    if values.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    rows = values.reshape(-1) if axis is None or values.ndim == 0 else moveaxis(values, operator.index(axis), -1)
    bits: Any = UFUNCS["not_equal"](rows, 0).astype(numpy.uint8)
    if rows.shape[-1] % 8:
        bits = concatenate([bits, array(numpy.zeros((*rows.shape[:-1], -rows.shape[-1] % 8), numpy.uint8))], -1)
    placed = bits.reshape((*rows.shape[:-1], bits.shape[-1] // 8, 8)) << shifts
    made = reduce("sum", placed, placed.ndim - 1, numpy.dtype(numpy.uint8), None, False)
    return made if axis is None or values.ndim == 0 else moveaxis(made, -1, axis)


def unpackbits(a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> ndarray:
    """A byte for each bit, as ``numpy.unpackbits``."""
    shifts = _shifts(bitorder)
    values = on_device(a)
    if values.dtype != numpy.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    rows: Any = values.reshape(-1) if axis is None else moveaxis(values, operator.index(axis), -1)
    bits = (rows.reshape((*rows.shape, 1)) >> shifts) & 1
    bits = bits.reshape((*rows.shape[:-1], 8 * rows.shape[-1]))
    if count is not None:
        kept = count if count >= 0 else bits.shape[-1] + count
        if kept < 0:
            raise ValueError(f"-count larger than number of elements: {count}")
        if kept > bits.shape[-1]:
            more = numpy.zeros((*bits.shape[:-1], kept - bits.shape[-1]), numpy.uint8)
            bits = concatenate([bits, array(more)], -1)
        bits = bits[..., :kept]
    return bits if axis is None else moveaxis(bits, -1, axis)
