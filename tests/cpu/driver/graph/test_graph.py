"""Graphs: nodes and their parameters, edges, clones, memory of graphs, user objects, conditions, pictures."""

from __future__ import annotations

import ctypes
import threading

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import (
    HOST_FUNCTION,
    compiled,
    driver_version,
    explanation,
    ok,
    pack,
    status,
)
from tests.limits import eventually

TYPE = driver.CUgraphNodeType
BAD = "CUDA_ERROR_INVALID_VALUE"
SOURCE = r"""
extern "C" __global__ void add(unsigned* x, unsigned n) { atomicAdd(x + blockIdx.x, n * threadIdx.x); }
extern "C" __global__ void nothing() {}
"""


@pytest.fixture
def kernel(context):
    module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    yield lambda name: ok(driver.cuModuleGetFunction(module, name.encode()))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuModuleUnload(module))


@pytest.fixture
def run(make_stream):
    """Instantiate a graph, launch it some times, and wait."""
    stream = make_stream()

    def run(graph, times: int = 1, flags: int = 0) -> None:
        executable = ok(driver.cuGraphInstantiate(graph, flags))
        for _ in range(times):
            ok(driver.cuGraphLaunch(executable, stream))
        ok(driver.cuStreamSynchronize(stream))
        ok(driver.cuGraphExecDestroy(executable))

    return run


def memset(graph, address: int, value: int, after=(), *, width: int = 1, size: int = 4):
    params = driver.CUDA_MEMSET_NODE_PARAMS()
    params.dst, params.value, params.elementSize, params.width, params.height = address, value, size, width, 1
    return driver.cuGraphAddMemsetNode(graph, list(after), len(after), params, ok(driver.cuCtxGetCurrent()))


def empty(graph, after=()):
    return ok(driver.cuGraphAddEmptyNode(graph, list(after), len(after)))


def copy_form(target: int, source: int, size: int, kind=driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED):
    form = driver.CUDA_MEMCPY3D()
    form.srcMemoryType = form.dstMemoryType = kind
    form.srcDevice, form.dstDevice = source, target
    form.WidthInBytes, form.Height, form.Depth = size, 1, 1
    return form


def kernel_params(function, *arguments, grid: int = 1, block: int = 1, keep: list):
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = function
    params.gridDimX, params.gridDimY, params.gridDimZ = grid, 1, 1
    params.blockDimX, params.blockDimY, params.blockDimZ = block, 1, 1
    pointers, kept = pack(*arguments)
    keep.append((pointers, kept))
    params.kernelParams = ctypes.addressof(pointers)
    return params


def nodes(graph) -> list:
    return ok(driver.cuGraphGetNodes(graph, 64))[0]


def in_any_order(nodes) -> list[int]:
    return sorted(int(node) for node in nodes)


def edges(graph) -> set[tuple[int, int]]:
    sources, targets, _data, _count = ok(driver.cuGraphGetEdges(graph, 64))
    return {(int(a), int(b)) for a, b in zip(sources, targets, strict=True)}


# ---- nodes and parameters ------------------------------------------------------------------------


def test_kernel_nodes(graph, kernel, memory, run):
    keep: list = []
    base = ctypes.c_uint64(ctypes.addressof(memory))
    amount = ctypes.c_uint32(2)
    params = kernel_params(kernel("add"), base, amount, grid=3, block=4, keep=keep)
    node = ok(driver.cuGraphAddKernelNode(graph, [], 0, params))
    amount.value = 1000  # the parameters were copied
    run(graph, times=2)
    assert list(memory[:4]) == [24, 24, 24, 0]
    got = ok(driver.cuGraphKernelNodeGetParams(node))
    assert (got.gridDimX, got.blockDimX, got.sharedMemBytes) == (3, 4, 0)
    assert int(got.func) == int(kernel("add"))
    pointers = (ctypes.c_void_p * 2).from_address(int(got.kernelParams))
    assert ctypes.c_uint64.from_address(pointers[0]).value == base.value
    assert ctypes.c_uint32.from_address(pointers[1]).value == 2
    params = kernel_params(kernel("add"), base, ctypes.c_uint32(1), grid=1, block=2, keep=keep)
    ok(driver.cuGraphKernelNodeSetParams(node, params))
    run(graph)
    assert list(memory[:2]) == [25, 24]
    params.blockDimX = 5000
    assert status(driver.cuGraphKernelNodeSetParams(node, params)) == BAD
    assert status(driver.cuGraphMemsetNodeGetParams(node)) == BAD


