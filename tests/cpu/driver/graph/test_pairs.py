"""Which nodes of two graphs correspond when an executable is updated.

The nodes on which no other depends correspond in the order in which they became such; what two nodes depend on, in the
order of their edges (CUDA C++ Programming Guide, "Whole Graph Update"). An H200 with driver 580 lets the orders change
that ORDERS has.
"""

from __future__ import annotations

import ctypes
import itertools

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import ok, status
from tests.cpu.driver.graph.test_update import memset_params

NAMES = "abcdefgh"
SCRATCH = 100
FAILURE = "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"


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
            result = driver.cuGraphExecUpdate(executable, after[0])
            if status(result) != "CUDA_SUCCESS":
                assert status(result) == FAILURE
                assert self.run(executable) == set(nodes)
                return "refused"
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


# What an H200 answered (changes of the order of creation, of the dependents and of the edges), and which nodes then
# correspond.
ORDERS = [
    *(("a b c d(ab) e(c)", " ".join([*order, "d(ab)", "e(c)"]), True) for order in itertools.permutations("abc")),
    ("a b c d(ab) e(c)", "a b c e(c) d(ab)", False),
    *(
        ("a b c d e a>d b>d c>e", " ".join(["a b c d e", *edges]), True)
        for edges in itertools.permutations(["a>d", "b>d", "c>e"])
    ),
]


@pytest.mark.parametrize(("before", "after", "fits"), ORDERS)
def test_orders_that_an_h200_lets_change(graphs, before, after, fits):
    pairs = graphs.pairs(graphs.graph(before), graphs.graph(after))
    assert (pairs != "refused") == fits


PAIRS = [
    ("a b c", "c b a", "ac bb ca"),
    ("a b c d(ab) e(c)", "c b a d(ab) e(c)", "aa bb cc dd ee"),
    ("a b c d(ab) e(c)", "a b c d(ba) e(c)", "ab ba cc dd ee"),
    ("a b c d(a) e(b) f(c)", "a d(a) b e(b) c f(c)", "aa bb cc dd ee ff"),
    ("a b c d(a) e(b) f(c)", "a b c e(b) d(a) f(c)", "ab ba cc de ed ff"),
    ("a b(a) c(a) d(bc)", "a b(a) c(a) d(cb)", "aa bc cb dd"),
    ("a b(a) c(b)", "a b c b>c a>b", "aa bb cc"),
    # edges that are removed and added again come last, and so does a node that has no dependents any more
    ("a b c(ab)", "a b c(ab) -a>c a>c", "ab ba cc"),
    ("a b c", "a b c a>b -a>b", "ab bc ca"),
    ("a b c", "a b c d(a) /d", "ab bc ca"),
    # one that is reached in two ways would have two counterparts
    ("a b c(ab) d(ab)", "a b c(ab) d(ba)", "refused"),
    ("a b c(ab) d(ab)", "a b c(ba) d(ba)", "ab ba cc dd"),
    ("a b(a) c(b)", "a b(a) c(a)", "refused"),
    ("a b c(ab)", "a b c(b)", "refused"),
    ("a b", "a b c", "refused"),
    ("a b", "a b a>b b>a", "refused"),
    ("a b(a)", "a b(a) c d c>d d>c", "refused"),
    ("a b c(b)", "a b c b>c c>b", "refused"),
]


@pytest.mark.cpu_only
@pytest.mark.parametrize(("before", "after", "pairs"), PAIRS)
def test_pairs(graphs, before, after, pairs):
    assert graphs.pairs(graphs.graph(before), graphs.graph(after)) == pairs


@pytest.mark.cpu_only
@pytest.mark.parametrize(("before", "after", "pairs"), [case for case in PAIRS if not set(">/") & set(case[1])])
def test_pairs_in_child_graphs(graphs, before, after, pairs):
    assert graphs.pairs(graphs.child(before), graphs.child(after)) == pairs


# Of the origin's nodes on which no other depends, those that it leaves come first, and in the end those that it has.
CAPTURES = [
    ("s!1 t?1 sa tb t!2 s?2", "s!1 t?1 tb sa t!2 s?2", "aa bb"),
    ("s!1 t?1 u?1 sa tb uc t!2 u!3 s?2 s?3", "s!1 t?1 u?1 uc tb sa t!2 u!3 s?3 s?2", "aa bc cb"),
    ("s!1 t?1 sa tb t!2 s?2 sc", "s!1 t?1 tb sa t!2 s?2 sc", "aa bb cc"),
    ("sa s= sb s= sc", "sb s= sa s= sc", "ab ba cc"),
    ("sa sb s=a sc", "sa sb s=a sc", "aa bb cc"),
]


@pytest.mark.cpu_only
@pytest.mark.parametrize(("before", "after", "pairs"), CAPTURES)
def test_pairs_of_captured_graphs(graphs, make_stream, before, after, pairs):
    streams = [make_stream() for _ in "stu"]
    assert graphs.pairs(graphs.capture(before, streams), graphs.capture(after, streams)) == pairs


def test_an_update_takes_parameters_by_position(graphs):
    """Of a child graph that is set alone, too."""
    graph, _ = graphs.child("a b c")
    node = ok(driver.cuGraphGetNodes(graph, 1))[0][0]
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphExecChildGraphNodeSetParams(executable, node, graphs.graph("f e d")[0]))
    assert graphs.run(executable) == set("def")
    ok(driver.cuGraphExecDestroy(executable))
