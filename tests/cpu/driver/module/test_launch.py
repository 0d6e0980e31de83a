"""Launches: limits and their explanations, parameters, attributes, kernels that wait, faults."""

from __future__ import annotations

import ctypes
import resource
import threading

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import compiled, explanation, launch, ok, pack, status

SOURCE = r"""
extern "C" __global__ void count(unsigned* x, unsigned n) { atomicAdd(x, n); }
extern "C" __global__ void nothing() {}
extern "C" __global__ void __launch_bounds__(64) bounded() {}
extern "C" __global__ void wait_for(volatile unsigned* flag, unsigned* seen) {
    while (*flag == 0) {}
    *seen = *flag;
}
extern "C" __global__ void mixed(unsigned* out, char a, double b, short c) { *out = a + (unsigned)b + c; }
extern "C" __global__ void last_byte(unsigned* out, unsigned n) {
    extern __shared__ unsigned char bytes[];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) bytes[i] = (unsigned char)(i % 251);
    __syncthreads();
    if (threadIdx.x == 0) *out = bytes[n - 1];
}
"""


@pytest.fixture
def kernel(context):
    module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    yield lambda name: ok(driver.cuModuleGetFunction(module, name.encode()))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuModuleUnload(module))


def address(memory, index=0):
    return ctypes.c_uint64(ctypes.addressof(memory) + 4 * index)


@pytest.mark.parametrize("grid, block", [(1, 1), (3, 32), ((2, 3, 4), (8, 4, 2)), (7, 1000), (1, 1024)])
def test_every_thread_of_every_block_runs(kernel, make_stream, memory, grid, block):
    stream = make_stream()
    ok(launch(kernel("count"), stream, address(memory), ctypes.c_uint32(3), grid=grid, block=block))
    ok(driver.cuStreamSynchronize(stream))
    size = 1
    for n in (grid if isinstance(grid, tuple) else (grid,)) + (block if isinstance(block, tuple) else (block,)):
        size *= n
    assert memory[0] == 3 * size


@pytest.mark.parametrize(
    "name, grid, block, shared, expected, says",
    [
        ("nothing", 1, (2048, 1, 1), 0, "CUDA_ERROR_INVALID_VALUE", "at most 1024 threads along x"),
        ("nothing", 1, (32, 32, 2), 0, "CUDA_ERROR_INVALID_VALUE", "2048 threads, but this device allows at most 1024"),
        ("nothing", 1, (1, 1, 65), 0, "CUDA_ERROR_INVALID_VALUE", "at most 64 threads along z"),
        ("nothing", (1, 65536, 1), 1, 0, "CUDA_ERROR_INVALID_VALUE", "at most 65535 blocks along y"),
        ("nothing", 0, 1, 0, "CUDA_ERROR_INVALID_VALUE", "no dimension may be 0"),
        ("nothing", 1, (1, 0, 1), 0, "CUDA_ERROR_INVALID_VALUE", "no dimension may be 0"),
        ("nothing", 1, 1, 49 << 10, "CUDA_ERROR_INVALID_VALUE", "MAX_DYNAMIC_SHARED_SIZE_BYTES"),
        ("nothing", 1, 1, 1 << 20, "CUDA_ERROR_INVALID_VALUE", "1048576 bytes"),
        ("bounded", 1, 65, 0, "CUDA_ERROR_INVALID_VALUE", "__launch_bounds__"),
    ],
)
@pytest.mark.cpu_only
def test_limits_are_explained(kernel, make_stream, name, grid, block, shared, expected, says):
    result = launch(kernel(name), make_stream(), grid=grid, block=block, shared=shared)
    assert status(result) == expected
    assert says in explanation(result)


def test_a_launch_that_is_refused_spoils_nothing(kernel, make_stream, memory):
    stream = make_stream()
    assert int(launch(kernel("nothing"), stream, block=4096)[0]) != 0
    ok(launch(kernel("count"), stream, address(memory), ctypes.c_uint32(1)))
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 1


