"""cuSPARSE through its bindings: the same programs on a GPU and on the CPU device, compared with dense matrices."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cupola import Device, Stream
from cupola.bindings import cusparse, driver
from cupola.bindings._provider import FunctionNotFoundError
from tests import processes

N, T, C = 0, 1, 2
CODES = {"e": 2, "f": 0, "d": 1, "F": 4, "D": 5, "b": 3, "i": 10}
TYPES = {"float32": np.float32, "float64": np.float64, "complex64": np.complex64, "complex128": np.complex128}
# Real numbers are not conjugated.
TYPES_AND_OPERATIONS = [
    pytest.param(dtype, op, id=f"{name}-{op}") for name, dtype in TYPES.items() for op in (N, T, C)[: 3 - ("f" in name)]
]
INDICES = {np.int32: 2, np.int64: 3}
ROW, COLUMN = cusparse.Order.ROW, cusparse.Order.COL


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
        handle = cusparse.create()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no cuSPARSE: {error}")
    cusparse.set_stream(handle, int(stream.handle))
    yield handle
    cusparse.destroy(handle)


def on_cpu_device() -> bool:
    return "CPU device" in Device().name


class Array:
    """An array's copy on the device, its elements in the given order."""

    def __init__(self, stream: Stream, values: Any, order: Any = "C") -> None:
        self.values, self.order, self.stream = np.asarray(values), order, stream
        flat = np.ascontiguousarray(self.values.ravel(order)).view(np.uint8)
        self.buffer = Device().allocate(max(flat.nbytes, 16), stream=stream)
        self.address = int(self.buffer.handle)
        if flat.nbytes:
            driver.cuMemcpyHtoDAsync(self.address, flat, flat.nbytes, stream.handle)
            stream.sync()

    def read(self) -> Any:
        flat = np.empty(self.values.nbytes, np.uint8)
        driver.cuMemcpyDtoHAsync(flat, self.address, flat.nbytes, self.stream.handle)
        self.stream.sync()
        return flat.view(self.values.dtype).reshape(self.values.shape, order=self.order)


def random(shape: Any, dtype: Any, seed: int = 0, density: float = 1) -> Any:
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * generator.standard_normal(shape)
    if np.issubdtype(dtype, np.integer):
        values = (10 * values).round().clip(-100, 100)
    return (values * (generator.random(shape) < density)).astype(dtype)


def scalar(value: Any, dtype: Any) -> Any:
    return np.array([value], dtype)


def apply(op: int, a: Any) -> Any:
    return a if op == N else a.T if op == T else a.conj().T


def turned(op: int, shape: tuple[int, int]) -> tuple[int, int]:
    return shape if op == N else shape[::-1]


def close(actual: Any, expected: Any, eps: float = 1e-5) -> None:
    np.testing.assert_allclose(actual, expected, rtol=eps, atol=eps * max(1.0, float(np.abs(expected).max(initial=0))))


def eps_of(dtype: Any) -> float:
    return 100 * float(np.finfo(dtype).eps)


class Sparse:
    """A dense array's elements that are not zero, on the device, with a descriptor."""

    def __init__(self, stream: Stream, dense: Any, form: str = "csr", index: Any = np.int32, base: int = 0) -> None:
        rows, columns = np.nonzero(dense)
        if form == "csc":
            order = np.lexsort((rows, columns))
            rows, columns = rows[order], columns[order]
        self.count = len(rows)
        major, minor = (columns, rows) if form == "csc" else (rows, columns)
        lines = dense.shape[form == "csc"]
        offsets = np.searchsorted(major, np.arange(lines + 1))
        self.first = Array(stream, ((rows if form == "coo" else offsets) + base).astype(index))
        self.second = Array(stream, (minor + base).astype(index))
        self.data = Array(stream, dense[rows, columns])
        self.value_type = CODES[dense.dtype.char]
        types = (INDICES[index],) * (1 if form == "coo" else 2)
        create = getattr(cusparse, f"create_{form}")
        addresses = self.first.address, self.second.address, self.data.address
        self.descriptor = create(*dense.shape, self.count, *addresses, *types, base, self.value_type)


def vector(array: Array) -> int:
    return cusparse.create_dn_vec(array.values.size, array.address, CODES[array.values.dtype.char])


def matrix(array: Array) -> int:
    rows, columns = array.values.shape
    order = ROW if array.order == "C" else COLUMN
    ld = columns if order == ROW else rows
    return cusparse.create_dn_mat(rows, columns, ld, array.address, CODES[array.values.dtype.char], order)


def room(stream: Stream, size: int) -> Array:
    return Array(stream, np.zeros(max(size, 16), np.uint8))


@pytest.mark.parametrize(("dtype", "op"), TYPES_AND_OPERATIONS)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize(("index", "base"), [(np.int32, 0), (np.int64, 1)])
def test_matrix_times_vector(
    stream: Stream, handle: int, dtype: Any, form: str, op: int, index: Any, base: int
) -> None:
    dense = random((60, 40), dtype, 1, 0.1)
    rows, columns = turned(op, dense.shape)
    a, x, y = Sparse(stream, dense, form, index, base), random(columns, dtype, 2), random(rows, dtype, 3)
    on_x, on_y = Array(stream, x), Array(stream, y)
    alpha, beta, code = scalar(1.5, dtype), scalar(-0.5, dtype), a.value_type
    operands = handle, op, alpha, a.descriptor, vector(on_x), beta, vector(on_y), code, 0
    buffer = room(stream, cusparse.sp_mv_buffer_size(*operands))
    cusparse.sp_mv_preprocess(*operands, buffer.address)
    cusparse.sp_mv(*operands, buffer.address)
    close(on_y.read(), 1.5 * apply(op, dense) @ x - 0.5 * y, eps_of(dtype))


