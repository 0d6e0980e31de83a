"""Launches as graphs of one node: what they compute, in which stream, and that what is queued keeps its parameters."""

from __future__ import annotations

import threading

import numpy
import pytest

import cupola.numpy as np
from cupola import Stream, StreamOptions, profile
from cupola.bindings import driver
from cupola.numpy import _replay


@pytest.fixture(autouse=True)
def graphs():
    """Also on the CPU device, which has ordinary launches otherwise."""
    _replay.use_graphs(True)
    yield
    _replay.use_graphs(None)


def test_what_is_queued_keeps_its_parameters(device):
    x, y = np.zeros(5000), np.arange(700.0)
    for k in range(100):
        x += k
        np.add(y, 1.0, out=y)
    assert (x.to_numpy() == sum(range(100))).all()
    numpy.testing.assert_array_equal(y.to_numpy(), numpy.arange(700.0) + 100)
    assert [float((y[: 10 * k] + 1).sum()) for k in range(1, 30)] == [
        (numpy.arange(10 * k) + 101.0).sum() for k in range(1, 30)
    ]


def test_streams_and_threads(device):
    """More streams than a kernel has graphs for, and threads that share one."""
    wrong = []

    def work(start):
        device.set_current()
        x = np.arange(300.0)
        for k in range(30):
            x = x * 1.0 + float(start + k)
            x._compute_now()
        if x.to_numpy()[7] != 7 + sum(range(start, start + 30)):
            wrong.append(start)

    for k in range(6):
        with device.create_stream():
            work(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_stream_that_is_captured(device):
    """Its launches become nodes of the graph of the program."""
    with device.create_stream() as stream:
        x, y = np.arange(100.0), np.zeros(100)
        for _ in range(20):
            np.add(x, y, out=y)
        y.fill(0)
        check(driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        np.add(x, y, out=y)
        graph = check(driver.cuStreamEndCapture(stream.handle))
        executable = check(driver.cuGraphInstantiate(graph, 0))
        for _ in range(3):
            check(driver.cuGraphLaunch(executable, stream.handle))
        numpy.testing.assert_array_equal(y.to_numpy(), 3 * numpy.arange(100.0))
        check(driver.cuGraphExecDestroy(executable))
        check(driver.cuGraphDestroy(graph))


def calls(stream):
    """What a launch in this stream calls, when its kernel has been launched there some times; the stream is closed."""
    with stream:
        x, y = np.arange(100.0), np.zeros(100)
        for _ in range(20):
            np.add(x, 1.0, out=y)
        with profile.timeline() as timeline:
            np.add(x, 2.0, out=y)
        return {record.name for record in timeline.records if record.kind == "call"}


def test_which_streams_have_graphs(device):
    """Those of others may be destroyed, and their handles used again. A kernel keeps fewer graphs than this makes."""
    for _ in range(6):
        own = device.create_stream()
        assert "cuGraphLaunch" not in calls(Stream.from_handle(int(own.handle)))
        assert "cuGraphLaunch" in calls(own)
    assert "cuGraphLaunch" not in calls(device.create_stream(options=StreamOptions(priority=-1)))


@pytest.mark.gpu_only  # the CPU device uses no handle again
def test_a_later_stream_under_the_same_handle(device):
    """It has another priority, which the node of the graph of the first one has not."""
    for _ in range(50):
        first = device.create_stream()
        handle = int(first.handle)
        calls(first)
        later = device.create_stream(options=StreamOptions(priority=-1))
        same = int(later.handle) == handle
        assert "cuGraphLaunch" not in calls(later)
        if same:
            break


def check(result):
    status, *values = result
    assert status == driver.CUresult.CUDA_SUCCESS
    return values[0] if values else None
