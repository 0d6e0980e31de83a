"""cuDSS through its bindings: systems of linear equations, compared with NumPy's solution of the dense ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cupola import Device, Stream
from cupola.bindings import cudss, driver
from tests import processes

TYPES = {
    "float32": (np.float32, 0),
    "float64": (np.float64, 1),
    "complex64": (np.complex64, 4),
    "complex128": (np.complex128, 5),
}
R_32I, R_64I = 10, 24
GENERAL, SYMMETRIC, HERMITIAN, SPD, HPD = range(5)
FULL, LOWER, UPPER = range(3)


@pytest.fixture
def stream() -> Iterator[Stream]:
    device = Device()
    device.set_current()
    stream = device.create_stream()
    yield stream
    stream.close()


class Solver:
    """A handle with a configuration and data."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        try:
            self.handle = cudss.create()
        except (ImportError, RuntimeError) as error:
            pytest.skip(f"no cuDSS: {error}")
        cudss.set_stream(self.handle, int(stream.handle))
        self.config, self.data = cudss.config_create(), cudss.data_create(self.handle)
        self.kept: list[Any] = []

    def put(self, values: Any) -> int:
        flat = np.ascontiguousarray(values.ravel("F")).view(np.uint8)
        buffer = Device().allocate(max(flat.nbytes, 16), stream=self.stream)
        self.kept.append(buffer)
        if flat.nbytes:
            driver.cuMemcpyHtoDAsync(int(buffer.handle), flat, flat.nbytes, self.stream.handle)
            self.stream.sync()
        return int(buffer.handle)

    def csr(self, dense: Any, kind: int = GENERAL, view: int = FULL, index: Any = np.int32, base: int = 0) -> int:
        half = dense if view == FULL else np.tril(dense) if view == LOWER else np.triu(dense)
        rows, columns = np.nonzero(half)
        offsets = (np.searchsorted(rows, np.arange(len(dense) + 1)) + base).astype(index)
        self.values = half[rows, columns]
        starts, places, values = (self.put(x) for x in (offsets, (columns + base).astype(index), self.values))
        code, value_type = R_32I if index == np.int32 else R_64I, dict(TYPES.values())[dense.dtype.type]
        n, count = len(dense), len(rows)
        return cudss.matrix_create_csr(n, n, count, starts, 0, places, values, code, code, value_type, kind, view, base)

    def dense(self, values: Any) -> tuple[int, int]:
        address = self.put(values)
        rows, columns = values.shape
        code = dict(TYPES.values())[values.dtype.type]
        return address, cudss.matrix_create_dn(rows, columns, rows, address, code, cudss.Layout.COL_MAJOR)

    def run(self, phase: int, a: int, x: int, b: int) -> None:
        cudss.execute(self.handle, phase, self.config, self.data, a, x, b)

    def read(self, address: int, shape: tuple[int, int], dtype: Any) -> Any:
        flat = np.empty(shape[0] * shape[1] * np.dtype(dtype).itemsize, np.uint8)
        driver.cuMemcpyDtoHAsync(flat, address, flat.nbytes, self.stream.handle)
        self.stream.sync()
        return flat.view(dtype).reshape(shape, order="F")

    def get(self, parameter: int, dtype: Any) -> int:
        result = np.zeros(1, dtype)
        cudss.data_get(self.handle, self.data, parameter, result, result.nbytes)
        return int(result[0])

    def array(self, parameter: int, count: int, dtype: Any) -> Any:
        result = np.full(count, 77, dtype)
        assert cudss.data_get(self.handle, self.data, parameter, result, result.nbytes) == result.nbytes
        return result


@pytest.fixture
def solver(stream: Stream) -> Iterator[Solver]:
    solver = Solver(stream)
    yield solver
    cudss.data_destroy(solver.handle, solver.data)
    cudss.config_destroy(solver.config)
    cudss.destroy(solver.handle)


