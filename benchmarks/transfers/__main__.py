"""Halo exchanges and all-reduces between ranks, beside the same in C with MPI and NCCL; and how a program scales.

    python -m benchmarks.transfers [--engine mpi|nccl] [--ranks N] [--sizes 8,4K,1M,...] [--strict] [--json FILE]
    python -m benchmarks.transfers --scaling 1,2,4,8 [--json FILE]

The method is that of the OSU benchmarks and of nccl-tests: all ranks begin together, do many rounds, and wait for the
device once; the slowest rank counts. Both sides run in the same processes, on objects of their own, and take turns;
each figure is the best turn. In a halo exchange a rank sends so many bytes to each of its two neighbors, and receives
as many. An all-reduce adds numbers of 64 bits. The device is the one that CUPOLA_DEVICE chooses; the CPU device has
one for each rank.

What is asked of cupola: at most 5 % more time than C for messages of 1 MiB and more, and at most 2 microseconds more
for shorter ones. A line with more says so; with --strict the exit status is 1 then.

--scaling times the steps of examples/mpi_heat.py, with one core for each rank on the CPU device: on one plate (strong),
and on a plate that grows with the ranks (weak).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
LARGE, SHARE, SECONDS = 1 << 20, 0.05, 2e-6  # what is asked: bytes, and what may come on top of the time of C


def size_of(text: str) -> int:
    """Bytes; with K or M behind the number, units of 1024 and 1024². A multiple of 8."""
    units = {"K": 1 << 10, "M": 1 << 20}
    size = int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)
    if size < 8 or size % 8:
        raise argparse.ArgumentTypeError(f"{text}: a message has a multiple of 8 bytes")
    return size


def text_of(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def of_mpich(name: str) -> str | None:
    """A file of the wheel `mpich`, if that is installed."""
    try:
        files = importlib.metadata.files("mpich") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(Path(str(file.locate())).resolve()) for file in files if file.name == name), None)


def mpiexec(ranks: int, program: list[str], environment: dict[str, str], *, bind: bool = False) -> str:
    """Run a program of Python on the ranks, and return what it prints."""
    beside = of_mpich("mpiexec")
    command = beside or shutil.which("mpiexec")
    if command is None:
        raise SystemExit("there is no mpiexec: install Open MPI or MPICH, or pip install mpich")
    if library := of_mpich("libmpi.so.12"):
        environment = {"MPI4PY_LIBMPI": library, **environment}
    binding = ["-bind-to", "core"] if bind and beside and ranks <= (os.cpu_count() or 1) else []
    return run([command, *binding, "-n", str(ranks), sys.executable, *program], environment)


def run(command: list[str], environment: dict[str, str]) -> str:
    # The programs of MPI that root may not start, as in containers, and more ranks than cores.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "NCCL_NVLS_ENABLE": "0"}
    allowed |= {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PYTHONPATH": python_path()}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **allowed, **environment})
    if done.returncode:
        raise SystemExit(f"the ranks failed with {done.returncode}")
    return done.stdout


def python_path() -> str:
    return os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))


def transfers(engine: str, ranks: int, sizes: list[int]) -> dict[str, Any]:
    """The times of both sides, by one job."""
    environment = {"CUPOLA_CPU_DEVICES": str(ranks), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        program = ["-m", "benchmarks.transfers.rank", engine, ",".join(map(str, sizes)), folder]
        if engine == "mpi":
            text = mpiexec(ranks, program, environment)
        elif ranks == 1:
            text = run([sys.executable, *program], environment)
        else:
            text = run([sys.executable, "-m", "cupola", "run", "-n", str(ranks), *program], environment)
    found: dict[str, Any] = json.loads(text)
    return {"engine": engine, "ranks": ranks, **found}


def too_much(row: dict[str, Any]) -> str:
    """What is asked and is not reached, or nothing."""
    if row["bytes"] >= LARGE:
        return f"more than {SHARE:.0%}" if row["cupola"] > row["c"] * (1 + SHARE) else ""
    return f"more than {SECONDS * 1e6:.0f} µs" if row["cupola"] > row["c"] + SECONDS else ""


def show(found: dict[str, Any]) -> None:
    ranks = "1 rank" if found["ranks"] == 1 else f"{found['ranks']} ranks"
    print(f"{found['engine']}, {ranks}, {found['device']}")
    print(f"{'':15}{'bytes':>9}{'C':>12}{'cupola':>12}{'more':>11}{'ratio':>8}{'cupola':>13}")
    for row in found["rows"]:
        c, ours = row["c"] * 1e6, row["cupola"] * 1e6
        rate = row["bytes"] / row["cupola"] / 1e9
        print(
            f"{row['operation']:15}{text_of(row['bytes']):>9}{c:9.2f} µs{ours:9.2f} µs{ours - c:8.2f} µs"
            f"{ours / c:8.3f}{rate:8.2f} GB/s  {too_much(row)}".rstrip()
        )


def scaling(counts: list[int], width: int, steps: int) -> list[dict[str, Any]]:
    """The time of a step by the number of ranks: of a square plate, and of a quarter of one for each rank."""
    rows: list[dict[str, Any]] = []
    for ranks in counts:
        environment = {"CUPOLA_CPU_DEVICES": str(ranks), "CUPOLA_CPU_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        program = ["-m", "benchmarks.transfers.heat", *map(str, (steps, width, width, width // 4 * ranks))]
        found = json.loads(mpiexec(ranks, program, environment, bind=True))
        strong, weak = found["seconds"]
        rows.append({"ranks": ranks, "device": found["device"], "strong": strong, "weak": weak})
    return rows


def show_scaling(rows: list[dict[str, Any]]) -> None:
    print(f"examples/mpi_heat.py, {rows[0]['device']}")
    print(f"{'ranks':>5}{'strong':>16}{'speed-up':>10}{'weak':>16}{'efficiency':>12}")
    for row in rows:
        strong, weak = rows[0]["strong"] / row["strong"] * rows[0]["ranks"], rows[0]["weak"] / row["weak"]
        times = row["strong"] * 1e3, row["weak"] * 1e3
        print(f"{row['ranks']:5}{times[0]:13.3f} ms{strong:10.2f}{times[1]:13.3f} ms{weak:12.0%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("mpi", "nccl"), action="append", help="both by default")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", default="8,4K,64K,1M,16M", help="bytes, separated by commas")
    parser.add_argument("--scaling", metavar="RANKS", help="numbers of ranks, separated by commas")
    parser.add_argument("--width", type=int, default=2048, help="of the plate for --scaling; on GPUs: 16384")
    parser.add_argument("--steps", type=int, default=12, help="that --scaling measures; on GPUs: 200")
    parser.add_argument("--strict", action="store_true", help="fail where a line takes more than is asked")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: Any
    if given.scaling:
        over = 0
        found = scaling([int(count) for count in given.scaling.split(",")], given.width, given.steps)
        show_scaling(found)
    else:
        sizes = [size_of(text) for text in given.sizes.split(",")]
        found = [transfers(engine, given.ranks, sizes) for engine in given.engine or ("mpi", "nccl")]
        for one in found:
            show(one)
        over = sum(bool(too_much(row)) for one in found for row in one["rows"])
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    if over and given.strict:
        print(f"{over} lines take more than is asked", file=sys.stderr)
    return int(over > 0 and given.strict)


if __name__ == "__main__":
    sys.exit(main())
