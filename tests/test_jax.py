"""What ``cupola run`` does for JAX, tried on a package that asks the same question; tests/ecosystem has JAX."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests import processes

PROGRAM = """
import os
import jax._src.hardware_utils as utils
print(utils.has_visible_nvidia_gpu(), type(utils.__spec__.loader).__name__)
print(os.environ["XLA_FLAGS"])
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "--xla_gpu_generate_line_info=true --xla_gpu_autotune_level=0"),
        ("--a=1 --xla_gpu_autotune_level=4", "--a=1 --xla_gpu_autotune_level=4 --xla_gpu_generate_line_info=true"),
    ],
)
def test_the_plugin_finds_a_gpu(tmp_path: Path, given: str | None, expected: str) -> None:
    folder = tmp_path / "jax" / "_src"
    folder.mkdir(parents=True)
    (folder / "hardware_utils.py").write_text("def has_visible_nvidia_gpu(): return False\n")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    environment |= {"XLA_FLAGS": given} if given else {}
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", str(program)]
    done = processes.run(command, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True SourceFileLoader", expected]
