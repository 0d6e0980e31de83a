"""examples/mpi_heat.py alone and on several ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.left_behind import nothing_left_behind
from tests.mpi.mpiexec import mpiexec

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mpi_heat.py"


@pytest.mark.parametrize("ranks", [1, 4])
def test_heat(ranks):
    done = mpiexec(ranks, [EXAMPLE])
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{ranks} rank{'s' * (ranks > 1)}, as NumPy" in done.stdout


def test_heat_checked():
    """The child that is checked has what mpiexec gave its parent."""
    done = mpiexec(2, ["-m", "cupola", "run", "--check", "race", EXAMPLE])
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 ranks, as NumPy" in done.stdout


# The example, of which rank 1 ends, or stops, in the middle of its steps.
PROGRAM = """
import os, runpy, signal, sys, time
from cupola import mpi

shift, calls = mpi.Comm.Sendrecv, []

def fatal(self, *arguments, **named):
    calls.append(1)
    if self.rank == 1 and len(calls) == 30:
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    self.timeout = 2
    return shift(self, *arguments, **named)

mpi.Comm.Sendrecv = fatal
runpy.run_path({example!r}, run_name="__main__")
"""


@pytest.mark.parametrize(("how", "words"), [("SIGKILL", ""), ("SIGSTOP", "was not done within 2 s")])
def test_a_rank_is_killed(tmp_path, how, words):
    """The others end; of one that only stops they hear by the time limit."""
    program = tmp_path / "killed.py"
    program.write_text(PROGRAM.format(example=str(EXAMPLE)))
    with nothing_left_behind():
        done = mpiexec(3, ["-m", "mpi4py", program, how])
        assert done.returncode != 0
        assert words in done.stderr
        assert "as NumPy" not in done.stdout
