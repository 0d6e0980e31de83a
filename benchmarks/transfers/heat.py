"""The time of a step of examples/mpi_heat.py on the ranks of this job: ``heat.py HEIGHT WIDTH`` of its plate."""

from __future__ import annotations

import json
import sys
import time

from cupola import Device, mpi
from examples.mpi_heat import heat

FEW, MANY, TURNS = 5, 25, 3


def main(height: int, width: int) -> None:
    device = Device.for_rank()
    device.set_current()
    edges = device.create_stream()
    comm = mpi.world(stream=edges, timeout=60)

    def seconds(steps: int) -> float:
        comm.Barrier()
        start = time.perf_counter()
        heat(comm, device, edges, height, width, steps)
        device.sync()
        return float(comm.allreduce(time.perf_counter() - start))

    seconds(1)  # compiles
    best = min(seconds(MANY) - seconds(FEW) for _ in range(TURNS)) / (MANY - FEW) / comm.size
    if comm.rank == 0:
        print(json.dumps({"device": device.name, "seconds": best}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
