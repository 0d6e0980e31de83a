"""What the emulated NCCL answers to calls with one rank is what NVIDIA's library answers on an H200 (answers.py)."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests import processes

PROGRAM = Path(__file__).with_name("answers.py")
RECORDED = PROGRAM.with_name("h200.txt")


def lines(text: str) -> dict[tuple[str, str, int], tuple[str, str]]:
    """What was answered, and the text of an error, by part, call, and how many times the part had that call before."""
    found: dict[tuple[str, str, int], tuple[str, str]] = {}
    part = ""
    for line in text.splitlines():
        if line.startswith("# "):
            part = line[2:]
            continue
        call, _, answer = line.partition(" -> ")
        status, _, words = answer.partition(" | ")
        words = re.sub(r"rank \d and rank \d both on CUDA device [0-9a-f]+", "two ranks on a device", words)
        words = re.sub(r"reduction operation \d{5,}", "reduction operation N", words)
        count = sum(known[:2] == (part, call) for known in found)
        found[part, call, count] = (status, "" if words == "(as before)" else words)
    return found


@pytest.mark.cpu_only("about the library of the CPU device")
def test_answers_are_those_of_a_gpu():
    """The same statuses, and texts that begin as NVIDIA's do; the CPU device's may go on."""
    recorded = lines(RECORDED.read_text())
    parts = dict.fromkeys(part for part, _, _ in recorded)
    command = [sys.executable, str(PROGRAM), *parts]
    done = processes.run(command, env={**os.environ, "CUPOLA_CPU_DEVICES": "1", "ANSWER_SECONDS": "1e6"})
    assert done.returncode == 0, done.stderr
    answered = lines(done.stdout)
    wrong = {
        key: (wanted, answered.get(key))
        for key, wanted in recorded.items()
        if key not in answered or answered[key][0] != wanted[0] or not answered[key][1].startswith(wanted[1])
    }
    assert len(recorded) > 230
    assert not wrong
