"""Products of matrices and the like, by cuBLAS; those of small matrices by one kernel, those of integers and bool by a
reduction that multiplies on the way."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy

from cupola.bindings import cublas
from cupola.numpy._handles import handle
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import product, reduce
from cupola.numpy._ndarray import _axes, broadcast, empty, into, known_type, ndarray, on_device
from cupola.numpy.functions._creation import zeros
from cupola.numpy.functions._numpy_version import SINCE_2_5
from cupola.numpy.functions._shapes import concatenate, moveaxis, stack

__all__ = [
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
]

_GEMM = {
    "f": "sgemm_strided_batched", "d": "dgemm_strided_batched", "F": "cgemm_strided_batched",
    "D": "zgemm_strided_batched", "e": "gemm_strided_batched_ex",
}  # fmt: skip


def _matrices(x: ndarray, batch: tuple[int, ...]) -> tuple[ndarray, bool, int, int]:
    """Matrices as cuBLAS reads them: with rows or columns in one piece, and one stride from each to the next.

    Returns the array, whether its columns are in one piece, the leading dimension and the stride, in elements.
    """
    size = x.itemsize
    rows, columns = x.shape[-2:]
    x._compute_now()
    down, right = x.strides[-2:]
    if (right == size or columns == 1) and (rows == 1 or (down % size == 0 and down >= columns * size)):
        turned, lead = False, columns if rows == 1 else down // size
    elif (down == size or rows == 1) and (columns == 1 or (right % size == 0 and right >= rows * size)):
        turned, lead = True, rows if columns == 1 else right // size
    else:
        x = x.copy()
        turned, lead = False, columns
    if not batch:
        return x, turned, max(lead, 1), 0
    wide = broadcast(x, (*batch, rows, columns))
    steps = [(n, stride) for n, stride in zip(batch, wide.strides, strict=False) if n != 1]
    even = all([steps[k][1] == steps[k + 1][0] * steps[k + 1][1] for k in range(len(steps) - 1)])
    if not even or (steps and (steps[-1][1] < 0 or steps[-1][1] % size)):
        wide = wide.copy()
        return wide, False, columns, rows * columns
    return wide, turned, max(lead, 1), steps[-1][1] // size if steps else 0


@functools.cache
def _factors(char: str) -> tuple[numpy.ndarray, numpy.ndarray]:
    """One and zero, which cuBLAS reads from memory of the host."""
    return numpy.ones(1, char), numpy.zeros(1, char)


def _product(a: ndarray, b: ndarray, dtype: numpy.dtype) -> ndarray:
    """The product of stacks of matrices."""
    n, k = a.shape[-2:]
    m = b.shape[-1]
    batch = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2]) if a.ndim > 2 or b.ndim > 2 else ()
    if dtype.char not in _GEMM:
        if dtype.kind == "b":
            return reduce(
                "any", a._part((..., None)) & b._part((..., None, slice(None), slice(None))), -2, None, None, False
            )
        return reduce(
            "sum", a._part((..., None)) * b._part((..., None, slice(None), slice(None))), -2, dtype, None, False
        )
    made = empty((*batch, n, m), dtype)
    if made.size == 0 or k == 0:
        made.fill(0)
        return made
    left, left_turned, left_lead, left_step = _matrices(a, batch)
    right, right_turned, right_lead, right_step = _matrices(b, batch)
    left._join()
    right._join()
    # Columns come first in cuBLAS: what it computes is the transposed product of the transposed matrices.
    operations = (cublas.Operation.T if right_turned else cublas.Operation.N,
                  cublas.Operation.T if left_turned else cublas.Operation.N)  # fmt: skip
    one, zero = _factors("f" if dtype.char == "e" else dtype.char)
    kind = [2] if dtype.char == "e" else []  # CUDA_R_16F
    more = [cublas.ComputeType.COMPUTE_32F, -1] if dtype.char == "e" else []
    getattr(cublas, _GEMM[dtype.char])(
        handle(cublas), *operations, m, n, k, one, right._address(), *kind, right_lead, right_step,
        left._address(), *kind, left_lead, left_step, zero, made._address(), *kind, m, n * m,
        math.prod(batch), *more,
    )  # fmt: skip
    return made


def matmul(x: Any, y: Any, /, out: Any = None, *, dtype: Any = None) -> ndarray:
    """The matrix product, as ``numpy.matmul``."""
    if out is None and dtype is None:
        small = product(x, y)
        if small is not None:
            return small
    a, b = on_device(x), on_device(y)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("matmul: Input operand does not have enough dimensions (has 0, at least 1 is needed)")
    if dtype is None and a.dtype is b.dtype:
        to = a.dtype
    else:
        to = known_type(numpy.result_type(a.dtype, b.dtype) if dtype is None else dtype)
        for one in (a, b):
            if not numpy.can_cast(one.dtype, to, "same_kind"):
                raise TypeError(f"Cannot cast ufunc 'matmul' input from {one.dtype!r} to {to!r} by 'same_kind'")
        a, b = a.astype(to, copy=False), b.astype(to, copy=False)
    vector, other = a.ndim == 1, b.ndim == 1
    if vector:
        a = a.reshape((1, -1))
    if other:
        b = b.reshape((-1, 1))
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0 (size {b.shape[-2]} is different from "
            f"{a.shape[-1]})"
        )
    made = _product(a, b, to)
    if vector or other:
        shape = [*made.shape[:-2], *([] if vector else [made.shape[-2]]), *([] if other else [made.shape[-1]])]
        made = made.reshape(tuple(shape))
    return into(out, made, "same_kind")


def matvec(x: Any, y: Any, /) -> ndarray:
    """Matrices times vectors, as ``numpy.matvec``."""
    made = matmul(x, on_device(y)._part((..., None)))
    return made._part((..., 0))


def vecmat(x: Any, y: Any, /) -> ndarray:
    """Conjugated vectors times matrices, as ``numpy.vecmat``."""
    values = on_device(x)
    values = UFUNCS["conjugate"](values) if values.dtype.kind == "c" else values
    return matmul(values._part((..., None, slice(None))), y)._part((..., 0, slice(None)))


def vecdot(x: Any, y: Any, /, axis: int = -1) -> ndarray:
    """The product of vectors along an axis, of which the first is conjugated, as ``numpy.vecdot``."""
    a, b = on_device(x), on_device(y)
    to = known_type(numpy.result_type(a.dtype, b.dtype))
    a, b = (moveaxis(one.astype(to, copy=False), axis, -1) for one in (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot: mismatch in the core dimension: {a.shape[-1]} and {b.shape[-1]}")
    if to.kind == "c":
        a = UFUNCS["conjugate"](a)
    return reduce("any", a & b, -1, None, None, False) if to.kind == "b" else reduce("sum", a * b, -1, to, None, False)


def dot(a: Any, b: Any, out: Any = None) -> ndarray:
    """As ``numpy.dot``: the last axis of the first with the last but one of the second."""
    x, y = on_device(a), on_device(b)
    if x.ndim == 0 or y.ndim == 0:
        made: ndarray = UFUNCS["multiply"](x, y)
    elif y.ndim == 1 or (x.ndim <= 2 and y.ndim == 2):
        made = matmul(x, y)
    else:
        made = tensordot(x, y, (x.ndim - 1, y.ndim - 2))
    if isinstance(out, ndarray) and out.dtype != made.dtype:
        raise ValueError(f"output array is not acceptable: it must be one of {made.dtype}, not of {out.dtype}")
    return into(out, made)


def inner(a: Any, b: Any, /) -> ndarray:
    """As ``numpy.inner``: the last axes with each other."""
    x, y = on_device(a), on_device(b)
    if x.ndim == 0 or y.ndim == 0:
        made: ndarray = UFUNCS["multiply"](x, y)
        return made
    return tensordot(x, y, (x.ndim - 1, y.ndim - 1))


def outer(a: Any, b: Any, out: Any = None) -> ndarray:
    """All products of two elements, as ``numpy.outer``."""
    made: ndarray = UFUNCS["multiply"](on_device(a).reshape((-1, 1)), on_device(b).reshape((1, -1)), out=out)
    return made


def vdot(a: Any, b: Any, /) -> ndarray:
    """The product of two arrays as vectors, of which the first is conjugated, as ``numpy.vdot``."""
    return vecdot(on_device(a).reshape(-1), on_device(b).reshape(-1))


def tensordot(a: Any, b: Any, axes: Any = 2) -> ndarray:
    """The sum of products over axes, as ``numpy.tensordot``."""
    x, y = on_device(a), on_device(b)
    if isinstance(axes, int):
        if axes < 0 or axes > min(x.ndim, y.ndim):
            raise ValueError(f"tensordot over {axes} axes of arrays of {x.ndim} and {y.ndim} dimensions")
        ours, theirs = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    else:
        ours, theirs = (_axes(tuple(one) if isinstance(one, (list, tuple)) else (one,), a.ndim)
                        for one, a in zip(axes, (x, y), strict=True))  # fmt: skip
    if [x.shape[k] for k in ours] != [y.shape[k] for k in theirs]:
        raise ValueError("shape-mismatch for sum")
    free, rest = [k for k in range(x.ndim) if k not in ours], [k for k in range(y.ndim) if k not in theirs]
    count = math.prod([x.shape[k] for k in ours])
    shape = (*[x.shape[k] for k in free], *[y.shape[k] for k in rest])
    left = x.transpose((*free, *ours)).reshape((math.prod([x.shape[k] for k in free]), count))
    right = y.transpose((*theirs, *rest)).reshape((count, math.prod([y.shape[k] for k in rest])))
    return matmul(left, right).reshape(shape)


def kron(a: Any, b: Any) -> ndarray:
    """The Kronecker product, as ``numpy.kron``."""
    x, y = on_device(a), on_device(b)
    n = max(x.ndim, y.ndim)
    x, y = (one.reshape((*[1] * (n - one.ndim), *one.shape)) for one in (x, y))
    wide = x.reshape(tuple([e for k in x.shape for e in (k, 1)])) * y.reshape(
        tuple([e for k in y.shape for e in (1, k)])
    )
    made: ndarray = wide.reshape(tuple([p * q for p, q in zip(x.shape, y.shape, strict=True)]))
    return made


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> ndarray:
    """The cross product of vectors of three elements, or, before NumPy 2.5, of two, as ``numpy.cross``."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(on_device(a), axisa, -1), moveaxis(on_device(b), axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError("incompatible dimensions for cross product: the vectors must have three elements, or two")
    if SINCE_2_5 and not x.shape[-1] == y.shape[-1] == 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors, as NumPy has it from 2.5 on")

    def part(of: ndarray, k: int) -> ndarray:
        return of._part((..., k))

    if x.shape[-1] == y.shape[-1] == 2:  # the third element of what they would give with zeros behind them
        return part(x, 0) * part(y, 1) - part(x, 1) * part(y, 0)
    x, y = (
        one if one.shape[-1] == 3 else concatenate([one, zeros((*one.shape[:-1], 1), one.dtype)], -1) for one in (x, y)
    )
    pairs = ((1, 2), (2, 0), (0, 1))
    made = [part(x, i) * part(y, j) - part(x, j) * part(y, i) for i, j in pairs]
    return stack(made, -1 if axisc == -1 else axisc)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> ndarray:
    """The sum of a diagonal, as ``numpy.trace``."""
    return reduce("sum", on_device(a).diagonal(offset, axis1, axis2), -1, dtype, out, False)
