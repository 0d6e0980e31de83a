"""Kernel nodes that kernels change: attributes of nodes, handles for kernels, functions of the device runtime."""

from __future__ import annotations

import ctypes

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import compiled, explanation, ok, pack, status

L = driver.CUlaunchAttributeID
UPDATABLE = L.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
# The launched kernel apart from those that call the device runtime, which the driver links to their module.
TARGET = r"""
extern "C" __global__ void add(unsigned* x, unsigned n) { atomicAdd(x + blockIdx.x, n); }
extern "C" __global__ void nothing() {}
"""
UPDATES = r"""
#define DEVICE extern "C" __device__ __cudart_builtin__
struct Update {  // cudaGraphKernelNodeUpdate
    cudaGraphDeviceNode_t node;
    int field;
    union {
        struct { unsigned x, y, z; } grid;
        struct { const void* value; size_t offset, size; } param;
        unsigned enabled;
    };
};
DEVICE cudaError_t cudaGraphKernelNodeSetParam(cudaGraphDeviceNode_t, size_t, const void*, size_t);
DEVICE cudaError_t cudaGraphKernelNodeSetEnabled(cudaGraphDeviceNode_t, bool);
DEVICE cudaError_t cudaGraphKernelNodeSetGridDim(cudaGraphDeviceNode_t, dim3);
DEVICE cudaError_t cudaGraphKernelNodeUpdatesApply(const Update*, size_t);

extern "C" __global__ void set_param(cudaGraphDeviceNode_t node, unsigned offset, unsigned value, int* status) {
    *status = cudaGraphKernelNodeSetParam(node, offset, &value, sizeof value);
}
extern "C" __global__ void set_enabled(cudaGraphDeviceNode_t node, unsigned enabled, int* status) {
    *status = cudaGraphKernelNodeSetEnabled(node, enabled);
}
extern "C" __global__ void set_grid(cudaGraphDeviceNode_t node, unsigned x, unsigned y, int* status) {
    *status = cudaGraphKernelNodeSetGridDim(node, dim3(x, y, 1));
}
extern "C" __global__ void apply(cudaGraphDeviceNode_t node, unsigned x, unsigned value, int* status) {
    Update updates[3];
    updates[0].node = updates[1].node = updates[2].node = node;
    updates[0].field = 1;
    updates[0].grid = {x, 1, 1};
    updates[1].field = 2;
    updates[1].param = {&value, 8, 4};
    updates[2].field = 3;
    updates[2].enabled = 2;
    *status = cudaGraphKernelNodeUpdatesApply(updates, 3);
}
"""


@pytest.fixture
def kernel(context):
    modules = [ok(driver.cuModuleLoadData(compiled(source))) for source in (TARGET, UPDATES)]

    def find(name: str):
        return ok(driver.cuModuleGetFunction(modules[name not in ("add", "nothing")], name.encode()))

    yield find
    ok(driver.cuCtxSynchronize())
    for module in modules:
        ok(driver.cuModuleUnload(module))


@pytest.fixture
def add_node(graph):
    """Add a kernel node: add_node(function, *arguments, grid=1, after=())."""
    keep = []

    def add(function, *arguments, grid: int = 1, after=()):
        params = driver.CUDA_KERNEL_NODE_PARAMS()
        params.func = function
        params.gridDimX, params.gridDimY, params.gridDimZ = grid, 1, 1
        params.blockDimX = params.blockDimY = params.blockDimZ = 1
        keep.append(pack(*arguments))
        params.kernelParams = ctypes.addressof(keep[-1][0])
        return ok(driver.cuGraphAddKernelNode(graph, list(after), len(after), params))

    return add


def updatable(wanted: int = 1):
    value = driver.CUlaunchAttributeValue()
    value.deviceUpdatableKernelNode.deviceUpdatable = wanted
    return value