def random(n: int, dtype: Any, density: float = 0.1, seed: int = 1) -> Any:
    generator = np.random.default_rng(seed)
    values = generator.standard_normal((n, n))
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * generator.standard_normal((n, n))
    return (values * (generator.random((n, n)) < density) + np.eye(n)[generator.permutation(n)] * 3).astype(dtype)


ALL = (cudss.Phase.ANALYSIS, cudss.Phase.FACTORIZATION, cudss.Phase.SOLVE)


@pytest.mark.parametrize(("dtype", "code"), TYPES.values(), ids=TYPES)
@pytest.mark.parametrize(("index", "base"), [(np.int32, 0), (np.int64, 1)])
def test_general_systems(solver: Solver, dtype: Any, code: int, index: Any, base: int) -> None:
    dense, b = random(80, dtype), random(80, dtype, 1, 2)[:, :3].copy()
    a = solver.csr(dense, index=index, base=base)
    (_, rhs), (address, solution) = solver.dense(b), solver.dense(np.zeros_like(b))
    for phase in ALL:
        solver.run(phase, a, solution, rhs)
    x = solver.read(address, b.shape, dtype)
    scale = np.linalg.cond(dense) * np.finfo(dtype).eps * 100
    np.testing.assert_allclose(x, np.linalg.solve(dense, b), rtol=scale, atol=scale)
    assert solver.get(cudss.DataParam.LU_NNZ, np.int64) >= np.count_nonzero(dense)
    assert solver.get(cudss.DataParam.INFO, np.int32) == 0
    assert cudss.matrix_get_format(a) == cudss.MatrixFormat.CSR


@pytest.mark.parametrize(("dtype", "code"), TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("kind", [SYMMETRIC, HERMITIAN, SPD, HPD])
@pytest.mark.parametrize("view", [FULL, LOWER, UPPER])
def test_one_triangle_stands_for_both(solver: Solver, dtype: Any, code: int, kind: int, view: int) -> None:
    kind = HPD if kind == SPD and np.issubdtype(dtype, np.complexfloating) else kind  # the other has no such matrices
    dense = random(60, dtype)
    dense = dense + (dense.conj().T if kind in (HERMITIAN, HPD) else dense.T)
    if kind in (SPD, HPD):
        dense = dense + np.eye(60, dtype=dtype) * dtype(np.abs(dense).sum(axis=1).max())
    b = random(60, dtype, 1, 2)[:, :1].copy()
    a = solver.csr(dense, kind, view)
    (_, rhs), (address, solution) = solver.dense(b), solver.dense(np.zeros_like(b))
    for phase in ALL:
        solver.run(phase, a, solution, rhs)
    x = solver.read(address, b.shape, dtype)
    scale = np.linalg.cond(dense) * np.finfo(dtype).eps * 1000
    np.testing.assert_allclose(x, np.linalg.solve(dense, b), rtol=scale, atol=scale)


def test_new_values_of_the_same_structure(solver: Solver) -> None:
    dense, b = random(50, np.float64), random(50, np.float64, 1, 2)[:, :2].copy()
    a = solver.csr(dense)
    (_, rhs), (address, solution) = solver.dense(b), solver.dense(np.zeros_like(b))
    for phase in ALL:
        solver.run(phase, a, solution, rhs)
    cudss.matrix_set_values(a, solver.put(2 * solver.values))
    for phase in (cudss.Phase.REFACTORIZATION, cudss.Phase.SOLVE):
        solver.run(phase, a, solution, rhs)
    np.testing.assert_allclose(solver.read(address, b.shape, np.float64), np.linalg.solve(2 * dense, b), rtol=1e-8)


def test_a_grid(solver: Solver) -> None:
    """The Laplacian of 40 by 40 points: factors stay far from dense ones."""
    n = 40
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    dense = np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)
    b = np.ones((n * n, 1))
    a = solver.csr(dense, SPD, UPPER)
    (_, rhs), (address, solution) = solver.dense(b), solver.dense(np.zeros_like(b))
    for phase in ALL:
        solver.run(phase, a, solution, rhs)
    np.testing.assert_allclose(dense @ solver.read(address, b.shape, np.float64), b, atol=1e-9)
    assert solver.get(cudss.DataParam.LU_NNZ, np.int64) < (n * n) ** 2 / 8


