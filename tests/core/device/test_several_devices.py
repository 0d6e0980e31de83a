"""Programs with several devices: device 0 is current while all else is of device 1."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import need_devices
from tests.core.device.several_devices import CASES


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    """What each case has come to, in one process for all: ``ok``, or what went wrong."""
    need_devices(2)
    done = subprocess.run(
        [sys.executable, "-m", "tests.core.device.several_devices"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "CUPOLA_CPU_DEVICES": "2"},
    )
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    missing = f"the process ended before ({done.returncode}): {done.stderr}"
    return {name: found.get(name, missing) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_device_0_is_current(results, name):
    assert results[name] == "ok", results[name].replace("\\n", "\n")