def make_updatable(node) -> int:
    ok(driver.cuGraphKernelNodeSetAttribute(node, UPDATABLE, updatable()))
    handle = int(ok(driver.cuGraphKernelNodeGetAttribute(node, UPDATABLE)).deviceUpdatableKernelNode.devNode)
    assert handle != 0
    return handle


# ---- attributes ----------------------------------------------------------------------------------

# field of CUlaunchAttributeValue, value, and what is wrong
VALUES = [
    ("COOPERATIVE", "cooperative", 1, None),
    ("PRIORITY", "priority", -2, None),
    ("CLUSTER_SCHEDULING_POLICY_PREFERENCE", "clusterSchedulingPolicyPreference", 2, 9),
    ("MEM_SYNC_DOMAIN", "memSyncDomain", 1, 5),
    ("PREFERRED_SHARED_MEMORY_CARVEOUT", "sharedMemCarveout", 50, 101),
]
# Of drivers newer than CUDA 13.0.
NEWER = [
    ("NVLINK_UTIL_CENTRIC_SCHEDULING", "nvlinkUtilCentricScheduling", 1, 2),
    ("PORTABLE_CLUSTER_SIZE_MODE", "portableClusterSizeMode", 2, 3),
    ("SHARED_MEMORY_MODE", "sharedMemoryMode", 4, 5),
]


@pytest.mark.parametrize(
    ("name", "field", "good", "bad"), VALUES + [pytest.param(*v, marks=pytest.mark.cpu_only) for v in NEWER]
)
def test_attributes_of_nodes(kernel, add_node, name, field, good, bad):
    a, b = (add_node(kernel("nothing")) for _ in range(2))
    attribute = L[f"CU_LAUNCH_ATTRIBUTE_{name}"]
    value = driver.CUlaunchAttributeValue()
    setattr(value, field, good)
    ok(driver.cuGraphKernelNodeSetAttribute(a, attribute, value))
    assert int(getattr(ok(driver.cuGraphKernelNodeGetAttribute(a, attribute)), field)) == good
    assert int(getattr(ok(driver.cuGraphKernelNodeGetAttribute(b, attribute)), field)) != good
    ok(driver.cuGraphKernelNodeCopyAttributes(b, a))
    assert int(getattr(ok(driver.cuGraphKernelNodeGetAttribute(b, attribute)), field)) == good
    if bad is not None and on_cpu_device():
        setattr(value, field, bad)
        result = driver.cuGraphKernelNodeSetAttribute(a, attribute, value)
        assert status(result) == "CUDA_ERROR_INVALID_VALUE" and field in explanation(result)
        assert int(getattr(ok(driver.cuGraphKernelNodeGetAttribute(a, attribute)), field)) == good


