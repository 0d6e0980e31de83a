"""Changing nodes of definitions, whole executables, and single nodes of executables."""

from __future__ import annotations

import ctypes
import pickle

import numpy as np
import pytest

from cupola import CUDAError, Device, LaunchConfig, PinnedMemoryResource
from cupola.graph import (
    ExecutableChildGraphNode,
    ExecutableEventRecordNode,
    ExecutableEventWaitNode,
    ExecutableGraphNode,
    ExecutableHostCallbackNode,
    ExecutableKernelNode,
    ExecutableMemcpyNode,
    ExecutableMemsetNode,
    GraphDefinition,
)
from tests.graph.helpers import ONE, run


@pytest.fixture
def numbers(device, stream):
    """Eight pinned int32, as (buffer, array)."""
    with PinnedMemoryResource().allocate(32, stream=stream) as buffer:
        array = np.from_dlpack(buffer).view(np.int32)
        stream.sync()
        array[:] = 0
        yield buffer, array


# --- nodes of definitions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda k: {"args": (5,)}, 15),
        (lambda k: {"kernel": k[1], "args": (5,)}, 50),
        (lambda k: {"config": LaunchConfig(grid=1, block=(1, 1, 1), shmem_size=64)}, 11),
        (lambda k: {"config": ONE, "kernel": k[1], "args": (2,)}, 20),
        (lambda k: {}, 11),
    ],
)
def test_kernel_nodes(stream, kernels, memory, change, expected):
    buffer, value = memory
    definition = GraphDefinition()
    node = definition.launch(ONE, kernels[0], buffer, 1)
    before = definition.instantiate()
    given = change(kernels)
    if "args" in given:
        given["args"] = (buffer, *given["args"])
    assert node.update(**given) is None
    after = definition.instantiate()
    assert node.kernel == given.get("kernel", kernels[0]) and node.config == given.get("config", ONE)
    value[0] = 10
    run(after, stream)
    assert value[0] == expected
    value[0] = 10
    run(before, stream)
    assert value[0] == 11
    before.update(definition)
    value[0] = 10
    run(before, stream)
    assert value[0] == expected


def test_what_kernel_nodes_refuse(device, kernels, memory):
    definition = GraphDefinition()
    node = definition.launch(ONE, kernels[0], memory[0], 1)
    with pytest.raises(ValueError, match="needs args"):
        node.update(kernel=kernels[1])
    with pytest.raises(TypeError, match="takes 2 arguments"):
        node.update(args=(1,))
    with pytest.raises(TypeError, match="LaunchConfig"):
        node.update(config=5)
    with pytest.raises(CUDAError):
        node.update(config=LaunchConfig(grid=1, block=(1024, 2)))
    assert node.config == ONE and node.kernel == kernels[0]


def test_memset_nodes(stream, numbers):
    buffer, array = numbers
    definition = GraphDefinition()
    node = definition.memset(buffer, b"\x01\x02\x03\x04", 2)
    node.update(value=b"\x05\0\0\0")
    run(definition.instantiate(), stream)
    assert array.tolist() == [5, 5, 0, 0, 0, 0, 0, 0]
    node.update(dst=buffer.handle + 16, width=3, dst_owner=buffer)
    assert (node.dptr, node.value, node.width) == (buffer.handle + 16, 5, 3)
    run(definition.instantiate(), stream)
    assert array.tolist() == [5, 5, 0, 0, 5, 5, 5, 0]
    with pytest.raises(ValueError, match="dst_owner needs dst"):
        node.update(dst_owner=buffer)
    with pytest.raises(ValueError, match="1, 2, or 4"):
        node.update(value=b"")
    assert node.value == 5


def test_memcpy_nodes(stream, numbers):
    buffer, array = numbers
    array[:4] = 1, 2, 3, 4
    definition = GraphDefinition()
    node = definition.memcpy(buffer.handle + 16, buffer, 4)
    node.update(size=8)
    node.update(src=buffer.handle + 8, src_owner=buffer)
    assert (node.dst, node.src, node.size) == (buffer.handle + 16, buffer.handle + 8, 8)
    run(definition.instantiate(), stream)
    assert array.tolist() == [1, 2, 3, 4, 3, 4, 0, 0]
    for name in ("dst", "src"):
        with pytest.raises(ValueError, match=f"{name}_owner needs {name}"):
            node.update(**{f"{name}_owner": buffer})
    with pytest.raises(CUDAError):
        node.update(size=0)
    assert node.size == 8


