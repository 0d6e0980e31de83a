"""Modules and libraries: loading, names, variables, attributes, unloading."""

from __future__ import annotations

import ctypes
import threading

import pytest

from cupola.bindings import driver
from cupola.cpu.compiler import modules
from tests.cpu.driver.calls import compiled, driver_version, explanation, launch, ok, status

SOURCE = r"""
__constant__ int factors[4] = {2, 3, 5, 7};
__device__ int total = 100;
__device__ int* pointer = &total;
__device__ float scratch[64];
struct Pair { double first; int second; };
extern "C" __global__ void scale(int* x, char which) { x[threadIdx.x] *= factors[which]; }
extern "C" __global__ void through_pointer(int* x) { *x = *pointer; }
extern "C" __global__ void take(Pair* out, Pair value, short tail) { *out = value; out->second += tail; }
extern "C" __global__ void __launch_bounds__(96) bounded() {}
extern "C" __global__ void shared_bytes(float* x) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[255 - threadIdx.x];
}
"""
KERNELS = {"scale", "through_pointer", "take", "bounded", "shared_bytes"}
ATTRIBUTE = driver.CUfunction_attribute


@pytest.fixture(params=["ptx", "cubin", "large"])
def module(context, request, monkeypatch):
    if request.param == "large":  # its kernels are read one by one
        monkeypatch.setattr(modules, "LARGE_CHARACTERS", 0)
    loaded = ok(driver.cuModuleLoadData(compiled(SOURCE, "ptx" if request.param == "ptx" else "cubin")))
    yield loaded
    ok(driver.cuModuleUnload(loaded))


@pytest.fixture
def library(context):
    loaded = ok(driver.cuLibraryLoadData(compiled(SOURCE), [], [], 0, [], [], 0))
    yield loaded
    ok(driver.cuLibraryUnload(loaded))


def test_functions_of_a_module(module):
    assert ok(driver.cuModuleGetFunctionCount(module)) == len(KERNELS)
    functions = ok(driver.cuModuleEnumerateFunctions(len(KERNELS), module))
    names = {ok(driver.cuFuncGetName(f)).decode() for f in functions}
    assert names == KERNELS
    scale = ok(driver.cuModuleGetFunction(module, b"scale"))
    assert int(scale) in {int(f) for f in functions}
    assert int(ok(driver.cuFuncGetModule(scale))) == int(module)


def test_variables_have_their_initial_values(module):
    address, size = ok(driver.cuModuleGetGlobal(module, b"factors"))
    values = (ctypes.c_int * 4)()
    ok(driver.cuMemcpyDtoH(ctypes.addressof(values), address, 16))
    assert (size, list(values)) == (16, [2, 3, 5, 7])
    address, size = ok(driver.cuModuleGetGlobal(module, b"scratch"))
    zeros = (ctypes.c_float * 64)(*[1] * 64)
    ok(driver.cuMemcpyDtoH(ctypes.addressof(zeros), address, 256))
    assert (size, list(zeros)) == (256, [0] * 64)


def test_kernels_see_variables_that_the_host_changes(module, make_stream, memory):
    stream = make_stream()
    address, _ = ok(driver.cuModuleGetGlobal(module, b"factors"))
    ok(driver.cuMemcpyHtoD(address, (ctypes.c_int * 4)(11, 12, 13, 14), 16))
    memory[0:2] = [1, 2]
    scale = ok(driver.cuModuleGetFunction(module, b"scale"))
    ok(launch(scale, stream, ctypes.c_uint64(ctypes.addressof(memory)), ctypes.c_byte(2), block=2))
    ok(driver.cuStreamSynchronize(stream))
    assert list(memory[0:2]) == [13, 26]


def test_a_variable_may_hold_the_address_of_another(module, make_stream, memory):
    stream = make_stream()
    function = ok(driver.cuModuleGetFunction(module, b"through_pointer"))
    ok(launch(function, stream, ctypes.c_uint64(ctypes.addressof(memory))))
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 100


def test_each_module_has_variables_of_its_own(context):
    first, second = (ok(driver.cuModuleLoadData(compiled(SOURCE))) for _ in range(2))
    addresses = {int(ok(driver.cuModuleGetGlobal(m, b"total"))[0]) for m in (first, second)}
    assert len(addresses) == 2
    for loaded in (first, second):
        ok(driver.cuModuleUnload(loaded))


