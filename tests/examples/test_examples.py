"""Every example checks its result against NumPy; here each runs as a user would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cpu.engine.kernels import skip_without_crt

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in {"arrays", "opengl", "mpi_heat"})


@pytest.mark.parametrize("name", SCRIPTS)
def test_example(name):
    environment = {**os.environ, **({"CUPOLA_CPU_DEVICES": "3"} if name == "several_devices" else {})}
    command = [sys.executable, EXAMPLES / f"{name}.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    if done.returncode:
        skip_without_crt(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip(), "an example says what it shows"
    assert not done.stderr.strip(), done.stderr


def test_there_are_examples():
    assert {"tour", "saxpy", "reduction", "matmul", "histogram", "nbody", "stencil", "prefix_sum"} <= set(SCRIPTS)
