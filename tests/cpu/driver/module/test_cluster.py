"""Clusters of blocks: which sizes a launch may have, attributes of functions, occupancy, graphs, dependent launches."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import compiled, explanation, ok, pack, status

SOURCE = r"""
extern "C" __global__ void sizes(unsigned* out) {
    unsigned rank, size;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0) out[blockIdx.x + gridDim.x * blockIdx.y] = size * 100 + rank;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) pairs(unsigned* out) {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) out[blockIdx.x] = 200 + rank;
}
extern "C" __global__ void after(unsigned* out, unsigned* in) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (threadIdx.x == 0) out[blockIdx.x] = in[blockIdx.x] + 1;
}
"""

A = driver.CUfunction_attribute
L = driver.CUlaunchAttributeID
WRONG_SIZE = {"CUDA_ERROR_INVALID_CLUSTER_SIZE", "CUDA_ERROR_INVALID_VALUE"}
"""What a GPU's driver says depends on its version; the CPU device says the first."""


@pytest.fixture
def kernel(context):
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
    if not ok(driver.cuDeviceGetAttribute(attribute, 0)):
        pytest.skip("the device has no clusters")
    module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    yield lambda name: ok(driver.cuModuleGetFunction(module, name.encode()))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuModuleUnload(module))


def configure(grid: Any, cluster: Any = None, *, stream: Any = None, block: int = 32, shared: int = 0) -> Any:
    config = driver.CUlaunchConfig(blockDimX=block, blockDimY=1, blockDimZ=1, sharedMemBytes=shared)
    config.gridDimX, config.gridDimY, config.gridDimZ = (*grid, 1, 1)[:3]
    if stream is not None:
        config.hStream = stream
    if cluster is not None:
        attribute = driver.CUlaunchAttribute()
        attribute.id = L.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dim = attribute.value.clusterDim
        dim.x, dim.y, dim.z = (*cluster, 1, 1)[:3]
        config.attrs, config.numAttrs = [attribute], 1
    return config


def run(config: Any, function: Any, *arguments: Any) -> Any:
    pointers, _kept = pack(*arguments)
    return driver.cuLaunchKernelEx(config, function, ctypes.addressof(pointers), 0)


def address(memory: Any, index: int = 0) -> Any:
    return ctypes.c_uint64(ctypes.addressof(memory) + 4 * index)


@pytest.mark.parametrize("grid, cluster", [((8,), (4,)), ((6, 4), (3, 2)), ((8,), (1,)), ((8,), (8,))])
def test_a_cluster_of_the_launch(kernel, make_stream, memory, grid, cluster):
    stream = make_stream()
    ok(run(configure(grid, cluster, stream=stream), kernel("sizes"), address(memory)))
    ok(driver.cuStreamSynchronize(stream))
    (width, height), (x, y) = ((*grid, 1)[:2], (*cluster, 1)[:2])
    expected = [x * y * 100 + i % x + j % y * x for j in range(height) for i in range(width)]
    assert list(memory[: width * height]) == expected


def test_the_cluster_of_the_kernel(kernel, make_stream, memory):
    stream, pairs = make_stream(), kernel("pairs")
    ok(run(configure((4,), stream=stream), pairs, address(memory)))
    ok(run(configure((6,), (2,), stream=stream), pairs, address(memory, 4)))
    ok(driver.cuStreamSynchronize(stream))
    assert list(memory[:10]) == [200, 201] * 5
    extents = (A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)
    assert [ok(driver.cuFuncGetAttribute(a, pairs)) for a in extents] == [2, 1]
    assert [ok(driver.cuFuncGetAttribute(a, kernel("sizes"))) for a in extents] == [0, 0]


