"""Products of numbers of eight bits by cuBLASLt: the same programs on a GPU and on the CPU device."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cupola import Device, Stream
from cupola.bindings import cublaslt as lt
from cupola.bindings import driver
from tests import processes

ATTRIBUTES = lt.MatmulDescAttributes
R_32F, R_16F, R_16BF, E4M3, E5M2 = 0, 2, 14, 28, 29
F32 = lt.ComputeType.COMPUTE_32F
MOST = {E4M3: 448.0, E5M2: 57344.0}


@pytest.fixture(scope="module")
def stream() -> Iterator[Stream]:
    device = Device()
    device.set_current()
    if device.compute_capability < (8, 9):
        pytest.skip("numbers of eight bits need compute capability 8.9")
    stream = device.create_stream()
    yield stream
    stream.close()


@pytest.fixture(scope="module")
def handle(stream: Stream) -> Iterator[int]:
    try:
        handle = lt.create()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no cuBLASLt: {error}")
    yield handle
    lt.destroy(handle)


def values_of(kind: int) -> Any:
    """All 256 numbers of a type, by their definition."""
    code = np.arange(256)
    mantissa, bias = (3, 7) if kind == E4M3 else (2, 15)
    exponent, fraction = (code & 127) >> mantissa, (code & 127) % (1 << mantissa)
    step = np.exp2(np.maximum(exponent, 1) - bias - mantissa)
    magnitude = (fraction + np.where(exponent > 0, 1 << mantissa, 0)) * step
    if kind == E4M3:
        magnitude[(code & 127) == 127] = np.nan
    else:
        magnitude[(code & 127) == 124] = np.inf
        magnitude[(code & 127) > 124] = np.nan
    return np.where(code >= 128, -magnitude, magnitude)


def narrow(kind: int, x: Any) -> Any:
    """Rounded to the nearest number of the type, even codes where two are as near; at most the largest one."""
    table = values_of(kind)[:128]
    table = table[np.isfinite(table)]
    magnitude = np.minimum(np.abs(x), MOST[kind])
    above = np.searchsorted(table, magnitude).clip(1, len(table) - 1)
    below = above - 1
    up, down = table[above] - magnitude, magnitude - table[below]
    code = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    code = np.where(np.isnan(x), 127, code)
    return (code | np.where(np.signbit(x), 128, 0)).astype(np.uint8)


def numbers(kind: int, shape: tuple[int, ...], seed: int) -> tuple[Any, Any]:
    """Small numbers of the type in columns: their codes, and they themselves."""
    wide = np.random.default_rng(seed).choice(np.array([-2, -1.5, -0.75, -0.25, 0, 0.5, 1, 1.75, 3]), size=shape)
    return np.asfortranarray(narrow(kind, wide)), wide


class Device8:
    """Device memory with the bytes of arrays."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.buffers = stream, [Device().allocate(1 << 18, stream=stream) for _ in range(8)]
        self.used = 0

    def put(self, array: Any) -> int:
        address = int(self.buffers[self.used].handle)
        self.used += 1
        flat = np.ascontiguousarray(array.ravel(order="K")).view(np.uint8)
        driver.cuMemcpyHtoDAsync(address, flat, flat.nbytes, self.stream.handle)
        self.stream.sync()
        return address

    def get(self, address: int, dtype: Any, count: int) -> Any:
        flat = np.empty(count, dtype)
        driver.cuMemcpyDtoHAsync(flat.view(np.uint8), address, flat.nbytes, self.stream.handle)
        self.stream.sync()
        return flat


DTYPES = {R_32F: np.float32, R_16F: np.float16, R_16BF: np.uint16, E4M3: np.uint8, E5M2: np.uint8}


def encode(kind: int, x: Any) -> Any:
    if kind == R_16BF:
        return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return narrow(kind, x) if kind in MOST else np.asarray(x, DTYPES[kind])


def decode(kind: int, x: Any) -> Any:
    if kind == R_16BF:
        return (x.astype(np.uint32) << 16).view(np.float32).astype(float)
    return values_of(kind)[x] if kind in MOST else x.astype(float)


