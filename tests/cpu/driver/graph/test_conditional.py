"""Which bodies of conditional nodes run, by defaults and by what kernels set: what an H200 with driver 580 does."""

from __future__ import annotations

import ctypes

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import compiled, ok, pack

SOURCE = r"""
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
extern "C" __global__ void count(unsigned* counter) { atomicAdd(counter, 1u); }
extern "C" __global__ void count_stop(unsigned* counter, unsigned long long handle) {
    atomicAdd(counter, 1u);
    cudaGraphSetConditional(handle, 0);
}
extern "C" __global__ void set(unsigned long long handle, unsigned value) { cudaGraphSetConditional(handle, value); }
extern "C" __global__ void set_if(unsigned long long handle, unsigned* flag, unsigned value) {
    if (*flag) cudaGraphSetConditional(handle, value);
}
extern "C" __global__ void twice(unsigned long long handle, unsigned a, unsigned b) {
    cudaGraphSetConditional(handle, a);
    cudaGraphSetConditional(handle, b);
}
extern "C" __global__ void lanes(unsigned long long handle, unsigned first) {
    if (threadIdx.x >= first) cudaGraphSetConditional(handle, threadIdx.x);
}
extern "C" __global__ void two_handles(unsigned long long a, unsigned long long b) {
    cudaGraphSetConditional(threadIdx.x & 1 ? b : a, threadIdx.x & 1 ? threadIdx.x - 1 : threadIdx.x + 1);
}
"""
FLAG = 100  # a word


class Conditions:
    """Graphs with conditional nodes whose bodies count in the words of `memory`."""

    def __init__(self, context, memory) -> None:
        self.context, self.memory, self.base = context, memory, ctypes.addressof(memory)
        self.module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
        self.graph = ok(driver.cuGraphCreate(0))
        self.kept: list = []

    def handle(self, default: int = 0, assign: bool = True) -> int:
        return int(ok(driver.cuGraphConditionalHandleCreate(self.graph, self.context, default, int(assign))))

    def kernel(self, graph, name: str, *values, after=(), block: int = 1):
        params = driver.CUDA_KERNEL_NODE_PARAMS()
        params.func = ok(driver.cuModuleGetFunction(self.module, name.encode()))
        params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1
        params.blockDimX = block
        self.kept.append(pack(*values))
        params.kernelParams = ctypes.addressof(self.kept[-1][0])
        return ok(driver.cuGraphAddKernelNode(graph, list(after), len(after), params))

    def node(self, handle: int, kind: str, bodies: int, after=()):
        params = driver.CUgraphNodeParams()
        params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        params.conditional.handle, params.conditional.size, params.conditional.ctx = handle, bodies, self.context
        params.conditional.type = driver.CUgraphConditionalNodeType[f"CU_GRAPH_COND_TYPE_{kind}"]
        data = [driver.CUgraphEdgeData() for _ in after]
        ok(driver.cuGraphAddNode(self.graph, list(after), data, len(after), params))
        return list(params.conditional.phGraph_out)[:bodies]

    def counted(self, handle: int, kind: str, bodies: int, after=(), first: int = 0) -> None:
        for i, body in enumerate(self.node(handle, kind, bodies, after)):
            self.kernel(body, "count", ctypes.c_uint64(self.base + 4 * (first + i)))

    def run(self, launches: int, flags=()) -> list[list[int]]:
        executable = ok(driver.cuGraphInstantiate(self.graph, 0))
        found = []
        for i in range(launches):
            ctypes.memset(self.memory, 0, 4096)
            self.memory[FLAG] = i in flags
            ok(driver.cuGraphLaunch(executable, 0))
            ok(driver.cuCtxSynchronize())
            found.append(list(self.memory[:4]))
        ok(driver.cuGraphExecDestroy(executable))
        return found

    def close(self) -> None:
        ok(driver.cuGraphDestroy(self.graph))
        ok(driver.cuModuleUnload(self.module))


