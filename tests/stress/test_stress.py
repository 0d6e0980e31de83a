"""Eight threads on each device, for as many seconds as CUPOLA_STRESS_SECONDS says, and nothing left behind.

On builds of Python without a GIL, no module turns it on.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.conftest import on_cpu_device
from tests.stress.races import RACES

SECONDS = float(os.environ.get("CUPOLA_STRESS_SECONDS", "5"))
# Several races share a process, whose start takes longer than one.
# On a GPU a fault of one would be that of all behind it.
EACH = 7 if on_cpu_device() else 1
GROUPS = [tuple(RACES)[first : first + EACH] for first in range(0, len(RACES), EACH)]
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def run(program: str, *names: str) -> dict[str, Any]:
    path = Path(__file__).with_name(program)
    command = [sys.executable, "-X", "faulthandler", str(path), str(SECONDS), *names]
    done = processes.run(command)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.unchecked(reason="checks keep records of memory, which it takes for something left behind")
@pytest.mark.timeout(60 + 16 * SECONDS)
def test_eight_threads_leave_nothing_behind():
    found = run("hammer.py")
    assert found["failures"] == []
    assert min(min(rounds) for rounds in found["rounds"]) > 0, "a thread did nothing"
    kinds = ("streams", "events", "pool allocations", "host allocations", "pools", "graphs", "executable graphs")
    assert all(found["made"][kind] > 0 for kind in kinds), found["made"]
    assert {kind: count for kind, count in found["alive"].items() if count} == {}
    assert set(found["pool bytes"]) == {0}
    if "CUPOLA_SANITIZER" not in os.environ:  # which keep what was freed for a while
        assert found["resident growth"] < 32 << 20


@pytest.mark.unchecked(reason="threads change one array, in streams that nothing orders")
@pytest.mark.timeout(70 + SECONDS)
@pytest.mark.parametrize("races", GROUPS, ids=" ".join)
def test_eight_threads_with_one_object(races):
    """They use it and close it at the same moment."""
    found = run("races.py", *races)
    assert found["failures"] == {}
    assert set(found["rounds"]) == set(races) and all(found["rounds"].values()), found["rounds"]
    assert not found["left"]


@pytest.mark.skipif(not FREE_THREADED, reason="needs a build of Python without the GIL: make nogil")
@pytest.mark.skipif("PYTHON_GIL" in os.environ, reason="the environment decides about the GIL")
def test_no_module_turns_the_gil_on():
    """A module that wants the GIL brings a warning, which is an error here."""
    modules = "core.device._device core.launch._launch graph system checkpoint texture utils"
    source = f"import cupola, sys; [__import__('cupola.' + name) for name in '{modules}'.split()]; " + (
        "[getattr(cupola, name) for name in cupola.__all__]; assert not sys._is_gil_enabled()"
    )
    done = processes.run([sys.executable, "-W", "error", "-c", source])
    assert done.returncode == 0, done.stderr