def test_parameters_of_mixed_sizes(kernel, make_stream, memory):
    stream = make_stream()
    arguments = (address(memory), ctypes.c_byte(5), ctypes.c_double(70.5), ctypes.c_short(-3))
    ok(launch(kernel("mixed"), stream, *arguments))
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 72


def test_parameters_as_one_block_of_bytes(kernel, make_stream, memory):
    class Parameters(ctypes.Structure):
        _fields_ = [("x", ctypes.c_uint64), ("n", ctypes.c_uint32)]

    stream = make_stream()
    values = Parameters(ctypes.addressof(memory), 9)
    size = ctypes.c_size_t(12)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(values), 2, ctypes.addressof(size), 0)
    ok(driver.cuLaunchKernel(kernel("count"), 2, 1, 1, 1, 1, 1, 0, stream, 0, ctypes.addressof(extra)))
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 18


@pytest.mark.cpu_only
def test_parameters_that_are_missing(kernel, make_stream, memory):
    stream = make_stream()
    result = driver.cuLaunchKernel(kernel("count"), 1, 1, 1, 1, 1, 1, 0, stream, 0, 0)
    assert status(result) == "CUDA_ERROR_INVALID_VALUE" and "takes 2 parameters" in explanation(result)
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(memory), 0)
    result = driver.cuLaunchKernel(kernel("count"), 1, 1, 1, 1, 1, 1, 0, stream, ctypes.addressof(pointers), 0)
    assert status(result) == "CUDA_ERROR_INVALID_VALUE" and "parameter 1" in explanation(result)


def test_parameters_are_copied_by_the_launch(kernel, make_stream, memory, host):
    stream = make_stream()
    n = ctypes.c_uint32(4)
    ok(launch(kernel("count"), stream, address(memory), n))
    n.value = 1000
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 4


def test_dynamic_shared_memory(kernel, make_stream, memory):
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    optin = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    most = ok(driver.cuDeviceGetAttribute(optin, 0))
    function, stream = kernel("last_byte"), make_stream()
    ok(driver.cuFuncSetAttribute(function, attribute, most))
    for size in (1, 4000, 49152, most):
        ok(launch(function, stream, address(memory), ctypes.c_uint32(size), block=128, shared=size))
        ok(driver.cuStreamSynchronize(stream))
        assert memory[0] == (size - 1) % 251


def launch_config(stream, grid, block, *attributes):
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
    config.hStream = stream
    items = []
    for name, set_value in attributes:
        item = driver.CUlaunchAttribute()
        item.id = getattr(driver.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
        set_value(item.value)
        items.append(item)
    config.attrs = items
    config.numAttrs = len(items)
    return config


def test_launch_attributes(kernel, make_stream, make_event, memory):
    stream, event = make_stream(), make_event(2)

    def record(value):
        value.launchCompletionEvent.event = event

    config = launch_config(
        stream,
        4,
        8,
        ("COOPERATIVE", lambda v: setattr(v, "cooperative", 1)),
        ("PRIORITY", lambda v: setattr(v, "priority", -1)),
        ("PROGRAMMATIC_STREAM_SERIALIZATION", lambda v: setattr(v, "programmaticStreamSerializationAllowed", 1)),
    )
    pointers, _kept = pack(address(memory), ctypes.c_uint32(2))
    ok(driver.cuLaunchKernelEx(config, kernel("count"), ctypes.addressof(pointers), 0))
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 64
    config = launch_config(stream, 1, 1, ("LAUNCH_COMPLETION_EVENT", record))
    ok(driver.cuLaunchKernelEx(config, kernel("count"), ctypes.addressof(pointers), 0))
    ok(driver.cuEventSynchronize(event))
    ok(driver.cuStreamSynchronize(stream))


@pytest.mark.parametrize("name", ["LAUNCH_COMPLETION_EVENT", "PROGRAMMATIC_EVENT"])
@pytest.mark.parametrize(
    ("event_flags", "flags", "expected", "captured"),
    [
        (2, 0, "CUDA_SUCCESS", "CUDA_SUCCESS"),
        (2, 1, "CUDA_ERROR_ILLEGAL_STATE", "CUDA_ERROR_NOT_SUPPORTED"),
        (0, 0, "CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_NOT_SUPPORTED"),
        (0, 1, "CUDA_ERROR_ILLEGAL_STATE", "CUDA_ERROR_NOT_SUPPORTED"),
    ],
)
def test_events_of_launches(kernel, make_stream, make_event, name, event_flags, flags, expected, captured):
    stream, event = make_stream(), make_event(event_flags)

    def record(value):
        value.launchCompletionEvent.event, value.launchCompletionEvent.flags = event, flags

    config = launch_config(stream, 1, 1, (name, record))
    assert status(driver.cuLaunchKernelEx(config, kernel("nothing"), 0, 0)) == expected
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    assert status(driver.cuLaunchKernelEx(config, kernel("nothing"), 0, 0)) == captured
    ok(driver.cuGraphDestroy(ok(driver.cuStreamEndCapture(stream))))


def test_a_cooperative_launch_must_fit_on_the_device(kernel, make_stream):
    stream = make_stream()
    function = kernel("nothing")
    blocks = ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, 1024, 0))
    count = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    most = blocks * ok(driver.cuDeviceGetAttribute(count, 0))
    ok(driver.cuLaunchCooperativeKernel(function, most, 1, 1, 1024, 1, 1, 0, stream, 0))
    result = driver.cuLaunchCooperativeKernel(function, most + 1, 1, 1, 1024, 1, 1, 0, stream, 0)
    assert status(result) == "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"


