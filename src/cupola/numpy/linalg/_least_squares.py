"""Least squares, by singular values: those of R, of the QR decomposition, where there are more rows than columns."""

from __future__ import annotations

import math
from typing import Any

import numpy

from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import reduce
from cupola.numpy._ndarray import empty, ndarray, on_device
from cupola.numpy.functions._choosing import where
from cupola.numpy.functions._creation import triu
from cupola.numpy.linalg._decompositions import _svd, reflect, reflections
from cupola.numpy.linalg._products import matmul
from cupola.numpy.linalg._solver import columns_first, computed, real_of


def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """Least squares, as ``numpy.linalg.lstsq``: solution, residuals, rank and singular values. Waits for the rank."""
    x, y = on_device(a), on_device(b)
    right = y.reshape((-1, 1)) if y.ndim == 1 else y
    for one in (x, right):
        if one.ndim != 2:
            raise numpy.linalg.LinAlgError(f"{one.ndim}-dimensional array given. Array must be two-dimensional")
    (m, n), to = x.shape, computed(x.dtype, y.dtype)
    if right.shape[0] != m:
        raise numpy.linalg.LinAlgError("Incompatible dimensions")
    x, right = x.astype(to, copy=False), right.astype(to, copy=False)
    rest = None
    if m > n:
        x, right, rest = _shortened(x, right)
    try:
        u, s, vh = _svd(x, False, True, "SVD did not converge in Linear Least Squares")
        there = s.to_numpy()
        scale = _scale(a, float(there.max(initial=0)), to)
    except numpy.linalg.LinAlgError:
        scale = _scale(a, numpy.inf, to)
        if scale == 1:
            raise
    if scale != 1:
        found, residuals, counted, s = lstsq(on_device(a).astype(to, copy=False) * scale, b, rcond)
        return found * scale, residuals, counted, s / scale
    limit = _share(rcond, max(m, n), to) * there.max(initial=0)
    rank = int((there > limit).sum())
    # Quotients that are not wanted are not made, as they may be infinite.
    turned = matmul(UFUNCS["conjugate"](u).T, right)
    counts = (s > limit).reshape((-1, 1))
    found = matmul(UFUNCS["conjugate"](vh).T, where(counts, turned / where(counts, s.reshape((-1, 1)), 1), 0))
    if rest is not None and rank == n:
        sizes = UFUNCS["absolute"](rest)
        residuals = reduce("sum", sizes * sizes, 0, None, None, False)
    else:
        residuals = empty(0, real_of(to))
    return (found.reshape(n) if y.ndim == 1 else found), residuals, on_device(numpy.int32(rank)), s


def _shortened(a: ndarray, right: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Equations with as many rows as columns, which have the same solution, and what no solution can change."""
    m, n = a.shape
    if not n:
        return a[:0], right[:0], right
    work, columns = columns_first(a, a.dtype), columns_first(right, a.dtype)
    tau = reflections(work)
    if columns.size:
        reflect(work, tau, columns)
    turned = columns[0].T
    return triu(work[0].T[:n]), turned[:n], turned[n:]


def _scale(a: Any, largest: float, dtype: numpy.dtype) -> float:
    """A power of two to multiply the matrix by: 1, unless squares of its numbers are beyond what the type has.

    LAPACK scales the matrix, too. cuSOLVER does not: of numbers of 1e-300 seven digits are right.
    """
    known = numpy.finfo(dtype)
    if float(known.tiny) < largest * largest < float(known.max) or not (there := on_device(a)).size:
        return 1
    exponent = math.frexp(float(UFUNCS["absolute"](there).max()))[1]
    return 2.0 ** min(max(-exponent, known.minexp // 2), known.maxexp - 8)


def _share(rcond: float | None, extent: int, dtype: numpy.dtype) -> float:
    """From which part of the largest one singular values count, as LAPACK has it."""
    precision = float(numpy.finfo(dtype).eps)
    if rcond is None:
        return extent * precision
    return float(rcond) if 0 < rcond < 1 else precision / 2
