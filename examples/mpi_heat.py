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


def start(rows: slice) -> np.ndarray:
    """Some rows of the plate at the beginning: cold, with a hot rectangle. Its edges stay as they are."""
    plate = np.zeros((HEIGHT, WIDTH))
    plate[HEIGHT // 4 : HEIGHT // 2, WIDTH // 3 : WIDTH // 2] = 100
    return plate[rows]


def main() -> None:
    """Compute the strip of this rank, and compare the whole plate with NumPy's on the first."""
    dev = Device.for_rank()
    dev.set_current()
    inner, edges = dev.create_stream(), dev.create_stream()
    comm = mpi.world(stream=edges, timeout=60)  # a rank that is gone is an error after a minute
    rank, size = comm.rank, comm.size
    assert HEIGHT % size == 0, f"{HEIGHT} rows cannot be shared out among {size} ranks"
    rows = HEIGHT // size
    above, below = rank - 1 if rank else MPI.PROC_NULL, rank + 1 if rank + 1 < size else MPI.PROC_NULL

    # The strip has a row of each neighbor at its ends; the plate's own edges are never computed.
    padded = np.vstack([start(slice(0, 1)) * 0, start(slice(rank * rows, (rank + 1) * rows)), start(slice(0, 1)) * 0])
    x, y = dev.array(padded), dev.array(padded)
    first, last = (2 if rank == 0 else 1), (rows if rank == size - 1 else rows + 1)
    step = cupola.compile(SOURCE).get_kernel("step")

    def compute(stream: cupola.Stream, begin: int, end: int) -> None:
        step[LaunchConfig(grid=((WIDTH + 127) // 128, max(end - begin, 1)), block=128), stream](x, y, begin, end, WIDTH)

    for _ in range(STEPS):
        compute(inner, first + 1, last - 1)  # needs no neighbor: runs beside the messages
        comm.Sendrecv(x[1], above, recvbuf=x[rows + 1], source=below)
        comm.Sendrecv(x[rows], below, recvbuf=x[0], source=above)
        compute(edges, first, first + 1)
        compute(edges, last - 1, last)
        inner.wait(edges)
        edges.wait(inner)
        x, y = y, x
    plate = np.empty((HEIGHT, WIDTH)) if rank == 0 else None
    comm.Gather(x[1:-1], plate)
    if plate is None:
        return
    expected = start(slice(None)).copy()
    for _ in range(STEPS):
        middle = expected[1:-1, 1:-1]
        around = expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:]
        expected[1:-1, 1:-1] = middle + 0.2 * (around - 4 * middle)
    np.testing.assert_allclose(plate, expected, rtol=1e-12, atol=1e-12)
    ranks = "1 rank" if size == 1 else f"{size} ranks"
    print(f"{STEPS} steps on {ranks}, as NumPy computes them; the hottest point has {plate.max():.3f} degrees")


if __name__ == "__main__":
    main()
