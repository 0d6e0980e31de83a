"""Programs for CuPy, which give the same results with CuPy on a GPU and with the stand-in on the CPU device.

usage: cupola run --device cpu tests/standins/cupy_programs.py [--out FILE] [NAME ...]
       python tests/standins/cupy_programs.py [--out FILE] [NAME ...]        (CuPy and cuda.core themselves)

Each function is a program and returns what it has computed. The results of all of them go to FILE as JSON.
`cupy_results.json` has those of CuPy 14 on an H200, and test_cupy.py compares; those that are not there it has itself.
"""

# mypy: ignore-errors
# ruff: noqa: E731

from __future__ import annotations

import contextlib
import io
import json
import pickle
import sys
import tempfile
from pathlib import Path

import cupy
import cupy as cp
import cupyx
import numpy as np

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def refused(function):
    """The class of the error that a function raises."""
    try:
        function()
    except Exception as error:
        return type(error).__name__
    return "nothing"


# --- kernels ------------------------------------------------------------------------------------------------------

SAXPY = r"""
extern "C" __global__
void saxpy(const float a, const float* x, const float* y, float* z, const int n) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    if (tid < n) z[tid] = a * x[tid] + y[tid];
}
"""


@program
def saxpy():
    kernel = cp.RawKernel(SAXPY, "saxpy")
    x, y = cp.arange(1000, dtype=cp.float32), cp.ones(1000, dtype=cp.float32)
    z = cp.zeros_like(x)
    kernel((8,), (128,), (np.float32(2.5), x, y, z, 1000))
    return z[::100].get(), float(z.sum())


@program
def raw_kernel_of_doubles():
    code = r"""
extern "C" __global__ void f(double* x, long long by, double a, bool flip) {
    x[threadIdx.x] = (x[threadIdx.x] + by) * (flip ? -a : a);
}"""
    x = cp.arange(5.0)
    cp.RawKernel(code, "f")((1,), (5,), (x, 3, 0.5, True))
    return x.get()


@program
def raw_kernel_attributes():
    code = r"""
extern "C" __global__ void sum_shared(const float* x, float* y) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) { float t = 0; for (int i = 0; i < blockDim.x; i++) t += s[i]; *y = t; }
}"""
    kernel = cp.RawKernel(code, "sum_shared")
    before = kernel.max_dynamic_shared_size_bytes
    kernel.max_dynamic_shared_size_bytes = 100_000
    x, y = cp.arange(64, dtype="f4"), cp.zeros((), "f4")
    kernel((1,), (64,), (x, y), shared_mem=64 * 4)
    return (
        before,
        kernel.max_dynamic_shared_size_bytes,
        kernel.max_threads_per_block,
        float(y),
        sorted(kernel.attributes),
    )


@program
def raw_module():
    code = r"""
__constant__ float factor[2];
__device__ int counter;
extern "C" {
__global__ void multiply(const float* x, float* y, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) { y[i] = x[i] * factor[0] + factor[1]; atomicAdd(&counter, 1); }
}
__global__ void negate(float* x) { x[threadIdx.x] = -x[threadIdx.x] * N; }
}"""
    module = cp.RawModule(code=code, options=("-DN=2",))
    pointer = module.get_global("factor")
    factor = cp.ndarray((2,), cp.float32, pointer)
    factor[...] = cp.asarray([3, 1], dtype=cp.float32)
    x, y = cp.arange(100, dtype=cp.float32), cp.empty(100, dtype=cp.float32)
    module.get_function("multiply")((2,), (64,), (x, y, 100))
    module.get_function("negate")((1,), (10,), (y,))
    counter = cp.ndarray((1,), cp.int32, module.get_global("counter"))
    return y[:12].get(), counter.get()


@program
def templates_by_name():
    code = r"""
template<typename T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value + T(threadIdx.x); }
template<typename T, int N> __global__ void scale(T* x) { x[threadIdx.x] *= N; }
"""
    names = ["fill<float>", "fill<int>", "scale<double, 3>"]
    module = cp.RawModule(code=code, options=("-std=c++17",), name_expressions=names)
    f, i, d = cp.empty(4, "f4"), cp.empty(4, "i4"), cp.ones(4)
    module.get_function(names[0])((1,), (4,), (f, np.float32(0.5)))
    module.get_function(names[1])((1,), (4,), (i, np.int32(7)))
    module.get_function(names[2])((1,), (4,), (d,))
    return f.get(), i.get(), d.get()


@program
def complex_in_raw_kernels():
    code = r"""
#include <cupy/complex.cuh>
extern "C" __global__ void my_func(const complex<float>* a, complex<float>* b, complex<float> c, double* size) {
    int i = threadIdx.x;
    b[i] = exp(a[i]) * c + conj(a[i]) / complex<float>(2.0f, 1.0f);
    size[i] = abs(b[i]) + b[i].imag();
}"""
    kernel = cp.RawKernel(code, "my_func")
    a = cp.asarray([1 + 2j, -0.5j, 3.0], dtype=cp.complex64)
    b, size = cp.empty_like(a), cp.empty(3)
    kernel((1,), (3,), (a, b, np.complex64(1 - 1j), size))
    return b.real.get(), b.imag.get(), size.get()


