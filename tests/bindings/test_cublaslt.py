"""cuBLASLt through its bindings: the same programs on a GPU and on the CPU device."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from cupola import Device, Stream
from cupola.bindings import cublaslt as lt
from cupola.bindings import driver
from tests import processes

ATTRIBUTES = lt.MatmulDescAttributes
R_32F, R_64F, R_16F, C_32F, C_64F, R_16BF, R_8I, R_32I = 0, 1, 2, 4, 5, 14, 3, 10
CODES = {"e": R_16F, "f": R_32F, "d": R_64F, "F": C_32F, "D": C_64F, "b": R_8I, "i": R_32I}
WORKSPACE = 1 << 22  # bytes: gradients need some on a GPU
F32 = lt.ComputeType.COMPUTE_32F
COMPUTE = {"e": F32, "f": F32, "F": F32, "d": lt.ComputeType.COMPUTE_64F, "D": lt.ComputeType.COMPUTE_64F}


@pytest.fixture(scope="module")
def handle() -> Iterator[int]:
    Device().set_current()
    try:
        handle = lt.create()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no cuBLASLt: {error}")
    yield handle
    lt.destroy(handle)


@pytest.fixture
def stream(handle: int) -> Iterator[Stream]:
    device = Device()
    device.set_current()
    stream = device.create_stream()
    yield stream
    stream.close()


class Array:
    """The bytes of a NumPy array on the device."""

    def __init__(self, stream: Stream, values: Any) -> None:
        self.like, self.stream = values, stream
        self.buffer = Device().allocate(max(values.nbytes, 16), stream=stream)
        self.address = int(self.buffer.handle)
        driver.cuMemcpyHtoDAsync(self.address, values.ravel(order="K").view(np.uint8), values.nbytes, stream.handle)
        stream.sync()

    def read(self) -> Any:
        flat = np.empty(self.like.nbytes, np.uint8)
        driver.cuMemcpyDtoHAsync(flat, self.address, flat.nbytes, self.stream.handle)
        self.stream.sync()
        order = "F" if self.like.flags.f_contiguous else "C"
        return flat.view(self.like.dtype).reshape(self.like.shape, order=order)


def layout(matrix: Any, code: int | None = None) -> int:
    """The layout of a matrix in rows or in columns; of a batch of matrices when it has three dimensions."""
    *batch, rows, columns = matrix.shape
    size = matrix.itemsize
    by_rows = matrix.strides[-1] == size and (columns > 1 or matrix.strides[-2] != size)
    ld = max(matrix.strides[-2 if by_rows else -1] // size, 1)
    made = lt.matrix_layout_create(CODES[matrix.dtype.char] if code is None else code, rows, columns, ld)
    settings: list[tuple[Any, Any]] = [
        (lt.MatrixLayoutAttribute.ORDER, np.int32(lt.Order.ROW if by_rows else lt.Order.COL))
    ]
    if batch:
        settings += [
            (lt.MatrixLayoutAttribute.BATCH_COUNT, np.int32(batch[0])),
            (lt.MatrixLayoutAttribute.STRIDED_BATCH_OFFSET, np.int64(matrix.strides[0] // size)),
        ]
    for attribute, value in settings:
        lt.matrix_layout_set_attribute(made, attribute, np.array([value]), value.nbytes)
    return made


@dataclass
class Product:
    """One product, made and carried out."""

    handle: int
    stream: Stream
    a: Any
    b: Any
    d: Any  # the result, which is C before
    alpha: Any = 1
    beta: Any = 0
    compute: int | None = None
    scale: str = ""
    ops: tuple[int, int] = (0, 0)
    attributes: dict[Any, Any] = field(default_factory=dict)
    algorithm: bool = True

    def run(self) -> Any:
        kind = self.a.dtype.char
        scale = self.scale or {"e": "f"}.get(kind, kind)
        operation = lt.matmul_desc_create(COMPUTE[kind] if self.compute is None else self.compute, CODES[scale])
        settings = {
            ATTRIBUTES.TRANSA: np.int32(self.ops[0]),
            ATTRIBUTES.TRANSB: np.int32(self.ops[1]),
        } | self.attributes
        for attribute, value in settings.items():
            lt.matmul_desc_set_attribute(operation, attribute, np.array([value]), value.nbytes)
        a, b, d = (Array(self.stream, x) for x in (self.a, self.b, self.d))
        of_a, of_b, of_d = (layout(x) for x in (self.a, self.b, self.d))
        scalars = [np.array([x], scale) for x in (self.alpha, self.beta)]
        workspace = Array(self.stream, np.zeros(WORKSPACE, np.uint8))
        preference = lt.matmul_preference_create()
        limit = np.array([WORKSPACE], np.uint64)
        lt.matmul_preference_set_attribute(
            preference, lt.MatmulPreferenceAttributes.MAX_WORKSPACE_BYTES, limit, limit.nbytes
        )
        try:
            algorithm: Any = None
            if self.algorithm:
                found, count = lt.matmul_algo_get_heuristic(
                    self.handle, operation, of_a, of_b, of_d, of_d, preference, 4
                )
                assert count >= 1 and len(found) == count
                algorithm = found[0].algo
            lt.matmul(
                self.handle, operation, scalars[0], a.address, of_a, b.address, of_b, scalars[1], d.address,
                of_d, d.address, of_d, algorithm, workspace.address, WORKSPACE, int(self.stream.handle),
            )  # fmt: skip
            return d.read()
        finally:
            lt.matmul_preference_destroy(preference)
            lt.matmul_desc_destroy(operation)
            for made in (of_a, of_b, of_d):
                lt.matrix_layout_destroy(made)


def random(shape: Any, dtype: Any, seed: int = 0, order: Any = "F") -> Any:
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * generator.standard_normal(shape)
    return np.asarray(values.astype(dtype), order=order)


def apply(op: int, a: Any) -> Any:
    return (a, a.T, a.conj().T)[op]


def close(actual: Any, expected: Any, terms: int) -> None:
    """Within the bound of a sum of that many products, and of the result's own rounding."""
    eps = float(np.finfo(actual.dtype).eps)
    terms = 2 if actual.dtype == np.float16 else terms
    np.testing.assert_allclose(actual, expected, rtol=0, atol=8 * eps * terms * max(1.0, float(np.abs(expected).max())))


