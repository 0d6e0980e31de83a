"""cuFFT through its bindings: the same programs on a GPU and on the CPU device, compared with NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cupola import Device, Stream
from cupola.bindings import cufft, driver
from tests import processes

R_32F, R_64F, R_16F, C_32F, C_64F, C_16F, R_16BF, C_16BF = 0, 1, 2, 4, 5, 6, 14, 15
FORWARD, INVERSE = cufft.CUFFT_FORWARD, cufft.CUFFT_INVERSE
Type = cufft.Type


@pytest.fixture(scope="module")
def stream() -> Iterator[Stream]:
    device = Device()
    device.set_current()
    try:
        cufft.get_version()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no cuFFT: {error}")
    stream = device.create_stream()
    yield stream
    stream.close()


def on_cpu_device() -> bool:
    return "CPU device" in Device().name


class Memory:
    """An array's copy on the device."""

    def __init__(self, stream: Stream, values: Any) -> None:
        self.values = np.ascontiguousarray(values)
        self.stream = stream
        self.buffer = Device().allocate(max(self.values.nbytes, 16), stream=stream)
        self.address = int(self.buffer.handle)
        driver.cuMemcpyHtoDAsync(
            self.address, self.values.reshape(-1).view(np.uint8), self.values.nbytes, stream.handle
        )
        stream.sync()

    def read(self) -> Any:
        result = np.empty_like(self.values)
        driver.cuMemcpyDtoHAsync(result.reshape(-1).view(np.uint8), self.address, result.nbytes, self.stream.handle)
        self.stream.sync()
        return result


def numbers(shape: Any, dtype: Any, seed: int = 1) -> Any:
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def assert_close(actual: Any, expected: Any, dtype: Any) -> None:
    """Within the bound of a transform: rounding times the logarithm of the size, relative to the largest number."""
    bound = 8 * np.finfo(dtype).eps * max(1.0, np.log2(expected.size)) * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)