def test_event_callback_and_child_nodes(device, stream, kernels, memory):
    buffer, value = memory
    seen: list[object] = []
    definition = GraphDefinition()
    events = [device.create_event() for _ in range(2)]
    record = definition.record(events[0])
    wait = record.wait(events[0])
    callback = wait.callback(lambda: seen.append("first"))
    child = GraphDefinition()
    child.launch(ONE, kernels[0], buffer, 1)
    node = callback.embed(child)
    before = node.child_graph
    record.update(events[1])
    wait.update(events[1])
    callback.update(lambda: seen.append("second"))
    child.launch(ONE, kernels[0], buffer, 10)
    node.update(child)
    assert record.event == events[1] == wait.event
    assert not before.is_valid and node.child_graph.is_valid and len(node.child_graph.nodes()) == 2
    run(definition.instantiate(), stream)
    assert seen == ["second"] and value[0] == 11
    with pytest.raises(TypeError, match="Event"):
        record.update(None)
    with pytest.raises(TypeError, match="callable"):
        callback.update(5)
    with pytest.raises(TypeError, match="GraphDefinition"):
        node.update(5)
    for part in (definition, node.child_graph):
        with pytest.raises(ValueError, match="independent"):
            node.update(part)
    for other in (definition.empty(), definition.if_then(definition.create_condition(1))):
        assert not hasattr(other, "update")


# --- whole executables ------------------------------------------------------------------------------------


def chain(kernels, *work):
    definition = GraphDefinition()
    node = definition.empty()
    for kernel, *arguments in work:
        node = node.launch(ONE, kernels[kernel], *arguments)
    return definition, node


def test_a_whole_graph(stream, kernels, memory):
    buffer, value = memory
    graph = chain(kernels, (0, buffer, 1), (1, buffer, 2))[0].instantiate()
    graph.update(chain(kernels, (0, buffer, 5), (1, buffer, 3))[0])
    run(graph, stream)
    assert value[0] == 15


@pytest.mark.parametrize("difference", ["count", "kind", "edges"])
def test_graphs_of_another_shape(stream, kernels, memory, difference):
    buffer, value = memory
    graph = chain(kernels, (0, buffer, 1), (0, buffer, 2))[0].instantiate()
    other, last = chain(kernels, (0, buffer, 10))
    node = None
    if difference == "kind":
        node = last.memset(buffer, 0, 4)
    elif difference == "edges":
        node = other.launch(ONE, kernels[0], buffer, 20)
    with pytest.raises(CUDAError, match=r"Graph update failed: .*\(CU_GRAPH_EXEC_UPDATE_ERROR_\w+\)") as caught:
        graph.update(other)
    if node is not None:  # with another number of nodes the driver names none
        assert repr(node) in str(caught.value) or "Node handle=" in str(caught.value)
    run(graph, stream)
    assert value[0] == 3


def test_what_an_update_takes(device, kernels, memory):
    graph = chain(kernels, (0, memory[0], 1))[0].instantiate()
    for wrong in (None, 5, graph):
        with pytest.raises(TypeError, match="GraphBuilder or GraphDefinition"):
            graph.update(wrong)
    definition, node = chain(kernels)
    child = definition.embed(GraphDefinition())
    view = child.child_graph
    child.destroy()
    with pytest.raises(RuntimeError, match="no longer valid"):
        graph.update(view)


# --- nodes of executables ---------------------------------------------------------------------------------


