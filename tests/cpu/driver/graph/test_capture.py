"""Stream capture: what is captured, forks and joins, modes, and what a capture does not allow."""

from __future__ import annotations

import ctypes
import threading

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import explanation, ok, status

MODE = driver.CUstreamCaptureMode
STATUS = driver.CUstreamCaptureStatus
TYPE = driver.CUgraphNodeType
RELAXED = MODE.CU_STREAM_CAPTURE_MODE_RELAXED
GLOBAL = MODE.CU_STREAM_CAPTURE_MODE_GLOBAL
THREAD_LOCAL = MODE.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
BAD = "CUDA_ERROR_INVALID_VALUE"


def begin(stream, mode=RELAXED) -> None:
    ok(driver.cuStreamBeginCapture(stream, mode))


def state(stream) -> str:
    return ok(driver.cuStreamIsCapturing(stream)).name.removeprefix("CU_STREAM_CAPTURE_STATUS_")


def nodes(graph) -> list:
    return ok(driver.cuGraphGetNodes(graph, 64))[0]


def edges(graph) -> set[tuple[int, int]]:
    """Pairs of positions in the list of nodes."""
    order = {int(node): i for i, node in enumerate(nodes(graph))}
    sources, targets, _data, _count = ok(driver.cuGraphGetEdges(graph, 64))
    return {(order[int(a)], order[int(b)]) for a, b in zip(sources, targets, strict=True)}


def types(graph) -> list[str]:
    return [ok(driver.cuGraphNodeGetType(n)).name.removeprefix("CU_GRAPH_NODE_TYPE_") for n in nodes(graph)]


def run(graph, stream, times: int = 1) -> None:
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    for _ in range(times):
        ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuGraphExecDestroy(executable))


def depend(waiting, recorded, event) -> None:
    ok(driver.cuEventRecord(event, recorded))
    ok(driver.cuStreamWaitEvent(waiting, event, 0))


def test_work_is_captured_and_not_done(make_stream, memory):
    stream, base = make_stream(), ctypes.addressof(memory)
    memory[1] = 42
    begin(stream)
    assert state(stream) == "ACTIVE"
    ok(driver.cuMemsetD32Async(base, 7, 1, stream))
    ok(driver.cuMemcpyAsync(base + 8, base, 4, stream))
    graph = ok(driver.cuStreamEndCapture(stream))
    assert state(stream) == "NONE"
    assert (types(graph), edges(graph)) == (["MEMSET", "MEMCPY"], {(0, 1)})
    assert list(memory[:3]) == [0, 42, 0]
    run(graph, stream)
    assert list(memory[:3]) == [7, 42, 7]
    memory[0] = memory[2] = 0
    run(graph, stream)
    assert memory[2] == 7
    ok(driver.cuGraphDestroy(graph))


def test_pageable_sources_are_read_at_the_launch(make_stream, memory):
    stream, source = make_stream(), ctypes.c_uint32(1)
    begin(stream)
    ok(driver.cuMemcpyHtoDAsync(ctypes.addressof(memory), ctypes.addressof(source), 4, stream))
    graph = ok(driver.cuStreamEndCapture(stream))
    source.value = 2
    run(graph, stream)
    assert memory[0] == 2
    ok(driver.cuGraphDestroy(graph))


def test_forks_and_joins(make_stream, make_event, memory, host):
    origin, fork, base = make_stream(), make_stream(), ctypes.addressof(memory)
    one, two = make_event(), make_event()
    begin(origin)
    ok(driver.cuMemsetD32Async(base, 1, 1, origin))
    depend(fork, origin, one)
    assert state(fork) == "ACTIVE"
    host.note(fork, "fork")
    host.note(origin, "origin")
    depend(origin, fork, two)
    ok(driver.cuMemsetD32Async(base + 4, 2, 1, origin))
    graph = ok(driver.cuStreamEndCapture(origin))
    assert state(fork) == "NONE"
    assert types(graph) == ["MEMSET", "HOST", "HOST", "MEMSET"]
    assert edges(graph) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    run(graph, origin, times=2)
    assert sorted(host.notes) == ["fork", "fork", "origin", "origin"]
    assert list(memory[:2]) == [1, 2]
    ok(driver.cuGraphDestroy(graph))