SHAPES = [(1,), (2,), (7,), (64,), (1000,), (4099,), (6, 10), (16, 1), (33, 64), (3, 4, 5), (8, 9, 10)]
SHAPES += [(16384,), (36960,)]  # the CPU device transforms long ones in pieces


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("kind", ["c2c", "inverse", "r2c", "c2r"])
def test_transforms(stream: Stream, shape: tuple[int, ...], batch: int, double: bool, kind: str) -> None:
    real, complex_ = (np.float64, np.complex128) if double else (np.float32, np.complex64)
    axes = tuple(range(1, len(shape) + 1))
    half = (batch, *shape[:-1], shape[-1] // 2 + 1)
    size = np.prod(shape)
    if kind in ("c2c", "inverse"):
        given = numbers((batch, *shape), complex_)
        wide = given.astype(np.complex128)
        expected = np.fft.fftn(wide, axes=axes) if kind == "c2c" else np.fft.ifftn(wide, axes=axes) * size
        code, call = (Type.Z2Z, cufft.exec_z2z) if double else (Type.C2C, cufft.exec_c2c)
        direction = (FORWARD,) if kind == "c2c" else (INVERSE,)
        result = np.zeros((batch, *shape), complex_)
    elif kind == "r2c":
        given = numbers((batch, *shape), real)
        expected = np.fft.rfftn(given.astype(np.float64), axes=axes)
        code, call, direction = (Type.D2Z, cufft.exec_d2z, ()) if double else (Type.R2C, cufft.exec_r2c, ())
        result = np.zeros(half, complex_)
    else:
        given = np.fft.rfftn(numbers((batch, *shape), np.float64), axes=axes).astype(complex_)
        expected = np.fft.irfftn(given.astype(np.complex128), s=shape, axes=axes) * size
        code, call, direction = (Type.Z2D, cufft.exec_z2d, ()) if double else (Type.C2R, cufft.exec_c2r, ())
        result = np.zeros((batch, *shape), real)
    plan = cufft.plan_many(len(shape), shape, None, 1, 0, None, 1, 0, code, batch)
    cufft.set_stream(plan, int(stream.handle))
    source, target = Memory(stream, given), Memory(stream, result)
    call(plan, source.address, target.address, *direction)
    assert_close(target.read(), expected, real)
    cufft.destroy(plan)


def test_any_strides(stream: Stream) -> None:
    """Every second number of rows in a larger array, and results in the other order."""
    given = numbers((2, 5, 24), np.complex64)
    plan = cufft.create()
    cufft.make_plan_many64(plan, 2, (4, 8), (5, 12), 2, 5 * 24, (4, 8), 3, 1, Type.C2C, 2)
    cufft.set_stream(plan, int(stream.handle))
    source, target = Memory(stream, given), Memory(stream, np.zeros(4 * 8 * 3, np.complex64))
    cufft.exec_c2c(plan, source.address, target.address, FORWARD)
    result = target.read()
    for i in range(2):
        expected = np.fft.fft2(given[i, :4, :16:2].astype(np.complex128))
        assert_close(result[i::3].reshape(4, 8), expected, np.float32)
    assert not result[2::3].any()
    cufft.destroy(plan)


@pytest.mark.parametrize("n", [20000, 16411], ids=["long", "long-prime"])
def test_every_second_number_of_a_long_row_in_place(stream: Stream, n: int) -> None:
    given = numbers((2, 2 * n), np.complex64)
    plan = cufft.plan_many(1, (n,), (n,), 2, 2 * n, (n,), 2, 2 * n, Type.C2C, 2)
    cufft.set_stream(plan, int(stream.handle))
    memory = Memory(stream, given)
    cufft.exec_c2c(plan, memory.address, memory.address, INVERSE)
    result = memory.read()
    for row, source in zip(result, given, strict=True):
        assert_close(row[::2], np.fft.ifft(source[::2].astype(np.complex128)) * n, np.float32)
        assert np.array_equal(row[1::2], source[1::2])
    cufft.destroy(plan)


@pytest.mark.parametrize("shape", [(8,), (9,), (6, 10), (4, 5, 7)], ids=str)
@pytest.mark.parametrize("batch", [1, 2])
def test_in_place_rows_of_reals_are_padded(stream: Stream, shape: tuple[int, ...], batch: int) -> None:
    axes = tuple(range(1, len(shape) + 1))
    half = shape[-1] // 2 + 1
    given = numbers((batch, *shape), np.float32)
    padded = np.zeros((batch, *shape[:-1], 2 * half), np.float32)
    padded[..., : shape[-1]] = given
    there = cufft.plan_many(len(shape), shape, None, 1, 0, None, 1, 0, Type.R2C, batch)
    back = cufft.plan_many(len(shape), shape, None, 1, 0, None, 1, 0, Type.C2R, batch)
    memory = Memory(stream, padded)
    for plan in (there, back):
        cufft.set_stream(plan, int(stream.handle))
    cufft.exec_r2c(there, memory.address, memory.address)
    expected = np.fft.rfftn(given.astype(np.float64), axes=axes)
    assert_close(memory.read().view(np.complex64), expected, np.float32)
    cufft.exec_c2r(back, memory.address, memory.address)
    assert_close(memory.read()[..., : shape[-1]], given.astype(np.float64) * np.prod(shape), np.float32)
    cufft.destroy(there)
    cufft.destroy(back)


@pytest.mark.parametrize("bits", ["half", "bfloat16"])
def test_half_precision(stream: Stream, bits: str) -> None:
    given = numbers((3, 64), np.complex64)
    parts = given.view(np.float32)
    if bits == "half":
        code, stored, bound = C_16F, parts.astype(np.float16), 2e-2
        read = lambda x: x.astype(np.float32)  # noqa: E731
    else:
        code, stored, bound = C_16BF, (parts.view(np.uint32) >> 16).astype(np.uint16), 2e-1
        read = lambda x: (x.astype(np.uint32) << 16).view(np.float32)  # noqa: E731
    source, target = Memory(stream, stored), Memory(stream, np.zeros_like(stored))
    plan = cufft.create()
    cufft.xt_make_plan_many(plan, 1, (64,), None, 1, 0, code, None, 1, 0, code, 3, code)
    cufft.set_stream(plan, int(stream.handle))
    cufft.xt_exec(plan, source.address, target.address, FORWARD)
    expected = np.fft.fft(read(stored).view(np.complex64).astype(np.complex128))
    np.testing.assert_allclose(read(target.read()).view(np.complex64), expected, atol=bound * 8)
    cufft.destroy(plan)


def test_a_capture_is_a_node_that_runs_again(stream: Stream) -> None:
    given = numbers((2, 32), np.complex64)
    source, target = Memory(stream, given), Memory(stream, np.zeros_like(given))
    plan = cufft.plan1d(32, Type.C2C, 2)
    cufft.set_stream(plan, int(stream.handle))
    builder = stream.create_graph_builder()
    builder.begin_building()
    cufft.exec_c2c(plan, source.address, target.address, FORWARD)
    graph = builder.end_building().complete()
    if on_cpu_device():
        cufft.destroy(plan)  # the graph has what it needs; on a GPU the plan has it
    assert not target.read().any()
    for factor in (1, 2):
        values = given * factor
        driver.cuMemcpyHtoDAsync(source.address, values.reshape(-1).view(np.uint8), values.nbytes, stream.handle)
        graph.launch(stream)
        assert_close(target.read(), np.fft.fft(values.astype(np.complex128)), np.float32)
    graph.close()
    if not on_cpu_device():
        cufft.destroy(plan)


def test_sizes_and_settings(stream: Stream) -> None:
    plan = cufft.create()
    cufft.set_auto_allocation(plan, 0)
    assert cufft.estimate1d(64, Type.C2C, 2) >= 0
    assert cufft.get_size_many(plan, 1, (64,), None, 1, 0, None, 1, 0, Type.C2C, 2) >= 0
    assert cufft.xt_get_size_many(plan, 1, (64,), None, 1, 0, C_32F, None, 1, 0, C_32F, 2, C_32F) >= 0
    size = cufft.make_plan1d(plan, 64, Type.C2C, 2)
    assert cufft.get_size(plan) == size
    if on_cpu_device():
        assert size == 0
    cufft.destroy(plan)
    cufft.destroy(cufft.CUFFT_PLAN_NULL)


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (lambda: cufft.plan1d(0, Type.C2C, 1), "INVALID_SIZE"),
        (lambda: cufft.plan1d(8, 5, 1), "INVALID_TYPE"),
        (lambda: cufft.plan_many(4, (2, 2, 2, 2), None, 1, 0, None, 1, 0, Type.C2C, 1), "INVALID_VALUE"),
        (lambda: cufft.plan_many(1, (8,), (8,), 0, 8, (8,), 1, 8, Type.C2C, 1), "INVALID_VALUE"),
        (lambda: cufft.plan_many(1, (8,), (8,), 1, 8, None, 1, 8, Type.C2C, 1), "INVALID_VALUE"),
        (lambda: cufft.plan_many(1, (8,), (8,), 1, 0, (8,), 1, 8, Type.C2C, 2), "INVALID_VALUE"),
        (lambda: cufft.xt_set_callback(0, 0, 0, 0), "NOT_IMPLEMENTED"),
        (lambda: cufft.exec_c2c(12345, 0, 0, FORWARD), "INVALID_PLAN"),
        (lambda: cufft.destroy(12345), "INVALID_PLAN"),
        (lambda: cufft.get_size(12345), "INVALID_PLAN"),
    ],
)
def test_bad_calls(stream: Stream, call: Any, status: str) -> None:
    with pytest.raises(cufft.cuFFTError, match=status) as caught:
        call()
    assert caught.value.status == cufft.Result[status]
    if on_cpu_device():
        assert caught.value.__notes__


