"""Kernel nodes with the attributes that launches have: clusters, cooperation, priority, changes by kernels."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import CUDAError, EventOptions, LaunchConfig, PinnedMemoryResource, Program, launch
from cupola.bindings import driver
from cupola.graph import GraphDefinition
from tests.graph.helpers import ONE, run

SOURCE = r"""
extern "C" __global__ void sizes(unsigned* out) {
#if __CUDA_ARCH__ >= 900
    unsigned blocks, rank;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    out[blockIdx.x] = 100 * blocks + rank;
#endif
}
extern "C" __global__ void meet(unsigned* out) {  // all blocks wait for one another
    atomicAdd(out, 1);
    while (atomicAdd(out, 0) < gridDim.x) {}
    out[1 + blockIdx.x] = atomicAdd(out, 0);
}
"""
SETTER = r"""
extern "C" __device__ __cudart_builtin__ cudaError_t cudaGraphKernelNodeSetParam(
    cudaGraphDeviceNode_t node, size_t offset, const void* value, size_t size);
extern "C" __global__ void set_value(cudaGraphDeviceNode_t node, int value) {
    cudaGraphKernelNodeSetParam(node, 8, &value, sizeof value);
}
"""


@pytest.fixture(scope="module")
def more_kernels():
    from cupola import Device

    device = Device(0)
    device.set_current()
    options = {"arch": f"sm_{device.arch}"}
    code = Program(SOURCE, "c++", options).compile("cubin")
    setter = Program(SETTER, "c++", options).compile("cubin")
    return {name: code.get_kernel(name) for name in ("sizes", "meet")} | {"set_value": setter.get_kernel("set_value")}


@pytest.fixture
def out(device, stream):
    with PinnedMemoryResource().allocate(256, stream=stream) as buffer:
        array = np.from_dlpack(buffer).view(np.uint32)
        stream.sync()
        array[:] = 0
        yield buffer, array


ATTRIBUTES = [
    {"priority": -1},
    {"is_cooperative": True},
    {"mem_sync_domain": "remote"},
    {"mem_sync_domain_map": (0, 0)},
    {"cluster_scheduling_policy": "spread"},
    {"preferred_shared_memory_carveout": 50},
    {"cluster": 2},
    {"cluster": 2, "priority": -1, "cluster_scheduling_policy": "load_balancing"},
    {"programmatic_stream_serialization": True},
]
NEWER = [  # than CUDA 13.0 or than some GPUs
    {"cluster": 2, "preferred_cluster": 4},
    {"cluster": 4, "portable_cluster_size_mode": "require_portable"},
    {"shared_memory_mode": "allow_oversized"},
    {"nvlink_util_centric_scheduling": True},
]


@pytest.mark.parametrize(
    "attributes", [*ATTRIBUTES, *(pytest.param(a, marks=pytest.mark.cpu_only) for a in NEWER)], ids=repr
)
def test_nodes_keep_attributes(device, stream, kernels, memory, attributes):
    if "cluster" in attributes and device.compute_capability < (9, 0):
        pytest.skip("no clusters")
    definition = GraphDefinition()
    config = LaunchConfig(grid=4, block=1, **attributes)
    node = definition.launch(config, kernels[0], memory[0], 1)
    config.programmatic_stream_serialization = False
    assert node.config == config and node.config is not config
    blocks = 4 * attributes.get("cluster", 1)
    assert node.grid == (blocks, 1, 1)
    run(definition.instantiate(), stream)
    assert memory[1][0] == blocks
    node.update(args=(memory[0], 2))
    assert node.config == config
    run(definition.instantiate(), stream)
    assert memory[1][0] == 3 * blocks
    node.update(config=ONE)
    assert node.config == ONE
    run(definition.instantiate(), stream)
    assert memory[1][0] == 3 * blocks + 2
    node.update(config=config)
    assert node.config == config
    run(definition.instantiate(), stream)
    assert memory[1][0] == 5 * blocks + 2


def test_clusters(device, stream, more_kernels, out):
    if not device.properties.cluster_launch:
        pytest.skip("no clusters")
    definition = GraphDefinition()
    node = definition.launch(LaunchConfig(grid=2, cluster=3, block=1), more_kernels["sizes"], out[0])
    graph = definition.instantiate()
    run(graph, stream)
    assert out[1][:7].tolist() == [300, 301, 302] * 2 + [0]
    out[1][:] = 0
    graph[node].update(config=LaunchConfig(grid=1, cluster=3, block=1), kernel=more_kernels["sizes"], args=(out[0],))
    run(graph, stream)
    assert out[1][:4].tolist() == [300, 301, 302, 0]
    node.update(config=LaunchConfig(grid=2, cluster=2, block=1))  # 4 blocks, which is no multiple of 3
    run(definition.instantiate(), stream)
    assert out[1][:5].tolist() == [200, 201, 200, 201, 0]


def test_cooperative_launches(device, stream, more_kernels, out):
    definition = GraphDefinition()
    definition.launch(LaunchConfig(grid=4, block=1, is_cooperative=True), more_kernels["meet"], out[0])
    run(definition.instantiate(), stream)
    assert out[1][:6].tolist() == [4, 4, 4, 4, 4, 0]


def test_captured_nodes_tell_their_attributes(device, stream, kernels, memory):
    builder = device.create_graph_builder().begin_building()
    config = LaunchConfig(grid=2, block=32, is_cooperative=True, preferred_shared_memory_carveout=25)
    launch(builder, config, kernels[0], memory[0], 1)
    builder.end_building()
    (node,) = builder.graph_definition.nodes()
    assert node.config.is_cooperative and node.config.preferred_shared_memory_carveout == 25
    assert (node.config.grid, node.config.block, node.device_node) == ((2, 1, 1), (32, 1, 1), 0)
    node.update(args=(memory[0], 2))
    run(builder.complete(), stream)
    assert memory[1][0] == 128


@pytest.mark.parametrize(
    ("name", "number", "port"),
    [("programmatic_event", 7, "PROGRAMMATIC"), ("launch_completion_event", 12, "LAUNCH_ORDER")],
)
def test_the_driver_gives_kernel_nodes_no_events(device, kernels, memory, name, number, port):
    definition = GraphDefinition()
    event = device.create_event(EventOptions())
    config = LaunchConfig(grid=1, block=1, **{name: event})
    with pytest.raises(ValueError, match=rf"{name}.*node\.record\(event\).*PORT_{port}"):
        definition.launch(config, kernels[0], memory[0], 1)
    assert definition.nodes() == set()
    node = definition.launch(LaunchConfig(grid=1, block=1), kernels[0], memory[0], 1)
    value = driver.CUlaunchAttributeValue()
    value.launchCompletionEvent.event = event.handle
    refused = driver.cuGraphKernelNodeSetAttribute(node.handle, driver.CUlaunchAttributeID(number), value)
    assert refused[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE


@pytest.mark.parametrize("has_memory", [False, True])
def test_what_is_refused_changes_nothing(device, kernels, memory, has_memory):
    if not device.properties.cluster_launch:
        pytest.skip("no clusters")
    definition = GraphDefinition()
    if has_memory:  # then the driver lets nobody destroy nodes
        definition.allocate(16)
    config = LaunchConfig(grid=1, cluster=2, block=1, priority=-1)
    node = definition.launch(config, kernels[0], memory[0], 1)
    nodes = definition.nodes()
    wrong = LaunchConfig(grid=1, cluster=64, block=1)
    for do in (
        lambda: definition.launch(wrong, kernels[0], memory[0], 1),
        lambda: node.launch(wrong, kernels[0], memory[0], 1),
        lambda: node.update(config=wrong),
        lambda: node.update(config=LaunchConfig(grid=1, block=(1024, 2), priority=0)),
    ):
        with pytest.raises(CUDAError):
            do()
        assert definition.nodes() == nodes and node.config == config


def test_executables_cannot_change_attributes(device, stream, kernels, memory):
    definition = GraphDefinition()
    node = definition.launch(LaunchConfig(grid=2, block=1, priority=-1), kernels[0], memory[0], 1)
    graph = definition.instantiate()
    view = graph[node]
    with pytest.raises(NotImplementedError, match="cannot be changed in an executable"):
        view.update(config=ONE, kernel=kernels[0], args=(memory[0], 1))
    view.update(config=LaunchConfig(grid=3, block=1, priority=-1), kernel=kernels[0], args=(memory[0], 2))
    run(graph, stream)
    assert memory[1][0] == 6


# --- nodes that kernels change ----------------------------------------------------------------------------


def test_kernels_change_nodes(device, stream, kernels, more_kernels, memory):
    definition = GraphDefinition()
    changed = definition.launch(
        LaunchConfig(grid=1, block=1, device_updatable_kernel_node=True), kernels[0], memory[0], 1
    )
    assert changed.device_node != 0 and changed.config.device_updatable_kernel_node
    setter = definition.launch(ONE, more_kernels["set_value"], changed.device_node, 7)
    assert setter.device_node == 0
    changed.pred = {setter}
    graph = definition.instantiate()
    graph.upload(stream)
    run(graph, stream)
    assert memory[1][0] == 7
    with pytest.raises(CUDAError):
        definition.instantiate()
    with pytest.raises(CUDAError):
        changed.destroy()
    changed.update(config=LaunchConfig(grid=2, block=1))
    assert changed.device_node != 0 and changed.config.device_updatable_kernel_node and changed.grid == (2, 1, 1)


def test_captured_nodes_that_kernels_change(device, stream, kernels, more_kernels, memory):
    config = LaunchConfig(grid=1, block=1, device_updatable_kernel_node=True)
    builder = device.create_graph_builder().begin_building()
    launch(builder, config, kernels[0], memory[0], 1)
    builder.end_building()
    (node,) = builder.graph_definition.nodes()
    assert config.device_node == node.device_node != 0
    graph = builder.complete()
    graph.upload(stream)
    launch(stream, ONE, more_kernels["set_value"], config.device_node, 5)
    run(graph, stream)
    assert memory[1][0] == 5