@pytest.mark.parametrize(
    ("dtype", "result", "compute", "eps"),
    [
        (np.float16, np.float16, np.float32, 2e-2),
        (np.float16, np.float32, np.float32, 1e-4),
        (np.int8, np.int32, np.int32, 0),
        (np.int8, np.float32, np.float32, 1e-5),
    ],
)
def test_narrow_types(stream: Stream, handle: int, dtype: Any, result: Any, compute: Any, eps: float) -> None:
    dense, x = random((50, 70), dtype, 1, 0.2), random(70, dtype, 2)
    a, on_x, on_y = Sparse(stream, dense), Array(stream, x), Array(stream, np.zeros(50, result))
    one, zero = scalar(1, compute), scalar(0, compute)
    operands = handle, N, one, a.descriptor, vector(on_x), zero, vector(on_y), CODES[np.dtype(compute).char], 0
    buffer = room(stream, cusparse.sp_mv_buffer_size(*operands))
    cusparse.sp_mv(*operands, buffer.address)
    close(on_y.read().astype(np.float64), dense.astype(np.float64) @ x.astype(np.float64), eps)


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("op_a", [N, T])
@pytest.mark.parametrize("op_b", [N, T])
@pytest.mark.parametrize("orders", ["CC", "FF", "CF"])
def test_matrix_times_matrix(
    stream: Stream, handle: int, dtype: Any, form: str, op_a: int, op_b: int, orders: str
) -> None:
    dense = random((30, 20), dtype, 1, 0.2)
    rows, inner = turned(op_a, dense.shape)
    b, c = random(turned(op_b, (inner, 11)), dtype, 2), random((rows, 11), dtype, 3)
    a, on_b, on_c = Sparse(stream, dense, form), Array(stream, b, orders[0]), Array(stream, c, orders[1])
    alpha, beta = scalar(2, dtype), scalar(0.5, dtype)
    operands = handle, op_a, op_b, alpha, a.descriptor, matrix(on_b), beta, matrix(on_c), a.value_type, 0
    buffer = room(stream, cusparse.sp_mm_buffer_size(*operands))
    cusparse.sp_mm(*operands, buffer.address)
    close(on_c.read(), 2 * apply(op_a, dense) @ apply(op_b, b) + 0.5 * c, eps_of(dtype))


def test_batches(stream: Stream, handle: int) -> None:
    """Three matrices of one structure."""
    pattern = random((8, 6), np.float64, 1, 0.4)
    a = Sparse(stream, pattern)
    values = Array(stream, random((3, a.count), np.float64, 2))
    cusparse.csr_set_pointers(a.descriptor, a.first.address, a.second.address, values.address)
    dense = np.zeros((3, *pattern.shape))
    rows, columns = np.nonzero(pattern)
    dense[:, rows, columns] = values.values
    b, c = Array(stream, random((3, 6, 5), np.float64, 3)), Array(stream, np.zeros((3, 8, 5)))
    on_b = cusparse.create_dn_mat(6, 5, 5, b.address, 1, ROW)
    on_c = cusparse.create_dn_mat(8, 5, 5, c.address, 1, ROW)
    cusparse.csr_set_strided_batch(a.descriptor, 3, 0, 0)  # one matrix for all
    cusparse.dn_mat_set_strided_batch(on_b, 3, 30)
    cusparse.dn_mat_set_strided_batch(on_c, 3, 40)
    operands = handle, N, N, scalar(1, np.float64), a.descriptor, on_b, scalar(0, np.float64), on_c, 1, 0
    buffer = room(stream, cusparse.sp_mm_buffer_size(*operands))
    cusparse.sp_mm(*operands, buffer.address)
    close(c.read(), dense[0] @ b.values)


def test_real_numbers_are_not_conjugated(stream: Stream, handle: int) -> None:
    a, x = Sparse(stream, random((4, 4), np.float64, 1)), vector(Array(stream, np.zeros(4)))
    one, buffer = scalar(1, np.float64), room(stream, 256).address
    with pytest.raises(cusparse.cuSPARSEError, match="INVALID_VALUE"):
        cusparse.sp_mv(handle, C, one, a.descriptor, x, one, x, 1, 0, buffer)
    plan = cusparse.sp_sv_create_descr()
    with pytest.raises(cusparse.cuSPARSEError, match="INVALID_VALUE"):
        cusparse.sp_sv_analysis(handle, C, one, a.descriptor, x, x, 1, 0, plan, buffer)
    cusparse.sp_sv_destroy_descr(plan)