def test_a_plan_is_made_once_and_has_directions(stream: Stream) -> None:
    plan = cufft.create()
    with pytest.raises(cufft.cuFFTError, match="INVALID_PLAN"):
        cufft.exec_c2c(plan, 0, 0, FORWARD)
    cufft.make_plan1d(plan, 8, Type.R2C, 1)
    with pytest.raises(cufft.cuFFTError, match="INVALID_PLAN"):
        cufft.make_plan1d(plan, 8, Type.R2C, 1)
    with pytest.raises(cufft.cuFFTError, match="INVALID_VALUE"):
        cufft.xt_exec(plan, 0, 0, INVERSE)
    cufft.destroy(plan)
    with pytest.raises(cufft.cuFFTError, match="INVALID_PLAN"):
        cufft.destroy(plan)


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_bad_address_is_a_fault_that_names_the_side(side: str) -> None:
    """In a process of its own, whose context it ends."""
    if not on_cpu_device():
        pytest.skip("what a GPU does with a bad address is not defined")
    import sys

    program = f"""
import numpy as np
from cupola import CUDAError, Device
from cupola.bindings import cufft
device = Device(); device.set_current()
stream = device.create_stream()
a = device.allocate(8 * 63, stream=stream); b = device.allocate(8 * 64, stream=stream)
plan = cufft.plan1d(64, cufft.Type.C2C, 1)
cufft.set_stream(plan, int(stream.handle))
sides = {{"input": (a, b), "output": (b, a)}}["{side}"]
cufft.exec_c2c(plan, int(sides[0].handle), int(sides[1].handle), -1)
try:
    stream.sync()
except CUDAError as error:
    print(error)
"""
    done = processes.run([sys.executable, "-c", program])
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout, done.stdout + done.stderr
    assert f"the {side} of cufftExecC2C" in done.stdout


# Functions of C++: a GPU's library does not find one that is extern "C".
CALLBACKS = r"""
__device__ TYPE load(void* data, unsigned long long i, void* info, void*) {
    TYPE v = ((TYPE*)data)[i];
    float factor = *(float*)info;
    return LOADED;
}
__device__ void store(void* data, unsigned long long i, OTHER v, void* info, void*) {
    ((OTHER*)data)[i] = STORED;
}
"""


