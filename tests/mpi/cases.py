"""What the ranks of test_messages.py do: each function is a case, and all ranks run all of them in this order."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from mpi4py import MPI

from cupola import Array, Device, PinnedMemoryResource, mpi
from cupola.mpi import _communicator, _request, _window

dev = Device.for_rank()
dev.set_current()
stream = dev.create_stream()
comm = mpi.world(stream=stream, timeout=3600)  # the test's limit is less
rank, size = comm.rank, comm.size
right, left = (rank + 1) % size, (rank - 1) % size
mine = np.arange(6, dtype=np.float32) + 10 * rank


def others(number: int) -> np.ndarray:
    return np.arange(6, dtype=np.float32) + 10 * number


def same(array: Array, expected: object) -> None:
    np.testing.assert_array_equal(array.to_numpy(stream=stream), expected)


def on_device(values: object) -> Array:
    return dev.array(values, stream=stream)


def nothing(shape: object = 6, dtype: object = np.float32) -> Array:
    return dev.full(shape, np.dtype(dtype).type(-1), stream=stream)


def send_and_recv() -> None:
    got = nothing()
    if rank == 0:
        for to in range(1, size):
            comm.Send(on_device(mine + to), to, tag=7)
    else:
        status = MPI.Status()
        comm.Recv(got, source=MPI.ANY_SOURCE, tag=7, status=status)
        same(got, others(0) + rank)
        assert status.source == 0 and status.Get_count(MPI.FLOAT) == 6


def without_a_time_limit() -> None:
    plain = mpi.Comm(MPI.COMM_WORLD, stream=stream)
    got, status = nothing(), MPI.Status()
    plain.Sendrecv(on_device(mine), right, recvbuf=got, source=left, status=status)
    same(got, others(left))
    assert status.source == left
    plain.Sendrecv_replace(got, right, source=left)
    same(got, others((left - 1) % size))
    plain.Allreduce(MPI.IN_PLACE, got)
    same(got, sum(others(each) for each in range(size)))


def a_short_message_leaves_the_rest() -> None:
    for plain in (comm, mpi.Comm(MPI.COMM_WORLD, stream=stream)):
        got, apart = nothing(), nothing((3, 2))
        plain.Sendrecv(on_device(mine[:2]), right, recvbuf=got, source=left)
        same(got, [*others(left)[:2], -1, -1, -1, -1])
        plain.Sendrecv(on_device(mine[:2]), right, recvbuf=apart.T, source=left)
        same(apart.T, [[*others(left)[:2], -1], [-1, -1, -1]])


def usual_messages() -> None:
    """The compiled ones, of all types; those that they refuse are for mpi4py."""
    plain = mpi.Comm(MPI.COMM_WORLD, stream=stream)
    for code in "?bBhHiIlLqQfdFD":
        got = dev.zeros(3, code, stream=stream)
        if rank == 0:
            for to in range(1, size):
                plain.Send(on_device(np.array([1, 0, 1], code)), to, 5)
        else:
            status = MPI.Status()
            plain.Recv(got, 0, tag=5, status=status)
            same(got, np.array([1, 0, 1], code))
            assert status.Get_count(MPI.BYTE) == got.nbytes
    wide = on_device(mine.reshape(2, 3))
    plain.Bcast(wide, root=1)
    same(wide, others(1).reshape(2, 3))
    total, got = sum(others(each) for each in range(size)), nothing()
    plain.Reduce(on_device(mine), got, root=1)  # the other ranks' `got` does not count
    same(got, total if rank == 1 else [-1] * 6)
    x = on_device(mine)
    plain.Reduce(MPI.IN_PLACE if rank == 0 else x, x, MPI.MIN)
    same(x, mine if rank else others(0))
    own = MPI.Op.Create(
        lambda a, b, _: np.maximum(np.frombuffer(a, "f"), b := np.frombuffer(b, "f"), out=b), commute=True
    )
    plain.Allreduce(on_device(mine), got, op=own)
    same(got, others(size - 1))
    own.Free()
    alone = mpi.Comm(MPI.COMM_SELF, stream=stream, part=8)  # not in parts: nothing runs beside them
    alone.Allreduce(on_device(mine), got)
    same(got, mine)
    half = on_device(mine.astype(np.float16))
    plain.Sendrecv([half, MPI.BYTE], right, recvbuf=[half_got := nothing(6, np.float16), MPI.BYTE], source=left)
    same(half_got, others(left))


def types_that_numpy_has_two_objects_of() -> None:
    """MPI's type is found by the address of the dtype, or else by what it is."""
    plain = mpi.Comm(MPI.COMM_WORLD, stream=stream)
    twin = np.dtype(np.float32, metadata={"unit": "K"})
    assert twin == np.float32 and twin is not np.dtype(np.float32)
    x, got = dev.empty(6, twin, stream=stream), nothing()
    x.copy_from(on_device(mine), stream=stream)
    plain.Sendrecv(x, right, recvbuf=got, source=left)
    same(got, others(left))
    plain.Allreduce(x, got)
    same(got, sum(others(each) for each in range(size)))
    swapped = np.dtype(">f4")
    got = dev.array(np.zeros(6, swapped), stream=stream)
    try:
        plain.Sendrecv(on_device(mine), right, recvbuf=got, source=left)  # for mpi4py to refuse
    except (KeyError, ValueError, BufferError, MPI.Exception):
        return
    raise AssertionError("a type that MPI does not have")


