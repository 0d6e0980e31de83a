"""Conditional nodes: decided by default values, and by what kernels set."""

from __future__ import annotations

import textwrap

import pytest

from cupola import CUDAError, LaunchConfig, Program, launch
from cupola.graph import (
    ConditionalNode,
    GraphCompleteOptions,
    GraphCondition,
    GraphDefinition,
    IfElseNode,
    IfNode,
    SwitchNode,
    WhileNode,
)
from cupola.typing import GraphConditionalType
from tests.graph.helpers import ONE, run

# --- captured ---------------------------------------------------------------------------------------------


def test_conditions_are_refused_early(stream):
    builder = stream.create_graph_builder()
    with pytest.raises(RuntimeError, match="building"):
        builder.create_condition()
    for method in (builder.if_then, builder.if_else, builder.while_loop, lambda c: builder.switch(c, 2)):
        with pytest.raises(TypeError, match="GraphCondition"):
            method(5)


@pytest.mark.parametrize(("value", "expected"), [(0, 10), (1, 201), (2, 3001), (7, 1)])
def test_bodies_are_chosen_by_condition(device, stream, kernels, memory, value, expected):
    add, _ = kernels
    buffer, result = memory

    def record(body, number):
        launch(body.begin_building(), ONE, add, buffer, number)
        body.end_building()

    builder = device.create_graph_builder().begin_building()
    record(builder.if_then(builder.create_condition(default_value=value)), 1)
    bodies = builder.switch(builder.create_condition(default_value=value), 3)
    for number, body in enumerate(bodies):
        record(body, (9, 200, 3000)[number])
    then, otherwise = builder.if_else(builder.create_condition(default_value=value))
    then.begin_building().end_building()  # an empty body is fine
    record(otherwise, 1)
    graph = builder.end_building().complete()
    run(graph, stream)
    assert result[0] == expected


def test_loops_and_branches_by_condition(device, stream, kernels, setters, memory):
    buffer, value = memory
    below, add = setters[0], kernels[0]
    builder = device.create_graph_builder().begin_building()
    again = builder.create_condition(default_value=1)
    body = builder.while_loop(again).begin_building()
    launch(body, ONE, add, buffer, 3)
    launch(body, ONE, below, buffer, 10, again)
    body.end_building()
    choice = builder.create_condition(default_value=0)
    launch(builder, ONE, below, buffer, 100, choice)
    then, otherwise = builder.if_else(choice)
    launch(then.begin_building(), ONE, add, buffer, 1000)
    then.end_building()
    launch(otherwise.begin_building(), ONE, add, buffer, 5000)
    otherwise.end_building()
    graph = builder.end_building().complete()
    run(graph, stream)
    assert value[0] == 1012
    assert repr(again) == f"<GraphCondition handle={again.handle:#x}>" and again != choice


def test_a_body_of_a_branch(stream, device, kernels, memory):
    """The bodies that a branch makes stay usable when it is joined, and belong to the whole graph."""
    add, _ = kernels
    buffer, value = memory
    builder = stream.create_graph_builder().begin_building()
    main, branch = builder.split(2)
    body = branch.if_then(branch.create_condition(1))
    builder = type(builder).join(main, branch)
    launch(body.begin_building(), ONE, add, buffer, 6)
    body.end_building()
    run(builder.end_building().complete(), stream)
    assert value[0] == 6


def test_an_unfinished_body_is_an_error(stream, kernels, memory):
    builder = stream.create_graph_builder().begin_building()
    body = builder.if_then(builder.create_condition(1)).begin_building()
    launch(body, ONE, kernels[0], memory[0], 1)
    builder.end_building()
    with pytest.raises(RuntimeError, match="conditional body has not finished"):
        builder.complete()
    body.end_building()
    run(builder.complete(), stream)
    assert memory[1][0] == 1


# --- made node by node ------------------------------------------------------------------------------------


def test_classes_and_properties(device):
    definition = GraphDefinition()
    conditions = [definition.create_condition(value) for value in (0, 1, None, 2)]
    nodes = [
        definition.if_then(conditions[0]),
        definition.if_else(conditions[1]),
        definition.while_loop(conditions[2]),
        definition.switch(conditions[3], 4),
    ]
    assert [type(node) for node in nodes] == [IfNode, IfElseNode, WhileNode, SwitchNode]
    assert [node.condition for node in nodes] == conditions
    assert [len(node.branches) for node in nodes] == [1, 2, 1, 4]
    kinds = [GraphConditionalType.IF, GraphConditionalType.IF, GraphConditionalType.WHILE, GraphConditionalType.SWITCH]
    assert [node.cond_type for node in nodes] == kinds
    assert nodes[0].then == nodes[0].branches[0] and nodes[2].body == nodes[2].branches[0]
    assert (nodes[1].then, nodes[1].else_) == nodes[1].branches
    assert len({body for node in nodes for body in node.branches} | {definition}) == 9
    for node in nodes:
        assert isinstance(node, ConditionalNode)
        assert (
            repr(node) == f"<{type(node).__name__} handle={int(node.handle):#x} condition={node.condition.handle:#x}>"
        )
    # Forgotten by Python and found again.
    handles = {int(node.handle): type(node) for node in nodes}
    del nodes, node
    assert {int(node.handle): type(node) for node in definition.nodes()} == handles
    assert {node.condition for node in definition.nodes()} == set(conditions)