@program
def cooperative_groups():
    code = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void both(int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    x[i] = i;
    cg::this_grid().sync();
    int other = x[n - 1 - i];
    cg::this_grid().sync();
    x[i] += other;
}"""
    kernel = cp.RawKernel(code, "both", enable_cooperative_groups=True)
    x = cp.empty(256, dtype=cp.int32)
    kernel((4,), (64,), (x,))
    return x.get()


@program
def compile_errors():
    bad = cp.RawKernel('extern "C" __global__ void f(int* x) { x[0] = nothing; }', "f")
    try:
        bad((1,), (1,), (cp.zeros(1, "i4"),))
    except cp.cuda.compiler.CompileException as error:
        return "nothing" in str(error), refused(lambda: cp.RawModule())
    return "no error"


@program
def elementwise_kernels():
    squared_diff = cp.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_diff")
    x = cp.arange(10, dtype=np.float32).reshape(2, 5)
    y = cp.arange(5, dtype=np.float32)
    z = cp.empty((2, 5), dtype=np.float32)
    squared_diff(x, y, z)
    generic = cp.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "generic")
    two = cp.ElementwiseKernel("T x, U y", "T s, U p", "s = x + T(y); p = U(x) * y", "two")
    s, p = two(cp.arange(4), cp.linspace(0, 1, 4))
    return squared_diff(x, y).get(), squared_diff(x, 5).get(), z.get(), generic(x.T, x.T[0]).get(), s.get(), p.get()


@program
def elementwise_raw():
    add_reverse = cp.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "add_reverse")
    x, y = cp.arange(5, dtype="f4"), cp.arange(10, dtype="f4")[::2]
    gather = cp.ElementwiseKernel("raw T x, raw int64 at", "T y", "y = x[at[i]] + x.size()", "gather")
    shape = cp.ElementwiseKernel("raw T x", "raw T y", "int k = x.shape()[1]; y[i] = x[i] * k + x.shape()[0]", "shaped")
    rows = cp.arange(6.0).reshape(2, 3)
    out = cp.zeros(6)
    shape(rows, out, size=6)
    multi = cp.ElementwiseKernel(
        "raw T x", "T y", "ptrdiff_t at[] = {_ind.get()[1], _ind.get()[0]}; y = x[at]", "transposed", reduce_dims=False
    )
    made = cp.zeros((3, 2))
    multi(rows, made)
    return add_reverse(x, y).get(), gather(cp.arange(4.0), cp.asarray([3, 0]), size=2).get(), out.get(), made.get()


@program
def elementwise_more():
    counted = cp.ElementwiseKernel(
        "int32 n",
        "raw int32 total",
        "mine += i < n",
        "counted",
        loop_prep="int mine = 0",
        after_loop="atomicAdd(&total[0], mine)",
    )
    total = cp.zeros(1, "i4")
    counted(700, total, size=1000)
    helper = cp.ElementwiseKernel(
        "T x",
        "T y",
        "y = twice(x)",
        "helped",
        preamble="template <typename T> __device__ T twice(T x) { return x + x; }",
        options=("-DUNUSED=1",),
    )
    nothing = cp.ElementwiseKernel("T x", "T y", "y = x", "nothing", no_return=True)
    always = cp.ElementwiseKernel("T x", "T y", "y = x", "always", return_tuple=True)
    halves = cp.ElementwiseKernel("float16 x, float16 y", "float16 z", "z = x * y + float16(1)", "halves")
    z = cp.ElementwiseKernel("complex128 z", "float64 a", "a = abs(z * conj(z)) + z.real()", "complexes")
    empty = helper(cp.zeros((0, 3)))
    return (
        total.get(),
        helper(cp.arange(3, dtype="i8")).get(),
        nothing(cp.ones(2), cp.empty(2)) is None,
        isinstance(always(cp.ones(2)), tuple),
        halves(cp.arange(4, dtype="f2"), cp.full(4, 1.5, "f2")).get(),
        z(cp.asarray([1 + 1j, 2 - 3j])).get(),
        empty.shape,
    )


@program
def kernels_refused():
    kernel = cp.RawKernel('extern "C" __global__ void f(float a) {}', "f")
    missing = cp.RawKernel('extern "C" __global__ void f() {}', "g")
    module = cp.RawModule(code='extern "C" __global__ void f() {}')
    return (
        refused(lambda: kernel((1,), (5000,), (np.float32(1),))),
        refused(lambda: missing((1,), (1,), ())),
        refused(lambda: module.get_global("nothing")),
        refused(lambda: cp.cuda.alloc(1 << 60)),
        refused(lambda: cp.cuda.Memory(1 << 60)),
        refused(lambda: cp.cuda.get_elapsed_time(cp.cuda.Event(), cp.cuda.Event())),
    )


@program
def elementwise_refused():
    kernel = cp.ElementwiseKernel("float32 x", "float32 y", "y = x", "kernel")
    same = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "same")
    return (
        refused(lambda: kernel(cp.zeros(3))),
        refused(lambda: same(cp.zeros(3), cp.zeros(3, "f4"))),
        refused(lambda: kernel()),
        refused(lambda: same(cp.zeros(3), cp.zeros(2))),
        refused(lambda: kernel(np.zeros(3, "f4"))),
        refused(lambda: cp.ElementwiseKernel("raw T x", "T y", "y = x[i]", "k")(cp.zeros(3))),
        refused(lambda: same(cp.zeros(3), cp.zeros(3), cp.zeros(4))),
    )


@program
def reduction_kernels():
    l2norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
    x = cp.arange(10, dtype=np.float32).reshape(2, 5)
    largest = cp.ReductionKernel("T x", "int64 y", "(long long)(x * 10)", "max(a, b)", "y = a", "-1000", "largest")
    weighted = cp.ReductionKernel("T x, T w", "float64 y", "x * w", "a + b", "y = a / 2", "0", "weighted")
    cube = cp.arange(24.0).reshape(2, 3, 4)
    out = cp.zeros(2, "f4")
    l2norm(x, out, axis=1)
    return (
        l2norm(x, axis=1).get(),
        float(l2norm(x)),
        largest(cube, axis=(0, 2)).get(),
        largest(cube, axis=1, keepdims=True).shape,
        weighted(cube, cp.asarray([1.0, 2, 3, 4])).get(),
        weighted(cube.T, 2.0, axis=0).get(),
        out.get(),
    )


@program
def reduction_with_a_type():
    mean = cp.ReductionKernel(
        "T x",
        "float64 mean",
        "pair(x, 1)",
        "pair(a.sum + b.sum, a.n + b.n)",
        "mean = a.sum / a.n",
        "pair(0, 0)",
        "mean",
        reduce_type="pair",
        preamble="""struct pair {
            double sum; long long n;
            __device__ pair(double s = 0, long long n = 0) : sum(s), n(n) {}
        };""",
    )
    return mean(cp.arange(1000, dtype="f4").reshape(10, 100), axis=1).tolist()


@program
def fused():
    @cp.fuse()
    def squared_diff(x, y):
        return (x - y) * (x - y)

    @cp.fuse(kernel_name="sum_of_products")
    def sum_of_products(x, y):
        return cp.sum(x * y, axis=-1)

    x, y = cp.arange(10.0), cp.arange(10.0)[::-1]
    return squared_diff(x, y).get(), sum_of_products(x, y).get(), squared_diff(x, 2).get()


# --- arrays -------------------------------------------------------------------------------------------------------


@program
def arrays_and_hosts():
    x = cp.asarray(np.arange(6.0).reshape(2, 3))
    back = np.empty((2, 3))
    x.get(out=back)
    x.set(back[::-1].copy())
    y = cp.empty((2, 2))
    y[...] = np.float32(3)
    y[0] = np.asarray(4.0)
    xp = cp.get_array_module(x)
    return (
        cp.asnumpy(x),
        x.get(order="F").flags.f_contiguous,
        xp.__name__,
        cp.get_array_module(back).__name__,
        refused(lambda: np.asarray(x)),
        refused(lambda: x + back),
        refused(lambda: x.set([1, 2])),
        refused(lambda: y.__setitem__(..., np.ones((2, 2)))),
        refused(lambda: y.__setitem__(0, np.ones(2))),
        refused(lambda: cp.from_dlpack(np.ones(2))),
        refused(lambda: x.set(np.zeros((2, 3), "f4"))),
        refused(lambda: x.get(out=np.zeros(3))),
        y.get(),
        isinstance(x, cp.ndarray),
        isinstance(back, cp.ndarray),
        type(np.sqrt(x)) is cp.ndarray,
        type(np.concatenate([x, x])) is cp.ndarray,
        float(np.sum(x)),
        x.tolist(),
        x.sum().shape,
        float(x[1, 2]),
    )


@program
def attributes_of_arrays():
    x = cp.zeros((3, 4), dtype=cp.float32)
    f = cp.zeros((3, 4), order="F")
    view = x[1:, ::2]
    interface = view.__cuda_array_interface__
    return (
        x.nbytes,
        x.itemsize,
        x.strides,
        f.strides,
        x.flags.c_contiguous,
        x.flags.f_contiguous,
        f.flags["F_CONTIGUOUS"],
        f.flags.fnc,
        view.flags.forc,
        view.flags.owndata,
        x.device.id,
        x.data.device_id,
        x.data.mem.size,
        view.data.ptr - x.data.ptr,
        interface["shape"],
        interface["strides"],
        interface["typestr"],
        interface["version"],
        x.device == cp.cuda.Device(0),
        x.dtype.name,
        x.T.flags.f_contiguous,
        x.__dlpack_device__()[0],
        repr(x.device),
    )


@program
def orders():
    x = cp.asarray(np.arange(6.0).reshape(2, 3))
    f = cp.asfortranarray(x)
    host = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    return (
        f.strides,
        f.copy().strides,
        f.copy("F").strides,
        f.copy("K").strides,
        f.ravel("F").get(),
        f.ravel().get(),
        x.reshape(3, 2, order="F").get(),
        x.flatten("F").get(),
        cp.array(host).strides,
        cp.asarray(host, order="C").strides,
        cp.empty_like(f).strides,
        cp.zeros_like(f, order="C").strides,
        cp.ones((2, 3), order="F").strides,
        f.astype("f4").strides,
        f.astype("f4", order="C").strides,
        cp.ascontiguousarray(f).strides,
        (f + 1).get(),
        cp.full((2, 3), 7, order="F").get(),
        cp.array(x, ndmin=3).shape,
        cp.eye(2, order="F").get(),
    )


@program
def indexing():
    x = cp.arange(24).reshape(4, 6)
    y = x.copy()
    y[y % 2 == 0] = -1
    y[[0, 2], 1] = 100
    y[:, cp.asarray([3])] += 5
    return (
        x[1, ::2].get(),
        x[cp.asarray([3, 0])].get(),
        x[..., None].shape,
        y.get(),
        x[-1, -1].get(),
        cp.take(x, cp.asarray([1, 2]), axis=1).get(),
        cp.where(x > 10, x, 0).get(),
        x.diagonal().get(),
    )


@program
def scatter():
    a = cp.zeros(6, dtype=cp.float32)
    i = cp.array([1, 0, 1, 4])
    v = cp.array([1.0, 2, 3, 4], dtype=cp.float32)
    cupyx.scatter_add(a, i, v)
    b = a.copy()
    cupyx.scatter_max(b, i, v * 2)
    cupyx.scatter_min(b, cp.array([5, 0]), -1)
    a.scatter_add(cp.array([5]), 1)
    cp.add.at(a, cp.array([0, 0]), 1)
    return a.get(), b.get()


@program
def numpy_functions():
    x = cp.asarray([[3.0, 1, 2], [9, 7, 8]])
    return (
        cp.sort(x, axis=1).get(),
        cp.cumsum(x).get(),
        x.std(axis=0).get(),
        cp.clip(x, 2, 7).get(),
        cp.dot(x, x.T).get(),
        cp.linalg.norm(x),
        cp.diff(x).get(),
        cp.tril_indices(3)[0].get(),
        cp.diag_indices(2)[1].get(),
        cp.ptp(x),
        x.ptp(axis=1).get(),
        cp.allclose(x, x),
        cp.result_type(x, np.float32).name,
    )


@program
def more_functions():
    x = cp.asarray([[3.0, 1, 2], [9, 7, 8]])
    return (
        bool(cp.array_equal(x, x + 1)),
        cp.apply_along_axis(cp.sum, 1, x).tolist(),
        cp.packbits(cp.asarray([1, 0, 1], dtype="u1")).tolist(),
        cp.testing.assert_allclose(x, x.get()) is None,
        refused(lambda: cp.testing.assert_array_equal(x, x + 1)),
        cp.testing.shaped_arange((2, 2)).tolist(),
        cp.r_[x[0], 5, x[1]].tolist(),
        cp.mgrid[0:2, 0:3].tolist(),
        cp.roots(cp.asarray([1.0, -3, 2])).tolist(),
        cp.polyadd(x[0], x[1]).tolist(),
    )


@program
def transforms():
    x = cp.arange(8.0)
    z = cp.fft.fft(x)
    image = cp.arange(16.0).reshape(4, 4)
    return (
        z.real.get(),
        z.imag.get(),
        cp.fft.ifft(z).real.get(),
        cp.abs(cp.fft.rfft(x)).get(),
        cp.fft.fftshift(cp.fft.fft2(image)).real.get(),
        cp.fft.fftfreq(8).get(),
        cp.fft.irfft(cp.fft.rfft(x)).get(),
    )


@program
def linear_algebra():
    a = cp.asarray([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])
    w, v = cp.linalg.eigh(a)
    u, s, vt = cp.linalg.svd(a)
    q, r = cp.linalg.qr(a)
    return (
        w.get(),
        cp.abs(v @ cp.diag(w) @ v.T - a).max() < 1e-12,
        s.get(),
        cp.allclose(u * s @ vt, a),
        cp.allclose(q @ r, a),
        cp.linalg.inv(a).get(),
        float(cp.linalg.det(a)),
        cp.linalg.cholesky(a).get(),
        cp.linalg.slogdet(a)[1],
    )


@program
def pickles_and_files():
    x = cp.arange(6).reshape(2, 3)
    kernel = pickle.loads(
        pickle.dumps(cp.RawKernel('extern "C" __global__ void f(long long* x) { x[threadIdx.x] += 1; }', "f"))
    )
    y = pickle.loads(pickle.dumps(x))
    kernel((1,), (6,), (y,))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.npy"
        cp.save(path, x)
        z = cp.load(path)
        cp.savez(Path(folder) / "b.npz", x=x, y=y)
        with cp.load(Path(folder) / "b.npz") as archive:
            w = archive["y"]
    return type(y) is cp.ndarray, y.get(), z.get(), isinstance(w, cp.ndarray), w.get(), x.dumps()[:1] == b"\x80"


@program
def printed():
    x = cp.arange(6).reshape(2, 3)
    return (
        repr(x),
        str(x),
        f"{cp.float32(2)}",
        repr(cp.float64(1) + cp.zeros(())),
        cp.array_repr(x),
        repr(x.flags),
    )


@program
def zero_copy():
    class Theirs:
        def __init__(self, array):
            self.kept = array

        @property
        def __cuda_array_interface__(self):
            return self.kept.__cuda_array_interface__

    x = cp.arange(12.0).reshape(3, 4)
    theirs = cp.asarray(Theirs(x.T))
    theirs[0, 0] = 50
    by_dlpack = cp.from_dlpack(x[1:])
    by_dlpack += 1
    copied = cp.array(Theirs(x))
    copied[...] = 0
    return x.get(), theirs.strides, theirs.data.ptr == x.data.ptr, by_dlpack.data.ptr - x.data.ptr


@program
def views_of_memory():
    memory = cp.cuda.alloc(80)
    x = cp.ndarray((2, 5), dtype=cp.float64, memptr=memory)
    x[...] = 2
    row = cp.ndarray((5,), dtype=cp.float64, memptr=memory + 40)
    row[0] = 9
    as_ints = x.view(cp.int64)
    window = cp.lib.stride_tricks.as_strided(cp.arange(6.0), (4, 3), (8, 8))
    windows = cp.lib.stride_tricks.sliding_window_view(cp.arange(5), 3)
    return x.get(), as_ints[0, 0].get(), window.get(), windows.get(), memory.mem.size, x.data.ptr == memory.ptr


# --- streams, events, devices -------------------------------------------------------------------------------------


@program
def streams():
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        inside = cp.cuda.get_current_stream() == stream
        x = cp.arange(1000.0)
        y = (x * 2).sum()
    outside = cp.cuda.get_current_stream() == cp.cuda.Stream.null
    stream.synchronize()
    other = cp.cuda.Stream()
    other.use()
    used = cp.cuda.get_current_stream() == other
    cp.cuda.Stream.null.use()
    start, stop = cp.cuda.Event(), cp.cuda.Event()
    start.record(stream)
    stop.record(stream)
    stop.synchronize()
    other.wait_event(stop)
    called = []
    stream.launch_host_func(called.append, 3)
    stream.add_callback(lambda s, status, given: called.append((s == stream, status, given)), "x")
    stream.synchronize()
    external = cp.cuda.ExternalStream(stream.ptr)
    return (
        inside,
        outside,
        used,
        float(y),
        cp.cuda.get_elapsed_time(start, stop) >= 0,
        stream.done,
        stop.done,
        called,
        stream.is_non_blocking,
        other.is_non_blocking,
        external == stream,
        cp.cuda.Stream.null.ptr,
        stream.__cuda_stream__() == (0, stream.ptr),
        cp.cuda.Stream.ptds.ptr,
    )


@program
def kernels_in_streams():
    kernel = cp.RawKernel('extern "C" __global__ void f(int* x, int by) { x[threadIdx.x] += by; }', "f")
    x = cp.zeros(32, dtype=cp.int32)
    cp.cuda.Device().synchronize()
    a, b = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    with a:
        kernel((1,), (32,), (x, 1))
        done = a.record()
    b.wait_event(done)
    kernel((1,), (32,), (x, 10), stream=b)
    b.synchronize()
    return x.get()


@program
def graphs():
    stream = cp.cuda.Stream(non_blocking=True)
    kernel = cp.RawKernel('extern "C" __global__ void f(double* x, double a) { x[threadIdx.x] += a; }', "f")
    a, b = cp.zeros(10), cp.empty(10)
    cp.cuda.Device().synchronize()
    with stream:
        kernel((1,), (10,), (a, 1.0))
        cp.multiply(a, 3, out=b)
        stream.synchronize()
        stream.begin_capture()
        capturing = stream.is_capturing()
        kernel((1,), (10,), (a, 1.0))
        cp.multiply(a, 3, out=b)
        b += a
        graph = stream.end_capture()
    before = b.get()
    graph.upload(stream)
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    return capturing, stream.is_capturing(), before, a.get(), b.get()


@program
def devices():
    device = cp.cuda.Device(0)
    with device:
        inside = cp.cuda.Device().id
    properties = cp.cuda.runtime.getDeviceProperties(0)
    free, total = device.mem_info
    return (
        inside,
        device.compute_capability,
        device.attributes["MaxThreadsPerBlock"],
        device.attributes["WarpSize"],
        properties["multiProcessorCount"],
        properties["major"],
        properties["warpSize"],
        properties["maxGridSize"],
        sorted(properties),
        isinstance(properties["name"], bytes),
        0 < free <= total,
        cp.cuda.is_available(),
        device == cp.cuda.Device(0),
        int(device),
        refused(lambda: cp.cuda.Device(99).use()),
        len(properties["uuid"]),
        sorted(set(device.attributes) & {"ClockRate", "MaxPitch", "CooperativeLaunch", "L2CacheSize"}),
        cp.is_available(),
    )


@program
def runtime():
    from cupy.cuda import runtime

    p = runtime.malloc(1024)
    runtime.memset(p, 7, 1024)
    host = np.zeros(1024, np.uint8)
    runtime.memcpy(host.ctypes.data, p, 1024, runtime.memcpyDeviceToHost)
    attributes = runtime.pointerGetAttributes(p)
    runtime.free(p)
    stream = runtime.streamCreateWithFlags(runtime.streamNonBlocking)
    event = runtime.eventCreateWithFlags(runtime.eventDisableTiming)
    runtime.eventRecord(event, stream)
    runtime.streamSynchronize(stream)
    queried = runtime.streamQuery(stream), runtime.eventQuery(event)
    runtime.eventDestroy(event)
    runtime.streamDestroy(stream)
    try:
        runtime.setDevice(77)
        text = ""
    except runtime.CUDARuntimeError as error:
        text = str(error).splitlines()[0]
    try:
        runtime.malloc(1 << 60)
        size = ""
    except runtime.CUDARuntimeError as error:
        size = str(error).splitlines()[0]
    return (
        int(host.sum()),
        attributes.device,
        attributes.type,
        queried,
        text,
        size,
        runtime.getDeviceCount() > 0,
        runtime.runtimeGetVersion() >= 12000,
        runtime.driverGetVersion() >= 12000,
        type(runtime.memGetInfo()).__name__,
        runtime.deviceGetAttribute(runtime.cudaDevAttrWarpSize, 0),
        runtime.is_hip,
        runtime.getDevice(),
        issubclass(runtime.CUDARuntimeError, RuntimeError),
        runtime.CUDARuntimeError(2).status,
    )


# --- memory -------------------------------------------------------------------------------------------------------


@program
def memory_pool():
    with cp.cuda.using_allocator(None):
        pool = cp.cuda.MemoryPool()
        cp.cuda.set_allocator(pool.malloc) if False else None
    pool = cp.cuda.MemoryPool()
    told = []
    with cp.cuda.using_allocator(pool.malloc):
        tell = lambda: told.append((pool.used_bytes(), pool.total_bytes(), pool.free_bytes(), pool.n_free_blocks()))
        tell()
        a = cp.asarray(np.arange(100, dtype=np.float32))
        tell()
        b = cp.zeros(1000)
        tell()
        del a
        tell()
        c = cp.ones(30)
        tell()
        del b, c
        tell()
        pool.free_all_blocks()
        tell()
    return told


@program
def memory_limits():
    pool = cp.cuda.MemoryPool()
    pool.set_limit(size=1024**2)
    with cp.cuda.using_allocator(pool.malloc):
        a = cp.zeros(1024 * 64)
        caught = refused(lambda: cp.zeros(1024 * 128))
        try:
            cp.zeros(1024 * 128)
        except cp.cuda.memory.OutOfMemoryError as error:
            text = str(error)
        del a
        b = cp.zeros(1024 * 128)
    limit = pool.get_limit()
    pool.set_limit(fraction=0.5)
    half = pool.get_limit() * 2 // cp.cuda.Device().mem_info[1]
    pool.set_limit(size=0)
    return (
        caught,
        text,
        b.size,
        limit,
        half,
        pool.get_limit(),
        refused(lambda: pool.set_limit(fraction=2)),
        refused(lambda: pool.set_limit(size=-1)),
    )


@program
def allocators():
    told = []

    def malloc(size, device):
        told.append(("malloc", size, device))
        return cp.cuda.runtime.malloc(size)

    def free(address, device):
        told.append(("free", device))
        cp.cuda.runtime.free(address)

    with cp.cuda.using_allocator(cp.cuda.PythonFunctionAllocator(malloc, free).malloc):
        x = cp.zeros(10)
        total = float(x.sum() + 1)
        del x
    with cp.cuda.using_allocator(cp.cuda.malloc_managed):
        y = cp.arange(5)
        managed = cp.cuda.runtime.pointerGetAttributes(y.data.ptr).type
    with cp.cuda.using_allocator(cp.cuda.malloc_async):
        z = cp.arange(5) + 1
    mine = cp.cuda.UnownedMemory(y.data.ptr, y.nbytes, y)
    view = cp.ndarray((5,), y.dtype, cp.cuda.MemoryPointer(mine, 0))
    view[0] = 9
    return told[0], ("free", 0) in told, total, managed, z.get(), y.get(), callable(cp.cuda.get_allocator())


@program
def pointers():
    a, b = cp.cuda.alloc(64), cp.cuda.alloc(64)
    host = np.arange(8, dtype=np.float64)
    a.copy_from_host(host.ctypes.data, 64)
    b.copy_from_device(a + 16, 48)
    (b + 48).memset(0, 16)
    back = np.empty(8)
    b.copy_to_host(back.ctypes.data, 64)
    b.copy_from_async(a, 8, cp.cuda.Stream.null)
    return back, (a + 8).ptr - a.ptr, int(a) == a.ptr, a.device_id, a.mem.size


@program
def pinned():
    memory = cp.cuda.alloc_pinned_memory(10 * 8)
    source = np.frombuffer(memory, np.float64, 10)
    source[...] = np.arange(10)
    x = cp.empty(10)
    stream = cp.cuda.Stream(non_blocking=True)
    x.set(source, stream)
    stream.synchronize()
    zeros = cupyx.zeros_pinned((2, 3), dtype=np.float32)
    like = cupyx.empty_like_pinned(zeros)
    out = cupyx.empty_pinned(10)
    (x + 1).get(out=out)
    pool = cp.get_default_pinned_memory_pool()
    pool.free_all_blocks()
    return (
        x.get(),
        zeros,
        like.shape,
        out,
        pool.n_free_blocks(),
        cp.cuda.runtime.pointerGetAttributes(out.ctypes.data).type,
    )


# --- programs of cuda.core ------------------------------------------------------------------------------------------


def _core():
    from cuda.core import Device

    device = Device()
    device.set_current()
    return device


@program
def core_kernel_on_cupy_data():
    from cuda.core import LaunchConfig, Program, ProgramOptions, launch

    device = _core()
    stream = device.create_stream()
    code = """
