"""The time of a step of examples/mpi_heat.py on the ranks of this job: ``heat.py WIDTH HEIGHT...`` of its plates."""

from __future__ import annotations

import json
import sys
import time

from cupola import Device, mpi
from examples.mpi_heat import heat

FEW, MANY, TURNS = 2, 14, 2


def main(width: int, heights: list[int]) -> None:
    device = Device.for_rank()
    device.set_current()
    edges = device.create_stream()
    comm = mpi.world(stream=edges, timeout=60)

    def seconds(height: int, steps: int) -> float:
        comm.Barrier()
        start = time.perf_counter()
        heat(comm, device, edges, height, width, steps)
        device.sync()
        return float(comm.allreduce(time.perf_counter() - start))

    found = []
    for height in heights:
        seconds(height, 1)  # compiles
        best = min(seconds(height, MANY) - seconds(height, FEW) for _ in range(TURNS))
        found.append(best / (MANY - FEW) / comm.size)
    if comm.rank == 0:
        print(json.dumps({"device": device.name, "seconds": found}))


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(height) for height in sys.argv[2:]])