def lto_ir(loaded: str, stored: str) -> bytes:
    from cupola import Program, ProgramOptions

    scale = {"float2": "make_float2(v.x * factor, v.y * factor)", "float": "v * factor"}
    add = {"float2": "make_float2(v.x + 1, v.y + 2)", "float": "v + 1"}
    source = CALLBACKS.replace("TYPE", loaded).replace("OTHER", stored)
    source = source.replace("LOADED", scale[loaded]).replace("STORED", add[stored])
    options = ProgramOptions(arch=f"sm_{Device().arch}", link_time_optimization=True)
    return bytes(Program(source, "c++", options).compile("ltoir").code)


@pytest.mark.parametrize("which", ["load", "store", "both"])
@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
def test_callbacks(stream: Stream, which: str, kind: str) -> None:
    shape, batch, factor = (6, 10), 2, 3.0
    loaded, stored = ("float" if kind == "r2c" else "float2"), ("float" if kind == "c2r" else "float2")
    code = lto_ir(loaded, stored)
    given = numbers((batch, *shape), np.float32 if kind == "r2c" else np.complex64)
    if kind == "c2r":
        given = np.fft.rfftn(given.real, axes=(1, 2)).astype(np.complex64)
    info = Memory(stream, np.array([factor], np.float32))
    source, plan = Memory(stream, given), cufft.create()
    pointers = np.array([info.address], np.uint64)
    callback = cufft.XtCallbackType
    if which != "store":
        cufft.xt_set_jit_callback(
            plan, "load", code, len(code), callback.LD_REAL if kind == "r2c" else callback.LD_COMPLEX, pointers
        )
    if which != "load":
        cufft.xt_set_jit_callback(
            plan, "store", code, len(code), callback.ST_REAL if kind == "c2r" else callback.ST_COMPLEX, None
        )
    scale, shift = (factor if which != "store" else 1), (which != "load")
    if kind == "c2c":
        expected = np.fft.fftn(given.astype(np.complex128) * scale, axes=(1, 2)) + shift * (1 + 2j)
    elif kind == "r2c":
        expected = np.fft.rfftn(given.astype(np.float64) * scale, axes=(1, 2)) + shift * (1 + 2j)
    else:
        expected = np.fft.irfftn(given.astype(np.complex128) * scale, s=shape, axes=(1, 2)) * 60 + shift
    result = Memory(stream, np.zeros(expected.shape, np.complex64 if kind != "c2r" else np.float32))
    cufft.make_plan_many(plan, 2, shape, None, 1, 0, None, 1, 0, getattr(Type, kind.upper()), batch)
    cufft.set_stream(plan, int(stream.handle))
    cufft.xt_exec(plan, source.address, result.address, INVERSE if kind == "c2r" else FORWARD)
    assert_close(result.read(), expected, np.float32)
    cufft.destroy(plan)


def test_callbacks_are_captured(stream: Stream) -> None:
    code = lto_ir("float2", "float2")
    given = numbers(32, np.complex64)
    info, source, plan = Memory(stream, np.array([2], np.float32)), Memory(stream, given), cufft.create()
    result = Memory(stream, np.zeros_like(given))
    pointers = np.array([info.address], np.uint64)
    cufft.xt_set_jit_callback(plan, "load", code, len(code), cufft.XtCallbackType.LD_COMPLEX, pointers)
    cufft.make_plan1d(plan, 32, Type.C2C, 1)
    cufft.set_stream(plan, int(stream.handle))
    builder = stream.create_graph_builder()
    builder.begin_building()
    cufft.exec_c2c(plan, source.address, result.address, FORWARD)
    graph = builder.end_building().complete()
    assert not result.read().any()
    for _ in range(2):
        graph.launch(stream)
        assert_close(result.read(), np.fft.fft(given.astype(np.complex128) * 2), np.float32)
    graph.close()
    cufft.destroy(plan)


def test_a_callback_that_cannot_be_linked_says_why(stream: Stream) -> None:
    plan = cufft.create()
    code = lto_ir("float2", "float2")
    cufft.xt_set_jit_callback(plan, "nothing", code, len(code), cufft.XtCallbackType.LD_COMPLEX, None)
    with pytest.raises(cufft.cuFFTError) as caught:
        cufft.make_plan1d(plan, 32, Type.C2C, 1)
    if on_cpu_device():
        assert "nothing" in caught.value.__notes__[0]
    cufft.destroy(plan)
