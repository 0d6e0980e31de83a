#!/usr/bin/env python3
"""The recorded terminals of docs/debugging.md: made from real runs of the program that the page has.

``check`` compares, ``write`` replaces what comes after the commands, which stay as they are in the page.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "debugging.md"
PROMPT = "(cupola) "
_REGION = re.compile(r"(<!-- recorded(?: run)? -->\n```text\n)(.*?)(```\n<!-- /recorded(?: run)? -->)", re.DOTALL)


def recorded(page: str) -> str:
    """The page with what its commands print now."""
    program = re.search(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert program is not None
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "smooth.py").write_text(program[1])
        return _REGION.sub(lambda match: match[1] + _run(match[2], folder) + match[3], page)


def _run(text: str, folder: str) -> str:
    first, *lines = text.split("\n")
    words = first.removeprefix("$ cupola ").split()
    typed = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
    options = [word for command in typed for word in ("-c", command)]
    command = [sys.executable, "-m", "cupola", words[0], *options, *words[1:]]
    environment = {**os.environ, "CUPOLA_DEVICE": "cpu"}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        raise RuntimeError(f"{first} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return f"{first}\n{done.stdout}"


def main(what: str) -> int:
    """Check or write; returns the exit status."""
    page = PAGE.read_text()
    now = recorded(page)
    if what == "write":
        PAGE.write_text(now)
    elif now != page:
        print("\n".join(difflib.unified_diff(page.split("\n"), now.split("\n"), "the page", "a run", lineterm="")))
        print("run tools/record_debugging.py write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "check"))
