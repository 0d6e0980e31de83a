"""What is missing on a machine is said in one line, before anything is fetched or built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_machine.sh"

# A python3 that fails in the check whose source has the text in it, and passes all others.
PYTHON = """#!/bin/sh
case "$*" in
*"{fails_at}"*) exit 1 ;;
--version) echo "Python 3.9.2" ;;
esac
"""


def check(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # The script needs uname from the system; compilers and interpreters come from the folder only.
    (folder / "uname").write_text("#!/bin/sh\necho Linux\n")
    (folder / "uname").chmod(0o755)
    return processes.run(
        ["/bin/sh", str(SCRIPT), *arguments],
        env={"PATH": str(folder), **environment},
    )


def executable(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("fails_at", "text"),
    [
        ("version_info", "Python 3.9.2 is too old: Python 3.11 or later is needed"),
        ("ensurepip", "no venv module: install it (Debian and Ubuntu: apt install python3-venv)"),
        ("Python.h", "no C headers: install them"),
    ],
)
def test_a_python_that_does_not_do(tmp_path, fails_at, text):
    executable(tmp_path / "python3", PYTHON.format(fails_at=fails_at))
    executable(tmp_path / "cc")
    done = check(tmp_path)
    assert done.returncode == 1 and text in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


def test_no_python(tmp_path):
    done = check(tmp_path, "python3.12")
    assert done.returncode == 1 and "no python3.12 on this machine" in done.stderr


@pytest.mark.parametrize("compiler", [{}, {"CC": "clang-99 -m64"}])
def test_no_compiler(tmp_path, compiler):
    executable(tmp_path / "python3", PYTHON.format(fails_at="nothing"))
    done = check(tmp_path, **compiler)
    name = compiler.get("CC", "cc")
    assert done.returncode == 1 and f"no C compiler ({name})" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nothing_is_missing_here():
    done = processes.run(["/bin/sh", str(SCRIPT), sys.executable], env={**os.environ, "CC": "true"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
