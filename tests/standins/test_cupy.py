"""Programs for CuPy give with the stand-in what they give with CuPy.

`cupy_programs.py` has the programs, and `cupy_results.json` what CuPy 14.2 computed on an H200 with NVIDIA's cuda.core:
``python tests/standins/cupy_programs.py --out tests/standins/cupy_results.json``.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import processes

FOLDER = Path(__file__).parent
RESULTS = json.loads((FOLDER / "cupy_results.json").read_text())

# Results that differ from CuPy's, by the program and the place in what it returns, and why.
DIFFERENT: dict[tuple[str, int], str] = {
    ("printed", 5): "flags.owndata is true for a view of all of an array's memory",
}


def scalar(value: Any) -> dict[str, Any]:
    """A scalar of NumPy, as the programs give it."""
    return {"scalar": value, "dtype": "bool" if isinstance(value, bool) else "float64"}


def on_device(value: Any, dtype: str = "") -> dict[str, Any]:
    """An array of the device."""
    first = value[0] if isinstance(value, list) else value
    return {"device array": {"array": value, "dtype": dtype or ("bool" if isinstance(first, bool) else "float64")}}


IN_DOUBLE = [
    "cbrt", "cosm1", "erf", "erfc", "erfcx", "exp10", "exp2", "expit", "expm1", "gamma", "gammaln", "i0", "i1", "j0",
    "j1", "log1p", "log_expit", "logit", "ndtr", "xlog1py", "xlogy", "y0", "y1",
]  # fmt: skip
IN_SINGLE = ["entr", "erfcinv", "erfinv", "huber", "kl_div", "ndtri", "rel_entr"]
SIX = {"array": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "dtype": "float64"}

# Programs that were not recorded, and what they must give: what NumPy has, or CuPy's documentation says.
EXPECTED: dict[str, list[Any]] = {
    "kernels_refused": [*["CUDADriverError"] * 3, "OutOfMemoryError", "CUDARuntimeError", "CUDARuntimeError"],
    "more_functions": [
        False,
        [6.0, 24.0],
        [160],
        True,
        "AssertionError",
        [[1.0, 2.0], [3.0, 4.0]],
        [3.0, 1.0, 2.0, 5.0, 9.0, 7.0, 8.0],
        [[[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]]],
        [2.0, 1.0],
        [12.0, 8.0, 10.0],
    ],
    "polynomials": [
        [
            {"array": [1.0, -1.0, 3.0], "dtype": "float64"},
            {"array": [1.0, -3.0, 1.0], "dtype": "float64"},
            {"array": [2.0, -6.0, 4.0], "dtype": "float64"},
            {"array": [2.0, -5.0, 1.0, 2.0], "dtype": "float64"},
            {"array": [-1.0, 3.0, -2.0], "dtype": "float64"},
            {"array": [1.0, -6.0, 13.0, -12.0, 4.0], "dtype": "float64"},
        ],
        {"array": [2.0, 0.0, 0.0, 6.0], "dtype": "float64"},
        [2, "t", 2, "   2\n1 x - 3 x + 2", True, False],
        {"array": [1.0, -3.0, 2.0], "dtype": "float64"},
        "poly1d",
        -3.0,
    ],
    "plans_of_transforms": [[True, True, True], "complex64", True, 0, 0.0],
    "hooks_of_memory": [
        [
            ["malloc_preprocess", 24, 512],
            ["alloc_preprocess", 0, 512],
            ["alloc_postprocess", 512, True],
            ["malloc_postprocess", 24, 512, True],
            ["free_postprocess", 512, True],
            ["malloc_preprocess", 480, 512],
            ["malloc_postprocess", 480, 512, True],
            ["malloc_preprocess", 1 << 20, 1 << 20],
            ["alloc_preprocess", 0, 1 << 20],
            ["alloc_postprocess", 1 << 20, False],
            ["malloc_postprocess", 1 << 20, 1 << 20, False],
        ],
        "KeyError",
        "OutOfMemoryError",
        [
            ["alloc", "device_id", "mem_size", "mem_ptr"],
            ["malloc", "device_id", "size", "mem_size", "mem_ptr", "pmem_id"],
            ["free", "device_id", "mem_size", "mem_ptr", "pmem_id"],
            ["malloc", "device_id", "size", "mem_size", "mem_ptr", "pmem_id"],
        ],
        "_root (1.00KB, 512.00B)",
        True,
        True,
        "Counted",
        60,
    ],
    "codes_of_kernels": ["RuntimeError", [[2, True, True]] * 2],
    "intervals": [
        ["int32", "int32", "int32", "uint32", "int64", "uint64"],
        [2, 500],
        0,
        ["ValueError", "ValueError"],
        0,
        5,
        True,
    ],
    "waits_refused": [
        [*["DeviceSynchronized"] * 5, "CUDARuntimeError", "CUDARuntimeError"],
        {"array": [0.0, 2.0, 4.0, 6.0], "dtype": "float64"},
        True,
    ],
    "memory_of_others": [
        {"array": [[100.0, 1.0, 102.0, 3.0], [104.0, 5.0, 106.0, 7.0], [108.0, 9.0, 110.0, 11.0]], "dtype": "float32"},
        [16, 8],
        True,
        True,
        [3, 2],
    ],
    "reduction_with_a_type": [49.5 + 100 * k for k in range(10)],
    # The following is what CuPy 14.2 gave on an H200.
    "arrays_of_numpy": [
        [
            on_device(True), on_device([True] * 6), scalar(True), scalar(True), scalar(15.0),
            {"array": [3.0, 5.0, 7.0], "dtype": "float64"}, scalar(0.0), scalar(2.5), scalar(5.0),
            scalar(1.707825127659933),
            SIX, SIX, scalar(55.0), on_device(2.5),
            {"device array": SIX}, on_device([1.0] * 5), {"device array": SIX},
        ],
        ["TypeError"] * 15,
    ],
    "copies": [
        [
            [True, "float64", [6]], [True, "float64", [6]], [False, "float64", [6]], [False, "int64", [2]],
            [False, "float32", [6]], [False, "float64", [6]], [False, "float64", [2, 6]], [False, "float32", [6]],
        ],
        *["ValueError"] * 5,
        [[1], [8]],
        ["int64", "int64", "uint8", "uint16"],
    ],
    "devices_that_do_not_exist": [[99, -1, 0, 1, "<CUDA Device 99>"], ["CUDARuntimeError"] * 9, 0],
    "kernels_that_do_not_exist": ["CUDADriverError"] * 3,
    "types_of_special_functions": [
        {
            **dict.fromkeys(IN_DOUBLE, ["float64", "float32", *["float64"] * 4]),
            **dict.fromkeys(
                IN_SINGLE, ["float32", "float32", "float64", "float32", "float64", "float32"]
            ),
            "round": ["float16", "float32", "float64", "int8", "int32", "float16"],
            "sinc": ["float16", "float32", "float64", "float16", "float64", "float16"],
        },
        [
            on_device([0.3465736, 0.3465736, 0.0], "float32"), on_device([0.900390625, 0.63671875, 0.0], "float32"),
            on_device([0.03125, 0.125, 0.5], "float32"),
            on_device([0.17328679513998632, 0.34657359027997264, 0.6931471805599453]),
        ],
        "float16",
    ],
    "raw_results": [
        on_device([0.0, 2.0, 4.0, 6.0, 8.0, 10.0]), on_device([0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 0.0, 0.0, 0.0]),
        on_device([0.0, 1.0, 2.0, 3.0], "float32"), "ValueError", "ValueError", "TypeError",
    ],
    "pointers_to_pinned_memory": [
        [4, 4, -4, 1, -1, 4],
        [16, 12, 12, 8, 72, 80, 60],
        [True, False, False, True, True, "<cupy.cuda.pinned_memory.PinnedMemoryPointer object"],
        ["TypeError", "TypeError", "AttributeError"],
        ["TypeError"] * 3,
        "10",
    ],
    "interfaces_of_nothing": [
        [[0], "<f8", [0, False], None, 3], [[3, 0], "<f8", [0, False], None, 3], [[0], "<i8", [0, False], None, 3],
        [[2, 0, 3], "<f4", [0, False], None, 3],
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, Any]:
    """What the stand-in computes, all programs in one process."""
    out = tmp_path_factory.mktemp("results") / "results.json"
    command = [sys.executable, "-m", "cupola", "run", "--cupy", str(FOLDER / "cupy_programs.py"), "--out", str(out)]
    done = processes.run(command)
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


@pytest.mark.parametrize("name", EXPECTED)
def test_program_that_is_not_recorded(found, name):
    assert not differences(EXPECTED[name], found[name], name)


def test_arrays_and_hosts(found):
    (host, fortran, *names), rest = found["arrays_and_hosts"][:4], found["arrays_and_hosts"][4:]
    rows = [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]
    assert (host, fortran, names) == ({"array": rows, "dtype": "float64"}, True, ["cupy", "numpy"])
    refused = [*["TypeError"] * 3, "ValueError", "ValueError", "TypeError", "TypeError", "ValueError"]
    assert rest[:8] == refused
    assert rest[8] == {"array": [[4.0, 4.0], [3.0, 3.0]], "dtype": "float64"}
    assert rest[9:] == [True, False, True, True, 15.0, rows, [], 2.0]


def test_zero_copy(found):
    values, strides, same, offset = found["zero_copy"]
    rows = [[50.0, 1.0, 2.0, 3.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]
    assert (values, strides, same, offset) == ({"array": rows, "dtype": "float64"}, [8, 32], True, 32)


def test_special_functions(found):
    one, positive, xlogy, logit, module, rsqrt = found["special_functions"]
    x = [k / 2 - 2 for k in range(9)]
    erf, expit, ndtr, i0, sinc = [row["array"] for row in one]
    assert erf == pytest.approx([math.erf(a) for a in x], rel=1e-14)
    assert expit == pytest.approx([1 / (1 + math.exp(-a)) for a in x], rel=1e-14)
    assert ndtr == pytest.approx([math.erfc(-a / 2**0.5) / 2 for a in x], rel=1e-14)
    assert i0[4:] == pytest.approx([1, 1.0634833707413236, 1.2660658777520084, 1.646723189772891, 2.2795853023360673])
    assert sinc == pytest.approx([math.sin(math.pi * a) / (math.pi * a) if a else 1 for a in x], abs=1e-15)
    gammaln, y0, entr = [row["array"] for row in positive]
    assert gammaln == pytest.approx([math.lgamma(a) for a in range(1, 5)], abs=1e-15)
    assert y0[0] == pytest.approx(0.08825696421567697)
    assert entr == pytest.approx([-a * math.log(a) for a in range(1, 5)], abs=1e-15)
    assert xlogy["array"] == pytest.approx([0, math.log(2), 2 * math.log(2)])
    assert (logit["dtype"], module, rsqrt["array"]) == ("float32", "cupyx.scipy", [0.5, 0.25])
    assert logit["array"] == pytest.approx([-math.log(3), 0])


def test_all_programs_are_compared(found):
    here = {"arrays_and_hosts", "zero_copy", "special_functions"}
    assert set(found) == set(RESULTS) | set(EXPECTED) | here


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