@pytest.fixture
def conditions(context, memory):
    made = Conditions(context, memory)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("default", "assign", "runs"),
    [
        *(pytest.param(default, False, 0, marks=pytest.mark.cpu_only) for default in (1, 0, 7)),  # as below
        (1, True, 1),
        (0, True, 0),
    ],
)
@pytest.mark.parametrize("kind", ["IF", "WHILE"])
def test_defaults(conditions, kind, default, assign, runs):
    handle = conditions.handle(default, assign)
    (body,) = conditions.node(handle, kind, 1)
    conditions.kernel(body, "count_stop", ctypes.c_uint64(conditions.base), ctypes.c_uint64(handle))
    assert conditions.run(3) == [[runs, 0, 0, 0]] * 3


# Without a default the value is 0 where a process begins. After other tests an H200 has what is left of their handles.
@pytest.mark.parametrize(
    ("default", "assign", "body"),
    [
        pytest.param(1, False, 0, marks=pytest.mark.cpu_only),
        (1, True, 1),
        pytest.param(2, False, 0, marks=pytest.mark.cpu_only),
        (2, True, 2),
    ],
)
def test_defaults_of_a_switch(conditions, default, assign, body):
    conditions.counted(conditions.handle(default, assign), "SWITCH", 4)
    assert conditions.run(2) == [[int(i == body) for i in range(4)]] * 2


@pytest.mark.cpu_only  # as above
def test_without_a_default_what_a_kernel_has_set_stays(conditions):
    handle = conditions.handle(0, False)
    flag = ctypes.c_uint64(conditions.base + 4 * FLAG)
    node = conditions.kernel(conditions.graph, "set_if", ctypes.c_uint64(handle), flag, ctypes.c_uint32(1))
    conditions.counted(handle, "IF", 1, [node])
    assert [ran for ran, *_ in conditions.run(4, flags=[1])] == [0, 1, 1, 1]


# kind, bodies, what a kernel sets: which body runs
SET = [
    ("IF", 1, 2, 0),
    ("IF", 1, 0x100, 0),
    ("IF", 1, 0, None),
    ("IF", 2, 2, 0),
    ("IF", 2, 0, 1),
    ("SWITCH", 2, 0, 0),
    ("SWITCH", 2, 1, 1),
    ("SWITCH", 2, 2, None),
    ("SWITCH", 2, 5, None),
    ("SWITCH", 2, 0xFFFFFFFF, None),
]


@pytest.mark.parametrize(("kind", "bodies", "value", "body"), SET)
def test_values(conditions, kind, bodies, value, body):
    handle = conditions.handle()
    node = conditions.kernel(conditions.graph, "set", ctypes.c_uint64(handle), ctypes.c_uint32(value))
    conditions.counted(handle, kind, bodies, [node])
    assert conditions.run(2) == [[int(i == body) for i in range(4)]] * 2


@pytest.mark.parametrize("values", [(2, 1), (1, 2)])
def test_of_two_calls_the_second_counts(conditions, values):
    handle = conditions.handle()
    numbers = [ctypes.c_uint32(value) for value in values]
    node = conditions.kernel(conditions.graph, "twice", ctypes.c_uint64(handle), *numbers)
    conditions.counted(handle, "SWITCH", 4, [node])
    assert conditions.run(2) == [[int(i == values[1]) for i in range(4)]] * 2


@pytest.mark.parametrize(("block", "first"), [(3, 1), (32, 2), (32, 3), (7, 0)])
def test_of_the_lanes_of_a_call_the_first_counts(conditions, block, first):
    handle = conditions.handle()
    values = ctypes.c_uint64(handle), ctypes.c_uint32(first)
    node = conditions.kernel(conditions.graph, "lanes", *values, block=block)
    conditions.counted(handle, "SWITCH", 4, [node])
    assert conditions.run(2) == [[int(i == first) for i in range(4)]] * 2


def test_lanes_that_set_different_conditions(conditions):
    handles = conditions.handle(), conditions.handle()
    node = conditions.kernel(conditions.graph, "two_handles", *map(ctypes.c_uint64, handles), block=32)
    for first, handle in zip((0, 2), handles, strict=True):
        conditions.counted(handle, "SWITCH", 2, [node], first)
    assert conditions.run(2) == [[0, 1, 1, 0]] * 2  # lane 0 sets one to 1, lane 1 the other to 0
