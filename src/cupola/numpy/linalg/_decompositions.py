"""Decompositions of matrices. Results that are several arrays are named tuples, as in NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from cupola.bindings import cusolver_dn as cusolver
from cupola.numpy._known import UFUNCS
from cupola.numpy._ndarray import empty, ndarray
from cupola.numpy.functions._choosing import where
from cupola.numpy.functions._creation import tril, triu
from cupola.numpy.functions._numpy_version import SINCE_2_5
from cupola.numpy.functions._shapes import roll
from cupola.numpy.linalg._solver import address, check, columns_first, function, given, real_of, solver

_LOWER = 0
# How cuBLAS calls sides and forms of a matrix.
_FROM_THE_LEFT, _TRANSPOSED, _CONJUGATED = 0, 1, 2


class QRResult(NamedTuple):
    """The factors of ``qr``."""

    Q: ndarray
    R: ndarray


class SVDResult(NamedTuple):
    """The factors of ``svd``."""

    U: ndarray
    S: ndarray
    Vh: ndarray


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of ``eigh``."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of ``eig``."""

    eigenvalues: ndarray
    eigenvectors: ndarray


def cholesky(a: Any, /, *, upper: bool = False) -> ndarray:
    """The Cholesky factor, as ``numpy.linalg.cholesky``. Waits to know whether there is one."""
    values, to = given(a, square=True)
    n = values.shape[-1]
    # The lower triangle of the matrix is read, and the lower factor is written, columns first.
    work = columns_first(values, to)
    info = empty(len(work), numpy.int32)
    if work.size:
        size = function("potrf_buffer_size", to)(solver(), _LOWER, n, address(work), n)
        room = empty(max(size, 1), to)
        for k in range(len(work)):
            function("potrf", to)(solver(), _LOWER, n, address(work, k), n, address(room), size, address(info, k))
        check(info, "Matrix is not positive definite")
    factor = tril(work.mT).reshape(values.shape)
    return UFUNCS["conjugate"](factor).mT.copy() if upper else factor.copy()


def reflections(work: ndarray) -> ndarray:
    """Overwrite a stack, columns first, with R and the reflections that make Q below it; returns their factors."""
    count, n, m = work.shape
    tau, info = empty((count, min(m, n)), work.dtype), empty(count, numpy.int32)
    size = function("geqrf_buffer_size", work.dtype)(solver(), m, n, address(work), m)
    room = empty(max(size, 1), work.dtype)
    for i in range(count):
        function("geqrf", work.dtype)(
            solver(), m, n, address(work, i), m, address(tau, i), address(room), size, address(info, i)
        )
    return tau


def reflect(work: ndarray, tau: ndarray, columns: ndarray) -> None:
    """Overwrite columns with the product of Q, conjugated and transposed, and them; the rest is of `reflections`."""
    _, n, m = work.shape
    count, to = columns.shape[1], work.dtype
    head = (
        solver(), _FROM_THE_LEFT, _CONJUGATED if to.kind == "c" else _TRANSPOSED, m, count, n, address(work), m,
        address(tau), address(columns), m,
    )  # fmt: skip
    size = function("ormqr_buffer_size", to)(*head)
    room, info = empty(max(size, 1), to), empty(1, numpy.int32)
    function("ormqr", to)(*head, address(room), size, address(info))


