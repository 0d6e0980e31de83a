"""Streams, events, functions of the host, recording."""

from __future__ import annotations

import ctypes
import threading

import pytest

from cupola.bindings import driver, runtime
from tests import limits
from tests.cpu.cudart.calls import ok, read, status

CAPTURE = runtime.cudaStreamCaptureStatus
MODE = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
EDGE = runtime.cudaGraphEdgeData()


def test_what_a_stream_is(device):
    least, greatest = ok(runtime.cudaDeviceGetStreamPriorityRange())
    stream = ok(runtime.cudaStreamCreateWithPriority(runtime.cudaStreamNonBlocking, greatest))
    other = ok(runtime.cudaStreamCreate())
    assert ok(runtime.cudaStreamGetPriority(stream)) == greatest and ok(runtime.cudaStreamGetPriority(other)) == least
    assert ok(runtime.cudaStreamGetFlags(stream)) == 1 and ok(runtime.cudaStreamGetFlags(other)) == 0
    assert ok(runtime.cudaStreamGetDevice(stream)) == 0
    assert ok(runtime.cudaStreamGetId(stream)) != ok(runtime.cudaStreamGetId(other))
    policy = runtime.cudaLaunchAttributeID.cudaLaunchAttributeSynchronizationPolicy
    value = runtime.cudaLaunchAttributeValue(syncPolicy=runtime.cudaSynchronizationPolicy.cudaSyncPolicyYield)
    ok(runtime.cudaStreamSetAttribute(stream, policy, value))
    ok(runtime.cudaStreamCopyAttributes(other, stream))
    found = ok(runtime.cudaStreamGetAttribute(other, policy))
    assert found.syncPolicy == runtime.cudaSynchronizationPolicy.cudaSyncPolicyYield
    for made in (stream, other):
        ok(runtime.cudaStreamDestroy(made))


