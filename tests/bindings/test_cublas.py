"""cuBLAS through its bindings: the same programs on a GPU and on the CPU device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cupola import Device, Stream
from cupola.bindings import cublas, driver
from tests import processes

N, T, C = cublas.Operation.N, cublas.Operation.T, cublas.Operation.C
R_32F, R_64F, R_16F, C_32F, C_64F, R_16BF, R_8I, R_32I = 0, 1, 2, 4, 5, 14, 3, 10
LETTERS = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}


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
        handle = cublas.create()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no cuBLAS: {error}")
    cublas.set_stream(handle, int(stream.handle))
    yield handle
    cublas.destroy(handle)


class Array:
    """A NumPy array's copy on the device, in column order."""

    def __init__(self, stream: Stream, values: Any) -> None:
        self.values = np.asfortranarray(values)
        self.buffer = Device().allocate(max(self.values.nbytes, 16), stream=stream)
        self.stream = stream
        self.address = int(self.buffer.handle)
        if self.values.size:
            self.write(self.values)

    def write(self, values: Any) -> None:
        flat = np.asfortranarray(values).ravel(order="K").view(np.uint8)
        driver.cuMemcpyHtoDAsync(self.address, flat, flat.nbytes, self.stream.handle)
        self.stream.sync()

    def read(self) -> Any:
        result = np.empty_like(self.values, order="F")
        flat = np.empty(self.values.nbytes, np.uint8)
        driver.cuMemcpyDtoHAsync(flat, self.address, flat.nbytes, self.stream.handle)
        self.stream.sync()
        return flat.view(result.dtype).reshape(result.shape, order="F")


def random(shape: Any, dtype: Any, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * generator.standard_normal(shape)
    return values.astype(dtype)


def scalar(value: Any, dtype: Any) -> Any:
    return np.array([value], dtype)


def apply(op: Any, a: Any) -> Any:
    return a if op == N else a.T if op == T else a.conj().T


def close(actual: Any, expected: Any, terms: int, dtype: Any) -> None:
    """Within the bound of a sum of that many products."""
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=8 * eps * terms * max(1.0, float(np.abs(expected).max())))


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("a_op", [N, T, C])
@pytest.mark.parametrize("b_op", [N, T, C])
def test_gemm(stream: Stream, handle: int, letter: str, a_op: Any, b_op: Any) -> None:
    dtype = LETTERS[letter]
    m, n, k = 37, 21, 50
    a = random((m, k) if a_op == N else (k, m), dtype, 1)
    b = random((k, n) if b_op == N else (n, k), dtype, 2)
    c = random((m, n), dtype, 3)
    on_a, on_b, on_c = (Array(stream, x) for x in (a, b, c))
    gemm = getattr(cublas, f"{letter}gemm")
    lda, ldb = a.shape[0], b.shape[0]
    alpha, beta = scalar(1.5, dtype), scalar(-0.5, dtype)
    gemm(handle, a_op, b_op, m, n, k, alpha, on_a.address, lda, on_b.address, ldb, beta, on_c.address, m)
    close(on_c.read(), 1.5 * apply(a_op, a) @ apply(b_op, b) - 0.5 * c, k, dtype)


