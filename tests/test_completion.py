"""TAB at the prompt completes names of properties without running them."""

from __future__ import annotations

import sys

import pytest

PROGRAM = """
import rlcompleter
import cupola
device = cupola.Device()
device.set_current()
closed = device.create_stream()
closed.close()
try:
    found = rlcompleter.Completer({"closed": closed}).attr_matches("closed.")
except RuntimeError as error:
    print(error)
else:
    print("closed.priority" in found, "closed.sync(" in found or "closed.sync()" in found)
"""


@pytest.mark.parametrize("value", ["", "0", "00"])
def test_completing_runs_no_properties(run_python, value):
    done = run_python(PROGRAM, CUDA_CORE_DONT_FIX_TAB_COMPLETION=value)
    assert done.stdout.strip() == "True True", done.stdout + done.stderr


@pytest.mark.parametrize("value", ["1", "yes"])
def test_the_completer_can_be_left_alone(run_python, value):
    done = run_python(PROGRAM, CUDA_CORE_DONT_FIX_TAB_COMPLETION=value)
    # Python's own completer leaves properties alone from 3.14 on.
    expected = "Stream has been closed" if sys.version_info < (3, 14) else "True True"
    assert done.stdout.strip() == expected, done.stdout + done.stderr


def test_nothing_is_imported_where_nobody_completes(run_python):
    done = run_python("import sys, cupola; print([m for m in sys.modules if 'complet' in m])")
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
