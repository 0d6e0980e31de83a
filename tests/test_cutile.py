"""What ``cupola run`` does for cuTile, tried on a package that has the same hints; tests/ecosystem has cuTile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import processes

CONTEXT = """
class BytecodeContext:
    def load_store_hints(self, latency, allow_tma):
        return latency, allow_tma
"""
PROGRAM = """
from cuda.tile import _ir2bytecode
print(_ir2bytecode.BytecodeContext().load_store_hints(3, None) if hasattr(_ir2bytecode, "BytecodeContext") else "none")
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("text", "printed"), [(CONTEXT, "(3, False)"), ("", "none"), ("class BytecodeContext: 1", None)]
)
def test_tiles_are_loaded_without_tensor_maps(text: str, printed: str | None, tmp_path: Path) -> None:
    package = tmp_path / "cuda" / "tile"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "_ir2bytecode.py").write_text(text)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "program.py"]
    done = processes.run(command, cwd=tmp_path)
    if printed is None:  # another cuTile, which is left alone
        assert "AttributeError: 'BytecodeContext' object has no attribute 'load_store_hints'" in done.stderr
    else:
        assert (done.returncode, done.stdout) == (0, f"{printed}\n"), done.stderr
