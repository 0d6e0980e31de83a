"""Every form of `forms/*.txt` gives what an H200 gave for it, on the CPU device and on a GPU.

On the CPU device LLVM optimizes one form in four, others on each day (tests/turns.py); the rest is compiled in the
simplest way, in half of the time. `--turn=all` has all of them optimized, as `CUPOLA_CPU_OPTIMIZE=1` has.
`docs/testing.md` tells how to add a form, and how to record.
"""

from __future__ import annotations

import os
from functools import cache

import pytest

from cupola.cpu.compiler.objects import machine
from tests import turns
from tests.ptx.device_forms import Runner
from tests.ptx.forms import Form, families, forms
from tests.ptx.recording import difference, pending_families, recorded

_SAME = pytest.mark.finds("race", reason="all threads store the same zero")
_ALL = [
    pytest.param(form, marks=_SAME if " 0; bar.sync 0" in form.line else ())
    for family in families()
    for form in forms(family)
]


@cache
def runner(family: str) -> Runner:
    return Runner(forms(family))


def is_optimized(form: Form) -> bool:
    """Whether it is one of the forms that are compiled as usual in this run; the name is a hash of the form."""
    return turns.is_now(int(form.name[-1], 16), 4)


@pytest.mark.parametrize("form", _ALL, ids=lambda form: f"{form.family}: {form.line}")
def test_form(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    if "CUPOLA_CPU_OPTIMIZE" not in os.environ:
        monkeypatch.setattr(machine, "quick", not is_optimized(form))
    expected = recorded(form)
    if expected is None:
        assert form.family in pending_families(), (
            f"{form.line!r} is not recorded. On a machine with a GPU: tools/record_ptx.py record --family {form.family}"
        )
    found = runner(form.family).run(form)
    if expected is not None:
        wrong = difference(form, found, expected)
        assert wrong is None, wrong


def test_each_form_is_optimized_in_one_turn_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    optimized: list[Form] = []
    for turn in range(20000, 20004):
        monkeypatch.setenv(turns.VARIABLE, str(turn))
        part = [form for form in forms("integer") if is_optimized(form)]
        assert part
        optimized += part
    assert sorted(form.line for form in optimized) == sorted(form.line for form in forms("integer"))