@pytest.mark.parametrize("letter", LETTERS)
def test_gemm_of_a_row_or_a_column(stream: Stream, handle: int, letter: str) -> None:
    """Results of one row or column, with operands in all orders, in matrices that are taller than they."""
    dtype = LETTERS[letter]
    alpha, beta = scalar(1.5, dtype), scalar(-0.5, dtype)
    gemm = getattr(cublas, f"{letter}gemm")
    for m, n, k in [(1, 9, 4), (9, 1, 4), (1, 1, 7), (1, 5, 1), (3, 1, 40), (1, 20000, 4), (4, 1, 20000)]:
        for a_op in (N, T, C):
            for b_op in (N, T, C):
                tall_a, tall_b, tall_c = (
                    random((rows + 3, columns), dtype, seed)
                    for rows, columns, seed in (
                        ((m, k) if a_op == N else (k, m)) + (1,), ((k, n) if b_op == N else (n, k)) + (2,), (m, n, 3),
                    )
                )  # fmt: skip
                on_a, on_b, on_c = (Array(stream, x) for x in (tall_a, tall_b, tall_c))
                a, b, c = tall_a[:-3], tall_b[:-3], tall_c[:-3]
                leads = [x.shape[0] for x in (tall_a, tall_b, tall_c)]
                found = []
                for _ in range(2):
                    on_c.write(tall_c)
                    gemm(handle, a_op, b_op, m, n, k, alpha, on_a.address, leads[0], on_b.address, leads[1], beta,
                         on_c.address, leads[2])  # fmt: skip
                    found.append(on_c.read())
                expected = tall_c.copy()
                expected[:-3] = 1.5 * apply(a_op, a) @ apply(b_op, b) - 0.5 * c
                close(found[0], expected, k, dtype)
                assert np.array_equal(found[0][-3:], tall_c[-3:]), "rows below C have changed"
                assert np.array_equal(found[0], found[1]), "the same product has another result"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_groups_of_batches(stream: Stream, handle: int, dtype: Any) -> None:
    """Two groups, of two products and of one, each with sizes, operations and scalars of its own."""
    shapes = [(N, N, 9, 7, 5, 1.5, 0.5), (N, N, 9, 7, 5, 1.5, 0.5), (T, N, 4, 6, 8, -2.0, 0.0)]
    matrices: list[list[Array]] = [[], [], []]
    for i, (a_op, _, m, n, k, _, _) in enumerate(shapes):
        for j, shape in enumerate([(m, k) if a_op == N else (k, m), (k, n), (m, n)]):
            matrices[j].append(Array(stream, random(shape, dtype, 3 * i + j)))
    tables = [Array(stream, np.array([x.address for x in row], np.uint64)) for row in matrices]
    wide = np.float32 if dtype == np.float16 else dtype
    alpha, beta = np.array([1.5, -2], wide), np.array([0.5, 0], wide)
    ops, sides = ([N, T], [N, N]), ([9, 4], [7, 6], [5, 8])
    lda, ldb, ldc, sizes = [9, 8], [5, 8], [9, 4], [2, 1]
    a, b, c = (table.address for table in tables)
    if dtype == np.float16:
        cublas.gemm_grouped_batched_ex(
            handle, *ops, *sides, alpha, a, R_16F, lda, b, R_16F, ldb, beta, c, R_16F, ldc, 2, sizes,
            cublas.ComputeType.COMPUTE_32F,
        )  # fmt: skip
    else:
        gemm = cublas.sgemm_grouped_batched if dtype == np.float32 else cublas.dgemm_grouped_batched
        gemm(handle, *ops, *sides, alpha, a, lda, b, ldb, beta, c, ldc, 2, sizes)
    for i, (a_op, _, _, _, k_size, factor, keep) in enumerate(shapes):
        x, y, z = (row[i].values.astype(np.float64) for row in matrices)
        close(matrices[2][i].read(), factor * apply(a_op, x) @ y + keep * z, k_size, dtype)


def test_copies_of_vectors_and_matrices(stream: Stream, handle: int) -> None:
    on_device, host = Array(stream, np.zeros((6, 4), np.float32)), random((5, 3), np.float32)
    source, target = np.asfortranarray(host), np.zeros((5, 3), np.float32, order="F")
    cublas.set_matrix(5, 3, 4, source.ctypes.data, 5, on_device.address, 6)
    assert np.array_equal(on_device.read()[:5, :3], host) and not on_device.read()[5].any()
    cublas.get_matrix(5, 3, 4, on_device.address, 6, target.ctypes.data, 5)
    assert np.array_equal(target, host)
    every_second = np.zeros(6, np.float32)
    cublas.get_vector(3, 4, on_device.address, 6, every_second.ctypes.data, 2)
    assert np.array_equal(every_second[::2], host[0])
    with pytest.raises(cublas.cuBLASError) as caught:
        cublas.set_matrix(5, 3, 4, source.ctypes.data, 4, on_device.address, 6)
    assert caught.value.status == cublas.Status.MAPPING_ERROR