def test_settings(solver: Solver) -> None:
    steps, back = np.array([3], np.int32), np.zeros(1, np.int32)
    cudss.config_set(solver.config, cudss.ConfigParam.IR_N_STEPS, steps, 4)
    assert cudss.config_get(solver.config, cudss.ConfigParam.IR_N_STEPS, back, 4) == 4
    assert back[0] == 3
    with pytest.raises(cudss.cuDSSError, match="INVALID_VALUE"):
        cudss.config_set(solver.config, 99, steps, 4)


def test_phases_have_an_order(solver: Solver) -> None:
    dense, b = random(10, np.float64), np.ones((10, 1))
    a = solver.csr(dense)
    (_, rhs), (_, solution), (_, short) = solver.dense(b), solver.dense(b), solver.dense(np.ones((9, 1)))
    for phase in (cudss.Phase.FACTORIZATION, cudss.Phase.SOLVE, 0, 1 << 20):
        with pytest.raises(cudss.cuDSSError):
            solver.run(phase, a, solution, rhs)
    solver.run(cudss.Phase.ANALYSIS | cudss.Phase.FACTORIZATION, a, solution, rhs)
    with pytest.raises(cudss.cuDSSError, match="INVALID_VALUE"):
        solver.run(cudss.Phase.SOLVE, a, short, rhs)
    with pytest.raises(cudss.cuDSSError, match="NOT_INITIALIZED|INVALID_VALUE"):
        cudss.execute(0, 3, solver.config, solver.data, a, solution, rhs)


def test_singular_systems_do_no_harm(solver: Solver) -> None:
    if "CPU device" not in Device().name:
        pytest.skip("which pivots are replaced is the CPU device's")
    dense, b = np.diag([1.0, 0, 2]) + 0, np.ones((3, 1))
    dense[0, 1] = 1
    a = solver.csr(dense)
    (_, rhs), (address, solution) = solver.dense(b), solver.dense(b)
    for phase in ALL:
        solver.run(phase, a, solution, rhs)
    assert solver.get(cudss.DataParam.NPIVOTS, np.int32) == 1
    assert np.isfinite(solver.read(address, b.shape, np.float64)).all()


def test_bad_indices_end_the_context(tmp_path: Any) -> None:
    if "CPU device" not in Device().name:
        pytest.skip("what a GPU does with a bad index is not defined")
    import os
    import sys

    program = """
import contextlib
from cupola import CUDAError
from tests.bindings.test_cudss import *
device = Device()
device.set_current()
solver = Solver(device.create_stream())
dense = np.eye(3)
offsets, indices = solver.put(np.array([0, 1, 2, 3], np.int32)), solver.put(np.array([0, 7, 2], np.int32))
a = cudss.matrix_create_csr(3, 3, 3, offsets, 0, indices, solver.put(np.ones(3)), 10, 10, 1, 0, 0, 0)
(_, rhs), (_, x) = solver.dense(np.ones((3, 1))), solver.dense(np.ones((3, 1)))
with contextlib.suppress(cudss.cuDSSError):  # a later phase may see that the analysis has failed
    solver.run(7, a, x, rhs)
try:
    solver.stream.sync()
except CUDAError as error:
    print(error)
"""
    environment = os.environ | {"CUPOLA_DEVICE": "cpu"}
    done = processes.run([sys.executable, "-c", program], env=environment)
    assert "cudssExecute: number 1 of the indices of the matrix is 7" in done.stdout, done.stdout + done.stderr


