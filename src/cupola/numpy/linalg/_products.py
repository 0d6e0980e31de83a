"""Products and the like, with the parameters that the Array API standard gives them in ``linalg``."""

from __future__ import annotations

from typing import Any

import numpy

from cupola.numpy._ndarray import into, ndarray, on_device
from cupola.numpy.functions import _products
from cupola.numpy.functions._products import matmul as matmul
from cupola.numpy.functions._products import outer as _outer
from cupola.numpy.functions._products import tensordot as tensordot
from cupola.numpy.functions._products import vecdot as vecdot
from cupola.numpy.functions._shapes import matrix_transpose as matrix_transpose


def outer(x1: Any, x2: Any, /) -> ndarray:
    """All products of an element of one vector and one of another, as ``numpy.linalg.outer``."""
    one, other = on_device(x1), on_device(x2)
    if one.ndim != 1 or other.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are {one.ndim=} and {other.ndim=}.")
    return _outer(one, other)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> ndarray:
    """The cross product of vectors of three elements, as ``numpy.linalg.cross``."""
    one, other = on_device(x1), on_device(x2)
    if one.shape[axis] != 3 or other.shape[axis] != 3:
        raise ValueError(
            f"Both input arrays must be (arrays of) 3-dimensional vectors, but they are {one.shape[axis]} and "
            f"{other.shape[axis]} dimensional instead."
        )
    return _products.cross(one, other, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> ndarray:
    """The diagonals of matrices, views, as ``numpy.linalg.diagonal``."""
    return on_device(x).diagonal(offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> ndarray:
    """The sums of the diagonals of matrices, as ``numpy.linalg.trace``."""
    return _products.trace(x, offset, -2, -1, dtype)


def multi_dot(arrays: Any, *, out: Any = None) -> ndarray:
    """The product of several matrices in the order that needs the least work, as ``numpy.linalg.multi_dot``."""
    chain = [on_device(one) for one in arrays]
    if len(chain) < 2:
        raise ValueError("Expecting at least two arrays.")
    first, last = chain[0].ndim == 1, chain[-1].ndim == 1
    if first:
        chain[0] = chain[0].reshape((1, -1))
    if last:
        chain[-1] = chain[-1].reshape((-1, 1))
    sizes = [chain[0].shape[0], *[one.shape[1] for one in chain]]
    n = len(chain)
    cost = numpy.zeros((n, n))
    cut = numpy.zeros((n, n), int)
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = [cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cut[i, j] = i + int(numpy.argmin(costs))
            cost[i, j] = min(costs)

    def product(i: int, j: int) -> ndarray:
        return chain[i] if i == j else matmul(product(i, cut[i, j]), product(cut[i, j] + 1, j))

    made = product(0, n - 1)
    shape = [*([] if first else [made.shape[0]]), *([] if last else [made.shape[1]])]
    made = made.reshape(tuple(shape))
    return into(out, made)