def how_much_has_come() -> None:
    """The status of a message says, which is read as the library of MPI has it."""
    plain = mpi.Comm(MPI.COMM_WORLD, stream=stream)
    for count in (0, 1, 5, 6):
        got, status = nothing(), MPI.Status()
        request = MPI.COMM_WORLD.Isend([mine, count, MPI.FLOAT], right, 3)
        plain.Recv(got, left, 3, status)
        request.Wait()
        assert status.Get_count(MPI.BYTE) == 4 * count and status.source == left
        same(got, [*others(left)[:count], *[-1] * (6 - count)])
        plain.Sendrecv(on_device(mine), right, 4, got, left, 4)
        same(got, others(left))


def between_two_messages() -> None:
    """What may change about the same objects."""
    plain, x, got = mpi.Comm(MPI.COMM_WORLD, stream=stream), on_device(mine), nothing()
    plain.Sendrecv(x, right, recvbuf=got, source=left)
    plain.stream = other = dev.create_stream()
    got.copy_from(nothing(), stream=stream)
    stream.sync()
    plain.Sendrecv(x, right, recvbuf=got, source=left)
    np.testing.assert_array_equal(got.to_numpy(stream=other), others(left))
    other.close()
    for use in (lambda: plain.Send(x, right), lambda: plain.Allreduce(x, got)):
        try:
            use()
        except RuntimeError as error:
            assert "closed" in str(error), error
        else:
            raise AssertionError("a closed stream")
    plain.stream = stream
    plain.Allreduce(MPI.IN_PLACE, x)
    same(x, sum(others(each) for each in range(size)))
    plain.comm = MPI.COMM_SELF
    plain.Bcast(x, root=0)  # there is no other rank now
    plain.Allreduce(x, got)
    same(got, sum(others(each) for each in range(size)))
    plain.timeout = 3600
    plain.Sendrecv(on_device(mine), 0, recvbuf=got, source=0)
    same(got, mine)
    plain.timeout = None
    got.buffer.close()
    for use in (lambda: plain.Sendrecv(x, 0, recvbuf=got, source=0), lambda: plain.Bcast(got)):
        try:
            use()
        except RuntimeError as error:
            assert "closed" in str(error), error
        else:
            raise AssertionError("a closed array")