@pytest.mark.parametrize("kind", "efdFD")
@pytest.mark.parametrize("orders", ["FFF", "CCC", "CFF", "FCC", "FFC", "CFC"])
@pytest.mark.parametrize("ops", [(0, 0), (1, 0), (0, 2), (2, 1)])
def test_orders_and_operations(handle: int, stream: Stream, kind: str, orders: str, ops: tuple[int, int]) -> None:
    m, n, k = 40, 24, 16
    a = random((m, k) if not ops[0] else (k, m), kind, 1, orders[0])
    b = random((k, n) if not ops[1] else (n, k), kind, 2, orders[1])
    c = random((m, n), kind, 3, orders[2])
    product = Product(handle, stream, a, b, c, 1.5, -0.5, ops=ops)
    # In the order of the result a matrix would be conjugated, but not transposed.
    if kind in "FD" and any(op == 2 and order != orders[2] for op, order in zip(ops, orders, strict=False)):
        with pytest.raises(lt.cuBLASLtError) as caught:
            product.run()
        assert caught.value.status == lt.Status.NOT_SUPPORTED
        return
    actual = product.run()
    wide = {"e": np.float32}.get(kind, kind)
    close(actual, 1.5 * apply(ops[0], a.astype(wide)) @ apply(ops[1], b.astype(wide)) - 0.5 * c.astype(wide), k)


def test_more_lines_than_are_done_at_a_time(handle: int, stream: Stream) -> None:
    a, b, c = random((16, 8), "e", 1), random((8, 3000), "e", 2), random((16, 3000), "e", 3)
    actual = Product(handle, stream, a, b, c, 1, 1).run()
    close(actual, a.astype("f") @ b.astype("f") + c.astype("f"), 8)