def product(
    handle: int, memory: Device8, kinds: tuple[int, int, int, int], a: Any, b: Any, c: Any, alpha: float = 1,
    beta: float = 0, attributes: dict[Any, Any] | None = None, order: tuple[int, int] = (1, 0),
) -> Any:  # fmt: skip
    """alpha op(A) op(B) + beta C, as the codes of D."""
    m, n = c.shape
    operation = lt.matmul_desc_create(F32, R_32F)
    settings = {ATTRIBUTES.TRANSA: np.int32(order[0]), ATTRIBUTES.TRANSB: np.int32(order[1])} | (attributes or {})
    for attribute, value in settings.items():
        lt.matmul_desc_set_attribute(operation, attribute, np.array([value]), value.nbytes)
    layouts = [
        lt.matrix_layout_create(kind, x.shape[0], x.shape[1], x.shape[0])
        for kind, x in zip(kinds, (a, b, c, c), strict=True)
    ]
    places = [memory.put(x) for x in (a, b, np.asfortranarray(encode(kinds[2], c)))]
    places.append(memory.put(np.zeros((m, n), DTYPES[kinds[3]])))
    preference = lt.matmul_preference_create()
    scalars = [np.array([x], np.float32) for x in (alpha, beta)]
    try:
        of_a, of_b, of_c, of_d = layouts
        found, count = lt.matmul_algo_get_heuristic(handle, operation, of_a, of_b, of_c, of_d, preference, 1)
        assert count == 1
        lt.matmul(
            handle, operation, scalars[0], places[0], of_a, places[1], of_b, scalars[1], places[2],
            of_c, places[3], of_d, found[0].algo, 0, 0, int(memory.stream.handle),
        )  # fmt: skip
        return memory.get(places[3], DTYPES[kinds[3]], m * n).reshape((m, n), order="F")
    finally:
        lt.matmul_preference_destroy(preference)
        lt.matmul_desc_destroy(operation)
        for made in layouts:
            lt.matrix_layout_destroy(made)


RESULTS = [
    (E4M3, E4M3, R_16BF, R_16BF),
    (E4M3, E5M2, R_16F, R_16F),
    (E5M2, E4M3, R_32F, R_32F),
    (E4M3, E4M3, R_16BF, E4M3),
    (E4M3, E4M3, R_16F, E4M3),
    (E5M2, E4M3, R_16BF, E5M2),
]


@pytest.mark.parametrize("kinds", RESULTS)
@pytest.mark.parametrize("fast", [0, 1])
def test_types(handle: int, stream: Stream, kinds: tuple[int, int, int, int], fast: int) -> None:
    """Sums that are exact in any order, so results are, too, with scales that are powers of two."""
    m, n, k = 32, 16, 48
    (a, wide_a), (b, wide_b) = numbers(kinds[0], (k, m), 1), numbers(kinds[1], (k, n), 2)
    c = np.random.default_rng(3).integers(-8, 8, (m, n)) / 2
    memory = Device8(stream)
    attributes: dict[Any, Any] = {ATTRIBUTES.FAST_ACCUM: np.int8(fast)}
    for attribute, scale in ((ATTRIBUTES.A_SCALE_POINTER, 0.5), (ATTRIBUTES.B_SCALE_POINTER, 4)):
        attributes[attribute] = np.uint64(memory.put(np.array([scale], np.float32)))
    exact = 0.25 * 0.5 * 4 * wide_a.T @ wide_b - 0.5 * c
    largest, of_d = 0, 64 if kinds[3] == E4M3 else 8192
    if kinds[3] in MOST:
        attributes[ATTRIBUTES.D_SCALE_POINTER] = np.uint64(memory.put(np.array([of_d], np.float32)))
        largest = memory.put(np.zeros(1, np.float32))
        attributes[ATTRIBUTES.AMAX_D_POINTER] = np.uint64(largest)
    actual = product(handle, memory, kinds, a, b, c, 0.25, -0.5, attributes)
    if kinds[3] in MOST:
        assert memory.get(largest, np.float32, 1)[0] == np.abs(exact).max()
        assert np.array_equal(decode(kinds[3], actual), decode(kinds[3], narrow(kinds[3], of_d * exact)))
        assert np.abs(of_d * exact).max() > MOST[kinds[3]]  # which becomes the largest number
    else:
        relative = 2.0**-8 if kinds[3] == R_16BF else 2.0**-11
        np.testing.assert_allclose(decode(kinds[3], actual), exact, rtol=relative, atol=0)