def test_kernel_node_attributes(graph, kernel):
    params = kernel_params(kernel("nothing"), keep=[])
    a, b = (ok(driver.cuGraphAddKernelNode(graph, [], 0, params)) for _ in range(2))
    attribute = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
    value = driver.CUlaunchAttributeValue()
    value.priority = -3
    ok(driver.cuGraphKernelNodeSetAttribute(a, attribute, value))
    assert ok(driver.cuGraphKernelNodeGetAttribute(a, attribute)).priority == -3
    assert ok(driver.cuGraphKernelNodeGetAttribute(b, attribute)).priority == 0
    ok(driver.cuGraphKernelNodeCopyAttributes(b, a))
    assert ok(driver.cuGraphKernelNodeGetAttribute(b, attribute)).priority == -3


def test_memset_nodes(graph, memory, run):
    base = ctypes.addressof(memory)
    node = ok(memset(graph, base, 0x0102, width=3, size=2))
    run(graph)
    assert memory[0] == 0x01020102 and memory[1] == 0x0102
    got = ok(driver.cuGraphMemsetNodeGetParams(node))
    assert (int(got.dst), got.value, got.elementSize, got.width, got.height) == (base, 0x0102, 2, 3, 1)
    got.value = 7
    ok(driver.cuGraphMemsetNodeSetParams(node, got))
    run(graph)
    assert memory[0] == 0x00070007
    for width, size in ((0, 4), (1, 3)):
        assert status(memset(graph, base, 0, width=width, size=size)) == BAD
    assert nodes(graph) == [node]


def test_memcpy_nodes(graph, memory, run, context):
    base = ctypes.addressof(memory)
    memory[0], memory[1] = 5, 6
    node = ok(driver.cuGraphAddMemcpyNode(graph, [], 0, copy_form(base + 40, base, 8), context))
    run(graph)
    assert list(memory[10:12]) == [5, 6]
    got = ok(driver.cuGraphMemcpyNodeGetParams(node))
    assert (int(got.srcDevice), int(got.dstDevice), got.WidthInBytes) == (base, base + 40, 8)
    ok(driver.cuGraphMemcpyNodeSetParams(node, copy_form(base + 80, base + 4, 4)))
    run(graph)
    assert memory[20] == 6
    assert status(driver.cuGraphAddMemcpyNode(graph, [], 0, copy_form(base, base, 0), context)) == BAD


def test_host_nodes(graph, host, run):
    params = driver.CUDA_HOST_NODE_PARAMS()
    params.fn = host.function(lambda: host.notes.append("a"))
    node = ok(driver.cuGraphAddHostNode(graph, [], 0, params))
    run(graph, times=2)
    params.fn = host.function(lambda: host.notes.append("b"))
    ok(driver.cuGraphHostNodeSetParams(node, params))
    run(graph)
    assert host.notes == ["a", "a", "b"]
    assert int(ok(driver.cuGraphHostNodeGetParams(node)).fn) == int(params.fn)
    assert status(driver.cuGraphAddHostNode(graph, [], 0, driver.CUDA_HOST_NODE_PARAMS())) == BAD


def test_event_nodes(graph, memory, make_event, make_stream):
    recorded, other, stream = make_event(), make_event(), make_stream()
    a = ok(driver.cuGraphAddEventRecordNode(graph, [], 0, recorded))
    b = ok(driver.cuGraphAddEventWaitNode(graph, [a], 1, recorded))
    assert ok(driver.cuGraphEventRecordNodeGetEvent(a)) == recorded
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    for _ in range(3):
        ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuEventSynchronize(recorded))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphEventRecordNodeSetEvent(a, other))
    ok(driver.cuGraphEventWaitNodeSetEvent(b, other))
    assert ok(driver.cuGraphEventRecordNodeGetEvent(a)) == ok(driver.cuGraphEventWaitNodeGetEvent(b)) == other


def test_an_event_that_a_graph_records_completes_with_the_launch(graph, make_event, make_stream, host):
    event, stream = make_event(), make_stream()
    ok(driver.cuGraphAddEventRecordNode(graph, [], 0, event))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    host.block(stream)
    ok(driver.cuGraphLaunch(executable, stream))
    assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_NOT_READY"
    host.release()
    ok(driver.cuEventSynchronize(event))
    ok(driver.cuGraphExecDestroy(executable))


