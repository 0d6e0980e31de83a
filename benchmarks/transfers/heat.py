"""The time of a step of examples/mpi_heat.py on the ranks of this job: ``heat.py STEPS WIDTH HEIGHT...``."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from cupola import Device, mpi
from examples.mpi_heat import heat

FEW, TURNS = 2, 2  # steps until the clock starts, and how often all is done


class Clock:
    """The communicator for the example, which starts a clock on all ranks when some steps are done."""

    def __init__(self, comm: mpi.Comm, device: Device) -> None:
        self.rank, self.size = comm.rank, comm.size
        self._comm, self._device = comm, device
        self._messages, self._start = 0, 0.0

    def Sendrecv(self, *arguments: Any, **keywords: Any) -> None:
        if self._messages == 2 * FEW:
            self._device.sync()
            self._comm.Barrier()
            self._start = time.perf_counter()
        self._messages += 1
        self._comm.Sendrecv(*arguments, **keywords)

    def seconds(self) -> float:
        self._device.sync()
        return float(self._comm.allreduce(time.perf_counter() - self._start)) / self.size


def main(steps: int, width: int, heights: list[int]) -> None:
    device = Device.for_rank()
    device.set_current()
    edges = device.create_stream()
    comm = mpi.world(stream=edges, timeout=60)

    def seconds(height: int) -> float:
        clock = Clock(comm, device)
        heat(clock, device, edges, height, width, FEW + steps)
        return clock.seconds() / steps

    found = [min(seconds(height) for _ in range(TURNS)) for height in heights]
    if comm.rank == 0:
        print(json.dumps({"device": device.name, "seconds": found}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), [int(height) for height in sys.argv[3:]])
