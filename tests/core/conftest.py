"""One small module of kernels for the tests of core, compiled once."""

from __future__ import annotations

import ctypes

import pytest

SOURCE = r"""
template <typename T> __global__ void keep(T* out, T value) { *out = value; }

struct Pair { double first; int second; };
struct Wide { int numbers[32]; };
template __global__ void keep<Pair>(Pair*, Pair);
template __global__ void keep<Wide>(Wide*, Wide);

extern "C" __global__ void nothing() {}
extern "C" __global__ void add(int* x, int n) { atomicAdd(x, n); }
extern "C" __global__ void sum_blocks(unsigned int* x) {
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
        atomicAdd(x, 1u + (blockIdx.x << 8) + (blockIdx.y << 16) + (blockIdx.z << 24));
}
extern "C" __global__ void dynamic(unsigned int* x, unsigned int n) {
    extern __shared__ unsigned char bytes[];
    for (unsigned int i = threadIdx.x; i < n; i += blockDim.x) bytes[i] = (unsigned char)i;
    __syncthreads();
    if (threadIdx.x == 0) *x = bytes[n - 1];
}
extern "C" __global__ void __launch_bounds__(64) few() {}
extern "C" __global__ void fault(int* x) { *x = 1; }
#define FIVE(a) int a##0, int a##1, int a##2, int a##3, int a##4
extern "C" __global__ void many(int* out, FIVE(a), FIVE(b), FIVE(c), FIVE(d), FIVE(e), FIVE(f)) {
    *out = a0 + a1 + a2 + a3 + a4 + b0 + b1 + b2 + b3 + b4 + c0 + c1 + c2 + c3 + c4 + d0 + d1 + d2 + d3 + d4
         + e0 + e1 + e2 + e3 + e4 + f0 + f1 + f2 + f3 + 1000 * f4;
}
"""

TYPES = (
    "bool", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long long",
    "unsigned long long", "float", "double", "char*", "float2", "double2", "Pair", "Wide",
)  # fmt: skip


@pytest.fixture(scope="session")
def module():
    """The compiled module; ``keep<T>`` is there for every T of TYPES."""
    from cupola import Device, Program

    dev = Device(0)
    dev.set_current()
    program = Program(SOURCE, "c++", {"arch": f"sm_{dev.arch}", "std": "c++17"})
    return program.compile("cubin", name_expressions=tuple(f"keep<{t}>" for t in TYPES))


@pytest.fixture
def out(device, stream):
    """256 zero bytes that kernels and the host both see."""
    from cupola import LegacyPinnedMemoryResource

    buffer = LegacyPinnedMemoryResource().allocate(256, stream=stream)
    ctypes.memset(buffer.handle, 0, 256)
    yield buffer
    buffer.close(stream)


@pytest.fixture
def cuda_13(device):
    """Skips the test where the driver is older than CUDA 13."""
    from tests.cpu.driver.calls import driver_version

    if driver_version() < 13000:
        pytest.skip("needs a driver for CUDA 13")
