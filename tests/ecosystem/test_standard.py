"""Packages that take any array of the Array API standard, or any that looks like NumPy's, take those of cupola.numpy.

`standard_programs.py` has the statements. The packages come with ``make ecosystem``.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import processes
from tests.ecosystem.standard_programs import PACKAGES

PROGRAM = Path(__file__).with_name("standard_programs.py")


@pytest.mark.parametrize("package", PACKAGES)
def test_statements_give_what_they_give_for_numpy(package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: make ecosystem")
    done = processes.run([sys.executable, PROGRAM, package])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" statements, 0 wrong\n")
