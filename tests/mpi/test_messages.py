"""Messages from and to devices, on three ranks: tests/mpi/cases.py has what they do, and all of it runs in one job."""

from __future__ import annotations

import ast
import json
import os
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


# On the CPU device, messages go from array to array; what a GPU does there, and what the addresses of a CUDA-aware MPI
# do, is asked for.
WAYS = {"as they go": {}, "through pinned memory": {"CUPOLA_MPI_CUDA": "0"}, "by address": {"CUPOLA_MPI_CUDA": "1"}}
if os.environ.get("CUPOLA_DEVICE") == "gpu":
    del WAYS["by address"]  # not every MPI takes them


@pytest.fixture(scope="module", params=WAYS)
def results(request) -> dict[str, list[str]]:
    done = mpiexec(3, [PROGRAM], **WAYS[request.param])
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_case(results, name):
    if all(result.startswith("not here: ") for result in results[name]):
        pytest.skip(results[name][0])
    assert results[name] == [""] * 3, "\n".join(results[name])


def test_all_of_them_ran(results):
    assert set(results) == set(NAMES)
