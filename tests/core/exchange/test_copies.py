"""Copies between buffers and host arrays, with options, and in batches."""

from __future__ import annotations

import array
import ctypes
import gc
import pickle
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from cupola import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    CUDAError,
    Host,
    LegacyPinnedMemoryResource,
    PinnedMemoryResource,
)
from cupola.utils import CopyOptions, MemcpyOverlapMode, MemcpySrcAccessOrder, StridedMemoryView, copy_batch
from tests.cpu.driver.calls import HostWork
from tests.limits import eventually

PROGRAMS = Path(__file__).with_name("programs")

DATA = bytes(range(256)) * 4


@pytest.fixture
def buffer(device, stream):
    buffer = device.allocate(len(DATA), stream=stream)
    buffer.fill(0, stream=stream)
    yield buffer
    buffer.close(stream)


@pytest.fixture
def host(device):
    work = HostWork()
    yield work
    work.close()


class DLPackOnly:
    """An array that offers DLPack and nothing else, as those of some libraries."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, *, stream=None, **keywords):
        return self.values.__dlpack__(**keywords)  # NumPy knows no streams

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


def as_view(values):
    return StridedMemoryView.from_any_interface(DLPackOnly(values), stream_ptr=-1)


def read(buffer, stream) -> bytes:
    found = bytearray(buffer.size)
    buffer.copy_to(found, stream=stream)
    return bytes(found)


def numbers(dtype) -> np.ndarray:
    return np.frombuffer(bytearray(DATA), dtype=dtype)


ARRAYS = {
    "bytearray": lambda: bytearray(DATA),
    "memoryview": lambda: memoryview(bytearray(DATA)),
    "array.array": lambda: array.array("i", DATA),
    "ctypes": lambda: (ctypes.c_ubyte * len(DATA)).from_buffer_copy(DATA),
    "numpy": lambda: numbers(np.float32),
    "numpy matrix": lambda: numbers(np.int16).reshape(8, 64),
    "numpy matrix by columns": lambda: np.asfortranarray(numbers(np.int16).reshape(8, 64)),
    "numpy records": lambda: numbers([("a", "<i4"), ("b", "<f4")]),
    "numpy dates": lambda: numbers("<M8[s]"),
    "DLPack": lambda: DLPackOnly(numbers(np.int32).reshape(16, 16)),
}


def content(values) -> bytes:
    """The bytes of an array in row-major order."""
    if isinstance(values, DLPackOnly):
        values = values.values
    if isinstance(values, np.ndarray):
        return values.tobytes()
    return bytes(values)


# --- host arrays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARRAYS)
def test_host_arrays(stream, buffer, name):
    source, target = ARRAYS[name](), ARRAYS[name]()
    assert content(source) == DATA
    memory = target.values if isinstance(target, DLPackOnly) else target
    if isinstance(memory, np.ndarray):
        ctypes.memset(memory.ctypes.data, 77, 4)
    else:
        memoryview(memory).cast("B")[:4] = b"gone"
    assert content(target) != DATA
    assert buffer.copy_from(source, stream=stream) is None
    assert buffer.copy_to(target, stream=stream) is target
    stream.sync()
    assert content(target) == DATA


def test_read_only_sources(stream, buffer):
    target = bytearray(len(DATA))
    frozen = numbers(np.int64)
    frozen.flags.writeable = False
    for source in (DATA, memoryview(DATA), frozen):
        buffer.fill(0, stream=stream)
        buffer.copy_from(source, stream=stream)
        buffer.copy_to(target, stream=stream)
        stream.sync()
        assert target == DATA


@pytest.mark.parametrize("make", [lambda: DATA, lambda: memoryview(DATA), lambda: np.frombuffer(DATA, np.uint8)])
def test_read_only_destinations(stream, buffer, make):
    with pytest.raises(ValueError, match="must be writable"):
        buffer.copy_to(make(), stream=stream)


def test_read_only_destinations_with_dlpack(stream, buffer):
    frozen = numbers(np.int32)
    frozen.flags.writeable = False
    try:
        frozen.__dlpack__(max_version=(1, 0))
    except (TypeError, BufferError):
        pytest.skip("this NumPy does not export read-only arrays")
    with pytest.raises(ValueError, match="read-only"):
        buffer.copy_to(DLPackOnly(frozen), stream=stream)


# Arrays of as many bytes as DATA, whose elements do not lie one behind the other in row-major order.
STRIDED = {
    "transposed": lambda: np.arange(256, dtype=np.int32).reshape(8, 32).T,
    "in the order of Fortran": lambda: np.asfortranarray(np.arange(512, dtype=np.int16).reshape(16, 32)),
    "three dimensions": lambda: np.arange(128, dtype=np.float64).reshape(4, 8, 4).transpose(2, 0, 1),
    "gaps": lambda: np.arange(2048, dtype=np.uint8)[::2],
    "rows with gaps": lambda: np.arange(2048, dtype=np.uint8).reshape(32, 64)[:, :32],
    "backwards": lambda: np.arange(256, dtype=np.int32)[::-1],
}


@pytest.mark.parametrize("wrap", [np.asarray, DLPackOnly, as_view])
@pytest.mark.parametrize("make", STRIDED.values(), ids=STRIDED)
class TestStridedArrays:
    def test_from(self, stream, buffer, make, wrap):
        array = make()
        buffer.copy_from(wrap(array), stream=stream)
        assert read(buffer, stream) == array.tobytes()

    def test_to(self, stream, buffer, make, wrap):
        array = make()
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        before = whole.copy()
        buffer.copy_from(DATA, stream=stream)
        buffer.copy_to(wrap(array), stream=stream)
        assert array.tobytes() == DATA
        array[...] = make()
        assert np.array_equal(whole, before)  # also what lies between the elements

    def test_with_options(self, cuda_13, stream, buffer, make, wrap):
        array = make()
        for order in ("stream", "during_api_call", "any"):
            buffer.copy_from(wrap(array), stream=stream, options=CopyOptions(src_access_order=order))
            assert read(buffer, stream) == array.tobytes()
            buffer.copy_to(wrap(array), stream=stream, options=CopyOptions(src_access_order=order))
            assert array.tobytes() == make().tobytes()

    def test_graphs_refuse_them(self, stream, buffer, make, wrap):
        builder = stream.create_graph_builder().begin_building()
        for operation in (buffer.copy_from, buffer.copy_to):
            with pytest.raises(ValueError, match="must be contiguous.*graph"):
                operation(wrap(make()), stream=builder)
        builder.end_building().close()


@pytest.mark.parametrize("wrap", [np.asarray, DLPackOnly, as_view])
def test_strided_arrays_in_pinned_memory_are_refused(stream, buffer, wrap):
    """Copies of it are in the order of the stream, so the host cannot gather its elements during the call."""
    pinned = np.from_dlpack(LegacyPinnedMemoryResource().allocate(len(DATA))).view(np.int32).reshape(16, 16)
    for operation in (buffer.copy_from, buffer.copy_to):
        with pytest.raises(ValueError, match=r"must be contiguous in row-major order: .*ascontiguousarray.*array.T"):
            operation(wrap(pinned.T), stream=stream)
        operation(wrap(pinned), stream=stream)


@pytest.mark.parametrize("wrap", [np.asarray, DLPackOnly, bytearray])
def test_other_sizes(stream, buffer, wrap):
    short = wrap(np.zeros(len(DATA) - 8, np.uint8))
    with pytest.raises(ValueError, match="the source has 1016 bytes, the destination 1024"):
        buffer.copy_from(short, stream=stream)
    with pytest.raises(ValueError, match="the source has 1024 bytes, the destination 1016"):
        buffer.copy_to(short, stream=stream)


def test_arrays_and_closed_buffers(stream, buffer):
    other = Buffer.from_handle(buffer.handle, 4)
    other.close()
    for operation in (other.copy_from, other.copy_to):
        with pytest.raises(RuntimeError, match="Buffer has been closed"):
            operation(bytearray(4), stream=stream)


def test_nothing_to_copy(device, stream):
    with device.allocate(0, stream=stream) as nothing:
        nothing.copy_from(b"", stream=stream)
        empty = np.empty((0, 3))
        assert nothing.copy_to(empty, stream=stream) is empty


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_pageable_memory_is_done_with_when_the_call_returns(device, stream, host, size):
    target = device.allocate(size, stream=stream)
    source, back = np.full(size, 5, np.uint8), np.empty(size, np.uint8)
    host.block(stream.handle)
    timer = threading.Timer(0.05, host.release)  # the driver may wait for the stream
    timer.start()
    target.copy_from(source, stream=stream)
    source[:] = 0
    target.copy_to(back, stream=stream)
    assert (back == 5).all()
    timer.join()
    stream.sync()
    target.close(stream)


def pinned_array(stream, size):
    """A NumPy array in page-locked memory, and a weak reference to what keeps the memory alive."""
    memory = PinnedMemoryResource().allocate(size, stream=stream)
    stream.sync()
    return np.from_dlpack(memory), weakref.ref(memory)


@pytest.mark.parametrize("wrap", [np.asarray, DLPackOnly])
@pytest.mark.parametrize("direction", ["from", "to"])
def test_arrays_live_until_the_copy_is_done(stream, buffer, host, wrap, direction):
    values, kept = pinned_array(stream, len(DATA))
    host.block(stream.handle)
    getattr(buffer, f"copy_{direction}")(wrap(values), stream=stream)
    del values
    gc.collect()
    assert kept() is not None, "the copy is still to be done"
    host.release()
    stream.sync()
    assert eventually(lambda: kept() is None)


def test_exports_end_with_the_copy(stream, buffer):
    target = bytearray(len(DATA))
    buffer.copy_to(target, stream=stream)
    target.append(1)  # a BufferError as long as somebody has the memory


def test_graphs_keep_arrays(device, stream, buffer):
    values, kept = pinned_array(stream, len(DATA))
    values[:] = 1
    builder = device.create_graph_builder().begin_building()
    buffer.copy_from(values, stream=builder)
    graph = builder.end_building().complete()
    values[:] = 2  # the graph reads it when it runs
    del values, builder
    gc.collect()
    graph.launch(stream)
    back = np.empty(len(DATA), np.int8)
    buffer.copy_to(back, stream=stream)
    stream.sync()
    assert (back == 2).all() and kept() is not None
    graph.close()
    del graph
    assert eventually(lambda: gc.collect() is not None and kept() is None)


# --- older spellings --------------------------------------------------------------------------------------


def test_the_stream_by_position(device, stream, buffer):
    resource = device.memory_resource
    other = resource.allocate(len(DATA), stream=stream)
    calls = [
        ("allocate(size", lambda s, **k: resource.allocate(16, s, **k)),
        ("allocate(size", lambda s, **k: device.allocate(16, s, **k)),
        ("copy_to(dst", lambda s, **k: buffer.copy_to(other, s, **k)),
        ("copy_from(src", lambda s, **k: buffer.copy_from(other, s, **k)),
        ("fill(value", lambda s, **k: buffer.fill(1, s, **k)),
    ]
    for text, call in calls:
        with pytest.warns(
            DeprecationWarning, match=rf"{text}, stream\) is now {text}, stream=stream\)".replace("(", r"\(")
        ) as warned:
            call(stream)
        assert warned[0].filename == __file__ and len(warned) == 1
        with pytest.raises(TypeError, match="given twice"):
            call(stream, stream=stream)
    other.close(stream)  # which always was possible


# --- options ----------------------------------------------------------------------------------------------


def test_copy_options():
    plain = CopyOptions()
    assert plain.src_access_order is MemcpySrcAccessOrder.STREAM and plain.overlap_mode is MemcpyOverlapMode.DEFAULT
    assert plain == CopyOptions("stream", None, None, "default") != CopyOptions("any")
    other = CopyOptions(src_access_order="during_api_call", src_location_hint=Host(), overlap_mode="default")
    assert other.src_access_order is MemcpySrcAccessOrder.DURING_API_CALL
    assert len({plain, CopyOptions(), other}) == 2 and pickle.loads(pickle.dumps(other)) == other
    with pytest.raises(AttributeError):
        plain.src_access_order = "any"
    with pytest.raises(ValueError, match=r"invalid src_access_order 'soon'.*'stream', 'during_api_call', 'any'"):
        CopyOptions("soon")
    with pytest.raises(ValueError, match="invalid overlap_mode"):
        CopyOptions(overlap_mode=3)


@pytest.mark.usefixtures("cuda_13")
@pytest.mark.parametrize("order", list(MemcpySrcAccessOrder))
@pytest.mark.parametrize("overlap", list(MemcpyOverlapMode))
def test_copies_with_options(device, stream, buffer, order, overlap):
    options = CopyOptions(order, Host(), device, overlap)
    source, target = numbers(np.uint8), np.empty(len(DATA), np.uint8)
    buffer.copy_from(source, stream=stream, options=options)
    if order == "during_api_call":
        source[:] = 0
    with device.allocate(len(DATA), stream=stream) as other:
        stream.sync()
        assert buffer.copy_to(other, stream=stream, options=options) is other
        stream.sync()
        other.copy_to(target, stream=stream)
    stream.sync()
    assert target.tobytes() == DATA


@pytest.mark.usefixtures("cuda_13")
def test_bad_options(device, stream, buffer):
    with device.allocate(len(DATA), stream=stream) as other:
        for wrong in ({"src_access_order": "any"}, "any", 1):
            with pytest.raises(TypeError, match="CopyOptions"):
                buffer.copy_to(other, stream=stream, options=wrong)
            with pytest.raises(TypeError, match="CopyOptions"):
                copy_batch(stream, [buffer], [other], options=wrong)
        for options in (CopyOptions(src_location_hint=0), CopyOptions(dst_location_hint="host")):
            with pytest.raises(TypeError, match="Device or a Host"):
                buffer.copy_to(other, stream=stream, options=options)
            with pytest.raises(TypeError, match="Device or a Host"):
                copy_batch(stream, [buffer], [other], options=options)
        with pytest.raises(TypeError, match="legacy default stream"):
            buffer.copy_to(other, stream=LEGACY_DEFAULT_STREAM, options=CopyOptions())
        stream.sync()
        buffer.copy_to(other, stream=PER_THREAD_DEFAULT_STREAM, options=CopyOptions())
        PER_THREAD_DEFAULT_STREAM.sync()
        builder = stream.create_graph_builder().begin_building()
        for capturing in (builder, stream):
            with pytest.raises(TypeError, match="captured"):
                buffer.copy_to(other, stream=capturing, options=CopyOptions())
        assert builder.is_building
        builder.close()


# --- batches ----------------------------------------------------------------------------------------------


@pytest.fixture
def pairs(device, stream):
    """Three buffers with 1, 2, 3 in them, and three empty ones, of three sizes."""
    sizes = (64, 1 << 16, 1000)
    sources = [device.allocate(size, stream=stream) for size in sizes]
    targets = [device.allocate(size, stream=stream) for size in sizes]
    for value, source in enumerate(sources, 1):
        source.fill(value, stream=stream)
    for target in targets:
        target.fill(0, stream=stream)
    stream.sync()
    yield sources, targets
    for made in (*sources, *targets):
        made.close(stream)


SOME_OPTIONS = [
    None,
    CopyOptions(),
    CopyOptions("any", overlap_mode="prefer_overlap_with_compute"),
    [CopyOptions("any"), CopyOptions("stream"), CopyOptions("stream")],
    (CopyOptions("any"), CopyOptions("any"), CopyOptions(src_location_hint=Host())),
]


@pytest.mark.parametrize("options", SOME_OPTIONS, ids=range(len(SOME_OPTIONS)))
def test_batches(stream, pairs, options):
    sources, targets = pairs
    assert copy_batch(stream, sources, tuple(targets), options=options) is None
    for value, target in enumerate(targets, 1):
        back = np.empty(target.size, np.uint8)
        target.copy_to(back, stream=stream)
        stream.sync()
        assert (back == value).all()


@pytest.mark.usefixtures("cuda_13")
def test_a_batch_that_reads_during_the_call(device, stream, buffer):
    owner = numbers(np.uint8)
    source = Buffer.from_handle(owner.ctypes.data, owner.nbytes, owner=owner)
    copy_batch(stream, [source], [buffer], options=CopyOptions("during_api_call"))
    owner[:] = 0
    back = np.empty_like(owner)
    buffer.copy_to(back, stream=stream)
    stream.sync()
    assert back.tobytes() == DATA


def test_bad_batches(device, stream, pairs):
    sources, targets = pairs
    closed = Buffer.from_handle(0x1000, 64)
    closed.close()
    options = CopyOptions()
    builder = device.create_graph_builder()
    cases = [
        (None, sources, targets, None, TypeError, "needs a Stream"),
        (builder, sources, targets, None, TypeError, r"Buffer.copy_to\(dst, stream=builder\)"),
        (LEGACY_DEFAULT_STREAM, sources, targets, None, TypeError, "legacy default stream"),
        (stream, sources[0], targets, None, TypeError, "copy_to"),
        (stream, sources, targets[0], None, TypeError, "copy_from"),
        (stream, (s for s in sources), targets, None, TypeError, "srcs must be a sequence"),
        (stream, sources, set(targets), None, TypeError, "dsts must be a sequence"),
        (stream, [], [], None, ValueError, "at least one"),
        (stream, [b"x"], targets, None, TypeError, r"srcs\[0\] must be a Buffer, got bytes"),
        (stream, [closed], targets, None, RuntimeError, "closed"),
        (stream, sources, targets[:2], None, ValueError, "3 sources and 2 destinations"),
        (
            stream,
            sources,
            targets[::-1],
            None,
            ValueError,
            "pair 0 differ: the source has 64 bytes, the destination 1000",
        ),
        (stream, sources, targets, [options], ValueError, "3 copies and 1 options"),
        (stream, sources, targets, [options, None, options], TypeError, "CopyOptions"),
        (stream, sources, targets, {"src_access_order": "any"}, TypeError, "CopyOptions"),
        (stream, sources, targets, "any", TypeError, "CopyOptions"),
    ]
    for queue, srcs, dsts, chosen, error, text in cases:
        with pytest.raises(error, match=text):
            copy_batch(queue, srcs, dsts, options=chosen)
    builder = stream.create_graph_builder().begin_building()
    with pytest.raises(TypeError, match="captured"):
        copy_batch(stream, sources, targets)
    assert builder.is_building
    builder.close()


@pytest.mark.cpu_only  # a GPU's driver reports it later, or not at all
def test_the_driver_checks_batches(stream, pairs):
    sources, targets = pairs
    with pytest.raises(CUDAError, match="past the end"):
        copy_batch(
            stream, [Buffer.from_handle(sources[0].handle, 1 << 20)], [Buffer.from_handle(targets[0].handle, 1 << 20)]
        )


def test_two_devices_in_a_batch(run_on_devices):
    done = run_on_devices(2, PROGRAMS / "batch_of_two_devices.py")
    assert done.stdout == "ok\n", done.stderr