def test_a_graph_waits_for_an_event_of_another_stream(graph, make_event, make_stream, host):
    event, first, second = make_event(), make_stream(), make_stream()
    wait = ok(driver.cuGraphAddEventWaitNode(graph, [], 0, event))
    params = driver.CUDA_HOST_NODE_PARAMS()
    params.fn = host.function(lambda: host.notes.append("graph"))
    ok(driver.cuGraphAddHostNode(graph, [wait], 1, params))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    host.block(first)
    host.note(first, "first")
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuGraphLaunch(executable, second))
    assert host.notes == []
    host.release()
    ok(driver.cuStreamSynchronize(second))
    assert host.notes == ["first", "graph"]
    ok(driver.cuGraphExecDestroy(executable))


def test_the_generic_functions(graph, memory, make_event, context):
    base, event = ctypes.addressof(memory), make_event()
    params = driver.CUgraphNodeParams()
    params.type = TYPE.CU_GRAPH_NODE_TYPE_MEMSET
    params.memset.dst, params.memset.value, params.memset.elementSize = base, 3, 4
    params.memset.width = params.memset.height = 1
    first = ok(driver.cuGraphAddNode(graph, [], [], 0, params))
    record = driver.CUgraphNodeParams()
    record.type = TYPE.CU_GRAPH_NODE_TYPE_EVENT_RECORD
    record.eventRecord.event = event
    second = ok(driver.cuGraphAddNode(graph, [first], [driver.CUgraphEdgeData()], 1, record))
    assert edges(graph) == {(int(first), int(second))}
    params.memset.value = 4
    ok(driver.cuGraphNodeSetParams(first, params))
    assert ok(driver.cuGraphMemsetNodeGetParams(first)).value == 4
    if driver_version() >= 13020:
        got = ok(driver.cuGraphNodeGetParams(first))
        assert got.type == TYPE.CU_GRAPH_NODE_TYPE_MEMSET and got.memset.value == 4
        assert ok(driver.cuGraphNodeGetParams(second)).eventRecord.event == event
    assert status(driver.cuGraphNodeSetParams(second, params)) == BAD


def test_child_graphs(graph, memory, run):
    base = ctypes.addressof(memory)
    child = ok(driver.cuGraphCreate(0))
    inner = ok(memset(child, base, 1))
    node = ok(driver.cuGraphAddChildGraphNode(graph, [], 0, child))
    ok(memset(child, base + 4, 2))  # the child was cloned before
    clone = ok(driver.cuGraphChildGraphNodeGetGraph(node))
    assert clone != child and len(nodes(clone)) == 1
    assert ok(driver.cuGraphNodeFindInClone(inner, clone)) == nodes(clone)[0]
    ok(driver.cuGraphDestroy(child))
    run(graph)
    assert list(memory[:2]) == [1, 0]
    assert status(driver.cuGraphDestroy(clone)) == BAD  # it belongs to the node
    ok(driver.cuGraphDestroyNode(node))
    assert status(driver.cuGraphGetNodes(clone)) != "CUDA_SUCCESS"


# ---- edges ---------------------------------------------------------------------------------------


def test_edges(graph):
    a, b = empty(graph), empty(graph)
    c, d = empty(graph, [a, b]), empty(graph)
    data = [driver.CUgraphEdgeData()] * 2
    assert edges(graph) == {(int(a), int(c)), (int(b), int(c))}
    ok(driver.cuGraphAddDependencies(graph, [c, a], [d, d], data, 2))
    assert ok(driver.cuGraphNodeGetDependencies(d, 8))[0] == [c, a]
    assert ok(driver.cuGraphNodeGetDependentNodes(a, 8))[0] == [c, d]
    assert in_any_order(ok(driver.cuGraphGetRootNodes(graph, 8))[0]) == in_any_order([a, b])
    ok(driver.cuGraphRemoveDependencies(graph, [a], [d], data[:1], 1))
    assert ok(driver.cuGraphNodeGetDependencies(d, 8))[0] == [c]
    ok(driver.cuGraphDestroyNode(c))
    assert edges(graph) == set() and in_any_order(nodes(graph)) == in_any_order([a, b, d])


def test_lists_and_their_counts(graph):
    made = [empty(graph) for _ in range(5)]
    assert ok(driver.cuGraphGetNodes(graph))[1] == 5
    found, count = ok(driver.cuGraphGetNodes(graph, 3))
    assert (found[:3], count) == (made[:3], 3)
    found, count = ok(driver.cuGraphGetNodes(graph, 5))
    assert (found, count) == (made, 5)


