"""Programs for CuPy give with the stand-in what they give with CuPy.

`cupy_programs.py` has the programs, and `cupy_results.json` what CuPy 14.2 computed on an H200 with NVIDIA's cuda.core:
``python tests/standins/cupy_programs.py --out tests/standins/cupy_results.json``.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
RESULTS = json.loads((FOLDER / "cupy_results.json").read_text())

# Results that differ from CuPy's, by the program and the place in what it returns, and why.
DIFFERENT: dict[tuple[str, int], str] = {}


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, Any]:
    """What the stand-in computes, all programs in one process."""
    out = tmp_path_factory.mktemp("results") / "results.json"
    command = [sys.executable, "-m", "cupola", "run", "--cupy", str(FOLDER / "cupy_programs.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(out.read_text())
    return results


def tolerance(dtype: str | None) -> float:
    return {"float16": 2e-3, "float32": 2e-6}.get(dtype or "", 1e-12)


def differences(expected: Any, given: Any, where: str, dtype: str | None = None) -> list[str]:
    """The places where results differ, by more than the last places of their type."""
    if isinstance(expected, dict) and isinstance(given, dict) and expected.keys() == given.keys():
        kind = expected.get("dtype", dtype)
        return [text for key in expected for text in differences(expected[key], given[key], f"{where}.{key}", kind)]
    if isinstance(expected, list) and isinstance(given, list) and len(expected) == len(given):
        pairs = zip(expected, given, strict=True)
        return [text for k, (a, b) in enumerate(pairs) for text in differences(a, b, f"{where}[{k}]", dtype)]
    if isinstance(expected, float) and isinstance(given, float):
        near = math.isclose(expected, given, rel_tol=tolerance(dtype), abs_tol=tolerance(dtype) / 10)
        same = near or (math.isnan(expected) and math.isnan(given))
    else:
        same = type(expected) is type(given) and expected == given
    return [] if same else [f"{where}: {expected!r} with CuPy, {given!r} here"]


@pytest.mark.parametrize("name", RESULTS)
def test_program(found, name):
    expected, given = RESULTS[name], found[name]
    for program, place in DIFFERENT:
        if program == name:
            assert expected[place] != given[place]  # else the exception is not needed any more
            expected[place] = given[place] = None
    assert not differences(expected, given, name)


def test_all_programs_are_recorded(found):
    assert set(found) >= set(RESULTS)


def test_differences_are_found():
    for a, b in (
        (1, 1.0),
        (True, 1),
        ([1], [1, 2]),
        ({"array": [1.0], "dtype": "float64"}, {"array": [1.1], "dtype": "float64"}),
        ({"array": [1.0], "dtype": "float32"}, {"array": [1.0], "dtype": "float64"}),
        ("a", "b"),
        (None, 0),
    ):
        assert differences(a, b, "x")
    single = {"array": [0.1], "dtype": "float32"}
    assert not differences([1.0, single], [1.0, {**single, "array": [0.1000001]}], "x")