@pytest.mark.parametrize("letter", LETTERS)
def test_gemm_of_batches(stream: Stream, handle: int, letter: str) -> None:
    dtype = LETTERS[letter]
    a, b = random((5, 4, 6), dtype, 1), random((4, 3, 6), dtype, 2)  # the last index is the batch
    on_a, on_b = Array(stream, a), Array(stream, b)
    expected = np.einsum("ikb,kjb->ijb", a, b)
    one, zero = scalar(1, dtype), scalar(0, dtype)
    strided, apart = (Array(stream, np.zeros((5, 3, 6), dtype)) for _ in range(2))
    call = getattr(cublas, f"{letter}gemm_strided_batched")
    call(handle, N, N, 5, 3, 4, one, on_a.address, 5, 20, on_b.address, 4, 12, zero, strided.address, 5, 15, 6)
    close(strided.read(), expected, 4, dtype)
    size = np.dtype(dtype).itemsize
    tables = [
        Array(stream, np.array([x.address + i * step * size for i in range(6)], np.uint64))
        for x, step in ((on_a, 20), (on_b, 12), (apart, 15))
    ]
    call = getattr(cublas, f"{letter}gemm_batched")
    call(handle, N, N, 5, 3, 4, one, tables[0].address, 5, tables[1].address, 4, zero, tables[2].address, 5, 6)
    close(apart.read(), expected, 4, dtype)


@pytest.mark.parametrize(
    ("operands", "result", "codes", "compute", "scale", "tolerance"),
    [
        (np.float16, np.float16, (R_16F, R_16F), "COMPUTE_32F", np.float32, 2e-3),
        (np.float16, np.float32, (R_16F, R_32F), "COMPUTE_32F", np.float32, 1e-5),
        (np.float16, np.float16, (R_16F, R_16F), "COMPUTE_16F", np.float16, 1e-2),
        (np.float32, np.float32, (R_32F, R_32F), "COMPUTE_32F_FAST_TF32", np.float32, 5e-3),
        (np.complex128, np.complex128, (C_64F, C_64F), "COMPUTE_64F", np.complex128, 1e-13),
        (np.int8, np.int32, (R_8I, R_32I), "COMPUTE_32I", np.int32, 0),
    ],
)
def test_gemm_ex(
    stream: Stream, handle: int, operands: Any, result: Any, codes: Any, compute: str, scale: Any, tolerance: float
) -> None:
    m, n, k = 32, 16, 64
    a, b = (random(shape, np.float64, seed) for shape, seed in (((m, k), 1), ((k, n), 2)))
    if operands == np.int8:
        a, b = (20 * a).round().clip(-127, 127), (20 * b).round().clip(-127, 127)
    if np.issubdtype(operands, np.complexfloating):
        a, b = a + 1j * a[::-1], b - 1j * b
    a, b = a.astype(operands), b.astype(operands)
    on_a, on_b, on_c = Array(stream, a), Array(stream, b), Array(stream, np.zeros((m, n), result))
    cublas.gemm_ex(
        handle, N, N, m, n, k, scalar(1, scale), on_a.address, codes[0], m, on_b.address, codes[0], k, scalar(0, scale),
        on_c.address, codes[1], m, cublas.ComputeType[compute], cublas.GemmAlgo.DEFAULT,
    )  # fmt: skip
    wide = np.int64 if operands == np.int8 else np.complex128 if operands == np.complex128 else np.float64
    expected = a.astype(wide) @ b.astype(wide)
    bound = tolerance * float(np.abs(a.astype(wide)).max() * np.abs(b.astype(wide)).max()) * np.sqrt(k)
    np.testing.assert_allclose(on_c.read().astype(wide), expected, rtol=tolerance, atol=bound)


def test_scalars_and_results_in_device_memory(stream: Stream, handle: int) -> None:
    x, y = random(100, np.float64, 1), random(100, np.float64, 2)
    on_x, on_y, alpha, result = (Array(stream, v) for v in (x, y, np.array([2.5]), np.zeros(1)))
    cublas.set_pointer_mode(handle, cublas.PointerMode.DEVICE)
    cublas.daxpy(handle, 100, alpha.address, on_x.address, 1, on_y.address, 1)
    cublas.ddot(handle, 100, on_x.address, 1, on_y.address, 1, result.address)
    np.testing.assert_allclose(result.read()[0], x @ (2.5 * x + y), rtol=1e-12)
    cublas.set_pointer_mode(handle, cublas.PointerMode.HOST)
    index, norm = np.zeros(1, np.int32), np.zeros(1)
    cublas.idamax(handle, 100, on_x.address, 1, index)  # results on the host are there when the call returns
    cublas.dnrm2(handle, 100, on_x.address, 1, norm)
    assert index[0] == np.abs(x).argmax() + 1
    np.testing.assert_allclose(norm[0], np.linalg.norm(x), rtol=1e-14)


