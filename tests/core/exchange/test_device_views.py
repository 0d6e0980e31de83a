"""Views of device memory, and the order of streams that they keep."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from cupola import Buffer, DeviceMemoryResource, PinnedMemoryResource
from cupola.bindings import driver
from cupola.utils import StridedMemoryView as View
from tests import limits
from tests.cpu.driver.calls import ok

PROGRAMS = Path(__file__).with_name("programs")


class Interface:
    """Another library's array, through the CUDA array interface."""

    def __init__(self, pointer, shape=(4,), **entries):
        self.__cuda_array_interface__ = {
            "version": 3,
            "typestr": "<i4",
            "shape": shape,
            "data": (pointer, False),
            **entries,
        }


class Exporter:
    """Another library's array, through DLPack."""

    def __init__(self, buffer):
        self.buffer, self.streams = buffer, []

    def __dlpack_device__(self):
        return self.buffer.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **keywords):
        self.streams.append(stream)
        return self.buffer.__dlpack__(**keywords)


@pytest.fixture
def memory(device, stream):
    with DeviceMemoryResource(device).allocate(16, stream=stream) as buffer:
        stream.sync()  # tests use it in other streams
        yield buffer


@pytest.fixture
def pinned(stream):
    with PinnedMemoryResource().allocate(16, stream=stream) as buffer:
        stream.sync()
        yield buffer


def test_device_memory_through_dlpack(memory, stream):
    exporter = Exporter(memory)
    view = View.from_any_interface(exporter, stream.handle)
    assert (view.ptr, view.shape, view.device_id, view.is_device_accessible) == (memory.handle, (16,), 0, True)
    assert view.__dlpack_device__() == (2, 0)
    View.from_dlpack(exporter, -1)
    View.from_dlpack(exporter, 0)
    assert exporter.streams == [int(stream.handle), -1, None]
    with pytest.raises(BufferError, match="ambiguous"):
        View.from_dlpack(exporter)
    with pytest.raises(TypeError, match="stream.handle"):
        View.from_dlpack(exporter, stream)


def test_pinned_memory_through_dlpack(pinned, stream):
    exporter = Exporter(pinned)
    for asked in (None, -1, 0, stream.handle):
        view = View.from_dlpack(exporter, asked)
        assert view.is_device_accessible and view.__dlpack_device__() == (3, 0)
    assert exporter.streams == [None, -1, None, int(stream.handle)]
    np.from_dlpack(view)[:] = 5
    assert (np.from_dlpack(pinned) == 5).all()


def test_the_cuda_array_interface(memory, stream):
    view = View.from_any_interface(Interface(memory.handle, (2, 2), strides=(4, 8)), -1)
    assert (view.ptr, view.shape, view.strides, view.dtype) == (memory.handle, (2, 2), (1, 2), np.int32)
    assert (view.device_id, view.is_device_accessible, view.readonly) == (0, True, False)
    assert View.from_cuda_array_interface(Interface(memory.handle, data=(memory.handle, True)), -1).readonly
    empty = View.from_cuda_array_interface(Interface(0, (0,)), -1)
    assert (empty.size, empty.device_id) == (0, 0)


def test_the_cuda_array_interface_of_host_memory(pinned):
    view = View.from_cuda_array_interface(Interface(pinned.handle), -1)
    assert view.is_device_accessible and view.__dlpack_device__() == (3, 0)
    np.from_dlpack(view)[:] = 7
    assert (np.from_dlpack(pinned).view(np.int32) == 7).all()


def test_the_cuda_array_interface_of_managed_memory(device):
    address = ok(driver.cuMemAllocManaged(64, 1))
    try:
        view = View.from_cuda_array_interface(Interface(int(address)), -1)
        assert view.is_device_accessible and view.__dlpack_device__()[0] == 13
    finally:
        ok(driver.cuMemFree(address))


@pytest.mark.parametrize(
    ("entries", "error", "text"),
    [
        ({"version": 2}, BufferError, "version 3"),
        ({"data": None}, BufferError, "address"),
        ({"mask": 1}, BufferError, "mask"),
        ({"strides": (6,)}, ValueError, "multiples"),
    ],
)
def test_bad_cuda_array_interfaces(memory, entries, error, text):
    with pytest.raises(error, match=text):
        View.from_cuda_array_interface(Interface(memory.handle, **entries), -1)


def test_the_cuda_array_interface_needs_a_stream(memory):
    with pytest.raises(BufferError, match="ambiguous"):
        View.from_cuda_array_interface(Interface(memory.handle))
    host = np.zeros(4, dtype=np.int32)
    with pytest.raises(BufferError, match="unknown to CUDA"):
        View.from_cuda_array_interface(Interface(host.ctypes.data), -1)


UNORDERED = pytest.mark.finds("race", reason="a consumer that does not wait")


@pytest.mark.parametrize("ordered", [True, pytest.param(False, marks=UNORDERED)])
def test_the_consumer_waits_for_the_producer(device, memory, pinned, ordered):
    producer, consumer = device.create_stream(), device.create_stream()
    result = np.from_dlpack(pinned)
    memory.fill(1, stream=consumer)
    consumer.sync()

    gate = threading.Event()
    builder = producer.create_graph_builder().begin_building()
    builder.callback(lambda: limits.wait(gate))
    graph = builder.end_building().complete()
    graph.launch(producer)
    memory.fill(2, stream=producer)

    asked = int(consumer.handle) if ordered else -1
    view = View.from_cuda_array_interface(Interface(memory.handle, stream=int(producer.handle)), asked)
    source = Buffer.from_handle(view.ptr, 16)
    source.copy_to(pinned, stream=consumer)
    if not ordered:
        consumer.sync()
        assert (result == 1).all()
    gate.set()
    consumer.sync()
    assert (result == (2 if ordered else 1)).all()
    producer.sync()


@pytest.mark.parametrize("producer", [None, "same"])
def test_nothing_to_wait_for(memory, stream, producer):
    entry = int(stream.handle) if producer else None
    assert View.from_cuda_array_interface(Interface(memory.handle, stream=entry), stream.handle).size == 4


def test_default_streams_as_producers(memory, stream):
    for default in (1, 2):
        assert View.from_cuda_array_interface(Interface(memory.handle, stream=default), stream.handle).size == 4


def test_views_of_buffers(memory):
    view = View.from_buffer(memory, (2, 2), dtype=np.dtype("f4"))
    assert (view.ptr, view.device_id, view.is_device_accessible) == (memory.handle, 0, True)
    assert view.__dlpack_device__() == (2, 0) and view.exporting_obj is memory
    for shape, strides in (((5,), None), ((2,), (4,)), ((2, 3), (2, 1))):
        with pytest.raises(ValueError, match="needs"):
            View.from_buffer(memory, shape, strides, itemsize=4)
    outside = Buffer.from_handle(memory.handle, 16)
    assert View.from_buffer(outside, (1000,), itemsize=4).size == 1000  # not checked


def test_cupy_arrays_are_read_by_attribute(run_python):
    done = run_python(PROGRAMS / "cupy_arrays.py")
    assert done.stdout == "seen\n", done.stderr