@pytest.mark.parametrize(
    "name, grid, cluster, says",
    [
        ("sizes", (32,), (16,), "NON_PORTABLE_CLUSTER_SIZE_ALLOWED"),
        ("sizes", (64,), (32,), "at most"),
        ("sizes", (6,), (4,), "not a multiple of the cluster"),
        ("sizes", (4, 3), (2, 2), "not a multiple of the cluster"),
        ("pairs", (8,), (4,), "requires clusters of (2, 1, 1)"),
        ("pairs", (3,), None, "not a multiple of the cluster"),
        ("sizes", (4,), (2, 0), "no dimension may be 0"),
    ],
)
def test_wrong_sizes_are_refused(kernel, make_stream, memory, name, grid, cluster, says):
    stream = make_stream()
    result = run(configure(grid, cluster, stream=stream), kernel(name), address(memory))
    assert status(result) in WRONG_SIZE
    if on_cpu_device():
        assert says in explanation(result)
    ok(run(configure((4,), (2,), stream=stream), kernel("sizes"), address(memory)))
    ok(driver.cuStreamSynchronize(stream))
    assert list(memory[:4]) == [200, 201, 200, 201]


def test_sixteen_blocks_with_leave(kernel, make_stream, memory):
    stream, sizes = make_stream(), kernel("sizes")
    ok(driver.cuFuncSetAttribute(sizes, A.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
    try:
        ok(run(configure((16,), (16,), stream=stream), sizes, address(memory)))
        ok(driver.cuStreamSynchronize(stream))
        assert list(memory[:16]) == list(range(1600, 1616))
        assert ok(driver.cuOccupancyMaxPotentialClusterSize(sizes, configure((16,)))) == 16
    finally:
        ok(driver.cuFuncSetAttribute(sizes, A.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0))


def test_occupancy(kernel):
    sizes = kernel("sizes")
    assert ok(driver.cuOccupancyMaxPotentialClusterSize(sizes, configure((16,)))) == 8
    # What a kernel requires, here clusters of 2, does not change what there could be.
    assert ok(driver.cuOccupancyMaxPotentialClusterSize(kernel("pairs"), configure((16,)))) == 8
    counts = [ok(driver.cuOccupancyMaxActiveClusters(sizes, configure((64,), (n,), block=1024))) for n in (2, 4, 8)]
    # Two blocks of this size to a multiprocessor, at most: one more or less lies in how a chip's GPCs are.
    multiprocessors = ok(
        driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0)
    )
    for size, count in zip((2, 4, 8), counts, strict=True):
        assert multiprocessors * 2 // size * 0.7 <= count <= multiprocessors * 2 // size
    if on_cpu_device():
        assert counts == [132, 62, 30]  # as an H200 has them


def test_a_node_of_a_graph(kernel, make_stream, memory):
    stream = make_stream()
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    ok(run(configure((8,), (4,), stream=stream), kernel("sizes"), address(memory)))
    graph = ok(driver.cuStreamEndCapture(stream))
    (node,) = ok(driver.cuGraphGetNodes(graph, 1))[0]
    dimension = L.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    value = ok(driver.cuGraphKernelNodeGetAttribute(node, dimension))
    assert (value.clusterDim.x, value.clusterDim.y, value.clusterDim.z) == (4, 1, 1)
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    for _ in range(2):
        memory[0] = 0
        ok(driver.cuGraphLaunch(executable, stream))
        ok(driver.cuStreamSynchronize(stream))
        assert list(memory[:8]) == [400, 401, 402, 403] * 2
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(graph))


def test_programmatic_dependent_launches(kernel, make_stream, memory):
    stream, after = make_stream(), kernel("after")
    for i in range(64):
        memory[i] = i
    for step in range(6):
        config = configure((32,), stream=stream)
        attribute = driver.CUlaunchAttribute()
        attribute.id = L.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        config.attrs, config.numAttrs = [attribute], 1
        ok(run(config, after, address(memory, 32 * ((step + 1) % 2)), address(memory, 32 * (step % 2))))
    ok(driver.cuStreamSynchronize(stream))
    assert list(memory[:32]) == [i + 6 for i in range(32)]