def test_a_joined_stream_may_be_destroyed(make_stream, make_event, memory):
    origin, fork, base = make_stream(), ok(driver.cuStreamCreate(1)), ctypes.addressof(memory)
    begin(origin)
    depend(fork, origin, make_event())
    ok(driver.cuMemsetD32Async(base, 1, 1, fork))
    depend(origin, fork, make_event())
    ok(driver.cuStreamDestroy(fork))
    graph = ok(driver.cuStreamEndCapture(origin))
    assert types(graph) == ["MEMSET"]
    ok(driver.cuGraphDestroy(graph))


def test_unjoined_forks(make_stream, make_event, memory):
    origin, fork = make_stream(), make_stream()
    begin(origin)
    depend(fork, origin, make_event())
    ok(driver.cuMemsetD32Async(ctypes.addressof(memory), 1, 1, fork))
    result = driver.cuStreamEndCapture(origin)
    assert status(result) == "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"
    assert state(origin) == state(fork) == "NONE"


def test_ending_elsewhere(make_stream, make_event):
    origin, fork = make_stream(), make_stream()
    begin(origin)
    depend(fork, origin, make_event())
    assert status(driver.cuStreamEndCapture(fork)) == "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"
    assert status(driver.cuStreamEndCapture(make_stream())) == "CUDA_ERROR_ILLEGAL_STATE"
    driver.cuStreamEndCapture(origin)