@pytest.mark.parametrize("order", [ROW, COLUMN])
def test_blocks(stream: Stream, handle: int, order: int) -> None:
    if not on_cpu_device():
        pytest.skip("blocks are new in cuSPARSE")
    blocks = random((3, 2, 2), np.float64, 1)
    dense = np.zeros((4, 6))
    for (i, j), block in zip(((0, 0), (0, 2), (1, 1)), blocks, strict=True):
        dense[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = block
    offsets, indices = Array(stream, np.array([0, 2, 3], np.int32)), Array(stream, np.array([0, 2, 1], np.int32))
    values = Array(stream, blocks if order == ROW else blocks.transpose(0, 2, 1))
    a = cusparse.create_bsr(2, 3, 3, 2, 2, offsets.address, indices.address, values.address, 2, 2, 0, 1, order)
    x, y = Array(stream, random(6, np.float64, 2)), Array(stream, np.zeros(4))
    one, zero = scalar(1, np.float64), scalar(0, np.float64)
    cusparse.sp_mv(handle, N, one, a, vector(x), zero, vector(y), 1, 0, 0)
    close(y.read(), dense @ x.values)
    b, c = Array(stream, random((6, 3), np.float64, 3)), Array(stream, np.zeros((4, 3)))
    cusparse.sp_mm(handle, N, N, one, a, matrix(b), zero, matrix(c), 1, 0, 0)
    close(c.read(), dense @ b.values)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_blocked_ell(stream: Stream, handle: int, dtype: Any, size: int, order: Any) -> None:
    """From a dense matrix, whose blocks that are not listed are left out, and times another one."""
    listed = np.array([[2, 0], [1, -1], [0, 1]], np.int32)  # -1: no block
    rows, columns, width = 3 * size, 3 * size, 2 * size
    dense = np.round(4 * random((rows, columns), np.float64, 1)).astype(dtype)
    kept = np.zeros_like(dense)
    for i, j in ((i, j) for i, line in enumerate(listed) for j in line if j >= 0):
        part = np.s_[i * size : (i + 1) * size, j * size : (j + 1) * size]
        kept[part] = dense[part]
    code, compute = CODES[np.dtype(dtype).char], 1 if dtype == np.float64 else 0
    indices, values = Array(stream, listed), Array(stream, np.full((rows, width), 7, dtype))
    a = cusparse.create_blocked_ell(rows, columns, size, width, indices.address, values.address, 2, 0, code)
    assert cusparse.blocked_ell_get(a)[2:4] == (size, width)
    original, room = Array(stream, dense, order), Array(stream, np.zeros(1 << 16, np.uint8))
    source = matrix(original)
    assert cusparse.dense_to_sparse_buffer_size(handle, source, a, 0) <= room.values.nbytes
    cusparse.dense_to_sparse_analysis(handle, source, a, 0, room.address)
    cusparse.dense_to_sparse_convert(handle, source, a, 0, room.address)
    assert not values.read()[size : 2 * size, size:].any()  # of the block that is none

    b, c = (Array(stream, np.round(random((rows, 5), np.float64, k)).astype(dtype), order) for k in (2, 3))
    scalars = [scalar(x, np.float64 if compute else np.float32) for x in (0.5, -1)]
    for op in (N, T):
        turned_b = b if op == N else Array(stream, b.values.T, order)
        result = Array(stream, c.values, order)
        arguments: list[Any] = [handle, N, op, scalars[0], a, matrix(turned_b), scalars[1], matrix(result), compute, 0]
        assert cusparse.sp_mm_buffer_size(*arguments) <= room.values.nbytes
        cusparse.sp_mm(*[*arguments, room.address])
        exact = 0.5 * kept.astype(float) @ b.values.astype(float) - c.values.astype(float)
        close(result.read().astype(float), exact, 1e-3 if dtype == np.float16 else 1e-6)
    with pytest.raises(cusparse.cuSPARSEError, match="NOT_SUPPORTED"):
        cusparse.sp_mm(handle, T, N, scalars[0], a, matrix(b), scalars[1], matrix(c), compute, 0, room.address)


def halves(values: Any, code: int) -> Any:
    """Complex numbers as pairs of halves or of bfloat16, each pair in a number of 32 bits."""
    parts = np.ascontiguousarray(values, np.complex64).view(np.float32)
    if code == 6:
        return parts.astype(np.float16).view(np.uint32)
    return (parts.view(np.uint32) >> 16).astype(np.uint16).view(np.uint32)


def numbers(words: Any, code: int) -> Any:
    parts = words.view(np.uint16)
    if code == 6:
        return parts.view(np.float16).astype(np.float32).view(np.complex64)
    return (parts.astype(np.uint32) << 16).view(np.float32).view(np.complex64)


@pytest.mark.parametrize("code", [6, 15], ids=["half", "bfloat16"])
def test_complex_numbers_of_halves(stream: Stream, handle: int, code: int) -> None:
    """Values that all types hold, so results are exact."""
    generator = np.random.default_rng(1)

    def whole(*shape: int) -> Any:
        return generator.integers(-3, 4, shape) + 1j * generator.integers(-3, 4, shape)

    dense = whole(4, 5) * (generator.random((4, 5)) < 0.5)
    rows, columns = np.nonzero(dense)
    offsets = Array(stream, np.searchsorted(rows, np.arange(5)).astype(np.int32))
    indices, values = Array(stream, columns.astype(np.int32)), Array(stream, halves(dense[rows, columns], code))
    a = cusparse.create_csr(4, 5, len(rows), offsets.address, indices.address, values.address, 2, 2, 0, code)
    x, y = whole(5), whole(4)
    on_x, on_y = Array(stream, halves(x, code)), Array(stream, halves(y, code))
    vectors = [cusparse.create_dn_vec(n, array.address, code) for n, array in ((5, on_x), (4, on_y))]
    two, half = (scalar(v, np.complex64) for v in (2, 0.5))
    C_32F = 4
    arguments: list[Any] = [handle, N, two, a, vectors[0], half, vectors[1], C_32F, 0]
    room = Array(stream, np.zeros(1 << 16, np.uint8))
    assert cusparse.sp_mv_buffer_size(*arguments) <= room.values.nbytes
    cusparse.sp_mv(*[*arguments, room.address])
    assert np.array_equal(numbers(on_y.read(), code), (2 * dense @ x + 0.5 * y).astype(np.complex64))

    b, c = whole(4, 3), Array(stream, halves(np.zeros((5, 3)), code))
    on_b = Array(stream, halves(b, code))
    dense_b, dense_c = (cusparse.create_dn_mat(n, 3, 3, array.address, code, ROW) for n, array in ((4, on_b), (5, c)))
    arguments = [handle, C, N, two, a, dense_b, half, dense_c, C_32F, 0]
    assert cusparse.sp_mm_buffer_size(*arguments) <= room.values.nbytes
    cusparse.sp_mm(*[*arguments, room.address])
    assert np.array_equal(numbers(c.read(), code).reshape(5, 3), (2 * dense.conj().T @ b).astype(np.complex64))


def test_work_is_shared_out(stream: Stream, handle: int) -> None:
    """Enough of it for all threads."""
    rows, columns, width = 20000, 5000, 20
    generator = np.random.default_rng(1)
    indices = np.sort(generator.integers(0, columns, (rows, width)), axis=1).astype(np.int32)
    values, x = generator.standard_normal((rows, width)), generator.standard_normal(columns)
    arrays = [Array(stream, a) for a in (np.arange(rows + 1, dtype=np.int32) * width, indices, values)]
    offsets, places, elements = (a.address for a in arrays)
    a = cusparse.create_csr(rows, columns, rows * width, offsets, places, elements, 2, 2, 0, 1)
    on_x, y = Array(stream, x), Array(stream, np.zeros(rows))
    operands = handle, N, scalar(1, np.float64), a, vector(on_x), scalar(0, np.float64), vector(y), 1, 0
    buffer = room(stream, cusparse.sp_mv_buffer_size(*operands))
    cusparse.sp_mv(*operands, buffer.address)
    close(y.read(), (values * x[indices]).sum(axis=1), 1e-12)


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize(("index", "base"), [(np.int32, 0), (np.int64, 1)])
def test_sparse_vectors(stream: Stream, handle: int, dtype: Any, index: Any, base: int) -> None:
    places = np.array([1, 4, 7, 19])
    x, y = random(4, dtype, 1), random(20, dtype, 2)
    on_places, on_x, on_y = Array(stream, (places + base).astype(index)), Array(stream, x), Array(stream, y)
    code = CODES[np.dtype(dtype).char]
    sparse = cusparse.create_sp_vec(20, 4, on_places.address, on_x.address, INDICES[index], base, code)
    dense = vector(on_y)
    sums = np.zeros(1, dtype)
    for op in (N, C) if np.issubdtype(dtype, np.complexfloating) else (N,):
        size = cusparse.sp_vv_buffer_size(handle, op, sparse, dense, sums, code)
        buffer = room(stream, size)
        cusparse.sp_vv(handle, op, sparse, dense, sums, code, buffer.address)
        stream.sync()  # a GPU writes the result when it has it
        close(sums[0], (x.conj() if op == C else x) @ y[places], eps_of(dtype))
    cusparse.axpby(handle, scalar(2, dtype), sparse, scalar(0.5, dtype), dense)
    y = 0.5 * y
    y[places] += 2 * x
    close(on_y.read(), y, eps_of(dtype))
    cusparse.rot(handle, scalar(0.6, dtype), scalar(0.8, dtype), sparse, dense)
    x, y[places] = 0.6 * x + 0.8 * y[places], 0.6 * y[places] - 0.8 * x
    close(on_x.read(), x, eps_of(dtype))
    close(on_y.read(), y, eps_of(dtype))
    cusparse.gather(handle, dense, sparse)
    close(on_x.read(), y[places], eps_of(dtype))
    driver.cuMemsetD8Async(on_y.address, 0, y.nbytes, stream.handle)
    cusparse.scatter(handle, sparse, dense)
    close(on_y.read()[places], y[places], eps_of(dtype))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("base", [0, 1])
def test_dense_to_sparse_and_back(stream: Stream, handle: int, form: str, order: str, base: int) -> None:
    dense = random((12, 9), np.float32, 1, 0.3)
    on_dense, back = Array(stream, dense, order), Array(stream, np.ones_like(dense), order)
    offsets = Array(stream, np.zeros(13, np.int32))
    types = (2,) if form == "coo" else (2, 2)
    create, get = getattr(cusparse, f"create_{form}"), getattr(cusparse, f"{form}_set_pointers")
    a = create(12, 9, 0, offsets.address, 0, 0, *types, base, 0)
    buffer = room(stream, cusparse.dense_to_sparse_buffer_size(handle, matrix(on_dense), a, 0))
    cusparse.dense_to_sparse_analysis(handle, matrix(on_dense), a, 0, buffer.address)
    count = cusparse.sp_mat_get_size(a)[2]
    assert count == np.count_nonzero(dense)
    indices, values, rows = (Array(stream, np.zeros(count, t)) for t in (np.int32, np.float32, np.int32))
    get(a, (rows if form == "coo" else offsets).address, indices.address, values.address)
    cusparse.dense_to_sparse_convert(handle, matrix(on_dense), a, 0, buffer.address)
    major = dense.T if form == "csc" else dense
    np.testing.assert_array_equal(values.read(), major[np.nonzero(major)])
    np.testing.assert_array_equal(indices.read() - base, np.nonzero(major)[1])
    buffer = room(stream, cusparse.sparse_to_dense_buffer_size(handle, a, matrix(back), 0))
    cusparse.sparse_to_dense(handle, a, matrix(back), 0, buffer.address)
    np.testing.assert_array_equal(back.read(), dense)


def test_csr_to_csc(stream: Stream, handle: int) -> None:
    dense = random((12, 9), np.complex64, 1, 0.3)
    a, count = Sparse(stream, dense, base=1), int(np.count_nonzero(dense))
    shapes = ((10, np.int32), (count, np.int32), (count, np.complex64))
    offsets, indices, values = (Array(stream, np.zeros(n, t)) for n, t in shapes)
    operands = (
        handle, 12, 9, count, a.data.address, a.first.address, a.second.address, values.address, offsets.address,
        indices.address, 4, cusparse.Action.NUMERIC, 1, cusparse.Csr2CscAlg.DEFAULT,
    )  # fmt: skip
    buffer = room(stream, cusparse.csr2csc_ex2_buffer_size(*operands))
    cusparse.csr2csc_ex2(*operands, buffer.address)
    np.testing.assert_array_equal(values.read(), dense.T[np.nonzero(dense.T)])
    np.testing.assert_array_equal(indices.read() - 1, np.nonzero(dense.T)[1])
    np.testing.assert_array_equal(np.diff(offsets.read()), np.count_nonzero(dense, axis=0))
    rows = Array(stream, np.zeros(count, np.int32))
    cusparse.xcsr2coo(handle, a.first.address, count, 12, rows.address, 1)
    np.testing.assert_array_equal(rows.read() - 1, np.nonzero(dense)[0])
    back = Array(stream, np.zeros(13, np.int32))
    cusparse.xcoo2csr(handle, rows.address, count, 12, back.address, 1)
    np.testing.assert_array_equal(back.read(), a.first.values)


class Result:
    """A CSR matrix that a function fills: with its offsets, and what is read once its size is known."""

    def __init__(self, stream: Stream, shape: tuple[int, int], dtype: Any) -> None:
        self.stream, self.shape, self.dtype = stream, shape, dtype
        self.offsets = Array(stream, np.zeros(shape[0] + 1, np.int32))
        code = CODES[np.dtype(dtype).char]
        self.descriptor = cusparse.create_csr(*shape, 0, self.offsets.address, 0, 0, 2, 2, 0, code)

    def make_room(self) -> None:
        count = cusparse.sp_mat_get_size(self.descriptor)[2]
        self.indices, self.values = (Array(self.stream, np.zeros(count, t)) for t in (np.int32, self.dtype))
        cusparse.csr_set_pointers(self.descriptor, self.offsets.address, self.indices.address, self.values.address)

    def dense(self) -> Any:
        dense = np.zeros(self.shape, self.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.offsets.read()))
        dense[rows, self.indices.read()] = self.values.read()
        return dense


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("alg", [0, 4])
def test_sparse_times_sparse(stream: Stream, handle: int, dtype: Any, alg: int) -> None:
    one, other = random((30, 20), dtype, 1, 0.2), random((20, 25), dtype, 2, 0.2)
    a, b, c = Sparse(stream, one), Sparse(stream, other), Result(stream, (30, 25), dtype)
    plan = cusparse.sp_gemm_create_descr()
    operands = (
        handle, N, N, scalar(2, dtype), a.descriptor, b.descriptor, scalar(0, dtype), c.descriptor, a.value_type, alg,
        plan,
    )  # fmt: skip
    first = room(stream, cusparse.sp_gemm_work_estimation(*operands, 0, 0))
    cusparse.sp_gemm_work_estimation(*operands, first.values.size, first.address)
    size = cusparse.sp_gemm_compute(*operands, 0, 0) if alg == 0 else 1 << 22
    second = room(stream, size)
    if alg == 4:
        products = (one != 0).sum(axis=0) @ (other != 0).sum(axis=1)
        assert cusparse.sp_gemm_get_num_products(plan) == products
        third = room(stream, cusparse.sp_gemm_estimate_memory(*operands, 1.0, 0, 0)[0])
        size = cusparse.sp_gemm_estimate_memory(*operands, 1.0, third.values.size, third.address)[1]
    cusparse.sp_gemm_compute(*operands, size, second.address)
    c.make_room()
    cusparse.sp_gemm_copy(*operands)
    close(c.dense(), 2 * one @ other, eps_of(dtype))
    cusparse.sp_gemm_destroy_descr(plan)


