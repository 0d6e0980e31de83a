"""Eight threads use the bindings at once. On builds of Python without a GIL, each module leaves it off."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests import processes

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
SECONDS = float(os.environ.get("CUPOLA_STRESS_SECONDS", "5")) / 5  # of each kind of work


def hammer(seconds: float) -> dict[str, Any]:
    program = Path(__file__).with_name("thread_hammer.py")
    done = processes.run([sys.executable, str(program), str(seconds)])
    assert done.returncode == 0 and done.stderr == "", done.stderr  # a module that wants the GIL brings a warning
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(110 + 10 * SECONDS)
def test_eight_threads_at_once():
    found = hammer(SECONDS)
    assert found["added"] > 0
    if FREE_THREADED and "PYTHON_GIL" not in os.environ:
        assert [name for name, off in found["without"].items() if not off] == []
        assert not found["gil"]
