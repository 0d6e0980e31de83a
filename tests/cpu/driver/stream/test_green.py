"""Green contexts: their life, their streams, where their kernels run, events of all their streams."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import compiled, driver_version, explanation, ok, pack, status

SM = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
DEFAULT_STREAM = 1
GONE = {"CUDA_ERROR_STREAM_DETACHED", "CUDA_ERROR_CONTEXT_IS_DESTROYED"}
"""What calls on a stream of a destroyed green context say: since CUDA 13.1 the first, before the second."""

SOURCE = r"""
extern "C" __global__ void where(unsigned* seen, unsigned* count) {
    unsigned smid, nsmid;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(nsmid));
    if (threadIdx.x == 0) seen[blockIdx.x] = smid;
    if (threadIdx.x == 0 && blockIdx.x == 0) *count = nsmid;
    for (long long begin = clock64(); clock64() - begin < 20000;) ;
}
extern "C" __global__ void add(unsigned* x) { atomicAdd(x, 1); }
extern "C" __global__ void wait_for(volatile unsigned* flag) { while (!*flag) ; }
extern "C" __global__ void set(volatile unsigned* flag) { *flag = 1; }
"""

pytestmark = pytest.mark.skipif(
    not on_cpu_device() and driver_version() < 12050, reason="the driver is older than CUDA 12.5"
)


@pytest.fixture
def kernel(context):
    module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    yield lambda name: ok(driver.cuModuleGetFunction(module, name.encode()))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuModuleUnload(module))


@pytest.fixture
def make_green(context):
    """make_green(count, groups=1): green contexts of groups of so many multiprocessors; the last is the rest."""
    made = []

    def make(count: int = 8, groups: int = 1) -> Any:
        whole = ok(driver.cuDeviceGetDevResource(0, SM))
        parts, found, rest = ok(driver.cuDevSmResourceSplitByCount(groups, whole, 0, count))
        greens = []
        for part in [*parts[:found], rest]:
            description = ok(driver.cuDevResourceGenerateDesc([part], 1))
            greens.append(ok(driver.cuGreenCtxCreate(description, 0, DEFAULT_STREAM)))
        made.extend(greens)
        return greens

    yield make
    ok(driver.cuCtxSetCurrent(context))
    for green in made:
        driver.cuGreenCtxDestroy(green)


def as_context(green: Any) -> Any:
    return ok(driver.cuCtxFromGreenCtx(green))


def launch(stream: Any, function: Any, *arguments: Any, grid: int = 1, block: int = 1) -> Any:
    pointers, _kept = pack(*arguments)
    return driver.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, ctypes.addressof(pointers), 0)


def places(stream: Any, where: Any, grid: int = 500) -> tuple[set[int], int]:
    """The multiprocessors on which blocks of a launch ran, and %nsmid."""
    address = ok(driver.cuMemAlloc(4 * grid + 4))
    ok(
        launch(
            stream, where, ctypes.c_uint64(int(address)), ctypes.c_uint64(int(address) + 4 * grid), grid=grid, block=32
        )
    )
    ok(driver.cuStreamSynchronize(stream))
    seen = (ctypes.c_uint32 * (grid + 1))()
    ok(driver.cuMemcpyDtoH(ctypes.addressof(seen), address, ctypes.sizeof(seen)))
    ok(driver.cuMemFree(address))
    return set(seen[:grid]), seen[grid]


# ---- life ------------------------------------------------------------------------------------------------------------


def test_a_green_context_as_a_context(context, make_green):
    green, _rest = make_green()
    itself = as_context(green)
    assert int(itself) == int(as_context(green)) != int(context)
    assert int(ok(driver.cuCtxGetDevice_v2(itself))) == 0
    assert ok(driver.cuCtxGetId(itself)) != ok(driver.cuCtxGetId(context))
    ok(driver.cuCtxSetCurrent(itself))
    assert int(ok(driver.cuCtxGetCurrent())) == int(itself)
    ok(driver.cuCtxSynchronize())
    ok(driver.cuMemFree(ok(driver.cuMemAlloc(64))))
    assert status(driver.cuCtxDestroy(itself)) == "CUDA_ERROR_INVALID_CONTEXT"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [(1, "CUDA_SUCCESS"), (2, "CUDA_ERROR_INVALID_VALUE"), (3, "CUDA_ERROR_INVALID_VALUE")],
)
def test_flags(context, flags, expected):
    description = ok(driver.cuDevResourceGenerateDesc([ok(driver.cuDeviceGetDevResource(0, SM))], 1))
    result = driver.cuGreenCtxCreate(description, 0, flags)
    assert status(result) == expected
    if result[1]:
        ok(driver.cuGreenCtxDestroy(result[1]))


def test_it_retains_the_primary_context():
    """In a process of its own kind of state: nobody else may retain the context here."""
    ok(driver.cuInit(0))
    before = ok(driver.cuDevicePrimaryCtxGetState(0))[1]
    description = ok(driver.cuDevResourceGenerateDesc([ok(driver.cuDeviceGetDevResource(0, SM))], 1))
    green = ok(driver.cuGreenCtxCreate(description, 0, DEFAULT_STREAM))
    assert ok(driver.cuDevicePrimaryCtxGetState(0))[1] == 1
    assert status(driver.cuDevicePrimaryCtxReset(0)) == "CUDA_ERROR_NOT_PERMITTED"
    if not before:
        assert status(driver.cuDevicePrimaryCtxRelease(0)) == "CUDA_ERROR_NOT_PERMITTED"
    ok(driver.cuGreenCtxDestroy(green))
    if on_cpu_device():  # on an H200 it stays active after the calls that were refused
        assert ok(driver.cuDevicePrimaryCtxGetState(0))[1] == before


@pytest.mark.parametrize(
    "call",
    [
        driver.cuGreenCtxDestroy,
        driver.cuCtxFromGreenCtx,
        lambda green: driver.cuGreenCtxGetDevResource(green, SM),
        lambda green: driver.cuGreenCtxStreamCreate(green, 1, 0),
        lambda green: driver.cuGreenCtxRecordEvent(green, 0),
    ],
)
def test_a_green_context_that_is_gone(make_green, call):
    green, _rest = make_green()
    ok(driver.cuGreenCtxDestroy(green))
    assert status(call(green)) == "CUDA_ERROR_CONTEXT_IS_DESTROYED"
    if on_cpu_device():
        assert "destroyed" in explanation(call(green))
        assert status(call(0)) == "CUDA_ERROR_INVALID_CONTEXT"


def test_destroyed_while_current(context, make_green):
    green, _rest = make_green()
    ok(driver.cuCtxPushCurrent(as_context(green)))
    ok(driver.cuGreenCtxDestroy(green))
    for call in (driver.cuCtxSynchronize, lambda: driver.cuMemAlloc(64), lambda: driver.cuStreamCreate(1)):
        assert status(call()) == "CUDA_ERROR_CONTEXT_IS_DESTROYED"
    ok(driver.cuCtxPopCurrent())
    assert int(ok(driver.cuCtxGetCurrent())) == int(context)


def test_what_was_made_in_it_belongs_to_the_primary_context(context, make_green, kernel):
    green, _rest = make_green()
    ok(driver.cuCtxSetCurrent(as_context(green)))
    address, event = ok(driver.cuMemAlloc(64)), ok(driver.cuEventCreate(0))
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT
    assert int(ok(driver.cuPointerGetAttribute(kind, address))) == int(context)
    ok(driver.cuCtxSetCurrent(context))
    ok(driver.cuGreenCtxDestroy(green))
    ok(driver.cuMemsetD8(address, 1, 64))
    ok(driver.cuMemFree(address))
    ok(driver.cuEventRecord(event, 0))
    ok(driver.cuEventSynchronize(event))
    ok(driver.cuEventDestroy(event))


# ---- streams ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [0, 2])
def test_streams_are_non_blocking(make_green, flags):
    green, _rest = make_green()
    assert status(driver.cuGreenCtxStreamCreate(green, flags, 0)) == "CUDA_ERROR_INVALID_VALUE"


def test_streams(context, make_green):
    green, _rest = make_green()
    itself = as_context(green)
    ok(driver.cuCtxSetCurrent(itself))
    streams = [
        ok(driver.cuGreenCtxStreamCreate(green, 1, -99)),
        ok(driver.cuStreamCreate(1)),
        ok(driver.cuStreamCreate(0)),
    ]
    ok(driver.cuCtxSetCurrent(context))
    assert ok(driver.cuStreamGetPriority(streams[0])) == -5
    for stream in streams:
        assert ok(driver.cuStreamGetFlags(stream)) == 1
        assert int(ok(driver.cuStreamGetCtx(stream))) == int(itself)
        both = ok(driver.cuStreamGetCtx_v2(stream))
        assert (int(both[0]), int(both[1])) == (int(context), int(green))
        assert int(ok(driver.cuStreamGetGreenCtx(stream))) == int(green)
        ok(driver.cuStreamDestroy(stream))


def test_the_default_stream_of_a_green_context(context, make_green, kernel):
    green, _rest = make_green(8)
    ok(driver.cuCtxSetCurrent(as_context(green)))
    for stream in (0, 1):
        assert int(ok(driver.cuStreamGetGreenCtx(stream))) == int(green)
        assert len(places(stream, kernel("where"))[0]) == 8
    assert status(driver.cuStreamSynchronize(2)) == "CUDA_ERROR_INVALID_HANDLE"  # that of the thread
    ok(driver.cuCtxSetCurrent(context))
    assert int(ok(driver.cuStreamGetGreenCtx(0))) == 0


def test_streams_end_with_their_green_context(context, make_green, host, kernel):
    green, _rest = make_green()
    stream = ok(driver.cuGreenCtxStreamCreate(green, 1, 0))
    event = ok(driver.cuEventCreate(0))
    host.block(stream)
    ok(driver.cuEventRecord(event, stream))
    ok(driver.cuGreenCtxDestroy(green))
    assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_NOT_READY"
    for call in (
        driver.cuStreamQuery,
        driver.cuStreamSynchronize,
        driver.cuStreamGetCtx,
        driver.cuStreamGetFlags,
        lambda stream: driver.cuEventRecord(event, stream),
        lambda stream: launch(stream, kernel("where"), ctypes.c_uint64(0), ctypes.c_uint64(0)),
    ):
        assert status(call(stream)) in GONE
    host.release()
    ok(driver.cuEventSynchronize(event))  # what was queued is done
    ok(driver.cuEventDestroy(event))
    destroyed = driver.cuStreamDestroy(stream)
    assert status(destroyed) == "CUDA_SUCCESS" or not on_cpu_device()


def test_a_capture_ends_with_its_green_context(make_green):
    green, _rest = make_green()
    stream = ok(driver.cuGreenCtxStreamCreate(green, 1, 0))
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    ok(driver.cuGreenCtxDestroy(green))
    assert status(driver.cuStreamEndCapture(stream)) in GONE
    if on_cpu_device():
        ok(driver.cuStreamDestroy(stream))


# ---- where kernels run -----------------------------------------------------------------------------------------------


def test_kernels_run_on_their_part(make_green, make_stream, kernel):
    greens = make_green(16, 2)
    count = ok(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0))
    used: list[set[int]] = []
    for green in greens:
        stream = ok(driver.cuGreenCtxStreamCreate(green, 1, 0))
        found, number = places(stream, kernel("where"))
        assert len(found) == ok(driver.cuGreenCtxGetDevResource(green, SM)).sm.smCount
        assert number == count  # %nsmid is that of the device
        used.append(found)
        ok(driver.cuStreamDestroy(stream))
    assert set.union(*used) == set(range(count)) and sum(map(len, used)) == count
    assert places(make_stream(), kernel("where"))[0] == set(range(count))


def test_a_part_of_a_part(context, make_green, kernel):
    green, _rest = make_green(32)
    mine = ok(driver.cuGreenCtxGetDevResource(green, SM))
    parts, found, rest = ok(driver.cuDevSmResourceSplitByCount(1, mine, 0, 8))
    assert found == 1 and parts[0].sm.smCount + rest.sm.smCount == mine.sm.smCount
    inner = ok(driver.cuGreenCtxCreate(ok(driver.cuDevResourceGenerateDesc(parts[:1], 1)), 0, DEFAULT_STREAM))
    outside, stream = (ok(driver.cuGreenCtxStreamCreate(g, 1, 0)) for g in (green, inner))
    assert places(stream, kernel("where"))[0] < places(outside, kernel("where"))[0]
    ok(driver.cuGreenCtxDestroy(inner))


def occupancy(function: Any) -> int:
    return int(ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, 1024, 0)))


def cooperative(stream: Any, function: Any, blocks: int, *arguments: Any) -> str:
    pointers, _kept = pack(*arguments)
    return status(
        driver.cuLaunchCooperativeKernel(function, blocks, 1, 1, 1024, 1, 1, 0, stream, ctypes.addressof(pointers))
    )


def test_cooperative_launches(make_green, make_stream, kernel):
    green, _rest = make_green(16)
    stream, function = ok(driver.cuGreenCtxStreamCreate(green, 1, 0)), kernel("add")
    memory = ok(driver.cuMemAlloc(4))
    ok(driver.cuMemsetD32(memory, 0, 1))
    fits = 16 * occupancy(function)
    where = ctypes.c_uint64(int(memory))
    assert cooperative(stream, function, fits, where) == "CUDA_SUCCESS"
    assert cooperative(stream, function, fits + 1, where) == "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
    assert cooperative(make_stream(), function, fits + 1, where) == "CUDA_SUCCESS"
    ok(driver.cuCtxSynchronize())
    ok(driver.cuMemFree(memory))


def test_potential_block_size_is_that_of_the_current_context(context, make_green, kernel):
    green, _rest = make_green(16)
    grid, block = ok(driver.cuOccupancyMaxPotentialBlockSize(kernel("add"), 0, 0, 0))
    ok(driver.cuCtxSetCurrent(as_context(green)))
    small = ok(driver.cuOccupancyMaxPotentialBlockSize(kernel("add"), 0, 0, 0))
    count = ok(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0))
    assert small == (grid // count * 16, block)
    ok(driver.cuCtxSetCurrent(context))


def clusters(stream: Any, size: int) -> Any:
    config = driver.CUlaunchConfig(blockDimX=1024, blockDimY=1, blockDimZ=1, gridDimX=1600, gridDimY=1, gridDimZ=1)
    config.hStream = stream
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    dim = attribute.value.clusterDim
    dim.x, dim.y, dim.z = size, 1, 1
    config.attrs, config.numAttrs = [attribute], 1
    return config


# As on an H200: flags of the split, at least; of the group, clusters of 2, 4, 8 and 16 that fit, and the largest size;
# the same of the rest.
CLUSTERS = [
    (0, 8, ([8, 4, 2, 0], 8), ([124, 58, 28, 14], 16)),
    (0, 16, ([16, 8, 4, 0], 8), ([116, 54, 26, 12], 16)),
    (0, 24, ([24, 12, 6, 0], 8), ([108, 50, 24, 10], 16)),
    (0, 64, ([64, 32, 16, 0], 8), ([68, 30, 14, 0], 10)),
    (0, 132, ([132, 62, 30, 14], 16), None),
    (1, 2, ([2, 0, 0, 0], 2), ([130, None, None, 14], 16)),
    (1, 8, ([8, 0, 0, 0], 2), ([124, None, None, None], 16)),
    (1, 16, ([16, 0, 0, 0], 2), ([116, None, None, None], 16)),
    (2, 16, ([16, 8, 4, 2], 16), ([116, 54, 26, 12], 16)),
]


@pytest.mark.cpu_only
@pytest.mark.parametrize(("flags", "least", "of_group", "of_rest"), CLUSTERS)
def test_clusters_that_fit(context, kernel, flags, least, of_group, of_rest):
    function = kernel("add")
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    ok(driver.cuFuncSetAttribute(function, attribute, 1))
    whole = ok(driver.cuDeviceGetDevResource(0, SM))
    parts, _found, rest = ok(driver.cuDevSmResourceSplitByCount(1, whole, flags, least))
    for part, expected in ((parts[0], of_group), (rest, of_rest)):
        if expected is None:
            assert part.sm.smCount == 0
            continue
        green = ok(driver.cuGreenCtxCreate(ok(driver.cuDevResourceGenerateDesc([part], 1)), 0, DEFAULT_STREAM))
        stream = ok(driver.cuGreenCtxStreamCreate(green, 1, 0))
        for size, count in zip((2, 4, 8, 16), expected[0], strict=True):
            found = ok(driver.cuOccupancyMaxActiveClusters(function, clusters(stream, size)))
            assert count is None or found == count, size
            if not found:
                pointers, _kept = pack(ctypes.c_uint64(0))
                result = driver.cuLaunchKernelEx(clusters(stream, size), function, ctypes.addressof(pointers), 0)
                assert status(result) == "CUDA_ERROR_INVALID_CLUSTER_SIZE"
                assert "cuOccupancyMaxPotentialClusterSize" in explanation(result)
        assert ok(driver.cuOccupancyMaxPotentialClusterSize(function, clusters(stream, 2))) == expected[1]
        ok(driver.cuStreamDestroy(stream))
        ok(driver.cuGreenCtxDestroy(green))
    ok(driver.cuFuncSetAttribute(function, attribute, 0))


def test_captured_kernels_run_where_they_were_captured(make_green, make_stream, kernel):
    green, _rest = make_green(8)
    stream, other = ok(driver.cuGreenCtxStreamCreate(green, 1, 0)), make_stream()
    memory = ok(driver.cuMemAlloc(4 * 1001))
    for captured in (stream, other):
        ok(driver.cuStreamBeginCapture(captured, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        seen, count = ctypes.c_uint64(int(memory)), ctypes.c_uint64(int(memory) + 4000)
        ok(launch(captured, kernel("where"), seen, count, grid=1000, block=32))
        graph = ok(driver.cuStreamEndCapture(captured))
        node = ok(driver.cuGraphGetNodes(graph, 1))[0][0]
        expected = as_context(green) if captured is stream else ok(driver.cuCtxGetCurrent())
        assert int(ok(driver.cuGraphKernelNodeGetParams(node)).ctx) == int(expected)
        executable = ok(driver.cuGraphInstantiate(graph, 0))
        for launched in (stream, other):
            ok(driver.cuGraphLaunch(executable, launched))
            ok(driver.cuStreamSynchronize(launched))
            found = (ctypes.c_uint32 * 1000)()
            ok(driver.cuMemcpyDtoH(ctypes.addressof(found), memory, ctypes.sizeof(found)))
            assert (len(set(found)) == 8) == (captured is stream)
        ok(driver.cuGraphExecDestroy(executable))
        ok(driver.cuGraphDestroy(graph))
    ok(driver.cuMemFree(memory))


def load(kernel: Any, stream: Any, flag: Any) -> None:
    """Run each kernel once: a GPU's driver may wait for the device when it loads one. The flag is 0 then."""
    for name in ("set", "wait_for", "add"):
        ok(launch(stream, kernel(name), ctypes.c_uint64(int(flag))))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuMemsetD32(flag, 0, 1))