@pytest.mark.parametrize("kind", [E4M3, E5M2])
def test_all_numbers(handle: int, stream: Stream, kind: int) -> None:
    """Each is multiplied by one; NaN and infinity come through."""
    codes = np.zeros((16, 256), np.uint8, order="F")
    codes[0] = np.arange(256)
    ones = np.zeros((16, 16), np.uint8, order="F")
    ones[0] = narrow(E4M3, np.ones(16))
    actual = product(handle, Device8(stream), (kind, E4M3, R_32F, R_32F), codes, ones, np.zeros((256, 16)))
    expected = np.repeat(values_of(kind)[:, None], 16, axis=1)
    assert np.array_equal(actual, expected, equal_nan=True)


@pytest.mark.parametrize("kinds", RESULTS)
@pytest.mark.parametrize("name", ["RELU_BIAS", "GELU_BIAS"])
def test_epilogues(handle: int, stream: Stream, kinds: tuple[int, int, int, int], name: str) -> None:
    m, n, k = 16, 16, 32
    (a, wide_a), (b, wide_b) = numbers(kinds[0], (k, m), 1), numbers(kinds[1], (k, n), 2)
    memory, bias = Device8(stream), np.arange(m)[:, None] / 4 - 2
    of_bias = R_16F if kinds[2] == R_16F else R_16BF
    attributes = {
        ATTRIBUTES.EPILOGUE: np.uint32(getattr(lt.Epilogue, name)),
        ATTRIBUTES.BIAS_POINTER: np.uint64(memory.put(encode(of_bias, bias))),
        ATTRIBUTES.BIAS_DATA_TYPE: np.int32(of_bias),
    }
    actual = product(handle, memory, kinds, a, b, np.zeros((m, n)), 1, 0, attributes)
    x = wide_a.T @ wide_b + bias
    gelu = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    expected = np.maximum(x, 0) if name == "RELU_BIAS" else gelu
    relative = 0.13 if kinds[3] == E5M2 else 0.07 if kinds[3] == E4M3 else 0.01
    np.testing.assert_allclose(decode(kinds[3], actual), expected, rtol=relative, atol=0.02)


SCALES = lt.MatmulMatrixScale
BLOCK = 128


