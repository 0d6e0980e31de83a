"""Graphs launched by kernels: the order, what launches return, and what happens to wrong ones.

What an H200 does (driver 580.159, CUDA 13.0) is in the tables; the same tests run there.
"""

from __future__ import annotations

import numpy as np
import pytest

from cupola import CUDAError, launch
from cupola.bindings import driver
from cupola.graph import GraphCompleteOptions, GraphDefinition
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import ok, status
from tests.cpu.driver.device_side.programs import ONE, Log, linked
from tests.cpu.driver.graph.test_bodies import MEMORY, Maker

FIRE, TAIL, SIBLING, NOTHING = 0x0200000000000000, 0x0100000000000000, 0x0300000000000000, 77
INVALID_VALUE = 1

SOURCE = r"""
extern "C" __global__ void say(int* log, int what, int milliseconds) { nap(milliseconds); tell(log, what); }
// Launches graphs, says 1000 * their place + the status if that is an error, and then `what`.
extern "C" __global__ void start(int* log, int what, u64 a, u64 how_a, u64 b, u64 how_b, u64 c, u64 how_c) {
    u64 graphs[] = {a, b, c}, how[] = {how_a, how_b, how_c};
    for (int i = 0; i < 3; i++)
        if (how[i] != 77)
            if (int status = cudaGraphLaunch((cudaGraphExec_t)graphs[i], (cudaStream_t)how[i]))
                tell(log, 1000 * (i + 1) + status);
    tell(log, what);
}
extern "C" __global__ void start_all(int* log, const u64* graphs, int count, u64 how) {
    int started = 0, status = 0;
    for (int i = 0; i < count; i++) {
        int one = cudaGraphLaunch((cudaGraphExec_t)graphs[i], (cudaStream_t)how);
        started += !one;
        status |= one;
    }
    tell(log, started);
    tell(log, status);
}
extern "C" __global__ void again(int* log, int* left) {
    tell(log, --*left);
    if (*left) tell(log, -cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch));
}
extern "C" __global__ void forever() { cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch); }
extern "C" __global__ void start_self(int* log, int* left, u64 how) {
    tell(log, --*left);
    if (*left)
        for (int i = 0; i < 2; i++)
            tell(log, -cudaGraphLaunch(cudaGetCurrentGraphExec(), (cudaStream_t)how));
}
extern "C" __global__ void current(u64* graph) { *graph = (u64)cudaGetCurrentGraphExec(); }
extern "C" __global__ void count(int* number) { atomicAdd(number, 1); }
extern "C" __global__ void store(int* place) { *place = 1; }
// Starts a graph, waits until it has set the flag and is over, and starts it again.
extern "C" __global__ void restart(int* log, volatile int* flag, u64 graph) {
    tell(log, cudaGraphLaunch((cudaGraphExec_t)graph, cudaStreamGraphFireAndForget));
    while (!*flag) nap(1);
    nap(50);
    tell(log, cudaGraphLaunch((cudaGraphExec_t)graph, cudaStreamGraphFireAndForget));
}
"""


class Graphs:
    """Makes graphs of kernels that run one after another."""

    def __init__(self, device, stream) -> None:
        self.code = linked(SOURCE)
        self.device, self.stream = device, stream
        self.log = Log(stream)
        self.made: list = []

    def definition(self, *kernels) -> GraphDefinition:
        definition = GraphDefinition()
        place = definition
        for name, *arguments in kernels:
            place = place.launch(ONE, self.code.get_kernel(name), *arguments)
        return definition

    def make(self, *kernels, for_device: bool = True, upload: bool = True):
        options = GraphCompleteOptions(device_launch=for_device)
        self.made.append(self.definition(*kernels).instantiate(options))
        if upload:
            self.made[-1].upload(self.stream)
        return self.made[-1]

    def say(self, what: int, milliseconds: int = 0):
        return "say", self.log.buffer, np.int32(what), np.int32(milliseconds)

    def start(self, what: int, *launches):
        """A kernel that launches up to three graphs, each (graph or handle, how)."""
        words = []
        for graph, how in (*launches, *[(0, NOTHING)] * (3 - len(launches))):
            words += [np.uint64(graph if isinstance(graph, int) else int(graph.handle)), np.uint64(how)]
        return "start", self.log.buffer, np.int32(what), *words

    def run(self, graph, times: int = 1) -> list[int]:
        """What the graph says, and 999 from what is in the stream behind it."""
        for _ in range(times):
            graph.launch(self.stream)
        return self.log.run(self.code.get_kernel("say"), np.int32(999), np.int32(0))


