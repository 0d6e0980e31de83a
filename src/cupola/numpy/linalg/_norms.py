"""Norms, ranks and condition numbers."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy

from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import reduce
from cupola.numpy._ndarray import _axes, ndarray, on_device
from cupola.numpy.functions._choosing import where
from cupola.numpy.functions._shapes import moveaxis
from cupola.numpy.linalg._decompositions import svdvals
from cupola.numpy.linalg._equations import inverse
from cupola.numpy.linalg._solver import real_of

FROBENIUS = "fro"  # codespell:ignore


def _floating(x: Any) -> ndarray:
    values = on_device(x)
    return values if values.dtype.kind in "fc" else values.astype(float)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> ndarray:
    """The norm of vectors, as ``numpy.linalg.vector_norm``."""
    values = _floating(x)
    sizes = UFUNCS["absolute"](values)
    if ord == math.inf:
        return reduce("max", sizes, axis, None, None, keepdims, 0)
    if ord == -math.inf:
        return reduce("min", sizes, axis, None, None, keepdims, math.inf)
    if ord == 0:
        return reduce("sum", (values != 0).astype(sizes.dtype), axis, None, None, keepdims)
    if ord == 1:
        return reduce("sum", sizes, axis, None, None, keepdims)
    if ord in (2, None):
        squares = sizes * sizes if values.dtype.kind == "f" else values.real * values.real + values.imag * values.imag
        made: ndarray = UFUNCS["sqrt"](reduce("sum", squares, axis, None, None, keepdims))
        return made
    if not isinstance(ord, (int, float)):
        raise ValueError(f"Invalid norm order {ord!r} for vectors")
    total = reduce("sum", sizes ** sizes.dtype.type(ord), axis, None, None, keepdims)
    result: ndarray = total ** sizes.dtype.type(1 / ord)
    return result


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = FROBENIUS) -> ndarray:
    """The norm of matrices, as ``numpy.linalg.matrix_norm``."""
    values = _floating(x)
    if values.ndim < 2:
        raise ValueError("matrix_norm needs at least two dimensions")
    sizes = UFUNCS["absolute"](values)
    if ord is None or ord == FROBENIUS:
        return vector_norm(values, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        inner, outer = (-2, -1) if abs(ord) == 1 else (-1, -2)
        totals = reduce("sum", sizes, inner, None, None, True)
        initial = 0 if ord > 0 and not totals.size else None  # of nothing the greatest is 0, and the least an error
        made = reduce("max" if ord > 0 else "min", totals, outer, None, None, True, initial)
    elif ord in (2, -2, "nuc"):
        s = svdvals(values)
        how = {2: "max", -2: "min", "nuc": "sum"}[ord]
        made = reduce(how, s, -1, None, None, True)[..., None]
    else:
        raise ValueError("Invalid norm order for matrices.")
    return made if keepdims else made.squeeze((-2, -1))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ndarray:
    """The norm of a vector or a matrix, as ``numpy.linalg.norm``."""
    values = _floating(x)
    if axis is None:
        if ord is None:
            made = vector_norm(values.reshape(-1))
            return made.reshape((1,) * values.ndim) if keepdims else made
        axis = tuple(range(values.ndim))
    if not isinstance(axis, tuple):
        try:
            axis = operator.index(axis)
        except TypeError:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from None
    axes = _axes(axis, values.ndim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"Invalid norm order '{ord}' for vectors")
        return vector_norm(values, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    made = matrix_norm(moveaxis(values, axes, (-2, -1)), ord=FROBENIUS if ord is None else ord)
    if keepdims:
        made = made.reshape(tuple([1 if k in axes else extent for k, extent in enumerate(values.shape)]))
    return made


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> ndarray:
    """The rank of matrices, as ``numpy.linalg.matrix_rank``."""
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    values = _floating(A)
    if values.ndim < 2:
        result: ndarray = (values != 0).any().astype(numpy.int64)
        return result
    s = svdvals(values)
    if tol is None:
        share = max(values.shape[-2:]) * real_of(s.dtype).type(numpy.finfo(s.dtype).eps) if rtol is None else rtol
        if not isinstance(share, (int, float, numpy.generic)):
            share = on_device(share)[..., None]
        limit = reduce("max", s, -1, None, None, True, 0) * share
    else:
        limit = on_device(tol)[..., None] if not isinstance(tol, (int, float)) else tol
    return reduce("sum", s > limit, -1, numpy.int64, None, False)


def cond(x: Any, p: Any = None) -> ndarray:
    """The condition number, as ``numpy.linalg.cond``."""
    values = _floating(x)
    if values.ndim >= 2 and not values.shape[-1] * values.shape[-2]:
        raise numpy.linalg.LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = svdvals(values)
        made: ndarray = s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0]
    else:
        made = matrix_norm(values, ord=p) * matrix_norm(inverse(values), ord=p)
    # Of a singular matrix it is infinite.
    result: ndarray = where(UFUNCS["isnan"](made) & ~UFUNCS["isnan"](values).any(axis=(-2, -1)), numpy.inf, made)
    return result
