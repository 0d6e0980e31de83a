"""Streams: order, independence, the default streams, host functions and stream memory operations."""

from __future__ import annotations

import ctypes
import random
import threading
import time

import pytest

from cupola.bindings import driver
from tests import limits
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import HostWork, ok, status
from tests.limits import eventually

LEGACY, PER_THREAD = driver.CUstream(1), driver.CUstream(2)
BLOCKING, NON_BLOCKING = 0, 1


def test_work_of_one_stream_runs_in_order(make_stream, host):
    stream = make_stream()
    for i in range(200):
        host.note(stream, i)
    ok(driver.cuStreamSynchronize(stream))
    assert host.notes == list(range(200))


def test_a_stream_that_waits_holds_up_no_other(make_stream, host):
    blocked = [make_stream() for _ in range(8 if on_cpu_device() else 3)]  # a GPU has queues for so many streams only
    for stream in blocked:
        host.block(stream)
    free = make_stream()
    host.note(free, "done")
    ok(driver.cuStreamSynchronize(free))
    assert host.notes == ["done"]
    assert all(status(driver.cuStreamQuery(s)) == "CUDA_ERROR_NOT_READY" for s in blocked)
    host.release()
    for stream in blocked:
        ok(driver.cuStreamSynchronize(stream))
        ok(driver.cuStreamQuery(stream))


def test_work_goes_on_without_being_waited_for(make_stream, host):
    host.note(make_stream(), 1)
    assert eventually(lambda: host.notes == [1])


def test_destroying_a_stream_lets_its_work_finish(context, host):
    stream = ok(driver.cuStreamCreate(NON_BLOCKING))
    host.block(stream)
    host.note(stream, "after")
    ok(driver.cuStreamDestroy(stream))
    host.release()
    assert eventually(lambda: host.notes == ["after"])


@pytest.mark.cpu_only
def test_a_destroyed_stream_is_refused(context, host):
    stream = ok(driver.cuStreamCreate(NON_BLOCKING))
    host.block(stream)
    ok(driver.cuStreamDestroy(stream))
    for call in (driver.cuStreamQuery, driver.cuStreamSynchronize, driver.cuStreamDestroy):
        assert status(call(stream)) == "CUDA_ERROR_INVALID_HANDLE"


@pytest.mark.parametrize("flags, waits", [(BLOCKING, True), (NON_BLOCKING, False)])
def test_the_legacy_stream_waits_for_blocking_streams(make_stream, host, flags, waits):
    stream = make_stream(flags)
    host.block(stream)
    host.note(stream, "stream")
    host.note(LEGACY, "legacy")
    if waits:
        time.sleep(0.05)
        assert status(driver.cuStreamQuery(LEGACY)) == "CUDA_ERROR_NOT_READY"
        host.release()
        ok(driver.cuStreamSynchronize(LEGACY))
        assert host.notes == ["stream", "legacy"]
    else:
        assert eventually(lambda: host.notes == ["legacy"])


@pytest.mark.parametrize("flags, waits", [(BLOCKING, True), (NON_BLOCKING, False)])
def test_blocking_streams_wait_for_the_legacy_stream(make_stream, host, flags, waits):
    stream = make_stream(flags)
    host.block(LEGACY)
    host.note(LEGACY, "legacy")
    host.note(stream, "stream")
    if waits:
        time.sleep(0.05)
        assert host.notes == []
        host.release()
        ok(driver.cuStreamSynchronize(stream))
        assert host.notes == ["legacy", "stream"]
    else:
        ok(driver.cuStreamSynchronize(stream))
        assert host.notes == ["stream"]


def fill_one(address, stream):
    ok(driver.cuMemsetD32Async(address, 7, 1, stream))


def copy_one(address, stream):
    ok(driver.cuMemcpyAsync(address, address + 2048, 4, stream))


