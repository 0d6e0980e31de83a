"""NCCL on ranks in one process and in several: tests/nccl/cases.py has what they do, which is one job each."""

from __future__ import annotations

import ast
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cupola.bindings import nccl
from tests.conftest import need_devices, on_cpu_device

PROGRAM = Path(__file__).with_name("cases.py")
ASSIGNED = next(
    node.value
    for node in ast.parse(PROGRAM.read_text()).body
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CASES"
)
assert isinstance(ASSIGNED, ast.List)
NAMES = [ast.unparse(name) for name in ASSIGNED.elts]


def run(ranks: int, program: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program on ranks of their own processes, each with a device; skips where there are fewer GPUs."""
    need_devices(ranks)
    job = [*(["--devices", ranks] if on_cpu_device() else []), "-n", ranks, "--grace", 5]
    command = [sys.executable, "-m", "cupola", "run", *job, program, *arguments]
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "CUPOLA_DEVICE": "cpu" if on_cpu_device() else "gpu", "NCCL_NVLS_ENABLE": "0", **variables},
    )


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == {"cases": NAMES, "failed elsewhere": 0}


def test_all_devices_of_one_process(tmp_path):
    variables = {**os.environ, "CUPOLA_CPU_DEVICES": "4", "NCCL_NVLS_ENABLE": "0"}
    command = [sys.executable, str(PROGRAM), str(tmp_path / "id")]
    check(subprocess.run(command, capture_output=True, text=True, timeout=120, env=variables))


def test_three_processes(tmp_path):
    check(run(3, PROGRAM, tmp_path / "id"))


def test_processes_that_share_no_memory(tmp_path):
    """As on several hosts: over sockets."""
    check(run(3, PROGRAM, tmp_path / "id", NCCL_SHM_DISABLE="1"))


@pytest.mark.cpu_only("about the library of the CPU device")
def test_programs_that_are_linked_with_more_can_be_loaded(caplog):
    """PyTorch is linked with functions for kernels that communicate by themselves, which the bindings do not have."""
    from cupola.cpu.libcuda import library_path

    library = ctypes.CDLL(library_path("_libnccl2"))
    version = ctypes.c_int()
    assert (library.ncclGetVersion(ctypes.byref(version)), version.value) == (0, nccl.NCCL_VERSION_CODE)
    assert library.ncclDevCommDestroy(None, None) == nccl.ncclResult_t.ncclInvalidUsage
    assert "does not emulate ncclDevCommDestroy" in caplog.text
