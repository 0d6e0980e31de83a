"""Tests that want another device than their process has: they run in a pytest of their own, whose reports count.

A process has one kind of device, and the CPU device one model, chosen before the first use. All tests of a run
that want the same device share a process, which runs them when the first of them is due. With pytest-xdist each test
has a process of its own.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_REPORTS = "CUPOLA_TEST_REPORTS"  # the file for the reports of a child


@dataclass(frozen=True)
class Choice:
    """A device for a test; None where any will do."""

    device: str | None = None  # "cpu" or "gpu"
    model: str | None = None
    devices: int | None = None

    def __str__(self) -> str:
        count = None if self.devices is None else f"{self.devices}-device{'' if self.devices == 1 else 's'}"
        return "-".join(filter(None, (self.model or self.device, count))) or "any"

    def fits(self) -> bool:
        """Whether this process has that device; makes the choice if it has not been made."""
        from cupola.bindings import _provider

        if self == Choice():
            return True
        if not _provider.is_cpu():
            return self.device != "cpu" and self.model is None
        model, count = os.environ.get("CUPOLA_CPU_MODEL") or "h200", os.environ.get("CUPOLA_CPU_DEVICES") or "1"
        return (
            self.device != "gpu"
            and self.model in (None, model)
            and (self.devices is None or str(self.devices) == count)
        )

    def environment(self) -> dict[str, str]:
        """The variables that choose the device for a process."""
        made = {"CUPOLA_DEVICE": "gpu" if self.device == "gpu" else "cpu"}
        if self.device != "gpu":
            made["CUPOLA_CPU_MODEL"] = self.model or os.environ.get("CUPOLA_CPU_MODEL") or "h200"
            made["CUPOLA_CPU_DEVICES"] = str(self.devices or os.environ.get("CUPOLA_CPU_DEVICES") or 1)
        return made


def choices(mark: pytest.Mark | None, *, gpu_too: bool = False) -> list[Choice]:
    """The devices that a mark asks for.

    Raises
    ------
    TypeError, ValueError
        The mark says something else than device, model and devices, or things that do not go together.
    """
    wanted: dict[str, Any] = dict(mark.kwargs) if mark is not None else {}
    unknown = sorted(wanted.keys() - {"device", "model", "devices"})
    if unknown or (mark is not None and mark.args):
        what = ", ".join(unknown) or "values without a name"
        raise TypeError(f"the mark cupola takes device=, model= and devices=, not {what}")
    names, models, counts = (_several(wanted.get(key)) for key in ("device", "model", "devices"))
    for name in names:
        if name not in (None, "cpu", "gpu"):
            raise ValueError(f"the mark cupola has device={name!r}: it must be 'cpu' or 'gpu'")
    for model in models:
        if not (model is None or isinstance(model, str)):
            raise TypeError(f"the mark cupola has model={model!r}: it must be a name, such as 't4'")
    for count in counts:
        if count is not None and (not isinstance(count, int) or count < 1):
            raise ValueError(
                f"the mark cupola has devices={count!r}: it must be a number of devices, or a list of them"
            )
    if "gpu" in names and models != [None]:
        raise ValueError("the mark cupola has a model, which is for the CPU device, and device='gpu'")
    if gpu_too and names == [None]:
        names = ["cpu"] if models != [None] else ["cpu", "gpu"]
    elif models != [None]:
        names = ["cpu"]
    return [Choice(name, model, count) for name in names for model in models for count in counts]


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set, frozenset, range)) else [value]


def is_child() -> bool:
    """Whether this process runs tests for another pytest."""
    return _REPORTS in os.environ


# ---- the child -------------------------------------------------------------------------------------------------------


def begin(config: pytest.Config) -> None:
    """In a child: write the reports of the tests to the file that the parent reads."""
    if is_child() and not config.pluginmanager.has_plugin("cupola-reports"):
        config.pluginmanager.register(_Reports(config, os.environ[_REPORTS]), "cupola-reports")


class _Reports:
    def __init__(self, config: pytest.Config, path: str) -> None:
        self.config = config
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 (until the process ends)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.file.write(json.dumps(data) + "\n")
        self.file.flush()

    def pytest_unconfigure(self) -> None:
        self.file.close()


# ---- the parent ------------------------------------------------------------------------------------------------------

_DONE = pytest.StashKey[list[pytest.TestReport]]()


def run(
    item: pytest.Item, nextitem: pytest.Item | None, choice_of: Callable[[pytest.Item], Choice | None]
) -> bool | None:
    """Run a test in a child if it wants another device; None if it does not."""
    if _DONE not in item.stash:
        choice = choice_of(item)
        if choice is None or is_child() or choice.fits():
            return None
        group = [item]
        if not hasattr(item.config, "workerinput"):
            rest = item.session.items[item.session.items.index(item) + 1 :]
            group += [other for other in rest if choice_of(other) == choice]
        for member, reports in zip(group, _run_group(group, choice), strict=True):
            member.stash[_DONE] = reports
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in item.stash[_DONE]:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    item.session._setupstate.teardown_exact(nextitem)  # fixtures of a module that the test before this one has left
    return True


def _run_group(items: list[pytest.Item], choice: Choice) -> list[list[pytest.TestReport]]:
    if choice.device == "gpu" and (problem := _no_gpu()):
        return [[_report(item, "skipped", (str(item.path), 0, f"Skipped: {problem}"))] for item in items]
    found: dict[str, list[pytest.TestReport]] = {}
    rest = items
    while rest:  # a test that ends its process leaves the others for the next one
        found.update(_run_child(rest, choice))
        rest = [item for item in rest if item.nodeid not in found]
    return [found[item.nodeid] for item in items]


def _run_child(items: list[pytest.Item], choice: Choice) -> dict[str, list[pytest.TestReport]]:
    """The reports of a child; for the test with which it ended the last one is a failure that says so."""
    config = items[0].config
    handle, path = tempfile.mkstemp(prefix="cupola-reports-")
    os.close(handle)
    try:
        command = [sys.executable, "-m", "pytest", *_arguments(config), *(_place(item) for item in items)]
        done = subprocess.run(
            command,
            cwd=config.invocation_params.dir,
            env={**os.environ, **choice.environment(), _REPORTS: path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        found: dict[str, list[pytest.TestReport]] = {}
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            report = config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
            found.setdefault(report.nodeid, []).append(report)
    finally:
        os.unlink(path)
    cut = [item for item in items if not _is_whole(found.get(item.nodeid, []))]
    if cut:
        end = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        text = f"the process of this test ended with {end}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}".rstrip()
        for item in cut[:1] if found else cut:  # none has run where pytest could not begin
            found.setdefault(item.nodeid, []).append(_report(item, "failed", text))
    return found


def _is_whole(reports: list[pytest.TestReport]) -> bool:
    return any(report.when == "teardown" for report in reports)


def _report(item: pytest.Item, outcome: Any, why: Any) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, {}, outcome, why, "call")


def _place(item: pytest.Item) -> str:
    return os.path.join(item.config.rootpath, item.nodeid)


def _arguments(config: pytest.Config) -> list[str]:
    """The options of this run, without the places of tests, for a child that runs some of them."""
    worker = getattr(config, "workerinput", None)
    given: Sequence[str] = worker["mainargv"][1:] if worker else [os.fspath(a) for a in config.invocation_params.args]
    options = [argument for argument in given if argument not in config.args]
    if config.inipath is not None:
        options += ["-c", str(config.inipath)]
    options.append(f"--rootdir={config.rootpath}")
    if config.pluginmanager.has_plugin("xdist"):
        options += ["-n", "0"]
    if config.pluginmanager.has_plugin("_cov"):
        options.append("--no-cov")
    return options


@functools.cache
def _no_gpu() -> str:
    """Why there is no GPU, or nothing if there is one."""
    program = "from cupola import Device; Device(0).set_current()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "CUPOLA_DEVICE": "gpu"},
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return f"there is no GPU to run on ({lines[-1][:200]})"
