"""What ``cupola run`` does for numba, tried on a package that raises the same error; tests/ecosystem has numba."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import processes

DRIVER = """
class CudaAPIError(RuntimeError):
    def __init__(self, code, msg):
        self.msg = msg
"""
PROGRAM = """
from cuda.bindings import driver
import numba.cuda.cudadrv.driver as numba
driver.cuInit(0)
print(numba.CudaAPIError(driver.cuDeviceGet(99)[0], "Call to cuDeviceGet failed").msg)
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize("has_error", [True, False])
def test_errors_say_why(tmp_path: Path, has_error: bool) -> None:
    folder = tmp_path / "numba" / "cuda" / "cudadrv"
    folder.mkdir(parents=True)
    (folder / "driver.py").write_text(DRIVER if has_error else "")
    (tmp_path / "program.py").write_text(PROGRAM if has_error else "import numba.cuda.cudadrv.driver")
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", str(tmp_path / "program.py")]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:1] == (["Call to cuDeviceGet failed"] if has_error else []) and ("99" in done.stdout) == has_error


DECORATORS = """
class config:
    CUDA_DEBUGINFO_DEFAULT = 0

def jit(func_or_sig=None, device=False, debug=None, lineinfo=False):
    return lineinfo
"""
DECORATED = """
import sys
sys.meta_path[:] = [one for one in sys.meta_path if "numba" not in type(one).__module__]  # that of numba-cuda itself
from numba.cuda.decorators import config, jit
print(jit(), jit("void()", device=True), jit(lineinfo=False), jit(debug=True), jit("void()", False, None, False))
config.CUDA_DEBUGINFO_DEFAULT = 1
print(jit(), jit(debug=False))
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["run"], ["False False False False False", "False False"]),
        (["run", "--check", "race"], ["True True False False False", "False True"]),
        (["profile"], ["True True False False False", "False True"]),
    ],
)
def test_kernels_have_lines_while_somebody_looks(tmp_path: Path, options: list[str], lines: list[str]) -> None:
    folder = tmp_path / "numba" / "cuda"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):  # in front of the real one, where that is installed
        (package / "__init__.py").touch()
    (folder / "decorators.py").write_text(DECORATORS)
    (tmp_path / "program.py").write_text(DECORATED)
    command = [sys.executable, "-m", "cupola", *options, "--device", "cpu", str(tmp_path / "program.py")]
    done = processes.run(command)
    assert (done.returncode, done.stdout.splitlines()) == (0, lines), done.stderr
