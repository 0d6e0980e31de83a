"""What graphs keep alive, and for how long."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from cupola import Program, launch
from cupola.graph import GraphDefinition
from tests import limits
from tests.graph.helpers import ONE, SOURCE, Resource, run, wait_until

PROGRAMS = Path(__file__).with_name("programs")


class Callback:
    """A callable that can be watched."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1


@pytest.fixture
def parts(device, stream):
    """Four pieces of four bytes, and the resource that they are given back to."""
    with device.allocate(1024, stream=stream) as whole:
        whole.fill(0, stream=stream)
        stream.sync()
        resource = Resource()
        yield resource.parts(whole, 4, 4, stream), resource


def test_a_definition_keeps_what_its_nodes_need(device, stream, memory, parts):
    buffers, resource = parts
    kernel = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin").get_kernel("add")
    event, callback = device.create_event(), Callback()
    gone = weakref.ref(callback)
    definition = GraphDefinition()
    node = definition.launch(ONE, kernel, buffers[0], 1).memset(buffers[1], 0, 4)
    node = node.memcpy(buffers[2], buffers[3].handle, 4, src_owner=buffers[3]).record(event)
    node = node.launch(ONE, kernel, memory[0], 1).callback(callback)
    for buffer in buffers:
        buffer.close()
    event.close()
    del kernel, callback, node, buffers, buffer
    gc.collect()
    graph = definition.instantiate()
    run(graph, stream)
    run(graph, stream)
    assert memory[1][0] == 2 and gone().calls == 2
    del definition
    gc.collect()
    run(graph, stream)
    assert memory[1][0] == 3 and resource.freed == []
    graph.close()
    assert wait_until(lambda: len(resource.freed) == 4 and gone() is None)


@pytest.mark.parametrize("how", ["destroy", "update", "update other", "drop"])
def test_nodes_let_go(device, stream, parts, how):
    buffers, resource = parts
    definition = GraphDefinition()
    first = definition.memcpy(buffers[0], buffers[1], 4)
    addresses = [buffer.handle for buffer in buffers]
    for buffer in buffers[:2]:
        buffer.close()
    del buffer
    expected = addresses[:2]
    if how == "destroy":
        first.destroy()
    elif how == "update":
        first.update(dst=buffers[2], src=buffers[3])
    elif how == "update other":
        first.update(src=buffers[3])
        expected = addresses[1:2]
    else:
        del first, definition
    assert wait_until(lambda: sorted(resource.freed) == expected)


def test_executables_keep_what_a_node_had(device, stream, kernels, parts):
    buffers, resource = parts
    definition = GraphDefinition()
    node = definition.memset(buffers[0], 0, 4)
    graph = definition.instantiate()
    node.update(dst=buffers[1])
    for buffer in buffers:
        buffer.close()
    del buffers, buffer
    gc.collect()
    assert len(resource.freed) == 2  # the two that nobody ever used
    run(graph, stream)
    graph.update(definition)  # takes over the second, lets go of the first
    assert wait_until(lambda: len(resource.freed) == 3)
    run(graph, stream)
    del definition, node
    gc.collect()
    run(graph, stream)
    assert len(resource.freed) == 3
    graph.close()
    assert wait_until(lambda: len(resource.freed) == 4)


def test_a_failed_update_changes_nothing(device, stream, parts):
    buffers, resource = parts
    definition, other = GraphDefinition(), GraphDefinition()
    definition.memset(buffers[0], 0, 4)
    other.memset(buffers[1], 0, 4).memset(buffers[1], 1, 4)
    graph = definition.instantiate()
    with pytest.raises(Exception, match="update failed"):
        graph.update(other)
    addresses = [buffer.handle for buffer in buffers]
    for buffer in buffers:
        buffer.close()
    del buffers, buffer, definition, other
    assert wait_until(lambda: sorted(resource.freed) == addresses[1:])
    run(graph, stream)
    graph.close()
    assert wait_until(lambda: sorted(resource.freed) == addresses)


def test_views_keep_what_they_were_given(device, stream, kernels, parts):
    """And let go of it when it was replaced and the launches that used it are over."""
    buffers, resource = parts
    definition = GraphDefinition()
    node = definition.memset(0 + buffers[0].handle, 0, 4)
    graph = definition.instantiate()
    for buffer in buffers[:3]:
        graph[node].update(dst=buffer, value=1, width=4)
        buffer.close()
        run(graph, stream)
    del buffer

    last = buffers[3]

    def replaced() -> bool:
        graph[node].update(dst=last, value=1, width=4)
        return len(resource.freed) == 3

    assert wait_until(replaced)
    last.close()
    del buffers
    run(graph, stream)
    assert len(resource.freed) == 3
    graph.close()
    assert wait_until(lambda: len(resource.freed) == 4)


