"""The runtime module: libraries of two CUDA majors made for the test, the CPU device's hook, the installed library."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from bindgen.ir import Module
from bindgen.libraries import BINDINGS, LIBRARIES
from cupola.bindings import driver, runtime
from tests import processes
from tests.bindings.libcudart import PROGRAM, installed

LIBCUDART = r"""
#include "cupola/runtime.h"
#include <string.h>
int cudaRuntimeGetVersion(int *version) { *version = VERSION; return 0; }
int cudaMemcpy(void *a, void *b, size_t n, int kind) { (void)a, (void)b, (void)n, (void)kind; return 11; }
int cudaMemcpy_ptds(void *a, void *b, size_t n, int kind) { (void)a, (void)b, (void)n, (void)kind; return 12; }
int cudaStreamQuery(void *stream) { return (int)(size_t)stream; }
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f) {
    return (struct cudaChannelFormatDesc){x, y, z, w, f};
}
#define PREFETCH(name) int name(void *a, size_t n, struct cudaMemLocation where, unsigned f, void *s)
#define EDGES(name) int name(void *graph, void **from, void **to, struct cudaGraphEdgeData_st *edges, size_t *count)
#define BATCH void **to, void **from, size_t *sizes, size_t count, void *attributes, size_t *indices, size_t n
#define CHECK(x) if (!(x)) return 1
#if VERSION >= 13000
PREFETCH(cudaMemPrefetchAsync) { CHECK(n == 8 && where.id == 3 && f == 1); (void)a, (void)s; return 21; }
PREFETCH(cudaMemPrefetchAsync_ptsz) { CHECK(n == 8 && where.id == 3 && f == 1); (void)a, (void)s; return 24; }
EDGES(cudaGraphGetEdges) { (void)graph, (void)from, (void)to, (void)edges; *count = 2; return 0; }
int cudaMemcpyBatchAsync(BATCH, void *stream) {
    CHECK(to[0] && from && sizes[0] == 4 && count == 1 && !attributes && !indices && n == 0);
    return stream == (void *)7 ? 31 : 1;
}
int cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    memset(p, 0, sizeof *p);
    p->multiProcessorCount = 40 + device, p->unifiedFunctionPointers = 41;
    return 0;
}
int cudaMemDiscardBatchAsync(void) { return 51; }
#else
int cudaMemPrefetchAsync(void *a, size_t n, int device, void *s) { (void)a, (void)n, (void)device, (void)s; return 1; }
PREFETCH(cudaMemPrefetchAsync_v2) { CHECK(n == 8 && where.id == 3 && f == 1); (void)a, (void)s; return 22; }
PREFETCH(cudaMemPrefetchAsync_v2_ptsz) { CHECK(n == 8 && where.id == 3 && f == 1); (void)a, (void)s; return 23; }
int cudaGraphGetEdges(void *graph, void **from, void **to, size_t *count) {
    (void)graph, (void)from, (void)to;
    *count = 9;
    return 0;
}
EDGES(cudaGraphGetEdges_v2) { (void)graph, (void)from, (void)to, (void)edges; *count = 2; return 0; }
int cudaMemcpyBatchAsync(BATCH, size_t *failed, void *stream) {
    CHECK(to[0] && from && sizes[0] == 4 && count == 1 && !attributes && !indices && n == 0);
    *failed = 5;
    return stream == (void *)7 ? 32 : 1;
}
int cudaGetDeviceProperties(void *p, int device) { (void)p, (void)device; return 1; } /* the layout of CUDA 11 */
int cudaGetDeviceProperties_v2(char *p, int device) {
    memset(p, 0, 1032);
    *(int *)(p + 348) = 1980000, *(int *)(p + 388) = 40 + device, *(int *)(p + 776) = 41;
    return 0;
}
int cudaEventElapsedTime(float *ms, void *a, void *b) { (void)a, (void)b; *ms = 1; return 0; }
int cudaThreadSynchronize(void) { return 52; }
#endif
"""

# A call, and its result with the library of CUDA 13 and of CUDA 12.
LOCATION = "runtime.cudaMemLocation(id=3)"
CALLS = [
    ("runtime.cudaMemcpy(0, 0, 0, 0)", 11, 11),
    (f"runtime.cudaMemPrefetchAsync(memory, 8, {LOCATION}, 1, 0)", 21, 22),
    (f"runtime.cudaMemPrefetchAsync_v2(memory, 8, {LOCATION}, 1, 0)", 21, 22),
    ("runtime.cudaGraphGetEdges(0)[-1]", 2, 2),
    ("runtime.cudaMemcpyBatchAsync([memory], [1], [4], 1, None, None, 0, 7)", 31, 32),
    ("runtime.cudaStreamQuery(driver.CUstream(9))", 9, 9),
    ("runtime.cudaStreamQuery(runtime.cudaStream_t(9))", 9, 9),
    ("runtime.cudaGetDeviceProperties(2)[1].multiProcessorCount", 42, 42),
    ("runtime.cudaGetDeviceProperties(2)[1].unifiedFunctionPointers", 41, 41),
    ("hasattr(runtime.cudaGetDeviceProperties(0)[1], 'clockRate')", False, True),
    (
        "runtime.cudaGetDeviceProperties(0)[1].clockRate",
        ("AttributeError", "cudaDeviceProp.clockRate does not exist in CUDA 13, whose library is loaded"),
        1980000,
    ),
    ("[setattr(p := runtime.cudaDeviceProp(), 'integrated', 7), bytes(p).index(7)][1]", 388, 396),
    (
        "'clockRate : ' in str(runtime.cudaDeviceProp()), len(bytes(runtime.cudaDeviceProp()))",
        (False, 1008),
        (True, 1032),
    ),
    ("runtime.sizeof(runtime.cudaDeviceProp)", 1008, 1032),
    ("runtime.cudaRuntimeGetVersion()[1], runtime.getLocalRuntimeVersion()[1]", (13050, 13050), (12090, 12090)),
    ("runtime.cudaCreateChannelDesc(8, 9, 0, 0, 2)[1].y", 9, 9),
    (
        "runtime.cudaThreadSynchronize()",
        (
            "FunctionNotFoundError",
            "function cudaThreadSynchronize is not found in PATH, which has CUDA 13.5: only CUDA 12 has it",
        ),
        52,
    ),
    (
        "runtime.cudaGraphAddNode(0, None, None, 0, None)",
        (
            "FunctionNotFoundError",
            "function cudaGraphAddNode is not found in PATH, which has CUDA 13.5: it needs CUDA 12.3 or newer",
        ),
        (
            "FunctionNotFoundError",
            "function cudaGraphAddNode is not found in PATH, which has CUDA 12.9: it needs CUDA 12.3 or newer",
        ),
    ),
    (
        "runtime.cudaMemDiscardBatchAsync(None, None, 0, 0, 0)",
        51,
        (
            "FunctionNotFoundError",
            "function cudaMemDiscardBatchAsync is not found in PATH, which has CUDA 12.9: it needs CUDA 13.0 or newer",
        ),
    ),
]


@pytest.fixture(scope="module")
def libcudart(tmp_path_factory):
    """Builds a libcudart of a version; returns its path."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")

    def build(version: int) -> str:
        path = str(tmp_path_factory.mktemp("cuda") / f"libcudart.so.{version // 1000}")
        flags = ["-Wall", "-Werror", "-shared", "-fPIC", f"-DVERSION={version}", f"-I{BINDINGS / 'include'}"]
        processes.run(["gcc", *flags, "-x", "c", "-o", path, "-"], input=LIBCUDART, check=True)
        return path

    return build