def test_kernels_of_one_green_context_wait_for_each_other(make_green, kernel):
    """However few threads its share has."""
    green, _rest = make_green(8)
    first, second = (ok(driver.cuGreenCtxStreamCreate(green, 1, 0)) for _ in range(2))
    flag = ok(driver.cuMemAlloc(4))
    load(kernel, first, flag)
    ok(launch(first, kernel("wait_for"), ctypes.c_uint64(int(flag))))
    ok(launch(second, kernel("set"), ctypes.c_uint64(int(flag))))
    ok(driver.cuStreamSynchronize(first))
    ok(driver.cuStreamSynchronize(second))
    ok(driver.cuMemFree(flag))


def test_green_contexts_run_beside_each_other(make_green, kernel):
    """One whose kernel does not end does not hold up another."""
    busy, quiet = make_green(8)
    first, second = (ok(driver.cuGreenCtxStreamCreate(green, 1, 0)) for green in (busy, quiet))
    memory = ok(driver.cuMemAlloc(8))
    load(kernel, second, memory)
    ok(driver.cuMemsetD32(int(memory) + 4, 0, 1))
    ok(launch(first, kernel("wait_for"), ctypes.c_uint64(int(memory)), grid=64))
    ok(launch(second, kernel("add"), ctypes.c_uint64(int(memory) + 4), grid=100))
    ok(driver.cuStreamSynchronize(second))
    assert status(driver.cuStreamQuery(first)) == "CUDA_ERROR_NOT_READY"
    ok(launch(second, kernel("set"), ctypes.c_uint64(int(memory))))
    ok(driver.cuStreamSynchronize(first))
    ok(driver.cuMemFree(memory))


