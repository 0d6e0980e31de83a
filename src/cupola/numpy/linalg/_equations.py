"""Linear equations, inverses and determinants, by LU factors; pseudo-inverses by singular values."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy

from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import reduce
from cupola.numpy._ndarray import broadcast, empty, ndarray, on_device
from cupola.numpy.functions._choosing import where
from cupola.numpy.functions._creation import eye
from cupola.numpy.linalg._decompositions import _svd
from cupola.numpy.linalg._products import matmul
from cupola.numpy.linalg._solver import address, check, columns_first, computed, function, given, real_of, solver

_PLAIN = 0  # the operation on the matrix: none


class SlogdetResult(NamedTuple):
    """Sign and logarithm of ``slogdet``."""

    sign: ndarray
    logabsdet: ndarray


def _factors(values: ndarray, to: numpy.dtype) -> tuple[ndarray, ndarray, ndarray]:
    """The LU factors of a stack, columns first, the pivots, and what was found singular."""
    n = values.shape[-1]
    work = columns_first(values, to)
    pivots, info = empty((len(work), n), numpy.int32), empty(len(work), numpy.int32)
    if work.size:
        size = function("getrf_buffer_size", to)(solver(), n, n, address(work), n)
        room = empty(max(size, 1), to)
        for i in range(len(work)):
            function("getrf", to)(
                solver(), n, n, address(work, i), n, address(room), address(pivots, i), address(info, i)
            )
    else:
        info.fill(0)
    return work, pivots, info


def solve(a: Any, b: Any) -> ndarray:
    """The solution of linear equations, as ``numpy.linalg.solve``. Waits to know whether there is one."""
    return _solved(a, b, "Singular matrix")


def _solved(x: Any, y: Any, refused: str) -> ndarray:
    """The solution, or an error with this message; without a message singular matrices have one without numbers."""
    a, _ = given(x, square=True)
    b = on_device(y)
    to = computed(a.dtype, b.dtype)
    vector = b.ndim == 1
    right = b.reshape((-1, 1)) if vector else b
    n = a.shape[-1]
    if right.ndim < 2 or right.shape[-2] != n:
        raise ValueError(f"solve: the right side has shape {b.shape}, the matrices have {n} rows")
    batch = numpy.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    columns = right.shape[-1]
    factors, pivots, info = _factors(broadcast(a, (*batch, n, n)), to)
    if refused:
        check(info, refused)
    made = columns_first(broadcast(right, (*batch, n, columns)), to)
    if made.size:
        for i in range(len(made)):
            function("getrs", to)(
                solver(), _PLAIN, n, columns, address(factors, i), n, address(pivots, i), address(made, i), n,
                address(info, i),
            )  # fmt: skip
    found = made.mT.reshape((*batch, n, columns))
    return found.reshape((*batch, n)) if vector else found.copy()


def inv(a: Any) -> ndarray:
    """The inverse, as ``numpy.linalg.inv``. Waits to know whether there is one."""
    return inverse(a, "Singular matrix")


def inverse(x: Any, refused: str = "") -> ndarray:
    """The inverse, which for singular matrices is an error with a message, or without one has no numbers."""
    values, to = given(x, square=True)
    n = values.shape[-1]
    return _solved(values, broadcast(eye(n, dtype=to), values.shape), refused)


def slogdet(a: Any) -> SlogdetResult:
    """Sign and logarithm of the determinant, as ``numpy.linalg.slogdet``."""
    values, to = given(a, square=True)
    batch, n = values.shape[:-2], values.shape[-1]
    factors, pivots, _ = _factors(values, to)
    diagonal = factors.diagonal(0, 1, 2)
    swaps = reduce("sum", pivots != on_device(list(range(1, n + 1))).astype(numpy.int32), 1, numpy.int64, None, False)
    turns = (1 - 2 * (swaps % 2)).astype(to)
    sizes = UFUNCS["absolute"](diagonal)
    signs = UFUNCS["sign"](diagonal)
    if to.kind == "f":
        signs = where(diagonal != diagonal, to.type(1), signs)  # what is no number has the sign that LAPACK gives it
    sign = turns * reduce("prod", signs, 1, None, None, False)
    logarithm = reduce("sum", UFUNCS["log"](sizes), 1, real_of(to), None, False)
    lost = _has_lost_nan(values, logarithm)
    sign = where(lost, to.type(1 if to.kind == "f" else numpy.nan * (1 + 1j)), sign)
    logarithm = where(lost, real_of(to).type(numpy.nan), logarithm)
    return SlogdetResult(sign.reshape(batch), logarithm.reshape(batch))


def det(a: Any) -> ndarray:
    """The determinant, as ``numpy.linalg.det``."""
    values, to = given(a, square=True)
    n = values.shape[-1]
    factors, pivots, _ = _factors(values, to)
    swaps = reduce("sum", pivots != on_device(list(range(1, n + 1))).astype(numpy.int32), 1, numpy.int64, None, False)
    turns = (1 - 2 * (swaps % 2)).astype(to)
    made = turns * reduce("prod", factors.diagonal(0, 1, 2), 1, None, None, False)
    found: ndarray = where(_has_lost_nan(values, made), to.type(numpy.nan), made)
    return found.reshape(values.shape[:-2])


def _has_lost_nan(values: ndarray, made: ndarray) -> ndarray:
    """Whether matrices have NaN and what was made of them has none: on a GPU, their factors may have zeros instead."""
    there: ndarray = (values != values).any(axis=(-2, -1)).reshape(made.shape) & (made == made)
    return there


def _inverted(s: ndarray, limit: Any) -> ndarray:
    """One by each singular value, and zero for those that count as zero."""
    from_zero = s > limit
    made: ndarray = from_zero / UFUNCS["maximum"](s, numpy.finfo(s.dtype).tiny)
    return made.astype(s.dtype, copy=False)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> ndarray:
    """The pseudo-inverse, as ``numpy.linalg.pinv``."""
    values, to = given(a)
    m, n = values.shape[-2:]
    if values.size == 0:
        return empty((*values.shape[:-2], n, m), to)
    share = rcond if rcond is not None else rtol if rtol is not None else None
    if share is None:
        share = max(m, n) * numpy.finfo(to).eps if rcond is None and rtol is None else 1e-15
    u, s, vh = _svd(values, False, True)
    limit = (on_device(share)[..., None] if not isinstance(share, (int, float)) else share) * reduce(
        "max", s, -1, None, None, True
    )
    scaled = UFUNCS["conjugate"](vh).mT * _inverted(s, limit)[..., None, :]
    return matmul(scaled, UFUNCS["conjugate"](u).mT)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> ndarray:
    """As ``numpy.linalg.tensorsolve``."""
    x, y = on_device(a), on_device(b)
    if axes is not None:
        order = [k for k in range(x.ndim) if k not in axes] + list(axes)
        x = x.transpose(order)
    shape = x.shape[y.ndim - x.ndim :] if x.ndim > y.ndim else ()
    count = math.prod(shape)
    if x.size != count**2:
        raise numpy.linalg.LinAlgError(
            "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return solve(x.reshape((count, count)), y.reshape(-1)).reshape(shape)


def tensorinv(a: Any, ind: int = 2) -> ndarray:
    """As ``numpy.linalg.tensorinv``."""
    x = on_device(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = x.shape[ind:] + x.shape[:ind]
    return inv(x.reshape((math.prod(x.shape[ind:]), -1))).reshape(shape)


def matrix_power(a: Any, n: int) -> ndarray:
    """Matrices to a whole power, as ``numpy.linalg.matrix_power``."""
    from_inverse = operator.index(n) < 0
    values, _ = given(a, square=True)
    if n == 0:
        return broadcast(eye(values.shape[-1], dtype=values.dtype), values.shape).copy()
    if from_inverse:
        values, n = inv(values), -n
    made = None
    while n:
        if n & 1:
            made = values if made is None else matmul(made, values)
        n >>= 1
        if n:
            values = matmul(values, values)
    assert made is not None
    return made
