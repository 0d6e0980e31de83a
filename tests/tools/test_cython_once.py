"""The builds of CI share what Cython makes, but nothing that is too old."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests import processes

TOOL = Path(__file__).resolve().parents[2] / "tools" / "cython_once.sh"

# A Cython that notes in CALLS what it is told, and whose C is the module itself.
CYTHON = """#!/bin/sh
[ "$1" = --version ] && { cat VERSION; exit; }
echo "$@" >>CALLS
while [ $# -gt 3 ]; do shift; done
[ "$2" = -o ] || exit 0
cp "$1" "$3"
printf '%s: \\\\\\n  %s \\\\\\n  ../src/cupola/a.pxd \\\\\\n  ../elsewhere.pxd' "$3" "$1" >"$3.dep"
"""


class Tree:
    """A copy of the tool, with sources beside it as often as they are wanted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tools").mkdir()
        (folder / "bin").mkdir()
        shutil.copy(TOOL, folder / "tools")
        (folder / "VERSION").write_text("3")
        (folder / "CALLS").touch()
        cython = folder / "bin" / "cython"
        cython.write_text(CYTHON.replace("VERSION", f"{folder}/VERSION").replace("CALLS", f"{folder}/CALLS"))
        cython.chmod(0o755)

    def sources(self, name: str) -> Path:
        room = self.folder / name / "src" / "cupola"
        room.mkdir(parents=True)
        (room / "a.pyx").write_text("module")
        (room / "a.pxd").write_text("declarations")
        (self.folder / name / "build").mkdir()
        return self.folder / name

    def run(self, *arguments: str, cwd: Path) -> int:
        """Run the tool; returns how often Cython has been run since the beginning."""
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        tool = self.folder / "tools" / TOOL.name
        processes.run([tool, *arguments], cwd=cwd, check=True, env={**os.environ, "PATH": path})
        return len((self.folder / "CALLS").read_text().splitlines())

    def translate(self, at: Path, *options: str) -> int:
        return self.run(*options, "-M", str(at / "src/cupola/a.pyx"), "-o", "a.c", cwd=at / "build")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_another_build_takes_what_is_there(tree: Tree) -> None:
    one, other = tree.sources("one"), tree.sources("other")
    assert tree.translate(one) == 1
    assert tree.translate(other) == 1
    assert (other / "build/a.c").read_text() == "module"
    # ninja is told the files of this tree.
    head, *files = (other / "build/a.c.dep").read_text().replace("\\\n", " ").split()
    assert head == "a.c:" and files == [f"{other}/src/cupola/a.pyx", f"{other}/src/cupola/a.pxd"]


@pytest.mark.parametrize("changed", ["module", "declarations", "version", "options"])
def test_what_differs_is_made_again(tree: Tree, changed: str) -> None:
    one, other = tree.sources("one"), tree.sources("other")
    tree.translate(one)
    if changed == "version":
        (tree.folder / "VERSION").write_text("4")
    elif changed != "options":
        (other / "src/cupola" / {"module": "a.pyx", "declarations": "a.pxd"}[changed]).write_text("new")
    assert tree.translate(other, *(["-X"] if changed == "options" else [])) == 2
    assert (other / "build/a.c").read_text() == ("new" if changed == "module" else "module")


def test_all_else_is_for_cython(tree: Tree) -> None:
    assert tree.run("--generate-shared=a.c", cwd=tree.folder) == 1
    assert tree.run("--generate-shared=a.c", cwd=tree.folder) == 2


def test_modules_of_others_are_for_cython(tree: Tree) -> None:
    (tree.folder / "a.pyx").write_text("module")
    assert tree.run("-M", str(tree.folder / "a.pyx"), "-o", "a.c", cwd=tree.folder) == 1
    assert tree.run("-M", str(tree.folder / "a.pyx"), "-o", "a.c", cwd=tree.folder) == 2
