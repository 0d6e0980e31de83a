"""cuSOLVER through its bindings: the same programs on a GPU and on the CPU device."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cupola import Device, Stream
from cupola.bindings import cusolver_dn as cusolver
from cupola.bindings import driver
from tests import processes
from tests.bindings.test_cublas import LETTERS, Array, on_cpu_device, random

LOWER, UPPER = 0, 1
N, T, C = 0, 1, 2
LEFT, RIGHT = 0, 1
NO_VECTORS, VECTORS = 0, 1
ALL, BY_INDEX, BY_VALUE = 1001, 1002, 1003
CODES = {"s": 0, "d": 1, "c": 4, "z": 5}
REAL = {"s": "s", "d": "d", "c": "s", "z": "d"}
ITEMS = pytest.mark.parametrize("letter", LETTERS)
FILLS = pytest.mark.parametrize("fill", [LOWER, UPPER])


@pytest.fixture(scope="module")
def device() -> Device:
    device = Device()
    device.set_current()
    return device


@pytest.fixture
def stream(device: Device) -> Iterator[Stream]:
    device.set_current()
    stream = device.create_stream()
    yield stream
    stream.close()


@pytest.fixture
def handle(stream: Stream) -> Iterator[int]:
    try:
        handle = cusolver.create()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no cuSOLVER: {error}")
    cusolver.set_stream(handle, int(stream.handle))
    yield handle
    cusolver.destroy(handle)


class Solver:
    """Calls of typed functions and of those that take types by number, with their workspaces."""

    def __init__(self, stream: Stream, handle: int, letter: str) -> None:
        self.stream, self.handle, self.letter = stream, handle, letter
        self.dtype: Any = np.dtype(LETTERS[letter])
        self.real: Any = np.dtype(LETTERS[REAL[letter]])
        self.code, self.real_code = CODES[letter], CODES[REAL[letter]]
        self.info = Array(stream, np.full(64, -99, np.int32))
        self.eps = float(np.finfo(self.dtype).eps)

    def put(self, values: Any, dtype: Any = None) -> Array:
        return Array(self.stream, np.asarray(values, dtype or self.dtype))

    def empty(self, *shape: int, dtype: Any = None) -> Array:
        return self.put(np.zeros(shape), dtype)

    def name(self, base: str) -> str:
        """``orgqr`` is ``cungqr`` for complex numbers."""
        if self.letter in "cz":
            for real, complex_ in (
                ("org", "ung"),
                ("orm", "unm"),
                ("syev", "heev"),
                ("sygv", "hegv"),
                ("sytrd", "hetrd"),
            ):
                base = base.replace(real, complex_)
        return self.letter + base

    def call(
        self, base: str, *arguments: Any, last: tuple[Any, ...] = (), count: int = 1, sized: Any = None
    ) -> list[int]:
        """A typed function whose workspace and devInfo come after the arguments. Returns devInfo."""
        name = self.name(base)
        size = getattr(cusolver, f"{name}_buffer_size")(self.handle, *(arguments if sized is None else sized), *last)
        work = self.empty(max(size, 1))
        getattr(cusolver, name)(self.handle, *arguments, work.address, size, self.info.address, *last)
        return [int(x) for x in self.info.read()[:count]]

    def call_x(
        self, base: str, *arguments: Any, last: tuple[Any, ...] = (), count: int = 1, sized: Any = None
    ) -> list[int]:
        name = f"x{base}"
        asked = getattr(cusolver, f"{name}_buffer_size")(self.handle, *(arguments if sized is None else sized), *last)
        work, host = self.empty(asked[0] // 4 + 4, dtype=np.float32), np.zeros(max(asked[1], 1), np.uint8)
        buffers = (work.address, asked[0], host, asked[1])
        getattr(cusolver, name)(self.handle, *arguments, *buffers, self.info.address, *last)
        return [int(x) for x in self.info.read()[:count]]

    def close(self, actual: Any, expected: Any, size: float = 1.0, factor: float = 200) -> None:
        scale = max(1.0, size, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=factor * self.eps * scale)


@pytest.fixture
def solver(stream: Stream, handle: int, letter: str) -> Solver:
    return Solver(stream, handle, letter)


@pytest.fixture
def params(handle: int) -> Iterator[int]:
    params = cusolver.create_params()
    yield params
    cusolver.destroy_params(params)


def definite(n: int, dtype: Any, seed: int = 0) -> Any:
    a = random((n, n), dtype, seed)
    return (a @ a.conj().T + n * np.eye(n)).astype(dtype)


def symmetric(n: int, dtype: Any, seed: int = 0) -> Any:
    a = random((n, n), dtype, seed)
    return ((a + a.conj().T) / 2).astype(dtype)


# ---- linear equations


@ITEMS
@FILLS
def test_cholesky(solver: Solver, fill: int) -> None:
    n = 20
    a, b = definite(n, solver.dtype), random((n, 3), solver.dtype, 1)
    on_a, on_b = solver.put(a), solver.put(b)
    assert solver.call("potrf", fill, n, on_a.address, n) == [0]
    factor = np.tril(on_a.read()) if fill == LOWER else np.triu(on_a.read())
    solver.close(factor @ factor.conj().T if fill == LOWER else factor.conj().T @ factor, a)
    getattr(cusolver, f"{solver.letter}potrs")(
        solver.handle, fill, n, 3, on_a.address, n, on_b.address, n, solver.info.address
    )
    solver.close(a @ on_b.read(), b, float(np.abs(a).max()))
    assert solver.call("potri", fill, n, on_a.address, n) == [0]
    inverse = np.tril(on_a.read()) if fill == LOWER else np.triu(on_a.read())
    whole = inverse + inverse.conj().T - np.diag(np.diag(inverse))
    solver.close(whole @ a, np.eye(n), float(np.abs(a).max()))


@ITEMS
def test_a_matrix_that_is_not_definite(solver: Solver) -> None:
    a = np.diag([4, 9, -1, 2])
    assert solver.call("potrf", LOWER, 4, solver.put(a).address, 4) == [3]


@ITEMS
@pytest.mark.parametrize("op", [N, T, C])
def test_lu(solver: Solver, op: int) -> None:
    n = 20
    a, b = random((n, n), solver.dtype), random((n, 2), solver.dtype, 1)
    on_a, on_b, pivots = solver.put(a), solver.put(b), solver.empty(n, dtype=np.int32)
    name = f"{solver.letter}getr"
    size = getattr(cusolver, f"{name}f_buffer_size")(solver.handle, n, n, on_a.address, n)
    work = solver.empty(size)
    info = solver.info.address
    getattr(cusolver, f"{name}f")(solver.handle, n, n, on_a.address, n, work.address, pivots.address, info)
    getattr(cusolver, f"{name}s")(solver.handle, op, n, 2, on_a.address, n, pivots.address, on_b.address, n, info)
    assert solver.info.read()[0] == 0
    applied = a if op == N else a.T if op == T else a.conj().T
    solver.close(applied @ on_b.read(), b, 100.0)


@ITEMS
def test_lu_by_number(solver: Solver, params: int) -> None:
    n = 33
    a, b = random((n, n), solver.dtype), random((n, 2), solver.dtype, 1)
    on_a, on_b, pivots = solver.put(a), solver.put(b), solver.empty(n, dtype=np.int64)
    head = (params, n, n, solver.code, on_a.address, n)
    assert solver.call_x("getrf", *head, pivots.address, solver.code, sized=(*head, solver.code)) == [0]
    cusolver.xgetrs(
        solver.handle, params, N, n, 2, solver.code, on_a.address, n, pivots.address, solver.code, on_b.address, n,
        solver.info.address,
    )  # fmt: skip
    solver.close(a @ on_b.read(), b, 100.0)


@ITEMS
def test_lu_without_pivots(solver: Solver, params: int) -> None:
    n = 50
    a = definite(n, solver.dtype)
    on_a = solver.put(a)
    head = (params, n, n, solver.code, on_a.address, n)
    assert solver.call_x("getrf", *head, 0, solver.code, sized=(*head, solver.code)) == [0]
    lu = on_a.read()
    solver.close((np.tril(lu, -1) + np.eye(n)) @ np.triu(lu), a)


@ITEMS
def test_singular_lu(solver: Solver, params: int) -> None:
    a = np.diag([1, 2, 0, 4])
    on_a, pivots = solver.put(a), solver.empty(4, dtype=np.int64)
    head = (params, 4, 4, solver.code, on_a.address, 4)
    assert solver.call_x("getrf", *head, pivots.address, solver.code, sized=(*head, solver.code)) == [3]


@ITEMS
@FILLS
def test_triangular_inverse(solver: Solver, fill: int) -> None:
    a = definite(12, solver.dtype)
    a = np.tril(a) if fill == LOWER else np.triu(a)
    on_a = solver.put(a)
    assert solver.call_x("trtri", fill, 0, 12, solver.code, on_a.address, 12) == [0]
    solver.close(on_a.read() @ a, np.eye(12))


@ITEMS
def test_cholesky_of_batches(solver: Solver) -> None:
    a, b = np.stack([definite(6, solver.dtype, i) for i in range(40)], -1), random((6, 40), solver.dtype, 1)
    a[2, 2, 7] = -1
    on_a, on_b = solver.put(a), solver.put(b)
    tables = [
        solver.put([x.address + i * step * solver.dtype.itemsize for i in range(40)], np.uint64)
        for x, step in ((on_a, 36), (on_b, 6))
    ]
    rest = (6, tables[0].address, 6, solver.info.address, 40)
    getattr(cusolver, f"{solver.letter}potrf_batched")(solver.handle, LOWER, *rest)
    assert list(solver.info.read()[:40]) == [3 if i == 7 else 0 for i in range(40)]
    getattr(cusolver, f"{solver.letter}potrs_batched")(
        solver.handle, LOWER, 6, 1, tables[0].address, 6, tables[1].address, 6, solver.info.address, 40
    )
    x = on_b.read()
    for i in set(range(40)) - {7}:
        solver.close(a[:, :, i] @ x[:, i], b[:, i], 50.0)


@ITEMS
@FILLS
def test_symmetric_indefinite(solver: Solver, fill: int) -> None:
    n = 9
    a = random((n, n), solver.dtype)
    a = ((a + a.T) / 2).astype(solver.dtype)  # symmetric also where numbers are complex
    on_a, pivots = solver.put(a), solver.empty(n, dtype=np.int32)
    letter, info = solver.letter, solver.info.address
    size = getattr(cusolver, f"{letter}sytrf_buffer_size")(solver.handle, n, on_a.address, n)
    work = solver.empty(size)
    getattr(cusolver, f"{letter}sytrf")(
        solver.handle, fill, n, on_a.address, n, pivots.address, work.address, size, info
    )
    size = getattr(cusolver, f"{letter}sytri_buffer_size")(solver.handle, fill, n, on_a.address, n, pivots.address)
    factor, b = on_a.read(), random((n, 2), solver.dtype, 1)
    wide, on_b = solver.put(pivots.read(), np.int64), solver.put(b)
    again = solver.put(factor)
    head = (fill, n, 2, solver.code, again.address, n, wide.address, solver.code, on_b.address, n)
    assert solver.call_x("sytrs", *head) == [0]
    solver.close(a @ on_b.read(), b, 100.0)
    if not on_cpu_device():
        return  # sytri of cuSOLVER 12.0 returns without doing anything
    work = solver.empty(size)
    getattr(cusolver, f"{letter}sytri")(
        solver.handle, fill, n, on_a.address, n, pivots.address, work.address, size, info
    )
    inverse = np.tril(on_a.read()) if fill == LOWER else np.triu(on_a.read())
    solver.close((inverse + inverse.T - np.diag(np.diag(inverse))) @ a, np.eye(n), 100.0)


@ITEMS
@FILLS
def test_symmetric_without_pivots(solver: Solver, fill: int) -> None:
    n = 20
    a = random((n, n), solver.dtype)
    a = (a + a.T + 8 * n * np.eye(n)).astype(solver.dtype)
    on_a, b = solver.put(a), random((n, 2), solver.dtype, 1)
    letter, info = solver.letter, solver.info.address
    size = getattr(cusolver, f"{letter}sytrf_buffer_size")(solver.handle, n, on_a.address, n)
    on_b, work = solver.put(b), solver.empty(size)
    getattr(cusolver, f"{letter}sytrf")(solver.handle, fill, n, on_a.address, n, 0, work.address, size, info)
    # L D Lᵀ, or Uᵀ D U, which LAPACK does not have: its U begins with the last column.
    triangle = np.tril(on_a.read(), -1) if fill == LOWER else np.triu(on_a.read(), 1).T
    factor, diagonal = triangle + np.eye(n), np.diag(on_a.read())
    solver.close(factor * diagonal @ factor.T, a)
    head = (fill, n, 2, solver.code, on_a.address, n, 0, solver.code, on_b.address, n)
    assert solver.call_x("sytrs", *head) == [0]
    solver.close(a @ on_b.read(), b)


# ---- orthogonal factors


@ITEMS
def test_qr(solver: Solver) -> None:
    m, n = 15, 6
    a = random((m, n), solver.dtype)
    on_a, tau = solver.put(a), solver.empty(n)
    letter, info = solver.letter, solver.info.address
    size = getattr(cusolver, f"{letter}geqrf_buffer_size")(solver.handle, m, n, on_a.address, m)
    work = solver.empty(size)
    getattr(cusolver, f"{letter}geqrf")(solver.handle, m, n, on_a.address, m, tau.address, work.address, size, info)
    factors = on_a.read()
    r = np.triu(factors)[:n]
    c = random((m, 4), solver.dtype, 2)
    on_c = solver.put(c)
    last = (LEFT, C if letter in "cz" else T, m, 4, n, on_a.address, m, tau.address, on_c.address, m)
    assert solver.call("ormqr", *last) == [0]
    product = on_c.read()
    assert solver.call("orgqr", m, n, n, on_a.address, m, tau.address) == [0]
    q = on_a.read()
    solver.close(q.conj().T @ q, np.eye(n))
    solver.close(q @ r, a)
    solver.close(product[:n], q.conj().T @ c)


@ITEMS
def test_qr_by_number(solver: Solver, params: int) -> None:
    m, n = 15, 6
    a = random((m, n), solver.dtype)
    on_a, tau = solver.put(a), solver.empty(n)
    head = (params, m, n, solver.code, on_a.address, m, solver.code, tau.address, solver.code)
    assert solver.call_x("geqrf", *head) == [0]
    r = np.triu(on_a.read())[:n]
    solver.close(r.conj().T @ r, a.conj().T @ a)


@ITEMS
@FILLS
def test_tridiagonal(solver: Solver, fill: int) -> None:
    n = 10
    a = symmetric(n, solver.dtype)
    on_a, tau = solver.put(a), solver.empty(n)
    d, e = solver.empty(n, dtype=solver.real), solver.empty(n, dtype=solver.real)
    assert solver.call("sytrd", fill, n, on_a.address, n, d.address, e.address, tau.address) == [0]
    t = np.diag(d.read()) + np.diag(e.read()[: n - 1], 1) + np.diag(e.read()[: n - 1], -1)
    on_c = solver.put(np.eye(n))
    last = (LEFT, fill, N, n, n, on_a.address, n, tau.address, on_c.address, n)
    assert solver.call("ormtr", *last) == [0]
    assert solver.call("orgtr", fill, n, on_a.address, n, tau.address) == [0]
    q = on_a.read()
    solver.close(q, on_c.read())
    solver.close(q @ t @ q.conj().T, a)


@ITEMS
def test_bidiagonal(solver: Solver) -> None:
    m, n = 9, 6
    a = random((m, n), solver.dtype)
    on_a, tauq, taup = solver.put(a), solver.empty(n), solver.empty(n)
    d, e = solver.empty(n, dtype=solver.real), solver.empty(n, dtype=solver.real)
    diagonals = (d.address, e.address, tauq.address, taup.address)
    assert solver.call("gebrd", m, n, on_a.address, m, *diagonals, sized=(m, n)) == [0]
    on_p = solver.put(on_a.read()[:n])
    assert solver.call("orgbr", LEFT, m, n, n, on_a.address, m, tauq.address) == [0]
    assert solver.call("orgbr", RIGHT, n, n, m, on_p.address, n, taup.address) == [0]
    middle = np.diag(d.read()) + np.diag(e.read()[: n - 1], 1)
    solver.close(on_a.read() @ middle @ on_p.read(), a)


# ---- eigenvalues


def check_eigen(solver: Solver, a: Any, values: Any, vectors: Any, b: Any = None) -> None:
    b = np.eye(len(a)) if b is None else b
    solver.close(a @ vectors, b @ vectors * values, float(np.abs(a).max() * np.abs(b).max() * 10))
    solver.close(vectors.conj().T @ b @ vectors, np.eye(vectors.shape[1]), float(np.abs(b).max()))


@ITEMS
@FILLS
def test_eigenvalues(solver: Solver, params: int, fill: int) -> None:
    n = 16
    a = symmetric(n, solver.dtype)
    expected = np.linalg.eigvalsh(a)
    half = np.tril(a) if fill == LOWER else np.triu(a)  # the other half does not count
    on_a, w = solver.put(half), solver.empty(n, dtype=solver.real)
    assert solver.call("syevd", VECTORS, fill, n, on_a.address, n, w.address) == [0]
    solver.close(w.read(), expected)
    check_eigen(solver, a, w.read(), on_a.read())
    on_a, w = solver.put(half), solver.empty(n, dtype=solver.real)
    head = (params, VECTORS, fill, n, solver.code, on_a.address, n, solver.real_code, w.address, solver.code)
    assert solver.call_x("syevd", *head) == [0]
    check_eigen(solver, a, w.read(), on_a.read())
    on_a = solver.put(half)
    assert solver.call("syevd", NO_VECTORS, fill, n, on_a.address, n, w.address) == [0]
    solver.close(w.read(), expected)


@ITEMS
@pytest.mark.parametrize("range_", [ALL, BY_INDEX, BY_VALUE])
def test_some_eigenvalues(solver: Solver, params: int, range_: int) -> None:
    n = 16
    a = symmetric(n, solver.dtype)
    expected = np.linalg.eigvalsh(a)
    low, high = float((expected[3] + expected[4]) / 2), float((expected[9] + expected[10]) / 2)
    chosen = {ALL: slice(None), BY_INDEX: slice(2, 7), BY_VALUE: slice(4, 10)}[range_]
    on_a, w, count = solver.put(a), solver.empty(n, dtype=solver.real), np.zeros(1, np.int32)
    head = (VECTORS, range_, LOWER, n, on_a.address, n, low, high, 3, 7, count, w.address)
    assert solver.call("syevdx", *head) == [0]
    assert count[0] == len(expected[chosen])
    solver.close(w.read()[: count[0]], expected[chosen])
    check_eigen(solver, a, w.read()[: count[0]], on_a.read()[:, : count[0]])
    on_a, wide = solver.put(a), np.zeros(1, np.int64)
    bounds = np.array([low, high], solver.real)
    head_x = (
        params, VECTORS, range_, LOWER, n, solver.code, on_a.address, n, bounds[:1], bounds[1:], 3, 7, wide,
        solver.real_code, w.address, solver.code,
    )  # fmt: skip
    assert solver.call_x("syevdx", *head_x) == [0]
    assert wide[0] == count[0]
    check_eigen(solver, a, w.read()[: wide[0]], on_a.read()[:, : wide[0]])


@ITEMS
@pytest.mark.parametrize("method", ["sygvd", "sygvj"])
def test_generalized_eigenvalues(solver: Solver, method: str) -> None:
    n = 10
    a, b = symmetric(n, solver.dtype), definite(n, solver.dtype, 1)
    on_a, on_b, w = solver.put(a), solver.put(b), solver.empty(n, dtype=solver.real)
    settings = cusolver.create_syevj_info()
    last = (settings,) if method == "sygvj" else ()
    head = (1, VECTORS, LOWER, n, on_a.address, n, on_b.address, n, w.address)
    assert solver.call(method, *head, last=last) == [0]
    check_eigen(solver, a, w.read(), on_a.read(), b)
    cusolver.destroy_syevj_info(settings)


@ITEMS
def test_jacobi(solver: Solver) -> None:
    n = 12
    a = symmetric(n, solver.dtype)
    on_a, w = solver.put(a), solver.empty(n, dtype=solver.real)
    settings = cusolver.create_syevj_info()
    cusolver.xsyevj_set_tolerance(settings, 10 * solver.eps)
    cusolver.xsyevj_set_max_sweeps(settings, 50)
    assert solver.call("syevj", VECTORS, LOWER, n, on_a.address, n, w.address, last=(settings,)) == [0]
    check_eigen(solver, a, w.read(), on_a.read())
    assert cusolver.xsyevj_get_sweeps(solver.handle, settings) >= 1
    assert cusolver.xsyevj_get_residual(solver.handle, settings) < 1000 * solver.eps * float(np.abs(a).sum())
    cusolver.destroy_syevj_info(settings)


@ITEMS
def test_eigenvalues_of_batches(solver: Solver, params: int) -> None:
    n, count = 5, 30
    a = np.stack([symmetric(n, solver.dtype, i) for i in range(count)], -1)
    on_a, w = solver.put(a), solver.empty(n, count, dtype=solver.real)
    settings = cusolver.create_syevj_info()
    head = (VECTORS, LOWER, n, on_a.address, n, w.address)
    assert solver.call("syevj_batched", *head, last=(settings, count), count=count) == [0] * count
    for i in range(count):
        check_eigen(solver, a[:, :, i], w.read()[:, i], on_a.read()[:, :, i])
    cusolver.destroy_syevj_info(settings)
    on_a = solver.put(a)
    head_x = (params, VECTORS, LOWER, n, solver.code, on_a.address, n, solver.real_code, w.address, solver.code)
    assert solver.call_x("syev_batched", *head_x, last=(count,), count=count) == [0] * count
    for i in range(count):
        check_eigen(solver, a[:, :, i], w.read()[:, i], on_a.read()[:, :, i])


@ITEMS
@pytest.mark.parametrize("wide", [False, True])
def test_eigenvalues_without_symmetry(solver: Solver, params: int, wide: bool) -> None:
    """Those of real matrices are complex numbers, or real parts and then imaginary ones; vectors come as LAPACK has
    them."""
    n = 8
    a = random((n, n), solver.dtype)
    complex_letter = {"s": "c", "d": "z"}.get(solver.letter, solver.letter)
    complex_type: Any = np.dtype(LETTERS[complex_letter])
    parts = solver.letter in "sd" and not wide
    on_a, left, right = solver.put(a), solver.empty(n, n), solver.empty(n, n)
    w = solver.empty(2 * n) if parts else solver.empty(n, dtype=complex_type)
    head = (
        params, NO_VECTORS, VECTORS, n, solver.code, on_a.address, n, solver.code if parts else CODES[complex_letter],
        w.address, solver.code, left.address, n, solver.code, right.address, n, solver.code,
    )  # fmt: skip
    assert solver.call_x("geev", *head) == [0]
    values = w.read()[:n] + 1j * w.read()[n:] if parts else w.read()
    vectors = right.read().astype(complex_type)
    if solver.letter in "sd":
        packed = right.read()
        for j in np.flatnonzero(values.imag > 0):
            vectors[:, j] = packed[:, j] + 1j * packed[:, j + 1]
            vectors[:, j + 1] = vectors[:, j].conj()
    solver.close(a @ vectors, vectors * values, 10.0)
    expected = np.linalg.eigvals(a)
    for value in expected:
        assert np.abs(values - value).min() < 1000 * solver.eps


# ---- singular values


@ITEMS
def test_svd(solver: Solver, params: int) -> None:
    m, n = 9, 6
    a = random((m, n), solver.dtype)
    expected = np.linalg.svd(a, compute_uv=False)
    letter, info = solver.letter, solver.info.address
    for jobs in (b"AA", b"SS", b"NN", b"AS", b"SA", b"NS", b"AN"):
        on_a, s = solver.put(a), solver.empty(n, dtype=solver.real)
        u, vt = solver.empty(m, m), solver.empty(n, n)
        size = getattr(cusolver, f"{letter}gesvd_buffer_size")(solver.handle, m, n)
        work, rwork = solver.empty(size), solver.empty(5 * m, dtype=solver.real)
        getattr(cusolver, f"{letter}gesvd")(
            solver.handle, jobs[0], jobs[1], m, n, on_a.address, m, s.address, u.address, m, vt.address, n,
            work.address, size, rwork.address, info,
        )  # fmt: skip
        assert solver.info.read()[0] == 0
        solver.close(s.read(), expected)
        if b"N" not in jobs:
            solver.close(u.read()[:, :n] * s.read() @ vt.read(), a)
        if jobs[:1] != b"N":
            solver.close(np.linalg.norm(u.read()[:, :n].conj().T @ a, axis=1), expected)
        if jobs[1:] != b"N":
            solver.close(np.linalg.norm(a @ vt.read().conj().T, axis=0), expected)
        on_a = solver.put(a)
        head = (
            params, jobs[0], jobs[1], m, n, solver.code, on_a.address, m, solver.real_code, s.address, solver.code,
            u.address, m, solver.code, vt.address, n, solver.code,
        )  # fmt: skip
        assert solver.call_x("gesvd", *head) == [0]
        solver.close(s.read(), expected)


@ITEMS
@pytest.mark.parametrize("economic", [0, 1])
@pytest.mark.parametrize("shape", [(9, 6), (6, 9)])
def test_svd_by_jacobi_and_polar_factors(solver: Solver, params: int, economic: int, shape: tuple[int, int]) -> None:
    m, n = shape
    a, count = random(shape, solver.dtype), min(shape)
    settings = cusolver.create_gesvdj_info()
    on_a, s, u, v = solver.put(a), solver.empty(count, dtype=solver.real), solver.empty(m, m), solver.empty(n, n)
    head = (VECTORS, economic, m, n, on_a.address, m, s.address, u.address, m, v.address, n)
    assert solver.call("gesvdj", *head, last=(settings,)) == [0]
    solver.close(u.read()[:, :count] * s.read() @ v.read()[:, :count].conj().T, a)
    assert cusolver.xgesvdj_get_residual(solver.handle, settings) < 1000 * solver.eps
    cusolver.destroy_gesvdj_info(settings)
    on_a, s, u, v = solver.put(a), solver.empty(count, dtype=solver.real), solver.empty(m, m), solver.empty(n, n)
    error = np.full(1, 5.0)
    head_x = (
        params, VECTORS, economic, m, n, solver.code, on_a.address, m, solver.real_code, s.address, solver.code,
        u.address, m, solver.code, v.address, n, solver.code,
    )  # fmt: skip
    asked = cusolver.xgesvdp_buffer_size(solver.handle, *head_x)
    work, host = solver.empty(asked[0] // 4 + 4, dtype=np.float32), np.zeros(max(asked[1], 1), np.uint8)
    cusolver.xgesvdp(solver.handle, *head_x, work.address, asked[0], host, asked[1], solver.info.address, error)
    assert solver.info.read()[0] == 0
    solver.close(u.read()[:, :count] * s.read() @ v.read()[:, :count].conj().T, a)
    assert error[0] < 1e-3


@ITEMS
def test_svd_of_batches(solver: Solver) -> None:
    m, n, count = 7, 5, 20
    a = random((m, n, count), solver.dtype)
    settings = cusolver.create_gesvdj_info()
    on_a, s = solver.put(a), solver.empty(n, count, dtype=solver.real)
    u, v = solver.empty(m, m, count), solver.empty(n, n, count)
    head = (VECTORS, m, n, on_a.address, m, s.address, u.address, m, v.address, n)
    assert solver.call("gesvdj_batched", *head, last=(settings, count), count=count) == [0] * count
    for i in range(count):
        product = u.read()[:, :n, i] * s.read()[:, i] @ v.read()[:, :, i].conj().T
        solver.close(product, a[:, :, i])
    cusolver.destroy_gesvdj_info(settings)


@ITEMS
def test_approximate_svd_of_batches(solver: Solver) -> None:
    m, n, rank, count = 9, 5, 5, 12
    a = random((m, n, count), solver.dtype)
    on_a, s = solver.put(a), solver.empty(rank, count, dtype=solver.real)
    u, v = solver.empty(m, rank, count), solver.empty(n, rank, count)
    norms = np.full(count, 9.0)
    head = (
        VECTORS, rank, m, n, on_a.address, m, m * n, s.address, rank, u.address, m, m * rank, v.address, n, n * rank,
    )  # fmt: skip
    name = f"{solver.letter}gesvda_strided_batched"
    size = getattr(cusolver, f"{name}_buffer_size")(solver.handle, *head, count)
    work = solver.empty(max(size, 1))
    getattr(cusolver, name)(solver.handle, *head, work.address, size, solver.info.address, norms, count)
    assert list(solver.info.read()[:count]) == [0] * count
    assert norms.max() < 1e-2
    for i in range(count):
        product = u.read()[:, :, i] * s.read()[:, i] @ v.read()[:, :, i].conj().T
        solver.close(product, a[:, :, i], factor=5000)


@ITEMS
def test_matrices_without_elements(solver: Solver, params: int) -> None:
    a, s = solver.empty(4, 4), solver.empty(4, dtype=solver.real)
    rest = (a.address, 1, s.address, a.address, 1, a.address, 4)
    settings = cusolver.create_gesvdj_info()
    solver.call("gesvdj", VECTORS, 1, 0, 4, *rest, last=(settings,))
    solver.call("gesvdj_batched", VECTORS, 0, 4, *rest, last=(settings, 1))
    cusolver.destroy_gesvdj_info(settings)
    assert solver.call("potrf", LOWER, 0, a.address, 1) == [0]
    assert solver.call("syevd", NO_VECTORS, LOWER, 0, a.address, 1, s.address) == [0]
    head = (params, 0, 4, solver.code, a.address, 1, solver.code, s.address, solver.code)
    assert solver.call_x("geqrf", *head) == [0]
    assert not a.read().any()


# ---- iterative refinement


@pytest.mark.parametrize(
    ("letter", "pair"), [("s", "ss"), ("d", "dd"), ("d", "ds"), ("c", "cc"), ("z", "zz"), ("z", "zc")]
)
def test_refinement(solver: Solver, pair: str) -> None:
    m, n = 20, 12
    a, b = definite(n, solver.dtype), random((n, 1), solver.dtype, 1)
    on_a, on_b, x, pivots = solver.put(a), solver.put(b), solver.empty(n, 1), solver.empty(n, dtype=np.int32)
    head = (n, 1, on_a.address, n, pivots.address, on_b.address, n, x.address, n)
    size = getattr(cusolver, f"{pair}gesv_buffer_size")(solver.handle, *head, 0)
    work = solver.empty(size // 4 + 4, dtype=np.float32)
    getattr(cusolver, f"{pair}gesv")(solver.handle, *head, work.address, size, solver.info.address)
    assert solver.info.read()[0] == 0
    solver.close(a @ x.read(), b, 100.0)
    a, b = random((m, n), solver.dtype), random((m, 1), solver.dtype, 1)
    on_a, on_b = solver.put(a), solver.put(b)
    head = (m, n, 1, on_a.address, m, on_b.address, m, x.address, n)
    size = getattr(cusolver, f"{pair}gels_buffer_size")(solver.handle, *head, 0)
    work = solver.empty(size // 4 + 4, dtype=np.float32)
    getattr(cusolver, f"{pair}gels")(solver.handle, *head, work.address, size, solver.info.address)
    solver.close(x.read(), np.linalg.lstsq(a, b, rcond=None)[0], factor=2000)


@pytest.mark.parametrize("letter", ["d"])
def test_refinement_with_parameters(solver: Solver) -> None:
    n = 12
    settings, report = cusolver.irs_params_create(), cusolver.irs_infos_create()
    cusolver.irs_params_set_solver_precisions(settings, cusolver.PrecType.R_64F, cusolver.PrecType.R_32F)
    cusolver.irs_params_set_refinement_solver(settings, cusolver.IRSRefinement.CLASSICAL)
    a, b = definite(n, solver.dtype), random((n, 1), solver.dtype, 1)
    on_a, on_b, x = solver.put(a), solver.put(b), solver.empty(n, 1)
    size = cusolver.irs_xgesv_buffer_size(solver.handle, settings, n, 1)
    work = solver.empty(size // 4 + 4, dtype=np.float32)
    cusolver.irs_xgesv(
        solver.handle, settings, report, n, 1, on_a.address, n, on_b.address, n, x.address, n, work.address, size,
        solver.info.address,
    )  # fmt: skip
    solver.close(a @ x.read(), b, 100.0)
    assert cusolver.irs_infos_get_niters(report) >= 0
    cusolver.irs_params_destroy(settings)
    cusolver.irs_infos_destroy(report)


# ---- streams, errors


@pytest.mark.parametrize("letter", ["d"])
def test_calls_are_captured(solver: Solver) -> None:
    if not on_cpu_device():
        pytest.skip("which calls a GPU can capture is cuSOLVER's matter")
    a = definite(6, solver.dtype)
    on_a, work = solver.put(a), solver.empty(64)
    builder = solver.stream.create_graph_builder()
    builder.begin_building()
    cusolver.dpotrf(solver.handle, LOWER, 6, on_a.address, 6, work.address, 64, solver.info.address)
    graph = builder.end_building().complete()
    solver.close(on_a.read(), a)
    assert solver.info.read()[0] == -99
    graph.launch(solver.stream)
    factor = np.tril(on_a.read())
    solver.close(factor @ factor.T, a)
    assert solver.info.read()[0] == 0


def test_a_handle_that_is_none() -> None:
    if not on_cpu_device():
        pytest.skip("cuSOLVER crashes")
    with pytest.raises(cusolver.cuSOLVERError, match="NOT_INITIALIZED"):
        cusolver.set_stream(0, 0)


@pytest.mark.parametrize("letter", ["s"])
def test_errors_explain_themselves(solver: Solver) -> None:
    """And devInfo tells which argument is wrong, when the stream gets there."""
    a = solver.empty(4, 4)
    with pytest.raises(cusolver.cuSOLVERError, match="INVALID_VALUE") as caught:
        cusolver.spotrf(solver.handle, LOWER, 4, a.address, 3, a.address, 16, solver.info.address)
    assert caught.value.status == cusolver.Status.INVALID_VALUE
    assert solver.info.read()[0] == -4
    if on_cpu_device():
        assert "lda is 3, but the matrix has 4 rows" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("dpotrf(handle, 0, 100, address, 100, address, 100, address)", "the matrix A of cusolverDnDpotrf"),
        ("dgetrs(handle, 0, 2, 1, address, 2, address, address, 2, address)", "pivot 1 is none of a matrix"),
        ("dpotrf(handle, 0, 2, address, 2, address, 100, 0)", "devInfo of cusolverDnDpotrf"),
        ("dsyevj_batched(handle, 0, 0, 2, address, 2**30, address, address, 9, address, info, 9)", "the matrix A"),
        ("xpotrf(handle, 0, 0, 2**40, 1, address, 2**40, 1, address, 99, 0, 0, address)", "the matrix A"),
        ("xsyev_batched(handle, 0, 0, 0, 2**40, 1, address, 2**40, 1, address, 1, 0, 0, 0, 0, 0, 2**60)", "matrix A"),
    ],
)
def test_bad_addresses_and_pivots_end_the_context(call: str, what: str) -> None:
    """As a kernel would: the next call that waits says so."""
    if not on_cpu_device():
        pytest.skip("what a GPU does with a bad address is not defined")
    program = f"""
