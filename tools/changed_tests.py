#!/usr/bin/env python
"""Run the tests that a change touches, for at most a minute: `make test-fast`.

    tools/changed_tests.py                 what differs from main, committed or not
    tools/changed_tests.py --since HEAD    what is not committed
    tools/changed_tests.py --list          only print the files

Tests mirror the source. For src/cupola/core/memory/_buffer.pyx these are tests/core/memory/test_buffer*.py, or where no
test has that name the whole folder tests/core/memory, or the next one above it that exists. A changed test runs itself,
a helper among the tests its folder. Tests that could not begin within the minute are skipped, and the summary says so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What has its tests somewhere else than the mirror says, by the beginning of the path; the first that fits counts.
ELSEWHERE = {
    "src/cupola/cpu/compiler/emit/instructions": ["tests/ptx"],
    "src/cupola/bindings/include": ["tests/bindings"],
    "bindgen": ["tests/bindings/test_generated.py", "tests/bindings/test_sample.py"],
    "examples": ["tests/examples"],
    "docs": ["tests/test_readme.py", "tests/docs"],
    "README.md": ["tests/test_readme.py"],
}
ALWAYS = ["tests/test_layers.py"]
"""The rule that everything keeps."""


def changed(since: str) -> list[str]:
    """Paths of the repository that differ from a commit, and those that git does not know yet."""

    def git(*arguments: str) -> list[str]:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    base = git("merge-base", since, "HEAD")[0]
    return git("diff", "--name-only", base) + git("ls-files", "--others", "--exclude-standard")


def tests_of(path: str) -> list[str]:
    """The test files and folders for a changed file, as paths of the repository; none for what has no tests."""
    parts = Path(path)
    if parts.parts[0] == "tests":
        if parts.name.startswith("test_") and parts.suffix == ".py":
            return [path] if (ROOT / path).exists() else []
        return _nearest(parts.parent)
    for beginning, tests in ELSEWHERE.items():
        if parts.is_relative_to(beginning):
            return tests
    if parts.parts[0] == "tools":
        return _named("tests/tools", parts.stem)
    if not parts.is_relative_to("src/cupola"):
        return []
    folder = Path("tests") / parts.parent.relative_to("src/cupola")
    return _named(folder, parts.stem.strip("_")) or _nearest(folder)


def _named(folder: str | Path, stem: str) -> list[str]:
    return sorted(str(test.relative_to(ROOT)) for test in (ROOT / folder).glob(f"test_{stem}*.py"))


def _nearest(folder: Path) -> list[str]:
    """The folder if it exists, or the next above it; not the whole suite."""
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    return [str(folder)] if folder != Path("tests") else []


def select(paths: list[str]) -> list[str]:
    """The tests for these files: single files first, then folders, without those that a folder has already."""
    found = dict.fromkeys(test for path in paths for test in tests_of(path))
    files = [test for test in found if test.endswith(".py")]
    folders = [test for test in found if not test.endswith(".py")]
    folders = [test for test in folders if not any(Path(other) in Path(test).parents for other in folders)]
    return list(dict.fromkeys(ALWAYS + files + folders))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", default="main", help="the commit to compare with (main)")
    parser.add_argument("--seconds", type=float, default=55, help="how long tests may begin (55)")
    parser.add_argument("--list", action="store_true", help="print the tests and run none")
    options, others = parser.parse_known_args()
    tests = select(changed(options.since))
    if options.list:
        print(*tests, sep="\n")
        return 0
    environment = {
        **os.environ,
        "CUPOLA_TESTS_UNTIL": str(time.monotonic() + options.seconds),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "tools"), os.environ.get("PYTHONPATH")])),
    }
    # All of those that take turns: that they are about what has changed is why they are run.
    command = [sys.executable, "-m", "pytest", "-p", "time_limit", "-n", "2", "-q", "--turn=all", *others, *tests]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
