"""The transport's server and those who connect with it, in a process of its own, since Ray changes its process."""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import processes

CASES = Path(__file__).with_name("transport_cases.py")


def test_those_who_connect():
    if find_spec("ray") is None:
        pytest.skip("needs Ray")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rfEs", CASES]
    of_this_run = ("PYTEST_XDIST_", "PYTEST_ADDOPTS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(of_this_run)}
    done = processes.run(command, env=environment)
    summary = done.stdout.splitlines()[-1] if done.stdout else ""
    assert done.returncode == 0 and re.match(r"\d+ passed", summary), done.stdout + done.stderr