def test_names_that_are_not_there(module):
    for call in (driver.cuModuleGetFunction, driver.cuModuleGetGlobal):
        assert status(call(module, b"nonsense")) == "CUDA_ERROR_NOT_FOUND"


@pytest.mark.cpu_only
def test_the_explanation_lists_what_is_there(module):
    assert "shared_bytes" in explanation(driver.cuModuleGetFunction(module, b"nonsense"))
    assert "factors" in explanation(driver.cuModuleGetGlobal(module, b"nonsense"))


def test_parameters(module):
    take = ok(driver.cuModuleGetFunction(module, b"take"))
    if driver_version() >= 13020:
        assert ok(driver.cuFuncGetParamCount(take)) == 3
    assert [ok(driver.cuFuncGetParamInfo(take, i)) for i in range(3)] == [(0, 8), (8, 16), (24, 2)]
    assert status(driver.cuFuncGetParamInfo(take, 3)) == "CUDA_ERROR_INVALID_VALUE"


@pytest.mark.parametrize(
    "kernel, attribute, value",
    [
        ("bounded", "MAX_THREADS_PER_BLOCK", 96),
        ("scale", "MAX_THREADS_PER_BLOCK", 1024),
        ("shared_bytes", "SHARED_SIZE_BYTES", 1024),
        ("scale", "SHARED_SIZE_BYTES", 0),
        ("shared_bytes", "MAX_DYNAMIC_SHARED_SIZE_BYTES", 47 << 10),
        ("scale", "LOCAL_SIZE_BYTES", 0),
        ("scale", "PREFERRED_SHARED_MEMORY_CARVEOUT", -1),
    ],
)
def test_attributes(module, library, kernel, attribute, value):
    attribute = getattr(ATTRIBUTE, f"CU_FUNC_ATTRIBUTE_{attribute}")
    function = ok(driver.cuModuleGetFunction(module, kernel.encode()))
    assert ok(driver.cuFuncGetAttribute(attribute, function)) == value
    of_library = ok(driver.cuLibraryGetKernel(library, kernel.encode()))
    assert ok(driver.cuKernelGetAttribute(attribute, of_library, 0)) == value


def test_registers_are_those_of_the_cubin(context):
    loaded = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    function = ok(driver.cuModuleGetFunction(loaded, b"scale"))
    assert 4 <= ok(driver.cuFuncGetAttribute(ATTRIBUTE.CU_FUNC_ATTRIBUTE_NUM_REGS, function)) <= 24
    ok(driver.cuModuleUnload(loaded))


def test_dynamic_shared_memory_can_be_raised(module):
    attribute = ATTRIBUTE.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    optin = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    limit = ok(driver.cuDeviceGetAttribute(optin, 0))
    function = ok(driver.cuModuleGetFunction(module, b"shared_bytes"))
    ok(driver.cuFuncSetAttribute(function, attribute, limit - 1024))
    assert ok(driver.cuFuncGetAttribute(attribute, function)) == limit - 1024
    assert status(driver.cuFuncSetAttribute(function, attribute, limit)) == "CUDA_ERROR_INVALID_VALUE"


def test_kernels_of_a_library(library, context):
    assert ok(driver.cuLibraryGetKernelCount(library)) == len(KERNELS)
    kernels = ok(driver.cuLibraryEnumerateKernels(len(KERNELS), library))
    assert {ok(driver.cuKernelGetName(k)).decode() for k in kernels} == KERNELS
    kernel = ok(driver.cuLibraryGetKernel(library, b"take"))
    assert ok(driver.cuKernelGetParamInfo(kernel, 1)) == (8, 16)
    assert int(ok(driver.cuKernelGetLibrary(kernel))) == int(library)
    function = ok(driver.cuKernelGetFunction(kernel))
    assert int(ok(driver.cuFuncGetModule(function))) == int(ok(driver.cuLibraryGetModule(library)))
    assert status(driver.cuLibraryGetKernel(library, b"nonsense")) == "CUDA_ERROR_NOT_FOUND"
    assert status(driver.cuModuleUnload(ok(driver.cuLibraryGetModule(library)))) == "CUDA_ERROR_NOT_PERMITTED"


