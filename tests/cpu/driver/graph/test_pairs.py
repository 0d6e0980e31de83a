"""Which nodes of two graphs correspond when an executable is updated.

The nodes on which no other depends correspond in the order in which they became such; what two nodes depend on, in the
order of their edges (CUDA C++ Programming Guide, "Whole Graph Update"). pairs.txt has what an H200 answers.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import ok
from tests.cpu.driver.graph.test_update import memset_params

NAMES = "abcdefgh"
SCRATCH = 100
FAILURE = "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"
RECORDED = [
    (kind, *words.split(" | "))
    for kind, words in (
        line.split(": ", 1)
        for line in Path(__file__).with_name("pairs.txt").read_text().splitlines()
        if not line.startswith("#")
    )
]


class Information(ctypes.Structure):
    _fields_ = [("result", ctypes.c_int), ("node", ctypes.c_void_p), ("dependency", ctypes.c_void_p)]


def update(executable, graph) -> tuple[str, int, int]:
    """The status, and which nodes are to blame, which the bindings do not tell when it failed."""
    address, _ = ok(driver.cuGetProcAddress(b"cuGraphExecUpdate", 12000, 0))
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(int(address))
    found = Information()
    result = driver.CUresult(call(int(executable), int(graph), ctypes.addressof(found)))
    return str(result.name), found.node or 0, found.dependency or 0


class Graphs:
    """Makes graphs of fills from words, and tells which nodes of two of them correspond.

    ``"a b c(ab)"`` are nodes in this order with what they depend on; ``a>c`` adds an edge, ``-a>c`` removes one, and
    ``/c`` destroys a node. Each fills the word of its name.
    """

    def __init__(self, memory) -> None:
        self.memory, self.base, self.made = memory, ctypes.addressof(memory), []

    def fill(self, name: str):
        return memset_params(self.base + 4 * NAMES.index(name), 1)

    def graph(self, text: str, parent=None):
        graph, nodes = parent if parent is not None else ok(driver.cuGraphCreate(0)), {}
        if parent is None:
            self.made.append(graph)
        for word in text.split():
            if word[0] == "/":
                ok(driver.cuGraphDestroyNode(nodes.pop(word[1])))
            elif ">" in word:
                change = driver.cuGraphRemoveDependencies if word[0] == "-" else driver.cuGraphAddDependencies
                begin, end = word.lstrip("-").split(">")
                ok(change(graph, [nodes[begin]], [nodes[end]], [driver.CUgraphEdgeData()], 1))
            else:
                before = [nodes[name] for name in word[2:-1]]
                nodes[word[0]] = ok(driver.cuGraphAddMemsetNode(graph, before, len(before), self.fill(word[0]), None))
        return graph, nodes

    def capture(self, text: str, streams):
        """``sa`` captures a fill in stream s, the origin; ``s!1`` records an event there, and ``t?1`` waits for it."""
        stream = dict(zip("stu", streams, strict=True))
        events = {name: ok(driver.cuEventCreate(2)) for name in "123"}
        nodes = {}
        ok(driver.cuStreamBeginCapture(stream["s"], driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        for where, what, *which in text.split():
            if what == "!":
                ok(driver.cuEventRecord(events[which[0]], stream[where]))
            elif what == "?":
                ok(driver.cuStreamWaitEvent(stream[where], events[which[0]], 0))
            elif what == "=":
                before = [nodes[name] for name in which]
                data = [driver.CUgraphEdgeData() for _ in before]
                ok(driver.cuStreamUpdateCaptureDependencies(stream[where], before, data, len(before), 1))
            else:
                ok(driver.cuMemsetD32Async(self.base + 4 * NAMES.index(what), 1, 1, stream[where]))
                nodes[what] = ok(driver.cuStreamGetCaptureInfo(stream[where]))[3][0]
        graph = ok(driver.cuStreamEndCapture(stream["s"]))
        self.made.append(graph)
        for event in events.values():
            ok(driver.cuEventDestroy(event))
        return graph, nodes

    def child(self, text: str):
        inner, _ = self.graph(text)
        graph = ok(driver.cuGraphCreate(0))
        self.made.append(graph)
        node = ok(driver.cuGraphAddChildGraphNode(graph, [], 0, inner))
        held = ok(driver.cuGraphChildGraphNodeGetGraph(node))
        names = (word[0] for word in text.split())
        return graph, dict(zip(names, ok(driver.cuGraphGetNodes(held, len(text.split())))[0], strict=True))

    def run(self, executable) -> set[str]:
        """The nodes whose words have been filled."""
        ctypes.memset(self.memory, 0, 4096)
        ok(driver.cuGraphLaunch(executable, 0))
        ok(driver.cuCtxSynchronize())
        return {name for i, name in enumerate(NAMES) if self.memory[i]}

    def pairs(self, before, after) -> str:
        """For each node of a graph the one of the other to which an update has made it, or how that failed.

        The other's node is the one whose fill is missing when the first's parameters have been set.
        """
        graph, nodes = before
        executable = ok(driver.cuGraphInstantiate(graph, 0))
        try:
            result, node, dependency = update(executable, after[0])
            if result != "CUDA_SUCCESS":
                assert result == FAILURE
                assert self.run(executable) == set(nodes)
                names = {int(node): name for name, node in after[1].items()}
                return f"refused {names.get(node, '-')} {names.get(dependency, '-')}"
            names, left = [], self.run(executable)
            assert left == set(after[1])
            for name, node in nodes.items():
                scratch = memset_params(self.base + SCRATCH, 1)
                ok(driver.cuGraphExecMemsetNodeSetParams(executable, node, scratch, None))
                now = self.run(executable)
                names.append(name + "".join(left - now))
                left = now
            return " ".join(names)
        finally:
            ok(driver.cuGraphExecDestroy(executable))

    def close(self) -> None:
        for graph in self.made:
            ok(driver.cuGraphDestroy(graph))


@pytest.fixture
def graphs(context, memory):
    made = Graphs(memory)
    yield made
    made.close()


@pytest.mark.parametrize(("kind", "before", "after", "pairs"), RECORDED)
def test_pairs(graphs, make_stream, kind, before, after, pairs):
    streams = [make_stream() for _ in "stu"]

    def made(text: str):
        if kind == "capture":
            return graphs.capture(text, streams)
        return graphs.child(text) if kind == "child" else graphs.graph(text)

    assert graphs.pairs(made(before), made(after)) == pairs


@pytest.mark.parametrize("after", ["a b a>b b>a", "b a c b>c c>b", "c a b a>b b>c c>a"])
def test_graphs_with_cycles_fit_none(graphs, after):
    before = " ".join(name for name in after.split() if len(name) == 1)
    assert graphs.pairs(graphs.graph(before), graphs.graph(after)).startswith("refused")


def test_an_update_takes_parameters_by_position(graphs):
    """Of a child graph that is set alone, too."""
    graph, _ = graphs.child("a b c")
    node = ok(driver.cuGraphGetNodes(graph, 1))[0][0]
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphExecChildGraphNodeSetParams(executable, node, graphs.graph("f e d")[0]))
    assert graphs.run(executable) == set("def")
    ok(driver.cuGraphExecDestroy(executable))