def test_launching_on_the_default_streams(kernel, memory):
    for stream in (0, driver.CUstream(1), driver.CUstream(2)):
        ok(launch(kernel("count"), stream, address(memory), ctypes.c_uint32(1)))
    ok(driver.cuCtxSynchronize())
    assert memory[0] == 3


def test_a_kernel_that_waits_for_the_host_holds_up_no_other_stream(kernel, make_stream, make_event, memory):
    waiting, others, event = make_stream(), [make_stream() for _ in range(3)], make_event(2)
    count = kernel("count")
    # A GPU's driver loads a kernel at its first launch, which may have to wait for those that run.
    ok(launch(count, others[0], address(memory), ctypes.c_uint32(0)))
    ok(driver.cuStreamSynchronize(others[0]))
    go_on = threading.Timer(20, memory.__setitem__, (10, 1))  # whatever happens, the kernel ends
    go_on.start()
    try:
        ok(launch(kernel("wait_for"), waiting, address(memory, 10), address(memory, 11)))
        ok(driver.cuEventRecord(event, waiting))
        for stream in others:
            for _ in range(20):
                ok(launch(count, stream, address(memory), ctypes.c_uint32(1), grid=4, block=32))
        for stream in others:
            ok(driver.cuStreamSynchronize(stream))
        assert memory[0] == 3 * 20 * 4 * 32
        assert status(driver.cuStreamQuery(waiting)) == "CUDA_ERROR_NOT_READY"
        assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_NOT_READY"
    finally:
        go_on.cancel()
        go_on.join()
        memory[10] = 42
    ok(driver.cuStreamSynchronize(waiting))
    assert memory[11] == 42


@pytest.mark.cpu_only
def test_functions_of_a_destroyed_module_and_rubbish(context, make_stream):
    module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    function = ok(driver.cuModuleGetFunction(module, b"nothing"))
    ok(driver.cuModuleUnload(module))
    for handle in (function, driver.CUfunction(0xDEADBEEF), driver.CUfunction(0)):
        assert status(launch(handle, make_stream())) == "CUDA_ERROR_INVALID_HANDLE"