def test_hybrid_memory(solver: Solver) -> None:
    dense, b = random(40, np.float64), random(40, np.float64, 1, 2)[:, :2].copy()
    mode = np.ones(1, np.int32)
    cudss.config_set(solver.config, cudss.ConfigParam.HYBRID_MEMORY_MODE, mode, mode.nbytes)
    a = solver.csr(dense)
    (_, rhs), (address, solution) = solver.dense(b), solver.dense(np.zeros_like(b))
    solver.run(cudss.Phase.ANALYSIS, a, solution, rhs)
    assert solver.get(cudss.DataParam.HYBRID_DEVICE_MEMORY_MIN, np.int64) >= 0
    for phase in (cudss.Phase.FACTORIZATION, cudss.Phase.SOLVE):
        solver.run(phase, a, solution, rhs)
    np.testing.assert_allclose(dense @ solver.read(address, b.shape, np.float64), b, atol=1e-9)


class Batch:
    """Batches of systems of several sizes: the arrays that describe them, and their values on the device."""

    def __init__(self, solver: Solver, systems: list[Any], columns: int, on_device: bool) -> None:
        self.solver, self.on_device, self.kept = solver, on_device, list[Any]()
        n = np.array([len(dense) for dense in systems], np.int32)
        parts: list[list[int]] = [[], [], []]
        counts = []
        for dense in systems:
            rows, places = np.nonzero(dense)
            counts.append(len(rows))
            starts = np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32)
            for part, array in zip(parts, (starts, places.astype(np.int32), dense[rows, places]), strict=True):
                part.append(solver.put(array))
        self.right = [random(len(dense), np.float64, 1, 3)[:, :columns].copy() for dense in systems]
        self.places = [solver.put(np.zeros_like(b)) for b in self.right]
        pointers = [self.pointers(part) for part in parts]
        sizes, wide = self.host(n), self.host(np.full_like(n, columns))
        self.csr = cudss.matrix_create_batch_csr(
            len(n), sizes, sizes, self.host(np.array(counts, np.int32)), pointers[0], 0, pointers[1], pointers[2],
            R_32I, R_32I, 1, GENERAL, FULL, 0,
        )  # fmt: skip
        self.x, self.b = (
            cudss.matrix_create_batch_dn(len(n), sizes, wide, sizes, self.pointers(where), R_32I, 1, 0)
            for where in (self.places, [solver.put(b) for b in self.right])
        )

    def host(self, array: Any) -> int:
        self.kept.append(array)
        return int(array.ctypes.data)

    def pointers(self, places: list[int]) -> int:
        array = np.array(places, np.uint64)
        return self.solver.put(array) if self.on_device else self.host(array)

    def check(self, systems: list[Any]) -> None:
        for dense, b, place in zip(systems, self.right, self.places, strict=True):
            x = self.solver.read(place, b.shape, np.float64)
            np.testing.assert_allclose(dense @ x, b, atol=1e-9)


@pytest.mark.parametrize("on_device", [True, False])
def test_batches(solver: Solver, on_device: bool) -> None:
    if not on_device and not Device().name.startswith("cupola"):
        pytest.skip("a GPU cannot read memory of the host")
    systems = [random(n, np.float64, seed=n) for n in (20, 1, 35)]
    batch = Batch(solver, systems, 2, on_device)
    for phase in ALL:
        solver.run(phase, batch.csr, batch.x, batch.b)
    batch.check(systems)
    assert solver.get(cudss.DataParam.LU_NNZ, np.int64) >= sum(np.count_nonzero(dense) for dense in systems)
    wanted = cudss.MatrixFormat.CSR | cudss.MatrixFormat.BATCH
    assert cudss.matrix_get_format(batch.csr) == wanted
    twice = [2 * dense for dense in systems]
    values = [solver.put(dense[np.nonzero(dense)]) for dense in twice]
    cudss.matrix_set_batch_values(batch.csr, batch.pointers(values))
    for phase in (cudss.Phase.REFACTORIZATION, cudss.Phase.SOLVE):
        solver.run(phase, batch.csr, batch.x, batch.b)
    batch.check(twice)