template<typename T> __global__ void vector_add(const T* A, const T* B, T* C, size_t N) {
    const unsigned int tid = threadIdx.x + blockIdx.x * blockDim.x;
    for (size_t i = tid; i < N; i += gridDim.x * blockDim.x) C[i] = A[i] + B[i];
}"""
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    kernel = (
        Program(code, code_type="c++", options=options)
        .compile("cubin", name_expressions=("vector_add<float>",))
        .get_kernel("vector_add<float>")
    )
    size = 5000
    a, b = cp.arange(size, dtype=cp.float32), cp.ones(size, dtype=cp.float32)
    c = cp.empty_like(a)
    device.sync()  # cupy runs on a stream of its own
    config = LaunchConfig(grid=(size + 255) // 256, block=256)
    launch(stream, config, kernel, a.data.ptr, b.data.ptr, c.data.ptr, cp.uint64(size))
    stream.sync()
    return bool(cp.allclose(c, a + b)), float(c.sum())


@program
def core_stream_shared():
    device = _core()
    theirs = device.create_stream()
    ours = cp.cuda.ExternalStream(int(theirs.handle))
    with ours:
        x = cp.arange(100.0)
        y = (x * x).sum()
    theirs.sync()
    mine = cp.cuda.Stream(non_blocking=True)
    wrapped = device.create_stream(mine)
    with mine:
        z = cp.ones(10) + 1
    wrapped.sync()
    third = cp.cuda.Stream.from_external(theirs)
    return float(y), z.get(), int(wrapped.handle) == mine.ptr, third.ptr == int(theirs.handle)


@program
def core_graph_of_cupy():
    from cuda.core import LaunchConfig, Program, ProgramOptions, launch

    device = _core()
    stream = device.create_stream()
    code = 'extern "C" __global__ void f(double* x, double a) { x[threadIdx.x] = x[threadIdx.x] * a + 1; }'
    kernel = Program(code, "c++", options=ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("f")
    x = cp.ones(8)
    device.sync()
    builder = device.create_graph_builder()
    builder.begin_building()
    for a in (2.0, 3.0):
        launch(builder, LaunchConfig(grid=1, block=8), kernel, x.data.ptr, np.float64(a))
    graph = builder.end_building().complete()
    graph.launch(stream)
    graph.launch(stream)
    stream.sync()
    return x.get()


@program
def core_views():
    from cuda.core.utils import StridedMemoryView, args_viewable_as_strided_memory

    device = _core()
    stream = device.create_stream()
    x = cp.arange(12, dtype=cp.int32).reshape(3, 4)

    @args_viewable_as_strided_memory((0,))
    def described(array):
        view = array.view(int(stream.handle))
        return (
            view.shape,
            view.strides,
            str(view.dtype),
            view.is_device_accessible,
            view.device_id,
            view.ptr == x.data.ptr,
        )

    view = StridedMemoryView.from_cuda_array_interface(x[:, ::2], stream_ptr=-1)
    buffer = device.memory_resource.allocate(64, stream=stream)
    stream.sync()
    of_buffer = cp.from_dlpack(buffer).view(cp.float64)
    of_buffer[...] = 2.5
    again = cp.from_dlpack(buffer).view(cp.float64)
    return described(x), described(x.T), view.shape, view.strides, again.get(), of_buffer.data.ptr == int(buffer.handle)


# --- whole programs -----------------------------------------------------------------------------------------------


@program
def k_means():
    variance = cp.ElementwiseKernel(
        "T x0, T x1, T c0, T c1", "T out", "out = (x0 - c0) * (x0 - c0) + (x1 - c1) * (x1 - c1)", "var_kernel"
    )
    total = cp.ReductionKernel("T x, S mask", "T out", "mask ? x : 0", "a + b", "out = a", "0", "sum_kernel")
    count = cp.ReductionKernel("T mask", "float32 out", "mask ? 1.0 : 0.0", "a + b", "out = a", "0.0", "count_kernel")
    generator = np.random.RandomState(0)
    samples = np.r_[generator.randn(200, 2) + 4, generator.randn(200, 2) - 4].astype(np.float32)
    x = cp.asarray(samples)
    centers = x[:2].copy()
    centers[1] = x[-1]
    clusters = 2
    for _ in range(5):
        distances = variance(x[:, None, 0], x[:, None, 1], centers[None, :, 1 - 1], centers[None, :, 1])
        labels = cp.argmin(distances, axis=1)
        masks = labels == cp.arange(clusters)[:, None]
        sums = total(x[None, :, :], masks[:, :, None], axis=1)
        centers = sums / count(masks, axis=1).reshape(clusters, 1)
    return centers.get(), cp.bincount(labels).get()


@program
def gemm():
    code = r"""
