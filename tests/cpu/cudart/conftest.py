"""What the tests of the runtime share. They call it through the bindings, so most run on a GPU with libcudart, too."""

from __future__ import annotations

import pytest

from cupola.bindings import nvrtc, runtime
from tests.cpu.cudart.calls import ok

SOURCE = b"""
__device__ int answer = 41;
__managed__ int shared_answer = 43;
extern "C" __global__ void add(int *x, int value) { x[blockIdx.x * blockDim.x + threadIdx.x] += value; }
extern "C" __global__ void dynamic(int *x) {
    extern __shared__ int box[];
    box[threadIdx.x] = threadIdx.x;
    __syncthreads();
    x[threadIdx.x] = box[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(64) few(int *x) { x[threadIdx.x] = 1; }
"""


@pytest.fixture(autouse=True)
def device():
    """Device 0, current on this thread, without an error left from before."""
    ok(runtime.cudaSetDevice(0))
    runtime.cudaGetLastError()
    return 0


@pytest.fixture
def stream(device):
    stream = ok(runtime.cudaStreamCreateWithFlags(runtime.cudaStreamNonBlocking))
    yield stream
    ok(runtime.cudaStreamDestroy(stream))


@pytest.fixture
def memory(device):
    """1 KiB of zeroed device memory."""
    address = ok(runtime.cudaMalloc(1024))
    ok(runtime.cudaMemset(address, 0, 1024))
    ok(runtime.cudaDeviceSynchronize())  # before what streams do
    yield address
    ok(runtime.cudaFree(address))


@pytest.fixture(scope="session")
def cubin():
    properties = ok(runtime.cudaGetDeviceProperties(0))
    program = nvrtc.nvrtcCreateProgram(SOURCE, b"runtime.cu", 0, [], [])[1]
    arch = b"--gpu-architecture=sm_%d%d" % (properties.major, properties.minor)
    assert nvrtc.nvrtcCompileProgram(program, 1, [arch])[0] == 0
    code = bytearray(nvrtc.nvrtcGetCUBINSize(program)[1])
    assert nvrtc.nvrtcGetCUBIN(program, code)[0] == 0
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(code)


@pytest.fixture
def library(device, cubin):
    library = ok(runtime.cudaLibraryLoadData(cubin, None, None, 0, None, None, 0))
    yield library
    ok(runtime.cudaLibraryUnload(library))


@pytest.fixture
def graph(device):
    graph = ok(runtime.cudaGraphCreate(0))
    yield graph
    ok(runtime.cudaGraphDestroy(graph))