@pytest.mark.cpu_only
def test_windows_domains_and_clusters_of_nodes(kernel, add_node):
    node = add_node(kernel("nothing"), grid=8)
    value = driver.CUlaunchAttributeValue()
    value.accessPolicyWindow.num_bytes, value.accessPolicyWindow.hitRatio = 64, 0.5
    ok(driver.cuGraphKernelNodeSetAttribute(node, L.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, value))
    window = ok(
        driver.cuGraphKernelNodeGetAttribute(node, L.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
    ).accessPolicyWindow
    assert (window.num_bytes, window.hitRatio) == (64, 0.5)
    value.accessPolicyWindow.hitRatio = 2
    assert (
        status(driver.cuGraphKernelNodeSetAttribute(node, L.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, value))
        != "CUDA_SUCCESS"
    )
    value = driver.CUlaunchAttributeValue()
    value.memSyncDomainMap.default_, value.memSyncDomainMap.remote = 1, 2
    ok(driver.cuGraphKernelNodeSetAttribute(node, L.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, value))
    domains = ok(driver.cuGraphKernelNodeGetAttribute(node, L.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)).memSyncDomainMap
    assert (domains.default_, domains.remote) == (1, 2)
    for extent, preferred, fine in ((2, 4, True), (4, 2, False), (0, 0, True)):
        value = driver.CUlaunchAttributeValue()
        value.clusterDim.x = extent
        value.clusterDim.y = value.clusterDim.z = int(extent > 0)
        results = [driver.cuGraphKernelNodeSetAttribute(node, L.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value)]
        value.clusterDim.x = preferred
        results += [
            driver.cuGraphKernelNodeSetAttribute(node, L.CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, value)
        ]
        assert all(status(result) == "CUDA_SUCCESS" for result in results) == fine


def test_what_is_no_attribute_of_nodes(kernel, add_node):
    node = add_node(kernel("nothing"))
    for name in ("SYNCHRONIZATION_POLICY", "LAUNCH_COMPLETION_EVENT", "PROGRAMMATIC_EVENT"):
        attribute = L[f"CU_LAUNCH_ATTRIBUTE_{name}"]
        result = driver.cuGraphKernelNodeSetAttribute(node, attribute, driver.CUlaunchAttributeValue())
        assert status(result) != "CUDA_SUCCESS"


def test_captured_nodes_have_the_priority_of_their_stream(kernel, make_stream):
    stream = make_stream(priority=-1)
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    ok(driver.cuLaunchKernel(kernel("nothing"), 1, 1, 1, 1, 1, 1, 0, stream, 0, 0))
    graph = ok(driver.cuStreamEndCapture(stream))
    (node,) = ok(driver.cuGraphGetNodes(graph, 1))[0]
    assert ok(driver.cuGraphKernelNodeGetAttribute(node, L.CU_LAUNCH_ATTRIBUTE_PRIORITY)).priority == -1
    ok(driver.cuGraphDestroy(graph))


# What a node gives back for a priority that it was given, on an H200.
PRIORITIES = {-100: -5, -6: -5, -5: -5, -2: -2, 0: 0, 3: 0, 1 << 30: 0}


def test_priorities_are_the_nearest_that_there_are(kernel, add_node, make_stream):
    attribute, nothing = L.CU_LAUNCH_ATTRIBUTE_PRIORITY, kernel("nothing")
    node, found = add_node(nothing), {}
    for given in PRIORITIES:
        value = driver.CUlaunchAttributeValue(priority=given)
        ok(driver.cuGraphKernelNodeSetAttribute(node, attribute, value))
        found[given] = ok(driver.cuGraphKernelNodeGetAttribute(node, attribute)).priority
    assert found == PRIORITIES
    stream = make_stream()
    for given in PRIORITIES:  # by captured launches
        config = driver.CUlaunchConfig()
        config.gridDimX = config.gridDimY = config.gridDimZ = 1
        config.blockDimX = config.blockDimY = config.blockDimZ = 1
        config.hStream = stream
        made = driver.CUlaunchAttribute()
        made.id, made.value.priority = attribute, given
        config.attrs, config.numAttrs = [made], 1
        ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        ok(driver.cuLaunchKernelEx(config, nothing, 0, 0))
        graph = ok(driver.cuStreamEndCapture(stream))
        (node,) = ok(driver.cuGraphGetNodes(graph, 1))[0]
        assert ok(driver.cuGraphKernelNodeGetAttribute(node, attribute)).priority == PRIORITIES[given]
        ok(driver.cuGraphDestroy(graph))


# ---- device-updatable nodes ----------------------------------------------------------------------


def test_what_updatable_nodes_refuse(kernel, graph, add_node):
    node, other = add_node(kernel("nothing")), add_node(kernel("nothing"))
    value = ok(driver.cuGraphKernelNodeGetAttribute(node, UPDATABLE)).deviceUpdatableKernelNode
    assert (value.deviceUpdatable, int(value.devNode)) == (0, 0)
    ok(driver.cuGraphKernelNodeSetAttribute(node, UPDATABLE, updatable(0)))
    handle = make_updatable(node)
    assert make_updatable(node) == handle
    refused = [
        driver.cuGraphKernelNodeSetAttribute(node, UPDATABLE, updatable(0)),
        driver.cuGraphKernelNodeSetAttribute(other, UPDATABLE, updatable(2)),
        driver.cuGraphKernelNodeCopyAttributes(other, node),
        driver.cuGraphKernelNodeCopyAttributes(node, other),
        driver.cuGraphDestroyNode(node),
    ]
    assert [status(result) for result in refused].count("CUDA_SUCCESS") == 0
    first = ok(driver.cuGraphInstantiate(graph, 0))
    assert status(driver.cuGraphInstantiate(graph, 0)) != "CUDA_SUCCESS"
    assert status(driver.cuGraphExecUpdate(first, graph)) != "CUDA_SUCCESS"
    ok(driver.cuGraphExecDestroy(first))
    again = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphExecDestroy(again))


