"""What the emulated math libraries answer to the lines that were recorded on an H200 (tools/mathlibs): statuses,
results, and what is left alone."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

from tests import processes

ROOT = Path(__file__).resolve().parents[3]
pytest.importorskip("scipy_openblas64", reason="the emulated math libraries calculate with OpenBLAS")


LIBRARIES = sorted(path.stem for path in (ROOT / "tests/cpu/math/recorded").glob("*.txt"))
# Beside the kernels that OpenBLAS chooses for this processor, those for an old one, which round in another order.
KERNELS = [(library, None) for library in LIBRARIES] + [("cublas", "Nehalem"), ("cusolver", "Nehalem")]


@pytest.mark.parametrize(("library", "kernels"), KERNELS)
def test_answers_are_those_of_a_gpu(library: str, kernels: str | None) -> None:
    """In a process of its own, where libcuda.so.1 is the CPU device's."""
    if kernels and platform.machine() != "x86_64":
        pytest.skip("OpenBLAS has these kernels for x86-64 only")
    command = [sys.executable, str(ROOT / "tools/mathlibs/compare.py"), library]
    environment = os.environ | {"CUPOLA_DEVICE": "cpu"} | ({"OPENBLAS_CORETYPE": kernels} if kernels else {})
    done = processes.run(command, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