def test_bad_edges(graph):
    a, b, c = (empty(graph) for _ in range(3))
    other = ok(driver.cuGraphCreate(0))
    stranger = empty(other)
    data = [driver.CUgraphEdgeData()] * 2
    ok(driver.cuGraphAddDependencies(graph, [a], [b], data, 1))
    for sources, targets in (([a], [b]), ([a], [a]), ([a], [stranger]), ([stranger], [a])):
        assert status(driver.cuGraphAddDependencies(graph, sources, targets, data, 1)) == BAD
    assert status(driver.cuGraphAddDependencies(graph, [b, a], [c, b], data, 2)) == BAD
    assert edges(graph) == {(int(a), int(b)), (int(b), int(c))}  # those before the bad one stay
    assert status(driver.cuGraphRemoveDependencies(graph, [b], [a], data, 1)) == BAD
    assert status(driver.cuGraphAddEmptyNode(graph, [stranger], 1)) == BAD
    assert status(driver.cuGraphAddEmptyNode(graph, [a, a], 2)) == BAD
    ok(driver.cuGraphDestroy(other))


@pytest.mark.cpu_only
def test_nodes_and_graphs_that_are_gone(context):
    """The driver of a GPU need not notice, and may follow the handle into memory that was freed."""
    graph = ok(driver.cuGraphCreate(0))
    node = empty(graph)
    ok(driver.cuGraphDestroy(graph))
    assert status(driver.cuGraphNodeGetType(node)) != "CUDA_SUCCESS"
    assert status(driver.cuGraphDestroy(graph)) != "CUDA_SUCCESS"


def test_cycles_are_found_when_instantiating(graph):
    a = empty(graph)
    b = empty(graph, [a])
    ok(driver.cuGraphAddDependencies(graph, [b], [a], [driver.CUgraphEdgeData()], 1))
    params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    result = driver.cuGraphInstantiateWithParams(graph, params)
    assert status(result) == BAD
    assert params.result_out == driver.CUgraphInstantiateResult.CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE


def test_edges_decide_the_order(graph, memory, run):
    base = ctypes.addressof(memory)
    last = ok(memset(graph, base, 3))
    middle = ok(memset(graph, base, 2))
    first = ok(memset(graph, base, 1))
    data = [driver.CUgraphEdgeData()] * 2
    ok(driver.cuGraphAddDependencies(graph, [first, middle], [middle, last], data, 2))
    run(graph)
    assert memory[0] == 3


def test_clones(graph, memory, run):
    base = ctypes.addressof(memory)
    a = ok(memset(graph, base, 1))
    b = ok(memset(graph, base + 4, 2, [a]))
    clone = ok(driver.cuGraphClone(graph))
    copies = [ok(driver.cuGraphNodeFindInClone(n, clone)) for n in (a, b)]
    assert edges(clone) == {(int(copies[0]), int(copies[1]))}
    assert status(driver.cuGraphNodeFindInClone(copies[0], clone)) == BAD
    ok(driver.cuGraphDestroyNode(a))
    run(clone)
    assert list(memory[:2]) == [1, 2]
    ok(driver.cuGraphDestroy(clone))


# ---- memory of graphs ----------------------------------------------------------------------------


def allocation(size: int):
    params = driver.CUDA_MEM_ALLOC_NODE_PARAMS()
    params.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    params.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    params.poolProps.location.id = 0
    params.bytesize = size
    return params


def graph_memory(name: str) -> int:
    return int(ok(driver.cuDeviceGetGraphMemAttribute(0, driver.CUgraphMem_attribute[f"CU_GRAPH_MEM_ATTR_{name}"])))