def test_launches_that_are_not_captured_refuse(kernel, make_stream):
    config = driver.CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1
    config.hStream = make_stream()
    attribute = driver.CUlaunchAttribute()
    attribute.id, attribute.value = UPDATABLE, updatable()
    config.attrs, config.numAttrs = [attribute], 1
    assert status(driver.cuLaunchKernelEx(config, kernel("nothing"), 0, 0)) == "CUDA_ERROR_NOT_SUPPORTED"


class Updates:
    """A graph of an updating kernel, when one is given, and behind it the launch of `add` on 2 blocks with n = 1."""

    def __init__(self, kernel, graph, add_node, memory, stream, name, *arguments):
        base = ctypes.addressof(memory)
        self.memory, self.stream = memory, stream
        self.status = ctypes.c_int32.from_address(base + 4000)
        self.node = add_node(kernel("add"), ctypes.c_uint64(base), ctypes.c_uint32(1), grid=2)
        self.handle = make_updatable(self.node)
        if name is not None:
            packed = [ctypes.c_uint64(self.handle), *map(ctypes.c_uint32, arguments), ctypes.c_uint64(base + 4000)]
            before = add_node(kernel(name), *packed)
            ok(driver.cuGraphAddDependencies(graph, [before], [self.node], [driver.CUgraphEdgeData()], 1))
        self.executable = ok(driver.cuGraphInstantiate(graph, 0))
        ok(driver.cuGraphUpload(self.executable, stream))

    def run(self, status: int = 0) -> list[int]:
        """What a launch adds to the first four numbers."""
        before = list(self.memory[:4])
        self.status.value = -1
        ok(driver.cuGraphLaunch(self.executable, self.stream))
        ok(driver.cuStreamSynchronize(self.stream))
        assert self.status.value == status
        return [now - then for now, then in zip(self.memory[:4], before, strict=True)]

    def close(self) -> None:
        ok(driver.cuGraphExecDestroy(self.executable))


@pytest.mark.parametrize(
    ("name", "arguments", "status", "added"),
    [
        (None, (), -1, [1, 1, 0, 0]),
        ("set_param", (8, 5), 0, [5, 5, 0, 0]),
        ("set_param", (12, 5), 1, [1, 1, 0, 0]),
        ("set_param", (0x80000000, 5), 1, [1, 1, 0, 0]),
        ("set_enabled", (0,), 0, [0, 0, 0, 0]),
        ("set_enabled", (1,), 0, [1, 1, 0, 0]),
        ("set_grid", (4, 1), 0, [1, 1, 1, 1]),
        ("set_grid", (1, 3), 0, [3, 0, 0, 0]),
        ("set_grid", (0, 1), 1, [1, 1, 0, 0]),
        ("set_grid", (1, 65536), 1, [1, 1, 0, 0]),
        ("apply", (3, 7), 0, [7, 7, 7, 0]),
        ("apply", (0, 7), 1, [1, 1, 0, 0]),
    ],
)
def test_kernels_change_nodes(kernel, graph, add_node, memory, make_stream, name, arguments, status, added):
    if not on_cpu_device() and status == 1:
        pytest.skip("what a GPU does with bad updates is not documented")
    updates = Updates(kernel, graph, add_node, memory, make_stream(), name, *arguments)
    for _ in range(2):
        assert updates.run(status) == added
    updates.close()


