"""Capturing work into graphs, and running them."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

from cupola import (
    Buffer,
    CUDAError,
    DeviceMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    Program,
    launch,
)
from cupola.graph import (
    Graph,
    GraphBuilder,
    GraphCompleteOptions,
    GraphCondition,
    GraphDebugPrintOptions,
    GraphDefinition,
)
from tests.graph.helpers import ONE, SOURCE, run
from tests.limits import eventually

# --- building and launching -------------------------------------------------------------------------------


def test_a_graph_is_passed_as_a_number(kernels, stream):
    add, _ = kernels
    definition = GraphDefinition()
    definition.join()
    graph = definition.instantiate()
    for wrong in (graph, graph.handle):
        with pytest.raises(TypeError, match=r"int\(graph\.handle\)"):
            launch(stream, ONE, add, wrong, 1)
    graph.close()


def test_a_graph_runs_as_often_as_it_is_launched(stream, kernels, memory):
    add, times = kernels
    buffer, value = memory
    builder = stream.create_graph_builder()
    assert builder.begin_building() is builder and builder.is_building
    launch(builder, ONE, add, buffer, 1)
    launch(builder, ONE, times, buffer, 10)
    assert builder.end_building() is builder and not builder.is_building
    graph = builder.complete()
    assert value[0] == 0  # recorded, not run
    graph.upload(stream)
    run(graph, stream)
    assert value[0] == 10
    graph.launch(stream)
    run(graph, stream)
    assert value[0] == 1110
    again = builder.complete()
    builder.close()
    graph.close()
    run(again, stream)
    assert value[0] == 11110


def test_copies_and_fills_are_recorded(device, stream, memory):
    buffer, value = memory
    scratch = device.allocate(4, stream=stream)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    scratch.fill(b"\x01\x02\x03\x04", stream=builder)
    scratch.copy_to(buffer, stream=builder)
    graph = builder.end_building().complete()
    assert value[0] == 0
    run(graph, stream)
    assert value[0] == int.from_bytes(b"\x01\x02\x03\x04", sys.byteorder)


def test_branches(stream, kernels, memory, device):
    add, times = kernels
    buffer, value = memory
    with PinnedMemoryResource().allocate(12, stream=stream) as more:
        others = np.from_dlpack(more).view(np.int32)
        stream.sync()
        others[:] = 0
        builder = stream.create_graph_builder().begin_building()
        launch(builder, ONE, add, buffer, 3)
        branches = builder.split(4)
        assert branches[0] is builder and [b.is_join_required for b in branches] == [False, True, True, True]
        for number, branch in enumerate(branches[1:]):
            assert branch.is_building
            launch(branch, ONE, add, more.handle + 4 * number, 1 + number)
        launch(branches[0], ONE, times, buffer, 2)
        with pytest.raises(RuntimeError, match="join"):
            branches[1].end_building()
        assert GraphBuilder.join(*reversed(branches)) is builder
        assert [b.is_closed for b in branches] == [False, True, True, True]
        launch(builder, ONE, times, buffer, 5)
        graph = builder.end_building().complete()
        run(graph, stream)
        assert value[0] == 30 and others.tolist() == [1, 2, 3]


def test_an_unjoined_branch_is_an_error(stream, kernels, memory):
    builder = stream.create_graph_builder().begin_building()
    _, branch = builder.split(2)
    launch(branch, ONE, kernels[0], memory[0], 1)
    with pytest.raises(CUDAError, match="UNJOINED"):
        builder.end_building()
    branch.close()
    # The capture is over one way or the other: what is left closes quietly, and the stream is good for another.
    if builder.is_building:
        with pytest.raises(CUDAError):
            builder.close()
    else:
        builder.close()
    with pytest.raises(RuntimeError, match="closed"):
        builder.complete()
    builder = stream.create_graph_builder().begin_building()
    launch(builder, ONE, kernels[0], memory[0], 1)
    run(builder.end_building().complete(), stream)
    assert memory[1][0] == 1


def test_a_body_goes_with_the_builder_around_it(stream, device, kernels):
    builder = stream.create_graph_builder().begin_building()
    condition = builder.create_condition(1)
    outer = builder.if_then(condition).begin_building()
    inner = outer.if_then(outer.create_condition(1))
    builder.close()
    for body in (outer, inner):
        for use in (
            body.begin_building,
            body.end_building,
            body.complete,
            body._finished,
            lambda body=body: body.create_condition(1),
        ):
            with pytest.raises((RuntimeError, ValueError)):
                use()
    with pytest.raises(RuntimeError, match="the builder of this body's graph has been closed"):
        inner.begin_building()
    inner.close()
    del outer, inner
    gc.collect()
    device.sync()


def test_a_condition_belongs_to_the_context_of_the_builder(stream, kernels, memory):
    """Made on a thread that has no current context."""
    builder = stream.create_graph_builder().begin_building()
    made = []
    thread = threading.Thread(target=lambda: made.append(builder.create_condition(1)))
    thread.start()
    thread.join()
    body = builder.if_then(made[0]).begin_building()
    launch(body, ONE, kernels[0], memory[0], 4)
    body.end_building()
    run(builder.end_building().complete(), stream)
    assert memory[1][0] == 4


def test_embedding(stream, device, kernels, memory):
    add, times = kernels
    buffer, value = memory
    child = device.create_graph_builder().begin_building()
    launch(child, ONE, add, buffer, 7)
    with pytest.raises(ValueError, match="not finished"):
        stream.create_graph_builder().begin_building().embed(child)
    child.end_building()
    builder = device.create_graph_builder()
    with pytest.raises(ValueError, match="not building"):
        builder.embed(child)
    with pytest.raises(TypeError):
        builder.embed(None)
    builder.begin_building()
    builder.embed(child)
    launch(builder, ONE, times, buffer, 2)
    builder.embed(child)
    graph = builder.end_building().complete()
    child.close()
    with pytest.raises(RuntimeError, match="closed"):
        device.create_graph_builder().embed(child)
    run(graph, stream)
    assert value[0] == 21


def test_update(stream, device, kernels, memory):
    add, times = kernels
    buffer, value = memory

    def record(*work):
        builder = device.create_graph_builder().begin_building()
        for kernel, number in work:
            launch(builder, ONE, kernel, buffer, number)
        return builder.end_building()

    graph = record((add, 1), (times, 2)).complete()
    assert graph.update(record((add, 5), (times, 3))) is None
    run(graph, stream)
    assert value[0] == 15
    with pytest.raises(CUDAError, match="Graph update failed: .*CU_GRAPH_EXEC_UPDATE_ERROR"):
        graph.update(record((add, 5)))
    run(graph, stream)
    assert value[0] == 60
    with pytest.raises(ValueError, match="not finished"):
        graph.update(device.create_graph_builder())
    closed = record((add, 5))
    closed.close()
    with pytest.raises(RuntimeError, match="closed"):
        graph.update(closed)
    with pytest.raises(TypeError):
        graph.update(graph)


def test_options(stream, device, kernels, memory):
    builder = device.create_graph_builder().begin_building()
    launch(builder, ONE, kernels[0], memory[0], 1)
    builder.end_building()
    options = GraphCompleteOptions(auto_free_on_launch=True, upload_stream=stream, use_node_priority=True)
    run(builder.complete(options), stream)
    assert memory[1][0] == 1
    assert options == GraphCompleteOptions(True, stream, False, True)
    with pytest.raises(AttributeError):
        builder.complete({"upload_stream": stream})
    with pytest.raises(TypeError):
        hash(options)


def test_dot_files(tmp_path, device, kernels, memory):
    builder = device.create_graph_builder().begin_building()
    launch(builder, ONE, kernels[0], memory[0], 1)
    path = str(tmp_path / "graph.dot")
    with pytest.raises(RuntimeError, match="not finished"):
        builder.debug_dot_print(path)
    builder.end_building()
    builder.debug_dot_print(path)
    builder.debug_dot_print(path, GraphDebugPrintOptions(verbose=True, handles=True))
    with open(path, encoding="utf-8") as file:
        assert "digraph" in file.read()
    with pytest.raises(TypeError):
        builder.debug_dot_print(path, {"verbose": True})
    with pytest.raises(TypeError):
        builder.debug_dot_print(tmp_path / "graph.dot")
    with pytest.raises(CUDAError):
        builder.debug_dot_print(str(tmp_path / "no" / "such" / "folder.dot"))
    assert GraphDebugPrintOptions(handles=True, verbose=True)._flags() == 1 | 1 << 10
    assert GraphDebugPrintOptions(conditional_node_params=True)._flags() == 1 << 15


# --- states -----------------------------------------------------------------------------------------------


def test_classes_are_made_by_factories():
    with pytest.raises(NotImplementedError, match="Device.create_graph_builder.*Stream.create_graph_builder"):
        GraphBuilder()
    with pytest.raises(RuntimeError, match="complete"):
        Graph()
    with pytest.raises(RuntimeError, match="create_condition"):
        GraphCondition()


def test_states(stream):
    builder = stream.create_graph_builder()
    assert not builder.is_building and not builder.is_join_required
    assert builder.__cuda_stream__() == (0, int(stream.handle))
    for use in (builder.end_building, lambda: builder.split(2), lambda: builder.callback(print)):
        with pytest.raises(RuntimeError, match="not building|is building"):
            use()
    for use in (builder.complete, lambda: builder.debug_dot_print("x")):
        with pytest.raises(RuntimeError, match="not finished building"):
            use()
    for wrong in (None, "", "Relaxed"):
        with pytest.raises(ValueError, match="Unsupported build mode"):
            builder.begin_building(wrong)
    with pytest.raises(TypeError, match="mode must be a str, got int"):
        builder.begin_building(1)
    with pytest.raises(ValueError, match="at least 2"):
        builder.split(1)
    builder.begin_building("global")
    with pytest.raises(RuntimeError, match="already building"):
        builder.begin_building("nonsense")
    with pytest.raises(RuntimeError, match="not finished building"):
        builder.complete()
    builder.end_building()
    with pytest.raises(RuntimeError, match="cannot resume"):
        builder.begin_building()
    builder.close()
    builder.close()
    assert builder.is_closed and not builder.is_join_required
    for use in (
        lambda: builder.stream,
        builder.begin_building,
        builder.end_building,
        builder.complete,
        builder.__cuda_stream__,
        lambda: builder.is_building,
        lambda: builder.split(2),
        lambda: builder.callback(print),
        lambda: builder.embed(builder),
    ):
        with pytest.raises(RuntimeError, match="GraphBuilder has been closed"):
            use()
    stream.sync()  # not the builder's to close


def test_join_refuses(stream):
    builder = stream.create_graph_builder().begin_building()
    with pytest.raises(ValueError, match="two builders"):
        GraphBuilder.join(builder)
    with pytest.raises(TypeError, match="Stream"):
        GraphBuilder.join(builder, stream)
    builder.close()


def test_closing_drops_a_recording(stream, kernels, memory):
    builder = stream.create_graph_builder().begin_building("thread_local")
    launch(builder, ONE, kernels[0], memory[0], 1)
    builder.close()
    stream.sync()
    assert memory[1][0] == 0
    builder = stream.create_graph_builder().begin_building()
    del builder
    gc.collect()
    stream.sync()
    launch(stream, ONE, kernels[0], memory[0], 1)
    stream.sync()
    assert memory[1][0] == 1


def test_a_builder_outlives_its_stream_object(device, kernels, memory):
    stream = device.create_stream()
    builder = stream.create_graph_builder().begin_building()
    assert builder.stream is stream
    stream.close()
    assert builder.stream is builder.stream and not builder.stream.is_closed
    launch(builder, ONE, kernels[0], memory[0], 4)
    graph = builder.end_building().complete()
    run(graph, builder.stream)
    assert memory[1][0] == 4


def test_a_closed_graph(stream, kernels, memory):
    builder = stream.create_graph_builder().begin_building()
    launch(builder, ONE, kernels[0], memory[0], 1)
    graph = builder.end_building().complete()
    assert int(graph.handle) != 0 and not graph.is_closed
    for wrong in (None, 5):
        with pytest.raises(TypeError, match=r"[Ss]tream"):
            graph.launch(wrong)
    graph.close()
    graph.close()
    assert graph.is_closed and int(graph.handle) == 0
    for use in (lambda: graph.launch(stream), lambda: graph.upload(stream), lambda: graph.update(builder)):
        with pytest.raises(RuntimeError, match="Graph has been closed"):
            use()
    for value in (graph, builder):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(value)


def test_pools_do_not_allocate_into_graphs(device, stream):
    builder = stream.create_graph_builder().begin_building()
    with pytest.raises(RuntimeError, match="GraphMemoryResource"):
        DeviceMemoryResource(device).allocate(16, stream=builder)
    assert builder.is_building
    builder.close()


# --- callbacks --------------------------------------------------------------------------------------------


def test_python_callbacks(stream, kernels, memory):
    buffer, value = memory
    seen: list[tuple[int, int]] = []
    builder = stream.create_graph_builder().begin_building()
    launch(builder, ONE, kernels[0], buffer, 1)
    builder.callback(lambda: seen.append((int(value[0]), threading.get_ident())))
    launch(builder, ONE, kernels[0], buffer, 1)
    graph = builder.end_building().complete()
    builder.close()
    gc.collect()
    run(graph, stream)
    run(graph, stream)
    assert [number for number, _ in seen] == [1, 3] and value[0] == 4


def test_an_exception_in_a_callback_goes_to_the_hook(stream, monkeypatch):
    caught: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: caught.append((event.exc_type, event.object)))
    builder = stream.create_graph_builder().begin_building()

    def fails():
        return 1 // 0

    builder.callback(fails)
    graph = builder.end_building().complete()
    run(graph, stream)
    assert caught == [(ZeroDivisionError, fails)]


def test_a_callback_lives_as_long_as_the_graph(stream):
    class Callback:
        calls = 0

        def __call__(self):
            Callback.calls += 1

    callback = Callback()
    gone = weakref.ref(callback)
    builder = stream.create_graph_builder().begin_building()
    builder.callback(callback)
    del callback
    graph = builder.end_building().complete()
    builder.close()
    gc.collect()
    assert gone() is not None
    run(graph, stream)
    assert Callback.calls == 1
    graph.close()
    assert eventually(lambda: gone() is None)  # released on an ordinary thread, some time later


def test_a_graph_keeps_what_it_needs(device, stream, memory):
    """Kernels and memory, closed or not, until the last graph that uses them is gone."""

    class Resource(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0
        freed = []

        def deallocate(self, ptr, size, *, stream):
            self.freed.append(ptr)

    buffer, value = memory
    # Separate pieces for the launch, the fill and both sides of a copy, so that nothing is kept by something else.
    with device.allocate(4 * 256, stream=stream) as whole:
        whole.fill(0, stream=stream)
        parts = [Buffer.from_handle(whole.handle + i * 256, 4, mr=Resource(), stream=stream) for i in range(4)]
        addresses = [part.handle for part in parts]
        builder = stream.create_graph_builder().begin_building()
        code = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")
        launch(builder, ONE, code.get_kernel("add"), buffer, 1)
        launch(builder, ONE, code.get_kernel("add"), parts[0], 1)
        parts[1].fill(0, stream=builder)
        parts[2].copy_to(parts[3], stream=builder)
        with pytest.raises(TypeError):  # not recorded, not kept
            launch(builder, ONE, code.get_kernel("add"), parts[0])
        graph = builder.end_building().complete()
        again = builder.complete()
        builder.close()
        for part in parts:
            part.close()
        del code, parts, part
        gc.collect()
        run(graph, stream)
        graph.close()
        assert Resource.freed == []
        run(again, stream)
        assert value[0] == 2
        again.close()
        assert eventually(lambda: sorted(Resource.freed) == addresses)  # on an ordinary thread, some time later


def test_ctypes_callbacks(stream):
    seen: list[object] = []
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    read = prototype(lambda data: seen.append(ctypes.string_at(data, 4)))
    note = prototype(seen.append)
    builder = stream.create_graph_builder().begin_building()
    data = bytearray(b"abcd")
    builder.callback(read, user_data=data)
    builder.callback(note, user_data=0x1234)
    builder.callback(note)
    builder.callback(note, user_data=b"")
    data[:] = b"xxxx"
    graph = builder.end_building().complete()
    run(graph, stream)
    assert seen == [b"abcd", 0x1234, None, None]


@pytest.mark.parametrize(
    ("fn", "user_data", "error", "text"),
    [
        (5, None, TypeError, "callable"),
        (None, None, TypeError, "callable"),
        (print, 5, ValueError, "user_data"),
        (ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(id), None, TypeError, "c_int"),
        (ctypes.CFUNCTYPE(None, ctypes.c_int64)(id), None, TypeError, "c_long"),
        (ctypes.CFUNCTYPE(None)(id), None, TypeError, "none"),
        (ctypes.pythonapi.Py_IncRef, None, TypeError, "not declared"),
        (ctypes.CFUNCTYPE(None, ctypes.c_void_p)(id), "text", TypeError, "user_data"),
    ],
)
def test_bad_callbacks(stream, fn, user_data, error, text):
    builder = stream.create_graph_builder().begin_building()
    with pytest.raises(error, match=text):
        builder.callback(fn, user_data=user_data)
    builder.close()
