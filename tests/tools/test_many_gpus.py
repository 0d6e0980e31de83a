"""tools/many_gpus.sh: what it says of steps, and that it can be stopped."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests import limits, processes

TOOL = Path(__file__).parents[2] / "tools" / "many_gpus.sh"


def start(folder, program, **variables):
    """The tool with a program in the place of Python."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    outer = {name: value for name, value in os.environ.items() if name not in ("STEPS", "JOBS")}
    environment = outer | {"CUPOLA_DEVICE": "cpu", "GPUS": "2", "PYTHON": str(python)} | variables
    return processes.Child(["bash", str(TOOL), str(folder / "logs")], env=environment, stdout=processes.PIPE)


@pytest.mark.parametrize(
    ("program", "variables", "said", "status"),
    [
        ("echo all well", {}, r"devices +\d+ s, passed\n(.|\n)*passed: devices; failed: none; not run: none", 0),
        ("exit 3", {}, r"FAILED with 3\n(.|\n)*passed: none; failed: devices; not run: none", 1),
        ('[ "$1" != -c ]', {"STEPS": "torchrun"}, r"has no torch\n(.|\n)*failed: none; not run: torchrun", 0),
        ("sleep 30", {"STEP_SECONDS": "1"}, "FAILED: its time was over", 1),
        ('echo "$@"', {"STEPS": "nccl_transfers"}, "--ranks 2 --sizes 8,4K,64K,1M --json", 0),
        ("echo", {"STEPS": "nothing"}, r"in all \d+ s on 2 devices", 0),
    ],
)
def test_steps(tmp_path, program, variables, said, status):
    running = start(tmp_path, program, **{"STEPS": "devices", **variables})
    text, _ = running.communicate()
    assert re.search(said, text) and running.returncode == status, text


def test_it_can_be_stopped(tmp_path):
    """At once, with what the step has started."""
    running = start(tmp_path, f"echo $$ > {tmp_path}/number.new; mv {tmp_path}/number.new {tmp_path}/number; sleep 60")
    limits.until(lambda: (tmp_path / "number").exists() or running.poll() is not None)
    running.send_signal(signal.SIGTERM)
    running.communicate()
    assert running.returncode == 130
    number = int((tmp_path / "number").read_text())
    limits.until(lambda: number not in processes.living(), "the step goes on")
