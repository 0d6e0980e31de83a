"""Sanitizers: what their lists of tests name is there, and what a machine lacks is said before anything is built."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import processes

ROOT = Path(__file__).resolve().parents[2]
LISTS = sorted((ROOT / "tools" / "sanitize").glob("*.quick")) + sorted((ROOT / "tools" / "sanitize").glob("*.whole"))


def arguments(list_of_tests: Path) -> list[str]:
    """What pytest gets, as tools/sanitize.sh reads it."""
    lines = [re.sub(" *#.*", "", line) for line in list_of_tests.read_text().splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize("list_of_tests", LISTS, ids=lambda path: path.name)
def test_lists_name_tests(list_of_tests: Path) -> None:
    named = arguments(list_of_tests)
    assert named
    for argument in named:
        path, _, test = re.sub("^--(ignore|deselect)=", "", argument).partition("::")
        assert (ROOT / path).exists(), f"{argument}: there is no {path}"
        assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{argument}: there is no {test}"


def test_quick_is_a_part_of_whole() -> None:
    whole = [argument for argument in arguments(ROOT / "tools/sanitize/thread.whole") if not argument.startswith("--")]
    for argument in arguments(ROOT / "tools/sanitize/thread.quick"):
        assert argument.startswith("--") or any(argument.startswith(part) for part in whole), argument


def sanitize(kind: str, compiler: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{compiler}\n")
    path.chmod(0o755)
    return processes.run(
        [ROOT / "tools" / "sanitize.sh", kind],
        env={"PATH": os.environ["PATH"], "CC": str(path), "PYTHON": "/bin/false"},
    )


@pytest.mark.parametrize(
    ("kind", "compiler", "message"),
    [
        # A compiler says the bare name of what it does not have.
        ("thread", "echo libtsan.so", "has no libtsan: install it"),
        ("address", "echo libasan.so", "has no libasan: install it"),
        (
            "address",
            "case $1 in *ubsan*) echo libubsan.so;; *) echo /lib/libasan.so;; esac",
            "has no libubsan: install",
        ),
        ("memory", "exit 1", "the sanitizers are address .with UBSan. and thread, not memory"),
    ],
)
def test_what_is_missing(kind: str, compiler: str, message: str, tmp_path: Path) -> None:
    done = sanitize(kind, compiler, tmp_path)
    assert done.returncode == 1
    assert re.search(message, done.stderr), done.stderr
    assert done.stdout == ""
