"""One rank of the job: both sides of each transfer, which take turns. The first rank prints the times as JSON."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupola
from cupola import Array, Device
from cupola.bindings import nccl
from cupola.pathfinder import load_nvidia_dynamic_lib

TURNS = 5
Measure = Callable[[int, int], float]  # of so many rounds and bytes: seconds of a round
kept: list[Array] = []  # memory of which a side has the address
Sides = dict[str, tuple[Measure, Measure]]  # operation -> that of C, that of cupola


def rounds_of(size: int) -> int:
    """As many on every rank: a tenth of a second of small messages, and a few large ones."""
    return max(4, min(400, (32 << 20) // size))


def library(name: str) -> str:
    """The library that this process drives devices with."""
    if Device(0).name.startswith("cupola"):
        from cupola.cpu.libcuda import library_path

        return library_path({"cuda": "_libcuda", "nccl": "_libnccl2"}[name])
    found = load_nvidia_dynamic_lib(name).abs_path
    assert found is not None
    return found


def build(source: str, *arguments: str) -> ctypes.CDLL:
    """Compile a file of C that lies beside this one."""
    here, include = Path(__file__).parent, Path(cupola.__file__).parent / "bindings" / "include"
    target = Path(tempfile.mkdtemp()) / "side.so"
    command = [os.environ.get("CC", "gcc"), "-O2", "-shared", "-fPIC", f"-I{include}", f"-I{here}", *arguments]
    subprocess.run([*command, str(here / source), "-o", str(target), "-ldl", *arguments], check=True)
    found = ctypes.CDLL(str(target))
    for name in ("side_halo", "side_all_reduce"):
        getattr(found, name).restype = ctypes.c_double
    return found


def measure_of(function: Any) -> Measure:
    return lambda rounds, size: float(function(ctypes.c_int(rounds), ctypes.c_size_t(size)))


def mpi_sides(device: Device, most: int) -> tuple[Sides, int, Callable[[float], float]]:
    """The two sides of MPI, this rank, and what makes of a time that of the slowest rank."""
    from mpi4py import MPI

    from cupola import mpi

    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libmpi" in line}
    path = Path(min(loaded))
    side = build("mpi_side.c", f"-I{path.parent.parent / 'include'}", str(path))
    side.side_open(library("cuda").encode(), ctypes.c_size_t(most), int(mpi.is_cuda_aware()))

    stream = device.create_stream()
    comm = mpi.world(stream=stream)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    out, into = device.zeros(most // 8, stream=stream), device.zeros(most // 8, stream=stream)

    def halo(rounds: int, size: int) -> float:
        x, y = out[: size // 8], into[: size // 8]
        comm.Barrier()
        start = time.perf_counter()
        for _ in range(rounds):
            comm.Sendrecv(x, right, recvbuf=y, source=left)
            comm.Sendrecv(x, left, recvbuf=y, source=right)
        stream.sync()
        return (time.perf_counter() - start) / rounds

    def all_reduce(rounds: int, size: int) -> float:
        x, y = out[: size // 8], into[: size // 8]
        comm.Barrier()
        start = time.perf_counter()
        for _ in range(rounds):
            comm.Allreduce(x, y)
        stream.sync()
        return (time.perf_counter() - start) / rounds

    sides = {
        "halo exchange": (measure_of(side.side_halo), halo),
        "all-reduce": (measure_of(side.side_all_reduce), all_reduce),
    }
    return sides, comm.rank, lambda seconds: MPI.COMM_WORLD.allreduce(seconds, MPI.MAX)


def good(result: tuple[Any, ...]) -> Any:
    if result[0]:
        raise RuntimeError(f"{result[0].name}: {nccl.ncclGetLastError(None)[1].decode()}")
    return result[1] if len(result) > 1 else None


def identity(folder: Path, name: str, rank: int) -> bytes:
    """An id that the first rank makes, and hands out by a file."""
    path = folder / name
    if rank == 0:
        path.with_suffix(".new").write_bytes(bytes(good(nccl.ncclGetUniqueId()).internal))
        path.with_suffix(".new").rename(path)
    while not path.exists():
        time.sleep(0.002)
    return path.read_bytes()


def nccl_sides(device: Device, most: int, folder: Path) -> tuple[Sides, int, Callable[[float], float]]:
    """The two sides of NCCL, as `mpi_sides`. All ranks wait for each other in every operation."""
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    side = build("nccl_side.c")
    first, second = (identity(folder, name, rank) for name in ("first", "second"))
    side.side_open(library("cuda").encode(), library("nccl").encode(), ctypes.c_size_t(most), first, rank, size)

    stream = device.create_stream()
    queue = int(stream.handle)
    own = nccl.ncclUniqueId()
    own.internal = second
    comm = good(nccl.ncclCommInitRank(size, own, rank))
    right, left = (rank + 1) % size, (rank - 1) % size
    x, y = device.zeros(most // 8, stream=stream), device.zeros(2 * most // 8, stream=stream)
    out, into = address(x), address(y)
    byte, double, add = nccl.ncclDataType_t.ncclInt8, nccl.ncclDataType_t.ncclFloat64, nccl.ncclRedOp_t.ncclSum

    def timed(operation: Callable[[int], None], rounds: int, size: int) -> float:
        all_reduce(8)
        stream.sync()
        start = time.perf_counter()
        for _ in range(rounds):
            operation(size)
        stream.sync()
        return (time.perf_counter() - start) / rounds

    def halo(size: int) -> None:
        nccl.ncclGroupStart()
        nccl.ncclSend(out, size, byte, right, comm, queue)
        nccl.ncclRecv(into, size, byte, left, comm, queue)
        nccl.ncclSend(out, size, byte, left, comm, queue)
        nccl.ncclRecv(into + size, size, byte, right, comm, queue)
        good(nccl.ncclGroupEnd())

    def all_reduce(size: int) -> None:
        good(nccl.ncclAllReduce(out, into, size // 8, double, add, comm, queue))

    sides: Sides = {
        "halo exchange": (measure_of(side.side_halo), lambda rounds, size: timed(halo, rounds, size)),
        "all-reduce": (measure_of(side.side_all_reduce), lambda rounds, size: timed(all_reduce, rounds, size)),
    }
    kept.extend((x, y))
    return sides, rank, lambda seconds: seconds


def address(array: Array) -> int:
    return int(array.buffer.handle)


def main(engine: str, sizes: list[int], folder: Path) -> None:
    device = Device.for_rank()
    device.set_current()
    if engine == "mpi":
        sides, rank, slowest = mpi_sides(device, max(sizes))
    else:
        sides, rank, slowest = nccl_sides(device, max(sizes), folder)
    rows: list[dict[str, Any]] = []
    for operation, both in sides.items():
        for size in sizes:
            rounds = rounds_of(size)
            best = [float("inf")] * 2
            for turn in range(TURNS + 1):
                for index, measure in enumerate(both):
                    seconds = slowest(measure(rounds if turn else 2, size))
                    if turn:  # the first one warms up
                        best[index] = min(best[index], seconds)
            rows.append({"operation": operation, "bytes": size, "c": best[0], "cupola": best[1]})
    if rank == 0:
        print(json.dumps({"device": device.name, "rows": rows}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [int(size) for size in sys.argv[2].split(",")], Path(sys.argv[3]))
