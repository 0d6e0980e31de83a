"""Several streams: arrays are ordered by what is done to their memory, and are freed behind all who use it."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import cupola.numpy as np
from cupola import ContextOptions, LegacyPinnedMemoryResource, SMResourceOptions, Stream
from cupola.bindings import driver
from cupola.core.device._stream import enter_stream, leave_stream

N = 3000
SECONDS = 20
Streams = tuple[Stream, Stream]


class Gate:
    """Holds streams back until it is opened. It opens by itself when a test waits for what is held back."""

    def __init__(self) -> None:
        self.memory = LegacyPinnedMemoryResource().allocate(4)
        self.flag = ctypes.c_uint32.from_address(int(self.memory.handle))
        self.flag.value = 0
        self.was_late = False
        self.timer = threading.Timer(SECONDS, self.give_up)
        self.timer.daemon = True
        self.timer.start()

    def give_up(self) -> None:
        self.was_late = True
        self.flag.value = 1

    def hold(self, stream: Stream) -> None:
        (status,) = driver.cuStreamWaitValue32(
            stream.handle, self.memory.handle, 1, driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ
        )
        assert status == driver.CUresult.CUDA_SUCCESS

    def open(self) -> None:
        self.timer.cancel()
        self.flag.value = 1


@pytest.fixture
def gate(device: Any) -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()
    device.sync()
    del made.timer  # which refers to the gate: its memory would be freed at any time, and that waits for the device
    made.memory.close()
    assert not made.was_late, "the host waited for a stream that was held back"


class Open:
    """Holds nothing back: to load what a test needs, since a GPU may wait for all its streams to load a kernel."""

    def hold(self, stream: Stream) -> None:
        pass

    def open(self) -> None:
        pass


@pytest.fixture
def streams(device: Any) -> Streams:
    return device.create_stream(), device.create_stream()


@contextlib.contextmanager
def use(stream: Stream) -> Iterator[None]:
    """As ``with stream:``, without the wait at the end."""
    enter_stream(stream)
    try:
        yield
    finally:
        leave_stream(stream)


def numbers(begin: int = 0) -> Any:
    """Elements that are in memory, and that all streams see."""
    made = np.array(numpy.arange(begin, begin + N, dtype=float))
    made._compute_now()
    return made


def read_what_is_written(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x += 1
    with use(other):
        return x * 2, (numpy.arange(N) + 1.0) * 2


def read_what_is_written_through_a_view(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x[:][...] = 7.0
    with use(other):
        return x * 2, numpy.full(N, 14.0)


def use_what_is_pending(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x += 1
        y = x * 2
    with use(other):
        return y + 3, (numpy.arange(N) + 1.0) * 2 + 3


def reduce_what_is_pending(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x += 1
        y = x * 2
    with use(other):
        return y.sum(), numpy.float64((numpy.arange(N) + 1.0).sum() * 2)


def write_what_is_read(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        total = x.sum()
    with use(other):
        x[...] = 0.0
        x._compute_now()
    return total, numpy.float64(numpy.arange(N).sum())


def write_what_the_writer_reads(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x = numbers()
    with use(first):
        x += 1
        gate.hold(first)
        total = x.sum()
    with use(other):
        y = x + 0  # waits for what was written
        y._compute_now()
        x[...] = 0.0
    return total, numpy.float64((numpy.arange(N) + 1.0).sum())


def free_what_another_reads(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    with use(first):
        x = np.zeros(N) + 5
        x._compute_now()
    gate.hold(other)
    with use(other):
        y = x + 1
        y._compute_now()
    del x
    with use(first):
        taken = [np.full(N, 9.0) for _ in range(8)]  # the memory, if it is free
        for one in taken:
            one._compute_now()
    return y, numpy.full(N, 6.0)


def free_what_is_computed_elsewhere(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    with use(first):
        x = np.zeros(N) + 5
        x._compute_now()
        y = x + 1
        del x
    gate.hold(other)
    with use(other):
        y._compute_now()
    with use(first):
        taken = [np.full(N, 9.0) for _ in range(8)]
        for one in taken:
            one._compute_now()
    return y, numpy.full(N, 6.0)


def free_what_both_read(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    """The stream that has read last is not the one that is held back."""
    with use(first):
        x = np.zeros(N) + 5
        x._compute_now()
    gate.hold(first)
    with use(first):
        y = x + 1
        y._compute_now()
    with use(other):
        z = numbers() + 1
        z._compute_now()
        del z
    with use(other):
        w = np.zeros(N)
        w._compute_now()
        (x * 2)._compute_now()
    del x
    with use(other):
        taken = [np.full(N, 9.0) for _ in range(8)]
        for one in taken:
            one._compute_now()
    return y, numpy.full(N, 6.0)


def free_while_its_stream_is_recorded(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    """As the garbage collector may do it: the release waits for the reader, and the recording goes on."""
    return free_while_recording(gate, first, other, first)


def free_while_its_reader_is_recorded(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    return free_while_recording(gate, first, other, other)


def free_while_recording(gate: Gate | Open, first: Stream, other: Stream, recorded: Stream) -> Any:
    with use(first):
        x = np.zeros(N) + 5
        x._compute_now()
    gate.hold(other)
    with use(other):
        y = x + 1
        y._compute_now()
    with recorded.create_graph_builder() as builder:
        builder.begin_building()
        del x
        builder.end_building()
    with use(first):
        taken = [np.full(N, 9.0) for _ in range(8)]
        for one in taken:
            one._compute_now()
    return y, numpy.full(N, 6.0)


def copy_what_is_written(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x, y = numbers(), numbers(N)
    gate.hold(first)
    with use(first):
        x += 1
    y.copy_from(x, stream=other)
    return y, numpy.arange(N) + 1.0


def matrix_product(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x = np.array(numpy.arange(16.0).reshape(4, 4))
    gate.hold(first)
    with use(first):
        x += 1
    with use(other):
        return x @ x, (numpy.arange(16.0) + 1).reshape(4, 4) @ (numpy.arange(16.0) + 1).reshape(4, 4)


def gather(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x, index = numbers(), np.array(numpy.arange(N)[::-1].copy())
    gate.hold(first)
    with use(first):
        x += 1
    with use(other):
        return x[index], numpy.arange(N)[::-1] + 1.0


def sort(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x *= -1
    with use(other):
        return np.sort(x), numpy.arange(N)[::-1] * -1.0


def with_an_array_for_the_result(gate: Gate | Open, first: Stream, other: Stream) -> Any:
    x, out = numbers(), numbers()
    for _ in range(2):
        np.add(x, 1.0, out=out)  # without a node, from the second time on
    gate.hold(first)
    with use(first):
        total = out.sum()
    with use(other):
        np.add(x, 2.0, out=out)
    return total, numpy.float64((numpy.arange(N) + 1.0).sum())


CASES = [
    read_what_is_written, read_what_is_written_through_a_view, use_what_is_pending, reduce_what_is_pending,
    write_what_is_read, write_what_the_writer_reads, free_what_another_reads, free_what_is_computed_elsewhere,
    free_what_both_read, free_while_its_stream_is_recorded, free_while_its_reader_is_recorded, copy_what_is_written,
    matrix_product, gather, sort, with_an_array_for_the_result,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])
def test_two_streams(case: Callable[..., Any], gate: Gate, streams: Streams, device: Any) -> None:
    """One is held back, and the other one is not: no result says who of them came first."""
    case(Open(), *streams)[0].to_numpy()
    device.sync()
    result, expected = case(gate, *streams)
    result._compute_now()
    gate.open()
    numpy.testing.assert_array_equal(result.to_numpy(), expected)


@pytest.mark.skipif(driver.cuDriverGetVersion()[1] < 12050, reason="the driver is older than CUDA 12.5")
def test_each_context_has_a_default_stream(gate: Gate, device: Any) -> None:
    """That of the primary context is held back, and that of a green one is not."""
    groups, _ = device.resources.sm.split(SMResourceOptions(count=device.resources.sm.min_partition_size))
    green = device.create_context(ContextOptions(groups))
    for each in (Open(), gate):
        x = numbers()
        each.hold(device.default_stream)
        x += 1
        x._compute_now()
        device.set_current(green)
        try:
            y = x * 2
            y._compute_now()
            each.open()
            numpy.testing.assert_array_equal(y.to_numpy(), (numpy.arange(N) + 1.0) * 2)
            del y
        finally:
            device.set_current()


@pytest.mark.skipif(driver.cuDriverGetVersion()[1] < 12050, reason="the driver is older than CUDA 12.5")
@pytest.mark.filterwarnings("error")
def test_arrays_outlive_a_green_context_that_used_them(device: Any) -> None:
    groups, _ = device.resources.sm.split(SMResourceOptions(count=device.resources.sm.min_partition_size))
    green = device.create_context(ContextOptions(groups))
    read, written = numbers(), numbers()
    device.set_current(green)
    try:
        doubled = read * 2
        written += 1
        for one in (doubled, written):
            one._compute_now()
        device.sync()
    finally:
        device.set_current()
    green.close()
    read += 1
    written += 1
    doubled += 1
    numpy.testing.assert_array_equal(read.to_numpy(), numpy.arange(N) + 1.0)
    numpy.testing.assert_array_equal(written.to_numpy(), numpy.arange(N) + 2.0)
    numpy.testing.assert_array_equal(doubled.to_numpy(), numpy.arange(N) * 2.0 + 1)
    del read, written, doubled
    numpy.testing.assert_array_equal(np.zeros(N).to_numpy(), numpy.zeros(N))


def test_readers_run_side_by_side(gate: Gate, streams: Streams, device: Any) -> None:
    """Who reads waits for nobody who reads, and nobody for them."""
    first, other = streams
    x = numbers()
    with use(other):
        (x + 1)._compute_now()
    device.sync()
    gate.hold(first)
    with use(first):
        held = x + 1
        held._compute_now()
    with use(other):
        found = (x + 1).to_numpy()
    numpy.testing.assert_array_equal(found, numpy.arange(N) + 1.0)
    gate.open()
    numpy.testing.assert_array_equal(held.to_numpy(), found)


def test_many_streams_and_closed_ones(device: Any, gate: Gate) -> None:
    for one in (Open(), gate):
        in_many_streams(one, device)


def in_many_streams(gate: Gate | Open, device: Any) -> None:
    x = numbers()
    gate.hold(device.default_stream)
    results = []
    x += 1
    for k in range(40):
        stream = device.create_stream()
        with use(stream):
            results.append(x + k)
            results[-1]._compute_now()
        stream.close()
    x[...] = 0.0
    if isinstance(gate, Gate):
        gate.open()
    for k, one in enumerate(results):
        numpy.testing.assert_array_equal(one.to_numpy(), numpy.arange(N) + 1.0 + k)
    assert not x.to_numpy().any()


@pytest.mark.parametrize("turn", range(5))
def test_threads_read_side_by_side(gate: Gate, device: Any, turn: int) -> None:
    """Each thread reads in a stream of its own, all of them at once; the memory is freed behind all of them."""
    count = 8
    streams = [device.create_stream() for _ in range(count)]
    begin = threading.Barrier(count)
    results: list[Any] = [None] * count
    operands = [np.zeros(N) + 5.0]
    operands[0]._compute_now()
    (operands[0] + 1.0).to_numpy()  # loads the kernel

    def read(k: int) -> None:
        device.set_current()
        gate.hold(streams[k])
        begin.wait()
        with use(streams[k]):
            results[k] = operands[0] + 1.0
            results[k]._compute_now()

    threads = [threading.Thread(target=read, args=(k,)) for k in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    operands.clear()
    taken = [np.full(N, 9.0) for _ in range(4)]
    for one in taken:
        one._compute_now()
    gate.open()
    for one in results:
        numpy.testing.assert_array_equal(one.to_numpy(), numpy.full(N, 6.0))