@pytest.fixture
def graphs(device, stream):
    made = Graphs(device, stream)
    yield made
    stream.sync()
    for graph in made.made:
        graph.close()


def in_order(said: list[int], *numbers: int) -> bool:
    """Whether the numbers were said, each once, in that order."""
    places = [said.index(number) for number in numbers if said.count(number) == 1]
    return len(places) == len(numbers) and places == sorted(places)


# ---- order -----------------------------------------------------------------------------------------------------------


def test_what_was_fired_belongs_to_the_launch(graphs):
    fired = graphs.make(graphs.say(20, 60), graphs.say(21))
    said = graphs.run(graphs.make(graphs.start(10, (fired, FIRE)), graphs.say(11)))
    assert in_order(said, 10, 11, 999) and in_order(said, 20, 21, 999) and len(said) == 5


def test_fired_graphs_run_while_the_launching_one_does(graphs):
    flag = graphs.log.buffer.handle + 4 * 3000
    fired = graphs.make(("store", np.uint64(flag)))
    assert graphs.run(graphs.make(("restart", graphs.log.buffer, np.uint64(flag), np.uint64(int(fired.handle))))) == [
        0,
        0,
        999,
    ]


def test_tails_follow_what_was_fired_in_their_order(graphs):
    fired, first, second = graphs.make(graphs.say(20, 60)), graphs.make(graphs.say(30, 10)), graphs.make(graphs.say(40))
    said = graphs.run(graphs.make(graphs.start(10, (first, TAIL), (fired, FIRE), (second, TAIL)), graphs.say(11)))
    assert in_order(said, 10, 11, 30, 40, 999) and in_order(said, 20, 30)


def test_tails_of_a_tail_come_first(graphs):
    inner = graphs.make(graphs.say(50))
    first, second = graphs.make(graphs.start(30, (inner, TAIL)), graphs.say(31)), graphs.make(graphs.say(40))
    said = graphs.run(graphs.make(graphs.start(10, (first, TAIL), (second, TAIL)), graphs.say(11)))
    assert said == [10, 11, 30, 31, 50, 40, 999]


def test_siblings_belong_to_what_is_around(graphs):
    sibling, tail, last = graphs.make(graphs.say(60, 100)), graphs.make(graphs.say(30)), graphs.make(graphs.say(70))
    middle = graphs.make(graphs.start(10, (sibling, SIBLING), (tail, TAIL)), graphs.say(11))
    said = graphs.run(graphs.make(graphs.start(1, (middle, FIRE), (last, TAIL)), graphs.say(2)))
    assert in_order(said, 10, 11, 30, 60, 70, 999)


def test_the_stream_waits_for_siblings(graphs):
    sibling, tail = graphs.make(graphs.say(60, 100)), graphs.make(graphs.say(30))
    said = graphs.run(graphs.make(graphs.start(10, (sibling, SIBLING), (tail, TAIL)), graphs.say(11)))
    assert in_order(said, 10, 11, 30, 60, 999)


def test_a_graph_repeats_itself(graphs):
    left = graphs.device.allocate(4, stream=graphs.stream)
    left.copy_from(np.array([300], np.int32), stream=graphs.stream)
    said = graphs.run(graphs.make(("again", graphs.log.buffer, left)))
    assert said == [n for left in range(299, 0, -1) for n in (left, 0)] + [0, 999]
    left.close(graphs.stream)


def test_launches_by_the_host_come_one_after_another(graphs):
    fired = graphs.make(graphs.say(20, 20))
    graph = graphs.make(graphs.start(10, (fired, FIRE)), graphs.say(11))
    said = graphs.run(graph, times=2)
    assert said[:3].count(20) == said[3:6].count(20) == 1 and len(said) == 7


