"""The calling convention, against a stub driver: one line a case, an expression and its value or its error."""

from __future__ import annotations

import pytest

OK = "<CUresult.CUDA_SUCCESS: 0>"
INVALID = "<CUresult.CUDA_ERROR_INVALID_VALUE: 1>"

CASES = [
    # Results: a tuple of the status and the outputs, which are None after a failure.
    ("driver.cuInit(0)", f"({OK},)"),
    ("driver.cuMemAlloc(16)", f"({OK}, <CUdeviceptr 4096>)"),
    ("driver.cuMemAlloc(0)", f"({INVALID}, None)"),
    ("driver.cuMemGetAddressRange(0x1234)", f"({OK}, <CUdeviceptr 4096>, 4096)"),
    ("driver.cuCtxSynchronize()", "(<CUresult.CUDA_ERROR_NOT_SUPPORTED: 801>,)"),
    ("driver.cuDriverGetVersion()", f"({OK}, 13050)"),
    ("driver.cuDeviceGetName(8, 0)", rf"({OK}, b'stub\x00\x00\x00\x00')"),
    ("driver.cuDeviceGetUuid(0)[1].bytes == bytes(range(16))", "True"),
    ("driver.cuGetErrorName(1)", f"({OK}, b'CUDA_ERROR_INVALID_VALUE')"),
    ("driver.cuGetErrorName(12345)", f"({INVALID}, None)"),
    ("driver.cuGraphExecUpdate(1, 2)[0].name", "'CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE'"),
    ("driver.cuGraphExecUpdate(1, 2)[1]", "None"),
    # Arguments by keyword.
    ("driver.cuMemAlloc(bytesize=16)", f"({OK}, <CUdeviceptr 4096>)"),
    ("driver.cuMemAlloc(size=16)", "TypeError: cuMemAlloc() got an unexpected keyword argument 'size'"),
    ("driver.cuMemAlloc(16, bytesize=16)", "TypeError: cuMemAlloc() got two values for argument 'bytesize'"),
    ("driver.cuMemAlloc()", "TypeError: cuMemAlloc() is missing argument 'bytesize'"),
    ("driver.cuMemAlloc(1, 2)", "TypeError: cuMemAlloc() takes 1 argument, got 2"),
    ("driver.cuInit()", "TypeError: cuInit() is missing argument 'Flags'"),
    # Integers.
    ("driver.cuInit(True)", f"({OK},)"),
    ("driver.cuInit(None)", "TypeError: cuInit(), argument 'Flags': an integer is required, got NoneType"),
    ("driver.cuInit('a')", "TypeError: cuInit(), argument 'Flags': an integer is required, got str"),
    ("driver.cuInit(2.0), calls[-1]", f"(({OK},), 2)"),
    ("driver.cuMemAlloc(2.0**40), calls[-1]", f"(({OK}, <CUdeviceptr 4096>), {1 << 40})"),
    ("driver.cuMemAlloc(1e300)", "OverflowError"),
    ("driver.cuInit(1.5)", "TypeError: cuInit(), argument 'Flags': an integer is required, got 1.5"),
    ("driver.cuInit(float('inf'))", "an integer is required, got inf"),
    ("driver.cuInit(float('nan'))", "an integer is required, got nan"),
    ("driver.cuInit(1 << 32)[0]", "OverflowError"),
    ("driver.cuInit(-1)[0]", "OverflowError"),
    ("driver.cuDeviceGet(-3)", f"({OK}, <CUdevice -3>)"),
    ("driver.cuDeviceGet(1 << 31)", "OverflowError"),
    # Handles: the class, an int or None.
    ("driver.cuMemFree(driver.CUdeviceptr(5)), calls[-1]", f"(({OK},), 5)"),
    ("driver.cuMemFree(6), calls[-1]", f"(({OK},), 6)"),
    ("driver.cuMemFree(None), calls[-1]", f"(({OK},), 0)"),
    ("driver.cuMemFree(driver.CUstream(7)), calls[-1]", f"(({OK},), 7)"),
    ("driver.cuMemFree('a')", "TypeError: cuMemFree(), argument 'dptr': an integer is required, got str"),
    ("driver.cuMemFree(-1)", "OverflowError"),
    ("driver.cuMemFree(1.5)", "TypeError"),
    # Enums: a member or any int.
    ("driver.cuGetErrorName(driver.CUresult.CUDA_ERROR_INVALID_VALUE)[1]", "b'CUDA_ERROR_INVALID_VALUE'"),
    ("driver.cuGetErrorName(None)", "TypeError: cuGetErrorName(), argument 'error': must not be None"),
    ("driver.cuThreadExchangeStreamCaptureMode(1), calls[-1]", "CU_STREAM_CAPTURE_MODE_RELAXED: 2>), 1)"),
    # Lists with counts.
    ("driver.cuGraphGetNodes(1)", f"({OK}, [], 3)"),
    ("driver.cuGraphGetNodes(1, 2)", f"({OK}, [<CUgraphNode 0x100>, <CUgraphNode 0x101>], 3)"),
    (
        "driver.cuGraphGetNodes(1, numNodes=9)[1:]",
        "([<CUgraphNode 0x100>, <CUgraphNode 0x101>, <CUgraphNode 0x102>], 3)",
    ),
    ("driver.cuGraphGetNodes(1, 1 << 60)", "MemoryError"),
    ("driver.cuStreamUpdateCaptureDependencies(0, [driver.CUgraphNode(1), 2], None, 2, 0)", "RuntimeError"),
    ("driver.cuStreamUpdateCaptureDependencies(0, [driver.CUgraphNode(1), 2], [], 0, 0)", f"({OK},)"),
    (
        "driver.cuStreamUpdateCaptureDependencies(0, (driver.CUgraphNode(1), 2), [driver.CUgraphEdgeData()] * 2, 2, 0),"
        "calls[-1]",
        f"(({OK},), [1, 2])",
    ),
    (
        "[a := [], a.extend([Emptying(1, a), 2]), driver.cuStreamUpdateCaptureDependencies(0, a, [], 2, 0)]",
        "RuntimeError: cuStreamUpdateCaptureDependencies(), argument 'dependencies': the list became shorter",
    ),
    ("driver.cuStreamUpdateCaptureDependencies(0, [1], [], 2, 0)", "List is too small: 1 < 2"),
    ("driver.cuStreamUpdateCaptureDependencies(0, ['a'], [], 0, 0)", "TypeError"),
    ("driver.cuStreamUpdateCaptureDependencies(0, 5, [], 0, 0)", "expected a list or tuple, got int"),
    ("driver.cuStreamUpdateCaptureDependencies(0, [1], [2], 1, 0)", "expected CUgraphEdgeData, got int"),
    (
        "driver.cuStreamGetCaptureInfo(0)[1:]",
        "(<CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE: 1>, <cuuint64_t 7>, <CUgraph 0x300>, "
        "[<CUgraphNode 0x200>, <CUgraphNode 0x201>], [], 2)",
    ),
    # Records.
    ("driver.cuMemcpy2D(None)[0].name", "'CUDA_ERROR_NOT_SUPPORTED'"),
    ("driver.cuMemcpy2D(driver.CUDA_MEMCPY2D_v2())[0].name", "'CUDA_ERROR_NOT_SUPPORTED'"),
    ("driver.cuMemcpy2D(driver.CUuuid())", "expected CUDA_MEMCPY2D or None, got cupola.bindings.driver.CUuuid"),
    ("driver.cuIpcOpenMemHandle(None, 0)", "expected CUipcMemHandle, got NoneType"),
    # Strings are bytes.
    ("driver.cuModuleLoad(b'x')[0].name", "'CUDA_ERROR_NOT_SUPPORTED'"),
    ("driver.cuModuleLoad(bytearray(b'x'))[0].name", "'CUDA_ERROR_NOT_SUPPORTED'"),
    ("driver.cuModuleLoad('x')", "TypeError: cuModuleLoad(), argument 'fname': expected bytes, str found"),
    ("driver.cuModuleLoad(None)", "expected bytes, NoneType found"),
    # Memory: None, an int, a handle, or a buffer.
    ("driver.cuMemcpyHtoD(1, 'x', 1)", "of type str but expected Type None, int or object with Buffer Protocol"),
    ("driver.cuMemcpyHtoD(1, [1], 1)", "TypeError"),
    ("driver.cuMemcpyHtoD(1, -1, 1)", "TypeError"),
    ("driver.cuMemcpyHtoD(1, memoryview(b'abcd')[::2], 1)", "BufferError"),
    ("driver.cuMemcpyHtoD(1, bytearray(4), 4)[0].name", "'CUDA_ERROR_NOT_SUPPORTED'"),
    # Values whose type depends on an attribute.
    ("driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED, 1)", f"({OK}, True)"),
    ("driver.cuPointerGetAttribute(1, 1)", f"({OK}, <CUcontext 0x1>)"),
    ("driver.cuPointerGetAttribute(2, 1)", f"({OK}, <CUmemorytype.CU_MEMORYTYPE_HOST: 1>)"),
    ("driver.cuPointerGetAttribute(3, 1)", f"({OK}, <CUdeviceptr 1>)"),
    ("type(driver.cuPointerGetAttribute(5, 1)[1]).__name__", "'CUDA_POINTER_ATTRIBUTE_P2P_TOKENS'"),
    ("driver.cuPointerGetAttribute(99, 1)", "TypeError: CUpointer_attribute has no attribute 99"),
    ("driver.cuMemPoolSetAttribute(1, 4, 1 << 40), calls[-1]", f"(({OK},), (4, {1 << 40}))"),
    ("driver.cuMemPoolSetAttribute(1, 4, driver.cuuint64_t(9)), calls[-1]", f"(({OK},), (4, 9))"),
    ("driver.cuMemPoolSetAttribute(1, 4, 'x')", "TypeError"),
    # Options.
    (
        "[log := bytearray(8), driver.cuModuleLoadDataEx(b'ptx', 2, [driver.CUjit_option.CU_JIT_ERROR_LOG_BUFFER, "
        "driver.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES], [log, 8])[1], bytes(log[:3])][1:]",
        "[<CUmodule 0x400>, b'log']",
    ),
    ("driver.cuModuleLoadDataEx(b'ptx', 2, [0, 7], [32, 4]) and calls[-1]", "[(0, 32), (7, 4)]"),
    ("driver.cuModuleLoadDataEx(b'ptx', 0, None, None)[1]", "<CUmodule 0x400>"),
    ("driver.cuModuleLoadDataEx(b'ptx', 2, [0, 7], [32])", "List is too small: 1 < 2"),
    (
        "[a := [], a.extend([Emptying(32, a), 4]), driver.cuModuleLoadDataEx(b'ptx', 2, [0, 7], a), calls[-1]][-1]",
        "[(0, 32), (7, 4)]",
    ),
    # Kernel arguments.
    ("driver.cuLaunchKernel(1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0), calls[-3]", f"(({OK},), (1, 2, 3, 4, 5, 6, 7, 8))"),
    (
        "launch(((1, 2.5, -1, True), (ctypes.c_int, ctypes.c_double, ctypes.c_int8, ctypes.c_bool)), "
        "ctypes.c_int, ctypes.c_double, ctypes.c_int8, ctypes.c_bool)",
        "[1, 2.5, -1, True]",
    ),
    ("launch(((ctypes.c_float(1.5),), (ctypes.c_double,)), ctypes.c_double)", "[1.5]"),
    ("launch(((driver.CUdeviceptr(77),), (None,)), U64)", "[77]"),
    ("launch(((driver.CUdeviceptr(77),), (ctypes.c_void_p,)), U64)", "[77]"),
    ("launch(((77, None, ctypes.c_void_p(3)), (P, P, P)), U64, U64, U64)", "[77, 0, 3]"),
    ("launch(((driver.CUresult(1),), (None,)), U32)", "[1]"),
    ("launch(((ctypes.c_uint64(9),), (None,)), U64)", "[9]"),
    ("launch(((), ()))", "[]"),
    ("launch((U64 * 1)(ctypes.addressof(BORROWED)), U64)", "[512]"),
    ("launch(((1,), (None,)), U64)", "TypeError"),
    ("launch(((1,), (int,)), U64)", "TypeError: cuLaunchKernel(), argument 'kernelParams': Unsupported type"),
    ("launch(((1, 2), (ctypes.c_int,)), U64)", "2 kernel arguments but 1 types"),
    ("launch(((1,),), U64)", "kernel arguments are a pair of tuples"),
    ("launch(((1 << 40,), (ctypes.c_int,)), U64)", "OverflowError"),
    ("[v := [], v.extend([Emptying(7, v), 5]), launch((v, [U32, U32]), U32, U32)][-1]", "[7, 5]"),
    (
        "[v := [], t := [U32, None], v.extend([Emptying(7, v, t), driver.CUdeviceptr(5)]), launch((v, t), U32, U64)]"
        "[-1]",
        "[7, 5]",
    ),
    ("launch((('a', '\u20ac'), (ctypes.c_wchar, ctypes.c_wchar)), U32, U32)", "[97, 8364]"),
    ("launch(((ctypes.c_wchar('a'),), (ctypes.c_wchar,)), U32)", "[97]"),
    ("launch(((0,), (ctypes.c_wchar,)), U32)", "a str of one character is required, got 0"),
    ("launch((('ab',), (ctypes.c_wchar,)), U32)", "a str of one character is required"),
    ("launch(((d := runtime.dim3(x=3), d), (None, P)), U32, U64) == [3, d.getPtr()]", "True"),
    ("launch(((3.0,), (U32,)), U32)", "TypeError: cuLaunchKernel(), argument 'kernelParams': an integer is required"),
    # Types that an earlier launch had are read more quickly.
    (
        "[launch(((255, 65535, -5, 1 << 31, 1 << 63), types := (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_int32, U32, "
        "U64)), *types) for _ in range(2)][1]",
        f"[255, 65535, -5, {1 << 31}, {1 << 63}]",
    ),
    (
        "[launch(((0, 3, 0.5, 2.5, 0), types := (ctypes.c_float, ctypes.c_double, ctypes.c_float, ctypes.c_double, "
        "ctypes.c_bool)), *types) for _ in range(2)][1]",
        "[0.0, 3.0, 0.5, 2.5, False]",
    ),
    ("launch(((255,), (ctypes.c_uint8,)), U64) and launch(((256,), (ctypes.c_uint8,)), U64)", "OverflowError"),
    ("launch(((127,), (ctypes.c_int8,)), U64) and launch(((128,), (ctypes.c_int8,)), U64)", "OverflowError"),
    ("launch(((1,), (U32,)), U32) and launch(((1.5,), (U32,)), U32)", "TypeError"),
    ("launch([(1,), (U32,)], U32)", "TypeError"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES, ids=[c[0] for c in CASES])
def test_calls(stub, expression, expected):
    value = stub(expression)
    exact = expected.endswith((")", "]", "'", ">", "True")) and not expected.startswith(("<CUmodule", "CU_"))
    assert value == expected if exact and "Error" not in expected.split(":")[0] else expected in value


def test_missing_function_names_what_was_loaded(stub):
    assert stub("missing.add('cuProfilerStart')") == "None"
    value = stub("driver.cuProfilerStart()")
    assert value == (
        "FunctionNotFoundError: function cuProfilerStart is not found in stub driver: it needs CUDA 4.0 or newer"
    )
    assert stub("missing.clear()") == "None"
    assert stub("driver.cuProfilerStart()[0].name") == "'CUDA_ERROR_NOT_SUPPORTED'", "the slot must try again"


def test_symbols_are_the_versioned_ones(stub):
    stub("driver.cuCtxCreate(None, 0, 0)")
    stub("driver.cuMemcpy(1, 2, 3)")
    asked = stub("asked")
    assert "'cuCtxCreate_v4'" in asked and "'cuMemcpy'" in asked and "_pt" not in asked


def test_per_thread_default_stream(new_stub):
    stub = new_stub(CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")
    stub("driver.cuMemcpy(1, 2, 3)")
    stub("driver.cuStreamSynchronize(0)")
    stub("driver.cuMemAlloc(8)")
    assert stub("asked") == "['cuMemcpy_ptds', 'cuStreamSynchronize_ptsz', 'cuMemAlloc_v2']"


def test_missing_per_thread_variant_falls_back_to_the_plain_symbol(new_stub):
    stub = new_stub(CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")
    stub("missing.add('cuMemcpy_ptds')")
    assert stub("driver.cuMemcpy(1, 2, 3)[0].name") == "'CUDA_ERROR_NOT_SUPPORTED'"


ROBUSTNESS = """
import inspect, ctypes

odd = [None, 0, -1, 1 << 70, 2.5, "x", b"x", bytearray(8), [], [object()], (None,), object(), True, driver.CUstream(1),
       driver.CUuuid(), driver.CUresult(1), driver]

def every_function(module, status):
    done = 0
    for name in dir(module):
        function = getattr(module, name)
        if not name.startswith("cu") or isinstance(function, (type, int)):
            continue
        count = len(inspect.signature(function).parameters)
        for arguments in [(), (0,) * (count + 1), *((value,) * count for value in odd)]:
            try:
                result = function(*arguments)
            except (TypeError, OverflowError, RuntimeError, BufferError, ValueError, IndexError, MemoryError):
                continue
            assert type(result) is tuple, name
            assert isinstance(result[0], status), name
            repr(result)
        done += 1
    return done
"""


@pytest.mark.parametrize(
    ("module", "kind", "count"), [("driver", "driver.CUresult", 500), ("runtime", "runtime.cudaError_t", 370)]
)
@pytest.mark.parametrize("status", [801, 0])
def test_every_function_survives_odd_arguments(new_stub, module, kind, count, status):
    """With a library that only answers `status`, nothing crashes, and what is returned is a tuple with a status."""
    stub = new_stub()
    assert stub(f"[FUNCTIONS.clear(), answer({status})]") == "[None, None]"
    texts = "cudaGetErrorName=error_text, cudaGetErrorString=error_text"
    assert stub(f"[FUNCTIONS.update({texts})]") == "[None]"
    assert stub(f"exec({ROBUSTNESS!r}, globals())") == "None"
    value = stub(f"every_function({module}, {kind})")
    assert value.isdigit() and int(value) > count, value


WITHOUT_A_LIBRARY = """
from cupola.bindings import driver, runtime, _provider
from cupola import pathfinder

def absent(*arguments):
    raise pathfinder.DynamicLibNotFoundError("not there")

pathfinder.load_nvidia_dynamic_lib = driver._open = absent
_provider._fall_back = absent
"""


@pytest.mark.parametrize("module", ["driver", "runtime"])
def test_every_function_survives_odd_arguments_without_a_library(run_python, module):
    program = ROBUSTNESS.replace(
        "            assert", "            assert name.startswith('cuda'), name\n            assert"
    )
    done = run_python(f"{WITHOUT_A_LIBRARY}{program}\nprint(every_function({module}, int))", CUPOLA_DEVICE="gpu")
    assert done.stdout.strip().isdigit(), done.stdout + done.stderr