#define TILE 16
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float total = 0;
    for (int k = 0; k < K; k += TILE) {
        a[threadIdx.y][threadIdx.x] = row < M && k + threadIdx.x < K ? A[row * K + k + threadIdx.x] : 0;
        b[threadIdx.y][threadIdx.x] = k + threadIdx.y < K && column < N ? B[(k + threadIdx.y) * N + column] : 0;
        __syncthreads();
        for (int t = 0; t < TILE; t++) total += a[threadIdx.y][t] * b[t][threadIdx.x];
        __syncthreads();
    }
    if (row < M && column < N) C[row * N + column] = total;
}"""
    kernel = cp.RawKernel(code, "gemm")
    m, n, k = 50, 40, 33
    a = cp.asarray(np.arange(m * k).reshape(m, k) % 7, dtype=cp.float32)
    b = cp.asarray(np.arange(k * n).reshape(k, n) % 5, dtype=cp.float32)
    c = cp.empty((m, n), dtype=cp.float32)
    kernel(((n + 15) // 16, (m + 15) // 16), (16, 16), (a, b, c, m, n, k))
    return cp.array_equal(c, a @ b), c[0, :5].get()


@program
def heat():
    step = cp.ElementwiseKernel(
        "raw T u, int32 w, int32 h",
        "T out",
        """int x = i % w, y = i / w;
        bool inside = x > 0 && y > 0 && x < w - 1 && y < h - 1;
        out = inside ? (u[i - 1] + u[i + 1] + u[i - w] + u[i + w]) / 4 : u[i]""",
        "heat_step",
    )
    u = cp.zeros((16, 16))
    u[0] = 1
    for _ in range(20):
        u = step(u, 16, 16, cp.empty((16, 16)))
    return float(u.sum()), u[1, 8].get()


@program
def monte_carlo():
    cp.random.seed(1)
    x, y = cp.random.rand(2, 100_000, dtype=cp.float32)
    inside = float((x * x + y * y < 1).mean() * 4)
    g = cp.random.default_rng(7)
    n = g.standard_normal(50_000, dtype=cp.float32)
    r = cp.random.randint(0, 10, size=1000)
    state = cp.random.RandomState(3)
    u = state.uniform(-1, 1, (100, 3), dtype=cp.float32)
    again = cp.random.RandomState(3).uniform(-1, 1, (100, 3), dtype=cp.float32)
    return (
        abs(inside - np.pi) < 0.05,
        abs(float(n.mean())) < 0.05,
        abs(float(n.std()) - 1) < 0.05,
        n.dtype.name,
        u.dtype.name,
        r.dtype.name,
        int(r.min()) >= 0 and int(r.max()) < 10,
        u.shape,
        bool((u == again).all()),
        cp.random.normal(0, 1, 10, dtype=cp.float32).dtype.name,
        cp.random.random((2, 2)).shape,
    )


@program
def black_scholes():
    kernel = cp.ElementwiseKernel(
        "T s, T x, T t, T r, T v",
        "T call, T put",
        """const T sqrt_t = sqrt(t);
        const T d1 = (log(s / x) + (r + v * v / 2) * t) / (v * sqrt_t), d2 = d1 - v * sqrt_t;
        const T cnd_d1 = get_cumulative_normal_distribution(d1), cnd_d2 = get_cumulative_normal_distribution(d2);
        const T exp_rt = exp(-r * t);
        call = s * cnd_d1 - x * exp_rt * cnd_d2;
        put = x * exp_rt * (1 - cnd_d2) - s * (1 - cnd_d1);""",
        "black_scholes_kernel",
        preamble="template <typename T> __device__ T get_cumulative_normal_distribution(T x) { return normcdf(x); }",
    )
    s, x = cp.linspace(10, 100, 50), cp.linspace(20, 80, 50)
    call, put = kernel(s, x, 1.5, 0.02, 0.3)
    return call[::10].get(), put[::10].get()


@program
def special_functions():
    from cupyx.scipy import special

    x = cp.linspace(-2, 2, 9)
    one = [special.erf, special.expit, special.ndtr, special.i0, special.sinc]
    positive = [special.gammaln, special.y0, special.entr]
    return (
        [f(x).get() for f in one],
        [f(cp.arange(1.0, 5)).get() for f in positive],
        special.xlogy(cp.arange(3.0), 2.0).get(),
        special.logit(cp.asarray([0.25, 0.5], dtype="f4")).get(),
        cupyx.scipy.get_array_module(x).__name__,
        cupyx.rsqrt(cp.asarray([4.0, 16])).get(),
    )


@program
def measured():
    from cupyx.profiler import benchmark, time_range

    x = cp.arange(100.0)
    times = benchmark(cp.sum, (x,), n_repeat=3, n_warmup=1)
    with time_range("named"):
        y = x + 1

    @time_range()
    def decorated():
        return 3

    assert [decorated(), decorated()] == [3, 3]
    with cp.cuda.profile(), contextlib.redirect_stdout(io.StringIO()):
        print(times)
    cp.cuda.nvtx.RangePush("more")
    cp.cuda.nvtx.RangePop()
    return times.cpu_times.shape, times.gpu_times.shape, bool((times.gpu_times >= 0).all()), float(y[0])


@program
def plans_of_transforms():
    from cupyx.scipy import fft

    x = cp.arange(8.0).astype("c8").reshape(2, 4)
    with fft.get_fft_plan(x, axes=(1,)):
        right = cp.fft.fft(x)
    plan = fft.get_fft_plan(x)
    found = [fft.fft(x, plan=plan), fft.ifft2(fft.fft2(x, overwrite_x=True)), fft.irfftn(fft.rfftn(x.real))]
    cache = cp.fft.config.get_plan_cache()
    kept = cache.get_curr_size() > 0
    cache.clear()
    near = [float(abs(one - other).max()) < 1e-5 for one, other in zip(found, (right, x, x.real), strict=True)]
    return near, str(found[0].dtype), kept, cache.get_curr_size(), float(abs(cp.fft.fft(x) - right).max())


@program
def hooks_of_memory():
    from cupy.cuda import memory_hooks

    class Counted(cp.cuda.MemoryHook):
        name = "Counted"

        def __init__(self):
            self.seen, self.places = [], set()

        def malloc_preprocess(self, **what):
            self.seen.append(["malloc_preprocess", what["size"], what["mem_size"]])

        def malloc_postprocess(self, **what):
            self.seen.append(["malloc_postprocess", what["size"], what["mem_size"], what["mem_ptr"] != 0])
            self.places.add(what["pmem_id"])

        def alloc_preprocess(self, **what):
            self.seen.append(["alloc_preprocess", what["device_id"], what["mem_size"]])

        def alloc_postprocess(self, **what):
            self.seen.append(["alloc_postprocess", what["mem_size"], what["mem_ptr"] != 0])

        def free_postprocess(self, **what):
            self.seen.append(["free_postprocess", what["mem_size"], what["pmem_id"] in self.places])

    pool, hook, text = cp.cuda.MemoryPool(), Counted(), io.StringIO()
    lines = memory_hooks.LineProfileHook()
    with cp.cuda.using_allocator(pool.malloc):
        with hook, memory_hooks.DebugPrintHook(text), lines:
            again = refused(hook.__enter__)
            x = cp.empty(3)
            del x
            x = cp.empty(60)
        cp.empty(1000)
        pool.set_limit(1 << 16)
        with hook:
            full = refused(lambda: pool.malloc(1 << 20))
    printed = [json.loads(line) for line in text.getvalue().splitlines()]
    report = io.StringIO()
    lines.print_report(report)
    first, *rest = report.getvalue().splitlines()
    return [
        hook.seen, again, full, [[one["hook"], *list(one)[1:]] for one in printed], first,
        all(one.startswith("  ") for one in rest), "cupy_programs.py" in report.getvalue(), hook.name, x.size,
    ]  # fmt: skip


@program
def codes_of_kernels():
    twice = cp.ElementwiseKernel("T x", "T y", "y = x * 2", "twice")
    total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    early = refused(lambda: twice.cached_code)
    for kernel in (twice, total):
        kernel(cp.arange(3.0))
        kernel(cp.arange(3.0, dtype="f4"))
        kernel(cp.arange(4.0))
    return early, [[len(one.cached_codes), "double" in one.cached_code, one.name in one.cached_code]
                   for one in (twice, total)]  # fmt: skip


@program
def intervals():
    state = cp.random.RandomState(3)
    made = [state.interval(most, (2, 500)) for most in (0, 5, 2**31 - 1, 2**31, 2**40, 2**64 - 1)]
    errors = [refused(lambda: state.interval(-1)), refused(lambda: state.interval(2**64))]
    five = made[1]
    return [[str(one.dtype) for one in made], list(made[0].shape), state.interval(5).ndim, errors,
            int(five.min()), int(five.max()), float(made[5].max()) > 2**63]  # fmt: skip


@program
def waits_refused():
    x = cp.arange(4.0)
    stream = cp.cuda.Stream()
    with cupyx.allow_synchronize(False):
        y = x * 2
        errors = [
            refused(lambda: float(y.sum())), refused(y.get), refused(stream.synchronize),
            refused(cp.cuda.Device().synchronize), refused(lambda: y[y > 1]),
        ]  # fmt: skip
    with stream:
        stream.begin_capture()
        errors.append(refused(lambda: float(x.sum())))
        errors.append(refused(stream.end_capture))
    return errors, y.get(), issubclass(cupyx.DeviceSynchronized, RuntimeError)


@program
def polynomials():
    p = cp.poly1d([1.0, -3.0, 2.0])
    q = cp.poly1d(cp.asarray([2.0, 1.0]), variable="t")
    parts = [p + q, p - 1, 2 * p, p * q, -p, p**2]
    return (
        [one.coeffs.get() for one in parts],
        p(cp.asarray([0.0, 1.0, 2.0, 4.0])).get(),
        (p.order, q.variable, len(p), str(p), p == cp.poly1d([1.0, -3.0, 2.0]), p == q),
        cp.poly1d([1.0, 2.0], True).coeffs.get(),
        type(p.get()).__name__,
        float(p[1]),
    )


@program
def memory_of_others():
    """What CuPy says of memory that it does not own."""

    class Lent:
        def __init__(self, array):
            self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

    x = cp.arange(12, dtype=cp.float32).reshape(3, 4)
    whole, part = cp.asarray(Lent(x)), cp.asarray(Lent(x[:, ::2]))
    part += 100
    return whole.get(), part.strides, whole.data.ptr == x.data.ptr, whole.data.mem.size >= 48, part.shape


# --- what CuPy takes, and what it refuses ---------------------------------------------------------------------------


@program
def arrays_of_numpy():
    """What takes arrays of NumPy, and what gives arrays of NumPy for them."""
    x, h = cp.arange(6.0), np.arange(6.0)
    taken = (
        lambda: cp.allclose(x, h), lambda: cp.isclose(h, h), lambda: cp.array_equal(h, h), lambda: cp.array_equiv(h, h),
        lambda: cp.sum(h), lambda: cp.sum(h.reshape(2, 3), axis=0), lambda: cp.prod(h), lambda: cp.mean(h),
        lambda: cp.max(h), lambda: cp.std(h), lambda: cp.sort(h), lambda: cp.ravel(h), lambda: cp.dot(h, h),
        lambda: cp.average(h), lambda: cp.unique(h), lambda: cp.diff(h), lambda: cp.round(h),
    )  # fmt: skip
    not_taken = (
        lambda: cp.array_equal(x, h), lambda: cp.array_equiv(x, h), lambda: cp.maximum(x, h), lambda: x + h,
        lambda: cp.where(x > 2, x, h), lambda: cp.dot(x, h), lambda: cp.concatenate([x, h]), lambda: cp.isin(x, h),
        lambda: cp.any(h), lambda: cp.cumsum(h), lambda: cp.sqrt(h), lambda: cp.median(h), lambda: cp.nansum(h),
        lambda: cp.count_nonzero(h),
        lambda: cp.sum(h, out=cp.zeros(())),
    )  # fmt: skip
    return [function() for function in taken], [refused(function) for function in not_taken]


@program
def copies():
    """Which copies `copy=False` refuses."""
    x, square, h = cp.arange(6.0), cp.arange(6.0).reshape(2, 3), np.arange(6.0)
    made = (
        cp.array(x, copy=False), cp.asarray(x, order="F", copy=False), cp.array(h, copy=False),
        cp.asarray([1, 2], copy=False), cp.array(x, "f4", copy=None), cp.asarray(x, copy=True),
        cp.array([x, x], copy=False), x.astype("f4", copy=False),
    )  # fmt: skip
    return (
        [(one is x, one.dtype.name, one.shape) for one in made],
        refused(lambda: cp.array(x, dtype="f4", copy=False)),
        refused(lambda: cp.asarray(x, dtype="f4", copy=False)),
        refused(lambda: cp.asarray(square, order="F", copy=False)),
        refused(lambda: square.T.reshape(6, copy=False)),
        refused(lambda: cp.reshape(square.T, 6, copy=False)),
        (cp.asfortranarray(cp.asarray(1.0)).shape, cp.arange(6)[::2].ravel().strides),
        [str(cp.min_scalar_type(one)) for one in (cp.arange(3), cp.asarray(3), 3, 300)],
    )


@program
def devices_that_do_not_exist():
    """A device is looked for when it is used."""
    far = cp.cuda.Device(99)
    return (
        [int(far), int(cp.cuda.Device(-1)), int(cp.cuda.Device("0")), int(cp.cuda.Device(1.5)), repr(far)],
        [
            refused(function) for function in (
                far.use, far.__enter__, far.synchronize, lambda: far.compute_capability, lambda: far.mem_info,
                lambda: far.attributes, lambda: far.pci_bus_id, lambda: cp.cuda.runtime.setDevice(99),
                lambda: cp.cuda.Device.from_pci_bus_id("ffff:ff:ff.0"),
            )
        ],
        int(cp.cuda.Device()),
    )  # fmt: skip


@program
def kernels_that_do_not_exist():
    module = cp.RawModule(code='extern "C" __global__ void k(float* x) {}')
    other = cp.RawKernel('extern "C" __global__ void k(float* x) {}', "nothing")
    return [
        refused(function)
        for function in (lambda: module.get_function("nothing"), lambda: module.get_global("nothing"), other.compile)
    ]


@program
def types_of_special_functions():
    """The types of results, by those of the elements."""
    found = {}
    for name in (*IN_DOUBLE, *IN_SINGLE, "round", "sinc"):
        for char in "efdbi?":
            x = cp.asarray([0.25, 0.5, 1]).astype(char)
            function = getattr(cupyx.scipy.special, name)
            made = function(x, x) if name in ("xlogy", "xlog1py", "kl_div", "rel_entr", "huber") else function(x)
            found.setdefault(name, []).append(made.dtype.name)
    half = cp.asarray([0.25, 0.5, 1], "e")
    special = cupyx.scipy.special
    return (
        found,
        [special.entr(half), special.sinc(half).astype("f4"), special.huber(half, half), special.xlogy(half, 2.0)],
        special.entr(half, out=cp.zeros(3, "e")).dtype.name,
    )


IN_DOUBLE = [
    "cbrt", "cosm1", "erf", "erfc", "erfcx", "exp10", "exp2", "expit", "expm1", "gamma", "gammaln", "i0", "i1", "j0",
    "j1", "log1p", "log_expit", "logit", "ndtr", "xlog1py", "xlogy", "y0", "y1",
]  # fmt: skip
IN_SINGLE = ["entr", "erfcinv", "erfinv", "huber", "kl_div", "ndtri", "rel_entr"]


@program
def raw_results():
    """A raw result has as many elements as the loop, if that has a size."""
    twice = cp.ElementwiseKernel("raw T x", "raw T y", "y[i] = x[i] * 2", "twice")
    count = cp.ElementwiseKernel("", "raw float32 y", "y[i] = i", "count")
    x, into = cp.arange(6.0), cp.zeros(9)
    same = cp.ElementwiseKernel("T x", "raw T y", "y[i] = x", "same")
    return (
        twice(x, size=6), twice(x, into, size=6), count(size=4), refused(lambda: twice(x)), refused(lambda: same(x)),
        refused(lambda: twice(x, size=(2, 3))),
    )  # fmt: skip


@program
def pointers_to_pinned_memory():
    """They are added to as pointers, and nothing is read, whatever they point to."""

    class Lent:
        ptr, size = 64, 16  # nobody's

    p, lent = (cp.cuda.PinnedMemoryPointer(one, 0) for one in (cp.cuda.PinnedMemory(16), Lent()))
    q, r = p + 8, lent
    q -= 4
    r += 8
    return (
        [int(one) - int(p) for one in (p + 4, 4 + p, p - 4, p + 1.5, p + (-1), q)],
        [p.size(), (p + 4).size(), q.size(), r.size(), int(r), int(16 + lent), int(lent - 4)],
        [p == p, p == (p + 0), p != p, bool(lent), hash(p) == hash(p), repr(lent).split(" at ")[0]],
        [refused(lambda: p * 2), refused(lambda: p - p), refused(lambda: cp.cuda.PinnedMemoryPointer(object(), 0))],
        [refused(lambda: lent * 2), refused(lambda: 2 * lent), refused(lambda: lent / 2)],
        bytes(np.frombuffer(p, np.uint8, 16).shape),
    )


@program
def interfaces_of_nothing():
    """Arrays without elements have a CUDA array interface, too."""
    empty = (cp.zeros(0), cp.zeros((0, 3)).T, cp.arange(5)[5:], cp.zeros((2, 0, 3), "f4")[::-1])
    found = [one.__cuda_array_interface__ for one in empty]
    return [(one["shape"], one["typestr"], one["data"], one["strides"], one["version"]) for one in found]


# --- running them -------------------------------------------------------------------------------------------------


def plain(value):
    """A result as JSON has it: arrays as lists with their types."""
    if isinstance(value, cupy.ndarray):
        return {"device array": plain(value.get())}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.name}
    if isinstance(value, np.generic):
        return {"scalar": value.item(), "dtype": value.dtype.name}
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    return value


def main(arguments):
    out = arguments[arguments.index("--out") + 1] if "--out" in arguments else None
    names = [one for one in arguments if one in PROGRAMS] or list(PROGRAMS)
    results = {}
    for name in names:
        try:
            results[name] = plain(PROGRAMS[name]())
        except Exception as error:
            import traceback

            traceback.print_exc()
            results[name] = {"error": f"{type(error).__name__}: {error}"}
    text = json.dumps(results)
    if out:
        Path(out).write_text(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