def test_memory_between_two_nodes(graph, memory, run, context):
    base = ctypes.addressof(memory)
    params = allocation(4096)
    a = ok(driver.cuGraphAddMemAllocNode(graph, [], 0, params))
    address = int(params.dptr)
    assert address and int(ok(driver.cuGraphMemAllocNodeGetParams(a)).dptr) == address
    fill = ok(memset(graph, address, 5, [a], width=1024))
    copy = ok(driver.cuGraphAddMemcpyNode(graph, [fill], 1, copy_form(base, address, 4096), context))
    free = ok(driver.cuGraphAddMemFreeNode(graph, [copy], 1, address))
    assert int(ok(driver.cuGraphMemFreeNodeGetParams(free))) == address
    assert status(driver.cuGraphAddMemFreeNode(graph, [copy], 1, address)) == BAD
    run(graph, times=3)
    assert list(memory) == [5] * 1024
    # A GPU keeps the memory with the executable graph; the CPU device gives it back at the free node.
    assert graph_memory("USED_MEM_HIGH") >= 4096 and (graph_memory("USED_MEM_CURRENT") == 0 or not on_cpu_device())
    assert status(driver.cuMemsetD8(address, 0, 1)) != "CUDA_SUCCESS"  # not allocated outside of a launch
    ok(
        driver.cuDeviceSetGraphMemAttribute(
            0, driver.CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, driver.cuuint64_t(0)
        )
    )
    assert graph_memory("USED_MEM_HIGH") == graph_memory("USED_MEM_CURRENT")
    ok(driver.cuDeviceGraphMemTrim(0))


def test_graphs_with_memory_nodes_are_not_taken_apart(graph):
    params = allocation(64)
    node = ok(driver.cuGraphAddMemAllocNode(graph, [], 0, params))
    after = empty(graph, [node])
    assert status(driver.cuGraphDestroyNode(after)) != "CUDA_SUCCESS"
    data = [driver.CUgraphEdgeData()]
    assert status(driver.cuGraphRemoveDependencies(graph, [node], [after], data, 1)) != "CUDA_SUCCESS"
    assert status(driver.cuGraphClone(graph)) != "CUDA_SUCCESS"
    outer = ok(driver.cuGraphCreate(0))
    assert status(driver.cuGraphAddChildGraphNode(outer, [], 0, graph)) != "CUDA_SUCCESS"
    ok(driver.cuGraphDestroy(outer))
    assert status(driver.cuGraphAddMemAllocNode(graph, [], 0, allocation(0))) == BAD
    assert status(driver.cuGraphAddMemFreeNode(graph, [], 0, 4096)) == BAD


def test_memory_that_outlives_the_launch(graph, make_stream):
    stream, params = make_stream(), allocation(4096)
    ok(driver.cuGraphAddMemAllocNode(graph, [], 0, params))
    address = int(params.dptr)
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuMemsetD8Async(address, 1, 4096, stream))
    assert status(driver.cuGraphLaunch(executable, stream)) == BAD  # it is still allocated
    ok(driver.cuMemFreeAsync(address, stream))
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(graph))
    ok(driver.cuMemsetD8(address, 2, 4096))  # the allocation outlives its graph, too
    ok(driver.cuCtxSynchronize())  # for which freeing it and trimming do not wait
    ok(driver.cuMemFree(address))
    assert graph_memory("USED_MEM_CURRENT") == 0 or not on_cpu_device()
    ok(driver.cuDeviceGraphMemTrim(0))  # a GPU's driver keeps what is free until then
    assert graph_memory("RESERVED_MEM_CURRENT") == 0


def test_freeing_at_the_next_launch(graph, make_stream):
    stream, params = make_stream(), allocation(4096)
    ok(driver.cuGraphAddMemAllocNode(graph, [], 0, params))
    flag = driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
    executable = ok(driver.cuGraphInstantiate(graph, flag))
    assert int(ok(driver.cuGraphExecGetFlags(executable))) == int(flag)
    for _ in range(3):
        ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuMemFree(int(params.dptr)))
    ok(driver.cuGraphExecDestroy(executable))


# ---- user objects --------------------------------------------------------------------------------


def test_user_objects(graph, make_stream, host):
    gone: list[int] = []
    destroy = HOST_FUNCTION(lambda data: gone.append(data))
    pointer = ctypes.cast(destroy, ctypes.c_void_p).value
    made = ok(driver.cuUserObjectCreate(77, pointer, 1, 1))
    ok(driver.cuUserObjectRetain(made, 2))
    ok(driver.cuUserObjectRelease(made, 2))
    ok(driver.cuGraphRetainUserObject(graph, made, 1, 1))  # moves the reference
    params = driver.CUDA_HOST_NODE_PARAMS()
    stream = make_stream()
    params.fn = host.function(lambda: host.notes.append(len(gone)))
    ok(driver.cuGraphAddHostNode(graph, [], 0, params))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphDestroy(graph))
    assert gone == []
    host.block(stream)
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuGraphExecDestroy(executable))  # the queued launch keeps what it needs
    host.release()
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuCtxSynchronize())
    assert host.notes == [0]
    assert eventually(lambda: gone == [77])  # no call waits for the destructor (CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)