def test_ordinary_graphs_launch(graphs):
    fired, tail, sibling = (graphs.make(graphs.say(number)) for number in (20, 21, 22))
    starting = graphs.start(10, (fired, FIRE), (tail, TAIL), (sibling, SIBLING))
    said = graphs.run(graphs.make(starting, graphs.say(11), for_device=False, upload=False))
    assert in_order(said, 10, 11, 21, 999) and in_order(said, 20, 21) and in_order(said, 22, 999)


def test_in_a_child_graph(graphs):
    fired = graphs.make(graphs.say(20, 20))
    definition = GraphDefinition()
    definition.embed(graphs.definition(graphs.start(10, (fired, FIRE)))).launch(
        ONE, graphs.code.get_kernel("say"), *graphs.say(11)[1:]
    )
    graphs.made.append(definition.instantiate(GraphCompleteOptions(device_launch=True)))
    said = graphs.run(graphs.made[-1])
    assert in_order(said, 10, 11, 999) and in_order(said, 20, 999)


# ---- which graph it is -----------------------------------------------------------------------------------------------


def test_the_current_graph(graphs):
    found = np.full(3, 7, np.uint64)
    places = graphs.device.allocate(24, stream=graphs.stream)
    device_graph = graphs.make(("current", np.uint64(places.handle)))
    device_graph.launch(graphs.stream)
    graphs.make(("current", np.uint64(int(places.handle) + 8)), for_device=False).launch(graphs.stream)
    launch(graphs.stream, ONE, graphs.code.get_kernel("current"), np.uint64(int(places.handle) + 16))
    places.copy_to(found, stream=graphs.stream)
    graphs.stream.sync()
    assert found.tolist() == [int(device_graph.handle), 0, 0]
    places.close(graphs.stream)


# ---- what launches return --------------------------------------------------------------------------------------------

# how a graph that says 20 is launched, one after the other: what each launch returns
TWICE = {
    (FIRE, FIRE): (0, INVALID_VALUE),
    (FIRE, TAIL): (0, INVALID_VALUE),
    (FIRE, SIBLING): (0, INVALID_VALUE),
    (TAIL, TAIL): (0, INVALID_VALUE),
    (TAIL, FIRE): (0, INVALID_VALUE),
    (SIBLING, SIBLING): (0, INVALID_VALUE),
}


@pytest.mark.parametrize("ways", TWICE)
def test_a_graph_runs_once_at_a_time(graphs, ways):
    graph = graphs.make(graphs.say(20, 30))
    said = graphs.run(graphs.make(graphs.start(10, *((graph, way) for way in ways)), graphs.say(11)))
    refused = [1000 * (place + 1) + status for place, status in enumerate(TWICE[ways]) if status]
    assert [n for n in said if n > 999] == refused and in_order(said, 10, 11, 999) and said.count(20) == 1


@pytest.mark.parametrize(("way", "status"), [(TAIL, 0), (FIRE, -INVALID_VALUE), (SIBLING, -INVALID_VALUE)])
def test_a_graph_launches_itself_only_as_a_tail(graphs, way, status):
    left = graphs.device.allocate(4, stream=graphs.stream)
    left.copy_from(np.array([3], np.int32), stream=graphs.stream)
    said = graphs.run(graphs.make(("start_self", graphs.log.buffer, left, np.uint64(way))))
    rounds = [2, 1] if status == 0 else [2]
    assert said == [n for k in rounds for n in (k, status, -INVALID_VALUE)] + [0] * (status == 0) + [999]
    left.close(graphs.stream)


@pytest.mark.parametrize("other", [0, 1, 2, 3, 4, 0x0400000000000000, TAIL + 1, "own"])
def test_graphs_are_launched_into_no_other_stream(graphs, other):
    target = graphs.make(graphs.say(20))
    way = int(graphs.stream.handle) if other == "own" else other
    assert graphs.run(graphs.make(graphs.start(10, (target, way)))) == [1001, 10, 999]


def test_no_graph(graphs):
    assert graphs.run(graphs.make(graphs.start(10, (0, FIRE), (0, TAIL)))) == [1001, 2001, 10, 999]


