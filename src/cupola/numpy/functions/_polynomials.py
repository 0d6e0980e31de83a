"""Polynomials: their values, and the nearest ones to points."""

from __future__ import annotations

from typing import Any

import numpy

from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import reduce
from cupola.numpy._ndarray import ndarray, on_device
from cupola.numpy.functions._creation import arange

__all__ = ["polyfit", "polyval"]


def polyval(p: Any, x: Any) -> ndarray:
    """A polynomial, the highest power first, as ``numpy.polyval``; factors may be rows."""
    factors, values = on_device(p), on_device(x)
    made: Any = values * values.dtype.type(0)
    for k in range(len(factors)):
        made = made * values + factors._part(k)
    return on_device(made)


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """The polynomial nearest to points, as ``numpy.polyfit``; it does not warn of powers that are too many."""
    from cupola.numpy.linalg import inv, lstsq

    places, values = on_device(x).astype(float, copy=False), on_device(y)
    values = values if values.dtype.kind == "c" else values.astype(float, copy=False)
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if places.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if places.size == 0:
        raise TypeError("expected non-empty vector for x")
    if values.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if len(values) != len(places):
        raise TypeError("expected x and y to have same length")
    rcond = len(places) * float(numpy.finfo(places.dtype).eps) if rcond is None else rcond
    powers = places.reshape((-1, 1)) ** arange(deg, -1, -1).astype(float)
    if w is not None:
        weights = on_device(w).astype(float, copy=False)
        if weights.shape != places.shape:
            raise TypeError("expected w and y to have the same length, and one dimension")
        powers = powers * weights.reshape((-1, 1))
        values = values * (weights if values.ndim == 1 else weights.reshape((-1, 1)))
    scale = UFUNCS["sqrt"](reduce("sum", powers * powers, 0, None, None, False))
    powers = powers / scale
    found, residuals, rank, singular = lstsq(powers, values, rcond)
    made: ndarray = (found.T / scale).T
    if full:
        return made, residuals, rank, singular, rcond
    if not cov:
        return made
    spread = inv(powers.T @ powers) / (scale.reshape((-1, 1)) * scale)
    if cov != "unscaled":
        if len(places) <= deg + 1:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        residuals = residuals / (len(places) - (deg + 1))
        spread = spread * residuals if values.ndim == 1 else spread[:, :, None] * residuals
    elif values.ndim == 2:
        spread = spread[:, :, None]
    return made, spread