@pytest.mark.cpu_only  # whose calls carry it out if nothing comes before it
@pytest.mark.parametrize("work", [fill_one, copy_one])
@pytest.mark.parametrize(
    ("kind", "held"),
    [
        ("apart", ""), ("apart", "apart"), ("apart", "itself"), ("apart", "by an event"),
        ("legacy", ""), ("legacy", "apart"), ("legacy", "blocking"), ("legacy", "itself"),
        ("blocking", "legacy"), ("blocking", "itself"), ("per thread", "legacy"),
    ],
)  # fmt: skip
def test_short_work_comes_at_once_or_in_its_turn(make_stream, make_event, host, memory, work, kind, held):
    def stream_of(kind):
        known = {"legacy": LEGACY, "per thread": PER_THREAD}
        return known[kind] if kind in known else make_stream(BLOCKING if kind == "blocking" else NON_BLOCKING)

    memory[512] = 7
    stream = stream_of(kind)
    if held == "by an event":
        other, event = make_stream(), make_event()
        host.block(other)
        ok(driver.cuEventRecord(event, other))
        ok(driver.cuStreamWaitEvent(stream, event, 0))
    elif held:
        host.block(stream if held == "itself" else stream_of(held))
    work(ctypes.addressof(memory), stream)
    assert memory[0] == (7 if held in ("", "apart") else 0)
    host.release()
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 7


def test_stream_zero_is_the_legacy_stream(make_stream, host):
    host.block(make_stream(BLOCKING))
    host.note(0, "zero")
    time.sleep(0.05)
    assert host.notes == []
    host.release()
    ok(driver.cuStreamSynchronize(0))
    assert host.notes == ["zero"]


def test_each_thread_has_a_default_stream_of_its_own(context, host):
    host.block(PER_THREAD)

    def other():
        ok(driver.cuCtxSetCurrent(context))
        host.note(PER_THREAD, "other thread")
        ok(driver.cuStreamSynchronize(PER_THREAD))

    thread = threading.Thread(target=other)
    thread.start()
    limits.join(thread)
    assert host.notes == ["other thread"]


@pytest.mark.cpu_only
def test_a_host_function_may_not_call_the_driver(make_stream, host):
    """It is forbidden everywhere (cuLaunchHostFunc); a GPU's driver need not notice, and may answer or hang."""
    stream = make_stream()
    seen = []
    host.call(stream, lambda: seen.append(status(driver.cuStreamQuery(stream))))
    ok(driver.cuStreamSynchronize(stream))
    assert seen == ["CUDA_ERROR_NOT_PERMITTED"]


def test_callbacks_get_stream_status_and_data(make_stream):
    stream = make_stream()
    seen = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    callback = kind(lambda s, code, data: seen.append((s, code, data)))
    address = ctypes.cast(callback, ctypes.c_void_p).value
    ok(driver.cuStreamAddCallback(stream, address, 77, 0))
    ok(driver.cuStreamSynchronize(stream))
    assert seen == [(int(stream), 0, 77)]
    assert status(driver.cuStreamAddCallback(stream, address, 77, 1)) == "CUDA_ERROR_INVALID_VALUE"


@pytest.mark.parametrize("asked, given", [(0, 0), (-1, -1), (-5, -5), (3, 0), (-77, -5)])
def test_priorities_are_brought_into_range(make_stream, asked, given):
    least, greatest = ok(driver.cuCtxGetStreamPriorityRange())
    stream = make_stream(NON_BLOCKING, asked)
    assert ok(driver.cuStreamGetPriority(stream)) == max(given, greatest)
    assert (least, greatest) == (0, -5)