def test_linear_systems_in_batches(stream: Stream, handle: int) -> None:
    a, b = random((8, 8, 3), np.float64, 1), random((8, 2, 3), np.float64, 2)
    on_a, on_b = Array(stream, a), Array(stream, b)
    tables = [
        Array(stream, np.array([x.address + i * step for i in range(3)], np.uint64))
        for x, step in ((on_a, 512), (on_b, 128))
    ]
    pivots, infos = Array(stream, np.zeros(24, np.int32)), Array(stream, np.full(3, -1, np.int32))
    cublas.dgetrf_batched(handle, 8, tables[0].address, 8, pivots.address, infos.address, 3)
    assert cublas.dgetrs_batched(handle, N, 8, 2, tables[0].address, 8, pivots.address, tables[1].address, 8, 3) == 0
    assert list(infos.read()) == [0, 0, 0]
    x = on_b.read()
    for i in range(3):
        np.testing.assert_allclose(a[:, :, i] @ x[:, :, i], b[:, :, i], atol=1e-10)


def test_calls_are_captured(device: Device, stream: Stream, handle: int) -> None:
    """A captured call runs when the graph is launched, each time, with the scalars of the capture."""
    x, y = Array(stream, np.ones(64)), Array(stream, np.zeros(64))
    builder = stream.create_graph_builder()
    builder.begin_building()
    alpha = scalar(3, np.float64)
    cublas.daxpy(handle, 64, alpha, x.address, 1, y.address, 1)
    alpha[0] = 7
    graph = builder.end_building().complete()
    assert y.read()[0] == 0
    for _ in range(2):
        graph.launch(stream)
    assert set(y.read()) == {6.0}


def capture(stream: Stream, handle: int, alpha: float, x: Array, y: Array) -> Any:
    driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    cublas.daxpy(handle, 64, scalar(alpha, np.float64), x.address, 1, y.address, 1)
    return driver.cuStreamEndCapture(stream.handle)[1]


def test_an_executable_graph_takes_another_call(stream: Stream, handle: int) -> None:
    x, y = Array(stream, np.ones(64)), Array(stream, np.zeros(64))
    graphs = [capture(stream, handle, alpha, x, y) for alpha in (3.0, 5.0)]
    status, executable = driver.cuGraphInstantiate(graphs[0], 0)
    assert status == 0
    driver.cuGraphDestroy(graphs[0])
    for update in (False, True):
        if update:
            assert driver.cuGraphExecUpdate(executable, graphs[1])[0] == 0
            driver.cuGraphDestroy(graphs[1])
        driver.cuGraphLaunch(executable, stream.handle)
        stream.sync()
    assert set(y.read()) == {8.0}
    driver.cuGraphExecDestroy(executable)


def test_a_captured_call_is_no_host_function_for_other_nodes(stream: Stream, handle: int) -> None:
    """Its arguments belong to its node, and are gone when that is."""
    if not on_cpu_device():
        pytest.skip("a GPU captures kernels")
    x, y = Array(stream, np.ones(64)), Array(stream, np.zeros(64))
    graph = capture(stream, handle, 2.0, x, y)
    nodes = driver.cuGraphGetNodes(graph, 1)[1]
    status, parameters = driver.cuGraphHostNodeGetParams(nodes[0])
    assert status == 0
    assert driver.cuGraphAddHostNode(graph, None, 0, parameters)[0] == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED
    driver.cuGraphDestroy(graph)


