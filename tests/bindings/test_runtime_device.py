"""The runtime module really used, on whatever device the tests run on."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from cupola.bindings import driver, nvrtc, runtime
from tests import limits
from tests.bindings.libcudart import PROGRAM, installed

SOURCE = b"""
__device__ int answer = 41;
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i] + (answer - 41);
}
"""
KIND = runtime.cudaMemcpyKind


@pytest.fixture(autouse=True, scope="module")
def device():
    check(runtime.cudaSetDevice(0))
    return 0


def check(result):
    """The outputs of a successful call."""
    assert result[0] == runtime.cudaError_t.cudaSuccess, result[0]
    return result[1] if len(result) == 2 else result[1:]


@pytest.fixture
def memory(device):
    """1 KiB of device memory."""
    address = check(runtime.cudaMalloc(1024))
    yield address
    check(runtime.cudaFree(address))


@pytest.fixture
def stream(device):
    stream = check(runtime.cudaStreamCreateWithFlags(runtime.cudaStreamNonBlocking))
    yield stream
    check(runtime.cudaStreamDestroy(stream))


@pytest.fixture(scope="module")
def cubin(device):
    properties = check(runtime.cudaGetDeviceProperties(device))
    program = nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], [])[1]
    arch = b"--gpu-architecture=sm_%d%d" % (properties.major, properties.minor)
    assert nvrtc.nvrtcCompileProgram(program, 1, [arch])[0] == 0
    code = bytearray(nvrtc.nvrtcGetCUBINSize(program)[1])
    assert nvrtc.nvrtcGetCUBIN(program, code)[0] == 0
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(code)


def test_device(device):
    assert check(runtime.cudaGetDeviceCount()) >= 1
    assert check(runtime.cudaGetDevice()) == device
    properties = check(runtime.cudaGetDeviceProperties(device))
    attribute = runtime.cudaDeviceAttr
    for field, member in (
        ("multiProcessorCount", attribute.cudaDevAttrMultiProcessorCount),
        ("warpSize", attribute.cudaDevAttrWarpSize),
        ("major", attribute.cudaDevAttrComputeCapabilityMajor),
        ("l2CacheSize", attribute.cudaDevAttrL2CacheSize),
        ("sharedMemPerBlockOptin", attribute.cudaDevAttrMaxSharedMemoryPerBlockOptin),
        ("cooperativeLaunch", attribute.cudaDevAttrCooperativeLaunch),
        ("memoryPoolsSupported", attribute.cudaDevAttrMemoryPoolsSupported),
    ):
        assert getattr(properties, field) == check(runtime.cudaDeviceGetAttribute(member, device)), field
    assert driver.cuInit(0)[0] == 0
    assert properties.name == driver.cuDeviceGetName(256, device)[1].rstrip(b"\0")
    free, total = check(runtime.cudaMemGetInfo())
    assert 0 < free <= total and properties.totalGlobalMem
    assert runtime.cudaSetDevice(999)[0] == runtime.cudaError_t.cudaErrorInvalidDevice
    assert runtime.cudaGetLastError()[0] == runtime.cudaError_t.cudaErrorInvalidDevice
    assert runtime.cudaPeekAtLastError()[0] == runtime.cudaError_t.cudaSuccess
    assert check(runtime.cudaDriverGetVersion()) >= 12000 and check(runtime.cudaRuntimeGetVersion()) >= 12000


def test_copies(memory):
    data = np.arange(256, dtype=np.int32)
    back = np.zeros_like(data)
    check(runtime.cudaMemcpy(memory, data, data.nbytes, KIND.cudaMemcpyHostToDevice))
    check(runtime.cudaMemcpy(back, memory, back.nbytes, KIND.cudaMemcpyDeviceToHost))
    assert (back == data).all()
    check(runtime.cudaMemset(memory, 0xFF, 1024))
    check(runtime.cudaMemcpy(back, memory, back.nbytes, KIND.cudaMemcpyDefault))
    assert (back == -1).all()
    assert runtime.cudaMemcpy(0, data, 4, KIND.cudaMemcpyHostToDevice)[0] == runtime.cudaError_t.cudaErrorInvalidValue
    runtime.cudaGetLastError()


def test_pitched_copies(device):
    address, pitch = check(runtime.cudaMallocPitch(100, 5))
    assert pitch >= 100
    data, back = np.arange(500, dtype=np.uint8).reshape(5, 100), np.zeros((5, 100), np.uint8)
    check(runtime.cudaMemcpy2D(address, pitch, data, 100, 100, 5, KIND.cudaMemcpyHostToDevice))
    check(runtime.cudaMemset2D(address, pitch, 7, 10, 1))
    check(runtime.cudaMemcpy2D(back, 100, address, pitch, 100, 5, KIND.cudaMemcpyDeviceToHost))
    data[0, :10] = 7
    assert (back == data).all()
    check(runtime.cudaFree(address))


def test_records_by_value(device):
    """An extent goes in by value, and the pitched pointer of the result into a copy described by a record."""
    extent = runtime.make_cudaExtent(64, 4, 2)
    pitched = check(runtime.cudaMalloc3D(extent))
    assert pitched.pitch >= 64 and (pitched.xsize, pitched.ysize) == (64, 4)
    check(runtime.cudaMemset3D(pitched, 3, extent))
    back = np.zeros(512, np.uint8)
    copy = runtime.cudaMemcpy3DParms(extent=extent, kind=KIND.cudaMemcpyDeviceToHost)
    copy.srcPtr = pitched
    copy.dstPtr = runtime.make_cudaPitchedPtr(back, 64, 64, 4)
    check(runtime.cudaMemcpy3D(copy))
    assert (back == 3).all()
    check(runtime.cudaFree(pitched.ptr))


def test_streams_and_events(stream, memory):
    before, after = check(runtime.cudaEventCreate()), check(runtime.cudaEventCreate())
    check(runtime.cudaEventRecord(before, stream))
    check(runtime.cudaMemsetAsync(memory, 1, 1024, stream))
    check(runtime.cudaEventRecord(after, stream))
    check(runtime.cudaStreamWaitEvent(stream, after, 0))
    check(runtime.cudaEventSynchronize(after))
    assert check(runtime.cudaEventElapsedTime(before, after)) >= 0
    check(runtime.cudaStreamSynchronize(stream))
    check(runtime.cudaStreamQuery(stream))
    least, greatest = check(runtime.cudaDeviceGetStreamPriorityRange())
    assert least >= greatest
    assert check(runtime.cudaStreamGetFlags(stream)) == runtime.cudaStreamNonBlocking
    for event in (before, after):
        check(runtime.cudaEventDestroy(event))


def test_handles_go_both_ways(stream, memory):
    """The driver takes streams of the runtime, and the runtime those of the driver."""
    assert driver.cuMemsetD32Async(memory, 5, 256, stream)[0] == 0
    assert driver.cuStreamSynchronize(stream)[0] == 0
    status, other = driver.cuStreamCreate(1)
    assert status == 0
    back = np.zeros(256, np.int32)
    check(runtime.cudaMemcpyAsync(back, memory, 1024, KIND.cudaMemcpyDeviceToHost, other))
    check(runtime.cudaStreamSynchronize(other))
    assert (back == 5).all()
    check(runtime.cudaStreamDestroy(other))


def test_pinned_and_managed_memory(device):
    host = check(runtime.cudaHostAlloc(64, runtime.cudaHostAllocMapped))
    attributes = check(runtime.cudaPointerGetAttributes(host))
    assert attributes.type == runtime.cudaMemoryType.cudaMemoryTypeHost and attributes.hostPointer == host
    assert check(runtime.cudaHostGetDevicePointer(host, 0)) and check(runtime.cudaHostGetFlags(host)) & 2
    check(runtime.cudaFreeHost(host))
    managed = check(runtime.cudaMallocManaged(64, runtime.cudaMemAttachGlobal))
    ctypes.memset(managed, 9, 64)
    check(runtime.cudaDeviceSynchronize())
    kind = check(runtime.cudaPointerGetAttributes(managed)).type
    assert kind == runtime.cudaMemoryType.cudaMemoryTypeManaged
    check(runtime.cudaFree(managed))


def test_pointer_attributes(memory, device):
    attributes = check(runtime.cudaPointerGetAttributes(memory))
    assert attributes.type == runtime.cudaMemoryType.cudaMemoryTypeDevice
    assert (attributes.device, attributes.devicePointer) == (device, memory)


def test_pools(stream):
    pool = check(runtime.cudaDeviceGetDefaultMemPool(0))
    attribute = runtime.cudaMemPoolAttr
    check(runtime.cudaMemPoolSetAttribute(pool, attribute.cudaMemPoolAttrReleaseThreshold, 1 << 20))
    assert check(runtime.cudaMemPoolGetAttribute(pool, attribute.cudaMemPoolAttrReleaseThreshold)) == 1 << 20
    address = check(runtime.cudaMallocAsync(256, stream))
    check(runtime.cudaMemsetAsync(address, 0, 256, stream))
    check(runtime.cudaFreeAsync(address, stream))
    check(runtime.cudaStreamSynchronize(stream))
    check(runtime.cudaMemPoolSetAttribute(pool, attribute.cudaMemPoolAttrReleaseThreshold, 0))


def test_capture(stream, memory):
    """What is captured is a graph with an edge; the results have the shape of CUDA 13 with both majors."""
    mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
    check(runtime.cudaStreamBeginCapture(stream, mode))
    check(runtime.cudaMemsetAsync(memory, 1, 512, stream))
    check(runtime.cudaMemsetAsync(memory + 512, 2, 512, stream))
    info = check(runtime.cudaStreamGetCaptureInfo(stream))
    assert info[0] == runtime.cudaStreamCaptureStatus.cudaStreamCaptureStatusActive and len(info) == 6
    graph = check(runtime.cudaStreamEndCapture(stream))
    nodes, count = check(runtime.cudaGraphGetNodes(graph, 8))
    assert count == len(nodes) == 2 and isinstance(nodes[0], driver.CUgraphNode)
    starts, ends, data, edges = check(runtime.cudaGraphGetEdges(graph, 8))
    assert edges == 1 and {*starts, *ends} == set(nodes) and len(data) == 1
    assert check(runtime.cudaGraphNodeGetType(nodes[0])) == runtime.cudaGraphNodeType.cudaGraphNodeTypeMemset
    executable = check(runtime.cudaGraphInstantiate(graph, 0))
    check(runtime.cudaGraphLaunch(executable, stream))
    check(runtime.cudaStreamSynchronize(stream))
    back = np.zeros(1024, np.uint8)
    check(runtime.cudaMemcpy(back, memory, 1024, KIND.cudaMemcpyDeviceToHost))
    assert (back[:512] == 1).all() and (back[512:] == 2).all()
    check(runtime.cudaGraphExecDestroy(executable))
    check(runtime.cudaGraphDestroy(graph))


def test_host_functions(stream):
    seen = []
    done = threading.Event()
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: (seen.append(data), done.set()))
    check(runtime.cudaLaunchHostFunc(stream, runtime.cudaHostFn_t(_ptr=ctypes.addressof(callback)), 5))
    check(runtime.cudaLaunchHostFunc(stream, callback, 6))
    check(runtime.cudaStreamSynchronize(stream))
    assert limits.wait(done) and seen == [5, 6]


def test_libraries_and_kernels(cubin, stream):
    library = check(runtime.cudaLibraryLoadData(cubin, None, None, 0, None, None, 0))
    assert check(runtime.cudaLibraryGetKernelCount(library)) == 1
    kernel = check(runtime.cudaLibraryGetKernel(library, b"saxpy"))
    assert int(check(runtime.cudaLibraryEnumerateKernels(1, library))[0]) == int(kernel)
    address, size = check(runtime.cudaLibraryGetGlobal(library, b"answer"))
    value = np.zeros(1, np.int32)
    check(runtime.cudaMemcpy(value, address, size, KIND.cudaMemcpyDeviceToHost))
    assert value[0] == 41
    assert check(runtime.cudaFuncGetAttributes(kernel)).maxThreadsPerBlock >= 256
    assert check(runtime.cudaOccupancyMaxActiveBlocksPerMultiprocessor(kernel, 256, 0)) >= 1
    x, y = (check(runtime.cudaMallocManaged(4000, runtime.cudaMemAttachGlobal)) for _ in range(2))
    views = [np.ctypeslib.as_array((ctypes.c_float * 1000).from_address(p)) for p in (x, y)]
    views[0][:], views[1][:] = 2, 1
    arguments = ((3.0, x, y, 1000), (ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64))
    check(runtime.cudaLaunchKernel(kernel, runtime.dim3(x=4), runtime.dim3(x=256), arguments, 0, stream))
    config = runtime.cudaLaunchConfig_t(gridDim=runtime.dim3(x=4), blockDim=runtime.dim3(x=256), stream=stream)
    check(runtime.cudaLaunchKernelExC(config, kernel, arguments))
    check(runtime.cudaStreamSynchronize(stream))
    assert (views[1] == 13).all()
    for pointer in (x, y):
        check(runtime.cudaFree(pointer))
    check(runtime.cudaLibraryUnload(library))


def test_batched_copies_and_advice(stream, memory):
    """Functions whose signature differs between CUDA 12 and 13."""
    data = np.arange(256, dtype=np.int32)
    attributes = runtime.cudaMemcpyAttributes(
        srcAccessOrder=runtime.cudaMemcpySrcAccessOrder.cudaMemcpySrcAccessOrderStream
    )
    halves = [data.ctypes.data, data.ctypes.data + 512]
    targets = [memory, memory + 512]
    check(runtime.cudaMemcpyBatchAsync(targets, halves, [512, 512], 2, [attributes], [0], 1, stream))
    check(runtime.cudaStreamSynchronize(stream))
    back = np.zeros_like(data)
    check(runtime.cudaMemcpy(back, memory, 1024, KIND.cudaMemcpyDeviceToHost))
    assert (back == data).all()
    managed = check(runtime.cudaMallocManaged(1 << 20, runtime.cudaMemAttachGlobal))
    where = runtime.cudaMemLocation(type=runtime.cudaMemLocationType.cudaMemLocationTypeDevice, id=0)
    advice = runtime.cudaMemoryAdvise.cudaMemAdviseSetPreferredLocation
    check(runtime.cudaMemAdvise(managed, 1 << 20, advice, where))
    check(runtime.cudaMemPrefetchAsync(managed, 1 << 20, where, 0, stream))
    check(runtime.cudaStreamSynchronize(stream))
    preferred = runtime.cudaMemRangeAttribute.cudaMemRangeAttributePreferredLocation
    assert check(runtime.cudaMemRangeGetAttribute(4, preferred, managed, 1 << 20)) == 0
    check(runtime.cudaFree(managed))


CALLS = [
    "runtime.cudaRuntimeGetVersion()[1] // 1000",
    "runtime.cudaGetDeviceProperties(0)[1].multiProcessorCount",
    "runtime.cudaGetDeviceProperties(0)[1].clockRate > 0",
    "[address := runtime.cudaMalloc(8)[1], stream := runtime.cudaStreamCreateWithFlags(1)[1]][2:]",
    "runtime.cudaMemset(address, 7, 8)",
    "[attributes := [runtime.cudaMemcpyAttributes(srcAccessOrder=1)]][1:]",
    "runtime.cudaMemcpyBatchAsync([memory], [address], [8], 1, attributes, [0], 1, stream)",
    "runtime.cudaStreamSynchronize(stream)",
    "bytes(memory)",
]


@pytest.mark.gpu_only
def test_a_library_of_cuda_12_on_the_gpu(run_program):
    done = run_program(PROGRAM, str(installed(12)), input=repr(CALLS))
    assert done.returncode == 0, done.stderr
    count = check(runtime.cudaGetDeviceProperties(0)).multiProcessorCount
    assert eval(done.stdout) == [12, count, True, [], 0, [], 0, 0, b"\7" * 8]
