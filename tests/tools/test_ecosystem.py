"""docs/ecosystem.md is what tools/ecosystem has recorded."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tools.ecosystem import page, record


def test_the_page_is_made_of_the_records() -> None:
    assert page.PAGE.read_text() == page.render(page.records()), "make it with: python tools/ecosystem/page.py"


@pytest.mark.parametrize("run", page.records(), ids=lambda run: run["command"])
def test_every_failure_has_a_reason(run: dict[str, Any]) -> None:
    assert run["passed"] > 0 or run["what"] == record.PRIVATE
    reasons = {why: names for why, names in run["reasons"].items() if not why.startswith("not run")}
    assert sum(map(len, reasons.values())) == run["failed"]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("a\nthe kernel has hidden parameters: b\nRuntimeError: c\n", record.REASONS[0][1]),
        ("a\nValueError: b\n", "ValueError: b"),
        ("", "no output"),
    ],
)
def test_reasons(output: str, reason: str) -> None:
    assert record.reason_for(output) == reason


def test_a_page_of_one_run() -> None:
    run = record.row("pytest", "cupola run --model t4 x", "some", Counter(passed=2, failed=1), {"why": ["b"]})
    text = page.render([run])
    assert f"| pytest | {run['version']} | `cupola run --model t4 x` | 2 | 1 | 0 |" in text
    assert "| pytest, `t4` | `b` | why |" in text