def test_views(device, stream, kernels, numbers):
    """One of each: changed in the executable, unchanged in the definition and in another executable."""
    (add, times), (buffer, array) = kernels, numbers
    base = buffer.handle
    seen: list[str] = []
    events = [device.create_event() for _ in range(2)]
    child = GraphDefinition()
    child.launch(ONE, add, base + 20, 1)
    definition = GraphDefinition()
    kernel = definition.launch(ONE, add, buffer, 1)
    fill = definition.memset(base + 4, 1, 4)
    copy = definition.join(kernel, fill).memcpy(base + 8, base, 4)
    record = definition.record(events[0])
    wait = record.wait(events[0])
    callback = wait.callback(lambda: seen.append("old"))
    inner = definition.embed(child)
    graph, other = definition.instantiate(), definition.instantiate()
    views = [graph[node] for node in (kernel, fill, copy, record, wait, callback, inner)]
    assert [type(view) for view in views] == [
        ExecutableKernelNode,
        ExecutableMemsetNode,
        ExecutableMemcpyNode,
        ExecutableEventRecordNode,
        ExecutableEventWaitNode,
        ExecutableHostCallbackNode,
        ExecutableChildGraphNode,
    ]
    kernel_view, fill_view, copy_view, record_view, wait_view, callback_view, child_view = views
    kernel_view.update(config=ONE, kernel=times, args=(buffer, 7))
    fill_view.update(dst=base + 4, value=2, width=4)
    copy_view.update(dst=base + 12, src=base, size=4)
    record_view.update(events[1])
    wait_view.update(events[1])
    callback_view.update(lambda: seen.append("new"))
    replacement = GraphDefinition()
    replacement.launch(ONE, add, base + 20, 100)
    child_view.update(replacement)
    array[0] = 3
    run(graph, stream)
    assert array.tolist() == [21, 0x02020202, 0, 21, 0, 100, 0, 0] and seen == ["new"]
    run(other, stream)
    assert array.tolist() == [22, 0x01010101, 22, 21, 0, 101, 0, 0] and seen == ["new", "old"]
    assert kernel.kernel == add and fill.value == 1 and record.event == events[0]
    graph.update(definition)  # overwrites what the views have changed
    run(graph, stream)
    assert array.tolist() == [23, 0x01010101, 23, 21, 0, 102, 0, 0] and seen == ["new", "old", "old"]
    assert repr(kernel_view) == f"<ExecutableKernelNode graph={int(graph.handle):#x} node={int(kernel.handle):#x}>"
    for view in views:
        assert isinstance(view, ExecutableGraphNode)
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(view)
        with pytest.raises(RuntimeError, match=r"graph\[node\]"):
            type(view)()
        assert hasattr(view, "enable") == (view in views[:3])


def test_switching_nodes_off(stream, kernels, numbers):
    (add, _), (buffer, array) = kernels, numbers
    definition = GraphDefinition()
    nodes = [
        definition.launch(ONE, add, buffer, 1),
        definition.memset(buffer.handle + 4, 1, 1),
        definition.memcpy(buffer.handle + 12, buffer.handle + 8, 4),
    ]
    graph = definition.instantiate()
    array[2] = 9
    for node in nodes:
        assert graph[node].is_enabled
        graph[node].disable()
        assert not graph[node].is_enabled
    graph[nodes[0]].update(config=ONE, kernel=add, args=(buffer, 5))  # kept for later
    run(graph, stream)
    assert array.tolist() == [0, 0, 9, 0, 0, 0, 0, 0]
    for node in nodes:
        graph[node].enable()
    run(graph, stream)
    assert array.tolist() == [5, 1, 9, 9, 0, 0, 0, 0]


def test_what_views_refuse(device, stream, kernels, memory):
    buffer, _ = memory
    definition = GraphDefinition()
    kernel = definition.launch(ONE, kernels[0], buffer, 1)
    others = [definition.empty(), definition.if_then(definition.create_condition(1))]
    graph = definition.instantiate()
    for node in others:
        with pytest.raises(TypeError, match=type(node).__name__):
            graph[node]
    for wrong in (None, 0, graph):
        with pytest.raises(TypeError, match="GraphNode"):
            graph[wrong]
    later = definition.launch(ONE, kernels[0], buffer, 1)
    view = graph[later]
    with pytest.raises(CUDAError):
        view.update(config=ONE, kernel=kernels[0], args=(buffer, 1))
    with pytest.raises(CUDAError):
        view.disable()
    later.destroy()
    with pytest.raises(RuntimeError, match="source graph node is no longer valid"):
        view.disable()
    with pytest.raises(RuntimeError, match="source graph node is no longer valid"):
        graph[later]
    view = graph[kernel]
    with pytest.raises(TypeError):
        view.update(config=ONE)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        view.update(config=ONE, kernel=kernels[0], args=())
    graph.close()
    for use in (
        view.enable,
        lambda: view.is_enabled,
        lambda: graph[kernel],
        lambda: view.update(config=ONE, kernel=kernels[0], args=(buffer, 1)),
    ):
        with pytest.raises(RuntimeError, match="Graph has been closed"):
            use()


def test_callbacks_of_views_with_data(stream):
    seen: list[int] = []
    read = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
        lambda address: seen.append(ctypes.c_uint8.from_address(address).value)
    )
    definition = GraphDefinition()
    Device(0)
    node = definition.callback(read, user_data=b"\x01")
    graph = definition.instantiate()
    graph[node].update(read, user_data=b"\x02")
    run(graph, stream)
    node.update(read, user_data=b"\x03")
    run(definition.instantiate(), stream)
    assert seen == [2, 3]
