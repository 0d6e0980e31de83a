"""Eight threads on each device, for as many seconds as CUPOLA_STRESS_SECONDS says, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = float(os.environ.get("CUPOLA_STRESS_SECONDS", "5"))


@pytest.mark.timeout(60 + 16 * SECONDS)
def test_eight_threads_leave_nothing_behind():
    hammer = Path(__file__).with_name("hammer.py")
    done = subprocess.run(
        [sys.executable, str(hammer), str(SECONDS)], capture_output=True, text=True, timeout=50 + 16 * SECONDS
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    found = json.loads(done.stdout)
    assert found["failures"] == []
    assert min(min(rounds) for rounds in found["rounds"]) > 0, "a thread did nothing"
    kinds = ("streams", "events", "pool allocations", "host allocations", "pools", "graphs", "executable graphs")
    assert all(found["made"][kind] > 0 for kind in kinds), found["made"]
    assert {kind: count for kind, count in found["alive"].items() if count} == {}
    assert set(found["pool bytes"]) == {0}
    if "CUPOLA_SANITIZER" not in os.environ:  # which keep what was freed for a while
        assert found["resident growth"] < 32 << 20
