"""Names from documents of 0.x."""

from __future__ import annotations

import pytest

from cupola import graph
from cupola.graph import GraphCondition, GraphDefinition
from tests.cpu.driver.calls import driver_version
from tests.graph.helpers import run


@pytest.mark.parametrize(("older", "name"), [("GraphDef", "GraphDefinition"), ("Condition", "GraphCondition")])
def test_classes(older, name):
    with pytest.warns(DeprecationWarning, match=f"{older} is now {name}"):
        assert getattr(graph, older) is getattr(graph, name)
    with pytest.raises(AttributeError, match="no attribute"):
        graph.GraphOptions  # noqa: B018


def test_allocation_options(device):
    if driver_version() < 13000:
        pytest.skip("managed memory in graphs needs a driver for CUDA 13.0")
    with pytest.warns(DeprecationWarning, match="keyword arguments of allocate"):
        options = graph.GraphAllocOptions(memory_type="managed")
    definition = GraphDefinition()
    node = definition.allocate(16, options)
    assert node.memory_type == "managed"
    with pytest.raises(TypeError, match="give one of them"):
        definition.allocate(16, options, memory_type="managed")
    with pytest.warns(DeprecationWarning, match="AllocNode.options"):
        assert node.options.memory_type == "managed"


def test_methods(device, stream, kernels, memory, tmp_path):
    definition = GraphDefinition()
    event = device.create_event()
    with pytest.warns(DeprecationWarning, match="alloc is now allocate"):
        node = definition.alloc(16)
    with pytest.warns(DeprecationWarning, match="free is now deallocate"):
        node = node.free(node.dptr)
    with pytest.warns(DeprecationWarning, match="record_event is now record"):
        node = node.record_event(event)
    with pytest.warns(DeprecationWarning, match="wait_event is now wait"):
        node = node.wait_event(event)
    called = []
    node = node.callback(lambda: called.append(1))
    with pytest.warns(DeprecationWarning, match="callback_fn is now callback"):
        assert node.callback_fn is node.callback
    path = tmp_path / "graph.dot"
    with pytest.warns(DeprecationWarning, match="debug_print is now debug_dot_print"):
        definition.debug_print(str(path), options=graph.GraphDebugPrintOptions())
    assert path.exists()
    run(definition.instantiate(), stream)
    assert called == [1]


def test_builders(device, stream):
    child = device.create_graph_builder().begin_building().end_building()
    builder = device.create_graph_builder().begin_building()
    with pytest.warns(DeprecationWarning, match="add_child is now embed"):
        builder.add_child(child)
    with pytest.warns(DeprecationWarning, match="create_conditional_handle is now create_condition"):
        condition = builder.create_conditional_handle(1)
    assert isinstance(condition, GraphCondition)
    with pytest.warns(DeprecationWarning, match="if_cond is now if_then"):
        builder.if_cond(condition)
    builder.end_building().complete().close()
    with pytest.raises(AttributeError, match="GraphBuilder"):
        builder.alloc  # noqa: B018