def whole(size: int) -> int:
    return -(-size // BLOCK)


def scales_of(mode: lt.MatmulMatrixScale, lines: int, k: int, seed: int) -> tuple[Any, Any]:
    """Scales as they lie in memory, and the one of each element of a matrix of lines along k."""
    rng = np.random.default_rng(seed)
    line, column = np.arange(lines)[:, None], np.arange(k)
    at: Any
    shape: Any
    if mode == SCALES.OUTER_VEC_32F:
        shape, at = (lines,), (line + 0 * column,)
    elif mode == SCALES.VEC128_32F:  # one line beside the other
        shape, at = (whole(k), lines), (column // BLOCK, line)
    else:  # along k, in fours
        shape, at = (whole(lines), -(-whole(k) // 4) * 4), (line // BLOCK, column // BLOCK)
    scales = np.exp2(rng.integers(-3, 4, shape)).astype(np.float32)
    return scales, scales[at].astype(float)


@pytest.mark.parametrize("kinds", RESULTS[:3])
@pytest.mark.parametrize(
    "modes",
    [
        ("OUTER_VEC_32F", "OUTER_VEC_32F"),
        ("VEC128_32F", "VEC128_32F"),
        ("VEC128_32F", "BLK128x128_32F"),
        ("BLK128x128_32F", "VEC128_32F"),
    ],
)
def test_scales_of_lines_and_blocks(
    handle: int, stream: Stream, kinds: tuple[int, int, int, int], modes: tuple[str, str]
) -> None:
    """A scale for each line, for 128 numbers of a line, or for blocks: all are powers of two, so sums are exact."""
    if Device().compute_capability != (9, 0):
        pytest.skip("compute capability 9.0 has them")
    m, n, k = 144, 272, 400
    (a, wide_a), (b, wide_b) = numbers(kinds[0], (k, m), 1), numbers(kinds[1], (k, n), 2)
    c = np.random.default_rng(3).integers(-8, 8, (m, n)) / 2
    memory = Device8(stream)
    (scales_a, all_a), (scales_b, all_b) = (
        scales_of(getattr(SCALES, mode), lines, k, seed)
        for mode, lines, seed in zip(modes, (m, n), (4, 5), strict=True)
    )
    attributes: dict[Any, Any] = {
        ATTRIBUTES.A_SCALE_MODE: np.int32(getattr(SCALES, modes[0])),
        ATTRIBUTES.B_SCALE_MODE: np.int32(getattr(SCALES, modes[1])),
        ATTRIBUTES.A_SCALE_POINTER: np.uint64(memory.put(scales_a)),
        ATTRIBUTES.B_SCALE_POINTER: np.uint64(memory.put(scales_b)),
    }
    actual = product(handle, memory, kinds, a, b, c, 0.5, 1, attributes)
    exact = 0.5 * (wide_a.T * all_a) @ (wide_b * all_b.T) + c
    relative = 2.0**-8 if kinds[3] == R_16BF else 2.0**-11
    np.testing.assert_allclose(decode(kinds[3], actual), exact, rtol=relative, atol=2.0**-8)


@pytest.mark.parametrize(
    ("kinds", "shape", "order", "status"),
    [
        ((E5M2, E5M2, R_16BF, R_16BF), (16, 16, 16), (1, 0), lt.Status.NOT_SUPPORTED),
        ((E4M3, E4M3, R_16BF, E5M2), (16, 16, 16), (1, 0), lt.Status.NOT_SUPPORTED),
        ((E4M3, E4M3, R_16BF, R_16BF), (16, 16, 16), (0, 0), lt.Status.NOT_SUPPORTED),
    ],
)
def test_what_there_is_not(
    handle: int, stream: Stream, kinds: Any, shape: tuple[int, int, int], order: Any, status: lt.Status
) -> None:
    if Device().compute_capability != (9, 0):
        pytest.skip("recorded on compute capability 9.0")
    m, n, k = shape
    a = np.zeros((k, m) if order[0] else (m, k), np.uint8, order="F")
    b = np.zeros((k, n), np.uint8, order="F")
    with pytest.raises(lt.cuBLASLtError) as caught:
        product(handle, Device8(stream), kinds, a, b, np.zeros((m, n)), order=order)
    assert caught.value.status == status


@pytest.mark.parametrize("attribute", ["D_SCALE_POINTER", "AMAX_D_POINTER"])
def test_only_results_of_eight_bits_have_a_scale(handle: int, stream: Stream, attribute: str) -> None:
    memory, a = Device8(stream), np.zeros((16, 16), np.uint8, order="F")
    attributes = {getattr(ATTRIBUTES, attribute): np.uint64(memory.put(np.ones(1, np.float32)))}
    with pytest.raises(lt.cuBLASLtError) as caught:
        product(handle, memory, (E4M3, E4M3, R_16BF, R_16BF), a, a, np.zeros((16, 16)), attributes=attributes)
    assert caught.value.status == lt.Status.INVALID_VALUE


@pytest.mark.cpu_only
@pytest.mark.parametrize(("model", "expected"), [("a100", "need compute capability 8.9"), ("l4", "found")])
def test_older_models(model: str, expected: str) -> None:
    pytest.importorskip("scipy_openblas64", reason="cuBLASLt calculates with OpenBLAS")
    script = """
import numpy as np
from cupola import Device
from cupola.bindings import cublaslt as lt
Device().set_current()
handle, operation, preference = lt.create(), lt.matmul_desc_create(68, 0), lt.matmul_preference_create()
lt.matmul_desc_set_attribute(operation, lt.MatmulDescAttributes.TRANSA, np.array([1], np.int32), 4)
a, c = lt.matrix_layout_create(28, 16, 16, 16), lt.matrix_layout_create(14, 16, 16, 16)
try:
    lt.matmul_algo_get_heuristic(handle, operation, a, a, c, c, preference, 1)
    print("found")
except Exception as error:
    print(error, *error.__notes__)
"""
    environment = os.environ | {"CUPOLA_DEVICE": "cpu", "CUPOLA_CPU_MODEL": model}
    done = processes.run([sys.executable, "-c", script], env=environment)
    assert expected in done.stdout, done.stdout + done.stderr