def test_an_update_exchanges_user_objects(make_stream, host):
    """Those of the new graph come, those of the old one go when its queued launches are over; children included."""
    gone: list[int] = []
    destroy = HOST_FUNCTION(lambda data: gone.append(data))
    pointer = ctypes.cast(destroy, ctypes.c_void_p).value
    stream = make_stream()

    def make(number: int):
        child, outer = ok(driver.cuGraphCreate(0)), ok(driver.cuGraphCreate(0))
        ok(driver.cuGraphAddEmptyNode(child, [], 0))
        params = driver.CUDA_HOST_NODE_PARAMS()
        params.fn = host.function(lambda: host.notes.append((number, list(gone))))
        ok(driver.cuGraphAddHostNode(child, [], 0, params))
        for graph, data in ((child, number), (outer, number + 1)):
            ok(driver.cuGraphRetainUserObject(graph, ok(driver.cuUserObjectCreate(data, pointer, 1, 1)), 1, 1))
        ok(driver.cuGraphAddChildGraphNode(outer, [], 0, child))
        ok(driver.cuGraphDestroy(child))
        return outer

    first, second = make(10), make(20)
    executable = ok(driver.cuGraphInstantiate(first, 0))
    host.block(stream)
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuGraphDestroy(first))
    ok(driver.cuGraphExecUpdate(executable, second))
    ok(driver.cuGraphDestroy(second))
    assert gone == []
    host.release()
    ok(driver.cuStreamSynchronize(stream))
    assert eventually(lambda: sorted(gone) == [10, 11])
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert host.notes[0] == (10, []) and host.notes[1][0] == 20 and sorted(gone) == [10, 11]
    ok(driver.cuGraphExecDestroy(executable))
    assert eventually(lambda: sorted(gone) == [10, 11, 20, 21])


def test_bad_references(graph):
    destroy = HOST_FUNCTION(lambda data: None)
    pointer = ctypes.cast(destroy, ctypes.c_void_p).value
    assert status(driver.cuUserObjectCreate(0, pointer, 1, 0)) == BAD
    assert status(driver.cuUserObjectCreate(0, pointer, 0, 1)) == BAD
    made = ok(driver.cuUserObjectCreate(0, pointer, 1, 1))
    ok(driver.cuGraphRetainUserObject(graph, made, 2, 0))
    ok(driver.cuGraphReleaseUserObject(graph, made, 2))
    ok(driver.cuUserObjectRelease(made, 1))


@pytest.mark.cpu_only
def test_releasing_references_that_nobody_holds(graph):
    """Undefined behavior with the driver of a GPU, which does not count (cuUserObjectRelease)."""
    destroy = HOST_FUNCTION(lambda data: None)
    made = ok(driver.cuUserObjectCreate(0, ctypes.cast(destroy, ctypes.c_void_p).value, 1, 1))
    assert status(driver.cuGraphReleaseUserObject(graph, made, 1)) == BAD
    ok(driver.cuGraphRetainUserObject(graph, made, 2, 0))
    assert status(driver.cuGraphReleaseUserObject(graph, made, 3)) == BAD
    ok(driver.cuGraphReleaseUserObject(graph, made, 2))
    ok(driver.cuUserObjectRelease(made, 1))
    assert status(driver.cuUserObjectRelease(made, 1)) != "CUDA_SUCCESS"


# ---- conditional nodes ---------------------------------------------------------------------------


KIND = driver.CUgraphConditionalNodeType


def add_conditional(graph, handle, kind, size: int = 1, *, context=None):
    """The result of cuGraphAddNode, and the parameters, which have the bodies after it."""
    params = driver.CUgraphNodeParams()
    params.type = TYPE.CU_GRAPH_NODE_TYPE_CONDITIONAL
    params.conditional.handle = handle
    params.conditional.type = kind
    params.conditional.size = size
    params.conditional.ctx = ok(driver.cuCtxGetCurrent()) if context is None else context
    return driver.cuGraphAddNode(graph, [], [], 0, params), params


def conditional(graph, handle, kind, size: int = 1) -> list:
    """The bodies of a new conditional node."""
    result, params = add_conditional(graph, handle, kind, size)
    node, bodies = ok(result), params.conditional.phGraph_out
    if driver_version() >= 13020:
        got = ok(driver.cuGraphNodeGetParams(node)).conditional
        assert (got.phGraph_out, got.size, int(got.ctx)) == (bodies, size, int(params.conditional.ctx))
    return bodies


