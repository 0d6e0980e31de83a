"""Write what programs really print into README.md: the tour, and the program that stores out of bounds.

Each region of the README between ``<!-- name -->`` and ``<!-- /name -->`` ends in a block of text, which is replaced
by the output of the program: examples/tour.py for ``tour``, the region's own block of Python for ``fault``. Both
run on the CPU device.

usage: python tools/refresh_readme.py        (with the interpreter that cupola is installed for)
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
TEXT = re.compile(r"^```text\n.*?^```$", re.M | re.S)


def region(text: str, name: str) -> str:
    """Return what stands between the two markers of a region."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.S)
    if not found:
        raise ValueError(f"there is no region <!-- {name} --> ... <!-- /{name} -->")
    return found[1]


def program(text: str, name: str) -> str:
    """Return the program of a region."""
    if name == "tour":
        return (ROOT / "examples" / "tour.py").read_text()
    found = re.search(r"^```python\n(.*?)^```$", region(text, name), re.M | re.S)
    assert found, f"the region {name} has no program"
    return found[1]


def run_program(source: str) -> str:
    """Run a program on the CPU device, in an empty folder, and return what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "number.py").write_text(source)  # a name that errors show
        done = subprocess.run(
            [sys.executable, "number.py"],
            cwd=folder,
            env={**os.environ, "CUPOLA_DEVICE": "cpu"},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.replace(f"{folder}/", "").strip()


def main() -> None:
    text = README.read_text()
    for name in ("tour", "fault"):
        old = region(text, name)
        output = run_program(program(text, name))
        text = text.replace(old, TEXT.sub(lambda _, output=output: f"```text\n{output}\n```", old))
    README.write_text(text)


if __name__ == "__main__":
    main()