def test_a_structure_is_used_again(stream: Stream, handle: int) -> None:
    one, other = random((30, 20), np.float64, 1, 0.2), random((20, 25), np.float64, 2, 0.2)
    a, b, c = Sparse(stream, one), Sparse(stream, other), Result(stream, (30, 25), np.float64)
    plan = cusparse.sp_gemm_create_descr()
    operands = handle, N, N, a.descriptor, b.descriptor, c.descriptor, 0, plan
    buffers = [room(stream, cusparse.sp_gemm_reuse_work_estimation(*operands, 0, 0))]
    cusparse.sp_gemm_reuse_work_estimation(*operands, buffers[0].values.size, buffers[0].address)
    sizes = cusparse.sp_gemm_reuse_nnz(*operands, 0, 0, 0, 0, 0, 0)
    buffers += [room(stream, size) for size in sizes]
    known = [x for buffer in buffers[1:] for x in (buffer.values.size, buffer.address)]
    cusparse.sp_gemm_reuse_nnz(*operands, *known)
    c.make_room()
    buffers.append(room(stream, cusparse.sp_gemm_reuse_copy(*operands, 0, 0)))
    cusparse.sp_gemm_reuse_copy(*operands, buffers[-1].values.size, buffers[-1].address)
    for factor in (1.0, 3.0):
        alpha, beta = scalar(factor, np.float64), scalar(0, np.float64)
        cusparse.sp_gemm_reuse_compute(handle, N, N, alpha, a.descriptor, b.descriptor, beta, c.descriptor, 1, 0, plan)
        close(c.dense(), factor * one @ other, 1e-12)
    cusparse.sp_gemm_destroy_descr(plan)