@pytest.mark.parametrize(
    ("kind", "size", "value", "expected"),
    [
        ("IF", 1, 1, [1, 0, 0]),
        ("IF", 1, 0, [0, 0, 0]),
        ("IF", 2, 5, [1, 0, 0]),
        ("IF", 2, 0, [0, 1, 0]),
        ("SWITCH", 3, 0, [1, 0, 0]),
        ("SWITCH", 3, 2, [0, 0, 1]),
        ("SWITCH", 3, 3, [0, 0, 0]),
    ],
)
def test_conditions_choose(graph, memory, run, context, kind, size, value, expected):
    base = ctypes.addressof(memory)
    handle = ok(driver.cuGraphConditionalHandleCreate(graph, context, value, driver.CU_GRAPH_COND_ASSIGN_DEFAULT))
    bodies = conditional(graph, handle, KIND[f"CU_GRAPH_COND_TYPE_{kind}"], size)
    assert len(bodies) == size
    for i, body in enumerate(bodies):
        ok(memset(body, base + 4 * i, 1))
    run(graph)
    assert list(memory[:3]) == expected


@pytest.mark.cpu_only
def test_a_loop_ends_when_its_condition_does(graph, memory, make_stream, host, context):
    """The handle is the address of the value on the CPU device, so a memset node can end the loop."""
    base, stream = ctypes.addressof(memory), make_stream()
    handle = ok(driver.cuGraphConditionalHandleCreate(graph, context, 1, driver.CU_GRAPH_COND_ASSIGN_DEFAULT))
    (body,) = conditional(graph, handle, KIND.CU_GRAPH_COND_TYPE_WHILE)
    ok(memset(body, int(handle), 0, [ok(memset(body, base, 9))]))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    for _ in range(2):  # the default counts again at each launch
        memory[0] = 0
        ok(driver.cuGraphLaunch(executable, stream))
        ok(driver.cuStreamSynchronize(stream))
        assert memory[0] == 9
    ok(driver.cuGraphExecDestroy(executable))


def test_bad_conditions(graph, context):
    handle = ok(driver.cuGraphConditionalHandleCreate(graph, context, 0, 0))
    params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    assert status(driver.cuGraphInstantiateWithParams(graph, params)) != "CUDA_SUCCESS"
    unused = driver.CUgraphInstantiateResult.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED
    assert params.result_out == unused
    other = ok(driver.cuGraphCreate(0))
    for where, kind, size in (
        (other, KIND.CU_GRAPH_COND_TYPE_IF, 1),
        (graph, KIND.CU_GRAPH_COND_TYPE_IF, 3),
        (graph, KIND.CU_GRAPH_COND_TYPE_WHILE, 2),
        (graph, KIND.CU_GRAPH_COND_TYPE_SWITCH, 0),
    ):
        assert status(add_conditional(where, handle, kind, size)[0]) == BAD
    no_context = add_conditional(graph, handle, KIND.CU_GRAPH_COND_TYPE_IF, context=driver.CUcontext(0))
    assert status(no_context[0]) == "CUDA_ERROR_INVALID_CONTEXT"
    ok(driver.cuGraphDestroy(other))


@pytest.mark.cpu_only
def test_a_condition_drives_one_node(graph, context):
    """The driver of a GPU may say so in other words, or only when the graph is instantiated."""
    handle = ok(driver.cuGraphConditionalHandleCreate(graph, context, 0, 0))
    conditional(graph, handle, KIND.CU_GRAPH_COND_TYPE_IF)
    assert status(add_conditional(graph, handle, KIND.CU_GRAPH_COND_TYPE_IF)[0]) == BAD


# ---- the order of launches -------------------------------------------------------------------------


