"""Linear algebra: the functions of cupola.numpy.linalg that CuPy has."""

from typing import Any as _Any

from cupola.numpy.linalg import LinAlgError as LinAlgError
from cupola.numpy.linalg import cholesky as cholesky
from cupola.numpy.linalg import cond as cond
from cupola.numpy.linalg import cross as cross
from cupola.numpy.linalg import det as det
from cupola.numpy.linalg import eig as eig
from cupola.numpy.linalg import eigh as eigh
from cupola.numpy.linalg import eigvals as eigvals
from cupola.numpy.linalg import eigvalsh as eigvalsh
from cupola.numpy.linalg import inv as inv
from cupola.numpy.linalg import lstsq as lstsq
from cupola.numpy.linalg import matmul as matmul
from cupola.numpy.linalg import matrix_power as matrix_power
from cupola.numpy.linalg import matrix_rank as matrix_rank
from cupola.numpy.linalg import matrix_transpose as matrix_transpose
from cupola.numpy.linalg import norm as norm
from cupola.numpy.linalg import pinv as pinv
from cupola.numpy.linalg import qr as qr
from cupola.numpy.linalg import slogdet as slogdet
from cupola.numpy.linalg import solve as solve
from cupola.numpy.linalg import svd as svd
from cupola.numpy.linalg import tensorinv as tensorinv
from cupola.numpy.linalg import tensorsolve as tensorsolve
from cupola.standins.cupy._names import OF_LINALG as _INSTEAD


def __getattr__(name: str) -> _Any:
    from cupola.numpy._known import nearest

    near = "" if name.startswith("_") else nearest(name, globals(), _INSTEAD.get(name))
    raise AttributeError(f"cupola's stand-in for CuPy has no cupy.linalg.{name}{near}")
