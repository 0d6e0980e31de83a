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
from cupola import LegacyPinnedMemoryResource, Stream
from cupola.bindings import driver
from cupola.core.device._stream import enter_stream, leave_stream

N = 3000
Streams = tuple[Stream, Stream]


class Gate:
    """Holds streams back until it is opened."""

    def __init__(self) -> None:
        self.memory = LegacyPinnedMemoryResource().allocate(4)
        self.flag = ctypes.c_uint32.from_address(int(self.memory.handle))
        self.flag.value = 0

    def hold(self, stream: Stream) -> None:
        (status,) = driver.cuStreamWaitValue32(
            stream.handle, self.memory.handle, 1, driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ
        )
        assert status == driver.CUresult.CUDA_SUCCESS

    def open(self) -> None:
        self.flag.value = 1


@pytest.fixture
def gate(device: Any) -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()
    device.sync()


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


def read_what_is_written(gate: Gate, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x += 1
    with use(other):
        return x * 2, (numpy.arange(N) + 1.0) * 2


def read_what_is_written_through_a_view(gate: Gate, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x[:][...] = 7.0
    with use(other):
        return x * 2, numpy.full(N, 14.0)


def use_what_is_pending(gate: Gate, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x += 1
        y = x * 2
    with use(other):
        return y + 3, (numpy.arange(N) + 1.0) * 2 + 3


def reduce_what_is_pending(gate: Gate, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x += 1
        y = x * 2
    with use(other):
        return y.sum(), numpy.float64((numpy.arange(N) + 1.0).sum() * 2)


def write_what_is_read(gate: Gate, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        total = x.sum()
    with use(other):
        x[...] = 0.0
        x._compute_now()
    return total, numpy.float64(numpy.arange(N).sum())


def write_what_the_writer_reads(gate: Gate, first: Stream, other: Stream) -> Any:
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


def free_what_another_reads(gate: Gate, first: Stream, other: Stream) -> Any:
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


def free_what_is_computed_elsewhere(gate: Gate, first: Stream, other: Stream) -> Any:
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


def free_what_both_read(gate: Gate, first: Stream, other: Stream) -> Any:
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


def copy_what_is_written(gate: Gate, first: Stream, other: Stream) -> Any:
    x, y = numbers(), numbers(N)
    gate.hold(first)
    with use(first):
        x += 1
    y.copy_from(x, stream=other)
    return y, numpy.arange(N) + 1.0


def matrix_product(gate: Gate, first: Stream, other: Stream) -> Any:
    x = np.array(numpy.arange(16.0).reshape(4, 4))
    gate.hold(first)
    with use(first):
        x += 1
    with use(other):
        return x @ x, (numpy.arange(16.0) + 1).reshape(4, 4) @ (numpy.arange(16.0) + 1).reshape(4, 4)


def gather(gate: Gate, first: Stream, other: Stream) -> Any:
    x, index = numbers(), np.array(numpy.arange(N)[::-1].copy())
    gate.hold(first)
    with use(first):
        x += 1
    with use(other):
        return x[index], numpy.arange(N)[::-1] + 1.0


def sort(gate: Gate, first: Stream, other: Stream) -> Any:
    x = numbers()
    gate.hold(first)
    with use(first):
        x *= -1
    with use(other):
        return np.sort(x), numpy.arange(N)[::-1] * -1.0


def with_an_array_for_the_result(gate: Gate, first: Stream, other: Stream) -> Any:
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
    free_what_both_read, copy_what_is_written, matrix_product, gather, sort, with_an_array_for_the_result,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])
def test_two_streams(case: Callable[..., Any], gate: Gate, streams: Streams, device: Any) -> None:
    """One is held back, and the other one is not: no result says who of them came first."""
    case(type("Open", (), {"hold": lambda self, stream: None})(), *streams)  # compiles what it needs
    device.sync()
    result, expected = case(gate, *streams)
    result._compute_now()
    gate.open()
    numpy.testing.assert_array_equal(result.to_numpy(), expected)


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


def test_many_streams_and_closed_ones(gate: Gate, device: Any) -> None:
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
