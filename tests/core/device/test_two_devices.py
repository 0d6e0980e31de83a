"""The tests of several devices, in a process that has two: on the CPU device, and where there are two GPUs."""

from __future__ import annotations

import os
import re
import sys

import pytest

from tests import processes
from tests.conftest import need_devices
from tests.core.device import test_several_devices as cases

# The workers of this run, and its options, are no business of the other run.
OF_THIS_RUN = ("PYTEST_XDIST_", "PYTEST_ADDOPTS")


@pytest.mark.timeout(330)
def test_several_devices():
    need_devices(2)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OF_THIS_RUN)}
    done = processes.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rfEs", cases.__file__],
        env={**environment, "CUPOLA_CPU_DEVICES": "2"},
    )
    # The last line, too: a process that a case has ended has none.
    summary = done.stdout.splitlines()[-1] if done.stdout else ""
    assert done.returncode == 0 and re.match(r"\d+ passed", summary), done.stdout + done.stderr
    assert cases.TOO_FEW not in done.stdout, done.stdout
