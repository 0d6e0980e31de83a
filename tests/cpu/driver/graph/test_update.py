"""Changing executable graphs, and launches that were queued before the change."""

from __future__ import annotations

import ctypes

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import compiled, explanation, ok, pack, status

BAD = "CUDA_ERROR_INVALID_VALUE"
RESULT = driver.CUgraphExecUpdateResult
SOURCE = r"""
extern "C" __global__ void set(unsigned* x, unsigned n) { x[threadIdx.x] = n; }
extern "C" __global__ void other(unsigned* x, unsigned n) { x[threadIdx.x] = n + 100; }
"""


@pytest.fixture
def kernel(context):
    module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    yield lambda name: ok(driver.cuModuleGetFunction(module, name.encode()))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuModuleUnload(module))


def memset_params(address: int, value: int):
    params = driver.CUDA_MEMSET_NODE_PARAMS()
    params.dst, params.value, params.elementSize, params.width, params.height = address, value, 4, 1, 1
    return params


def kernel_params(function, address: int, value: int, keep: list, block: int = 1):
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = function
    params.gridDimX = params.gridDimY = params.gridDimZ = 1
    params.blockDimX, params.blockDimY, params.blockDimZ = block, 1, 1
    keep.append(pack(ctypes.c_uint64(address), ctypes.c_uint32(value)))
    params.kernelParams = ctypes.addressof(keep[-1][0])
    return params


def memset_graph(address: int, *values: int):
    """A chain of memset nodes on successive words."""
    graph, nodes = ok(driver.cuGraphCreate(0)), []
    for i, value in enumerate(values):
        params = memset_params(address + 4 * i, value)
        nodes.append(ok(driver.cuGraphAddMemsetNode(graph, nodes[-1:], len(nodes[-1:]), params, None)))
    return graph, nodes


@pytest.fixture
def executable(context, memory):
    """(executable, nodes, graph) of two memset nodes that write 1 and 2."""
    graph, nodes = memset_graph(ctypes.addressof(memory), 1, 2)
    made = ok(driver.cuGraphInstantiate(graph, 0))
    yield made, nodes, graph
    ok(driver.cuGraphExecDestroy(made))
    ok(driver.cuGraphDestroy(graph))


def launch(executable, stream) -> None:
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))


def test_setting_a_node_of_the_executable(executable, make_stream, memory):
    (made, nodes, graph), stream, base = executable, make_stream(), ctypes.addressof(memory)
    ok(driver.cuGraphExecMemsetNodeSetParams(made, nodes[0], memset_params(base, 7), None))
    launch(made, stream)
    assert list(memory[:2]) == [7, 2]
    assert ok(driver.cuGraphMemsetNodeGetParams(nodes[0])).value == 1  # the definition is as it was
    again = ok(driver.cuGraphInstantiate(graph, 0))
    launch(again, stream)
    assert list(memory[:2]) == [1, 2]
    ok(driver.cuGraphExecDestroy(again))


def test_queued_launches_keep_their_parameters(executable, make_stream, memory, host):
    (made, nodes, _), stream, base = executable, make_stream(), ctypes.addressof(memory)
    host.block(stream)
    ok(driver.cuGraphLaunch(made, stream))
    host.call(stream, lambda: host.notes.append(memory[0]))
    ok(driver.cuGraphExecMemsetNodeSetParams(made, nodes[0], memset_params(base, 7), None))
    ok(driver.cuGraphLaunch(made, stream))
    host.call(stream, lambda: host.notes.append(memory[0]))
    host.release()
    ok(driver.cuStreamSynchronize(stream))
    assert host.notes == [1, 7]


def test_changing_the_definition_does_not_change_the_executable(executable, make_stream, memory):
    (made, nodes, graph), stream, base = executable, make_stream(), ctypes.addressof(memory)
    ok(driver.cuGraphMemsetNodeSetParams(nodes[0], memset_params(base, 9)))
    launch(made, stream)
    assert memory[0] == 1
    ok(driver.cuGraphExecUpdate(made, graph))
    launch(made, stream)
    assert memory[0] == 9


def test_disabled_nodes(executable, make_stream, memory):
    (made, nodes, _), stream = executable, make_stream()
    assert ok(driver.cuGraphNodeGetEnabled(made, nodes[0])) == 1
    ok(driver.cuGraphNodeSetEnabled(made, nodes[0], 0))
    assert ok(driver.cuGraphNodeGetEnabled(made, nodes[0])) == 0
    launch(made, stream)
    assert list(memory[:2]) == [0, 2]
    ok(driver.cuGraphNodeSetEnabled(made, nodes[0], 1))
    launch(made, stream)
    assert list(memory[:2]) == [1, 2]


def test_only_some_nodes_can_be_disabled(context):
    graph = ok(driver.cuGraphCreate(0))
    node = ok(driver.cuGraphAddEmptyNode(graph, [], 0))
    made = ok(driver.cuGraphInstantiate(graph, 0))
    assert status(driver.cuGraphNodeSetEnabled(made, node, 0)) == BAD
    ok(driver.cuGraphExecDestroy(made))
    ok(driver.cuGraphDestroy(graph))


def test_kernel_nodes(kernel, make_stream, memory):
    keep: list = []
    base, stream, graph = ctypes.addressof(memory), make_stream(), ok(driver.cuGraphCreate(0))
    node = ok(driver.cuGraphAddKernelNode(graph, [], 0, kernel_params(kernel("set"), base, 1, keep)))
    made = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphExecKernelNodeSetParams(made, node, kernel_params(kernel("set"), base, 5, keep, block=3)))
    launch(made, stream)
    assert list(memory[:4]) == [5, 5, 5, 0]
    ok(driver.cuGraphKernelNodeSetParams(node, kernel_params(kernel("other"), base, 6, keep)))
    ok(driver.cuGraphExecUpdate(made, graph))
    launch(made, stream)
    assert list(memory[:3]) == [106, 5, 5]
    ok(driver.cuGraphExecDestroy(made))
    ok(driver.cuGraphDestroy(graph))


