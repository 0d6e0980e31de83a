"""``cupola doctor``: whether this installation works, and what to do where it does not."""

from __future__ import annotations

import json
import textwrap

from . import mpi, smoke
from .checks import FAIL, NOTE, OK, WARN, Check, judge
from .installation import Facts, collect, collect_more
from .output import DIM, GREEN, RED, YELLOW, paint, rows, show

COLOURS = {OK: GREEN, NOTE: DIM, WARN: YELLOW, FAIL: RED}
MARKS = {OK: "ok", NOTE: "note", WARN: "WARN", FAIL: "FAIL"}
WIDTH = 100


def run(*, as_json: bool = False) -> int:
    """Print the verdict on each part; the exit status is 1 when something would fail."""
    facts = {**collect(), **collect_more(), "mpi": mpi.in_child(), "smoke_test": smoke.in_child()}
    checks = judge(facts)
    healthy = all(check.status != FAIL for check in checks)
    report = {"healthy": healthy, "checks": [check._asdict() for check in checks], "facts": facts}
    show(json.dumps(report, indent=2) if as_json else as_text(facts, checks))
    return 0 if healthy else 1


def as_text(facts: Facts, checks: list[Check]) -> str:
    """The verdicts as a table for people, and below it what to do."""
    python = facts["python"]
    lines = [f"cupola {facts['cupola']} on Python {python['version']} ({python['executable']})", ""]
    table = rows([(MARKS[check.status], check.name, check.found) for check in checks])
    lines += [paint(line[:4], COLOURS[check.status]) + line[4:] for check, line in zip(checks, table, strict=True)]
    for status, title in ((FAIL, "To be fixed"), (WARN, "Better fixed"), (NOTE, "Optional")):
        found = [check for check in checks if check.status == status]
        if found:
            lines += ["", f"{title}:"]
            for check in found:
                lines += _paragraph(f"{check.name}: {check.advice}")
    failed = sum(check.status == FAIL for check in checks)
    lines += ["", f"{failed} {'problem' if failed == 1 else 'problems'} to be fixed." if failed else "It works."]
    return "\n".join(lines)


def _paragraph(text: str) -> list[str]:
    # Words are not broken: commands are copied from here.
    lines: list[str] = []
    for number, line in enumerate(text.splitlines()):
        start = "  - " if number == 0 else "    "
        wrapped = textwrap.wrap(
            line, WIDTH, initial_indent=start, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        lines += wrapped
    return lines
