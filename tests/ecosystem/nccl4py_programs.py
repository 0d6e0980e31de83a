"""Programs with nccl4py on all devices of a process, written for CUDA Python.

usage: cupola run --device cpu --devices 3 tests/ecosystem/nccl4py_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import sys

import nccl.core as nccl
import numpy as np
from cuda.core import Device

DEVICES = list(Device.get_all_devices())
RANKS = range(len(DEVICES))


def start(values):
    """Communicators and streams of all devices, and an array on each."""
    comms = nccl.Communicator.init_all(list(RANKS))
    streams, arrays = [], []
    for rank, device in enumerate(DEVICES):
        device.set_current()
        streams.append(device.create_stream())
        arrays.append(device.array(values(rank), stream=streams[rank]))
    return comms, streams, arrays


def each(call):
    with nccl.group():
        for rank in RANKS:
            call(rank)


def results(streams, arrays):
    found = []
    for device, stream, array in zip(DEVICES, streams, arrays, strict=True):
        device.set_current()
        found.append(array.to_numpy(stream=stream))
    return found


def arrays():
    comms, streams, x = start(lambda rank: np.arange(100, dtype=np.float32) + rank)
    each(lambda rank: comms[rank].allreduce(x[rank], x[rank], nccl.SUM, stream=streams[rank]))
    for found in results(streams, x):
        assert (found == sum(np.arange(100) + rank for rank in RANKS)).all()
    for comm in comms:
        comm.destroy()


def buffers():
    """Buffers of NCCL and of cupola, which NCCL takes with a type."""
    comms, streams, x = start(lambda rank: np.arange(12, dtype=np.int32) * (rank + 1))
    y = []
    for device, stream in zip(DEVICES, streams, strict=True):
        device.set_current()
        y.append(device.array(np.zeros(12 * len(DEVICES), np.int32), stream=stream))
    each(lambda rank: comms[rank].allgather(x[rank], y[rank], stream=streams[rank]))
    for found in results(streams, y):
        assert (found == np.concatenate([np.arange(12) * (rank + 1) for rank in RANKS])).all()
    DEVICES[0].set_current()
    assert nccl.mem_alloc(4096).size == 4096
    for comm in comms:
        comm.destroy()


def messages():
    comms, streams, x = start(lambda rank: np.full(50, float(rank)))
    _, _, y = start(lambda rank: np.zeros(50))

    def around(rank):
        comms[rank].send(x[rank], (rank + 1) % len(DEVICES), stream=streams[rank])
        comms[rank].recv(y[rank], (rank - 1) % len(DEVICES), stream=streams[rank])

    for stream in streams:
        stream.sync()
    each(around)
    for rank, found in enumerate(results(streams, y)):
        assert (found == (rank - 1) % len(DEVICES)).all()


def split():
    comms, streams, x = start(lambda rank: np.full(10, 2.0**rank))
    parts = {}

    def part(rank):
        parts[rank] = comms[rank].split(rank % 2, rank)

    each(part)
    each(lambda rank: parts[rank].allreduce(x[rank], x[rank], nccl.SUM, stream=streams[rank]))
    for rank, found in enumerate(results(streams, x)):
        assert (found == sum(2.0**other for other in RANKS if other % 2 == rank % 2)).all()


PROGRAMS = {f.__name__: f for f in (arrays, buffers, messages, split)}

if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        PROGRAMS[name]()
        print(f"{name} agrees with NumPy")
