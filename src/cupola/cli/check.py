"""``cupola run --check``: the program runs with checks of its kernels, and fails when they find something.

What they find is told when the program has ended, whatever it makes of that itself. So it runs as a child here, which
writes its findings to a file as they are made (``cpu/reports/findings.py``), and so do programs that it starts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .options import check_file, not_written

if TYPE_CHECKING:
    from cupola.cpu.reports.findings import Finding

FAILED = 1
"""The exit status of a program that found nothing wrong itself, when checks did or a report could not be written."""


def prepare(text: str, reports: Sequence[str], device: str | None) -> str:
    """Switch checks on for this process and those that it starts; returns the device on which they run.

    Raises
    ------
    ValueError
        When there is no such check, another device is chosen, or a report cannot be written there; the text says what
        there is.
    """
    from cupola.cpu.reports import kinds

    names = kinds.parse(text)
    if device not in (None, "cpu"):
        raise ValueError("--check is for the CPU device only: add --device cpu (for GPUs there is compute-sanitizer)")
    for path in reports:
        check_file("--report", path, (".json", ".sarif"))
    os.environ["CUPOLA_CHECK"] = ",".join(names)
    return "cpu"


def run(command: Sequence[str], reports: Sequence[str]) -> int:
    """Run ``cupola run`` with other arguments, and say what was found.

    Returns the exit status: the program's own, 128 and the number of the signal that ended it, or `FAILED`.
    """
    handle, path = tempfile.mkstemp(prefix="cupola-findings-")
    os.close(handle)
    try:
        status = run_child(command, CUPOLA_FINDINGS=path)
        with open(path, encoding="utf-8", errors="replace") as log:
            found = _merge(log.read().splitlines())
    finally:
        os.unlink(path)
    for finding in found:
        if finding.silenced is None:
            print(f"cupola run --check: {finding}", file=sys.stderr)
    if reports:
        from cupola.cpu.reports import formats

        for path in reports:
            try:
                formats.write(path, found)
            except OSError as error:
                print(f"cupola run: {not_written('--report', path, error)}", file=sys.stderr)
                status = status or FAILED
    return status or (FAILED if any(finding.silenced is None for finding in found) else 0)


def take_findings() -> str:
    """What was found in this process since the last call, as text, when the kernels that were launched are done."""
    from cupola.cpu import _checks

    return "\n".join(map(str, _checks.take()))


def _merge(lines: Sequence[str]) -> list[Finding]:
    """The findings of a log; what processes have told again is the same with other counts."""
    from cupola.cpu.reports.findings import from_dict

    found: dict[tuple[int, int], Finding] = {}
    for line in lines:
        values = json.loads(line)
        key = values.pop("process"), values.pop("number")
        if values.pop("taken", False):
            found.pop(key, None)
        else:
            found[key] = from_dict(values)
    return list(found.values())


def run_child(command: Sequence[str], **variables: str) -> int:
    """Run ``cupola run`` with other arguments, and some variables of the environment; returns the exit status."""
    return _wait([sys.executable, "-m", "cupola", "run", *command], {**os.environ, **variables})


def _wait(command: list[str], variables: dict[str, str]) -> int:
    """Wait for a child, which gets the signals that a terminal sends by itself, and others from here.

    It has the files that this process was given, too: mpiexec talks to its ranks through one.
    """
    with subprocess.Popen(command, env=variables, close_fds=False) as child:
        before = {
            number: signal.signal(number, lambda number, frame: child.send_signal(number))
            for number in (signal.SIGTERM, signal.SIGHUP)
        }
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            status = child.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return status if status >= 0 else 128 - status
