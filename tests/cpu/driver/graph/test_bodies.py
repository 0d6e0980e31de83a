"""What the bodies of conditional nodes and child graphs may contain: tables of all kinds of nodes.

The device runs a body by itself, so it takes what the device can do. Whatever is added, a GPU's driver says so when the
graph is instantiated. The tables were measured on an H200 (driver 580.159, CUDA 13.0).
"""

from __future__ import annotations

import ctypes

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import compiled, ok, status

TYPE = driver.CUgraphNodeType
MEMORY = driver.CUmemorytype
RESULT = driver.CUgraphInstantiateResult
MODE = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
BAD, UNSUPPORTED = "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NOT_SUPPORTED"

# What instantiating says of a node that a body does not take.
NO_OPERATION = RESULT.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
NO_CONTEXT = RESULT.CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED

# Ends of copies: the kind of memory and how it is given.
DEVICE, PINNED, PAGEABLE, UNIFIED = "device", "pinned", "pageable", "unified"

# kind of node: what a body says to it, None if it takes it
IN_BODIES = {
    "empty": None,
    "kernel": None,
    "copy device to device": None,
    "copy pinned to device": None,
    "copy device to pinned": None,
    "copy pinned to pinned": None,
    "copy unified to unified": None,
    "copy pageable to device": NO_CONTEXT,
    "copy device to pageable": NO_CONTEXT,
    "copy pageable to pageable": NO_CONTEXT,
    "fill": None,
    "fill of rows": None,
    "host": NO_OPERATION,
    "record": NO_OPERATION,
    "wait": NO_OPERATION,
    "batch": NO_OPERATION,
    "allocate": NO_OPERATION,
    "free": NO_OPERATION,
    "if": None,
    "if else": None,
    "while": None,
    "switch": None,
    "child of nothing": None,
    "child of kernel": None,
    "child of copy pageable to device": NO_CONTEXT,
    "child of fill": None,
    "child of host": NO_OPERATION,
    "child of record": NO_OPERATION,
    "child of wait": NO_OPERATION,
    "child of batch": NO_OPERATION,
    "child of child of kernel": None,
    "child of child of host": NO_OPERATION,
}
# Neither a child graph nor its copy takes these, wherever it is.
NOT_IN_CHILDREN = ("allocate", "free")

# kind of conditional node: its form and the number of its bodies
CONDITIONALS = {"if": ("IF", 1), "if else": ("IF", 2), "while": ("WHILE", 1), "switch": ("SWITCH", 3)}

# place: (the conditional nodes and child graphs around it)
PLACES = {
    "if": ("if",),
    "else": ("else",),
    "while": ("while",),
    "switch": ("switch",),
    "if in if": ("if", "if"),
    "while in switch": ("switch", "while"),
    "child": ("child",),
    "child in if": ("if", "child"),
    "child in while in if": ("if", "while", "child"),
    "graph": (),
}

# what a stream is given while it is captured into a body: what the body says to it
CAPTURED = {
    "kernel": None,
    "copy device to device": None,
    "copy pinned to device": None,
    "copy device to pinned": None,
    "copy pageable to device": NO_CONTEXT,
    "copy device to pageable": NO_CONTEXT,
    "fill": None,
    "host": NO_OPERATION,
    "record": None,
    "record external": NO_OPERATION,
    "wait external": NO_OPERATION,
    "write value": NO_OPERATION,
    "wait value": NO_OPERATION,
    "allocate": NO_OPERATION,
}