@pytest.mark.cpu_only
def test_batches_that_are_refused(solver: Solver) -> None:
    systems = [random(n, np.float64, seed=n) for n in (8, 9)]
    batch, other = Batch(solver, systems, 1, True), Batch(solver, systems[:1], 1, True)
    single = solver.csr(systems[0])
    freed = Device().allocate(64, stream=solver.stream)
    gone = int(freed.handle)
    freed.close()
    solver.stream.sync()
    for phase, matrix, x, said in (
        (cudss.Phase.FACTORIZATION, batch.csr, batch.x, "the analysis of this batch comes first"),
        (cudss.Phase.SOLVE, single, batch.x, "one of the matrices is a batch"),
        (cudss.Phase.SOLVE, batch.csr, other.x, "have 2 and 1 matrices"),
    ):
        with pytest.raises(cudss.cuDSSError, match="INVALID_VALUE") as caught:
            solver.run(phase, matrix, x, batch.b)
        assert said in "".join(caught.value.__notes__)
    cudss.matrix_set_batch_values(batch.csr, gone)
    with pytest.raises(cudss.cuDSSError, match="INVALID_VALUE") as caught:
        solver.run(cudss.Phase.ANALYSIS, batch.csr, batch.x, batch.b)
    assert "cannot be read" in "".join(caught.value.__notes__)


def unpivoted_diagonal(matrix: Any) -> Any:
    """The pivots of a matrix whose rows stay where they are."""
    rest = matrix.copy()
    for k in range(len(rest)):
        rest[k + 1 :, k:] -= np.outer(rest[k + 1 :, k] / rest[k, k], rest[k, k:])
    return np.diag(rest)


@pytest.mark.cpu_only
@pytest.mark.parametrize(("dtype", "code"), TYPES.values(), ids=TYPES)
def test_what_the_phases_find_out(solver: Solver, dtype: Any, code: int) -> None:
    """The factors are those of A[P, Q]."""
    n, param = 30, cudss.DataParam
    dense = random(n, dtype)
    a = solver.csr(dense)
    with pytest.raises(cudss.cuDSSError, match="INVALID_VALUE"):
        solver.array(param.PERM_REORDER_COL, n, np.int32)
    solver.run(cudss.Phase.ANALYSIS, a, 0, 0)
    order = solver.array(param.PERM_REORDER_COL, n, np.int32)
    assert sorted(order) == list(range(n)) and list(order) != list(range(n))
    np.testing.assert_array_equal(solver.array(param.PERM_REORDER_ROW, n, np.int32), order)
    np.testing.assert_array_equal(solver.array(param.PERM_MATCHING, n, np.int32), np.arange(n))
    with pytest.raises(cudss.cuDSSError, match="INVALID_VALUE") as caught:
        solver.array(param.DIAG, n, dtype)
    assert "known after the factorization" in "".join(caught.value.__notes__)
    solver.run(cudss.Phase.FACTORIZATION, a, 0, 0)
    rows, columns = (solver.array(which, n, np.int32) for which in (param.PERM_ROW, param.PERM_COL))
    np.testing.assert_array_equal(columns, order)
    wide = dense.astype(np.complex128)[np.ix_(rows, columns)]
    np.testing.assert_allclose(solver.array(param.DIAG, n, dtype), unpivoted_diagonal(wide), rtol=1e-4)
    real = np.float32 if code in (0, 4) else np.float64
    np.testing.assert_array_equal(solver.array(param.SCALE_ROW, n, real), np.ones(n))
    for refused, status in ((param.INERTIA, "NOT_SUPPORTED"), (param.SCHUR_SHAPE, "NOT_SUPPORTED")):
        with pytest.raises(cudss.cuDSSError, match=status):
            solver.get(refused, np.int64)


