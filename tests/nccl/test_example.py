"""examples/nccl_allreduce.py alone and on several ranks."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests import processes
from tests.left_behind import nothing_left_behind
from tests.nccl.test_cases import run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "nccl_allreduce.py"


def test_alone():
    variables = {**os.environ, "NCCL_NVLS_ENABLE": "0"}
    done = processes.run([sys.executable, EXAMPLE], env=variables)
    assert done.returncode == 0, done.stderr
    assert "by 1 rank, as NumPy has it" in done.stdout


def test_four_ranks():
    done = run(4, EXAMPLE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "by 4 ranks, as NumPy has it" in done.stdout


@pytest.mark.cpu_only("it takes three devices")
@pytest.mark.parametrize(
    "starter",
    [
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ],
)
def test_what_starters_of_ranks_say(starter):
    """They are not there: the ranks get their variables, and meet on this machine."""
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    variables = {**os.environ, "CUPOLA_DEVICE": "cpu", "CUPOLA_CPU_DEVICES": "3", "MASTER_PORT": str(port)}
    with contextlib.ExitStack() as stack:
        ranks = []
        for rank in range(3):
            own = {starter[0]: str(rank), starter[1]: "3", "SLURM_LOCALID": str(rank)}
            child = processes.Child([sys.executable, EXAMPLE], env={**variables, **own}, stdout=processes.PIPE)
            ranks.append(stack.enter_context(child))
        said = [rank.communicate()[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0]
    assert "by 3 ranks, as NumPy has it" in said[0] and said[1:] == ["", ""]


def test_a_batch_script_of_slurm_is_no_rank():
    variables = {**os.environ, "NCCL_NVLS_ENABLE": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "3", "SLURM_LOCALID": "0"}
    done = processes.run([sys.executable, EXAMPLE], env=variables)
    assert "by 1 rank, as NumPy has it" in done.stdout, done.stderr


# The example, of which rank 1 ends in the middle of its steps.
KILLED = """
import os, runpy, signal
from cupola.bindings import nccl

add, calls = nccl.ncclAllReduce, []

def fatal(*arguments):
    calls.append(1)
    if os.environ["RANK"] == "1" and len(calls) == 30:
        os.kill(os.getpid(), signal.SIGKILL)
    return add(*arguments)

nccl.ncclAllReduce = fatal
runpy.run_path({example!r}, run_name="__main__")
"""


@pytest.mark.cpu_only("NVIDIA's library waits for a rank that is gone")
def test_a_rank_is_killed(tmp_path):
    """The others say so within the time limit that the user has set, and end. The first to see it leaves, too."""
    program = tmp_path / "killed.py"
    program.write_text(f"import sys\nsys.path.insert(0, {str(EXAMPLE.parent)!r})" + KILLED.format(example=str(EXAMPLE)))
    with nothing_left_behind():
        done = run(4, program)
        assert done.returncode == 128 + signal.SIGKILL, done.stderr
        assert "cupola run: rank 1 was ended by SIGKILL" in done.stderr
        text = r"rank (\d) has ended, or has left the communicator \(ncclAllReduce on rank (\d) of 4\)"
        told = re.findall(text, done.stderr)
        assert {who for _, who in told} == {"0", "2", "3"} and "1" in {gone for gone, _ in told}, done.stderr
        assert "as NumPy has it" not in done.stdout