def test_updates_from_outside_stay_until_the_host_changes_the_node(kernel, graph, add_node, memory, make_stream):
    updates = Updates(kernel, graph, add_node, memory, make_stream(), None)
    (pointers, keep) = pack(
        ctypes.c_uint64(updates.handle),
        ctypes.c_uint32(8),
        ctypes.c_uint32(9),
        ctypes.c_uint64(ctypes.addressof(memory) + 4000),
    )

    def change() -> None:
        function = kernel("set_param")
        ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, updates.stream, ctypes.addressof(pointers), 0))
        ok(driver.cuStreamSynchronize(updates.stream))

    change()
    assert [updates.run(-1) for _ in range(2)] == [[9, 9, 0, 0]] * 2
    params = ok(driver.cuGraphKernelNodeGetParams(updates.node))
    ok(driver.cuGraphExecKernelNodeSetParams(updates.executable, updates.node, params))
    ok(driver.cuGraphUpload(updates.executable, updates.stream))
    assert updates.run(-1) == [1, 1, 0, 0]
    ok(driver.cuGraphExecKernelNodeSetParams(updates.executable, updates.node, params))
    ok(driver.cuGraphUpload(updates.executable, updates.stream))
    change()  # behind the upload
    assert updates.run(-1) == [9, 9, 0, 0]
    updates.close()
    del keep


@pytest.mark.cpu_only
def test_disabled_nodes_can_be_enabled_by_kernels(kernel, graph, add_node, memory, make_stream):
    updates = Updates(kernel, graph, add_node, memory, make_stream(), "set_enabled", 1)
    ok(driver.cuGraphNodeSetEnabled(updates.executable, updates.node, 0))
    assert updates.run(0) == [1, 1, 0, 0]
    updates.close()


@pytest.mark.cpu_only
def test_a_cluster_divides_the_grid_still(kernel, graph, add_node, memory, make_stream):
    base = ctypes.addressof(memory)
    node = add_node(kernel("add"), ctypes.c_uint64(base), ctypes.c_uint32(1), grid=2)
    value = driver.CUlaunchAttributeValue()
    value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = 2, 1, 1
    ok(driver.cuGraphKernelNodeSetAttribute(node, L.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value))
    handle = ctypes.c_uint64(make_updatable(node))
    for i, extent in enumerate((3, 4)):
        status = ctypes.c_uint64(base + 4000 + 4 * i)
        before = add_node(kernel("set_grid"), handle, ctypes.c_uint32(extent), ctypes.c_uint32(1), status)
        ok(driver.cuGraphAddDependencies(graph, [before], [node], [driver.CUgraphEdgeData()], 1))
    executable, stream = ok(driver.cuGraphInstantiate(graph, 0)), make_stream()
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert list(memory[:4]) == [1, 1, 1, 1] and list(memory[1000:1002]) == [1, 0]
    ok(driver.cuGraphExecDestroy(executable))


@pytest.mark.cpu_only
def test_a_wrong_handle_is_a_fault(kernel, add_node, run_python):
    done = run_python(
        "from tests.cpu.driver.graph.test_updatable_nodes import UPDATES\n"
        "from cupola import Device, LaunchConfig, Program, launch\n"
        "dev = Device(0); dev.set_current()\n"
        "kernel = Program(UPDATES, 'c++', {'arch': f'sm_{dev.arch}'}).compile('cubin').get_kernel('set_enabled')\n"
        "launch(dev.default_stream, LaunchConfig(grid=1, block=1), kernel, 4096, 1, 0)\n"
        "dev.sync()"
    )
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stderr and "cudaGraphKernelNodeSetEnabled" not in done.stdout
