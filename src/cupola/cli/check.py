"""``cupola run --check memory``: the program fails when one of its kernels did, whatever it makes of that itself.

The CPU device checks every access to memory in any case, and the call that waits for the kernel returns the error. A
program that does not look at it goes on, and may end as if all had been well. So it runs as a child here, which notes
failed kernels in a file (``cpu/driver/base/fault_log.c``), and so do programs that it starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

CHECKS = {"memory": True, "race": False, "initialization": False, "synchronization": False}
"""Names of checks, and whether the CPU device has them."""

FAILED = 1
"""The exit status of a program that found nothing wrong itself."""


def prepare(name: str, device: str | None) -> str:
    """The device on which a check runs.

    Raises
    ------
    ValueError
        When there is no such check, or another device is chosen; the text says what there is.
    """
    if not CHECKS.get(name):
        there = ", ".join(check for check, is_there in CHECKS.items() if is_there)
        problem = "is not there yet" if name in CHECKS else "is unknown"
        raise ValueError(f"--check {name} {problem}: the CPU device has the check {there}")
    if device not in (None, "cpu"):
        raise ValueError("--check is for the CPU device only: add --device cpu (for GPUs there is compute-sanitizer)")
    return "cpu"


def run(command: Sequence[str]) -> int:
    """Run ``cupola run`` with other arguments, and say which kernels have failed.

    Returns the exit status: the program's own, 128 and the number of the signal that ended it, or `FAILED`.
    """
    handle, path = tempfile.mkstemp(prefix="cupola-faults-")
    os.close(handle)
    try:
        status = run_child(command, CUPOLA_FAULT_LOG=path)
        with open(path, encoding="utf-8", errors="replace") as log:
            faults = [line.rstrip("\n").split(" ", 2) for line in log]
    finally:
        os.unlink(path)
    for error, process, kernel in faults:
        print(f"cupola run --check: {error} in kernel '{kernel}' (process {process})", file=sys.stderr)
    return status or (FAILED if faults else 0)


def run_child(command: Sequence[str], **variables: str) -> int:
    """Run ``cupola run`` with other arguments, and some variables of the environment; returns the exit status."""
    return _wait([sys.executable, "-m", "cupola", "run", *command], {**os.environ, **variables})


def _wait(command: list[str], variables: dict[str, str]) -> int:
    """Wait for a child, which gets the signals that a terminal sends by itself, and others from here."""
    with subprocess.Popen(command, env=variables) as child:
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