def pinned_memory_of_two_streams() -> None:
    """A piece is taken again at once in the stream of its last copies, in others when those are over."""
    stages, other = _communicator.Stages(), dev.create_stream()
    first, second = stages.take(100, stream), stages.take(100, stream)
    assert first is not second
    held = sys.getrefcount(first)
    stages.give_back(first, stream)
    stages.give_back(second, stream)
    assert stages.take(4096, stream) is second and stages.take(1, stream) is first
    assert sys.getrefcount(first) == held
    large = stages.take(4097, stream)
    assert large is not first and large.buffer.size == 8192
    stages.give_back(first, stream)
    stages.give_back(second, stream)
    stream.sync()
    assert stages.take(100, other) is second  # those copies are over
    stages.give_back(second, other)
    assert stages.take(100, stream) is second and stages.take(100, stream) is first
    stages.give_back(first, other)
    stages.give_back(second, stream)
    other.close()
    third = dev.create_stream()
    stream.sync()
    assert stages.take(100, third) is second and stages.take(100, third) is not first  # nobody knows of its copies
    held = sys.getrefcount(second)
    stages.give_back(second, third)
    del stages
    assert sys.getrefcount(second) == held


def threads_with_one_communicator() -> None:
    """They share its pinned memory."""
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return
    alone, failures = mpi.Comm(MPI.COMM_SELF, stream=stream), []

    def exchange(number: int) -> None:
        try:
            dev.set_current()
            own = stream if number % 2 else dev.create_stream()
            to = alone if number % 2 else mpi.Comm(alone, stream=own)
            to._stages = alone._stages
            for turn in range(40):
                x = dev.array(mine + 1000 * number + turn, stream=own)
                got = dev.zeros(6, np.float32, stream=own)
                to.Sendrecv(x, 0, number, got, 0, number)
                np.testing.assert_array_equal(got.to_numpy(stream=own), mine + 1000 * number + turn)
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=exchange, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def what_open_mpi_gets_by_address() -> None:
    """Its collective operations that do not wait would read the addresses of a device themselves."""
    if not dev.name.startswith("cupola"):
        return  # this library of MPI may not take addresses
    was = _communicator.is_cuda_aware, _communicator.only_waits
    _communicator.is_cuda_aware = lambda: True
    try:
        for only_waits in (True, False):
            _communicator.only_waits = lambda only_waits=only_waits: only_waits
            x, y, z = (on_device(mine) for _ in range(3))
            begun = [comm.Iallreduce(MPI.IN_PLACE, x), comm.Irecv(y, left), comm.Isend(z, right)]
            assert [each._sides[-1]._stand_in is not None for each in begun] == [only_waits, False, False]
            mpi.Request.Waitall(begun)
            same(x, sum(others(each) for each in range(size)))
            same(y, others(left))
    finally:
        _communicator.is_cuda_aware, _communicator.only_waits = was


def what_usual_messages_refuse() -> None:
    plain = mpi.Comm(MPI.COMM_SELF, stream=stream)
    x, longer, closed = on_device(mine), nothing(7), nothing()
    closed.buffer.close()
    for wrong, kind in (
        (lambda: plain.Send(x, 5), MPI.Exception),
        (lambda: plain.Allreduce(x, longer), ValueError),
        (lambda: plain.Allreduce(x, nothing(6, np.int32)), ValueError),
        (lambda: plain.Allreduce(x, nothing(), op=3), TypeError),
        (lambda: plain.Recv(nothing(), status=3), TypeError),
        (lambda: plain.Send(closed, 0), RuntimeError),
        (lambda: plain.Send(x, "one"), TypeError),
        (lambda: plain.Bcast(x, root=3), MPI.Exception),
    ):
        try:
            wrong()
        except kind:
            continue
        raise AssertionError(f"{kind.__name__} expected")
    same(longer, [-1] * 7)


def nobody_sends() -> None:
    got = nothing()
    comm.Sendrecv(on_device(mine), MPI.PROC_NULL, recvbuf=got, source=MPI.PROC_NULL)
    same(got, [-1] * 6)


def replace() -> None:
    x = on_device(mine)
    comm.Sendrecv_replace(x, right, source=left)
    same(x, others(left))