def test_what_a_stream_knows_of_itself(make_stream, context):
    stream = make_stream(NON_BLOCKING)
    assert ok(driver.cuStreamGetFlags(stream)) == NON_BLOCKING
    assert ok(driver.cuStreamGetFlags(make_stream(BLOCKING))) == BLOCKING
    assert int(ok(driver.cuStreamGetCtx(stream))) == int(context)
    assert int(ok(driver.cuStreamGetDevice(stream))) == 0
    assert ok(driver.cuStreamGetId(stream)) != ok(driver.cuStreamGetId(make_stream()))


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda s: driver.cuStreamCreate(8), "CUDA_ERROR_INVALID_VALUE"),
        (lambda s: driver.cuStreamWaitEvent(s, 0, 0), "CUDA_ERROR_INVALID_HANDLE"),
        (lambda s: driver.cuLaunchHostFunc(s, 0, 0), "CUDA_ERROR_INVALID_VALUE"),
        (lambda s: driver.cuStreamWaitValue32(s, 12, 0, 0), "CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_bad_arguments(make_stream, call, expected):
    assert status(call(make_stream())) == expected


@pytest.mark.cpu_only
@pytest.mark.parametrize("handle", [0xDEADBEEF, 0x7F0000000008, 3])
def test_a_foreign_handle_is_refused_without_a_crash(context, handle):
    for call in (driver.cuStreamQuery, driver.cuStreamSynchronize, driver.cuStreamDestroy, driver.cuEventQuery):
        kind = driver.CUevent if call is driver.cuEventQuery else driver.CUstream
        assert status(call(kind(handle))) == "CUDA_ERROR_INVALID_HANDLE"


# --- stream memory operations -----------------------------------------------------------------------------

GEQ, EQ, AND, NOR = 0, 1, 2, 3


@pytest.mark.parametrize(
    "flags, value, before, after",
    [(GEQ, 5, 4, 5), (GEQ, 5, 0xFFFFFFFF, 6), (EQ, 7, 8, 7), (AND, 6, 1, 4), (NOR, 0xFFFFFFF0, 0xF, 0x7)],
)
def test_waiting_for_a_value(make_stream, host, memory, flags, value, before, after):
    stream = make_stream()
    address = ctypes.addressof(memory)
    memory[0] = before
    ok(driver.cuStreamWaitValue32(stream, address, value, flags))
    host.note(stream, "went on")
    time.sleep(0.02)
    assert status(driver.cuStreamQuery(stream)) == "CUDA_ERROR_NOT_READY"
    memory[0] = after
    ok(driver.cuStreamSynchronize(stream))
    assert host.notes == ["went on"]


def test_streams_hand_over_through_memory(make_stream, host, memory):
    first, second = make_stream(), make_stream()
    address = ctypes.addressof(memory)
    ok(driver.cuStreamWaitValue64(second, address, 1 << 40, EQ))
    host.note(second, "second")
    host.note(first, "first")
    ok(driver.cuStreamWriteValue64(first, address, 1 << 40, 0))
    ok(driver.cuStreamSynchronize(second))
    assert host.notes == ["first", "second"]


# --- all at once ------------------------------------------------------------------------------------------


def chain(context, seed, seconds, failures):
    """A counter that moves from stream to stream behind events; the order of the host functions is what is checked."""
    generator = random.Random(seed)
    ok(driver.cuCtxSetCurrent(context))
    work = HostWork()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            streams = [ok(driver.cuStreamCreate(generator.randrange(2))) for _ in range(4)] + [LEGACY, PER_THREAD]
            event = ok(driver.cuEventCreate(generator.choice([0, 2])))
            work.notes.clear()
            at = streams[0]
            for step in range(40):
                work.note(at, step)
                if generator.random() < 0.05:
                    ok(driver.cuStreamSynchronize(at))
                    if work.notes != list(range(step + 1)):
                        failures.append((seed, step, list(work.notes)))
                following = generator.choice(streams)
                ok(driver.cuEventRecord(event, at))
                ok(driver.cuStreamWaitEvent(following, event, 0))
                at = following
            ok(driver.cuEventRecord(event, at))
            ok(driver.cuEventSynchronize(event))
            if work.notes != list(range(40)):
                failures.append((seed, "end", list(work.notes)))
            ok(driver.cuEventDestroy(event))
            for stream in streams[:4]:
                ok(driver.cuStreamDestroy(stream))
            work._functions.clear()
    except BaseException as error:  # a thread's failure must fail the test
        failures.append((seed, repr(error)))


def test_many_threads_and_streams(context):
    failures: list[object] = []
    threads = [threading.Thread(target=chain, args=(context, seed, 2.0, failures)) for seed in range(4)]
    for thread in threads:
        thread.start()
    limits.join(*threads)
    assert not failures