@pytest.mark.cpu_only
def test_a_launch_costs_little(kernel, make_stream):
    """No thread sleeps for each launch: neither the one that launches nor those that run the kernels."""
    stream, function = make_stream(), kernel("nothing")
    ok(launch(function, stream))
    ok(driver.cuStreamSynchronize(stream))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    for _ in range(2000):
        ok(launch(function, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before < 1000


# --- faults: in processes of their own, for they spoil the context ----------------------------------------

FAULTY = """
import ctypes
from cupola.bindings import driver as d
from tests.cpu.driver.calls import compiled, explanation, launch, ok, status
SOURCE = r'''
extern "C" __global__ void store(int* x, int i) { x[i] = 1; }
extern "C" __global__ void stop() { __trap(); }
extern "C" __global__ void fine(int* x) { *x = 5; }
'''
ok(d.cuInit(0))
context = ok(d.cuDevicePrimaryCtxRetain(0))
ok(d.cuCtxSetCurrent(context))
module = ok(d.cuModuleLoadData(compiled(SOURCE)))
def kernel(name): return ok(d.cuModuleGetFunction(module, name))
stream, other, event = ok(d.cuStreamCreate(1)), ok(d.cuStreamCreate(1)), ok(d.cuEventCreate(2))
memory = ok(d.cuMemAlloc(64))
pointer = ctypes.c_uint64(int(memory))
"""


@pytest.mark.parametrize(
    "call, expected",
    [
        ("launch(kernel(b'store'), stream, pointer, ctypes.c_int(1 << 28))", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("launch(kernel(b'stop'), stream)", "CUDA_ERROR_LAUNCH_FAILED"),
    ],
)
def test_an_asynchronous_error_sticks_to_the_context(run_python, call, expected):
    done = run_python(f"""{FAULTY}
fine = kernel(b'fine')
ok({call})
found = d.cuStreamSynchronize(stream)[0]
# To a GPU, an address this far off may also be one of another address space.
assert found.name in ({expected!r}, "CUDA_ERROR_INVALID_ADDRESS_SPACE"), found
for again in (d.cuCtxSynchronize, lambda: d.cuStreamSynchronize(other), lambda: d.cuStreamQuery(other),
              lambda: d.cuMemAlloc(64), lambda: launch(fine, other, pointer), lambda: d.cuStreamCreate(0),
              lambda: d.cuEventRecord(event, other), lambda: d.cuMemcpyDtoH(bytearray(4), memory, 4)):
    assert int(again()[0]) in (int(found), 719), again()
assert int(d.cuCtxGetCurrent()[1]) == int(context)
""")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.cpu_only
def test_the_error_is_explained_and_a_reset_clears_it(run_python):
    done = run_python(f"""{FAULTY}
ok(launch(kernel(b"store"), stream, pointer, ctypes.c_int(16)))
result = d.cuStreamSynchronize(stream)
text = explanation(result)
for part in ("store", "test.cu", "64"):
    assert part in text, text
result = d.cuMemAlloc(16)
assert explanation(result) == text, explanation(result)
ok(d.cuModuleUnload(module))
assert explanation(d.cuMemAlloc(16)) == text
ok(d.cuDevicePrimaryCtxReset(0))
assert status(d.cuMemAlloc(16)) == "CUDA_ERROR_CONTEXT_IS_DESTROYED"
ok(d.cuDevicePrimaryCtxRetain(0))
module = ok(d.cuModuleLoadData(compiled(SOURCE)))
memory = ok(d.cuMemAlloc(64))
stream = ok(d.cuStreamCreate(1))
ok(launch(kernel(b"fine"), stream, ctypes.c_uint64(int(memory))))
ok(d.cuStreamSynchronize(stream))
value = ctypes.c_int()
ok(d.cuMemcpyDtoH(ctypes.addressof(value), memory, 4))
assert value.value == 5
""")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.cpu_only
def test_the_process_may_exit_while_a_kernel_runs(run_python):
    done = run_python(f"""{FAULTY}
spin = compiled('extern "C" __global__ void spin(volatile int* x) {{ while (*x == 0) {{}} }}')
function = ok(d.cuModuleGetFunction(ok(d.cuModuleLoadData(spin)), b"spin"))
ok(d.cuMemsetD32(memory, 0, 16))
for s in (stream, other):
    ok(launch(function, s, pointer, block=64))
print("left it running")
""")
    assert done.returncode == 0 and "left it running" in done.stdout, done.stdout + done.stderr
