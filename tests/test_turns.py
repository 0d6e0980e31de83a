"""Tests that take turns: each is in some run, and a run says which it has."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from tests import turns
from tests.ptx import harness

COUNT = 4


@pytest.fixture(autouse=True)
def no_turn(monkeypatch):
    monkeypatch.delenv(turns.VARIABLE)


def config(*arguments, turn=None, share=1):
    told = []
    hook = SimpleNamespace(pytest_deselected=lambda items: told.extend(items))
    options = {"--turn": turn, "--share": share}
    return SimpleNamespace(args=arguments, getoption=options.__getitem__, hook=hook, told=told)


@pytest.mark.parametrize(
    ("arguments", "option", "variable", "chosen"),
    [
        (["tests"], None, None, "20786"),
        (["tests"], None, "7", "7"),
        (["tests"], "3", "7", "3"),
        (["tests"], "all", None, "all"),
        (["tests/graph", "tests/test_turns.py::test_it[1]"], None, None, "all"),
        (["tests/test_turns.py::test_it"], None, "7", "7"),
    ],
)
def test_the_turn_is_chosen(monkeypatch, arguments, option, variable, chosen):
    monkeypatch.setattr(time, "time", lambda: 20786 * 86400 + 5)
    if variable:
        monkeypatch.setenv(turns.VARIABLE, variable)
    for _ in range(2):  # a process that this one starts has the same
        turns.begin(config(*arguments, turn=option))
        assert turns.os.environ[turns.VARIABLE] == chosen
    assert chosen in turns.header()


@pytest.mark.parametrize("text", ["x", "-1", "1.5"])
def test_what_is_no_turn(monkeypatch, text):
    monkeypatch.setenv(turns.VARIABLE, text)
    with pytest.raises(pytest.UsageError, match="a turn is a number, or all"):
        turns.begin(config("tests"))


class Item:
    def __init__(self, number, name="test"):
        self.number = number
        self.nodeid = f"{name}[{number}]"

    def iter_markers(self, name):
        return [] if self.number is None else [pytest.mark.turn(self.number, of=COUNT).mark]


def test_some_turn_has_each_test(monkeypatch):
    there = []
    for turn in range(100, 100 + COUNT):
        monkeypatch.setenv(turns.VARIABLE, str(turn))
        run, items = config(), [Item(number) for number in (None, *range(COUNT), 1)]
        everything = list(items)
        turns.leave_out(run, items)
        assert items[0].number is None and set(items) | set(run.told) == set(everything)
        there += [item.number for item in items[1:]]
    assert sorted(there) == [0, 1, 1, 2, 3]
    monkeypatch.setenv(turns.VARIABLE, "all")
    run, items = config(), [Item(number) for number in range(COUNT)]
    turns.leave_out(run, items)
    assert len(items) == COUNT and not run.told


def test_of_many_parameters_each_turn_has_a_share(monkeypatch):
    few, many = [Item(None, f"few{n % 2}") for n in range(2 * turns.FEW)], [Item(None, "many") for _ in range(9)]
    there = []
    for turn in range(7, 9):
        monkeypatch.setenv(turns.VARIABLE, str(turn))
        run, items = config(share=2), few + many
        turns.leave_out(run, items)
        assert items[: len(few)] == few and len(items) + len(run.told) == len(few + many)
        there += items[len(few) :]
    assert len(there) == len(many) and set(there) == set(many)
    monkeypatch.setenv(turns.VARIABLE, "all")
    items = few + many
    turns.leave_out(config(share=2), items)
    assert items == few + many


def test_instructions_that_no_form_has_take_no_turns(monkeypatch):
    texts = {
        "add.u32 d, a, b": True,
        "mad.lo.cc.u32 d|cc, a, b, c": True,
        "shl.b32 d, a, b": True,
        "add.rn.f32x2 d, a, b": False,  # of compute capability 10.0
        "madd.u32 d, a, b": False,
    }
    for text, recorded in texts.items():
        runs = 0
        for turn in range(8):
            monkeypatch.setenv(turns.VARIABLE, str(turn))
            runs += harness.is_for_this_run(text)
        assert runs == (8 // harness.PARTS if recorded else 8), text
