"""The terminal sessions of the first steps and the guides: files are saved, commands run, and print what stands there.

``<!-- file: NAME -->`` in front of a block of code saves it. The lines of a block ``console`` behind a ``$`` are run,
and the rest is what they print: ``...`` stands for anything, and so does each number. ``<!-- not run: reason -->`` is
for what installs packages, or needs a GPU.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests import processes

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"(?:^<!-- (file|not run): ([^\n]*) -->\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"0x[0-9a-f]+|%\w+|\d[\d,]*(\.\d+)?")
PAGES = [
    path.relative_to(DOCS).as_posix()
    for path in sorted([DOCS / "start.md", *(DOCS / "guides").glob("*.md")])
    if "\n```console\n" in path.read_text()
]

pytestmark = pytest.mark.cpu_only


def run(folder: Path, line: str) -> str:
    """Run a command of the page as if nothing had been compiled before, and return what it prints."""
    words = shlex.split(line)
    environment = {**os.environ, "CUPOLA_DEVICE": "cpu", "XDG_CACHE_HOME": str(folder / ".cache")}
    while "=" in words[0]:
        name, _, environment[name] = words.pop(0).partition("=")
    if words[0] in {"cupola", "pytest"}:
        plain = ["-p", "no:cacheprovider", "-n", "0", "-W", "ignore:Module already imported"]
        words[:1] = [sys.executable, "-m", words[0], *(plain if words[0] == "pytest" else ())]
    elif words[0] == "python":
        words[0] = sys.executable
    done = processes.run(words, cwd=folder, env=environment)
    return done.stdout + done.stderr


def sessions(page: str, folder: Path) -> list[tuple[str, str]]:
    """Save the files of a page, and return its commands, each with what it prints."""
    found = []
    text = (DOCS / page).read_text()
    for kind, words, language, source in BLOCK.findall(text):
        if kind == "file":
            change = re.fullmatch(r"(\S+) = (\S+), with (.*) as (.*)", words)
            if change:  # of a file above, in front of a session
                name, other, old, new = change.groups()
                before = (folder / other).read_text()
                assert before.count(old) == 1, (name, old)
                (folder / name).write_text(before.replace(old, new))
            else:
                (folder / words).write_text(source)
        if language == "console" and kind != "not run":
            found += re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", source, re.M)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_sessions_print_what_the_page_says(page: str, tmp_path: Path) -> None:
    for command, printed in sessions(page, tmp_path):
        comes = run(tmp_path, command)
        said, told = (NUMBER.sub("#", text).strip() for text in (printed, comes))
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(said, told, flags), f"$ {command}\n{comes}"


def test_there_are_sessions(tmp_path: Path) -> None:
    assert "start.md" in PAGES and len(PAGES) >= 4
    assert len(sessions("start.md", tmp_path)) >= 4