def requests() -> None:
    x, got = on_device(mine), nothing()
    under_way = [comm.Irecv(got, source=left), comm.Isend(x, right), comm.Issend(x, right)]
    again = nothing()
    under_way.append(comm.Irecv(again, source=left))
    assert mpi.Request.Waitall(under_way) and mpi.Request.Testall(under_way)
    same(got, others(left))
    same(again, others(left))
    try:
        MPI.Request.Waitall(under_way)
    except TypeError:
        return
    raise AssertionError("mpi4py must not take requests that it cannot complete")


def a_request_that_nobody_keeps() -> None:
    x, got = on_device(mine), nothing()
    comm.Isend(x, right)
    comm.Recv(got, source=left)
    same(got, others(left))


def views_and_bytes() -> None:
    x = on_device(np.arange(12, dtype=np.int32).reshape(3, 4) + 100 * rank)
    got = nothing((4, 3), np.int32)
    comm.Sendrecv(x.T, right, recvbuf=got, source=left)
    same(got, (np.arange(12).reshape(3, 4) + 100 * left).T)
    column = nothing((3, 4), np.int32)
    comm.Sendrecv(x[:, 1], right, recvbuf=column[:, 2], source=left)
    same(column[:, 2], np.arange(12).reshape(3, 4)[:, 1] + 100 * left)
    same(column[:, 3], [-1] * 3)
    buffer = dev.allocate(8, stream=stream)
    comm.Sendrecv(
        x[0, :2].copy_to(dev.empty(2, np.int32, stream=stream), stream=stream), right, recvbuf=buffer, source=left
    )
    same(Array.from_buffer(buffer, 2, np.int32), np.arange(2) + 100 * left)
    comm.Allreduce(MPI.IN_PLACE, [buffer, MPI.INT32_T])
    same(Array.from_buffer(buffer, 2, np.int32), sum(np.arange(2) + 100 * each for each in range(size)))


def pinned_memory_and_arrays_of_the_host() -> None:
    pinned = Array.from_buffer(PinnedMemoryResource().allocate(24, stream=stream), 6, np.float32)
    pinned.copy_from(on_device(mine), stream=stream)  # MPI waits for it
    got, host = nothing(), np.zeros(6, np.float32)
    comm.Sendrecv(pinned, right, recvbuf=got, source=left)
    same(got, others(left))
    comm.Sendrecv(host + mine, right, recvbuf=pinned, source=left)
    same(pinned, others(left))
    comm.Sendrecv(got, left, recvbuf=host, source=right)
    np.testing.assert_array_equal(host, mine)


def collectives() -> None:
    x, total = on_device(mine), sum(others(each) for each in range(size))
    got = nothing()
    comm.Allreduce(x, got)
    same(got, total)
    comm.Reduce(x, got if rank == 1 else None, op=MPI.MAX, root=1)
    same(got, others(size - 1) if rank == 1 else total)
    comm.Bcast(x, root=size - 1)
    same(x, others(size - 1))
    x.copy_from(mine, stream=stream)
    comm.Scan(x, got)
    same(got, sum(others(each) for each in range(rank + 1)))
    got = nothing()
    comm.Exscan(x, got)
    same(got, sum(others(each) for each in range(rank)) if rank else [-1] * 6)
    every = nothing((size, 6))
    comm.Allgather(x, every)
    same(every, [others(each) for each in range(size)])
    comm.Gather(x, every if rank == 0 else None)
    comm.Scatter(every if rank == 0 else None, got)
    same(got, mine)
    spread, came = on_device(np.arange(size, dtype=np.int64) + 10 * rank), nothing(size, np.int64)
    comm.Alltoall(spread, came)
    same(came, rank + 10 * np.arange(size))
    part = nothing(1, np.int64)
    comm.Reduce_scatter_block(spread, part)
    same(part, [sum(rank + 10 * each for each in range(size))])
    comm.Barrier()


def gaps_keep_what_they_have() -> None:
    got = nothing(2 * size)
    comm.Allgatherv(on_device(mine[:1]), [got, [1] * size, [2 * each for each in range(size)], MPI.FLOAT])
    same(got.reshape(size, 2), [[10 * each, -1] for each in range(size)])