def qr(a: Any, mode: str = "reduced") -> Any:
    """The QR decomposition, as ``numpy.linalg.qr``; modes reduced, complete, r and raw."""
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode {mode!r}; reduced, complete, r and raw are known")
    values, to = given(a)
    m, n = values.shape[-2:]
    k = min(m, n)
    columns = m if mode == "complete" and m > n else k
    batch = values.shape[:-2]
    work = columns_first(values, to)
    count = len(work)
    upper = triu(work.mT[:, :columns, :]) if count else work.mT[:, :columns, :]
    if not work.size or not k:
        if mode == "raw":
            return work.reshape((*batch, n, m)), empty((*batch, k), to)
        made_q = empty((count, m, columns), to)
        made_q.fill(0)
        if m and columns:
            made_q[:, range(columns), range(columns)] = 1
        r = empty((*batch, columns, n), to)
        r.fill(0)
        return r if mode == "r" else QRResult(made_q.reshape((*batch, m, columns)), r)
    tau, info = reflections(work), empty(count, numpy.int32)
    if mode == "raw":
        return work.reshape((*batch, n, m)), tau.reshape((*batch, k))
    upper = triu(work.mT[:, :columns, :])
    r = upper.reshape((*batch, columns, n)).copy()
    if mode == "r":
        return r
    vectors = empty((count, columns, m), to)
    vectors[:, :k] = work[:, :k]
    if columns > k:
        vectors[:, k:] = 0
    size = function("orgqr_buffer_size", to)(solver(), m, columns, k, address(vectors), m, address(tau))
    room = empty(max(size, 1), to)
    for i in range(count):
        function("orgqr", to)(
            solver(), m, columns, k, address(vectors, i), m, address(tau, i), address(room), size, address(info, i)
        )
    return QRResult(vectors.mT.reshape((*batch, m, columns)).copy(), r)


def _svd(x: Any, full: bool, vectors: bool, refused: str = "SVD did not converge") -> tuple[ndarray, ndarray, ndarray]:
    """U, the singular values and the conjugated V; without `vectors` the first and last are empty."""
    values, to = given(x)
    m, n = values.shape[-2:]
    if m < n:  # cuSOLVER wants at least as many rows as columns
        v, s, u = _svd(UFUNCS["conjugate"](values).mT if to.kind == "c" else values.mT, full, vectors, refused)
        return (UFUNCS["conjugate"](u).mT, s, UFUNCS["conjugate"](v).mT) if vectors else (u, s, v)
    batch = values.shape[:-2]
    work = columns_first(values, to)
    count, wide = len(work), m if full else n
    s = empty((count, n), real_of(to))
    u, vh = empty((count, wide, m), to), empty((count, n, n), to)
    info = empty(count, numpy.int32)
    if work.size:
        size = function("gesvd_buffer_size", to)(solver(), m, n)
        room = empty(max(size, 1), to)
        more = empty(5 * n, real_of(to))
        job = ord("N") if not vectors else ord("A") if full else ord("S")
        other = ord("S") if vectors else ord("N")
        for i in range(count):
            function("gesvd", to)(
                solver(), job, other, m, n, address(work, i), m, address(s, i), address(u, i), m, address(vh, i), n,
                address(room), size, address(more), address(info, i),
            )  # fmt: skip
        check(info, refused, s)
    elif m and vectors and full:
        u.fill(0)
        u[:, range(m), range(m)] = 1
    return u.mT.reshape((*batch, m, wide)), s.reshape((*batch, n)), vh.mT.reshape((*batch, n, n))


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular value decomposition, as ``numpy.linalg.svd``."""
    if not compute_uv:
        return svdvals(a)
    u, s, vh = _svd(a, full_matrices, True)
    return SVDResult(u.copy(), s, vh.copy())


def svdvals(x: Any, /) -> ndarray:
    """The singular values, as ``numpy.linalg.svdvals``."""
    return _svd(x, False, False)[1]


def _eigh(x: Any, lower: bool, vectors: bool) -> tuple[ndarray, ndarray]:
    values, to = given(x, square=True)
    n = values.shape[-1]
    work = columns_first(values, to)
    w, info = empty((len(work), n), real_of(to)), empty(len(work), numpy.int32)
    if work.size:
        job = cusolver.EigMode.VECTOR if vectors else cusolver.EigMode.NOVECTOR
        head = (solver(), int(job), _LOWER if lower else 1, n)
        size = function("syevd_buffer_size", to)(*head, address(work), n, address(w))
        room = empty(max(size, 1), to)
        for i in range(len(work)):
            function("syevd", to)(*head, address(work, i), n, address(w, i), address(room), size, address(info, i))
        check(info, "Eigenvalues did not converge", w)
    return w.reshape((*values.shape[:-2], n)), work.mT.reshape(values.shape)


def _is_lower(triangle: str) -> bool:
    if triangle.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return triangle.upper() == "L"


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices, as ``numpy.linalg.eigh``."""
    w, v = _eigh(a, _is_lower(UPLO), True)
    return EighResult(w, v.copy())