def test_sparse_plus_sparse(stream: Stream, handle: int) -> None:
    one, other = random((30, 20), np.float64, 1, 0.2), random((30, 20), np.float64, 2, 0.2)
    a, b, c = Sparse(stream, one), Sparse(stream, other), Result(stream, (30, 20), np.float64)
    try:
        plan = cusparse.sp_geam_create_descr()
    except FunctionNotFoundError:
        pytest.skip("cuSPARSE has it since 12.7")
    alpha, beta = scalar(2, np.float64), scalar(-3, np.float64)
    operands = handle, N, N, alpha, a.descriptor, beta, b.descriptor, c.descriptor, 1, 0, plan
    buffer = room(stream, cusparse.sp_geam_buffer_size(*operands))
    cusparse.sp_geam_nnz(*operands, buffer.address)
    c.make_room()
    cusparse.sp_geam(*operands, buffer.address)
    close(c.dense(), 2 * one - 3 * other, 1e-12)
    cusparse.sp_geam_destroy_descr(plan)


def triangular(dtype: Any, upper: bool, unit: bool) -> tuple[Any, Any]:
    """A matrix with both triangles, and the part that counts."""
    dense = random((25, 25), dtype, 1, 0.3) / 5
    np.fill_diagonal(dense, 2)
    part = np.triu(dense) if upper else np.tril(dense)
    if unit:
        np.fill_diagonal(part, 1)
    return dense, part