class Maker:
    """Makes nodes of all kinds."""

    def __init__(self, context, function: int, make_event) -> None:
        self.context, self.function = context, function
        self.module = ok(driver.cuModuleLoadData(compiled('extern "C" __global__ void nothing() {}')))
        self.kernel = ok(driver.cuModuleGetFunction(self.module, b"nothing"))
        self.event = make_event()
        self.device = ok(driver.cuMemAlloc(4096))
        ok(driver.cuMemsetD8(self.device, 0, 4096))
        self.pinned = int(ok(driver.cuMemHostAlloc(4096, 0)))
        self.host = ctypes.create_string_buffer(4096)
        self.graphs: list = []

    def close(self) -> None:
        for graph in self.graphs:
            driver.cuGraphDestroy(graph)
        ok(driver.cuMemFree(self.device))
        ok(driver.cuMemFreeHost(self.pinned))
        ok(driver.cuModuleUnload(self.module))

    def graph(self):
        self.graphs.append(ok(driver.cuGraphCreate(0)))
        return self.graphs[-1]

    def parameters(self, kind: str, root):
        """Of a node of that kind, in a part of the graph `root`."""
        made = driver.CUgraphNodeParams()
        if kind == "empty":
            made.type = TYPE.CU_GRAPH_NODE_TYPE_EMPTY
        elif kind == "kernel":
            made.type, kernel = TYPE.CU_GRAPH_NODE_TYPE_KERNEL, made.kernel
            kernel.func, kernel.ctx = self.kernel, self.context
            kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1
            kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1
        elif kind.startswith("copy "):
            made.type = TYPE.CU_GRAPH_NODE_TYPE_MEMCPY
            source, target = kind.removeprefix("copy ").split(" to ")
            self._copy(made.memcpy.copyParams, source, target)
            made.memcpy.copyCtx = self.context
        elif kind.startswith("fill"):
            made.type, fill = TYPE.CU_GRAPH_NODE_TYPE_MEMSET, made.memset
            fill.dst, fill.elementSize, fill.width, fill.ctx = self.device, 4, 4, self.context
            fill.height, fill.pitch = (4, 64) if kind == "fill of rows" else (1, 0)
        elif kind == "host":
            made.type, made.host.fn = TYPE.CU_GRAPH_NODE_TYPE_HOST, self.function
        elif kind == "record":
            made.type, made.eventRecord.event = TYPE.CU_GRAPH_NODE_TYPE_EVENT_RECORD, self.event
        elif kind == "wait":
            made.type, made.eventWait.event = TYPE.CU_GRAPH_NODE_TYPE_WAIT_EVENT, self.event
        elif kind == "batch":
            made.type, made.memOp.ctx = TYPE.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, self.context
            value = driver.CUstreamBatchMemOpParams()
            value.writeValue.operation = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32
            value.writeValue.address = self.device
            made.memOp.paramArray, made.memOp.count = [value], 1
        elif kind == "allocate":
            made.type, made.alloc.bytesize = TYPE.CU_GRAPH_NODE_TYPE_MEM_ALLOC, 64
            made.alloc.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
            made.alloc.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        elif kind == "free":
            allocation = self.parameters("allocate", root)
            ok(driver.cuGraphAddNode(root, [], [], 0, allocation))
            made.type, made.free.dptr = TYPE.CU_GRAPH_NODE_TYPE_MEM_FREE, allocation.alloc.dptr
        elif kind.startswith("child of "):
            made.type, made.graph.graph = TYPE.CU_GRAPH_NODE_TYPE_GRAPH, self.graph()
            inner = kind.removeprefix("child of ")
            if inner != "nothing":
                child = made.graph.graph
                ok(driver.cuGraphAddNode(child, [], [], 0, self.parameters(inner, child)))
        else:
            made.type, node = TYPE.CU_GRAPH_NODE_TYPE_CONDITIONAL, made.conditional
            form, node.size = CONDITIONALS[kind]
            node.type, node.ctx = driver.CUgraphConditionalNodeType[f"CU_GRAPH_COND_TYPE_{form}"], self.context
            node.handle = ok(driver.cuGraphConditionalHandleCreate(root, self.context, form != "WHILE", 1))
        return made

    def _copy(self, copy, source: str, target: str) -> None:
        kinds = {DEVICE: "DEVICE", PINNED: "HOST", PAGEABLE: "HOST", UNIFIED: "UNIFIED"}
        places = {
            DEVICE: int(self.device),
            PINNED: self.pinned,
            PAGEABLE: ctypes.addressof(self.host),
            UNIFIED: self.pinned,
        }
        copy.srcMemoryType, copy.dstMemoryType = (MEMORY[f"CU_MEMORYTYPE_{kinds[end]}"] for end in (source, target))
        copy.srcDevice = copy.srcHost = places[source]
        copy.dstDevice = copy.dstHost = places[target] + 2048
        copy.WidthInBytes, copy.Height, copy.Depth = 64, 1, 1

    def inside(self, root, place: str):
        """The graph at a place of a graph."""
        graph = root
        for step in PLACES[place]:
            kind = {"else": "if else", "child": "child of nothing"}.get(step, step)
            parameters = self.parameters(kind, root)
            node = ok(driver.cuGraphAddNode(graph, [], [], 0, parameters))
            if step == "child":
                graph = ok(driver.cuGraphChildGraphNodeGetGraph(node))
            else:
                graph = parameters.conditional.phGraph_out[step in ("else", "switch")]
        return graph

    def submit(self, what: str, stream) -> str:
        """Give work to a stream; the status."""
        device, pinned, host = int(self.device), self.pinned, ctypes.addressof(self.host)
        calls = {
            "kernel": lambda: driver.cuLaunchKernel(self.kernel, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0),
            "copy device to device": lambda: driver.cuMemcpyDtoDAsync(device + 2048, device, 64, stream),
            "copy pinned to device": lambda: driver.cuMemcpyHtoDAsync(device, pinned, 64, stream),
            "copy device to pinned": lambda: driver.cuMemcpyDtoHAsync(pinned, device, 64, stream),
            "copy pageable to device": lambda: driver.cuMemcpyHtoDAsync(device, host, 64, stream),
            "copy device to pageable": lambda: driver.cuMemcpyDtoHAsync(host, device, 64, stream),
            "fill": lambda: driver.cuMemsetD8Async(device, 0, 64, stream),
            "host": lambda: driver.cuLaunchHostFunc(stream, self.function, 0),
            "record": lambda: driver.cuEventRecord(self.event, stream),
            "record external": lambda: driver.cuEventRecordWithFlags(self.event, stream, 1),
            "wait external": lambda: driver.cuStreamWaitEvent(stream, self.event, 1),
            "write value": lambda: driver.cuStreamWriteValue32(stream, device, 1, 0),
            "wait value": lambda: driver.cuStreamWaitValue32(stream, device, 0, 0),
            "allocate": lambda: driver.cuMemAllocAsync(64, stream),
        }
        return status(calls[what]())