def outcomes(run_program, path, calls, **environment):
    done = run_program(PROGRAM, path, input=repr(calls), **environment)
    assert done.returncode == 0, done.stderr
    return eval(done.stdout.replace(path, "PATH"))


@pytest.mark.parametrize(("version", "column"), [(13050, 1), (12090, 2)])
def test_one_build_serves_two_majors(run_program, libcudart, version, column):
    path = libcudart(version)
    results = outcomes(run_program, path, [case[0] for case in CALLS])
    for case, result in zip(CALLS, results, strict=True):
        assert result == case[column], case[0]


@pytest.mark.parametrize(("version", "prefetch"), [(13050, 24), (12090, 23)])
def test_per_thread_default_stream(run_program, libcudart, version, prefetch):
    calls = ["runtime.cudaMemcpy(0, 0, 0, 0)", f"runtime.cudaMemPrefetchAsync(memory, 8, {LOCATION}, 1, 0)"]
    environment = {"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}
    assert outcomes(run_program, libcudart(version), calls, **environment) == [12, prefetch]


def test_an_older_symbol_of_the_same_signature_will_do(run_program, libcudart):
    """cudaEventElapsedTime_v2 came with CUDA 12.8."""
    calls = ["runtime.cudaEventElapsedTime(0, 0)[1]", "runtime.cudaGraphGetEdges(0)[-1]"]
    assert outcomes(run_program, libcudart(12040), calls) == [1.0, 2]


@pytest.mark.parametrize("major", [13, 12])
def test_the_real_libraries_have_what_the_tables_say(major):
    library = ctypes.CDLL(str(installed(major)))
    module = Module.load(LIBRARIES["runtime"].ir_path)
    version = ctypes.c_int()
    library.cudaRuntimeGetVersion(ctypes.byref(version))
    wanted = module.version if major == 13 else module.older
    if f"{version.value // 1000}.{version.value % 1000 // 10}" != wanted:
        pytest.skip(f"the installed library of CUDA {major} is not that of {wanted}")
    for function in module.functions:
        if function.only not in (0, major):
            continue
        symbols = function.older.split() if major == 12 and function.older else [function.symbol]
        assert all(hasattr(library, symbol) for symbol in symbols), function.name
        if function.thread_symbol:
            suffix = function.thread_symbol[-5:]
            assert all(hasattr(library, symbol + suffix) for symbol in symbols), function.name


@pytest.mark.parametrize(("major", "size"), [(13, 1008), (12, 1032)])
def test_a_real_library_of_either_major(run_program, major, size):
    calls = [
        "runtime.cudaRuntimeGetVersion()[1] // 1000",
        "runtime.sizeof(runtime.cudaDeviceProp)",
        "runtime.cudaGetErrorName(runtime.cudaError_t.cudaErrorInvalidValue)[1]",
        "runtime.cudaCreateChannelDesc(8, 8, 0, 0, 1)[1].y",
    ]
    assert outcomes(run_program, str(installed(major)), calls) == [major, size, b"cudaErrorInvalidValue", 8]


def test_the_path_finder_prefers_the_newest_wheel(run_python):
    newest = installed(13)
    installed(12)
    source = "from cupola.pathfinder import *; print(load_nvidia_dynamic_lib('cudart').abs_path)"
    source += "; print(find_nvidia_header_directory('cudart'))"
    library, headers = run_python(source).stdout.splitlines()
    assert Path(library).samefile(newest) and "cuda_runtime" not in headers


# ---- the CPU device ----

ABSENT = """
from cupola.cpu import _driver
if hasattr(_driver, "runtime_lookup"):
    del _driver.runtime_lookup
from cupola.bindings import runtime
try:
    runtime.cudaMalloc(16)
except RuntimeError as error:
    print(error)
"""


def test_what_the_cpu_device_lacks(run_python):
    text = run_python(ABSENT, CUPOLA_DEVICE="cpu").stdout.strip()
    assert text == "the CPU device has no such runtime function: cudaMalloc"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("asked.clear(), runtime.cudaMalloc(16)[0].name, asked[-1]", "(None, 'cudaErrorNotSupported', 'cudaMalloc')"),
        ("missing.add('cudaFree'), runtime.cudaFree(1)", "RuntimeError|the CPU device has no such runtime function"),
    ],
)
def test_the_hook_of_the_cpu_device(stub, expression, expected):
    value = stub(expression)
    assert value == expected or expected.startswith("RuntimeError") and "cudaFree is not found" in value, value


