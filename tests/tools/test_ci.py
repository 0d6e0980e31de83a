"""What must pass before a change lands: the parts of .ci/run, and the jobs that run them."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests import processes

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "run"
PARTS = re.findall(r"^parts=\((.*)\)$", SCRIPT.read_text(), re.M)[0].split()


# What .ci/run and make, which run these tests, leave to their children.
CLEAN = {
    name: value for name, value in os.environ.items() if name not in {"WHEEL", "WORKERS", "MAKEFLAGS", "MAKELEVEL"}
}


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
    done = processes.run([SCRIPT, "style", "tests"])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f".ci/run: there is no part tests; the parts are {' '.join(PARTS)}\n"


MAKEFILE = """
dist/.built:
	@mkdir -p dist; touch dist/cupola.whl $@
%:
	@echo $@ $(WHEEL); [ "$(FAILS)" != $@ ]
"""
TARGETS = {"test": "test", "checked": "checked", "style": "lint", "docs": "docs", "ecosystem": "ecosystem",
           "address": "sanitize", "thread": "tsan"}  # fmt: skip


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script, where all that it runs only says so."""
    folder = tmp_path_factory.mktemp("repository")
    for name in (".ci", "tools"):
        (folder / name).mkdir()
    shutil.copy(SCRIPT, folder / ".ci")
    (folder / "Makefile").write_text(MAKEFILE)
    trial = folder / "tools" / "check_wheel.sh"
    trial.write_text('#!/bin/sh\necho wheel\n[ "$FAILS" != wheel ]\n')
    trial.chmod(0o755)
    return folder


def ci(folder: Path, *parts: str, fails: str = "") -> CompletedProcess[str]:
    script, environment = folder / ".ci" / "run", {**CLEAN, "FAILS": fails}
    return processes.run([script, *parts], env=environment)


def test_a_run_passes_when_all_parts_do(stand_in: Path) -> None:
    done = ci(stand_in)
    assert done.returncode == 0 and done.stdout.endswith("== .ci/run: all passed\n"), done.stdout + done.stderr
    for target in TARGETS.values():
        assert f"\n{target} dist/cupola.whl\n" in done.stdout
    assert "\nwheel\n" in done.stdout


@pytest.mark.parametrize("part", PARTS)
def test_a_run_fails_with_each_part(stand_in: Path, part: str) -> None:
    for chosen in ((), (part,)):
        done = ci(stand_in, *chosen, fails=TARGETS.get(part, part))
        assert done.returncode != 0 and "passed" not in done.stdout, done.stdout
    assert ci(stand_in, part).returncode == 0


@pytest.mark.parametrize(
    ("options", "editable", "installed"),
    [
        ([], False, ["--no-deps ."]),
        (["INSTALL_ARGS=-Csetup-args=-Dwerror=true"], False, ["--no-deps . -Csetup-args=-Dwerror=true"]),
        (["WHEEL=WHEEL"], False, ["--no-deps --force-reinstall WHEEL"]),
        (["WHEEL=WHEEL"], True, []),  # it stays as it was installed for development
    ],
)
def test_make_builds_or_installs_a_wheel(
    tmp_path: Path, options: list[str], editable: bool, installed: list[str]
) -> None:
    environment = tmp_path / "venv"
    (environment / "bin").mkdir(parents=True)
    python = environment / "bin" / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *install*) echo "$@" >>{tmp_path}/calls;; esac\n')
    python.chmod(0o755)
    wheel = tmp_path / "cupola.whl"
    wheel.touch()
    (tmp_path / "calls").touch()
    if editable:
        (environment / ".editable").touch()
    made = [f"VENV={environment}", f"{environment}/.installed", *options]
    processes.run(["make", *(word.replace("=WHEEL", f"={wheel}") for word in made)], cwd=ROOT, env=CLEAN, check=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.partition("--progress-bar off ")[2] for call in calls] == [
        call.replace("WHEEL", str(wheel)) for call in installed
    ]
    assert (environment / ".installed").exists()