@pytest.mark.parametrize("order", ["F", "C"])
def test_batches(handle: int, stream: Stream, order: Any) -> None:
    def batch(rows: int, columns: int, seed: int) -> Any:
        values = random((3, rows, columns), "f", seed, "C")
        return values if order == "C" else values.transpose(0, 2, 1).copy().transpose(0, 2, 1)

    a, b, c = batch(8, 4, 1), batch(4, 12, 2), batch(8, 12, 3)
    shape = c.shape
    product = Product(handle, stream, a, b, c)
    flat = product.run() if order == "C" else product.run().ravel().reshape(3, 12, 8).transpose(0, 2, 1)
    close(flat.reshape(shape), a @ b, 4)


@pytest.mark.parametrize(("compute", "scale", "result"), [(72, "i", "i"), (72, "f", "b")])
def test_whole_numbers(handle: int, stream: Stream, compute: int, scale: str, result: str) -> None:
    generator = np.random.default_rng(1)
    a = np.asfortranarray(generator.integers(-100, 100, (32, 16)), np.int8)  # transposed, as GPUs want it
    b = np.asfortranarray(generator.integers(-100, 100, (32, 8)), np.int8)
    d = np.zeros((16, 8), result, order="F")
    alpha = 1 if result == "i" else 0.001
    actual = Product(handle, stream, a, b, d, alpha, 0, compute=compute, scale=scale, ops=(1, 0)).run()
    exact = a.T.astype(np.int64) @ b.astype(np.int64)
    if result == "i":
        assert np.array_equal(actual, exact)
    else:
        assert np.abs(actual - np.clip(np.rint(exact * 0.001), -128, 127)).max() <= 1


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x: Any) -> Any:
    step = 1e-4
    return (gelu(x + step) - gelu(x - step)) / (2 * step)


EPILOGUES = {
    "RELU": lambda x, bias: np.maximum(x, 0),
    "GELU": lambda x, bias: gelu(x),
    "BIAS": lambda x, bias: x + bias,
    "RELU_BIAS": lambda x, bias: np.maximum(x + bias, 0),
    "GELU_BIAS": lambda x, bias: gelu(x + bias),
}


@pytest.mark.parametrize("kind", "ef")
@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues(handle: int, stream: Stream, kind: str, name: str) -> None:
    m, n, k = 48, 24, 16
    a, b, d = random((m, k), kind, 1), random((k, n), kind, 2), np.zeros((m, n), kind, order="F")
    bias = random((m, 1), kind, 3)
    on_device = Array(stream, bias)
    attributes: dict[Any, Any] = {ATTRIBUTES.EPILOGUE: np.uint32(getattr(lt.Epilogue, name))}
    if "BIAS" in name:
        attributes[ATTRIBUTES.BIAS_POINTER] = np.uint64(on_device.address)
    actual = Product(handle, stream, a, b, d, attributes=attributes).run()
    close(actual, EPILOGUES[name](a.astype("d") @ b.astype("d"), bias.astype("d")), k)