def large_ones_are_done_in_parts() -> None:
    small = mpi.Comm(MPI.COMM_WORLD, stream=stream, timeout=3600, part=1000)
    count = 3001
    x = on_device(np.arange(count) * (rank + 1.0))
    if rank == 0:  # arrays of the host take part
        host = np.empty(count)
        small.Allreduce(x.to_numpy(stream=stream), host)
        np.testing.assert_array_equal(host, np.arange(count) * (size * (size + 1) / 2))
    else:
        got = nothing(count, np.float64)
        small.Allreduce(x, got)
        same(got, np.arange(count) * (size * (size + 1) / 2))
    small.Bcast(x, root=1)
    same(x, np.arange(count) * 2.0)


def other_communicators() -> None:
    half = comm.Split(rank % 2)
    assert isinstance(half, mpi.Comm) and half.timeout == 3600
    x = on_device(np.float64([1]))
    half.Allreduce(MPI.IN_PLACE, x)
    same(x, [half.size])
    ring = comm.Create_cart([size], periods=[True])
    source, target = ring.Shift(0, 1)
    got = nothing()
    ring.Sendrecv(on_device(mine), target, recvbuf=got, source=source)
    same(got, others(left))
    assert comm.bcast("text", root=0) == "text" and comm == MPI.COMM_WORLD


def the_current_stream() -> None:
    plain = mpi.world()
    with dev.stream():
        x = dev.array(mine)
        plain.Allreduce(MPI.IN_PLACE, x)
        np.testing.assert_array_equal(x.to_numpy(), sum(others(each) for each in range(size)))
    x = dev.array(mine)  # without a stream, calls wait
    plain.Sendrecv_replace(x, right, source=left)
    np.testing.assert_array_equal(x.to_numpy(), others(left))


def windows() -> None:
    x, one = nothing(size, np.float64), on_device(np.float64([rank]))
    with mpi.Window(x, comm) as window:
        window.Fence()
        for to in range(size):
            window.Put(one, to, rank)
        window.Fence()
        same(x, np.arange(size))
        x.copy_from(np.arange(size) * 10.0 + rank, stream=stream)
        window.Fence()
        got = nothing(size, np.float64)
        window.Get(got, right)
        window.Fence()
        same(got, np.arange(size) * 10.0 + right)
        window.Lock(0)
        window.Accumulate(on_device(np.ones(size)), 0)
        window.Unlock(0)
        comm.Barrier()
        window.Sync()
        same(x, np.arange(size) * 10.0 + rank + (size if rank == 0 else 0))
        comm.Barrier()


def windows_that_mpi_refuses() -> None:
    """Open MPI 4 says no more than that the window is invalid; the error says what to set."""

    def refuse(*arguments: object, comm: object) -> None:
        raise MPI.Exception(code)

    tables = [
        (
            (("Open MPI", (4, 1, 4)), MPI.ERR_WIN, MPI.THREAD_MULTIPLE),
            RuntimeError,
            "MPI4PY_RC_THREAD_LEVEL=serialized",
        ),
        (
            (("Open MPI", (4, 1, 4)), MPI.ERR_WIN, MPI.THREAD_SERIALIZED),
            RuntimeError,
            "(MPI_ERR_WIN). Use UCX",
        ),
        ((("Open MPI", (4, 1, 4)), MPI.ERR_ARG, MPI.THREAD_MULTIPLE), MPI.Exception, ""),
        ((("Open MPI", (5, 0, 1)), MPI.ERR_WIN, MPI.THREAD_MULTIPLE), MPI.Exception, ""),
        ((("MPICH", (4, 1, 4)), MPI.ERR_WIN, MPI.THREAD_MULTIPLE), MPI.Exception, ""),
    ]
    whole = _window.MPI
    try:
        for (vendor, code, level), kind, words in tables:
            changed = {"get_vendor": lambda v=vendor: v, "Query_thread": lambda n=level: n}
            known = {name: getattr(whole, name) for name in ("Exception", "ERR_WIN", "THREAD_MULTIPLE", "Intracomm")}
            _window.MPI = SimpleNamespace(Win=SimpleNamespace(Create=refuse), **known, **changed)
            try:
                mpi.Window(nothing(), comm)
            except RuntimeError as error:  # MPI.Exception is one
                assert type(error) is kind and words in str(error), (vendor, code, level, error)
            else:
                raise AssertionError("a window that MPI refused")
    finally:
        _window.MPI = whole