def test_launches_and_uploads_come_behind_earlier_launches(graph, memory, make_stream, make_event, host):
    """Of the same executable, whatever streams they are in: also one that was destroyed meanwhile."""
    function = driver.CUDA_HOST_NODE_PARAMS()
    function.fn = host.function(lambda: host.notes.append("launch"))
    ok(driver.cuGraphAddHostNode(graph, [], 0, function))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    blocked, uploading, launching = ok(driver.cuStreamCreate(1)), make_stream(), make_stream()
    host.block(blocked)
    ok(driver.cuGraphLaunch(executable, blocked))
    ok(driver.cuStreamDestroy(blocked))
    ok(driver.cuGraphUpload(executable, uploading))
    host.note(uploading, "upload")
    uploaded = make_event(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)
    ok(driver.cuEventRecord(uploaded, uploading))
    ok(driver.cuStreamWaitEvent(launching, uploaded, 0))
    ok(driver.cuGraphLaunch(executable, launching))
    host.note(launching, "end")
    assert status(driver.cuStreamQuery(uploading)) == status(driver.cuStreamQuery(launching)) == "CUDA_ERROR_NOT_READY"
    assert host.notes == []
    host.release()
    ok(driver.cuStreamSynchronize(launching))
    assert host.notes == ["launch", "upload", "launch", "end"]
    ok(driver.cuGraphExecDestroy(executable))


def test_an_upload_behind_a_launch_outlives_the_executable(graph, make_stream, host):
    function = driver.CUDA_HOST_NODE_PARAMS()
    function.fn = host.function(lambda: host.notes.append("launch"))
    ok(driver.cuGraphAddHostNode(graph, [], 0, function))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    stream, uploading = make_stream(), make_stream()
    host.block(stream)
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuGraphUpload(executable, uploading))
    host.note(uploading, "upload")
    ok(driver.cuGraphExecDestroy(executable))
    host.release()
    ok(driver.cuStreamSynchronize(uploading))
    assert host.notes == ["launch", "upload"]


@pytest.mark.cpu_only  # a GPU's driver leaves it to programs to keep threads apart
def test_an_executable_that_another_thread_destroys(graph, memory, make_stream, context):
    stream, address = make_stream(), ctypes.addressof(memory)
    last = ok(memset(graph, address, 1))
    for value in range(100):
        last = ok(memset(graph, address, value, [last]))
    fill = driver.CUDA_MEMSET_NODE_PARAMS()
    fill.dst, fill.value, fill.elementSize, fill.width, fill.height = address, 7, 4, 1, 1
    calls = {
        "launch": lambda executable: driver.cuGraphLaunch(executable, stream),
        "upload": lambda executable: driver.cuGraphUpload(executable, stream),
        "change": lambda executable: driver.cuGraphExecMemsetNodeSetParams(executable, last, fill, context),
        "update": lambda executable: driver.cuGraphExecUpdate(executable, graph),
    }
    start, answers = threading.Barrier(len(calls) + 1), []
    executables = [ok(driver.cuGraphInstantiate(graph, 0)) for _ in range(100)]

    def work(call) -> None:
        ok(driver.cuCtxSetCurrent(context))
        for executable in executables:
            start.wait()
            answers.append(status(call(executable)))

    threads = [threading.Thread(target=work, args=(call,)) for call in calls.values()]
    for thread in threads:
        thread.start()
    for executable in executables:
        start.wait()
        ok(driver.cuGraphExecDestroy(executable))
    for thread in threads:
        thread.join()
    ok(driver.cuStreamSynchronize(stream))
    assert len(answers) == len(calls) * len(executables)
    assert set(answers) <= {"CUDA_SUCCESS", "CUDA_ERROR_INVALID_HANDLE"}


# ---- pictures ------------------------------------------------------------------------------------


def test_pictures(graph, kernel, memory, tmp_path):
    a = ok(memset(graph, ctypes.addressof(memory), 1))
    ok(driver.cuGraphAddKernelNode(graph, [a], 1, kernel_params(kernel("nothing"), grid=5, keep=[])))
    path = tmp_path / "graph.dot"
    ok(driver.cuGraphDebugDotPrint(graph, str(path).encode(), 1))
    text = path.read_text()
    assert text.startswith("digraph") and "nothing" in text and "->" in text
    assert status(driver.cuGraphDebugDotPrint(graph, str(tmp_path / "no" / "such").encode(), 1)) != "CUDA_SUCCESS"


@pytest.mark.cpu_only
def test_refusals_explain(graph, memory):
    assert "elements of a fill have 3 bytes" in explanation(memset(graph, ctypes.addressof(memory), 0, size=3))
    assert "cycle" in explanation(_cycle(graph))
    ok(driver.cuGraphDestroy(graph))
    assert "graph" in explanation(driver.cuGraphInstantiate(graph, 0))


def _cycle(graph):
    a = empty(graph)
    b = empty(graph, [a])
    ok(driver.cuGraphAddDependencies(graph, [b], [a], [driver.CUgraphEdgeData()], 1))
    return driver.cuGraphInstantiate(graph, 0)
