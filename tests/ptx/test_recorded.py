"""Every form of `forms/*.txt` gives what an H200 gave for it, on the CPU device and on a GPU.

`docs/testing.md` tells how to add a form, and how to record.
"""

from __future__ import annotations

from functools import cache

import pytest

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


@pytest.mark.parametrize("form", _ALL, ids=lambda form: f"{form.family}: {form.line}")
def test_form(form: Form) -> None:
    expected = recorded(form)
    if expected is None:
        assert form.family in pending_families(), (
            f"{form.line!r} is not recorded. On a machine with a GPU: tools/record_ptx.py record --family {form.family}"
        )
    found = runner(form.family).run(form)
    if expected is not None:
        wrong = difference(form, found, expected)
        assert wrong is None, wrong
