"""Polynomials: their values, and the nearest ones to points."""

from __future__ import annotations

from typing import Any

from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import reduce
from cupola.numpy._ndarray import ndarray, on_device
from cupola.numpy.functions._creation import arange

__all__ = ["polyfit", "polyval"]


def polyval(p: Any, x: Any) -> ndarray:
    """A polynomial, the highest power first, as ``numpy.polyval``."""
    factors, values = on_device(p), on_device(x)
    made: Any = values * 0
    for k in range(factors.size):
        made = made * values + factors._part(k)
    return on_device(made)


def polyfit(x: Any, y: Any, deg: int) -> ndarray:
    """The polynomial nearest to points, as ``numpy.polyfit`` without weights."""
    from cupola.numpy.linalg import lstsq

    places, values = on_device(x).astype(float, copy=False), on_device(y).astype(float, copy=False)
    powers = places.reshape((-1, 1)) ** arange(deg, -1, -1).astype(float)
    scale = UFUNCS["sqrt"](reduce("sum", powers * powers, 0, None, None, False))
    found = lstsq(powers / scale, values)[0]
    made: ndarray = (found.T / scale).T
    return made
