"""examples/nccl_allreduce.py alone and on several ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nccl.test_cases import run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "nccl_allreduce.py"


def test_alone():
    variables = {**os.environ, "NCCL_NVLS_ENABLE": "0"}
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=120, env=variables)
    assert done.returncode == 0, done.stderr
    assert "by 1 rank, as NumPy has it" in done.stdout


@pytest.mark.cpu_only("there may be one GPU only")
def test_four_ranks():
    done = run(4, EXAMPLE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "by 4 ranks, as NumPy has it" in done.stdout
