"""Jobs of several processes, of which one or all are killed at any moment: the others end, and nothing is left behind.

CUPOLA_KILLS says how many moments there are for each job, and which process is meant follows from their number.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import need_devices, on_cpu_device
from tests.left_behind import left_behind

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ROUNDS = int(os.environ.get("CUPOLA_KILLS", "1"))
RANKS, SECONDS = 3, 120


def mpi() -> tuple[list[object], dict[str, str]]:
    pytest.importorskip("mpi4py", reason="needs mpi4py: pip install cupola[test]")
    from tests.mpi.mpiexec import command_and_environment

    command, environment = command_and_environment(RANKS)
    return [*command, sys.executable, "-m", "mpi4py", EXAMPLES / "mpi_heat.py"], environment


def nccl() -> tuple[list[object], dict[str, str]]:
    devices = ["--devices", RANKS] if on_cpu_device() else []
    job = [sys.executable, "-m", "cupola", "run", *devices, "-n", RANKS, "--grace", 2]
    return [*job, EXAMPLES / "nccl_allreduce.py"], {**os.environ, "CUPOLA_NCCL_TIMEOUT": "20", "NCCL_NVLS_ENABLE": "0"}


def sockets() -> tuple[list[object], dict[str, str]]:
    """As between hosts."""
    command, environment = nccl()
    return command, environment | {"NCCL_SHM_DISABLE": "1"}


def ray() -> tuple[list[object], dict[str, str]]:
    pytest.importorskip("ray", reason="Ray is not installed")
    more = {"CUPOLA_CPU_DEVICES": str(RANKS), "RAY_USAGE_STATS_ENABLED": "0"}
    return [sys.executable, EXAMPLES / "ray_pipeline.py"], {**os.environ, **more}


def dask() -> tuple[list[object], dict[str, str]]:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    return [sys.executable, EXAMPLES / "dask_statistics.py"], {**os.environ, "CUPOLA_CPU_DEVICES": str(RANKS)}


# How each job begins, words of the command lines of the processes that are its own, and what it prints at its end. The
# last says whether it comes to its end without one of them.
JOBS: dict[str, tuple[Callable[[], tuple[list[object], dict[str, str]]], tuple[str, ...], str, bool]] = {
    "mpi": (mpi, ("mpi_heat.py",), "as NumPy computes them", False),
    "nccl": (nccl, ("nccl_allreduce.py",), "as NumPy has it", False),
    "sockets": (sockets, ("nccl_allreduce.py",), "as NumPy has it", False),
    "ray": (ray, ("ray::Numbers", "ray::Squares", "ray::Sum"), "squares is right", True),
    "dask": (dask, ("spawn_main",), "deviation 2.000", True),
}


def processes() -> dict[int, tuple[int, str, str]]:
    """The parent, the time of the start and the command line of each process that has not ended."""
    found = {}
    for number in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            state, parent, *rest = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            words = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if state not in "ZX":
                found[int(number)] = int(parent), rest[17], words
    return found


# What others leave: MPICH its memory, and Python the semaphores of processes that Dask has spawned, if the process that
# cleans up after them is killed, too.
LEFT_BY_OTHERS = {"one": ("mpich_shm_", "ucx_shm_"), "all": ("mpich_shm_", "ucx_shm_", "sem.mp-")}


class Job:
    """A job, with all processes, and names of shared memory, that it has ever been seen to have."""

    def __init__(self, command: list[object], environment: dict[str, str], folder: Path) -> None:
        self.output = folder / "output"
        with self.output.open("w") as output:
            self.leader = subprocess.Popen(
                list(map(str, command)), stdout=output, stderr=output, env=environment, start_new_session=True
            )
        self.seen: dict[int, str] = {}
        self.names: set[str] = set()

    def look(self) -> dict[int, str]:
        """The command lines of those that there are."""
        all_of_them = processes()
        family = {self.leader.pid} | {n for n, began in self.seen.items() if all_of_them.get(n, ("", ""))[1] == began}
        before = 0
        while len(family) > before:
            before = len(family)
            family |= {number for number, (parent, *_) in all_of_them.items() if parent in family}
        living = {number: all_of_them[number] for number in family if number in all_of_them}
        for number in living:
            with contextlib.suppress(OSError):
                self.names.update(re.findall(r" /dev/shm/(\S+)", Path(f"/proc/{number}/maps").read_text()))
        self.seen.update({number: began for number, (_, began, _) in living.items()})
        return {number: words for number, (_, _, words) in living.items()}

    def until(self, condition: Callable[[dict[int, str]], bool]) -> dict[int, str]:
        end = time.monotonic() + SECONDS
        while not condition(living := self.look()):
            assert time.monotonic() < end, f"these go on: {living}\n{self.output.read_text()}"
            self.leader.poll()
            time.sleep(0.1)
        return living

    def left(self, by_others: tuple[str, ...]) -> list[str]:
        """Names of shared memory that are still there, but for those of others."""
        return [n for n in self.names if not n.startswith(by_others) and Path("/dev/shm", n).exists()]


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[Job]:
    need_devices(RANKS)
    job = Job(*JOBS[name][0](), folder)
    try:
        yield job
    finally:
        for number in job.look():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        job.leader.wait()


@pytest.mark.unchecked(reason="other processes run the kernels")
@pytest.mark.timeout(3 * SECONDS)
@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("all_at_once", [False, True], ids=["one", "all"])
@pytest.mark.parametrize("name", JOBS)
def test_killed_at_any_moment(tmp_path, name, all_at_once, number):
    _, words, end, goes_on = JOBS[name]
    chance = random.Random(f"{name} {all_at_once} {number}")
    before = left_behind()
    with running(name, tmp_path) as job:

        def own(living: dict[int, str]) -> list[int]:
            return sorted(n for n, line in living.items() if n != job.leader.pid and any(w in line for w in words))

        enough = RANKS if goes_on or chance.random() < 0.7 else 1  # also while the others are being started
        job.until(lambda living: len(own(living)) >= enough or job.leader.poll() is not None)
        time.sleep(chance.uniform(0, 3))
        living = job.look()
        for victim in list(living) if all_at_once else [chance.choice(own(living) or [0])]:
            with contextlib.suppress(ProcessLookupError):
                if victim:
                    os.kill(victim, signal.SIGKILL)
        job.until(lambda living: not living)
        said, status = job.output.read_text(), job.leader.wait()
        if goes_on and not all_at_once:
            # A cluster of Dask does not begin without a worker that ends while it is started.
            assert (status, end in said) == (0, True) or "Nanny failed to start" in said, said
        else:  # it may have been over before
            assert (status == 0) <= (end in said), said
        assert not job.left(LEFT_BY_OTHERS["all" if all_at_once else "one"])
    assert left_behind() <= before