# ---- what needs no device ----


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda: repr(runtime.cudaStream_t(5)), "<cudaStream_t 0x5>"),
        (lambda: runtime.cudaStream_t(5) == driver.CUstream(5) == runtime.cudaStream_t(5), True),
        (lambda: runtime.cudaStream_t(5) == driver.CUevent(5), False),
        (lambda: runtime.cudaStream_t(5) == runtime.cudaEvent_t(5), False),
        (lambda: len({runtime.cudaStream_t(5), driver.CUstream(5), runtime.cudaStream_t(6)}), 2),
        (lambda: runtime.cudaStream_t(5).__cuda_stream__(), (0, 5)),
        (lambda: int(driver.CUstream(runtime.cudaStream_t(5))), 5),
        (lambda: driver.CUlaunchConfig(hStream=runtime.cudaStream_t(5)).hStream, driver.CUstream(5)),
        (lambda: runtime.cudaLaunchConfig_t(stream=driver.CUstream(5)).stream, runtime.cudaStream_t(5)),
        (lambda: issubclass(runtime.cudaArray_t, driver.CUarray), False),
        (lambda: runtime.cudaArray_t(5) == driver.CUarray(5), False),
        (lambda: int(runtime.cudaStreamPerThread), 2),
        (lambda: runtime.cudaCpuDeviceId, -1),
        (lambda: str(runtime.dim3()), "x : 1\ny : 1\nz : 1"),
        (lambda: str(runtime.dim3(x=4, z=2)), "x : 4\ny : 1\nz : 2"),
        (lambda: str(runtime.dim3(4)), "x : 4\ny : 1\nz : 1"),
        (lambda: str(runtime.dim3(0, 5)), "x : 0\ny : 5\nz : 1"),
        (lambda: str(runtime.dim3(1, 2, 3)), "x : 1\ny : 2\nz : 3"),
        (lambda: str(runtime.dim3(6, z=2)), "x : 6\ny : 1\nz : 2"),
        (lambda: str(runtime.make_cudaPos(1, 2, 3)), "x : 1\ny : 2\nz : 3"),
        (lambda: runtime.make_cudaExtent(w=1, h=2, d=3).depth, 3),
        (lambda: runtime.make_cudaPitchedPtr(64, 32, 5, 6).pitch, 32),
        (lambda: runtime.cudaStreamAttrValue is runtime.cudaLaunchAttributeValue, True),
        (lambda: runtime.cudaStreamAttrID is runtime.cudaLaunchAttributeID, True),
        (
            lambda: runtime.cudaStreamAttributePriority == runtime.cudaLaunchAttributeID.cudaLaunchAttributePriority,
            True,
        ),
        (lambda: runtime.cudaMemAdvise_v2 is runtime.cudaMemAdvise, True),
        (lambda: runtime.cudaError_t(2), runtime.cudaError_t.cudaErrorMemoryAllocation),
        (lambda: issubclass(runtime.cudaError_t, int) and runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost, 2),
    ],
)
def test_types(value, expected):
    assert value() == expected