@pytest.mark.parametrize("kind", "ef")
@pytest.mark.parametrize("name", ["RELU", "GELU"])
def test_epilogues_and_their_gradients(handle: int, stream: Stream, kind: str, name: str) -> None:
    """What the forward pass leaves in the auxiliary matrix, the backward pass takes."""
    m, n, k = 130, 24, 16
    a, b, d = random((m, k), kind, 1), random((k, n), kind, 2), np.zeros((m, n), kind, order="F")
    bits = name == "RELU"
    ld = 256 if bits else 136
    aux = Array(stream, np.zeros((ld // 8, n), np.uint8, order="F") if bits else np.zeros((ld, n), kind, order="F"))
    attributes = {
        ATTRIBUTES.EPILOGUE: np.uint32(getattr(lt.Epilogue, f"{name}_AUX")),
        ATTRIBUTES.EPILOGUE_AUX_POINTER: np.uint64(aux.address),
        ATTRIBUTES.EPILOGUE_AUX_LD: np.int64(ld),
    }
    product = a.astype("d") @ b.astype("d")
    forward = Product(handle, stream, a, b, d, attributes=attributes).run()
    close(forward, np.maximum(product, 0) if bits else gelu(product), k)
    if bits:
        mask = np.unpackbits(aux.read(), axis=0, bitorder="little")[:m]
        assert np.array_equal(mask, product >= 0)
    else:
        close(aux.read()[:m], product, k)

    sums = Array(stream, np.zeros(m, kind))
    attributes |= {
        ATTRIBUTES.EPILOGUE: np.uint32(getattr(lt.Epilogue, f"D{name}_BGRAD")),
        ATTRIBUTES.BIAS_POINTER: np.uint64(sums.address),
    }
    c, e = random((m, k), kind, 4), random((k, n), kind, 5)
    backward = Product(handle, stream, c, e, d, attributes=attributes).run()
    slope = product > 0 if bits else gelu_slope(product)
    expected = (c.astype("d") @ e.astype("d")) * slope
    close(backward, expected, k)
    close(sums.read(), expected.sum(axis=1), k * n)


@pytest.mark.parametrize(
    ("name", "ops"), [("BGRADA", (0, 0)), ("BGRADA", (0, 1)), ("BGRADB", (0, 1)), ("BGRADB", (1, 1))]
)
def test_gradients_of_the_operands(handle: int, stream: Stream, name: str, ops: tuple[int, int]) -> None:
    m, n, k = 32, 16, 64
    a, b = random((k, m) if ops[0] else (m, k), "e", 1), random((n, k) if ops[1] else (k, n), "e", 2)
    d = np.zeros((m, n), "e", order="F")
    sums = Array(stream, np.zeros(m if name == "BGRADA" else n, "e"))
    attributes = {
        ATTRIBUTES.EPILOGUE: np.uint32(getattr(lt.Epilogue, name)),
        ATTRIBUTES.BIAS_POINTER: np.uint64(sums.address),
    }
    Product(handle, stream, a, b, d, ops=ops, attributes=attributes).run()
    wide = apply(ops[0], a).astype("d").sum(axis=1) if name == "BGRADA" else apply(ops[1], b).astype("d").sum(axis=0)
    close(sums.read(), wide, k)


@pytest.mark.parametrize("mode", ["DEVICE_VECTOR", "ALPHA_DEVICE_VECTOR_BETA_ZERO", "ALPHA_DEVICE_VECTOR_BETA_HOST"])
def test_vectors_of_scalars_are_refused(handle: int, stream: Stream, mode: str) -> None:
    """Only products in interleaved orders have them."""
    attributes = {ATTRIBUTES.POINTER_MODE: np.int32(getattr(lt.PointerMode, mode))}
    a = np.zeros((16, 16), "f", order="F")
    with pytest.raises(lt.cuBLASLtError) as caught:
        Product(handle, stream, a, a, a, attributes=attributes, algorithm=False).run()
    assert caught.value.status == lt.Status.NOT_SUPPORTED


def test_a_transformation(handle: int, stream: Stream) -> None:
    a, b = random((6, 10), "f", 1), random((10, 6), "f", 2, "C")
    c = np.zeros((10, 6), "f", order="F")
    on_a, on_b, on_c = (Array(stream, x) for x in (a, b, c))
    operation = lt.matrix_transform_desc_create(R_32F)
    lt.matrix_transform_desc_set_attribute(
        operation, lt.MatrixTransformDescAttributes.TRANSA, np.array([1], np.int32), 4
    )
    layouts = [layout(x) for x in (a, b, c)]
    two, three = np.array([2], "f"), np.array([3], "f")
    lt.matrix_transform(
        handle, operation, two, on_a.address, layouts[0], three, on_b.address, layouts[1], on_c.address, layouts[2],
        int(stream.handle),
    )  # fmt: skip
    close(on_c.read(), 2 * a.T + 3 * b, 2)
    lt.matrix_transform_desc_destroy(operation)


def test_attributes(handle: int) -> None:
    operation = lt.matmul_desc_create(F32, R_32F)
    value = np.array([7], np.int64)
    lt.matmul_desc_set_attribute(operation, ATTRIBUTES.BIAS_BATCH_STRIDE, value, 8)
    got = np.zeros(1, np.int64)
    assert lt.matmul_desc_get_attribute(operation, ATTRIBUTES.BIAS_BATCH_STRIDE, got, 8) == 8 and got[0] == 7
    assert lt.matmul_desc_get_attribute(operation, ATTRIBUTES.EPILOGUE, 0, 0) == 4
    for attribute, size in ((ATTRIBUTES.EPILOGUE, 8), (ATTRIBUTES.BIAS_POINTER, 4), (99, 4)):
        with pytest.raises(lt.cuBLASLtError) as caught:
            lt.matmul_desc_set_attribute(operation, attribute, value, size)
        assert caught.value.status == lt.Status.INVALID_VALUE
    lt.matmul_desc_destroy(operation)


def test_calls_are_captured(handle: int, stream: Stream) -> None:
    a, b, d = random((8, 8), "f", 1), random((8, 8), "f", 2), np.zeros((8, 8), "f", order="F")
    on_a, on_b, on_d = (Array(stream, x) for x in (a, b, d))
    layouts = [layout(x) for x in (a, b, d)]
    operation = lt.matmul_desc_create(F32, R_32F)
    one = np.ones(1, "f")
    builder = stream.create_graph_builder()
    builder.begin_building()
    lt.matmul(
        handle, operation, one, on_a.address, layouts[0], on_b.address, layouts[1], one, on_d.address, layouts[2],
        on_d.address, layouts[2], None, 0, 0, int(stream.handle),
    )  # fmt: skip
    one[0] = 100  # taken by value
    graph = builder.end_building().complete()
    for _ in range(3):
        graph.launch(stream)
    close(on_d.read(), 3 * (a @ b), 8)
    lt.matmul_desc_destroy(operation)


def test_errors_explain_themselves(handle: int, stream: Stream) -> None:
    a, b = np.zeros((4, 4), "f", order="F"), np.zeros((5, 4), "f", order="F")
    with pytest.raises(lt.cuBLASLtError) as caught:
        Product(handle, stream, a, b, a, algorithm=False).run()
    assert caught.value.status == lt.Status.INVALID_VALUE
    if Device().name.startswith("cupola"):
        assert "B is 5 by 4, but has to be 4 by 4" in "".join(caught.value.__notes__)


@pytest.mark.cpu_only
@pytest.mark.parametrize("what", ["the matrix A", "the matrix D", "the bias", "the auxiliary matrix"])
def test_bad_addresses_end_the_context(what: str) -> None:
    pytest.importorskip("scipy_openblas64", reason="cuBLASLt calculates with OpenBLAS")
    script = f"""
import numpy as np
from cupola import Device
from cupola.bindings import cublaslt as lt
device = Device(); device.set_current(); stream = device.create_stream()
handle, operation, made = lt.create(), lt.matmul_desc_create(68, 0), lt.matrix_layout_create(0, 64, 64, 64)
one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
buffers = {{name: device.allocate(4 * 64 * 64 if name != {what!r} else 128, stream=stream) for name in (
    "the matrix A", "the matrix B", "the matrix D", "the bias", "the auxiliary matrix")}}
places = {{name: int(buffer.handle) for name, buffer in buffers.items()}}
for attribute, value in ((7, np.uint32(2 | 4 | 128)), (8, np.uint64(places["the bias"])),
                         (11, np.uint64(places["the auxiliary matrix"])), (12, np.int64(128))):
    lt.matmul_desc_set_attribute(operation, attribute, np.array([value]), value.nbytes)
d = places["the matrix D"]
lt.matmul(handle, operation, one, places["the matrix A"], made, places["the matrix B"], made, zero, d, made, d, made,
          None, 0, 0, int(stream.handle))
try:
    stream.sync()
except Exception as error:
    print(type(error).__name__, error, *getattr(error, "__notes__", ()))
"""
    done = processes.run(
        [sys.executable, "-c", script],
        env=os.environ | {"CUPOLA_DEVICE": "cpu"},
    )
    assert "ILLEGAL_ADDRESS" in done.stdout and f"{what} of cublasLtMatmul" in done.stdout, done.stdout + done.stderr