def test_a_kernel_is_taken_for_a_function(library, make_stream, memory):
    kernel = ok(driver.cuLibraryGetKernel(library, b"through_pointer"))
    stream = make_stream()
    as_function = driver.CUfunction(int(kernel))
    ok(launch(as_function, stream, ctypes.c_uint64(ctypes.addressof(memory))))
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 100
    assert ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(as_function, 64, 0)) > 0


def test_globals_of_a_library(library):
    _, size = ok(driver.cuLibraryGetGlobal(library, b"scratch"))
    assert size == 256
    assert status(driver.cuLibraryGetManaged(library, b"scratch")) == "CUDA_ERROR_NOT_FOUND"


@pytest.mark.cpu_only
def test_a_library_in_two_contexts(library, context):
    kernel = ok(driver.cuLibraryGetKernel(library, b"scale"))
    first = ok(driver.cuKernelGetFunction(kernel))
    own = ok(driver.cuCtxCreate(None, 0, 0))
    second = ok(driver.cuKernelGetFunction(kernel))
    assert int(first) != int(second)
    ok(driver.cuCtxDestroy(own))
    assert int(ok(driver.cuKernelGetFunction(kernel))) == int(first)
    assert status(driver.cuFuncGetName(second)) == "CUDA_ERROR_INVALID_HANDLE"


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    "image, expected",
    [
        (
            b".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() { foo.bar; }\0",
            "CUDA_ERROR_INVALID_PTX",
        ),
        (b"hello\0", "CUDA_ERROR_INVALID_PTX"),
        (b"\0", "CUDA_ERROR_INVALID_IMAGE"),
    ],
)
def test_images_that_cannot_be_loaded(context, image, expected):
    result = driver.cuModuleLoadData(image)
    assert status(result) in (expected, "CUDA_ERROR_INVALID_IMAGE")
    assert explanation(result)
    loaded = driver.cuLibraryLoadData(image, [], [], 0, [], [], 0)
    if b".version" in image:  # compiled when the first kernel is asked for, and then as often as one is
        for _ in range(2):
            refused = driver.cuLibraryGetKernel(ok(loaded), b"k")
            assert status(refused) == status(result) and "foo.bar" in explanation(refused)
        assert status(driver.cuLibraryGetKernelCount(loaded[1])) == status(result)
        ok(driver.cuLibraryUnload(loaded[1]))
    else:
        assert status(loaded) == status(result)


