"""examples/nccl_allreduce.py on several ranks; tests/examples runs it alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nccl.test_cases import run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "nccl_allreduce.py"


@pytest.mark.cpu_only("there may be one GPU only")
def test_line():
    done = run(4, EXAMPLE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "by 4 ranks, as NumPy has it" in done.stdout
