"""Tests that take turns: a run has some of them, and the runs of a few days have all.

``@pytest.mark.turn(number, of=count)`` says which runs have a test: those whose turn, divided by the count, leaves that
number. The turn is the number of the day. ``--turn`` or the variable CUPOLA_TESTS_TURN chooses another one, or ``all``,
which is the choice where the command line names a test (``file.py::test``).

With ``--share count``, the parameters of a test that has many take turns, too (``make sanitize SANITIZE=quick``).
"""

from __future__ import annotations

import os
import time

import pytest

VARIABLE = "CUPOLA_TESTS_TURN"
MARK = "turn(number, of): is a part of those runs whose turn leaves this number when it is divided by `of`"

FEW = 4  # parameters, of which each run has all


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--turn", metavar="N", help=f"which tests that take turns are run: a number, or all ({VARIABLE})")
    parser.addoption("--share", type=int, default=1, help=f"run one in so many of a test's parameters, if over {FEW}")


def begin(config: pytest.Config) -> None:
    """Choose the turn, also for processes that this one starts: workers of pytest-xdist must agree at midnight, too."""
    otherwise = "all" if any("::" in argument for argument in config.args) else str(int(time.time() // 86400))
    chosen = config.getoption("--turn") or os.environ.get(VARIABLE) or otherwise
    if chosen != "all" and not chosen.isdecimal():
        raise pytest.UsageError(f"a turn is a number, or all; {chosen!r} is neither (--turn, {VARIABLE})")
    os.environ[VARIABLE] = chosen


def header() -> str:
    chosen = os.environ[VARIABLE]
    return (
        "all tests that take turns" if chosen == "all" else f"turn {chosen} of tests that take turns (--turn=all: all)"
    )


def is_now(number: int, of: int) -> bool:
    """Whether what has this number, divided by a count, is for this run."""
    chosen = os.environ[VARIABLE]
    return chosen == "all" or (number - int(chosen)) % of == 0


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take those from the list that are for another turn."""
    marks = ((item, mark) for item in items for mark in item.iter_markers("turn"))
    others = {item for item, mark in marks if not is_now(*mark.args, **mark.kwargs)}
    others |= _of_many(items, config.getoption("--share"))
    if others:
        config.hook.pytest_deselected(items=[item for item in items if item in others])
        items[:] = [item for item in items if item not in others]


def _of_many(items: list[pytest.Item], share: int) -> set[pytest.Item]:
    """Those of tests with many parameters that are for another turn."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items if share > 1 else ():
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    many = (of_one for of_one in functions.values() if len(of_one) > FEW)
    return {item for of_one in many for number, item in enumerate(of_one) if not is_now(number, share)}
