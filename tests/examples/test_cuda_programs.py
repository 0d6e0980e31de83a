"""The programs in CUDA C++: each is built by ``cupola nvcc``, run by ``cupola run``, and checks its own results."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import processes
from tests.cli.test_nvcc import needs_nvcc

PROGRAMS = Path(__file__).resolve().parents[2] / "examples" / "cuda"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.cu") if not path.stem.endswith("_device"))

# Programs -> what nvcc needs to know.
FLAGS = {
    "dynamic_parallelism": ("-rdc=true", "-lcudadevrt"),
    "libraries": ("-lcublas", "-lcurand"),
    "several_files": ("-rdc=true", "several_files_device.cu"),
    "shuffles": ("-arch=sm_80",),
}
# Programs that make mistakes, about which the CPU device says what is wrong.
EXPECT_ERRORS = {"errors", "dynamic_shared"}


def cupola(*arguments):
    command = [sys.executable, "-m", "cupola", *map(str, arguments)]
    return processes.run(command, cwd=PROGRAMS)


@needs_nvcc
@pytest.mark.parametrize("name", NAMES)
def test_program(name, tmp_path):
    program = tmp_path / name
    built = cupola("nvcc", "-std=c++17", f"{name}.cu", *FLAGS.get(name, ()), "-o", program)
    assert built.returncode == 0, built.stdout + built.stderr
    done = cupola("run", program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip(), "a program says what it shows"
    assert name in EXPECT_ERRORS or not done.stderr, done.stderr


def test_there_are_programs():
    assert len(NAMES) >= 20 and set(FLAGS) | EXPECT_ERRORS <= set(NAMES)