def test_calls_keep_the_order_of_the_stream(stream: Stream, handle: int) -> None:
    x = Array(stream, np.ones(1000))
    for _ in range(50):
        cublas.dscal(handle, 1000, scalar(2, np.float64), x.address, 1)
        cublas.dscal(handle, 1000, scalar(0.5, np.float64), x.address, 1)
    assert set(x.read()) == {1.0}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((0, 0, -1, 1, 1, 1, 1, 1), "INVALID_VALUE"),
        ((5, 0, 1, 1, 1, 1, 1, 1), "INVALID_VALUE"),
        ((0, 0, 4, 4, 4, 3, 4, 4), "INVALID_VALUE"),
        ((0, 0, 4, 4, 4, 4, 3, 4), "INVALID_VALUE"),
        ((0, 0, 4, 4, 4, 4, 4, 3), "INVALID_VALUE"),
    ],
)
def test_bad_arguments(stream: Stream, handle: int, arguments: tuple[int, ...], status: str) -> None:
    a_op, b_op, m, n, k, lda, ldb, ldc = arguments
    a, one = Array(stream, np.zeros(16, np.float32)), scalar(1, np.float32)
    with pytest.raises(cublas.cuBLASError, match=status) as caught:
        cublas.sgemm(handle, a_op, b_op, m, n, k, one, a.address, lda, a.address, ldb, one, a.address, ldc)
    assert caught.value.status == cublas.Status[status]
    stream.sync()  # nothing was queued


def test_a_handle_that_is_none() -> None:
    with pytest.raises(cublas.cuBLASError, match="NOT_INITIALIZED"):
        cublas.set_pointer_mode(0, 0)


def run(program: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"CUPOLA_DEVICE": "cpu"}
    return processes.run([sys.executable, "-c", program], env=environment)


def on_cpu_device() -> bool:
    return "CPU device" in Device().name


def test_errors_explain_themselves(stream: Stream, handle: int) -> None:
    if not on_cpu_device():
        pytest.skip("explanations are the CPU device's")
    one = scalar(1, np.float32)
    with pytest.raises(cublas.cuBLASError) as caught:
        cublas.sgemm(handle, 0, 0, 4, 4, 4, one, 0, 3, 0, 4, one, 0, 4)
    assert "lda is 3, but A has 4 rows" in caught.value.__notes__[0]


@pytest.mark.parametrize("what", ["short", "freed"])
def test_bad_addresses_end_the_context(what: str) -> None:
    """As a kernel would: the next call that waits says so."""
    if not on_cpu_device():
        pytest.skip("what a GPU does with a bad address is not defined")
    program = f"""
import numpy as np
from cupola import CUDAError, Device
from cupola.bindings import cublas
device = Device()
device.set_current()
stream = device.create_stream()
handle = cublas.create()
cublas.set_stream(handle, int(stream.handle))
x = device.allocate(64, stream=stream)
address = int(x.handle)
count = 100
if {what!r} == "freed":
    count = 4
    x.close(stream)
    stream.sync()
cublas.sscal(handle, count, np.ones(1, np.float32), address, 1)
try:
    stream.sync()
except CUDAError as error:
    print(error)
"""
    done = processes.run([sys.executable, "-c", program], env=os.environ | {"CUPOLA_DEVICE": "cpu"})
    assert "ILLEGAL_ADDRESS" in done.stdout, done.stdout + done.stderr
    assert "the vector x of cublasSscal" in done.stdout


