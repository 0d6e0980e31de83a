"""What must pass before a change lands: the parts of .ci/run, and the jobs that run them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "run"
PARTS = re.findall(r"^parts=\((.*)\)$", SCRIPT.read_text(), re.M)[0].split()


def test_the_jobs_run_each_part_once() -> None:
    (jobs,) = re.findall(r"^ *parts: \[(.*)\]$", (ROOT / ".github/workflows/ci.yml").read_text(), re.M)
    assert sorted(jobs.replace(",", " ").split()) == sorted(PARTS)


def test_a_run_without_names_runs_each_part_once() -> None:
    everything = SCRIPT.read_text().rpartition("else\n")[2]
    lines = re.findall(r"^ +(?:measured|beside_each_other) (.*)$", everything, re.M)
    assert sorted(" ".join(lines).split()) == sorted(PARTS)


def test_each_part_is_documented() -> None:
    page = (ROOT / "docs/testing.md").read_text().partition("## What CI runs")[2].partition("\n## ")[0]
    rows = "".join(re.findall(r"^\| (`.*?) \|", page, re.M))
    assert sorted(re.findall(r"`(\w+)`", rows)) == sorted(PARTS)


def test_a_part_that_there_is_not_is_refused_before_anything_is_made() -> None:
    done = subprocess.run([SCRIPT, "style", "tests"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f".ci/run: there is no part tests; the parts are {' '.join(PARTS)}\n"
