"""A line fitted by several ranks, each of which has a part of the points: NCCL averages their gradients in every step.

``cupola run --devices 4 -n 4 examples/nccl_allreduce.py``, or with torchrun, mpiexec or srun; alone, it has all points.
On several machines mpiexec and srun need ``MASTER_ADDR``, the host of the first rank, in the environment.
"""

import os
from multiprocessing.connection import Client, Listener
from typing import Any

import numpy as np
from arrays import build

from cupola import Device, LaunchConfig, launch
from cupola.bindings import nccl

SOURCE = r"""
// The gradient of the mean squared error of y = a x + b, by one block.
extern "C" __global__ void gradient(const float* x, const float* y, int n, const float* line, float* to) {
    __shared__ float sums[2];
    if (threadIdx.x < 2) sums[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const float error = line[0] * x[i] + line[1] - y[i];
        atomicAdd(&sums[0], 2 * error * x[i] / n);
        atomicAdd(&sums[1], 2 * error / n);
    }
    __syncthreads();
    if (threadIdx.x < 2) to[threadIdx.x] = sums[threadIdx.x];
}
extern "C" __global__ void step(float* line, const float* gradient, float rate) {
    line[threadIdx.x] -= rate * gradient[threadIdx.x];
}
"""
POINTS, STEPS, RATE = 5040, 60, 0.5

# Variables with the rank and the number of ranks: of torchrun and cupola run, of the mpiexec of Open MPI, of that of
# MPICH, and of srun. SLURM_NTASKS is there in a batch script, too, which is no rank.
PLACES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


def good(result: tuple[Any, ...]) -> Any:
    """What a call of NCCL returned, if it was a success."""
    if result[0] != nccl.ncclResult_t.ncclSuccess:
        raise RuntimeError(f"{result[0].name}: {nccl.ncclGetLastError(None)[1].decode()}")
    return result[1] if len(result) > 1 else None


def place() -> tuple[int, int]:
    """The rank of this process, and how many there are."""
    names = next((names for names in PLACES if set(names) <= set(os.environ)), None)
    return (0, 1) if names is None else (int(os.environ[names[0]]), int(os.environ[names[1]]))


def share_id(rank: int, size: int) -> Any:
    """The same id on all ranks: the first makes it, and hands it out at the address that the ranks were told."""
    port = int(os.environ.get("MASTER_PORT", 29400))
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":  # torchrun itself listens there
        port += 1
    if rank == 0:
        identity = good(nccl.ncclGetUniqueId())
        if size > 1:
            with Listener(("", port), backlog=size, authkey=b"example") as listener:
                for _ in range(size - 1):
                    with listener.accept() as connection:
                        connection.send_bytes(bytes(identity.internal))
        return identity
    identity = nccl.ncclUniqueId()
    while True:
        try:
            with Client((os.environ.get("MASTER_ADDR", "localhost"), port), authkey=b"example") as connection:
                identity.internal = connection.recv_bytes()
                return identity
        except ConnectionRefusedError:  # the first rank is not there yet
            continue


def main() -> None:
    """Fit the line, and compare it with NumPy's on the first rank."""
    rank, size = place()
    dev = Device.for_rank()
    dev.set_current()
    stream = dev.create_stream()
    comm = good(nccl.ncclCommInitRank(size, share_id(rank, size), rank))

    points = np.random.default_rng(7)
    x = points.uniform(-1, 1, POINTS).astype(np.float32)
    y = (3 * x - 1 + points.normal(0, 0.1, POINTS)).astype(np.float32)
    mine = slice(rank, None, size)  # every rank has as many points as any other
    assert POINTS % size == 0, f"{POINTS} points cannot be shared out among {size} ranks"

    module = build(dev, SOURCE)
    gradient, step = module.get_kernel("gradient"), module.get_kernel("step")
    own_x, own_y = dev.array(x[mine].copy(), stream=stream), dev.array(y[mine].copy(), stream=stream)
    line, change = dev.zeros(2, np.float32, stream=stream), dev.zeros(2, np.float32, stream=stream)
    where = int(change.buffer.handle)
    kind, average = nccl.ncclDataType_t.ncclFloat, nccl.ncclRedOp_t.ncclAvg
    for _ in range(STEPS):
        launch(stream, LaunchConfig(grid=1, block=256), gradient, own_x, own_y, own_x.size, line, change)
        good(nccl.ncclAllReduce(where, where, 2, kind, average, comm, int(stream.handle)))  # in stream order
        launch(stream, LaunchConfig(grid=1, block=2), step, line, change, np.float32(RATE))
    slope, offset = line.to_numpy(stream=stream)
    good(nccl.ncclCommDestroy(comm))

    wanted = np.polyfit(x, y, 1)
    assert np.allclose([slope, offset], wanted, atol=1e-3), (slope, offset, wanted)
    if rank == 0:
        print(f"y = {slope:.3f} x {offset:+.3f}, by {size} rank{'s' * (size > 1)}, as NumPy has it")


if __name__ == "__main__":
    main()
