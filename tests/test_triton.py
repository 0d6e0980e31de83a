"""What ``cupola run`` does for Triton, tried on a package that asks the same question; tests/ecosystem has Triton."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests import processes

BACKEND = """
class CudaDriver:
    @staticmethod
    def is_active():
        return False
"""

PROGRAM = """
import os
import triton.backends.nvidia.driver as backend
from cuda.bindings import driver
print(backend.CudaDriver.is_active(), type(backend.__spec__.loader).__name__)
print(os.path.exists(os.path.join(os.environ["TRITON_LIBCUDA_PATH"], "libcuda.so.1")))
print(int(driver.cuCtxGetCurrent()[1]) != 0)
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize("has_driver", [True, False])
def test_the_cuda_backend_is_active_on_the_cpu_device(tmp_path: Path, has_driver: bool) -> None:
    folder = tmp_path / "triton" / "backends" / "nvidia"
    folder.mkdir(parents=True)
    (folder / "driver.py").write_text(BACKEND if has_driver else "")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM if has_driver else "import triton.backends.nvidia.driver")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_LIBCUDA_PATH"}
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", str(program)]
    done = processes.run(command, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == (["True", "SourceFileLoader", "True", "True"] if has_driver else [])