@pytest.mark.cpu_only
def test_libraries_are_compiled_at_once_when_that_is_asked_for(run_python):
    done = run_python(
        """
from cupola.bindings import driver as d
from tests.cpu.driver.calls import ok, status
ok(d.cuInit(0))
image = b".version 9.0\\n.target sm_90\\n.address_size 64\\n.visible .entry k() { foo.bar; }\\0"
print(status(d.cuLibraryLoadData(image, [], [], 0, [], [], 0)))
""",
        CUDA_MODULE_LOADING="EAGER",
    )
    assert done.stdout.strip() == "CUDA_ERROR_INVALID_PTX", done.stderr


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    "model, target, kind, expected",
    [
        ("h200", "sm_80", "ptx", "CUDA_SUCCESS"),
        ("h200", "sm_90a", "ptx", "CUDA_SUCCESS"),
        ("h200", "sm_100", "ptx", "CUDA_ERROR_INVALID_PTX"),
        ("b200", "sm_90a", "ptx", "CUDA_ERROR_INVALID_PTX"),
        ("b200", "sm_100f", "ptx", "CUDA_SUCCESS"),
        ("t4", "sm_80", "ptx", "CUDA_ERROR_INVALID_PTX"),
        ("l4", "sm_89", "ptx", "CUDA_SUCCESS"),
        ("l4", "sm_90", "ptx", "CUDA_ERROR_INVALID_PTX"),
        ("rtx5090", "sm_100", "ptx", "CUDA_SUCCESS"),
        ("rtx5090", "sm_120a", "ptx", "CUDA_SUCCESS"),
        ("rtx5090", "sm_100f", "ptx", "CUDA_ERROR_INVALID_PTX"),
        ("h200", "sm_90", "cubin", "CUDA_SUCCESS"),
        ("h200", "sm_80", "cubin", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("h200", "sm_90", "bare", "CUDA_SUCCESS"),
        ("h200", "sm_90a", "bare", "CUDA_SUCCESS"),
        ("h200", "sm_80", "bare", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("h200", "sm_120", "bare", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("b200", "sm_100f", "bare", "CUDA_SUCCESS"),
        ("b200", "sm_100a", "bare", "CUDA_SUCCESS"),
        ("b200", "sm_103", "bare", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("b200", "sm_90a", "cubin", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("l4", "sm_80", "bare", "CUDA_SUCCESS"),
        ("l4", "sm_89", "cubin", "CUDA_SUCCESS"),
        ("a100", "sm_86", "bare", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("rtx5090", "sm_120a", "bare", "CUDA_SUCCESS"),
        ("rtx5090", "sm_100", "bare", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
    ],
)
def test_an_image_must_be_for_the_modelled_gpu(run_python, model, target, kind, expected):
    done = run_python(
        f"""
from cupola.bindings import driver as d
from tests.cpu.driver.calls import compiled, explanation, ok, status
ok(d.cuInit(0))
ok(d.cuCtxSetCurrent(ok(d.cuDevicePrimaryCtxRetain(0))))
image = compiled('extern "C" __global__ void k() {{}}', {"ptx" if kind == "ptx" else "cubin"!r}, {target!r})
if {kind == "bare"}:  # as NVIDIA's compilers make it, with the PTX in a section
    image = image[:image.index(b"cupolaPT")]
result = d.cuModuleLoadData(image)
assert status(result) == {expected!r}, (status(result), explanation(result))
assert status(result) == "CUDA_SUCCESS" or "is for {target}, " in explanation(result), explanation(result)
""",
        CUPOLA_CPU_MODEL=model,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_error_log_of_the_just_in_time_compiler(context):
    option = driver.CUjit_option
    log = bytearray(2000)
    options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    image = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n  foo.bar %r1;\n}\0"
    assert status(driver.cuModuleLoadDataEx(image, 2, options, [log, len(log)])) == "CUDA_ERROR_INVALID_PTX"
    assert b"foo" in log


GOOD_AND_BAD = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry bad(.param .u64 p) {
  .shared .b8 s[16];
  foo.bar %r1;
}
.visible .entry good() { ret; }
\0"""


@pytest.mark.cpu_only
def test_a_large_module_with_an_error_in_one_kernel(context, monkeypatch):
    monkeypatch.setattr(modules, "LARGE_CHARACTERS", 0)
    loaded = ok(driver.cuModuleLoadData(GOOD_AND_BAD))
    assert ok(driver.cuModuleGetFunctionCount(loaded)) == 2
    for _ in range(2):
        result = driver.cuModuleGetFunction(loaded, b"bad")
        assert status(result) == "CUDA_ERROR_INVALID_PTX" and "foo" in explanation(result)
    assert status(driver.cuModuleEnumerateFunctions(2, loaded)) == "CUDA_ERROR_INVALID_PTX"
    ok(launch(ok(driver.cuModuleGetFunction(loaded, b"good")), None))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuModuleUnload(loaded))
    library = ok(driver.cuLibraryLoadData(GOOD_AND_BAD, [], [], 0, [], [], 0))
    ok(driver.cuLibraryGetKernel(library, b"good"))
    assert status(driver.cuLibraryGetKernel(library, b"bad")) == "CUDA_ERROR_INVALID_PTX"
    ok(driver.cuLibraryUnload(library))


@pytest.mark.cpu_only
def test_a_large_module_is_read_at_once_for_those_who_want_to_know(context, monkeypatch):
    monkeypatch.setattr(modules, "LARGE_CHARACTERS", 0)
    option = driver.CUjit_option
    log = bytearray(2000)
    options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    result = driver.cuModuleLoadDataEx(GOOD_AND_BAD, 2, options, [log, len(log)])
    assert status(result) == "CUDA_ERROR_INVALID_PTX" and b"foo" in log
    monkeypatch.setenv("CUDA_MODULE_LOADING", "eager")
    assert status(driver.cuModuleLoadData(GOOD_AND_BAD)) == "CUDA_ERROR_INVALID_PTX"


@pytest.mark.cpu_only
def test_what_is_known_of_a_large_module_is_recalled(context, monkeypatch):
    monkeypatch.setattr(modules, "LARGE_CHARACTERS", 0)
    code = compiled(SOURCE, "ptx")
    first, second = modules.load_image(code), modules.load_image(code)
    bounded = next(i for i, (name, _) in enumerate(first.entries) if name == "bounded")
    assert first.is_lazy and first.kernels[bounded].max_threads == 96
    monkeypatch.setattr(modules.LoadedModule, "parsed", lambda self: pytest.fail("it is read again"))
    assert second.kernels[bounded] == first.kernels[bounded] and len(second.kernels) == len(KERNELS)


def test_a_module_may_go_while_its_kernel_is_queued(context, host, make_stream, memory):
    stream = make_stream()
    loaded = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    function = ok(driver.cuModuleGetFunction(loaded, b"through_pointer"))
    ok(launch(function, stream, ctypes.c_uint64(ctypes.addressof(memory))))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuModuleUnload(loaded))
    assert memory[0] == 100


@pytest.mark.cpu_only
def test_unloading_a_module_waits_for_its_queued_launches(context, host, make_stream, memory):
    """Its variables are memory, which goes when nothing uses it any more, as with cuMemFree."""
    stream = make_stream()
    loaded = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    function = ok(driver.cuModuleGetFunction(loaded, b"through_pointer"))
    host.block(stream)
    ok(launch(function, stream, ctypes.c_uint64(ctypes.addressof(memory))))
    assert memory[0] == 0
    later = threading.Timer(0.1, host.release)
    later.start()
    ok(driver.cuModuleUnload(loaded))
    assert memory[0] == 100
    assert status(driver.cuFuncGetName(function)) == "CUDA_ERROR_INVALID_HANDLE"
    later.join()
    ok(driver.cuStreamSynchronize(stream))


def test_a_cubin_survives_a_file(context, tmp_path):
    path = tmp_path / "test.cubin"
    path.write_bytes(compiled(SOURCE))
    loaded = ok(driver.cuModuleLoad(str(path).encode()))
    assert ok(driver.cuModuleGetFunctionCount(loaded)) == len(KERNELS)
    ok(driver.cuModuleUnload(loaded))
    kept = ok(driver.cuLibraryLoadFromFile(str(path).encode(), [], [], 0, [], [], 0))
    ok(driver.cuLibraryUnload(kept))
    assert status(driver.cuModuleLoad(str(tmp_path / "missing").encode())) == "CUDA_ERROR_FILE_NOT_FOUND"


@pytest.mark.cpu_only
def test_a_file_that_is_cut_off_is_refused(context, tmp_path):
    path = tmp_path / "test.cubin"
    path.write_bytes(compiled(SOURCE)[:-100])
    assert status(driver.cuModuleLoad(str(path).encode())) in (
        "CUDA_ERROR_INVALID_IMAGE",
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
    )


def test_the_linker_makes_an_image_of_ptx(context, make_stream, memory):
    ptx = compiled(SOURCE, "ptx")
    state = ok(driver.cuLinkCreate(0, [], []))
    kind = driver.CUjitInputType.CU_JIT_INPUT_PTX
    ok(driver.cuLinkAddData(state, kind, ptx, len(ptx), b"test.ptx", 0, [], []))
    image, size = ok(driver.cuLinkComplete(state))
    loaded = ok(driver.cuModuleLoadData(ctypes.string_at(int(image), size)))
    ok(driver.cuLinkDestroy(state))
    stream = make_stream()
    function = ok(driver.cuModuleGetFunction(loaded, b"through_pointer"))
    ok(launch(function, stream, ctypes.c_uint64(ctypes.addressof(memory))))
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 100
    ok(driver.cuModuleUnload(loaded))


def test_the_linker_refuses_what_is_no_ptx(context):
    option = driver.CUjit_option
    log = bytearray(1000)
    options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    state = ok(driver.cuLinkCreate(2, options, [log, len(log)]))
    text = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n  foo.bar %r1;\n}\0"
    result = driver.cuLinkAddData(state, driver.CUjitInputType.CU_JIT_INPUT_PTX, text, len(text), b"t", 0, [], [])
    assert status(result) == "CUDA_ERROR_INVALID_PTX"
    assert b"foo" in log
    ok(driver.cuLinkDestroy(state))
