"""Linear algebra with NumPy's interface, by cuSOLVER and cuBLAS. Imported when it is first named."""

from __future__ import annotations

from typing import Any as _Any

from numpy.linalg import LinAlgError as LinAlgError

from cupola.numpy.linalg._decompositions import cholesky as cholesky
from cupola.numpy.linalg._decompositions import eig as eig
from cupola.numpy.linalg._decompositions import eigh as eigh
from cupola.numpy.linalg._decompositions import eigvals as eigvals
from cupola.numpy.linalg._decompositions import eigvalsh as eigvalsh
from cupola.numpy.linalg._decompositions import qr as qr
from cupola.numpy.linalg._decompositions import svd as svd
from cupola.numpy.linalg._decompositions import svdvals as svdvals
from cupola.numpy.linalg._equations import det as det
from cupola.numpy.linalg._equations import inv as inv
from cupola.numpy.linalg._equations import matrix_power as matrix_power
from cupola.numpy.linalg._equations import pinv as pinv
from cupola.numpy.linalg._equations import slogdet as slogdet
from cupola.numpy.linalg._equations import solve as solve
from cupola.numpy.linalg._equations import tensorinv as tensorinv
from cupola.numpy.linalg._equations import tensorsolve as tensorsolve
from cupola.numpy.linalg._least_squares import lstsq as lstsq
from cupola.numpy.linalg._norms import cond as cond
from cupola.numpy.linalg._norms import matrix_norm as matrix_norm
from cupola.numpy.linalg._norms import matrix_rank as matrix_rank
from cupola.numpy.linalg._norms import norm as norm
from cupola.numpy.linalg._norms import vector_norm as vector_norm
from cupola.numpy.linalg._products import cross as cross
from cupola.numpy.linalg._products import diagonal as diagonal
from cupola.numpy.linalg._products import matmul as matmul
from cupola.numpy.linalg._products import matrix_transpose as matrix_transpose
from cupola.numpy.linalg._products import multi_dot as multi_dot
from cupola.numpy.linalg._products import outer as outer
from cupola.numpy.linalg._products import tensordot as tensordot
from cupola.numpy.linalg._products import trace as trace
from cupola.numpy.linalg._products import vecdot as vecdot

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv",
    "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

_INSTEAD = {
    "expm": "for a symmetric matrix v @ diag(exp(w)) @ v.T is it, with w, v = eigh(x)",
    "lu": "solve, inv and det use it; qr and cholesky are there",
    "solve_triangular": "solve is there",
    "test": "pytest tests it",
}


def __getattr__(name: str) -> _Any:
    from cupola.numpy._known import missing

    raise missing(__name__, name, __all__, _INSTEAD)
