"""Messages from and to devices, on three ranks: tests/mpi/cases.py has what they do, and all of it runs in one job."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.mpi.mpiexec import mpiexec

PROGRAM = Path(__file__).with_name("cases.py")
HELPERS = {"others", "same", "on_device", "nothing", "main"}
NAMES = [
    node.name
    for node in ast.parse(PROGRAM.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name not in HELPERS
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[str]]:
    done = mpiexec(3, [PROGRAM])
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_case(results, name):
    assert results[name] == [""] * 3, "\n".join(results[name])


def test_all_of_them_ran(results):
    assert set(results) == set(NAMES)