@pytest.mark.parametrize(
    ("classes", "base"),
    [
        (("cudaStream_t", "CUstream"), True),
        (("cudaEvent_t", "CUevent"), True),
        (("cudaGraph_t", "CUgraph"), True),
        (("cudaGraphNode_t", "CUgraphNode"), True),
        (("cudaGraphExec_t", "CUgraphExec"), True),
        (("cudaMemPool_t", "CUmemoryPool"), True),
        (("cudaFunction_t", "CUfunction"), True),
        (("cudaUserObject_t", "CUuserObject"), True),
        (("cudaEglStreamConnection", "CUeglStreamConnection"), True),
        (("cudaKernel_t", "CUkernel"), False),
        (("cudaLibrary_t", "CUlibrary"), False),
        (("cudaTextureObject_t", "CUtexObject"), False),
    ],
)
def test_handles_of_the_driver(classes, base):
    ours, theirs = getattr(runtime, classes[0]), getattr(driver, classes[1])
    assert issubclass(ours, theirs) is base
    assert (ours(3) == theirs(3)) is base and (theirs(3) == ours(3)) is base
    assert runtime.sizeof(ours) == driver.sizeof(theirs) == 8


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: runtime.make_cudaPos(1, 2), TypeError),
        (lambda: runtime.make_cudaPos(-1, 2, 3), OverflowError),
        (lambda: runtime.cudaDeviceProp(nothing=1), TypeError),
        (lambda: runtime.sizeof(driver.CUstream), TypeError),
        (lambda: runtime.cudaMallocPitch("a", 1), TypeError),
        (lambda: runtime.cudaMalloc3D(runtime.dim3()), TypeError),
        (lambda: runtime.dim3(1, 2, 3, 4), TypeError),
        (lambda: runtime.dim3(1, x=2), TypeError),
        (lambda: runtime.dim3(1, _ptr=1 << 20), TypeError),
        (lambda: runtime.dim3(1, w=2), TypeError),
        (lambda: runtime.dim3(-1), OverflowError),
        (lambda: runtime.dim3(1 << 32), OverflowError),
        (lambda: runtime.dim3(_ptr=4), ValueError),
        (lambda: runtime.cudaMalloc3D(None), TypeError),
    ],
)
def test_bad_arguments(call, error):
    with pytest.raises(error):
        call()


INSTALLED = """
from cupola.bindings import _provider, runtime
_provider._emulated_runtime = lambda: None
kind = runtime.cudaChannelFormatKind.cudaChannelFormatKindFloat
print(runtime.cudaGetErrorName(2), runtime.cudaGetErrorString(runtime.cudaError_t.cudaErrorInvalidValue)[1])
print(runtime.cudaCreateChannelDesc(32, 0, 0, 0, kind)[1].f == kind, runtime.cudaGetErrorName(123456))
print(runtime.cudaRuntimeGetVersion() == runtime.getLocalRuntimeVersion(), runtime.getLocalRuntimeVersion()[1] >= 12000)
status, address = runtime.cudaMalloc(16)
print(status.name if address is None else runtime.cudaFree(address)[0].name)
"""


def test_the_installed_library(run_python):
    """Without a driver each call that needs one says so in its status."""
    done = run_python(INSTALLED)
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "(<cudaError_t.cudaSuccess: 0>, b'cudaErrorMemoryAllocation') b'invalid argument'",
        "True (<cudaError_t.cudaSuccess: 0>, b'unrecognized error code')",
        "True True",
    ], done.stderr
    assert lines[3] in ("cudaErrorInsufficientDriver", "cudaErrorNoDevice", "cudaSuccess")