def test_host_and_event_nodes(context, make_stream, make_event, host):
    graph, stream = ok(driver.cuGraphCreate(0)), make_stream()
    first, second = make_event(), make_event()
    record = ok(driver.cuGraphAddEventRecordNode(graph, [], 0, first))
    wait = ok(driver.cuGraphAddEventWaitNode(graph, [record], 1, first))
    params = driver.CUDA_HOST_NODE_PARAMS()
    params.fn = host.function(lambda: host.notes.append("a"))
    node = ok(driver.cuGraphAddHostNode(graph, [wait], 1, params))
    made = ok(driver.cuGraphInstantiate(graph, 0))
    params.fn = host.function(lambda: host.notes.append("b"))
    ok(driver.cuGraphExecHostNodeSetParams(made, node, params))
    ok(driver.cuGraphExecEventRecordNodeSetEvent(made, record, second))
    ok(driver.cuGraphExecEventWaitNodeSetEvent(made, wait, second))
    launch(made, stream)
    ok(driver.cuEventSynchronize(second))
    assert host.notes == ["b"]
    ok(driver.cuGraphExecDestroy(made))
    ok(driver.cuGraphDestroy(graph))


def test_child_graphs(context, make_stream, memory):
    base, stream, outer = ctypes.addressof(memory), make_stream(), ok(driver.cuGraphCreate(0))
    child, _ = memset_graph(base, 1, 2)
    node = ok(driver.cuGraphAddChildGraphNode(outer, [], 0, child))
    made = ok(driver.cuGraphInstantiate(outer, 0))
    same, _ = memset_graph(base, 5, 6)
    longer, _ = memset_graph(base, 5, 6, 7)
    ok(driver.cuGraphExecChildGraphNodeSetParams(made, node, same))
    launch(made, stream)
    assert list(memory[:2]) == [5, 6]
    assert status(driver.cuGraphExecChildGraphNodeSetParams(made, node, longer)) != "CUDA_SUCCESS"
    inner = ok(driver.cuGraphGetNodes(ok(driver.cuGraphChildGraphNodeGetGraph(node)), 8))[0]
    ok(driver.cuGraphExecMemsetNodeSetParams(made, inner[0], memset_params(base, 8), None))
    launch(made, stream)
    assert list(memory[:2]) == [8, 6]
    ok(driver.cuGraphExecDestroy(made))
    for graph in (outer, child, same, longer):
        ok(driver.cuGraphDestroy(graph))


def update_result(executable, graph):
    result = driver.cuGraphExecUpdate(executable, graph)
    return status(result), result


def test_updates_that_fail_change_nothing(executable, make_stream, memory):
    (made, nodes, _), stream, base = executable, make_stream(), ctypes.addressof(memory)
    longer, _ = memset_graph(base, 5, 6, 7)
    unlinked = ok(driver.cuGraphCreate(0))
    for value in (8, 9):
        ok(driver.cuGraphAddMemsetNode(unlinked, [], 0, memset_params(base, value), None))
    mixed, first = memset_graph(base, 5)
    ok(driver.cuGraphAddEmptyNode(mixed, first, 1))
    for graph in (longer, unlinked, mixed):
        assert update_result(made, graph)[0] == "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"
    launch(made, stream)
    assert list(memory[:2]) == [1, 2]
    for graph in (longer, unlinked, mixed):
        ok(driver.cuGraphDestroy(graph))
    del nodes


def test_strangers(executable, context, memory):
    made, nodes, graph = executable
    other, other_nodes = memset_graph(ctypes.addressof(memory), 1)
    params = memset_params(ctypes.addressof(memory), 1)
    assert status(driver.cuGraphExecMemsetNodeSetParams(made, other_nodes[0], params, None)) == BAD
    assert status(driver.cuGraphExecHostNodeSetParams(made, nodes[0], driver.CUDA_HOST_NODE_PARAMS())) == BAD
    ok(driver.cuGraphDestroy(other))
    stale = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphExecDestroy(stale))
    for call in (
        lambda: driver.cuGraphExecDestroy(stale),
        lambda: driver.cuGraphLaunch(stale, 0),
        lambda: driver.cuGraphExecUpdate(stale, graph),
    ):
        assert status(call()) != "CUDA_SUCCESS"


def test_flags(executable):
    _, _, graph = executable
    assert status(driver.cuGraphInstantiate(graph, 1 << 20)) == BAD
    assert status(driver.cuGraphInstantiate(graph, 1 | 4)) == BAD


@pytest.mark.cpu_only
def test_a_failed_update_says_why(executable, memory):
    made, _, _ = executable
    longer, _ = memset_graph(ctypes.addressof(memory), 5, 6, 7)
    assert "nodes or edges were added or removed" in explanation(driver.cuGraphExecUpdate(made, longer))
    ok(driver.cuGraphDestroy(longer))


def test_uploading(executable, make_stream, memory):
    made, _, _ = executable
    stream = make_stream()
    ok(driver.cuGraphUpload(made, stream))
    launch(made, stream)
    assert list(memory[:2]) == [1, 2]


def test_one_executable_in_two_streams(executable, make_stream, memory):
    made, _, _ = executable
    streams = [make_stream() for _ in range(2)]
    for _ in range(50):
        for stream in streams:
            ok(driver.cuGraphLaunch(made, stream))
    for stream in streams:
        ok(driver.cuStreamSynchronize(stream))
    assert list(memory[:2]) == [1, 2]