@pytest.mark.parametrize("stream", [runtime.cudaStreamLegacy, runtime.cudaStreamPerThread, 0])
def test_default_streams(memory, stream):
    ok(runtime.cudaMemsetAsync(memory, 1, 1024, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    ok(runtime.cudaStreamQuery(stream))
    assert (read(memory) == 0x01010101).all()


def test_what_is_not_done_yet(stream):
    """cudaErrorNotReady is an answer, not the thread's last error."""
    gate = threading.Event()
    wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: limits.wait(gate) and None)
    event = ok(runtime.cudaEventCreateWithFlags(runtime.cudaEventDisableTiming))
    try:
        ok(runtime.cudaLaunchHostFunc(stream, wait, 0))
        ok(runtime.cudaEventRecord(event, stream))
        assert status(runtime.cudaStreamQuery(stream)) == "cudaErrorNotReady"
        assert status(runtime.cudaEventQuery(event)) == "cudaErrorNotReady"
        assert status(runtime.cudaPeekAtLastError()) == "cudaSuccess"
    finally:
        gate.set()
    ok(runtime.cudaEventSynchronize(event))
    ok(runtime.cudaEventQuery(event))
    assert status(runtime.cudaEventElapsedTime(event, event)) == "cudaErrorInvalidResourceHandle"
    ok(runtime.cudaEventDestroy(event))


def test_events_between_streams(stream, memory):
    other = ok(runtime.cudaStreamCreateWithFlags(runtime.cudaStreamNonBlocking))
    begin, end = ok(runtime.cudaEventCreate()), ok(runtime.cudaEventCreate())
    ok(runtime.cudaEventRecord(begin, stream))
    ok(runtime.cudaMemsetAsync(memory, 1, 1024, stream))
    ok(runtime.cudaEventRecordWithFlags(end, stream, 0))
    ok(runtime.cudaStreamWaitEvent(other, end, 0))
    ok(runtime.cudaMemsetAsync(memory, 2, 512, other))
    ok(runtime.cudaStreamSynchronize(other))
    assert ok(runtime.cudaEventElapsedTime(begin, end)) >= 0
    numbers = read(memory)
    assert (numbers[:128] == 0x02020202).all() and (numbers[128:] == 0x01010101).all()
    for event in (begin, end):
        ok(runtime.cudaEventDestroy(event))
    ok(runtime.cudaStreamDestroy(other))


def test_callbacks(stream):
    seen = []
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    callback = signature(lambda where, error, data: seen.append((where, error, data)))
    pointer = runtime.cudaStreamCallback_t(_ptr=ctypes.addressof(callback))
    ok(runtime.cudaStreamAddCallback(stream, pointer, 7, 0))
    ok(runtime.cudaStreamSynchronize(stream))
    assert seen == [(int(stream), 0, 7)]


def test_recording(stream, memory):
    assert ok(runtime.cudaStreamIsCapturing(stream)) == CAPTURE.cudaStreamCaptureStatusNone
    ok(runtime.cudaStreamBeginCapture(stream, MODE))
    ok(runtime.cudaMemsetAsync(memory, 1, 1024, stream))
    assert ok(runtime.cudaStreamIsCapturing(stream)) == CAPTURE.cudaStreamCaptureStatusActive
    state, number, graph, dependencies, *_ = ok(runtime.cudaStreamGetCaptureInfo(stream))
    assert state == CAPTURE.cudaStreamCaptureStatusActive and number and len(dependencies) == 1
    # work that comes next depends on a node which the program has put there itself
    empty = ok(runtime.cudaGraphAddEmptyNode(graph, dependencies, 1))
    how = runtime.cudaStreamUpdateCaptureDependenciesFlags.cudaStreamSetCaptureDependencies
    ok(runtime.cudaStreamUpdateCaptureDependencies(stream, [empty], [EDGE], 1, how))
    ok(runtime.cudaMemsetAsync(memory, 2, 512, stream))
    made = ok(runtime.cudaStreamEndCapture(stream))
    assert made == graph and ok(runtime.cudaGraphGetNodes(made, 9))[1] == 3
    executable = ok(runtime.cudaGraphInstantiate(made, 0))
    ok(runtime.cudaGraphLaunch(executable, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    assert list(read(memory)[[0, 200]]) == [0x02020202, 0x01010101]
    ok(runtime.cudaGraphExecDestroy(executable))
    ok(runtime.cudaGraphDestroy(made))


def test_recording_into_a_graph(stream, memory, graph):
    first = ok(runtime.cudaGraphAddEmptyNode(graph, [], 0))
    ok(runtime.cudaStreamBeginCaptureToGraph(stream, graph, [first], [EDGE], 1, MODE))
    ok(runtime.cudaMemsetAsync(memory, 1, 1024, stream))
    assert ok(runtime.cudaStreamEndCapture(stream)) == graph
    assert ok(runtime.cudaGraphGetEdges(graph, 4))[3] == 1


def test_what_spoils_a_recording(stream):
    ok(runtime.cudaStreamBeginCapture(stream, MODE))
    assert status(runtime.cudaStreamSynchronize(stream)) == "cudaErrorStreamCaptureUnsupported"
    assert ok(runtime.cudaStreamIsCapturing(stream)) == CAPTURE.cudaStreamCaptureStatusInvalidated
    assert status(runtime.cudaStreamEndCapture(stream)) == "cudaErrorStreamCaptureInvalidated"
    mode = ok(runtime.cudaThreadExchangeStreamCaptureMode(MODE))
    assert ok(runtime.cudaThreadExchangeStreamCaptureMode(mode)) == MODE


def test_driver_and_runtime_together(stream, memory):
    """Each takes what the other has made, and sees the same state."""
    event = ok(driver.cuEventCreate(0))
    ok(runtime.cudaEventRecord(event, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(runtime.cudaEventQuery(event))
    ok(runtime.cudaEventDestroy(event))
    ok(driver.cuMemsetD32Async(memory, 5, 256, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    assert (read(memory) == 5).all()
    address = ok(runtime.cudaMalloc(64))
    assert ok(driver.cuMemGetAddressRange(address))[1] == 64
    ok(driver.cuMemFree(address))
    assert ok(driver.cuStreamGetId(stream)) == ok(runtime.cudaStreamGetId(stream))
    graph = ok(driver.cuGraphCreate(0))
    ok(runtime.cudaGraphAddEmptyNode(graph, [], 0))
    assert ok(driver.cuGraphGetNodes(graph, 4))[1] == 1
    ok(runtime.cudaGraphDestroy(graph))
    assert ok(driver.cuDeviceGetDefaultMemPool(0)) == ok(runtime.cudaDeviceGetDefaultMemPool(0))


@pytest.mark.cpu_only
def test_events_of_another_process(stream, run_python):
    event = ok(runtime.cudaEventCreateWithFlags(runtime.cudaEventInterprocess | runtime.cudaEventDisableTiming))
    handle = ok(runtime.cudaIpcGetEventHandle(event))
    ok(runtime.cudaEventRecord(event, stream))
    source = f"""
import ctypes
from cupola.bindings import runtime as r
handle = r.cudaIpcEventHandle_t()
ctypes.memmove(handle.getPtr(), {ctypes.string_at(handle.getPtr(), 64)!r}, 64)
status, event = r.cudaIpcOpenEventHandle(handle)
print(status.name, r.cudaEventSynchronize(event)[0].name, r.cudaEventDestroy(event)[0].name)
"""
    done = run_python(source)
    assert done.stdout.split() == ["cudaSuccess"] * 3, done.stderr
    ok(runtime.cudaEventDestroy(event))
