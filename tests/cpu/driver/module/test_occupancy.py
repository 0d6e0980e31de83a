"""Occupancy, by the rules of the modeled GPU. The figures hold for every GPU of compute capability 9.0 as well."""

from __future__ import annotations

import ctypes

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import compiled, ok, status

SOURCE = r"""
extern "C" __global__ void small(int* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(256) bounded(int* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void half(int* x) { __shared__ int s[8192]; s[threadIdx.x] = 1; __syncthreads(); *x = s[9]; }
"""


@pytest.fixture
def kernel(context):
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    if ok(driver.cuDeviceGetAttribute(attribute, 0)) != 9:
        pytest.skip("the expected figures are those of compute capability 9.0")
    module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    yield lambda name: ok(driver.cuModuleGetFunction(module, name.encode()))
    ok(driver.cuModuleUnload(module))


@pytest.mark.parametrize(
    "name, threads, dynamic, blocks",
    [
        ("small", 32, 0, 32),
        ("small", 64, 0, 32),
        ("small", 128, 0, 16),
        ("small", 256, 0, 8),
        ("small", 1000, 0, 2),
        ("small", 1024, 0, 2),
        ("small", 256, 40 << 10, 5),
        ("small", 256, 1 << 20, 0),
        ("half", 256, 0, 6),
        ("bounded", 512, 0, 4),  # the hardware would hold them
        pytest.param("small", 1025, 0, 0, marks=pytest.mark.cpu_only),  # no device launches such a block
    ],
)
def test_blocks_on_a_multiprocessor(kernel, name, threads, dynamic, blocks):
    assert ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel(name), threads, dynamic)) == blocks


@pytest.mark.parametrize(
    "name, limit, block, per_sm", [("small", 0, 1024, 2), ("small", 128, 128, 16), ("bounded", 0, 256, 8)]
)
def test_the_best_block(kernel, name, limit, block, per_sm):
    count = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    multiprocessors = ok(driver.cuDeviceGetAttribute(count, 0))
    grid, size = ok(driver.cuOccupancyMaxPotentialBlockSize(kernel(name), 0, 0, limit))
    assert (grid, size) == (per_sm * multiprocessors, block)


def test_shared_memory_may_depend_on_the_block(kernel):
    per_thread = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(lambda threads: threads * 128)
    pointer = ctypes.cast(per_thread, ctypes.c_void_p).value
    _, size = ok(driver.cuOccupancyMaxPotentialBlockSize(kernel("small"), pointer, 0, 0))
    blocks = ok(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel("small"), size, size * 128))
    assert blocks * size * 128 <= 227 << 10 and size % 32 == 0 and blocks >= 1


@pytest.mark.parametrize("blocks, threads, left", [(1, 1024, 48 << 10), (2, 512, 48 << 10), (8, 256, 29184)])
def test_dynamic_shared_memory_left(kernel, blocks, threads, left):
    """At most what a launch may ask for; else an even share of the 228 KiB, without what the system reserves."""
    assert ok(driver.cuOccupancyAvailableDynamicSMemPerBlock(kernel("small"), blocks, threads)) == left


def test_more_dynamic_shared_memory_is_left_where_more_is_allowed(kernel):
    function, attribute = kernel("small"), driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    ok(driver.cuFuncSetAttribute(function, attribute, 100 << 10))
    assert 48 << 10 < ok(driver.cuOccupancyAvailableDynamicSMemPerBlock(function, 1, 1024)) <= 100 << 10


def test_bad_arguments(kernel):
    call = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
    assert status(call(kernel("small"), 0, 0)) == "CUDA_ERROR_INVALID_VALUE"
    assert (
        status(driver.cuOccupancyAvailableDynamicSMemPerBlock(kernel("small"), 99, 1024)) == "CUDA_ERROR_INVALID_VALUE"
    )