def what_nobody_sends_is_a_time_limit() -> None:
    got = nothing()
    request = comm.Irecv(got, source=left, tag=99)
    try:
        request.Wait(timeout=0.05)
    except TimeoutError as error:
        assert "Recv was not done within 0.05 s" in str(error)
    else:
        raise AssertionError("it waited for nothing")
    request.Cancel()
    request.Wait()
    same(got, [-1] * 6)


def a_usual_message_that_nobody_answers() -> None:
    short = mpi.Comm(MPI.COMM_WORLD, stream=stream, timeout=0.05)
    got, came = nothing(), nothing()
    try:
        short.Recv(got, left, tag=98)
    except TimeoutError as error:
        assert "Recv was not done within 0.05 s" in str(error)
    else:
        raise AssertionError("it waited for nothing")
    comm.Barrier()
    comm.Send(on_device(mine), right, 98)  # comes where nobody waits any more
    comm.Sendrecv(on_device(mine), right, recvbuf=came, source=left)
    same(came, others(left))
    while _request.forgotten:  # or the limit of all ranks is over
        _request.collect()


def control_c_while_it_waits() -> None:
    """It ends a message that has a time limit, and MPI goes on with the memory until the message is over."""
    limited = mpi.Comm(MPI.COMM_WORLD, stream=stream, timeout=3600)
    begins = threading.Event()

    def sleeps() -> int:
        """How often the main thread has gone to sleep, as it does again and again where it waits for a message."""
        status = Path(f"/proc/self/task/{os.getpid()}/status").read_text()
        return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    def press() -> None:
        begins.wait()
        before = sleeps()
        while sleeps() < before + 50:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    got = nothing()
    try:
        presser.start()
        begins.set()
        limited.Recv(got, left, tag=97)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("nobody has sent anything")
    presser.join()
    comm.Barrier()
    assert _request.forgotten
    comm.Send(on_device(mine), right, 97)  # comes where nobody waits any more
    while _request.forgotten:  # or the limit of all ranks is over
        _request.collect()


def bad_arguments() -> None:
    for wrong, kind in (
        (lambda: mpi.Comm(3), TypeError),
        (lambda: mpi.Comm(MPI.COMM_WORLD, timeout=0), ValueError),
        (lambda: mpi.Comm(MPI.COMM_WORLD, part=0), ValueError),
        (lambda: mpi.Window(nothing((2, 3)).T, MPI.COMM_SELF), ValueError),
        (lambda: comm.Send(nothing()), TypeError),
    ):
        try:
            wrong()
        except kind:
            continue
        raise AssertionError(f"{kind.__name__} expected")
    builder = dev.create_graph_builder()
    builder.begin_building()
    try:
        mpi.Comm(MPI.COMM_WORLD, stream=builder).Send(nothing(), right)
    except ValueError as error:
        assert "not recorded in graphs" in str(error)
    finally:
        builder.end_building()


CASES = [value for value in list(vars().values()) if getattr(value, "__module__", "") == __name__ and callable(value)]
CASES = [case for case in CASES if case.__name__ not in {"others", "same", "on_device", "nothing"}]


def main() -> None:
    results = {}
    for case in CASES:
        try:
            case()
            results[case.__name__] = ""
        except Exception as error:
            if isinstance(error, RuntimeError) and "Open MPI 4 has no way" in str(error):
                results[case.__name__] = f"not here: {error}"  # to all ranks alike, so they go on together
                continue
            results[case.__name__] = f"rank {rank}: {traceback.format_exc()}"
            break  # the ranks are out of step
    found = MPI.COMM_WORLD.gather(results)
    if rank == 0:
        assert found is not None
        json.dump({case.__name__: [each.get(case.__name__, "not run") for each in found] for case in CASES}, sys.stdout)


if __name__ == "__main__":
    main()