def eigvalsh(a: Any, UPLO: str = "L") -> ndarray:
    """Eigenvalues of Hermitian matrices, as ``numpy.linalg.eigvalsh``."""
    return _eigh(a, _is_lower(UPLO), False)[0]


# What cuSOLVER calls the types in functions that take them by number.
_NUMBERS = {"f": 0, "d": 1, "F": 4, "D": 5}


def _eig(x: Any, vectors: bool) -> tuple[ndarray, ndarray, bool]:
    """Eigenvalues, vectors in columns, and whether both are to be real: of real matrices with real eigenvalues.

    Those of a real matrix are found by real arithmetic: the complex ones are pairs, and no others have imaginary parts.
    """
    values, to = given(x, square=True)
    if values.size and not UFUNCS["isfinite"](values).all():  # of which cuSOLVER says that it has an internal error
        raise numpy.linalg.LinAlgError("Array must not contain infs or NaNs")
    n = values.shape[-1]
    whole = numpy.result_type(to, numpy.complex64)
    work = columns_first(values, to)
    w, v = empty((len(work), n), whole), empty((len(work), n, n), to)
    info = empty(len(work), numpy.int32)
    there = numpy.empty((0, n), whole)
    if work.size:
        number = _NUMBERS[to.char]
        params = cusolver.create_params()
        job = int(cusolver.EigMode.VECTOR if vectors else cusolver.EigMode.NOVECTOR)
        for i in range(len(work)):
            head = (solver(), params, int(cusolver.EigMode.NOVECTOR), job, n, number, address(work, i), n,
                    _NUMBERS[whole.char], address(w, i), number, 0, 1, number, address(v, i), n, number)  # fmt: skip
            on_device, on_host = cusolver.xgeev_buffer_size(*head)
            room = empty(max(on_device, 1), numpy.uint8)
            beside = numpy.empty(max(on_host, 1), numpy.uint8)
            cusolver.xgeev(*head, address(room), on_device, beside.ctypes.data, on_host, address(info, i))
            check(info[i : i + 1], "Eigenvalues did not converge")  # which waits, so `beside` may go
        cusolver.destroy_params(params)
        there = w.to_numpy()
    all_real = to.kind == "f" and not there.imag.any()
    if vectors and to.kind == "f" and not all_real:
        v = _joined_pairs(w.imag[:, :, None], v)
    if SINCE_2_5:
        v, all_real = v.astype(whole, copy=False), False
    return w.reshape((*values.shape[:-2], n)), v.mT.reshape(values.shape), all_real


def _joined_pairs(imaginary: ndarray, v: ndarray) -> ndarray:
    """Complex vectors of real and imaginary parts: a pair of eigenvalues has one vector in the places of two."""
    first = v + 1j * roll(v, -1, axis=1)
    second = roll(v, 1, axis=1) - 1j * v
    made: ndarray = where(imaginary > 0, first, where(imaginary < 0, second, v))
    return made


def eig(a: Any) -> EigResult:
    """Eigenvalues and vectors, as ``numpy.linalg.eig``: before NumPy 2.5, real ones of real matrices if all are."""
    w, v, all_real = _eig(a, True)
    return EigResult(w.real.copy() if all_real else w, v.copy())


def eigvals(a: Any) -> ndarray:
    """Eigenvalues, as ``numpy.linalg.eigvals``: before NumPy 2.5, real ones of real matrices if all are real."""
    w, _, all_real = _eig(a, False)
    return w.real.copy() if all_real else w