@pytest.mark.cpu_only
def test_what_was_not_uploaded(graphs):
    """A GPU may find a graph there that was destroyed, if it was in the same place."""
    target = graphs.make(graphs.say(20), upload=False)
    assert graphs.run(graphs.make(graphs.start(10, (target, FIRE)))) == [1001, 10, 999]


def test_uploads(graphs):
    target = graphs.make(graphs.say(20), upload=False)
    graph = graphs.make(graphs.start(10, (target, FIRE)))
    assert graphs.run(target) == [20, 999]  # as a launch by the host does
    assert in_order(graphs.run(graph), 20, 999)
    options = GraphCompleteOptions(device_launch=True, upload_stream=graphs.stream)
    target = graphs.definition(graphs.say(21)).instantiate(options)
    graphs.made.append(target)
    assert in_order(graphs.run(graphs.make(graphs.start(10, (target, FIRE)))), 21, 999)


def test_changes_take_effect_with_the_next_upload(graphs):
    target = graphs.make(graphs.say(20))
    graph = graphs.make(graphs.start(10, (target, FIRE)))
    changed = graphs.definition(graphs.say(25))
    ok(driver.cuGraphExecUpdate(target.handle, changed.handle))  # `update` may upload, too
    assert in_order(graphs.run(graph), 20, 999)
    target.upload(graphs.stream)
    assert in_order(graphs.run(graph), 25, 999)


# how: how many of 270 launches of different graphs there may be in one launch of the launching graph
@pytest.mark.parametrize(("way", "most"), [(FIRE, 120), (SIBLING, 120), (TAIL, 255)])
def test_limits(graphs, way, most):
    number = graphs.device.allocate(4, stream=graphs.stream)
    number.fill(0, stream=graphs.stream)
    targets = np.array([int(graphs.make(("count", number)).handle) for _ in range(most + 10)], np.uint64)
    places = graphs.device.allocate(targets.nbytes, stream=graphs.stream)
    places.copy_from(targets, stream=graphs.stream)
    graph = graphs.make(("start_all", graphs.log.buffer, places, np.int32(len(targets)), np.uint64(way)))
    found = np.zeros(1, np.int32)
    for launches in (1, 2):  # each of which counts anew
        assert graphs.run(graph) == [most, INVALID_VALUE, 999]
        number.copy_to(found, stream=graphs.stream)
        graphs.stream.sync()
        assert found[0] == launches * most
    for buffer in (number, places):
        buffer.close(graphs.stream)


def test_kernels_that_launch_graphs_are_nodes_of_graphs(graphs):
    target = graphs.make(graphs.say(20))
    with pytest.raises(CUDAError, match="NOT_SUPPORTED"):
        launch(graphs.stream, ONE, graphs.code.get_kernel("start"), *graphs.start(10, (target, FIRE))[1:])
    assert graphs.run(target) == [20, 999]


# ---- what a graph for launches from the device may contain -----------------------------------------------------------

# kind of node (Maker): the result of the instantiation, which fails as CUDA_ERROR_INVALID_VALUE; or None
NO_OPERATION, ERROR = (
    driver.CUgraphInstantiateResult[f"CUDA_GRAPH_INSTANTIATE_{name}"]
    for name in ("NODE_OPERATION_NOT_SUPPORTED", "ERROR")
)
KINDS = {
    "kernel": None,
    "copy device to device": None,
    "copy pinned to device": None,
    "copy device to pinned": None,
    "copy pinned to pinned": None,
    "copy unified to unified": None,
    "copy pageable to device": NO_OPERATION,
    "copy device to pageable": NO_OPERATION,
    "copy pageable to pageable": NO_OPERATION,
    "fill": None,
    "fill of rows": None,
    "empty": NO_OPERATION,
    "host": NO_OPERATION,
    "record": NO_OPERATION,
    "wait": NO_OPERATION,
    "batch": NO_OPERATION,
    "allocate": NO_OPERATION,
    "if": NO_OPERATION,
    "while": NO_OPERATION,
    "switch": NO_OPERATION,
    "child of kernel": None,
    "child of fill": None,
    "child of child of kernel": None,
    "child of nothing": ERROR,
    "child of copy pageable to device": NO_OPERATION,
    "child of host": NO_OPERATION,
    "child of child of host": NO_OPERATION,
}


