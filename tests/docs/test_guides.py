"""The terminal sessions of the pages: files are saved, commands run, and print what stands there.

``<!-- file: NAME -->`` in front of a block of code saves it, and ``<!-- hidden file: NAME``, its lines and ``-->`` save
a program that the page does not show. The lines of a block ``console`` behind a ``$`` are run, and the rest is what
they print: ``...`` stands for anything, and so does each number. ``<!-- prints: COMMAND -->`` in front of a block
``text`` says what prints it. ``<!-- not run: reason -->`` is for what installs packages, or needs a GPU.

Every block of every page is run here or by the tests that TAKEN names, is a drawing, or says why it is not run.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from cupola.pathfinder import find_nvidia_binary_utility
from tests import processes

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(
    r"^<!-- hidden (?P<hidden>file): (?P<name>\S+)\n(?P<lines>.*?)^-->$"
    r"|(?:^<!-- (?P<kind>file|not run|prints|terminal|recorded run|recorded)(?:: (?P<words>[^\n]*))? -->\n)?"
    r"^```(?P<language>\w+)\n(?P<source>.*?)^```$",
    re.M | re.S,
)
NUMBER = re.compile(r"0x[0-9a-f]+|%\w+|\d[\d,]*(\.\d+)?")
ALL = sorted(
    path.relative_to(DOCS.parent).as_posix()
    for path in [
        DOCS.parent / "README.md",
        *DOCS.glob("[!_]*.md"),
        *DOCS.glob("guides/*.md"),
        *DOCS.glob("internals/*.md"),
    ]
)

# Who runs blocks of a language on a page: a file that names the page.
TAKEN = {
    "README.md text": "tests/test_readme.py",
    "docs/checks.md terminal": "tests/cli/test_check.py",
    "docs/coverage.md terminal": "tests/cli/test_coverage.py",
    "docs/profiling.md terminal": "tests/cli/test_profile.py",
    "docs/debugging.md recorded": "tools/record_debugging.py",
    "docs/debugging.md recorded run": "tools/record_debugging.py",
    "docs/dask.md text": "tests/docs/test_many.py",
    "docs/ray.md text": "tests/docs/test_many.py",
    "docs/tiles.md py": "tests/ecosystem/test_programs.py",
    "docs/kernels-in-python.md py": "tests/ecosystem/test_programs.py",
    "docs/guides/jax.md py": "tests/ecosystem/test_programs.py",
    "docs/matrix-products.md py": "tests/ecosystem/test_programs.py",
}

NEEDS_NVCC = {"docs/cuda-programs.md"}
HAS_NVCC = bool(find_nvidia_binary_utility("nvcc") and shutil.which("g++"))

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
    for block in BLOCK.finditer((DOCS.parent / page).read_text()):
        if block["hidden"]:
            (folder / block["name"]).write_text(block["lines"])
        if block["kind"] == "file":
            change = re.fullmatch(r"(\S+) = (\S+), with (.*) as (.*)", block["words"])
            if change:  # of a file above, in front of a session
                name, other, old, new = change.groups()
                before = (folder / other).read_text()
                assert before.count(old) == 1, (name, old)
                (folder / name).write_text(before.replace(old, new))
            else:
                (folder / block["words"]).write_text(block["source"])
        if block["language"] == "console" and block["kind"] in {None, "file"}:
            found += re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block["source"], re.M)
        if block["kind"] == "prints":
            found.append((block["words"], f"...{block['source'].rstrip()}..."))
    return found


def has_session(page: str) -> bool:
    blocks = BLOCK.finditer((DOCS.parent / page).read_text())
    return any(b["kind"] == "prints" or b["language"] == "console" and b["kind"] in {None, "file"} for b in blocks)


PAGES = [page for page in ALL if has_session(page)]


@pytest.mark.parametrize("page", PAGES)
def test_sessions_print_what_the_page_says(page: str, tmp_path: Path) -> None:
    if page in NEEDS_NVCC and not HAS_NVCC:
        pytest.skip("needs nvcc (pip install cupola[nvcc]) and g++")
    for command, printed in sessions(page, tmp_path):
        comes = run(tmp_path, command)
        said, told = (NUMBER.sub("#", text).strip() for text in (printed, comes))
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(said, told, flags), f"$ {command}\n{comes}"


def test_there_are_sessions(tmp_path: Path) -> None:
    assert "docs/start.md" in PAGES and len(PAGES) >= 9
    assert len(sessions("docs/start.md", tmp_path)) >= 4


@pytest.mark.parametrize("page", ALL)
def test_each_block_is_run_or_says_why_not(page: str) -> None:
    for block in BLOCK.finditer((DOCS.parent / page).read_text()):
        kind, language = block["kind"], block["language"]
        if block["hidden"] or kind in {"file", "not run", "prints"}:
            continue
        if language in {"python", "pycon"} or (language == "console" and kind is None):
            continue  # tests/test_readme.py runs the former, this module the latter
        if language == "text" and "│" in block["source"]:
            continue
        runner = TAKEN.get(f"{page} {kind or language}")
        assert runner, f"{page}: this block is not run, and does not say why:\n{block[0]}"
        assert page.removeprefix("docs/") in (DOCS.parent / runner).read_text(), (page, runner)
