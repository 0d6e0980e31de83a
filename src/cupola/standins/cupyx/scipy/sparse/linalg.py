"""``cupyx.scipy.sparse.linalg``: norms and conjugate gradients on the device; SciPy has the rest, on the host."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._known import nearest
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupyx.scipy._host import to_device, to_host
from cupola.standins.cupyx.scipy.sparse._base import spmatrix
from cupola.standins.cupyx.scipy.sparse._classes import coo_matrix, csc_matrix, csr_matrix, dia_matrix

# Computed by SciPy on the host.
NAMES = [
    "cgs", "eigsh", "expm", "factorized", "gmres", "inv", "lobpcg", "lsmr", "lsqr", "minres", "spilu", "splu",
    "spsolve", "spsolve_triangular", "svds",
]  # fmt: skip

_FORMATS = {"csr": csr_matrix, "csc": csc_matrix, "coo": coo_matrix, "dia": dia_matrix}

__all__ = ["NAMES", "LinearOperator", "aslinearoperator", "cg", "norm"]


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """The norm of a matrix, or of its columns or rows."""
    if not isinstance(x, spmatrix):
        raise TypeError("input is not sparse. use cupy.linalg.norm")
    if axis is None and ord in (None, "fro", "f"):  # codespell:ignore
        return _np.sqrt((abs(x.tocsr().data) ** 2).sum())
    part: Any = abs(x.tocsr())
    if axis is None:
        if ord not in (1, -1, numpy.inf, -numpy.inf):
            raise ValueError(f"the norm {ord!r} is not there: fro, 1, -1, inf and -inf are")  # codespell:ignore
        found = part.sum(0 if abs(ord) == 1 else 1)
        return found.max() if ord > 0 else found.min()
    if isinstance(axis, tuple):
        if len(axis) != 1:
            return norm(x, ord)
        (axis,) = axis
    if ord in (None, 2):
        return _np.sqrt(part.power(2).sum(axis)).reshape(-1)
    if ord == 1:
        return part.sum(axis).reshape(-1)
    if ord == 0:
        return (part != 0).sum(axis).reshape(-1)
    if ord == numpy.inf:
        return part.max(axis).toarray().reshape(-1)
    raise ValueError(f"the norm {ord!r} along an axis is not there: None, 0, 1, 2 and inf are")


class LinearOperator:
    """A matrix by what it does to vectors.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    matvec : callable
        The product with a vector of the device.
    rmatvec : callable, optional
        The product of the adjoint with a vector.
    matmat : callable, optional
        The product with a matrix; by default column after column.
    dtype : dtype, optional
        Of the elements.
    rmatmat : callable, optional
        The product of the adjoint with a matrix.
    """

    __array_ufunc__ = None
    ndim = 2

    def __init__(
        self,
        shape: Any,
        matvec: Any = None,
        rmatvec: Any = None,
        matmat: Any = None,
        dtype: Any = None,
        rmatmat: Any = None,
    ) -> None:
        self.shape = tuple(shape)
        self._product, self._adjoint, self._matmat, self._rmatmat = matvec, rmatvec, matmat, rmatmat
        self.dtype = numpy.dtype(float if dtype is None else dtype)

    def matvec(self, x: Any) -> Any:
        """The product with a vector."""
        if x.shape not in ((self.shape[1],), (self.shape[1], 1)):
            raise ValueError("dimension mismatch")
        return self._product(x)

    def rmatvec(self, x: Any) -> Any:
        """The product of the adjoint with a vector."""
        if self._adjoint is None:
            raise NotImplementedError("rmatvec is not defined")
        return self._adjoint(x)

    def matmat(self, x: Any) -> Any:
        """The product with a matrix."""
        if self._matmat is not None:
            return self._matmat(x)
        return _np.stack([self.matvec(x[:, k]).reshape(-1) for k in range(x.shape[1])], 1)

    def rmatmat(self, x: Any) -> Any:
        """The product of the adjoint with a matrix."""
        if self._rmatmat is not None:
            return self._rmatmat(x)
        return _np.stack([self.rmatvec(x[:, k]).reshape(-1) for k in range(x.shape[1])], 1)

    def dot(self, x: Any) -> Any:
        """The product with a vector or a matrix."""
        return self.matvec(x) if x.ndim == 1 else self.matmat(x)

    __matmul__ = __mul__ = __call__ = dot

    @property
    def H(self) -> Any:
        """LinearOperator: the adjoint."""
        return LinearOperator(self.shape[::-1], self._adjoint, self._product, self._rmatmat, self.dtype, self._matmat)

    adjoint = H


def aslinearoperator(A: Any) -> LinearOperator:
    """A matrix as a linear operator."""
    if isinstance(A, LinearOperator):
        return A
    if isinstance(A, (spmatrix, ndarray)):
        turned = A.conj().T
        return LinearOperator(A.shape, lambda x: A @ x, lambda x: turned @ x, lambda x: A @ x, A.dtype)
    raise TypeError(f"a linear operator of {type(A).__name__}: arrays, sparse matrices and LinearOperator are taken")


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    tol: float | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    atol: float | None = None,
    *,
    rtol: float = 1e-5,
) -> tuple[Any, int]:
    """Solve with a positive definite matrix by conjugate gradients: the solution, and 0 if it has been found."""
    system = aslinearoperator(A)
    if system.shape[0] != system.shape[1]:
        raise ValueError(f"expected square matrix (shape: {system.shape})")
    right = b.reshape(-1)
    if right.size != system.shape[0]:
        raise ValueError(f"b has incompatible dimensions: {b.shape} beside {system.shape}")
    better = None if M is None else aslinearoperator(M)
    to = right.dtype if right.dtype.kind in "fc" else numpy.dtype(float)
    x = _np.zeros(right.size, numpy.result_type(to, system.dtype)) if x0 is None else x0.reshape(-1).astype(to).copy()
    limit = max((rtol if tol is None else tol) * float(_np.linalg.norm(right)), atol or 0.0)
    left = right - system.matvec(x)
    turns = 10 * right.size if maxiter is None else maxiter
    before: Any = None
    way: Any = None
    for _ in range(turns):
        if float(_np.linalg.norm(left)) <= limit:
            return x, 0
        step = left if better is None else better.matvec(left)
        rho = _np.vdot(left, step)
        way = step if way is None else step + (rho / before) * way
        seen = system.matvec(way)
        share = rho / _np.vdot(way, seen)
        x = x + share * way
        left, before = left - share * seen, rho
        if callback is not None:
            callback(x)
    return x, 0 if float(_np.linalg.norm(left)) <= limit else turns


def _to_host(value: Any) -> Any:
    if isinstance(value, spmatrix):
        return value.get()
    if isinstance(value, LinearOperator):
        theirs = importlib.import_module("scipy.sparse.linalg").LinearOperator
        there = [None if one is None else _wrapped(one) for one in (value._product, value._adjoint)]
        return theirs(value.shape, *there, dtype=value.dtype)
    return to_host(value)


def _wrapped(function: Any) -> Any:
    """A function of arrays of the device as one of arrays of NumPy."""
    return lambda x: to_host(function(_np.asarray(x)))


def _to_device(value: Any) -> Any:
    if type(value).__module__.startswith("scipy.sparse") and hasattr(value, "tocoo"):
        return _FORMATS.get(value.format, csr_matrix)(value)
    if type(value).__name__ == "SuperLU":
        return SuperLU(value)
    if callable(value):
        return lambda *arguments: _to_device(value(*map(_to_host, arguments)))
    if type(value) is tuple:
        return tuple(map(_to_device, value))
    return to_device(value)


class SuperLU:
    """Triangular factors, which SciPy has on the host.

    Parameters
    ----------
    factors : scipy.sparse.linalg.SuperLU
        The factors.
    """

    def __init__(self, factors: Any) -> None:
        self._factors = factors
        self.shape, self.nnz = factors.shape, factors.nnz
        self.perm_r, self.perm_c = _np.asarray(factors.perm_r), _np.asarray(factors.perm_c)

    @property
    def L(self) -> Any:
        """csc_matrix: the lower triangle."""
        return _to_device(self._factors.L)

    @property
    def U(self) -> Any:
        """csc_matrix: the upper triangle."""
        return _to_device(self._factors.U)

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Solve for a vector or several."""
        return to_device(self._factors.solve(to_host(rhs), trans))


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        near = "" if name.startswith("_") else nearest(name, [*NAMES, *__all__])
        raise AttributeError(
            f"cupola's stand-in for CuPy has no cupyx.scipy.sparse.linalg.{name}: "
            f"scipy.sparse.linalg may have it for x.get(){near}"
        )
    if importlib.util.find_spec("scipy") is None:
        raise ImportError(
            f"cupyx.scipy.sparse.linalg.{name} in cupola's stand-in for CuPy computes with SciPy on the host: "
            "pip install scipy"
        )
    theirs = getattr(importlib.import_module("scipy.sparse.linalg"), name)

    @functools.wraps(theirs)
    def function(*arguments: Any, **keywords: Any) -> Any:
        if keywords.get("callback") is not None:
            told = keywords["callback"]
            keywords = {**keywords, "callback": lambda x: told(to_device(x))}
        host = {key: _to_host(value) for key, value in keywords.items()}
        return _to_device(theirs(*map(_to_host, arguments), **host))

    globals()[name] = function
    return function
