"""examples/mpi_heat.py alone and on several ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

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