def instantiate(graph):
    parameters = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    parameters.flags = int(driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
    return driver.cuGraphInstantiateWithParams(graph, parameters), parameters


def test_kinds_of_nodes(context, host, make_event):
    maker = Maker(context, host.function(lambda: None), make_event)
    for kind, expected in KINDS.items():
        root = maker.graph()
        node = ok(driver.cuGraphAddNode(root, [], [], 0, maker.parameters(kind, root)))
        result, said = instantiate(root)
        assert status(result) == ("CUDA_SUCCESS" if expected is None else "CUDA_ERROR_INVALID_VALUE"), kind
        assert said.result_out == (expected or 0), kind
        named = expected == NO_OPERATION and not kind.startswith("child")
        assert (int(said.hErrNode_out or 0) == int(node)) == named, kind
        if expected is None:
            ok(driver.cuGraphExecDestroy(result[1]))
    shape = driver.CUDA_ARRAY3D_DESCRIPTOR()
    shape.Width, shape.Height, shape.NumChannels = 64, 1, 1
    shape.Format = driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
    array, root = ok(driver.cuArray3DCreate(shape)), maker.graph()
    copy = maker.parameters("copy device to device", root).memcpy.copyParams
    copy.dstMemoryType, copy.dstArray = MEMORY.CU_MEMORYTYPE_ARRAY, array
    ok(driver.cuGraphAddMemcpyNode(root, [], 0, copy, context))
    assert instantiate(root)[1].result_out == NO_OPERATION
    ok(driver.cuArrayDestroy(array))
    result, said = instantiate(maker.graph())
    assert status(result) == "CUDA_ERROR_INVALID_VALUE" and said.result_out == ERROR
    maker.close()


def test_refusals_name_the_node(graphs):
    definition = GraphDefinition()
    definition.join().launch(ONE, graphs.code.get_kernel("say"), *graphs.say(1)[1:])
    with pytest.raises(RuntimeError, match="cannot be made executable: .*launch"):
        definition.instantiate(GraphCompleteOptions(device_launch=True))


# ---- faults ----------------------------------------------------------------------------------------------------------

# what a kernel gives cudaGraphLaunch: what the error says on the CPU device
WRONG = {
    "0x12345678": "cudaGraphLaunch was given 0x12345678, which is no executable graph",
    "int(graphs.make(graphs.say(20), for_device=False, upload=False).handle)": "instantiated for launches from",
}
FAULT = """
from cupola import Device, CUDAError
from tests.cpu.driver.device_side.test_graphs import FIRE, Graphs
device = Device()
device.set_current()
graphs = Graphs(device, device.create_stream())
graph = graphs.make(graphs.start(10, ({target}, FIRE)))
graph.launch(graphs.stream)
try:
    graphs.stream.sync()
except CUDAError as error:
    print(error)
"""


@pytest.mark.parametrize("target", WRONG)
def test_wrong_graphs_fault(run_python, target):
    said = run_python(FAULT.format(target=target)).stdout
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said
    if on_cpu_device():
        assert "kernel 'start': a wrong launch by the kernel" in said and WRONG[target] in said


@pytest.mark.cpu_only
def test_a_destroyed_graph(run_python):
    program = FAULT.format(target="int(target.handle)").replace(
        "graph = ", "target = graphs.make(graphs.say(20))\ngraph = "
    )
    program = program.replace("graph.launch", "graphs.stream.sync()\ntarget.close()\ngraph.launch")
    assert "or one that was destroyed" in run_python(program).stdout


def test_a_fault_of_a_launched_graph(run_python):
    program = FAULT.format(target="graphs.make(('store', np.uint64(16)))").replace(
        "from", "import numpy as np\nfrom", 1
    )
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in run_python(program).stdout


@pytest.mark.cpu_only
def test_a_graph_that_repeats_itself_forever_is_stopped(run_python):
    program = FAULT.format(target="0").replace("graph.launch", "graph = graphs.make(('forever',))\ngraph.launch")
    said = run_python(program, CUPOLA_CPU_TIMEOUT="1").stdout
    assert "CUDA_ERROR_LAUNCH_TIMEOUT" in said and "CUPOLA_CPU_TIMEOUT" in said
