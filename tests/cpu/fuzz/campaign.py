"""Runs mutants in processes of their own, and finds out what a process that ends or hangs was doing."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import limits, processes

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Outcome:
    """What came of a seed: "ok", a CUDA error, "runs on" for a kernel that does not end, or "ERROR" and a defect."""

    seed: int
    text: str

    @property
    def is_defect(self) -> bool:
        return self.text.startswith("ERROR")


def campaign(
    seeds: list[int], *, child: str = "child", compile_seconds: float = 60, launch_seconds: float = 2
) -> Iterator[Outcome]:
    """The outcome of each seed, by one of the programs beside this file."""
    left = list(seeds)
    while left:
        done = 0
        for outcome in _one_process(left[:2000], child, compile_seconds, launch_seconds):
            done += 1
            yield outcome
        left = left[done:]


def _one_process(seeds: list[int], child: str, compile_seconds: float, launch_seconds: float) -> Iterator[Outcome]:
    """Outcomes of the first seeds, up to one that its process did not survive."""
    process = processes.Child(
        [sys.executable, "-m", f"tests.cpu.fuzz.{child}", *map(str, seeds)],
        cwd=ROOT,
        stdout=processes.PIPE,
        stderr=processes.PIPE,
        errors="replace",
        env={**os.environ, "CUPOLA_DEVICE": "cpu", "CUPOLA_CPU_THREADS": "1", "CUPOLA_CPU_CACHE": "0"},
    )
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    errors: list[str] = []
    readers = [
        threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True),
        threading.Thread(target=lambda: errors.append(process.stderr.read() if process.stderr else ""), daemon=True),
    ]
    for reader in readers:
        reader.start()
    seed, stage = seeds[0], "start"
    try:
        while True:
            try:
                seconds = launch_seconds if stage == "launch" else compile_seconds
                line = lines.get(timeout=seconds * limits.busy())
            except queue.Empty:
                text = "runs on" if stage == "launch" else f"ERROR hangs at the stage '{stage}'"
                yield Outcome(seed, text)
                return
            if line is None:
                break
            words = line.split(maxsplit=2)
            if len(words) == 3 and words[0] == "begin" and words[1].isdecimal():
                seed, stage = int(words[1]), words[2].strip()
            elif len(words) == 3 and words[0] == "end" and words[1].isdecimal():
                yield Outcome(int(words[1]), words[2].strip())
                stage = "between"
                if int(words[1]) == seeds[-1]:
                    return
        process.wait()
        readers[1].join(10)
        told = "".join(errors).strip()[-1500:]
        yield Outcome(seed, f"ERROR the process ended with {process.returncode} at the stage '{stage}': {told}")
    finally:
        process.kill()
        process.wait()


def _read_lines(stream: object, lines: queue.SimpleQueue[str | None]) -> None:
    for line in stream:  # type: ignore[attr-defined]
        lines.put(line)
    lines.put(None)