# ---- waiting and events ----------------------------------------------------------------------------------------------


def test_synchronizing_a_green_context_waits_for_its_own_streams(context, make_green, host):
    one, other = make_green()
    stream = ok(driver.cuGreenCtxStreamCreate(one, 1, 0))
    host.block(stream)
    ok(driver.cuCtxSetCurrent(as_context(other)))
    ok(driver.cuCtxSynchronize())
    assert status(driver.cuStreamQuery(stream)) == "CUDA_ERROR_NOT_READY"
    host.release()
    ok(driver.cuCtxSetCurrent(as_context(one)))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuStreamQuery(stream))


def test_an_event_of_all_streams(make_green, make_event, host):
    one, other = make_green()
    streams = [ok(driver.cuGreenCtxStreamCreate(one, 1, 0)) for _ in range(2)]
    waiting = ok(driver.cuGreenCtxStreamCreate(other, 1, 0))
    event, elsewhere = make_event(), make_event()
    host.block(streams[1])
    ok(driver.cuGreenCtxRecordEvent(one, event))
    ok(driver.cuGreenCtxRecordEvent(other, elsewhere))
    assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_NOT_READY"
    ok(driver.cuEventSynchronize(elsewhere))
    ok(driver.cuGreenCtxWaitEvent(other, event))
    later = ok(driver.cuGreenCtxStreamCreate(other, 1, 0))
    for stream in (waiting, later):
        ok(driver.cuEventRecord(elsewhere, stream))
        assert status(driver.cuEventQuery(elsewhere)) == "CUDA_ERROR_NOT_READY"
    host.release()
    ok(driver.cuEventSynchronize(event))
    ok(driver.cuEventSynchronize(elsewhere))


@pytest.mark.parametrize("call", [driver.cuCtxRecordEvent, driver.cuCtxWaitEvent])
def test_events_of_contexts(context, make_green, make_event, call):
    green, _rest = make_green()
    event = make_event()
    for which in (context, as_context(green)):
        ok(call(which, event))
    assert status(call(0, event)) == "CUDA_ERROR_INVALID_CONTEXT"
    assert status(call(context, 0)) == "CUDA_ERROR_INVALID_HANDLE"


@pytest.mark.parametrize("call", [driver.cuGreenCtxRecordEvent, driver.cuGreenCtxWaitEvent])
def test_events_of_contexts_end_captures(make_green, make_event, call: Callable[..., Any]):
    green, _rest = make_green()
    stream = ok(driver.cuGreenCtxStreamCreate(green, 1, 0))
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    assert status(call(green, make_event())) == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    assert status(driver.cuStreamEndCapture(stream)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
