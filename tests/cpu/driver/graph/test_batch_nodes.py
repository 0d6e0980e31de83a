"""Nodes of batches of memory operations: writes of values, and waits for them. An H200 gave the answers."""

from __future__ import annotations

import ctypes

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import ok, status, updated

OPERATION = driver.CUstreamBatchMemOpType
WRITE_32, WRITE_64 = OPERATION.CU_STREAM_MEM_OP_WRITE_VALUE_32, OPERATION.CU_STREAM_MEM_OP_WRITE_VALUE_64
WAIT_32, WAIT_64 = OPERATION.CU_STREAM_MEM_OP_WAIT_VALUE_32, OPERATION.CU_STREAM_MEM_OP_WAIT_VALUE_64
BARRIER = OPERATION.CU_STREAM_MEM_OP_BARRIER
BATCH = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP
BAD, GOOD = "CUDA_ERROR_INVALID_VALUE", "CUDA_SUCCESS"
EQUAL, NOR = 1, 3


def operation(kind, address: int = 0, value: int = 0, flags: int = 0):
    made = driver.CUstreamBatchMemOpParams()
    made.operation = kind
    if kind != BARRIER:
        made.waitValue.address, made.waitValue.flags = address, flags
        made.waitValue.value64 = value
    return made


def batch(context, *operations, flags: int = 0):
    made = driver.CUDA_BATCH_MEM_OP_NODE_PARAMS()
    made.ctx, made.count, made.flags = context, len(operations), flags
    if operations:
        made.paramArray = list(operations)
    return made


def add(graph, parameters, after=()):
    return driver.cuGraphAddBatchMemOpNode(graph, list(after), len(after), parameters)


@pytest.fixture
def launch(make_stream):
    stream = make_stream()

    def launch(executable) -> str:
        said = status(driver.cuGraphLaunch(executable, stream))
        ok(driver.cuStreamSynchronize(stream))
        return said

    return launch


@pytest.fixture
def words(memory):
    """Where to write, and a function that says what is there and clears it."""

    def read() -> list[int]:
        found = list(memory[:4])
        ctypes.memset(memory, 0, 4096)
        return found

    return ctypes.addressof(memory), read


def test_operations_come_one_after_another(graph, context, words, launch):
    x, read = words
    parameters = batch(
        context,
        operation(WRITE_32, x, 5),
        operation(WAIT_32, x, 5, EQUAL),
        operation(BARRIER),
        operation(WRITE_64, x + 8, (7 << 32) | 6),
        operation(WRITE_32, x, 9),
    )
    node = ok(add(graph, parameters))
    assert ok(driver.cuGraphNodeGetType(node)) == BATCH
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    for _ in range(2):
        assert launch(executable) == GOOD
        assert read() == [9, 0, 6, 7]
    ok(driver.cuGraphExecDestroy(executable))


def test_parameters(graph, context, words):
    x, _ = words
    node = ok(add(graph, batch(context, operation(WRITE_32, x, 5), operation(WAIT_64, x + 8, 6, NOR))))
    found = ok(driver.cuGraphBatchMemOpNodeGetParams(node))
    assert (int(found.ctx), found.count, found.flags) == (int(context), 2, 0)
    ok(driver.cuGraphBatchMemOpNodeSetParams(node, batch(context)))  # a batch may be empty
    assert ok(driver.cuGraphBatchMemOpNodeGetParams(node)).count == 0
    other = ok(driver.cuGraphAddEmptyNode(graph, [], 0))
    assert status(driver.cuGraphBatchMemOpNodeGetParams(other)) == BAD
    assert status(driver.cuGraphBatchMemOpNodeSetParams(other, batch(context))) == BAD


def test_the_generic_function(graph, context, words, launch):
    x, read = words
    parameters = driver.CUgraphNodeParams()
    parameters.type = BATCH
    parameters.memOp.ctx, parameters.memOp.count = context, 1
    parameters.memOp.paramArray = [operation(WRITE_32, x, 3)]
    ok(driver.cuGraphAddNode(graph, [], [], 0, parameters))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    assert launch(executable) == GOOD and read() == [3, 0, 0, 0]
    ok(driver.cuGraphExecDestroy(executable))


@pytest.mark.parametrize(
    "make",
    {
        "too many": lambda context, x: batch(context, *[operation(WRITE_32, x)] * 256),
        "flags": lambda context, x: batch(context, operation(WRITE_32, x), flags=1),
        "no context": lambda _, x: batch(0, operation(WRITE_32, x)),
        "no operation": lambda context, x: batch(context, operation(99, x)),
        "32 bits misaligned": lambda context, x: batch(context, operation(WRITE_32, x + 2)),
        "64 bits misaligned": lambda context, x: batch(context, operation(WRITE_64, x + 4)),
        "flags of a write": lambda context, x: batch(context, operation(WRITE_32, x, 0, 2)),
        "write without a barrier": lambda context, x: batch(context, operation(WRITE_64, x, 0, 1)),
        "flags of a wait": lambda context, x: batch(context, operation(WAIT_32, x, 0, 4)),
        "the second": lambda context, x: batch(context, operation(WRITE_32, x), operation(WRITE_32, x + 1)),
    }.items(),
    ids=lambda item: item[0],
)
def test_bad_parameters(graph, context, words, make_stream, make):
    parameters = make[1](context, words[0])
    assert status(add(graph, parameters)) == BAD
    node = ok(add(graph, batch(context)))
    assert status(driver.cuGraphBatchMemOpNodeSetParams(node, parameters)) == BAD
    if make[0] not in ("flags", "no context"):
        list_ = parameters.paramArray
        assert status(driver.cuStreamBatchMemOp(make_stream(), parameters.count, list_, 0)) == BAD


