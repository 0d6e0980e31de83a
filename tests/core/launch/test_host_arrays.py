"""Arrays of the host, of the device and short forms as arguments of launches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from cupola import CUDAWarning, In, InOut, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, Out, Program, launch

SOURCE = r"""
#define N (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void axpy(float a, const float* __restrict__ x, float* y, int n) { if (N < n) y[N] += a * x[N]; }
extern "C" __global__ void iota(int* x, int n) { if (N < n) x[N] = N; }
extern "C" __global__ void raw(const void* from, unsigned char* to, const float4* vectors, size_t address) {}
__global__ void declared(float* f, const double* d, unsigned* u, long long* l, unsigned short* s, char* c) {}
template <typename T> __global__ void keep(T* out, T value) { *out = value; }
"""
NAMES = ("declared", "keep<float>", "keep<int>", "keep<double>")


@pytest.fixture(scope="module")
def code():
    from cupola import Device

    Device().set_current()
    return Program(SOURCE, "c++").compile("cubin", name_expressions=NAMES)


N = 1000
FEW = LaunchConfig.for_elements(N)


def test_in_and_inout(stream, code):
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    launch(stream, FEW, code.get_kernel("axpy"), 2.0, In(x), InOut(y), N)
    np.testing.assert_array_equal(y, 1 + 2 * x)  # pageable memory: it is there


def test_out(stream, code):
    x = np.full(N, -1, np.int32)
    launch(stream, FEW, code.get_kernel("iota"), Out(x), N)
    np.testing.assert_array_equal(x, np.arange(N))


def test_elements_that_lie_apart(stream, code):
    wide = np.full((N, 3), -1, np.int32)
    launch(stream, FEW, code.get_kernel("iota"), Out(wide[::-1, 1]), N)
    assert (wide[:, ::2] == -1).all()
    np.testing.assert_array_equal(wide[:, 1], np.arange(N)[::-1])


def test_pinned(stream, code):
    pinned = np.asarray(LegacyPinnedMemoryResource().allocate(4 * N, stream=stream)).view(np.int32)
    launch(stream, FEW, code.get_kernel("iota"), Out(pinned), N)
    stream.sync()
    np.testing.assert_array_equal(pinned, np.arange(N))


def test_prepared(stream, code):
    x = np.zeros(N, np.int32)
    code.get_kernel("iota").prepare(FEW)(stream, InOut(x), N)
    np.testing.assert_array_equal(x, np.arange(N))


def test_no_elements(stream, code):
    launch(stream, LaunchConfig.for_elements(0), code.get_kernel("iota"), Out(np.empty(0, np.int32)), 0)


@pytest.mark.parametrize(
    ("argument", "error", "text"),
    [
        (lambda d: Out([1, 2]), TypeError, "takes a NumPy array"),
        (lambda d: Out(np.broadcast_to(np.int32(1), 3)), ValueError, "read-only"),
        (lambda d: In(["a"]), TypeError, "cannot be on a device"),
        (lambda d: In(d.zeros(3)), TypeError, "pass the Array as it is"),
        (lambda d: np.zeros(3, np.int32), TypeError, r"pass In\(array\), Out\(array\) or InOut\(array\)"),
    ],
)
def test_refused(device, stream, code, argument, error, text):
    with pytest.raises(error, match=text):
        launch(stream, FEW, code.get_kernel("iota"), argument(device), 3)


def test_not_recorded(device, code):
    builder = device.create_graph_builder().begin_building()
    with pytest.raises(TypeError, match="cannot be arguments of a launch that is recorded"):
        launch(builder, FEW, code.get_kernel("iota"), Out(np.zeros(N, np.int32)), N)
    builder.end_building()


def test_recorded_launches_keep_arrays(device, stream, code):
    x = device.zeros(N, np.int32)
    seen = x[:1]
    builder = device.create_graph_builder().begin_building()
    launch(builder, FEW, code.get_kernel("iota"), device.zeros(N, np.int32, stream=stream), N)
    launch(builder, FEW, code.get_kernel("iota"), x, N)
    graph = builder.end_building().complete()
    del x
    graph.launch(stream)
    stream.sync()
    assert seen.to_numpy().tolist() == [0]


# --- types of arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "value", "text"),
    [
        ("keep<float>", np.int32(3), r"parameter 1 of kernel keep<float> is a float, but numpy.int32 .* numpy.float32"),
        ("keep<float>", np.uint32(3), "is an integer of the same size"),
        ("keep<double>", np.int64(3), "is a double"),
        ("keep<int>", np.float32(3), "is an integer of 4 bytes, but numpy.float32"),
    ],
)
def test_scalars_of_the_other_kind(device, stream, code, kernel, value, text):
    out = device.zeros(1, {"f": np.float32, "i": np.int32, "d": np.float64}[kernel[5]])
    for _ in range(2):  # also when the type is known
        with pytest.raises(TypeError, match=text):
            launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel(kernel), out, value)
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel(kernel), out, 3)
    assert out.to_numpy().tolist() == [3]


FITS = ("f4", "f8", "u4", "i8", "u2", "i1")


@pytest.mark.parametrize(
    "others", [{}, {0: "c8"}, {1: "c16"}, {2: "i4"}, {3: "u8"}, {4: "i2"}, {5: "f8"}, {0: "u1"}, {0: "V4"}]
)
def test_arrays_that_fit(device, stream, code, others):
    arrays = [device.zeros(4, others.get(i, dtype)) for i, dtype in enumerate(FITS)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("declared"), *arrays)


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ({0: "f8"}, r"parameter 0 of kernel declared is a float\*, but the array is of float64"),
        ({0: "i4"}, r"float\*, but the array is of int32"),
        ({1: "f4"}, r"double\*"),
        ({2: "u8"}, r"int\*"),
        ({3: "i4"}, r"long long\*"),
        ({4: "f2"}, r"short\*"),
    ],
)
def test_arrays_that_do_not_fit(device, stream, code, others, text):
    arrays = [device.zeros(4, others.get(i, dtype)) for i, dtype in enumerate(FITS)]
    with pytest.raises(TypeError, match=text):
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("declared"), *arrays)
    config = LaunchConfig(grid=1, block=1)
    launch(stream, config, code.get_kernel("declared"), *[array.buffer for array in arrays])  # a Buffer has no type


def test_a_likely_mistake_is_a_warning(device, stream):
    """The parameters of a kernel with C linkage are known from its source only."""
    made = Program(SOURCE, "c++").compile("cubin")
    for code in (made, ObjectCode.from_cubin(made._to_cache())):  # also from a cache
        kernel = code.get_kernel("axpy")
        x, y = device.zeros(N), device.zeros(N, np.float32)
        with pytest.warns(CUDAWarning, match=r"parameter 1 of kernel axpy is a float\*, but the array is of float64"):
            launch(stream, FEW, kernel, 2.0, x, y, 10)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            launch(stream, FEW, kernel, 2.0, x, y, 10)  # said once
            launch(stream, FEW, code.get_kernel("raw"), x, x, x, x)
        stream.sync()  # before the arrays go, in another stream


def test_a_pointer_is_no_number(device, stream, code):
    with pytest.raises(TypeError, match="is a double, cupola.* is a pointer"):
        launch(stream, FEW, code.get_kernel("keep<double>"), device.zeros(1), device.zeros(1))
    with pytest.raises(TypeError, match="4 bytes"):
        launch(stream, FEW, code.get_kernel("iota"), device.zeros(1, np.int32), device.zeros(1))


def test_closed_array(device, stream, code):
    x = device.zeros(N, np.int32)
    part = x[2:]
    x.close()
    for array in (x, part):
        with pytest.raises(RuntimeError, match="Array has been closed"):
            launch(stream, FEW, code.get_kernel("iota"), array, 3)


# --- kernel[grid, block] ----------------------------------------------------------------------------------


def test_launcher(device, stream, code):
    iota = code.get_kernel("iota")
    for key in ((4, 256, stream), (FEW, stream), (4, 256, stream, 64)):
        x = device.zeros(N, np.int32)
        iota[key](x, N)
        np.testing.assert_array_equal(x.to_numpy(stream=stream), np.arange(N))
    with device.stream():
        x = device.zeros(N, np.int32)
        iota[4, 256](x, N)
        np.testing.assert_array_equal(x.to_numpy(), np.arange(N))
    x = device.zeros(N, np.int32)
    iota[FEW](x, N)
    np.testing.assert_array_equal(x.to_numpy(), np.arange(N))


@pytest.mark.parametrize("key", [4, (4,), (), (FEW, 4, 5), (1, 2, None, 0, 0)], ids=repr)
def test_bad_launchers(code, key):
    with pytest.raises(TypeError, match=r"kernel\[grid, block\]|Stream or GraphBuilder"):
        code.get_kernel("iota")[key]
