"""What the emulated math libraries answer to the lines that were recorded on an H200 (tools/mathlibs): statuses,
results, and what is left alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests import processes

ROOT = Path(__file__).resolve().parents[3]
pytest.importorskip("scipy_openblas64", reason="the emulated math libraries calculate with OpenBLAS")


@pytest.mark.parametrize("library", sorted(path.stem for path in (ROOT / "tests/cpu/math/recorded").glob("*.txt")))
def test_answers_are_those_of_a_gpu(library: str) -> None:
    """In a process of its own, where libcuda.so.1 is the CPU device's."""
    command = [sys.executable, str(ROOT / "tools/mathlibs/compare.py"), library]
    environment = os.environ | {"CUPOLA_DEVICE": "cpu"}
    done = processes.run(command, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
