"""Graphs made node by node."""

from __future__ import annotations

import ctypes
import threading
from typing import ClassVar

import numpy as np
import pytest

from cupola.bindings import runtime
from tests import limits
from tests.cpu.cudart.calls import ok, read, shape, status

KIND = runtime.cudaMemcpyKind
NODE = runtime.cudaGraphNodeType


def run(graph, stream, times=1):
    executable = ok(runtime.cudaGraphInstantiate(graph, 0))
    for _ in range(times):
        ok(runtime.cudaGraphLaunch(executable, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    ok(runtime.cudaGraphExecDestroy(executable))


class Arguments:
    """kernelParams of a launch of add(): an array of addresses, kept alive with what they point to."""

    kept: ClassVar[list[Arguments]] = []

    def __init__(self, address, value):
        self.values = (ctypes.c_void_p(address), ctypes.c_int(value))
        self.array = (ctypes.c_void_p * 2)(*(ctypes.addressof(v) for v in self.values))
        self.address = ctypes.addressof(self.array)
        self.kept.append(self)


def kernel_params(library, arguments, blocks=4):
    return runtime.cudaKernelNodeParams(
        func=int(ok(runtime.cudaLibraryGetKernel(library, b"add"))),
        gridDim=shape(blocks),
        blockDim=shape(64),
        kernelParams=arguments.address,
    )


def fill(address, value, count=256):
    return runtime.cudaMemsetParams(dst=address, value=value, elementSize=4, width=count, height=1)


def test_a_graph_of_all_common_nodes(graph, library, memory, stream):
    seen = []
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    host = runtime.cudaHostNodeParams(fn=runtime.cudaHostFn_t(_ptr=ctypes.addressof(call)), userData=5)
    back = np.zeros(256, np.int32)
    event = ok(runtime.cudaEventCreate())
    arguments = Arguments(memory, 2)
    child = ok(runtime.cudaGraphCreate(0))
    ok(runtime.cudaGraphAddKernelNode(child, [], 0, kernel_params(library, Arguments(memory, 10))))

    a = ok(runtime.cudaGraphAddMemsetNode(graph, [], 0, fill(memory, 1)))
    b = ok(runtime.cudaGraphAddKernelNode(graph, [a], 1, kernel_params(library, arguments)))
    c = ok(runtime.cudaGraphAddChildGraphNode(graph, [b], 1, child))
    d = ok(runtime.cudaGraphAddEventRecordNode(graph, [c], 1, event))
    e = ok(runtime.cudaGraphAddEventWaitNode(graph, [d], 1, event))
    f = ok(runtime.cudaGraphAddEmptyNode(graph, [e], 1))
    g = ok(runtime.cudaGraphAddMemcpyNode1D(graph, [f], 1, back.ctypes.data, memory, 1024, KIND.cudaMemcpyDeviceToHost))
    h = ok(runtime.cudaGraphAddHostNode(graph, [g], 1, host))
    nodes = [a, b, c, d, e, f, g, h]
    names = ["Memset", "Kernel", "Graph", "EventRecord", "WaitEvent", "Empty", "Memcpy", "Host"]
    assert [ok(runtime.cudaGraphNodeGetType(n)) for n in nodes] == [NODE[f"cudaGraphNodeType{n}"] for n in names]
    assert ok(runtime.cudaGraphGetNodes(graph, 16))[1] == 8
    assert [int(n) for n in ok(runtime.cudaGraphGetRootNodes(graph, 1))[0]] == [int(a)]
    assert ok(runtime.cudaGraphNodeGetDependencies(b, 1))[0] == [a]
    assert ok(runtime.cudaGraphNodeGetDependentNodes(b, 1))[0] == [c]
    assert ok(runtime.cudaGraphEventRecordNodeGetEvent(d)) == event == ok(runtime.cudaGraphEventWaitNodeGetEvent(e))
    run(graph, stream, times=2)
    assert (back == 13).all() and seen == [5, 5]
    ok(runtime.cudaGraphDestroy(child))
    ok(runtime.cudaEventDestroy(event))


@pytest.mark.cpu_only  # libcudart 13.0 finds no function for the kernel of a library: cudaErrorInvalidDeviceFunction
def test_parameters_come_back(graph, library, memory):
    kernel = ok(runtime.cudaGraphAddKernelNode(graph, [], 0, kernel_params(library, Arguments(memory, 2))))
    found = ok(runtime.cudaGraphKernelNodeGetParams(kernel))
    assert (found.gridDim.x, found.blockDim.x, found.sharedMemBytes) == (4, 64, 0) and found.func
    ok(runtime.cudaGraphKernelNodeSetParams(kernel, kernel_params(library, Arguments(memory, 2), 2)))
    assert ok(runtime.cudaGraphKernelNodeGetParams(kernel)).gridDim.x == 2
    set_to = ok(runtime.cudaGraphAddMemsetNode(graph, [], 0, fill(memory, 3)))
    ok(runtime.cudaGraphMemsetNodeSetParams(set_to, fill(memory, 4, 16)))
    found = ok(runtime.cudaGraphMemsetNodeGetParams(set_to))
    assert (found.dst, found.value, found.elementSize, found.width, found.height) == (memory, 4, 4, 16, 1)
    copy = runtime.cudaMemcpy3DParms(
        extent=runtime.make_cudaExtent(8, 2, 1),
        srcPtr=runtime.make_cudaPitchedPtr(memory, 16, 16, 4),
        dstPtr=runtime.make_cudaPitchedPtr(memory + 512, 32, 32, 2),
        srcPos=runtime.make_cudaPos(4, 1, 0),
        kind=KIND.cudaMemcpyDeviceToDevice,
    )
    node = ok(runtime.cudaGraphAddMemcpyNode(graph, [], 0, copy))
    found = ok(runtime.cudaGraphMemcpyNodeGetParams(node))
    assert (found.extent.width, found.extent.height, found.extent.depth) == (8, 2, 1)
    assert (found.srcPtr.ptr, found.srcPtr.pitch, found.srcPos.x, found.srcPos.y) == (memory, 16, 4, 1)
    assert (found.dstPtr.ptr, found.dstPtr.pitch, found.kind) == (memory + 512, 32, KIND.cudaMemcpyDeviceToDevice)
    row = ok(runtime.cudaGraphAddMemcpyNode1D(graph, [], 0, memory, memory + 512, 8, KIND.cudaMemcpyDefault))
    ok(runtime.cudaGraphMemcpyNodeSetParams1D(row, memory, memory + 512, 64, KIND.cudaMemcpyDeviceToDevice))
    assert ok(runtime.cudaGraphMemcpyNodeGetParams(row)).extent.width == 64


def test_changes_of_an_executable(graph, library, memory, stream):
    node = ok(runtime.cudaGraphAddKernelNode(graph, [], 0, kernel_params(library, Arguments(memory, 1))))
    executable = ok(runtime.cudaGraphInstantiateWithFlags(graph, 0))
    changed = kernel_params(library, Arguments(memory, 100), 2)
    ok(runtime.cudaGraphExecKernelNodeSetParams(executable, node, changed))
    ok(runtime.cudaGraphUpload(executable, stream))
    ok(runtime.cudaGraphLaunch(executable, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    assert list(read(memory)[[0, 127, 128]]) == [100, 100, 0]
    ok(runtime.cudaGraphNodeSetEnabled(executable, node, 0))
    assert ok(runtime.cudaGraphNodeGetEnabled(executable, node)) == 0
    ok(runtime.cudaGraphLaunch(executable, stream))
    ok(runtime.cudaGraphNodeSetEnabled(executable, node, 1))
    # the graph as it is now
    result = ok(runtime.cudaGraphExecUpdate(executable, graph)).result
    assert result == runtime.cudaGraphExecUpdateResult.cudaGraphExecUpdateSuccess
    ok(runtime.cudaGraphLaunch(executable, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    assert list(read(memory)[[0, 127, 128]]) == [101, 101, 1]
    ok(runtime.cudaGraphAddEmptyNode(graph, [node], 1))
    assert status(runtime.cudaGraphExecUpdate(executable, graph)) == "cudaErrorGraphExecUpdateFailure"
    ok(runtime.cudaGraphExecDestroy(executable))


def test_a_node_of_any_type(graph, library, memory, stream):
    arguments = Arguments(memory, 6)
    params = runtime.cudaGraphNodeParams(type=NODE.cudaGraphNodeTypeMemset)
    params.memset.dst, params.memset.elementSize, params.memset.width, params.memset.height = memory, 4, 256, 1
    first = ok(runtime.cudaGraphAddNode(graph, [], [], 0, params))
    params = runtime.cudaGraphNodeParams(type=NODE.cudaGraphNodeTypeKernel)
    params.kernel.func = int(ok(runtime.cudaLibraryGetKernel(library, b"add")))
    params.kernel.gridDim, params.kernel.blockDim = shape(4), shape(64)
    params.kernel.kernelParams = arguments.address
    edge = [runtime.cudaGraphEdgeData()]
    second = ok(runtime.cudaGraphAddNode(graph, [first], edge, 1, params))
    params = runtime.cudaGraphNodeParams(type=NODE.cudaGraphNodeTypeMemcpy)
    params.memcpy.copyParams.srcPtr = runtime.make_cudaPitchedPtr(memory, 512, 512, 1)
    params.memcpy.copyParams.dstPtr = runtime.make_cudaPitchedPtr(memory + 512, 512, 512, 1)
    params.memcpy.copyParams.extent = runtime.make_cudaExtent(256, 1, 1)
    params.memcpy.copyParams.kind = KIND.cudaMemcpyDeviceToDevice
    third = ok(runtime.cudaGraphAddNode(graph, [first], edge, 1, params))
    ok(runtime.cudaGraphAddDependencies(graph, [second], [third], edge, 1))
    ok(runtime.cudaGraphRemoveDependencies(graph, [first], [third], edge, 1))
    assert ok(runtime.cudaGraphNodeGetDependencies(third, 1))[0] == [second]
    run(graph, stream)
    assert (read(memory) == 6).all()


def test_memory_of_a_graph(graph, memory, stream):
    location = runtime.cudaMemLocation(type=runtime.cudaMemLocationType.cudaMemLocationTypeDevice, id=0)
    pinned = runtime.cudaMemAllocationType.cudaMemAllocationTypePinned
    params = runtime.cudaMemAllocNodeParams(
        poolProps=runtime.cudaMemPoolProps(allocType=pinned, location=location), bytesize=1024
    )
    first = ok(runtime.cudaGraphAddMemAllocNode(graph, [], 0, params))
    address = params.dptr
    assert address and ok(runtime.cudaGraphMemAllocNodeGetParams(first)).dptr == address
    second = ok(runtime.cudaGraphAddMemsetNode(graph, [first], 1, fill(address, 9)))
    third = ok(
        runtime.cudaGraphAddMemcpyNode1D(graph, [second], 1, memory, address, 1024, KIND.cudaMemcpyDeviceToDevice)
    )
    last = ok(runtime.cudaGraphAddMemFreeNode(graph, [third], 1, address))
    assert int(ok(runtime.cudaGraphMemFreeNodeGetParams(last))) == address
    run(graph, stream)
    assert (read(memory) == 9).all()


def test_conditions(graph, memory, stream):
    handle = ok(
        runtime.cudaGraphConditionalHandleCreate(
            graph, 1, runtime.cudaGraphConditionalHandleFlags.cudaGraphCondAssignDefault
        )
    )
    params = runtime.cudaGraphNodeParams(type=NODE.cudaGraphNodeTypeConditional)
    params.conditional.handle, params.conditional.size = handle, 1
    params.conditional.type = runtime.cudaGraphConditionalNodeType.cudaGraphCondTypeIf
    ok(runtime.cudaGraphAddNode(graph, [], [], 0, params))
    body = params.conditional.phGraph_out[0]
    ok(runtime.cudaGraphAddMemsetNode(body, [], 0, fill(memory, 4)))
    run(graph, stream)
    assert (read(memory) == 4).all()


def test_clones_and_nodes_that_go(graph, memory):
    first = ok(runtime.cudaGraphAddEmptyNode(graph, [], 0))
    second = ok(runtime.cudaGraphAddEmptyNode(graph, [first], 1))
    clone = ok(runtime.cudaGraphClone(graph))
    ok(runtime.cudaGraphDestroyNode(second))
    assert ok(runtime.cudaGraphGetNodes(graph, 4))[1] == 1 and ok(runtime.cudaGraphGetNodes(clone, 4))[1] == 2
    assert ok(runtime.cudaGraphNodeFindInClone(first, clone)) in ok(runtime.cudaGraphGetNodes(clone, 4))[0]
    ok(runtime.cudaGraphDestroy(clone))


def test_printing(graph, memory, tmp_path):
    ok(runtime.cudaGraphAddMemsetNode(graph, [], 0, fill(memory, 4)))
    path = tmp_path / "graph.dot"
    flags = runtime.cudaGraphDebugDotFlags.cudaGraphDebugDotFlagsVerbose
    ok(runtime.cudaGraphDebugDotPrint(graph, str(path).encode(), flags))
    assert path.read_text().startswith("digraph")


def test_user_objects(device):
    """The destructor runs once the graph has gone that holds the last reference."""
    gone = threading.Event()
    destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: gone.set())
    pointer = runtime.cudaHostFn_t(_ptr=ctypes.addressof(destroy))
    made = ok(runtime.cudaUserObjectCreate(77, pointer, 1, runtime.cudaUserObjectFlags.cudaUserObjectNoDestructorSync))
    graph = ok(runtime.cudaGraphCreate(0))
    ok(runtime.cudaGraphRetainUserObject(graph, made, 1, runtime.cudaUserObjectRetainFlags.cudaGraphUserObjectMove))
    ok(runtime.cudaUserObjectRetain(made, 1))
    ok(runtime.cudaUserObjectRelease(made, 1))
    assert not gone.is_set()
    ok(runtime.cudaGraphDestroy(graph))
    assert limits.wait(gone)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda graph: runtime.cudaGraphAddKernelNode(graph, [], 0, None), "cudaErrorInvalidValue"),
        (lambda graph: runtime.cudaGraphInstantiate(graph, 1 << 40), "cudaErrorInvalidValue"),
        (lambda graph: runtime.cudaGraphCreate(1), "cudaErrorInvalidValue"),
    ],
)
def test_statuses(graph, call, expected):
    assert status(call(graph)) == expected
