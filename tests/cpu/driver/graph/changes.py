"""What may change in an executable graph, one fact a line: ``python -m tests.cpu.driver.graph.changes [PART ...]``.

Run on a GPU, this makes the table that the CPU device is compared with (changes.txt); see test_changes.py. A node of an
executable is changed in two ways: by parameters of its own, and with the whole graph; the lines have both answers. The
executable is made as usual (``host``), or for launches by kernels (``device``).
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
from collections.abc import Iterator
from typing import Any

from cupola.bindings import driver
from tests.cpu.driver.calls import HOST_FUNCTION, ok, updated
from tests.cpu.driver.device_side.programs import linked
from tests.cpu.driver.graph.test_bodies import Maker

TYPE, MEMORY, ATTRIBUTE = driver.CUgraphNodeType, driver.CUmemorytype, driver.CUlaunchAttributeID
DEVICE_LAUNCH, NODE_PRIORITY = 4, 8
EXECUTABLES = {"host": 0, "device": DEVICE_LAUNCH}

SOURCE = r"""
extern "C" __global__ void nothing() {}
extern "C" __global__ void plain() {}
extern "C" __global__ void launches_graphs() { cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch); }
extern "C" __global__ void launches_kernels() { plain<<<1, 1>>>(); }
extern "C" __global__ void updates_nodes(cudaGraphDeviceNode_t node) { cudaGraphKernelNodeSetEnabled(node, true); }
"""
# A kernel, what it does: the parameters that it takes are never used, since nothing here is launched.
KERNELS = {
    "plain": "plain",
    "launching graphs": "launches_graphs",
    "launching kernels": "launches_kernels",
    "updating nodes": "updates_nodes",
}
COPIES = (
    "copy device to device",
    "copy pinned to device",
    "copy device to pinned",
    "copy pinned to pinned",
    "copy unified to unified",
    "copy pageable to device",
    "copy device to pageable",
    "copy array to device",
    "copy device to array",
    "copy of rows",
    "copy of more",
)
# Boxes, and other ways to say where device memory is.
BOXES = (
    "copy device to device",
    "copy unified to unified",
    "copy of more",
    "copy of rows",
    "copy of more rows",
    "copy of wider rows",
    "copy of rows apart",
    "copy of slices",
    "copy of pinned as device",
    "copy of device as unified",
)
ROWS = (
    "fill",
    "fill of rows",
    "fill of rows elsewhere",
    "fill of wider rows",
    "fill of rows apart",
    "fill of rows of bytes",
)
FILLS = ("fill", "fill of more", "fill of less", "fill of bytes", "fill of rows", "fill of more rows", "fill of pinned")


def name_of(value: Any, prefix: str = "CUDA_") -> str:
    return str(value.name).removeprefix(prefix).removeprefix("ERROR_")


class Changes(Maker):
    """Makes graphs of one node, and changes their executables."""

    def __init__(self, context: Any) -> None:
        self.function_object = HOST_FUNCTION(lambda _: None)
        address = ctypes.cast(self.function_object, ctypes.c_void_p).value or 0
        super().__init__(context, address, lambda: ok(driver.cuEventCreate(0)))
        self.lines: list[str] = []
        self.code = ok(driver.cuModuleLoadData(bytes(linked(SOURCE).code)))
        self.words = ctypes.create_string_buffer(64)
        self.pointers = (ctypes.c_void_p * 4)(*[ctypes.addressof(self.words)] * 4)
        shape = driver.CUDA_ARRAY3D_DESCRIPTOR()
        shape.Width, shape.Height, shape.NumChannels = 64, 8, 1
        shape.Format = driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
        self.array = ok(driver.cuArray3DCreate(shape))

    def close(self) -> None:
        super().close()
        ok(driver.cuArrayDestroy(self.array))
        ok(driver.cuModuleUnload(self.code))

    def say(self, label: str, what: object) -> None:
        self.lines.append(f"{label}: {what}")
        print(self.lines[-1], flush=True)

    def parameters(self, kind: str, root: Any) -> Any:
        """Of a node of one of `KERNELS`, `COPIES`, `FILLS` or the kinds of Maker."""
        if kind in KERNELS:
            made = super().parameters("kernel", root)
            made.kernel.func = ok(driver.cuModuleGetFunction(self.code, KERNELS[kind].encode()))
            made.kernel.kernelParams = ctypes.addressof(self.pointers)
            return made
        if "array" in kind:
            made = super().parameters("copy device to device", root)
            copy = made.memcpy.copyParams
            if "array to" in kind:
                copy.srcMemoryType, copy.srcArray = MEMORY.CU_MEMORYTYPE_ARRAY, self.array
            else:
                copy.dstMemoryType, copy.dstArray = MEMORY.CU_MEMORYTYPE_ARRAY, self.array
            return made
        if kind.startswith("copy of"):
            made = super().parameters("copy device to device", root)
            self._box(made.memcpy.copyParams, kind)
            return made
        if kind.startswith("fill of"):
            made = super().parameters("fill", root)
            fill = made.memset
            if kind == "fill of bytes":
                fill.elementSize, fill.width = 1, 16
            elif "rows" in kind:
                fill.width, fill.pitch = (8 if "wider" in kind else 4), (128 if "apart" in kind else 64)
                fill.height, fill.elementSize = (8 if "more" in kind else 4), (1 if "bytes" in kind else 4)
                fill.dst = int(self.device) + (1024 if "elsewhere" in kind else 0)
            elif kind == "fill of pinned":
                fill.dst = self.pinned
            else:
                fill.width = 64 if kind == "fill of more" else 1
            return made
        return super().parameters(kind, root)

    def _box(self, copy: Any, kind: str) -> None:
        if kind == "copy of more":
            copy.WidthInBytes = 256
        elif "rows" in kind or "slices" in kind:
            copy.WidthInBytes, copy.Height = (96 if "wider" in kind else 64), (8 if "more" in kind else 4)
            copy.srcPitch = copy.dstPitch = 192 if "apart" in kind else 128
            if "slices" in kind:
                copy.Depth, copy.srcHeight, copy.dstHeight = 2, 4, 4
        elif kind == "copy of pinned as device":
            copy.srcDevice, copy.dstDevice = self.pinned, self.pinned + 2048
        else:
            copy.srcMemoryType = copy.dstMemoryType = MEMORY.CU_MEMORYTYPE_UNIFIED

    def graph_of(self, kind: Any, attributes: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """A graph with one node, whose parameters are given by kind or in full."""
        root = self.graph()
        node = self.add(root, kind)
        for name, value in (attributes or {}).items():
            self.attribute(node, name, value)
        return root, node

    def add(self, graph: Any, kind: Any) -> Any:
        parameters = self.parameters(kind, graph) if isinstance(kind, str) else kind
        result, node = driver.cuGraphAddNode(graph, [], [], 0, parameters)
        if int(result):
            self.say(f"  a node of {kind if isinstance(kind, str) else 'given parameters'}", name_of(result))
        return node

    def attribute(self, node: Any, name: str, value: Any) -> None:
        filled = driver.CUlaunchAttributeValue()
        if name == "CLUSTER_DIMENSION":
            filled.clusterDim.x, filled.clusterDim.y, filled.clusterDim.z = value
        elif name == "DEVICE_UPDATABLE_KERNEL_NODE":
            filled.deviceUpdatableKernelNode.deviceUpdatable = value
        else:
            field = {
                "CLUSTER_SCHEDULING_POLICY_PREFERENCE": "clusterSchedulingPolicyPreference",
                "MEM_SYNC_DOMAIN": "memSyncDomain",
                "PREFERRED_SHARED_MEMORY_CARVEOUT": "sharedMemCarveout",
            }.get(name, name.lower())
            setattr(filled, field, value)
        (result,) = driver.cuGraphKernelNodeSetAttribute(node, ATTRIBUTE[f"CU_LAUNCH_ATTRIBUTE_{name}"], filled)
        if int(result):
            self.say(f"  attribute {name} = {value}", name_of(result))

    def instantiate(self, graph: Any, flags: int) -> tuple[Any, str]:
        """The executable, or None and the reason."""
        parameters = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
        parameters.flags = flags
        result = driver.cuGraphInstantiateWithParams(graph, parameters)
        said = name_of(result[0])
        if int(result[0]):
            reason = driver.CUgraphInstantiateResult(parameters.result_out)
            return None, f"{said} {name_of(reason, 'CUDA_GRAPH_INSTANTIATE_')}"
        return result[1], said

    def set(self, executable: Any, node: Any, parameters: Any) -> str:
        (result,) = driver.cuGraphExecNodeSetParams(executable, node, parameters)
        return name_of(result)

    def update(self, executable: Any, graph: Any) -> str:
        result, why = updated(executable, graph)
        if not int(result):
            return "SUCCESS"
        if result != driver.CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE:
            return name_of(result)
        said = name_of(driver.CUgraphExecUpdateResult(why.result), "CU_GRAPH_EXEC_UPDATE_")
        return said if int(why.errorNode) else f"{said}, no node"

    @contextlib.contextmanager
    def executable(self, label: str, graph: Any, flags: int) -> Iterator[Any]:
        made, said = self.instantiate(graph, flags)
        if made is None:
            self.say(label, said)
        yield made
        if made is not None:
            ok(driver.cuGraphExecDestroy(made))

    def change(self, label: str, flags: int, before: Any, after: Any) -> None:
        """Both ways to change the node of an executable from one kind to another."""
        graph, node = self.graph_of(before)
        with self.executable(label, graph, flags) as made:
            if made is None:
                return
            by_node = self.set(made, node, self.parameters(after, graph))
        with self.executable(label, graph, flags) as made:
            self.say(label, f"{by_node}, {self.update(made, self.graph_of(after)[0])}")


# ---- parts -----------------------------------------------------------------------------------------------------------


def functions(changes: Changes) -> None:
    """Kernels that launch graphs, launch kernels or update nodes, in place of others."""
    for (how, flags), before, after in itertools.product(EXECUTABLES.items(), KERNELS, KERNELS):
        changes.change(f"{how}: {before} -> {after}", flags, before, after)


def functions_beside(changes: Changes) -> None:
    """The same where another node of the executable launches graphs, launches kernels or updates nodes."""
    for (how, flags), beside, after in itertools.product(EXECUTABLES.items(), list(KERNELS)[1:], list(KERNELS)[1:]):
        label = f"{how}, beside {beside}: plain -> {after}"
        graphs = []
        for kind in ("plain", after):
            root, node = changes.graph_of(kind)
            changes.add(root, beside)
            graphs.append((root, node))
        (graph, node), (other, _) = graphs
        with changes.executable(label, graph, flags) as made:
            if made is not None:
                by_node = changes.set(made, node, changes.parameters(after, graph))
                changes.say(label, f"{by_node}, {changes.update(made, other)}")


def functions_again(changes: Changes) -> None:
    """A kernel that launches graphs is replaced by one that does not, and comes back."""
    for (how, flags), kind in itertools.product(EXECUTABLES.items(), list(KERNELS)[1:]):
        graph, node = changes.graph_of(kind)
        label = f"{how}: {kind} -> plain -> {kind}"
        with changes.executable(label, graph, flags) as made:
            if made is not None:
                changes.say(f"{label}, set to plain", changes.set(made, node, changes.parameters("plain", graph)))
                changes.say(f"{label}, set back", changes.set(made, node, changes.parameters(kind, graph)))
                changes.say(f"{label}, update back", changes.update(made, graph))


def copies(changes: Changes) -> None:
    for (how, flags), before, after in itertools.product(EXECUTABLES.items(), COPIES, COPIES):
        changes.change(f"{how}: {before} -> {after}", flags, before, after)


def fills(changes: Changes) -> None:
    for (how, flags), before, after in itertools.product(EXECUTABLES.items(), FILLS, FILLS):
        changes.change(f"{how}: {before} -> {after}", flags, before, after)


def boxes(changes: Changes) -> None:
    for (how, flags), before, after in itertools.product(EXECUTABLES.items(), BOXES, BOXES):
        changes.change(f"{how}: {before} -> {after}", flags, before, after)


def rows(changes: Changes) -> None:
    for (how, flags), before, after in itertools.product(EXECUTABLES.items(), ROWS, ROWS):
        changes.change(f"{how}: {before} -> {after}", flags, before, after)


def children(changes: Changes) -> None:
    kinds = ["child of kernel", "child of copy device to device", "child of copy pageable to device", "child of host"]
    for (how, flags), before, after in itertools.product(EXECUTABLES.items(), kinds, kinds):
        changes.change(f"{how}: {before} -> {after}", flags, before, after)


ATTRIBUTES: dict[str, tuple[str, Any, Any]] = {
    "cooperative": ("COOPERATIVE", 0, 1),
    "not cooperative": ("COOPERATIVE", 1, 0),
    "priority": ("PRIORITY", -1, -2),
    "clusters": ("CLUSTER_DIMENSION", (1, 1, 1), (2, 1, 1)),
    "smaller clusters": ("CLUSTER_DIMENSION", (2, 1, 1), (1, 1, 1)),
    "policy of clusters": ("CLUSTER_SCHEDULING_POLICY_PREFERENCE", 1, 2),
    "domain": ("MEM_SYNC_DOMAIN", 0, 1),
    "carveout": ("PREFERRED_SHARED_MEMORY_CARVEOUT", 0, 50),
}


def attributes(changes: Changes) -> None:
    """Attributes of kernel nodes, by an update; and parameters when the definition has got other attributes."""
    flags = {
        **EXECUTABLES,
        "host with priorities": NODE_PRIORITY,
        "device with priorities": DEVICE_LAUNCH | NODE_PRIORITY,
    }
    for (how, flag), (what, (name, before, after)) in itertools.product(flags.items(), ATTRIBUTES.items()):
        kernel = changes.parameters("plain", None)
        kernel.kernel.gridDimX = 4
        label = f"{how}: {what}"
        graph, node = changes.graph_of(kernel, {name: before})
        with changes.executable(label, graph, flag) as made:
            if made is not None:
                changes.say(label, changes.update(made, changes.graph_of(kernel, {name: after})[0]))
        with changes.executable(label, graph, flag) as made:
            if made is not None:
                changes.attribute(node, name, after)
                changes.say(f"{label}, of the definition, set", changes.set(made, node, kernel))
    for how, flag in EXECUTABLES.items():
        for before, after in ((0, 1), (1, 0), (1, 1)):
            wanted = [{"DEVICE_UPDATABLE_KERNEL_NODE": 1} if here else {} for here in (before, after)]
            graph, node = changes.graph_of("plain", wanted[0])
            label = f"{how}: updatable {before} -> {after}"
            with changes.executable(label, graph, flag) as made:
                if made is not None:
                    changes.say(label, changes.update(made, changes.graph_of("plain", wanted[1])[0]))
                    changes.say(f"{label}, set", changes.set(made, node, changes.parameters("plain", graph)))


def enabled(changes: Changes) -> None:
    for (how, flag), kind in itertools.product(
        EXECUTABLES.items(), ["plain", "launching graphs", "copy device to device", "fill", "child of kernel"]
    ):
        graph, node = changes.graph_of(kind)
        label = f"{how}: {kind}"
        with changes.executable(label, graph, flag) as made:
            if made is None:
                continue
            for on in (0, 1):
                (result,) = driver.cuGraphNodeSetEnabled(made, node, on)
                changes.say(f"{label}, enabled {on}", name_of(result))


def edges(changes: Changes) -> None:
    """Kinds of edges between two kernels, by an update."""
    kinds = {"full": (0, 0), "programmatic": (1, 1), "programmatic at the start": (2, 1)}

    def pair(port: int, kind: int) -> Any:
        root, first = changes.graph_of("plain")
        data = driver.CUgraphEdgeData()
        data.from_port, data.type = port, kind
        second = changes.parameters("plain", root)
        ok(driver.cuGraphAddNode(root, [first], [data], 1, second))
        return root

    for (how, flag), before, after in itertools.product(EXECUTABLES.items(), kinds, kinds):
        label = f"{how}: {before} -> {after}"
        with changes.executable(label, pair(*kinds[before]), flag) as made:
            if made is not None:
                changes.say(label, changes.update(made, pair(*kinds[after])))


def contexts(changes: Changes) -> None:
    """Nodes of another context than the others, and nodes that are given one."""
    own = changes.context
    context = ok(driver.cuCtxCreate(None, 0, 0))
    module = ok(driver.cuModuleLoadData(bytes(linked(SOURCE).code)))
    memory = ok(driver.cuMemAlloc(4096))
    ok(driver.cuCtxPopCurrent())
    ok(driver.cuCtxSetCurrent(own))
    strangers = {}
    for kind, name in KERNELS.items():
        made = changes.parameters(kind, None)
        made.kernel.func, made.kernel.ctx = ok(driver.cuModuleGetFunction(module, name.encode())), context
        strangers[kind] = made
    made = changes.parameters("copy device to device", None)
    made.memcpy.copyCtx = context
    strangers["copy device to device"] = made
    made = changes.parameters("copy device to device", None)
    made.memcpy.copyParams.srcDevice, made.memcpy.copyParams.dstDevice = memory, int(memory) + 2048
    strangers["copy device to device, memory"] = made
    made = changes.parameters("fill", None)
    made.memset.ctx = context
    strangers["fill"] = made
    made = changes.parameters("fill", None)
    made.memset.dst = memory
    strangers["fill, memory"] = made
    for (how, flag), (kind, given) in itertools.product(EXECUTABLES.items(), strangers.items()):
        plain = kind.split(",")[0]
        label = f"{how}: {kind}"
        graph, node = changes.graph_of(plain)
        with changes.executable(label, graph, flag) as made:
            if made is not None:
                by_node = changes.set(made, node, given)
                changes.say(label, f"{by_node}, {changes.update(made, changes.graph_of(given)[0])}")
    for (how, flag), (first, second) in itertools.product(
        EXECUTABLES.items(),
        itertools.product(["plain", "launching graphs", "fill", "copy device to device"], strangers),
    ):
        root, _ = changes.graph_of(first)
        changes.add(root, strangers[second])
        label = f"{how}: {first} here and {second} there"
        made, said = changes.instantiate(root, flag)
        changes.say(label, said)
        if made is not None:
            ok(driver.cuGraphExecDestroy(made))
    for graph in changes.graphs:
        driver.cuGraphDestroy(graph)
    changes.graphs.clear()
    ok(driver.cuCtxDestroy(context))


PARTS = (
    functions,
    functions_beside,
    functions_again,
    copies,
    fills,
    boxes,
    rows,
    children,
    attributes,
    enabled,
    edges,
    contexts,
)


def main(names: list[str]) -> int:
    ok(driver.cuInit(0))
    context = ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))
    ok(driver.cuCtxSetCurrent(context))
    for part in PARTS:
        if not names or part.__name__ in names:
            print(f"# {part.__name__}")
            changes = Changes(context)
            part(changes)
            changes.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
