"""The doctor's verdicts, on facts made up for it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cupola.cli.checks import FAIL, NOTE, OK, WARN, judge
from cupola.cli.doctor import as_text


def library(version: str | None, path: str = "/site-packages/lib.so") -> dict[str, Any]:
    return {"path": path, "version": version, "found_via": "site-packages"}


DEVICE = {"name": "NVIDIA H200", "arch": "90", "multiprocessors": 132, "threads_per_block": 1024}
HEALTHY: dict[str, Any] = {
    "cupola": "1.0",
    "python": {"version": "3.11.7", "executable": "/usr/bin/python"},
    "environment": {"CUDA_PATH": None, "CUDA_HOME": None},
    "driver": {**library("13.0", "/lib/libcuda.so.1"), "release": "580.65.06", "device_files": ["/dev/nvidia0"]},
    "device": {
        "provider": "/lib/libcuda.so.1",
        "emulated": False,
        "cuda_version": "13.0",
        "said": [],
        "list": [{**DEVICE, "shared_memory_per_block": 232448}],
    },
    "libraries": {name: library("13.0") for name in ("nvrtc", "nvJitLink", "nvvm", "cudart", "nvml")},
    "headers": {"cudart": {**library("13.0"), "crt": True}, "cccl": library("3.0.1")},
    "packages": {"llvmlite": {"version": "0.45.0"}, "numpy": {"version": "2.3"}},
    "nvrtc_copies": [{"path": "/site-packages/lib.so", "found_via": "site-packages"}],
    "nvrtc_targets": [75, 80, 90],
    "folders": {"object cache": {"path": "/home/me/.cache/cupola"}},
    "programs": {"nvcc": {"path": "/site-packages/nvcc", "version": "13"}, "libpython": {"path": "/lib/libpython.so"}},
    "cupy": {"stands_in": None, "version": "14.2.0", "installed": "/site-packages/cupy"},
    "private_runtime": ["cupy-cuda13x"],
    "above": [{"name": "triton", "version": "3.9.0"}],
    "mpi": {"version": "MPICH Version: 5.0.2", "cuda_aware": False, "host_memory": False},
    "smoke_test": {"found": "right result"},
}
MISSING = {"missing": "it was not found"}
BROKEN = {"error": "RuntimeError: cannot be loaded\nmore"}
ON_CPU = {"device.emulated": True, "device.cuda_version": "13.0", "driver": {**MISSING, "release": None}}
COPY = {"path": "/other/lib.so", "found_via": "site-packages"}


def with_changes(changes: dict[str, Any]) -> dict[str, Any]:
    """The healthy facts with some replaced, named by their path."""
    facts = copy.deepcopy(HEALTHY)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = facts
        for name in parents:
            place = place[name]
        place[last] = copy.deepcopy(value)
    facts["driver"].setdefault("device_files", [])
    return facts


# What is changed; the check that is not ok any more, its status, and part of what was found or is advised.
CASES = [
    ({"driver": {**MISSING, "release": None, "device_files": []}}, "NVIDIA driver", NOTE, "CPU device"),
    ({"driver": {**MISSING, "release": "580.1", "device_files": []}}, "NVIDIA driver", WARN, "--gpus all"),
    ({"driver": {**BROKEN, "release": None}}, "NVIDIA driver", WARN, "unusable: RuntimeError: cannot be loaded"),
    ({"driver.version": None}, "NVIDIA driver", WARN, "LD_LIBRARY_PATH"),
    ({"device": BROKEN}, "device", FAIL, "nvidia-smi"),
    ({"device": BROKEN, "driver": {**MISSING, "release": None}}, "device", FAIL, "Install NVIDIA's driver"),
    ({"device": BROKEN, "environment.CUPOLA_DEVICE": "gpus"}, "device", FAIL, "Set CUPOLA_DEVICE to auto, gpu or cpu"),
    (
        {"device.emulated": True, "device.said": ["running on the CPU device: no"], "driver.device_files": []},
        "choice of device", NOTE, "--gpus all",
    ),
    ({"device.list": []}, "device", FAIL, "CUDA_VISIBLE_DEVICES"),
    ({"programs.nvcc": {"missing": "nvcc is not installed"}}, "nvcc", NOTE, 'pip install "cupola[nvcc]"'),
    ({"programs.nvcc": {"error": "there is no g++: install one"}}, "nvcc", WARN, "there is no g++: install one"),
    ({"programs.libpython": {"missing": "install it"}}, "libpython", NOTE, "install it"),
    ({"mpi": {"error": "RuntimeError: cannot load MPI library"}}, "MPI", NOTE, "pip install mpich"),
    ({**ON_CPU}, "cupy-cuda13x", NOTE, "runs on GPUs only"),
    ({**ON_CPU}, "cupy-cuda13x", NOTE, "takes the stand-in"),
    ({"cupy": {"error": "ValueError: CUPOLA_CUPY is 'x'"}}, "CuPy", FAIL, "CUPOLA_CUPY is 'x'"),
    (
        {"device.emulated": True, "device.said": ["running on the CPU device: there is no GPU"]},
        "choice of device", WARN, "/dev/nvidia0",
    ),
    ({"libraries.nvrtc": MISSING, "programs.nvcc": MISSING}, "NVRTC", FAIL, 'pip install "cupola[cu13]"'),
    ({"libraries.nvrtc": MISSING}, "NVRTC", NOTE, "not for `cupola nvcc`"),
    (
        {**ON_CPU, "above": [{"name": "triton", "version": "9.9", "advice": "it has been tried with 3.9"}]},
        "triton", NOTE, "It has been tried with 3.9.",
    ),
    ({"libraries.nvrtc": BROKEN}, "NVRTC", FAIL, "unusable: RuntimeError: cannot be loaded"),
    ({"libraries.nvrtc": BROKEN}, "NVRTC", FAIL, "Reinstall it"),
    ({"libraries.nvrtc": library("13.1"), "libraries.nvJitLink.version": "13.1"}, "NVRTC and driver", WARN, "'cubin'"),
    ({"device.cuda_version": "12.8"}, "NVRTC and driver", FAIL, "580.65.06"),
    ({"nvrtc_targets": [75, 80]}, "NVRTC and device 0", FAIL, "sm_90"),
    ({"nvrtc_copies": [*HEALTHY["nvrtc_copies"], COPY]}, "copies of NVRTC", WARN, "pip uninstall"),
    ({"nvrtc_copies": [{**COPY, "found_via": "CUDA_PATH"}]}, "copies of NVRTC", NOTE, "/other/lib.so (CUDA_PATH)"),
    ({"libraries.nvJitLink.version": "12.9"}, "nvJitLink and NVRTC", WARN, "LTO-IR"),
    ({"libraries.nvvm": MISSING}, "nvvm", NOTE, "NVVM IR"),
    ({"libraries.nvml": BROKEN}, "nvml", WARN, "Reinstall"),
    ({"headers.cudart.version": "12.9"}, "headers and NVRTC", WARN, "same major version"),
    ({"headers.cudart.crt": False}, "crt headers", WARN, "pip install nvidia-cuda-crt"),
    ({"headers.cccl": MISSING}, "cccl headers", NOTE, "nvidia-cuda-cccl"),
    ({"packages.llvmlite": MISSING}, "llvmlite", NOTE, "cupola[cpu]"),
    ({**ON_CPU, "packages.llvmlite": BROKEN}, "llvmlite", FAIL, "cupola[cpu]"),
    ({"packages.numpy": MISSING}, "NumPy", NOTE, "pip install numpy"),
    ({"environment": {"CUDA_PATH": "/a", "CUDA_HOME": "/b"}}, "environment", WARN, "unset one"),
    ({"folders": {"cache": {"path": "/x", "error": "PermissionError: no"}}}, "cache", WARN, "XDG_CACHE_HOME"),
    ({"folders": {"cache": {"missing": "turned off"}}}, "cache", NOTE, "again in each process"),
    ({"smoke_test": {"error": "it crashed", "details": "Install this"}}, "smoke test", FAIL, "Install this"),
    ({"smoke_test": {"error": "it crashed"}}, "smoke test", FAIL, "report"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, "/site-packages/cupy"),
        ({"cupy.installed": None}, "not installed; `cupola run --cupy` has a stand-in"),
        (ON_CPU, "the stand-in for CuPy 14.2.0 under `cupola run`; /site-packages/cupy is left alone"),
        ({**ON_CPU, "cupy.stands_in": False}, "/site-packages/cupy"),
        ({"cupy.stands_in": True, "cupy.installed": None}, "the stand-in for CuPy 14.2.0 under `cupola run`"),
    ],
)
def test_what_import_cupy_gives(changes, found):
    (check,) = [check for check in judge(with_changes(changes)) if check.name == "CuPy"]
    assert (check.status, check.found) == (OK, found)


def test_all_is_well():
    checks = judge(HEALTHY)
    assert {check.status for check in checks} == {OK}
    assert all(check.advice == "" for check in checks)
    assert as_text(HEALTHY, checks).endswith("\n\nIt works.")


@pytest.mark.parametrize(("changes", "name", "status", "text"), CASES)
def test_each_problem_is_found_and_comes_with_advice(changes, name, status, text):
    facts = with_changes(changes)
    checks = judge(facts)
    (check,) = [check for check in checks if check.name == name and check.status != OK]
    assert check.status == status
    assert text in f"{check.found} {check.advice}"
    assert check.advice and "\n" not in check.found
    assert check.advice.split()[-1] in as_text(facts, checks)
    assert {other.name for other in checks if other.status == FAIL} <= {name}


@pytest.mark.parametrize(("path", "text"), [("device", "needs a device"), ("libraries.nvrtc", "needs NVRTC")])
def test_a_smoke_test_without_what_it_needs_points_there(path, text):
    facts = with_changes({path: BROKEN, "smoke_test": {"error": "not found. Looked in:", "details": "  /a\n  /b"}})
    (check,) = [check for check in judge(facts) if check.name == "smoke test"]
    assert check.status == FAIL and text in check.advice and check.found == "not found. Looked in"


def test_the_drivers_version_is_judged_when_no_device_can_be_used():
    facts = with_changes({"device": BROKEN, "driver.version": "12.8"})
    assert [check.name for check in judge(facts) if check.status == FAIL] == ["device", "NVRTC and driver"]


def test_the_cpu_device_takes_any_ptx():
    facts = with_changes({**ON_CPU, "device.cuda_version": "12.0"})
    assert not [check.name for check in judge(facts) if check.status in (WARN, FAIL)]


@pytest.mark.parametrize("path", ["device", "libraries.nvrtc", "libraries.cudart", "headers.cudart", "packages.numpy"])
def test_broken_parts_do_not_stop_the_others(path):
    assert len(judge(with_changes({path: BROKEN}))) > 8


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mpi.cuda_aware": True}, "takes device memory"),
        ({"mpi.host_memory": True}, "takes the CPU device's memory"),
        ({}, "through pinned memory"),
    ],
)
def test_mpi(change, words):
    (check,) = [each for each in judge(with_changes(change)) if each.name == "MPI"]
    assert check.status == OK and "MPICH" in check.found and words in check.found


def test_without_mpi_nothing_is_said():
    assert not [each for each in judge(with_changes({"mpi": MISSING})) if each.name == "MPI"]