def test_copies_have_references_of_their_own(device, stream, kernels, memory, parts):
    buffers, resource = parts
    callback = Callback()
    gone = weakref.ref(callback)
    child = GraphDefinition()
    child.memset(buffers[0], 0, 4).callback(callback)
    definition = GraphDefinition()
    definition.embed(child)
    builder = device.create_graph_builder().begin_building()
    builder.callback(callback)
    builder.end_building()
    around = device.create_graph_builder().begin_building()
    around.embed(builder)
    captured = around.end_building().complete()
    around.close()
    builder.close()
    buffers[0].close()
    del child, callback
    gc.collect()
    graph = definition.instantiate()
    del definition
    run(graph, stream)
    run(captured, stream)
    assert gone().calls == 2 and resource.freed == []
    graph.close()
    assert wait_until(lambda: len(resource.freed) == 1) and gone() is not None
    captured.close()
    assert wait_until(lambda: gone() is None)


def test_bodies_keep_what_they_need(device, stream, kernels, memory, parts):
    """Made node by node, and captured."""
    buffers, resource = parts
    callback = Callback()
    definition = GraphDefinition()
    body = definition.if_then(definition.create_condition(1)).then
    body.memset(buffers[0], 0, 4).launch(ONE, kernels[0], memory[0], 1)
    builder = device.create_graph_builder().begin_building()
    inner = builder.if_then(builder.create_condition(1)).begin_building()
    launch(inner, ONE, kernels[0], memory[0], 10)
    buffers[1].fill(0, stream=inner)
    inner.end_building()
    graphs = [definition.instantiate(), builder.end_building().complete()]
    builder.close()
    for buffer in buffers[:2]:
        buffer.close()
    del definition, body, inner, buffer, callback
    gc.collect()
    for graph in graphs:
        run(graph, stream)
    assert memory[1][0] == 11 and resource.freed == []
    for graph in graphs:
        graph.close()
    assert wait_until(lambda: len(resource.freed) == 2)


def test_a_launch_under_way_keeps_what_it_needs(device, stream, parts):
    """Closed while a callback blocks the launch."""
    import threading

    buffers, resource = parts
    started, go_on = threading.Event(), threading.Event()

    def block():
        started.set()
        limits.wait(go_on)

    definition = GraphDefinition()
    definition.callback(block).join().memset(buffers[0], 0, 4)
    other = GraphDefinition()
    other.callback(block).join().memset(buffers[1], 0, 4)
    graph = definition.instantiate()
    graph.launch(stream)
    assert limits.wait(started)
    graph.update(other)
    addresses = [buffer.handle for buffer in buffers]
    for buffer in buffers:
        buffer.close()
    del definition, other, buffers, buffer
    gc.collect()
    graph.close()
    assert sorted(resource.freed) == addresses[2:]
    go_on.set()
    stream.sync()
    assert wait_until(lambda: sorted(resource.freed) == addresses)


def test_a_failed_creation_keeps_nothing(device, kernels, parts):
    buffers, resource = parts
    definition = GraphDefinition()
    with pytest.raises(Exception, match="INVALID_VALUE"):
        definition.memset(buffers[0], 0, 0)
    with pytest.raises(TypeError):
        definition.launch(ONE, kernels[0], buffers[0])
    buffers[0].close()
    assert wait_until(lambda: len(resource.freed) == 1) and definition.nodes() == set()


def test_exit_with_live_graphs(run_python):
    source = """
from cupola import Device
from cupola.graph import GraphDefinition
Device(0).set_current()
stream = Device(0).create_stream()
definition = GraphDefinition()
graph = definition.callback(lambda: print("called", flush=True)).graph.instantiate()
graph.launch(stream)
stream.sync()
"""
    done = run_python(source)
    assert (done.returncode, done.stdout, done.stderr.count("Error")) == (0, "called\n", 0)


def test_definitions_go_with_their_context(run_python):
    done = run_python(PROGRAMS / "definition_after_a_reset.py")
    assert done.stdout == "CUDA_ERROR_CONTEXT_IS_DESTROYED\n" * 5 + "False False <GraphNode destroyed>\n", done.stderr
    assert done.returncode == 0, done.stderr
