"""tools/under_load.py: which tests fail, how often, and that the busy processes end."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from tests import processes
from tests.left_behind import nothing_left_behind

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "tools" / "under_load.py"
TOOL = runpy.run_path(str(PATH))

TESTS = """
import os
from pathlib import Path

def test_good():
    pass

def test_the_second_time():
    try:
        Path("{folder}/first").mkdir()
    except FileExistsError:
        assert False, "again - and"
"""


def under_load(folder: Path, *arguments: object):
    (folder / "test_it.py").write_text(TESTS.format(folder=folder))
    options = ["--busy", 1, "--workers", 0, "--logs", folder / "logs"]
    plugins = ["-p", "no:hypothesispytest", "-p", "no:cupola.testing.plugin", "--assert=plain"]
    return processes.run([sys.executable, PATH, *options, *arguments, *plugins, folder / "test_it.py"])


def test_failures_are_counted(tmp_path):
    with nothing_left_behind():
        done = under_load(tmp_path, "--times", 3)
    *runs, summary, test = done.stdout.splitlines()
    assert done.returncode == 1 and done.stderr == ""
    assert [run.split()[2] for run in runs] == ["0", "1", "1"]
    assert summary == "2 of 3 runs failed, with 1 busy processes beside them"
    assert test.startswith("  2 times: ") and test.endswith("test_it.py::test_the_second_time")
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["1.log", "2.log", "3.log"]


def test_one_good_run(tmp_path):
    done = under_load(tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("0 of 1 runs failed, with 1 busy processes beside them\n")


def test_suspects_exist():
    suspects = TOOL["suspects"]()
    assert suspects and [path for path in suspects if not (ROOT / path.partition("::")[0]).exists()] == []


def test_numbers_that_make_no_sense(tmp_path):
    done = under_load(tmp_path, "--times", 0)
    assert done.returncode == 2 and "--times must be at least 1" in done.stderr