@pytest.mark.cpu_only
def test_orders_of_the_users(solver: Solver) -> None:
    n, param = 40, cudss.DataParam
    dense, b = random(n, np.float64), random(n, np.float64, 1, 2)[:, :1].copy()
    a = solver.csr(dense)
    (_, rhs), (address, solution) = solver.dense(b), solver.dense(np.zeros_like(b))
    wanted = np.random.default_rng(4).permutation(n).astype(np.int32)
    for place in (wanted, solver.put(wanted[::-1])):  # of the host, of the device
        cudss.data_set(solver.handle, solver.data, param.USER_PERM, place, wanted.nbytes)
        for phase in ALL:
            solver.run(phase, a, solution, rhs)
        given = wanted if place is wanted else wanted[::-1]
        for which in (param.PERM_REORDER_ROW, param.PERM_REORDER_COL, param.PERM_COL):
            np.testing.assert_array_equal(solver.array(which, n, np.int32), given)
        np.testing.assert_allclose(dense @ solver.read(address, b.shape, np.float64), b, atol=1e-9)
    freed = Device().allocate(4 * n, stream=solver.stream)
    gone = int(freed.handle)
    freed.close()
    for bad, size in ((np.zeros(n, np.int32), 4 * n), (wanted - 1, 4 * n), (wanted, 4 * n - 1), (gone, 4 * n)):
        with pytest.raises(cudss.cuDSSError, match="INVALID_VALUE"):
            cudss.data_set(solver.handle, solver.data, param.USER_PERM, bad, size)
    other = solver.csr(random(n + 1, np.float64))
    with pytest.raises(cudss.cuDSSError, match="INVALID_VALUE") as caught:
        solver.run(cudss.Phase.ANALYSIS, other, 0, 0)
    assert "USER_PERM has 40 numbers, but inputMatrix has 41 rows" in "".join(caught.value.__notes__)
    cudss.data_set(solver.handle, solver.data, param.USER_PERM, 0, 0)  # none again
    none = np.array([cudss.ReorderingAlg.NONE], np.int32)
    cudss.config_set(solver.config, cudss.ConfigParam.REORDERING_ALG, none, 4)
    solver.run(cudss.Phase.ANALYSIS, a, 0, 0)
    np.testing.assert_array_equal(solver.array(param.PERM_REORDER_ROW, n, np.int32), np.arange(n))


def symmetric(n: int, dtype: Any) -> Any:
    dense = random(n, dtype, seed=n)
    return dense + dense.conj().T


INERTIAS = {
    "real": (symmetric(50, np.float64), SYMMETRIC),
    "float": (symmetric(20, np.float32), SYMMETRIC),
    "Hermitian": (symmetric(30, np.complex128), HERMITIAN),
    "no diagonal": (np.kron(np.eye(3), [[0.0, 2], [2, 0]]), SYMMETRIC),
    "singular": (np.diag([1.0, 0, -2, 0, 3]), SYMMETRIC),
    "definite": (np.diag([1.0, 2, 3]), SPD),
}


@pytest.mark.cpu_only
@pytest.mark.parametrize("name", INERTIAS)
def test_inertia(solver: Solver, name: str) -> None:
    dense, kind = INERTIAS[name]
    a = solver.csr(dense, kind, LOWER)
    for phase in ALL[:2]:
        solver.run(phase, a, 0, 0)
    values = np.linalg.eigvalsh(dense)
    assert abs(values[np.abs(values) > 1e-12]).min() > 1e-3  # far enough from zero
    found = solver.array(cudss.DataParam.INERTIA, 2, np.int32)
    assert tuple(found) == ((values > 1e-12).sum(), (values < -1e-12).sum())


@pytest.mark.parametrize("mode", [1, 2])
def test_transposed_systems(solver: Solver, mode: int) -> None:
    dense, b = random(50, np.complex128), random(50, np.complex128, 1, 2)[:, :2].copy()
    a = solver.csr(dense)
    cudss.config_set(solver.config, cudss.ConfigParam.SOLVE_MODE, np.array([mode], np.int32), 4)
    (_, rhs), (address, solution) = solver.dense(b), solver.dense(np.zeros_like(b))
    for phase in ALL:
        solver.run(phase, a, solution, rhs)
    turned = dense.T if mode == 1 else dense.conj().T
    np.testing.assert_allclose(turned @ solver.read(address, b.shape, np.complex128), b, atol=1e-9)
    with pytest.raises(cudss.cuDSSError, match="INVALID_VALUE"):
        cudss.config_set(solver.config, cudss.ConfigParam.SOLVE_MODE, np.array([3], np.int32), 4)