@pytest.mark.parametrize(("start", "expected"), [(0, 12), (5, 11), (20, 1020), (21, 5021)])
def test_loops_and_branches_by_kernels(device, stream, kernels, setters, memory, start, expected):
    """while (x < 10) x += 3; then by x % 2, but only up to 14."""
    (add, _), (below, choose) = kernels, setters
    buffer, value = memory
    definition = GraphDefinition()
    again = definition.create_condition()
    first = definition.launch(ONE, below, buffer, 10, again)
    loop = first.while_loop(again)
    loop.body.launch(ONE, add, buffer, 3).launch(LaunchConfig(grid=1, block=32), below, buffer, 10, again)
    small = definition.create_condition()
    check = loop.launch(ONE, below, buffer, 15, small)
    inner = check.if_else(small)
    odd = definition.create_condition()
    decide = inner.else_.launch(ONE, choose, buffer, 2, odd)
    nested = decide.switch(odd, 2)
    nested.branches[0].launch(ONE, add, buffer, 1000)
    nested.branches[1].launch(ONE, add, buffer, 5000)
    graph = definition.instantiate()
    for _ in range(3):
        value[0] = start
        run(graph, stream)
        assert value[0] == expected


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_default_value_comes_back_at_every_launch(device, stream, kernels, setters, memory, when):
    """A kernel makes the condition false; the next launch begins with true again."""
    (add, _), (below, _) = kernels, setters
    buffer, value = memory
    definition = GraphDefinition()
    condition = definition.create_condition(1)
    if when == "before":
        definition.launch(ONE, below, buffer, 0, condition).if_then(condition).then.launch(ONE, add, buffer, 1)
    else:
        node = definition.if_then(condition)
        node.then.launch(ONE, add, buffer, 1)
        node.launch(ONE, below, buffer, 0, condition)
    graph = definition.instantiate()
    for _ in range(3):
        run(graph, stream)
    assert value[0] == (0 if when == "before" else 3)


def test_errors(device):
    definition, other = GraphDefinition(), GraphDefinition()
    condition = definition.create_condition(1)
    for make in (other.if_then, other.if_else, other.while_loop, lambda c: other.switch(c, 2)):
        with pytest.raises(TypeError, match="GraphCondition"):
            make(5)
        with pytest.raises(CUDAError):  # of another graph
            make(condition)
    with pytest.raises(CUDAError):
        definition.switch(condition, 0)
    assert definition.nodes() == other.nodes() == set()
    with pytest.raises(RuntimeError, match="no conditional node uses"):
        definition.instantiate()
    definition.if_then(condition)
    definition.instantiate(GraphCompleteOptions()).close()
    assert isinstance(condition, GraphCondition) and condition == condition and hash(condition) == hash(condition)


RECURSIVE = r"""
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
__device__ __noinline__ void descend(int depth, unsigned long long condition) {
    if (depth == 0) cudaGraphSetConditional(condition, 2);
    else descend(depth - 1, condition);
}
extern "C" __global__ void set(int* depth, unsigned long long condition) { descend(*depth, condition); }
"""


@pytest.mark.cpu_only  # the stack of a GPU is another matter
def test_setting_inside_a_called_function(device, stream, kernels, memory):
    buffer, value = memory
    kernel = Program(RECURSIVE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin").get_kernel("set")
    definition = GraphDefinition()
    condition = definition.create_condition(0)
    node = definition.launch(ONE, kernel, buffer, condition).switch(condition, 3)
    for number, branch in enumerate(node.branches):
        branch.launch(ONE, kernels[0], buffer, 10 * number)
    value[0] = 5
    run(definition.instantiate(), stream)
    assert value[0] == 25


@pytest.mark.cpu_only
def test_a_wrong_handle_is_a_fault(run_python):
    source = """
        from cupola import CUDAError, Device, Program, launch
        from tests.graph.helpers import ONE, SETTERS

        device = Device(0)
        device.set_current()
        kernel = Program(SETTERS, "c++", {"arch": "sm_90"}).compile("cubin").get_kernel("below")
        stream = device.create_stream()
        buffer = device.allocate(4, stream=stream)
        launch(stream, ONE, kernel, buffer, 1, 0x1234)
        try:
            stream.sync()
        except CUDAError as error:
            print(error)
        """
    done = run_python(textwrap.dedent(source))
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout and "0x1234" in done.stdout