def test_two_captures_cannot_meet(make_stream, make_event):
    a, b, event = make_stream(), make_stream(), make_event()
    begin(a)
    begin(b)
    ok(driver.cuEventRecord(event, a))
    assert status(driver.cuStreamWaitEvent(b, event, 0)) == "CUDA_ERROR_STREAM_CAPTURE_MERGE"
    for stream in (a, b):
        assert state(stream) == "INVALIDATED"
        assert status(driver.cuStreamEndCapture(stream)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"


def test_events_from_outside(make_stream, make_event):
    stream, event = make_stream(), make_event()
    ok(driver.cuEventRecord(event, stream))
    begin(stream)
    assert status(driver.cuStreamWaitEvent(stream, event, 0)) == "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"
    driver.cuStreamEndCapture(stream)


def test_captured_events_have_no_state(make_stream, make_event):
    stream, event = make_stream(), make_event()
    begin(stream)
    ok(driver.cuEventRecord(event, stream))
    assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_CAPTURED_EVENT"
    driver.cuStreamEndCapture(stream)


def test_external_events_become_nodes(make_stream, make_event, memory):
    stream, event, base = make_stream(), make_event(), ctypes.addressof(memory)
    begin(stream)
    ok(driver.cuMemsetD32Async(base, 1, 1, stream))
    ok(driver.cuEventRecordWithFlags(event, stream, driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL))
    ok(driver.cuStreamWaitEvent(stream, event, driver.CUevent_wait_flags.CU_EVENT_WAIT_EXTERNAL))
    graph = ok(driver.cuStreamEndCapture(stream))
    assert types(graph) == ["MEMSET", "EVENT_RECORD", "WAIT_EVENT"]
    run(graph, stream, times=3)
    ok(driver.cuEventSynchronize(event))
    assert memory[0] == 1
    ok(driver.cuGraphDestroy(graph))


@pytest.mark.parametrize(
    "call",
    [
        lambda s: driver.cuStreamSynchronize(s),
        lambda s: driver.cuStreamQuery(s),
        lambda s: driver.cuCtxSynchronize(),
    ],
)
def test_waiting_for_a_capturing_stream_spoils_the_capture(make_stream, call):
    stream = make_stream()
    begin(stream)
    assert status(call(stream)) == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    assert state(stream) == "INVALIDATED"
    assert status(driver.cuMemsetD8Async(0x1000, 0, 0, stream)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    assert status(driver.cuLaunchHostFunc(stream, 1, 0)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    assert status(driver.cuStreamEndCapture(stream)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    assert state(stream) == "NONE"


UNSAFE = [
    lambda: driver.cuMemAlloc(64),
    lambda: driver.cuMemHostAlloc(64, 0),
    lambda: driver.cuMemFree(0),
]


@pytest.mark.parametrize("call", UNSAFE)
def test_unsafe_calls(make_stream, call):
    for mode, refused in ((GLOBAL, True), (THREAD_LOCAL, True), (RELAXED, False)):
        stream = make_stream()
        begin(stream, mode)
        result = call()
        assert (status(result) == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED") is refused
        assert (state(stream) == "INVALIDATED") is refused
        driver.cuStreamEndCapture(stream)


def test_filling_nothing_is_safe(make_stream):
    stream = make_stream()
    begin(stream, GLOBAL)
    ok(driver.cuMemsetD8(0, 0, 0))
    assert state(stream) == "ACTIVE"
    driver.cuStreamEndCapture(stream)


@pytest.mark.parametrize(("mode", "refused"), [(GLOBAL, True), (THREAD_LOCAL, False), (RELAXED, False)])
def test_unsafe_calls_of_other_threads(context, make_stream, mode, refused):
    stream, results = make_stream(), []

    def other() -> None:
        ok(driver.cuCtxSetCurrent(context))
        results.append(status(driver.cuMemAlloc(64)))
        before = ok(driver.cuThreadExchangeStreamCaptureMode(RELAXED))
        results.extend([before.name, status(driver.cuMemAlloc(64))])

    begin(stream, mode)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    refusal = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" if refused else "CUDA_SUCCESS"
    assert results == [refusal, "CU_STREAM_CAPTURE_MODE_GLOBAL", "CUDA_SUCCESS"]
    driver.cuStreamEndCapture(stream)


def test_other_threads_may_end_relaxed_captures_only(context, make_stream):
    for mode, expected in ((GLOBAL, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"), (RELAXED, "CUDA_SUCCESS")):
        stream, results = make_stream(), []

        def end(stream=stream, results=results) -> None:
            ok(driver.cuCtxSetCurrent(context))
            results.append(status(driver.cuStreamEndCapture(stream)))

        begin(stream, mode)
        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
        assert results == [expected]
        driver.cuStreamEndCapture(stream)


def test_the_legacy_stream(make_stream, memory):
    assert status(driver.cuStreamBeginCapture(0, RELAXED)) == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    blocking, free = make_stream(0), make_stream(1)
    begin(free)
    ok(driver.cuMemsetD32Async(ctypes.addressof(memory), 1, 1, 0))
    ok(driver.cuStreamEndCapture(free))
    begin(blocking)
    result = driver.cuMemsetD32Async(ctypes.addressof(memory), 1, 1, 0)
    assert status(result) == "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"
    assert status(driver.cuStreamEndCapture(blocking)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"


def test_to_ask_the_legacy_stream_does_not_end_a_capture(make_stream):
    """That it may not be asked now is all that the error says."""
    stream = make_stream(0)
    begin(stream)
    for ask in (driver.cuStreamIsCapturing, driver.cuStreamGetCaptureInfo):
        assert status(ask(0)) == "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"
    ok(driver.cuStreamEndCapture(stream))


def test_beginning_twice_and_bad_modes(make_stream):
    stream = make_stream()
    assert status(driver.cuStreamBeginCapture(stream, 9)) == "CUDA_ERROR_INVALID_VALUE"
    begin(stream)
    assert status(driver.cuStreamBeginCapture(stream, RELAXED)) == "CUDA_ERROR_ILLEGAL_STATE"
    ok(driver.cuStreamEndCapture(stream))


def test_info_and_dependencies(make_stream, memory):
    stream, base = make_stream(), ctypes.addressof(memory)
    assert ok(driver.cuStreamGetCaptureInfo(stream))[0] == STATUS.CU_STREAM_CAPTURE_STATUS_NONE
    begin(stream)
    ok(driver.cuMemsetD32Async(base, 1, 1, stream))
    now, number, graph, dependencies, _data, count = ok(driver.cuStreamGetCaptureInfo(stream))
    assert now == STATUS.CU_STREAM_CAPTURE_STATUS_ACTIVE and int(number) > 0 and count == 1
    assert dependencies == nodes(graph)
    flags = driver.CUstreamUpdateCaptureDependencies_flags
    extra = ok(driver.cuGraphAddEmptyNode(graph, [], 0))
    ok(
        driver.cuStreamUpdateCaptureDependencies(
            stream, [extra], [driver.CUgraphEdgeData()], 1, flags.CU_STREAM_ADD_CAPTURE_DEPENDENCIES
        )
    )
    ok(driver.cuMemsetD32Async(base, 2, 1, stream))
    ok(
        driver.cuStreamUpdateCaptureDependencies(
            stream, [extra], [driver.CUgraphEdgeData()], 1, flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
        )
    )
    ok(driver.cuMemsetD32Async(base, 3, 1, stream))
    assert ok(driver.cuStreamEndCapture(stream)) == graph
    assert edges(graph) == {(0, 2), (1, 2), (1, 3)}
    ok(driver.cuGraphDestroy(graph))


def test_capturing_into_a_graph(make_stream, memory):
    stream, base = make_stream(), ctypes.addressof(memory)
    graph = ok(driver.cuGraphCreate(0))
    root = ok(driver.cuGraphAddEmptyNode(graph, [], 0))
    ok(driver.cuStreamBeginCaptureToGraph(stream, graph, [root], [driver.CUgraphEdgeData()], 1, RELAXED))
    ok(driver.cuMemsetD32Async(base, 5, 1, stream))
    assert ok(driver.cuStreamEndCapture(stream)) == graph
    assert (types(graph), edges(graph)) == (["EMPTY", "MEMSET"], {(0, 1)})
    run(graph, stream)
    assert memory[0] == 5
    ok(driver.cuGraphDestroy(graph))


def test_launches_of_graphs_are_not_captured(make_stream, memory):
    stream, base = make_stream(), ctypes.addressof(memory)
    begin(stream)
    ok(driver.cuMemsetD32Async(base, 6, 1, stream))
    inner = ok(driver.cuStreamEndCapture(stream))
    executable = ok(driver.cuGraphInstantiate(inner, 0))
    begin(stream)
    assert status(driver.cuGraphLaunch(executable, stream)) == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    driver.cuStreamEndCapture(stream)
    ok(driver.cuGraphLaunch(executable, stream))  # the stream itself is fine
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 6
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(inner))


def test_stream_memory_operations_are_captured(make_stream, memory):
    stream, base = make_stream(), ctypes.addressof(memory)
    begin(stream)
    ok(driver.cuStreamWriteValue32(stream, base, 11, 0))
    ok(driver.cuStreamWaitValue32(stream, base, 11, driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ))
    ok(driver.cuStreamWriteValue32(stream, base + 4, 12, 0))
    graph = ok(driver.cuStreamEndCapture(stream))
    assert types(graph) == ["BATCH_MEM_OP"] * 3
    run(graph, stream)
    assert list(memory[:2]) == [11, 12]
    ok(driver.cuGraphDestroy(graph))


def test_destroying_the_origin_ends_the_capture(context, make_stream, make_event):
    origin, fork = ok(driver.cuStreamCreate(1)), make_stream()
    begin(origin, GLOBAL)
    depend(fork, origin, make_event())
    ok(driver.cuStreamDestroy(origin))
    assert state(fork) == "NONE"
    ok(driver.cuMemFree(ok(driver.cuMemAlloc(64))))


@pytest.mark.cpu_only
def test_refusals_explain(make_stream, make_event):
    stream = make_stream()
    begin(stream, GLOBAL)
    assert "CU_STREAM_CAPTURE_MODE_RELAXED" in explanation(driver.cuMemAlloc(64))
    assert "invalidated this capture" in explanation(driver.cuStreamEndCapture(stream))


def test_allocations_on_a_capturing_stream(make_stream, memory):
    stream, base = make_stream(), ctypes.addressof(memory)
    begin(stream)
    address = ok(driver.cuMemAllocAsync(4096, stream))
    ok(driver.cuMemsetD32Async(address, 9, 1024, stream))
    ok(driver.cuMemcpyAsync(base, address, 4096, stream))
    ok(driver.cuMemFreeAsync(address, stream))
    graph = ok(driver.cuStreamEndCapture(stream))
    assert types(graph) == ["MEM_ALLOC", "MEMSET", "MEMCPY", "MEM_FREE"]
    run(graph, stream, times=2)
    assert list(memory) == [9] * 1024
    assert status(driver.cuMemsetD8(address, 0, 1)) != "CUDA_SUCCESS"
    ok(driver.cuGraphDestroy(graph))
    begin(stream)
    plain = driver.cuMemFreeAsync(base, stream)
    assert status(plain) == "CUDA_ERROR_INVALID_VALUE"
    driver.cuStreamEndCapture(stream)


def raw(name: str):
    """An entry point, for calls without results."""
    address, _ = ok(driver.cuGetProcAddress(name.encode(), 12000, 0))
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(int(address))


@pytest.mark.parametrize("spoiled", [False, True])
@pytest.mark.parametrize("own_graph", [False, True])
def test_a_capture_ends_without_a_place_for_its_graph(make_stream, memory, graph, own_graph, spoiled):
    stream = make_stream()
    if own_graph:
        ok(driver.cuStreamBeginCaptureToGraph(stream, graph, [], [], 0, RELAXED))
    else:
        begin(stream)
    ok(driver.cuMemsetD8Async(ctypes.addressof(memory), 1, 8, stream))
    if spoiled:
        assert status(driver.cuStreamSynchronize(stream)) == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    ended = driver.CUresult(raw("cuStreamEndCapture")(int(stream), None)).name
    assert ended == ("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" if spoiled else "CUDA_SUCCESS")
    assert state(stream) == "NONE"
    if not (own_graph and spoiled and not on_cpu_device()):  # an H200 refuses the graph then
        assert types(graph) == (["MEMSET"] if own_graph else [])
    begin(stream)  # nothing is left of it
    ok(driver.cuGraphDestroy(ok(driver.cuStreamEndCapture(stream))))


def test_ending_what_was_not_begun_without_a_place_for_a_graph(make_stream):
    ended = raw("cuStreamEndCapture")(int(make_stream()), None)
    assert driver.CUresult(ended).name == "CUDA_ERROR_ILLEGAL_STATE"


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("spoiled", [False, True])
def test_events_of_captures_that_are_over(make_stream, make_event, ended, spoiled):
    """They stand for nothing, as on an H200, and spoil another capture that waits for them."""
    stream, idle, other, event = make_stream(), make_stream(), make_stream(), make_event()
    begin(stream)
    ok(driver.cuEventRecord(event, stream))
    if spoiled:
        assert status(driver.cuStreamSynchronize(stream)) == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    if ended:
        result = driver.cuStreamEndCapture(stream)
        assert status(result) == ("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" if spoiled else "CUDA_SUCCESS")
        if not spoiled:
            ok(driver.cuGraphDestroy(result[1]))
    elif not spoiled:
        ok(driver.cuGraphDestroy(ok(driver.cuStreamEndCapture(stream))))
    for waiting in (idle, 0, 2):
        assert status(driver.cuStreamWaitEvent(waiting, event, 0)) == BAD
    assert state(idle) == "NONE"
    assert status(driver.cuEventQuery(event)) == status(driver.cuEventSynchronize(event)) == BAD
    ok(driver.cuStreamSynchronize(idle))
    begin(other)
    assert status(driver.cuStreamWaitEvent(other, event, 0)) == BAD
    assert state(other) == "INVALIDATED"
    assert status(driver.cuStreamEndCapture(other)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    if spoiled and not ended:
        assert status(driver.cuStreamEndCapture(stream)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    ok(driver.cuEventRecord(event, idle))  # and it is an event like any other
    ok(driver.cuEventSynchronize(event))


@pytest.mark.parametrize("call", [driver.cuEventQuery, driver.cuEventSynchronize])
def test_asking_for_an_event_of_a_capture_spoils_it(make_stream, make_event, call):
    stream, event = make_stream(), make_event()
    begin(stream)
    ok(driver.cuEventRecord(event, stream))
    assert status(call(event)) == "CUDA_ERROR_CAPTURED_EVENT"
    assert state(stream) == "INVALIDATED"
    assert status(driver.cuStreamEndCapture(stream)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"


def test_ending_a_capture_elsewhere_spoils_it(make_stream, make_event):
    stream, other, event = make_stream(), make_stream(), make_event()
    begin(stream)
    ok(driver.cuEventRecord(event, stream))
    ok(driver.cuStreamWaitEvent(other, event, 0))
    assert status(driver.cuStreamEndCapture(other)) == "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"
    assert state(stream) == state(other) == "INVALIDATED"
    assert status(driver.cuStreamEndCapture(stream)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
