"""Views with other strides."""

from __future__ import annotations

from typing import Any

from numpy.lib.array_utils import normalize_axis_tuple

from cupola.numpy._ndarray import ndarray


def as_strided(x: ndarray, shape: Any = None, strides: Any = None) -> ndarray:
    """The view with a shape and strides, which must stay in the memory of the array."""
    x._compute_now()
    extents = x.shape if shape is None else tuple(shape)
    return x._view_of(extents, x.strides if strides is None else tuple(strides))


def sliding_window_view(
    x: ndarray, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> ndarray:
    """The view of all windows of a shape."""
    windows = tuple(window_shape) if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    if len(axes) != len(windows):
        raise ValueError("window_shape and axis must have the same length")
    extents = list(x.shape)
    for k, width in zip(axes, windows, strict=True):
        extents[k] -= width - 1
        if width < 0 or extents[k] < 0:
            raise ValueError("window shape cannot be larger than input array shape")
    x._compute_now()
    return x._view_of([*extents, *windows], [*x.strides, *[x.strides[k] for k in axes]])