@pytest.fixture
def calls():
    return []


@pytest.fixture
def maker(context, host, make_event, calls):
    maker = Maker(context, host.function(lambda: calls.append(1)), make_event)
    yield maker
    maker.close()


def instantiate(graph):
    """The executable or None, and what is said about it."""
    parameters = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    result = driver.cuGraphInstantiateWithParams(graph, parameters)
    assert status(result) == (BAD if parameters.result_out else "CUDA_SUCCESS"), (result, parameters.result_out)
    return None if parameters.result_out else result[1], parameters


def check(root, refusal, stream, *, launch: bool) -> None:
    """A graph is refused for that reason, or else runs."""
    executable, said = instantiate(root)
    if refusal is not None:
        assert said.result_out == refusal
        return
    assert said.result_out == 0
    if launch:
        ok(driver.cuGraphLaunch(executable, stream))
        ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuGraphExecDestroy(executable))


@pytest.mark.parametrize("kind", IN_BODIES)
def test_kinds_of_nodes(maker, make_stream, calls, kind):
    stream = make_stream()
    for place, around in PLACES.items():
        root = maker.graph()
        graph = maker.inside(root, place)
        added = driver.cuGraphAddNode(graph, [], [], 0, maker.parameters(kind, root))
        if kind in NOT_IN_CHILDREN and "child" in around:
            assert status(added) == UNSUPPORTED, place
            continue
        node = ok(added)
        refusal = IN_BODIES[kind] if set(around) - {"child"} else None
        if refusal is not None and not kind.startswith("child"):
            assert int(instantiate(root)[1].hErrNode_out) == int(node), place
        check(root, refusal, stream, launch=kind != "allocate")  # which would stay
    assert bool(calls) == ("host" in kind)


@pytest.mark.parametrize("what", CAPTURED)
def test_capture_into_bodies(maker, make_stream, what):
    ok(driver.cuEventRecord(maker.event, 0))
    stream = make_stream()
    for place, around in PLACES.items():
        root = maker.graph()
        graph = maker.inside(root, place)
        ok(driver.cuStreamBeginCaptureToGraph(stream, graph, [], [], 0, MODE))
        refused = what in NOT_IN_CHILDREN and "child" in around
        assert maker.submit(what, stream) == (UNSUPPORTED if refused else "CUDA_SUCCESS"), place
        ok(driver.cuStreamEndCapture(stream))  # which the refusal has not spoiled
        refusal = CAPTURED[what] if set(around) - {"child"} and not refused else None
        check(root, refusal, stream, launch=what != "allocate")


def test_a_moved_child_takes_no_memory_nodes(maker):
    root, child = maker.graph(), maker.graph()
    allocation = maker.parameters("allocate", child)
    ok(driver.cuGraphAddNode(child, [], [], 0, allocation))
    moved = driver.CUgraphNodeParams()
    moved.type, moved.graph.graph = TYPE.CU_GRAPH_NODE_TYPE_GRAPH, child
    moved.graph.ownership = driver.CUgraphChildGraphNodeOwnership.CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE
    node = ok(driver.cuGraphAddNode(root, [], [], 0, moved))
    maker.graphs.remove(child)
    inner = ok(driver.cuGraphChildGraphNodeGetGraph(node))
    assert status(driver.cuGraphAddNode(inner, [], [], 0, maker.parameters("allocate", root))) == UNSUPPORTED
    ok(driver.cuGraphAddMemFreeNode(root, [node], 1, allocation.alloc.dptr))
    executable, _ = instantiate(root)
    ok(driver.cuGraphExecDestroy(executable))


FAULT = """
import ctypes
import sys
from cupola.bindings import driver
from tests.cpu.driver.calls import ok
from tests.cpu.driver.graph.test_bodies import Maker
ok(driver.cuInit(0))
context = ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))
ok(driver.cuCtxSetCurrent(context))
maker = Maker(context, 0, lambda: ok(driver.cuEventCreate(0)))
root = maker.graph()
parameters = maker.parameters("copy pinned to device", root)
node = ok(driver.cuGraphAddNode(maker.inside(root, "if"), [], [], 0, parameters))
executable = ok(driver.cuGraphInstantiate(root, 0))
copy = maker.parameters("copy pageable to device", root).memcpy.copyParams
print(driver.cuGraphExecMemcpyNodeSetParams(executable, node, copy, context)[0].name)
stream = ok(driver.cuStreamCreate(1))
print(driver.cuGraphLaunch(executable, stream)[0].name)
print(driver.cuStreamSynchronize(stream)[0].name)
"""


def test_a_copy_changed_to_pageable_memory_faults(run_python):
    done = run_python(FAULT)
    assert done.stdout.split() == ["CUDA_SUCCESS", "CUDA_SUCCESS", "CUDA_ERROR_ILLEGAL_ADDRESS"], done.stderr
