"""Jobs of several processes, of which one or all are killed at any moment: the others end, and nothing is left behind.

CUPOLA_KILLS says how many moments there are for each job, and which process is meant follows from their number.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import limits, processes
from tests.conftest import need_devices, on_cpu_device
from tests.left_behind import nothing_left_behind

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ROUNDS = int(os.environ.get("CUPOLA_KILLS", "1"))
RANKS = 3


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


# What others leave: MPICH its memory, and Python the semaphores of processes that Dask has spawned, if the process that
# cleans up after them is killed, too.
LEFT_BY_OTHERS = {"one": ("mpich_shm_", "ucx_shm_"), "all": ("mpich_shm_", "ucx_shm_", "sem.mp-")}


class Job:
    """A job, with all processes, and names of shared memory, that it has ever been seen to have."""

    def __init__(self, command: list[object], environment: dict[str, str], folder: Path) -> None:
        self.output = folder / "output"
        with self.output.open("w") as output:
            self.leader = processes.Child(command, stdout=output, stderr=output, env=environment)
        self.seen: dict[int, str] = {}
        self.names: set[str] = set()

    def look(self) -> dict[int, str]:
        """The command lines of those that there are."""
        alive = processes.living()
        # Ray's workers write their names over the variables that they were given, and may lose their parents.
        family = {n: alive[n] for n, began in self.seen.items() if n in alive and alive[n].began == began}
        family |= self.leader.family()
        for number in family:
            with contextlib.suppress(OSError):
                self.names.update(re.findall(r" /dev/shm/(\S+)", Path(f"/proc/{number}/maps").read_text()))
        self.seen.update({number: process.began for number, process in family.items()})
        return {number: process.command for number, process in family.items()}

    def until(self, condition: Callable[[dict[int, str]], bool]) -> None:
        def holds() -> bool:
            self.leader.poll()
            return condition(self.look())

        limits.until(holds, lambda: f"these go on: {self.look()}\n{self.output.read_text()}", pause=0.1)

    def left(self, by_others: tuple[str, ...]) -> list[str]:
        """Names of shared memory that are still there, but for those of others."""
        return [n for n in self.names if not n.startswith(by_others) and Path("/dev/shm", n).exists()]


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[Job]:
    need_devices(RANKS)
    job = Job(*JOBS[name][0](), folder)
    with job.leader:
        try:
            yield job
        finally:
            for number in job.look():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)


@pytest.mark.unchecked(reason="other processes run the kernels")
@pytest.mark.timeout(360)
@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("all_at_once", [False, True], ids=["one", "all"])
@pytest.mark.parametrize("name", JOBS)
def test_killed_at_any_moment(tmp_path, name, all_at_once, number):
    _, words, end, goes_on = JOBS[name]
    chance = random.Random(f"{name} {all_at_once} {number}")
    with nothing_left_behind(), running(name, tmp_path) as job:

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