def set_triangle(descriptor: int, upper: bool, unit: bool) -> None:
    for attribute, value in ((cusparse.SpMatAttribute.FILL_MODE, upper), (cusparse.SpMatAttribute.DIAG_TYPE, unit)):
        cusparse.sp_mat_set_attribute(descriptor, attribute, np.array([value], np.int32), 4)


@pytest.mark.parametrize(("dtype", "op"), TYPES_AND_OPERATIONS)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(stream: Stream, handle: int, dtype: Any, upper: bool, unit: bool, op: int) -> None:
    dense, part = triangular(dtype, upper, unit)
    a, b = Sparse(stream, dense), random(25, dtype, 2)
    set_triangle(a.descriptor, upper, unit)
    x, y = Array(stream, b), Array(stream, np.zeros(25, dtype))
    plan = cusparse.sp_sv_create_descr()
    operands = handle, op, scalar(2, dtype), a.descriptor, vector(x), vector(y), a.value_type, 0, plan
    buffer = room(stream, cusparse.sp_sv_buffer_size(*operands))
    cusparse.sp_sv_analysis(*operands, buffer.address)
    cusparse.sp_sv_solve(*operands)
    close(apply(op, part) @ y.read(), 2 * b, 10 * eps_of(dtype))
    values = Array(stream, 3 * a.data.values)
    if not unit:
        cusparse.sp_sv_update_matrix(handle, plan, values.address, cusparse.SpSVUpdate.GENERAL)
        cusparse.sp_sv_solve(*operands)
        close(apply(op, 3 * part) @ y.read(), 2 * b, 10 * eps_of(dtype))
    cusparse.sp_sv_destroy_descr(plan)


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("op_a", "op_b"), [(N, N), (T, N), (N, T)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_triangular_systems_of_many_columns(
    stream: Stream, handle: int, dtype: Any, upper: bool, op_a: int, op_b: int, order: str
) -> None:
    dense, part = triangular(dtype, upper, False)
    a, b = Sparse(stream, dense), random(turned(op_b, (25, 4)), dtype, 2)
    set_triangle(a.descriptor, upper, False)
    on_b, on_c = Array(stream, b, order), Array(stream, np.zeros((25, 4), dtype), order)
    plan = cusparse.sp_sm_create_descr()
    operands = (
        handle, op_a, op_b, scalar(2, dtype), a.descriptor, matrix(on_b), matrix(on_c), a.value_type, 0, plan,
    )  # fmt: skip
    buffer = room(stream, cusparse.sp_sm_buffer_size(*operands))
    cusparse.sp_sm_analysis(*operands, buffer.address)
    cusparse.sp_sm_solve(*operands)
    close(apply(op_a, part) @ on_c.read(), 2 * apply(op_b, b), 10 * eps_of(dtype))
    cusparse.sp_sm_destroy_descr(plan)


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize(("op_a", "op_b"), [(N, N), (T, N), (N, T)])
def test_products_at_places(stream: Stream, handle: int, dtype: Any, op_a: int, op_b: int) -> None:
    pattern = random((15, 12), dtype, 1, 0.3)
    a, b = random(turned(op_a, (15, 8)), dtype, 2), random(turned(op_b, (8, 12)), dtype, 3)
    c, on_a, on_b = Sparse(stream, pattern), Array(stream, a), Array(stream, b)
    operands = (
        handle, op_a, op_b, scalar(2, dtype), matrix(on_a), matrix(on_b), scalar(0.5, dtype), c.descriptor,
        c.value_type, 0,
    )  # fmt: skip
    buffer = room(stream, cusparse.sddmm_buffer_size(*operands))
    cusparse.sddmm_preprocess(*operands, buffer.address)
    cusparse.sddmm(*operands, buffer.address)
    expected = 2 * apply(op_a, a) @ apply(op_b, b) + 0.5 * pattern
    close(c.data.read(), expected[np.nonzero(pattern)], eps_of(dtype))


def test_scalars_in_device_memory_and_captures(stream: Stream, handle: int) -> None:
    """A captured call runs when the graph is launched, with the scalars of that time."""
    dense = random((20, 20), np.float64, 1, 0.3)
    a, x, y = Sparse(stream, dense), Array(stream, random(20, np.float64, 2)), Array(stream, np.zeros(20))
    alpha, beta = Array(stream, np.array([2.0])), Array(stream, np.array([1.0]))
    cusparse.set_pointer_mode(handle, cusparse.PointerMode.DEVICE)
    operands = handle, N, alpha.address, a.descriptor, vector(x), beta.address, vector(y), 1, 0
    buffer = room(stream, cusparse.sp_mv_buffer_size(*operands))
    builder = stream.create_graph_builder()
    builder.begin_building()
    cusparse.sp_mv(*operands, buffer.address)
    graph = builder.end_building().complete()
    assert not y.read().any()
    for _ in range(3):
        graph.launch(stream)
    close(y.read(), 6 * dense @ x.values, 1e-12)
    cusparse.set_pointer_mode(handle, cusparse.PointerMode.HOST)


def test_descriptors_tell_what_they_were_given(stream: Stream, handle: int) -> None:
    a = Sparse(stream, random((6, 5), np.float32, 1, 0.5), base=1)
    arrays = a.first.address, a.second.address, a.data.address
    assert cusparse.csr_get(a.descriptor) == (6, 5, a.count, *arrays, 2, 2, 1, 0)
    assert cusparse.sp_mat_get_format(a.descriptor) == cusparse.Format.CSR
    assert cusparse.sp_mat_get_index_base(a.descriptor) == cusparse.IndexBase.ONE
    assert cusparse.dn_mat_get(cusparse.create_dn_mat(2, 3, 4, arrays[2], 0, COLUMN)) == (2, 3, 4, arrays[2], 0, COLUMN)
    cusparse.destroy_sp_mat(a.descriptor)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"x": 21}, "the sparse matrix is 30 by 20, the operand 21 by 1"),
        ({"op": 5}, "opA is 5"),
        ({"handle": 0}, "'handle' is a null pointer"),
        ({"handle": 4096}, "the handle 0x1000 is none of cusparseCreate's"),
        ({"a": 0}, "'matA' is a null pointer"),
    ],
)
def test_bad_arguments(stream: Stream, handle: int, change: dict[str, int], text: str) -> None:
    if change.get("handle") == 4096 and not on_cpu_device():
        pytest.skip("a handle that is none crashes the process")
    dense = random((30, 20), np.float64, 1, 0.3)
    a, x, y = Sparse(stream, dense), Array(stream, np.zeros(change.get("x", 20))), Array(stream, np.zeros(30))
    one, descriptor = scalar(1, np.float64), change.get("a", a.descriptor)
    with pytest.raises(cusparse.cuSPARSEError) as caught:
        cusparse.sp_mv(
            change.get("handle", handle), change.get("op", N), one, descriptor, vector(x), one, vector(y), 1, 0, 0
        )
    assert caught.value.status in (cusparse.Status.INVALID_VALUE, cusparse.Status.NOT_INITIALIZED)
    if on_cpu_device():
        assert text in caught.value.__notes__[0]
    stream.sync()  # nothing was queued


