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
from tests import processes
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
    """Run a program on ranks of their own processes, each with a device; skips where there are fewer GPUs.

    When one has failed, the others have all the time that they need to say what they know of it.
    """
    need_devices(ranks)
    job = [*(["--devices", ranks] if on_cpu_device() else []), "-n", ranks, "--grace", 3600]
    command = [sys.executable, "-m", "cupola", "run", *job, program, *arguments]
    return processes.run(
        list(map(str, command)),
        env={**os.environ, "CUPOLA_DEVICE": "cpu" if on_cpu_device() else "gpu", "NCCL_NVLS_ENABLE": "0", **variables},
    )


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == {"cases": NAMES, "failed elsewhere": 0}


def test_all_devices_of_one_process(tmp_path):
    variables = {**os.environ, "CUPOLA_CPU_DEVICES": "4", "NCCL_NVLS_ENABLE": "0"}
    command = [sys.executable, str(PROGRAM), str(tmp_path / "id")]
    check(processes.run(command, env=variables))


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


LINKED = """
import ctypes
import sys

from cupola import Device
from cupola.bindings import nccl

library = ctypes.CDLL(sys.argv[1])
Device(0).set_current()
comm = ctypes.c_void_p(int(nccl.ncclCommInitRank(1, nccl.ncclGetUniqueId()[1], 0)[1]))


class Team(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("ranks", "rank", "stride")]


class Properties(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("rank", ctypes.c_int),
        ("ranks", ctypes.c_int), ("device", ctypes.c_int), ("nvml", ctypes.c_int), ("calls", ctypes.c_bool),
        ("behind", ctypes.c_ubyte * 7),
    ]


class Encryption(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("mode", ctypes.c_int),
        ("key", ctypes.c_char_p),
    ]


asked = Properties(size=Properties.calls.offset + 1, magic=nccl.NCCL_API_MAGIC, rank=7, behind=(9,) * 7)
status = library.ncclCommQueryProperties(comm, ctypes.byref(asked))
print("properties", status, asked.rank, asked.ranks, asked.device, asked.calls, set(asked.behind))
asked.magic = 0
print("garbage", library.pncclCommQueryProperties(comm, ctypes.byref(asked)))
for name in ("World", "Lsa", "Rail", "Cft"):
    function = getattr(library, f"ncclTeam{name}")
    function.restype = Team
    team = function(comm, 0)
    print(name, team.ranks, team.rank, team.stride)
print("rank", library.ncclTeamRankToWorld(comm, Team(1, 0, 1), 0))
for mode in (0, 1, 5):
    wish = Encryption(ctypes.sizeof(Encryption), nccl.NCCL_API_MAGIC, 0, mode, b"secret")
    status = nccl.ncclResult_t(library.ncclSetEncryption(ctypes.byref(wish))).name
    print("encryption", status, nccl.ncclGetLastError(None)[1].decode() if mode == 1 else "")
print("none", library.ncclGetPeerDeviceLeInfo(None, 0, 0, None, None))
"""
SAID = """
properties 0 0 1 0 False {9}
garbage 4
World 1 0 1
Lsa 1 0 1
Rail 1 0 1
Cft 0 0 0
rank 0
encryption ncclSuccess
encryption ncclInvalidUsage SetEncryption: the CPU device's NCCL does not encrypt what goes over sockets: \
keep the ranks on one host or in a network of your own, and use NCCL_ENCRYPTION_MODE_NONE
encryption ncclInvalidArgument
none 5
""".replace("\\\n", "")


@pytest.mark.cpu_only("about the library of the CPU device")
def test_functions_of_newer_versions(tmp_path):
    """Those that the bindings do not have, under both their names, from a program that is linked with the library."""
    from cupola.cpu.libcuda import library_path

    script = tmp_path / "linked.py"
    script.write_text(LINKED)
    done = processes.run([sys.executable, str(script), library_path("_libnccl2")])
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == SAID.strip().splitlines()
    assert "does not emulate ncclGetPeerDeviceLeInfo: it returns ncclInvalidUsage" in done.stderr
