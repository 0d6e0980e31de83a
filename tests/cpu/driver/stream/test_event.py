"""Events: state, time and order across streams."""

from __future__ import annotations

import time

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import ok, status

NO_TIMING = 2


def test_an_event_that_was_never_recorded_is_complete(make_event):
    event = make_event()
    ok(driver.cuEventQuery(event))
    ok(driver.cuEventSynchronize(event))


@pytest.mark.parametrize("flags", [0, NO_TIMING])
def test_an_event_is_complete_when_the_work_before_it_is(make_stream, make_event, host, flags):
    stream, event = make_stream(), make_event(flags)
    host.block(stream)
    host.note(stream, "work")
    ok(driver.cuEventRecord(event, stream))
    assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_NOT_READY"
    host.release()
    ok(driver.cuEventSynchronize(event))
    assert host.notes == ["work"]
    ok(driver.cuEventQuery(event))


def test_recording_again_counts_from_there(make_stream, make_event, host):
    stream, event = make_stream(), make_event()
    ok(driver.cuEventRecord(event, stream))
    ok(driver.cuEventSynchronize(event))
    host.block(stream)
    ok(driver.cuEventRecord(event, stream))
    assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_NOT_READY"


def test_a_wait_means_the_record_before_it(make_stream, make_event, host):
    first, second, event = make_stream(), make_stream(), make_event()
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuStreamWaitEvent(second, event, 0))
    host.block(first)
    ok(driver.cuEventRecord(event, first))  # later than the wait: of no concern to it
    host.note(second, "second")
    ok(driver.cuStreamSynchronize(second))
    assert host.notes == ["second"]


def test_a_chain_through_many_streams(make_stream, make_event, host):
    streams = [make_stream() for _ in range(20)]
    event = make_event(NO_TIMING)
    host.block(streams[0])
    for i, (stream, following) in enumerate(zip(streams, streams[1:], strict=False)):
        host.note(stream, i)
        ok(driver.cuEventRecord(event, stream))
        ok(driver.cuStreamWaitEvent(following, event, 0))
    host.note(streams[-1], 19)
    time.sleep(0.02)
    assert host.notes == []
    host.release()
    ok(driver.cuStreamSynchronize(streams[-1]))
    assert host.notes == list(range(20))


def test_many_streams_wait_for_one_event(make_stream, make_event, host):
    first, event = make_stream(), make_event()
    host.block(first)
    host.note(first, "first")
    ok(driver.cuEventRecord(event, first))
    others = [make_stream() for _ in range(30)]
    for i, stream in enumerate(others):
        ok(driver.cuStreamWaitEvent(stream, event, 0))
        host.note(stream, i)
    host.release()
    for stream in others:
        ok(driver.cuStreamSynchronize(stream))
    assert host.notes[0] == "first"
    assert sorted(host.notes[1:]) == list(range(30))


def test_an_event_may_be_destroyed_while_it_is_waited_for(make_stream, context, host):
    first, second = make_stream(), make_stream()
    event = ok(driver.cuEventCreate(0))
    host.block(first)
    host.note(first, "first")
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuStreamWaitEvent(second, event, 0))
    ok(driver.cuEventDestroy(event))
    host.note(second, "second")
    host.release()
    ok(driver.cuStreamSynchronize(second))
    assert host.notes == ["first", "second"]


@pytest.mark.cpu_only
def test_a_destroyed_event_is_refused(context):
    event = ok(driver.cuEventCreate(0))
    ok(driver.cuEventDestroy(event))
    assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_INVALID_HANDLE"
    assert status(driver.cuEventDestroy(event)) == "CUDA_ERROR_INVALID_HANDLE"


def test_the_time_between_two_events(make_stream, make_event, host):
    """It is at least what passes between them on the host, and at most what passes around them."""
    stream, start, end = make_stream(), make_event(), make_event()
    host.prepare()
    begin = time.monotonic()
    ok(driver.cuEventRecord(start, stream))
    ok(driver.cuEventSynchronize(start))
    recorded = time.monotonic()
    host.block(stream)
    ok(driver.cuEventRecord(end, stream))
    assert status(driver.cuEventElapsedTime(start, end)) == "CUDA_ERROR_NOT_READY"
    time.sleep(0.05)
    released = time.monotonic()
    host.release()
    ok(driver.cuEventSynchronize(end))
    least, most = 1000 * (released - recorded), 1000 * (time.monotonic() - begin)
    between = ok(driver.cuEventElapsedTime(start, end))
    assert 49 < least * 0.99 < between < most * 1.01
    assert ok(driver.cuEventElapsedTime(end, start)) == pytest.approx(-between)


def test_times_that_cannot_be_had(make_stream, make_event):
    stream, timed, untimed, unrecorded = make_stream(), make_event(), make_event(NO_TIMING), make_event()
    ok(driver.cuEventRecord(timed, stream))
    ok(driver.cuEventRecord(untimed, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert status(driver.cuEventElapsedTime(timed, untimed)) == "CUDA_ERROR_INVALID_HANDLE"
    assert status(driver.cuEventElapsedTime(timed, unrecorded)) == "CUDA_ERROR_INVALID_HANDLE"


def test_bad_flags(context):
    assert status(driver.cuEventCreate(0x80)) == "CUDA_ERROR_INVALID_VALUE"
    assert status(driver.cuEventCreate(4)) == "CUDA_ERROR_INVALID_VALUE"  # interprocess needs NO_TIMING