PROGRAM = """
import numpy as np
from cupola import CUDAError, Device
from cupola.bindings import cusparse, driver
device = Device()
device.set_current()
stream = device.create_stream()
handle = cusparse.create()
cusparse.set_stream(handle, int(stream.handle))
kept = []
def put(values):
    buffer = device.allocate(max(values.nbytes, 16), stream=stream)
    kept.append(buffer)
    driver.cuMemcpyHtoDAsync(int(buffer.handle), values.view(np.uint8), values.nbytes, stream.handle)
    stream.sync()
    return int(buffer.handle)
def csr(offsets, indices, count=4, shape=(3, 3), kind=np.int32, base=0):
    a = put(np.array(offsets, kind)), put(np.array(indices, kind)), put(np.ones(4))
    return cusparse.create_csr(*shape, count, *a, *(2 if kind == np.int32 else 3,) * 2, base, 1)
def vec(n=3):
    return cusparse.create_dn_vec(n, put(np.ones(n)), 1)
room = put(np.zeros(1 << 12))
def mat(n=3):
    return cusparse.create_dn_mat(n, n, n, put(np.ones((n, n))), 1, 1)
one = np.ones(1)
good = csr([0, 1, 2, 4], [0, 1, 0, 2])
def gemm(a, b, c):
    plan = cusparse.sp_gemm_create_descr()
    arguments = handle, 0, 0, one, a, b, one, c, 1, 0, plan
    buffer = put(np.zeros(1 << 16))
    cusparse.sp_gemm_work_estimation(*arguments, 1 << 18, buffer)
    cusparse.sp_gemm_compute(*arguments, 1 << 18, buffer)
def solve(a):
    plan = cusparse.sp_sv_create_descr()
    arguments = handle, 0, one, a, vec(), vec(), 1, 0, plan
    cusparse.sp_sv_analysis(*arguments, room)
    cusparse.sp_sv_solve(*arguments)
try:
    CALL
    stream.sync()
except (CUDAError, cusparse.cuSPARSEError) as error:
    print(error, *getattr(error, "__notes__", ()))
try:
    stream.sync()
except CUDAError as error:
    print(error)
"""
MV = "cusparse.sp_mv(handle, {op}, one, {a}, vec(), one, vec(), 1, 0, room)"
FAR = "csr([0, 1, 2, 4], [0, 1, 0, 3])"
BACK = "csr([0, 1, 2, 4], [0, 1, 0, -1])"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (MV.format(op=0, a=FAR), "number 3 of the indices of matA is 3"),
        (MV.format(op=1, a=FAR), "number 3 of the indices of matA is 3"),
        (MV.format(op=0, a=BACK), "number 3 of the indices of matA is -1"),
        (MV.format(op=0, a="csr([0, 1, 2, 400], [0, 1, 0, 2])"), "number 3 of the offsets of matA is 400"),
        (MV.format(op=1, a="csr([0, 1, -2, 4], [0, 1, 0, 2])"), "number 2 of the offsets of matA is -2"),
        (
            MV.format(op=0, a="csr([0, 1, 2, 4], [0, 1, 0, -2**63], kind=np.int64)"),
            "number 3 of the indices of matA is -9223372036854775808",
        ),
        (
            MV.format(op=0, a="csr([1, 2, 3, 5], [1, 2, 1, -2**63], kind=np.int64, base=1)"),
            "number 3 of the indices of matA is 9223372036854775807",
        ),
        (MV.format(op=0, a="csr([0, 1, 2, 4], [0, 1, 0, 2], count=9)"), "the indices of matA of cusparseSpMV"),
        (MV.format(op=0, a="csr([0, 1, 2, 4], [0, 1, 0, 2], shape=(3, 3), count=9)"), "cusparseSpMV"),
        (
            f"cusparse.sp_mm(handle, 0, 0, one, {FAR}, mat(), one, mat(), 1, 0, room)",
            "cusparseSpMM: number 3 of the indices of matA is 3",
        ),
        (
            f"cusparse.sddmm(handle, 0, 0, one, mat(), mat(), one, {FAR}, 1, 0, room)",
            "cusparseSDDMM: number 3 of the indices of matC is 3",
        ),
        (f"cusparse.sparse_to_dense(handle, {FAR}, mat(), 0, room)", "number 3 of the indices of matA is 3"),
        (f"gemm(good, {FAR}, csr([0] * 4, [0]))", "number 3 of the indices of matB is 3"),
        (f"solve({FAR})", "cusparseSpSV_analysis: number 3 of the indices of matA is 3"),
        (
            "x = cusparse.create_sp_vec(3, 1, put(np.array([7], np.int32)), put(one), 2, 0, 1); "
            "cusparse.gather(handle, vec(), x)",
            "cusparseGather: number 0 of the indices of vecX is 7",
        ),
        (
            "kept.append(device.allocate(256, stream=stream)); freed = int(kept[-1].handle); kept.pop().close(stream); "
            "cusparse.sp_mv(handle, 0, one, good, vec(), one, vec(), 1, 0, freed)",
            "the buffer of cusparseSpMV",
        ),
        (
            "cusparse.sp_mv(handle, 0, one, good, vec(), one, cusparse.create_dn_vec(3, 4096, 1), 1, 0, room)",
            "the values of vecY of cusparseSpMV",
        ),
        (
            "a = cusparse.create_blocked_ell(4, 4, 2, 2, put(np.array([0, 2], np.int32)), room, 2, 0, 1); "
            "b = cusparse.create_dn_mat(4, 1, 4, room, 1, 1); "
            "cusparse.sp_mm(handle, 0, 0, one, a, b, one, b, 1, 0, room)",
            "number 1 of the indices of matA is 2",
        ),
    ],
)
def test_indices_from_device_code_cannot_lead_astray(call: str, text: str) -> None:
    """The context ends, as after a kernel that uses such an index, and the error says which one it was."""
    if not on_cpu_device():
        pytest.skip("what a GPU does with a bad index is not defined")
    program = PROGRAM.replace("CALL", call)
    environment = os.environ | {"CUPOLA_DEVICE": "cpu"}
    done = processes.run([sys.executable, "-c", program], env=environment)
    assert "ILLEGAL_ADDRESS" in done.stdout, done.stdout + done.stderr
    assert text in done.stdout
