"""Views with other strides."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy
from numpy.lib.array_utils import normalize_axis_tuple

from cupola.numpy._ndarray import ndarray

__all__ = ["as_strided", "sliding_window_view"]


def as_strided(
    x: ndarray, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> ndarray:
    """The view with a shape and strides in bytes, which must stay in the memory of the array. It can be written to."""
    x._compute_now()
    extents = x.shape if shape is None else tuple(map(operator.index, numpy.atleast_1d(shape)))
    if strides is not None:
        steps = tuple(map(operator.index, strides))
    elif x.is_contiguous:
        steps = tuple(x.itemsize * math.prod(extents[k + 1 :]) for k in range(len(extents)))
    else:
        steps = x.strides
    if len(extents) != len(steps):
        raise ValueError(f"strides must have a number for each dimension: {len(extents)}, got {len(steps)}")
    if any(extent < 0 for extent in extents):
        raise ValueError(f"negative dimensions are not allowed: {extents}")
    made = x._view_of(extents, steps)
    low, high = (x._offset() + bound for bound in made._bounds())
    if low < 0 or high > x.buffer.size:
        raise ValueError(
            f"the shape {extents} with the strides {steps} reaches from byte {low} to {high} of memory of "
            f"{x.buffer.size} bytes"
        )
    return made


def sliding_window_view(
    x: ndarray, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> ndarray:
    """The view of all windows of a shape along axes, or all axes; the windows' axes are the last ones.

    Elements of several windows are the same, so what is written into one is seen in all: write to none.
    """
    windows = tuple(window_shape) if isinstance(window_shape, (tuple, list)) else (window_shape,)
    if any(width < 0 for width in windows):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    if len(axes) != len(windows):
        raise ValueError(
            f"window_shape has {len(windows)} numbers, but there are {len(axes)} axes: both must be the same"
        )
    extents = list(x.shape)
    for k, width in zip(axes, windows, strict=True):
        extents[k] -= width - 1
        if extents[k] < 0:
            raise ValueError("window shape cannot be larger than input array shape")
    x._compute_now()
    return x._view_of([*extents, *windows], [*x.strides, *[x.strides[k] for k in axes]])
