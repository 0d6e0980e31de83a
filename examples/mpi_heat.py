"""Heat in a plate that lies in strips on the devices of several processes, which exchange rows while they compute.

``mpiexec -n 4 python examples/mpi_heat.py``; alone, it has the whole plate.
"""

import numpy as np
from mpi4py import MPI

import cupola
from cupola import Device, LaunchConfig, mpi

SOURCE = """
// One step for the rows first to last - 1 of a strip.
extern "C" __global__ void step(const double* x, double* y, int first, int last, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = first + blockIdx.y;
    if (column < 1 || column >= width - 1 || row >= last) return;
    const double* at = x + (long long)row * width + column;
    y[(long long)row * width + column] = *at + 0.2 * (at[-width] + at[width] + at[-1] + at[1] - 4 * *at);
}
"""
HEIGHT, WIDTH, STEPS = 240, 256, 50


def start(height: int, width: int, rows: slice = slice(None)) -> np.ndarray:
    """Some rows of the plate at the beginning: cold, with a hot rectangle. Its edges stay as they are."""
    plate = np.zeros((height, width))
    plate[height // 4 : height // 2, width // 3 : width // 2] = 100
    return plate[rows]


def heat(comm: mpi.Comm, dev: Device, edges: cupola.Stream, height: int, width: int, steps: int) -> cupola.Array:
    """The strip of this rank after some steps; the rows at its borders travel in the order of `edges`."""
    rank, size = comm.rank, comm.size
    assert height % size == 0, f"{height} rows cannot be shared out among {size} ranks"
    rows = height // size
    above, below = rank - 1 if rank else MPI.PROC_NULL, rank + 1 if rank + 1 < size else MPI.PROC_NULL

    # The strip has a row of each neighbor at its ends; the plate's own edges are never computed.
    edge = np.zeros((1, width))
    padded = np.vstack([edge, start(height, width, slice(rank * rows, (rank + 1) * rows)), edge])
    x, y = dev.array(padded), dev.array(padded)
    first, last = (2 if rank == 0 else 1), (rows if rank == size - 1 else rows + 1)
    step = cupola.compile(SOURCE).get_kernel("step")
    inner = dev.create_stream()

    def compute(stream: cupola.Stream, begin: int, end: int) -> None:
        step[LaunchConfig(grid=((width + 127) // 128, max(end - begin, 1)), block=128), stream](x, y, begin, end, width)

    for _ in range(steps):
        compute(inner, first + 1, last - 1)  # needs no neighbor: runs beside the messages
        comm.Sendrecv(x[1], above, recvbuf=x[rows + 1], source=below)
        comm.Sendrecv(x[rows], below, recvbuf=x[0], source=above)
        compute(edges, first, first + 1)
        compute(edges, last - 1, last)
        inner.wait(edges)
        edges.wait(inner)
        x, y = y, x
    return x[1:-1]


def main() -> None:
    """Compute the strip of this rank, and compare the whole plate with NumPy's on the first."""
    dev = Device.for_rank()
    dev.set_current()
    edges = dev.create_stream()
    comm = mpi.world(stream=edges, timeout=60)  # a rank that is gone is an error after a minute
    strip = heat(comm, dev, edges, HEIGHT, WIDTH, STEPS)
    plate = np.empty((HEIGHT, WIDTH)) if comm.rank == 0 else None
    comm.Gather(strip, plate)
    if plate is None:
        return
    expected = start(HEIGHT, WIDTH)
    for _ in range(STEPS):
        middle = expected[1:-1, 1:-1]
        around = expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:]
        expected[1:-1, 1:-1] = middle + 0.2 * (around - 4 * middle)
    np.testing.assert_allclose(plate, expected, rtol=1e-12, atol=1e-12)
    ranks = "1 rank" if comm.size == 1 else f"{comm.size} ranks"
    print(f"{STEPS} steps on {ranks}, as NumPy computes them; the hottest point has {plate.max():.3f} degrees")


if __name__ == "__main__":
    main()