from cupola import CUDAError, Device
from cupola.bindings import cusolver_dn as cusolver, driver
device = Device()
device.set_current()
stream = device.create_stream()
handle, info = cusolver.create(), cusolver.create_syevj_info()
cusolver.set_stream(handle, int(stream.handle))
buffer = device.allocate(64, stream=stream)
address = int(buffer.handle)
driver.cuMemsetD8Async(address, 0x77, 64, stream.handle)
cusolver.{call}
try:
    stream.sync()
except CUDAError as error:
    print(error)
"""
    environment = os.environ | {"CUPOLA_DEVICE": "cpu"}
    done = processes.run([sys.executable, "-c", program], env=environment)
    assert "ILLEGAL_ADDRESS" in done.stdout and what in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("letter", ["d"])
def test_what_is_no_number_ends_in_no_numbers(solver: Solver) -> None:
    if not on_cpu_device():
        pytest.skip("what cuSOLVER makes of such matrices depends on its version")
    a = symmetric(6, solver.dtype)
    a[3, 3] = np.nan
    on_a, w = solver.put(a), solver.empty(6)
    assert solver.call("syevd", NO_VECTORS, LOWER, 6, on_a.address, 6, w.address) == [0]
    assert np.isnan(w.read()).all()
    settings = cusolver.create_syevj_info()
    assert solver.call("syevj", NO_VECTORS, LOWER, 6, on_a.address, 6, w.address, last=(settings,)) == [7]
    cusolver.destroy_syevj_info(settings)
    assert solver.call("potrf", LOWER, 6, on_a.address, 6)[0] > 0


def test_the_driver_is_used(device: Device) -> None:
    assert driver.cuCtxGetCurrent()[0] == 0 and cusolver.get_version() >= 11000