@pytest.mark.parametrize("alpha", [1.0, 1.0009, -0.3337, 2.0**-9 * 1.7, 3.1e-5, 70000.0, 2.0**-24])
def test_every_half_and_its_roundings(stream: Stream, handle: int, alpha: float) -> None:
    """Subnormal numbers, ties, what becomes infinite: as NumPy rounds floats."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    on_a, on_b = Array(stream, every), Array(stream, np.ones(1, np.float16))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = every.astype(np.float32) * np.float32(alpha)
        rounded = expected.astype(np.float16)
    for code, wanted in ((R_16F, rounded), (R_32F, expected)):
        on_c = Array(stream, np.zeros_like(wanted))
        cublas.gemm_ex(
            handle, N, N, 1 << 16, 1, 1, scalar(alpha, np.float32), on_a.address, R_16F, 1 << 16, on_b.address, R_16F,
            1, scalar(0, np.float32), on_c.address, code, 1 << 16, cublas.ComputeType.COMPUTE_32F,
            cublas.GemmAlgo.DEFAULT,
        )  # fmt: skip
        np.testing.assert_array_equal(on_c.read(), wanted)


@pytest.mark.unchecked(reason="it frees what a call uses")
def test_memory_freed_during_a_call_ends_no_process() -> None:
    """OpenBLAS's own threads are at work on it. Mostly the call is not done before, and the context ends."""
    if not on_cpu_device():
        pytest.skip("what a GPU does with freed memory is not defined")
    program = """
import time
import numpy as np
from cupola import CUDAError, Device
from cupola.bindings import cublas, driver
device = Device()
device.set_current()
one, other = device.create_stream(), device.create_stream()
handle = cublas.create()
cublas.set_stream(handle, int(one.handle))
n, scale = 2000, np.ones(1)
buffers = [device.allocate(8 * n * n, stream=one) for _ in range(3)]
a, b, c = (int(buffer.handle) for buffer in buffers)
driver.cuMemsetD8Async(a, 0, 8 * n * n, one.handle)
one.sync()
cublas.dgemm(handle, 0, 0, n, n, n, scale, a, n, b, n, scale, c, n)
time.sleep(0.02)
for buffer in buffers:
    buffer.close(other)
other.sync()
driver.cuMemPoolTrimTo(driver.cuDeviceGetDefaultMemPool(0)[1], 0)
try:
    one.sync()
    print("it was done")
except CUDAError as error:
    print(error)
"""
    done = processes.run([sys.executable, "-c", program], env=os.environ | {"CUPOLA_DEVICE": "cpu"})
    assert done.returncode == 0, done.stderr
    assert "freed before it was done" in done.stdout or done.stdout == "it was done\n"


@pytest.mark.parametrize(
    "call, what",
    [
        ("sscal_64(handle, 2**31 + 1, one, address, 2**31)", "the vector x"),
        ("scopy_64(handle, 3, address, -(2**63), address, 1)", "the vector x"),
        (
            "sgemm_64(handle, 0, 0, 1, 2**31 + 1, 1, one, address, 1, address, 2**31, one, address, 2**31)",
            "the matrix B",
        ),
    ],
)
def test_sizes_beyond_the_address_space_end_the_context(handle: int, call: str, what: str) -> None:
    """The bytes of such a vector or matrix are a small number in 64 bits."""
    if not on_cpu_device():
        pytest.skip("what a GPU does with a bad address is not defined")
    done = run(f"""
import numpy as np
from cupola import CUDAError, Device
from cupola.bindings import cublas
device = Device()
device.set_current()
stream = device.create_stream()
buffer = device.allocate(4096, stream=stream)
handle, one, address = cublas.create(), np.ones(1, np.float32), int(buffer.handle)
cublas.set_stream(handle, int(stream.handle))
cublas.{call}
try:
    stream.sync()
except CUDAError as error:
    print(error)
""")
    assert "ILLEGAL_ADDRESS" in done.stdout and f"{what} of " in done.stdout, done.stdout + done.stderr
    assert "does not fit in the address space" in done.stdout


def test_the_missing_package_is_named() -> None:
    program = """
import sys
sys.modules["scipy_openblas64"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "scipy_openblas64" else real(name, *rest)
from cupola.bindings import cublas
cublas.create()
"""
    done = processes.run([sys.executable, "-c", program], env=os.environ | {"CUPOLA_DEVICE": "cpu"})
    assert 'pip install "cupola[math]"' in done.stderr


def test_half_products(stream: Stream, handle: int) -> None:
    a, b = random((8, 8), np.float16, 1), random((8, 8), np.float16, 2)
    on_a, on_b, on_c = Array(stream, a), Array(stream, b), Array(stream, np.zeros((8, 8), np.float16))
    one, zero = scalar(1, np.float16), scalar(0, np.float16)
    cublas.hgemm(handle, N, N, 8, 8, 8, one, on_a.address, 8, on_b.address, 8, zero, on_c.address, 8)
    np.testing.assert_allclose(on_c.read(), a.astype(np.float64) @ b.astype(np.float64), atol=2e-2)