def test_the_most_operations(graph, context, words, launch):
    x, read = words
    ok(add(graph, batch(context, *(operation(WRITE_32, x + i % 4 * 4, i) for i in range(255)))))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    assert launch(executable) == GOOD and read() == [252, 253, 254, 251]
    ok(driver.cuGraphExecDestroy(executable))


def test_addresses_are_looked_at_by_the_launch(graph, context, launch, make_stream):
    stream, stray = make_stream(), operation(WRITE_32, 0x1000, 1)
    ok(add(graph, batch(context, stray)))
    assert status(driver.cuStreamBatchMemOp(stream, 1, [stray], 0)) == BAD
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    ok(driver.cuStreamBatchMemOp(stream, 1, [stray], 0))
    captured = ok(driver.cuStreamEndCapture(stream))
    for one in (graph, captured):
        executable = ok(driver.cuGraphInstantiate(one, 0))
        assert launch(executable) == BAD
        ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(captured))


CHANGES = {
    "value": (lambda x: [operation(WRITE_32, x, 8), operation(WAIT_32, x, 8, EQUAL)], GOOD, [8, 0, 0, 0]),
    "address": (lambda x: [operation(WRITE_32, x + 4, 8), operation(WAIT_32, x + 4, 8, EQUAL)], GOOD, [0, 8, 0, 0]),
    "condition": (lambda x: [operation(WRITE_32, x, 8), operation(WAIT_32, x, 0, NOR)], GOOD, [8, 0, 0, 0]),
    "fewer": (lambda x: [operation(WRITE_32, x, 8)], BAD, None),
    "more": (lambda x: [operation(WRITE_32, x, 8)] * 3, BAD, None),
    "none": (lambda x: [], BAD, None),
    "type": (lambda x: [operation(WRITE_64, x, 8), operation(WAIT_32, x, 8, EQUAL)], BAD, None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_an_executable_can_change(graph, context, words, launch, change):
    x, read = words
    make, expected, found = CHANGES[change]
    node = ok(add(graph, batch(context, operation(WRITE_32, x, 5), operation(WAIT_32, x, 5, EQUAL))))
    executable, other = (ok(driver.cuGraphInstantiate(graph, 0)) for _ in range(2))
    parameters = batch(context, *make(x))
    assert status(driver.cuGraphExecBatchMemOpNodeSetParams(executable, node, parameters)) == expected
    ok(driver.cuGraphBatchMemOpNodeSetParams(node, parameters))
    result, said = updated(other, graph)
    changed = driver.CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED
    assert (result.name, said.result) == (
        (GOOD, 0) if expected == GOOD else ("CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", changed)
    )
    for changed in (executable, other):
        assert launch(changed) == GOOD
        assert read() == (found or [5, 0, 0, 0])
        ok(driver.cuGraphExecDestroy(changed))


def test_a_clone_has_operations_of_its_own(context, words, launch):
    x, read = words
    graph = ok(driver.cuGraphCreate(0))
    ok(add(graph, batch(context, operation(WRITE_32, x, 1), operation(WRITE_32, x + 4, 2))))
    clone = ok(driver.cuGraphClone(graph))
    ok(driver.cuGraphDestroy(graph))
    executable = ok(driver.cuGraphInstantiate(clone, 0))
    assert launch(executable) == GOOD and read() == [1, 2, 0, 0]
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(clone))


def test_a_captured_batch_is_one_node(context, words, make_stream, launch):
    x, read = words
    stream = make_stream()
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    ok(driver.cuStreamBatchMemOp(stream, 2, [operation(WRITE_32, x, 1), operation(WRITE_64, x + 8, 2)], 0))
    ok(driver.cuStreamWriteValue32(stream, x + 4, 3, 0))
    graph = ok(driver.cuStreamEndCapture(stream))
    nodes, count = ok(driver.cuGraphGetNodes(graph, 8))
    assert [ok(driver.cuGraphNodeGetType(node)) for node in nodes[:count]] == [BATCH] * 2
    assert sorted(ok(driver.cuGraphBatchMemOpNodeGetParams(node)).count for node in nodes[:count]) == [1, 2]
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    assert launch(executable) == GOOD and read() == [1, 3, 2, 0]
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(graph))


@pytest.mark.cpu_only  # a GPU's driver has a text of its own
def test_a_picture_says_how_many(graph, context, words, tmp_path):
    ok(add(graph, batch(context, *[operation(WRITE_32, words[0])] * 3)))
    path = tmp_path / "graph.dot"
    ok(driver.cuGraphDebugDotPrint(graph, str(path).encode(), 1))
    assert "3 operations" in path.read_text()
