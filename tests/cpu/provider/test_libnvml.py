"""The CPU device as ``libnvidia-ml.so.1``, for programs that load NVML themselves."""

from __future__ import annotations

import sys

import pytest

from tests import processes

pytestmark = pytest.mark.cpu_only

SCRIPT = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlErrorString.restype = ctypes.c_char_p
count, device, name = ctypes.c_uint(), ctypes.c_void_p(), ctypes.create_string_buffer(96)
print(nvml.nvmlErrorString(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))).decode())
assert nvml.nvmlInit_v2() == nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(device)) == nvml.nvmlDeviceGetName(device, name, 96) == 0
print(count.value, name.value.decode(), nvml.nvmlDeviceSetComputeMode(device, 0), nvml.nvmlShutdown())
"""


def test_every_function_is_exported():
    from bindgen.emit import OLDER_NVML, symbols
    from cupola.cpu import _driver

    exported = {line[len("SYMBOL(") : -1] for line in symbols("nvml", *OLDER_NVML).splitlines()[1:]}
    assert set(_driver.nvml_symbols()) - exported == set()


def test_a_program_that_loads_nvml(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "--model", "t4", "--devices", "2", "script.py"]
    done = processes.run(command, cwd=tmp_path)
    assert done.stdout == "Uninitialized\n2 cupola CPU device (T4 model) 3 0\n", done.stderr


# Programs of older NVMLs: names that nvml.h has as macros now, and records that were smaller then.
OLDER = """
import ctypes, os
nvml, cuda = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.CDLL("libcuda.so.1")
count, device, newer, context = ctypes.c_uint(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
FILL = 0xA5


def room(function, *arguments, size=256):
    "The status, and how much of a buffer of FILL is written."
    buffer = (ctypes.c_uint8 * size)(*[FILL] * size)
    status = function(*arguments, buffer)
    return status, max((i + 1 for i in range(size) if buffer[i] != FILL), default=0), buffer


assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert nvml.nvmlInit() == nvml.nvmlDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 1
assert nvml.nvmlDeviceGetHandleByIndex(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetHandleByIndex(1, ctypes.byref(newer)) == 2
bus = room(nvml.nvmlDeviceGetPciInfo_v3, device)[2]
assert nvml.nvmlDeviceGetHandleByPciBusId(bytes(bus[:16]), ctypes.byref(newer)) == 0 and newer.value == device.value
print([room(getattr(nvml, name), device)[:2] for name in ("nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2")])

for kind in ("Current", "Supported"):
    old, new = (getattr(nvml, f"nvmlDeviceGet{kind}Clocks{word}Reasons") for word in ("Throttle", "Event"))
    first, second = ctypes.c_uint64(), ctypes.c_uint64()
    assert old(device, ctypes.byref(first)) == new(device, ctypes.byref(second)) == 0 and first.value == second.value
    assert old(device, None) == 2

for version, size in (("", 16), ("_v2", 24), ("_v3", 24)):
    get = getattr(nvml, "nvmlDeviceGetComputeRunningProcesses" + version)
    count.value = 0
    assert get(device, ctypes.byref(count), None) == 7 and count.value >= 1
    status, written, buffer = room(get, device, ctypes.byref(count), size=100 * 24)
    pids = [int.from_bytes(bytes(buffer[i * size : i * size + 4]), "little") for i in range(count.value)]
    assert status == 0 and count.value * size - 8 <= written <= count.value * size, (status, written)
    assert os.getpid() in pids
    for what in ("Graphics", "MPSCompute"):
        none = ctypes.c_uint(5)
        assert getattr(nvml, f"nvmlDeviceGet{what}RunningProcesses{version}")(device, ctypes.byref(none), None) == 0
        assert none.value == 0

events = ctypes.c_void_p()
assert nvml.nvmlEventSetCreate(ctypes.byref(events)) == 0
data = ctypes.create_string_buffer(64)
print(nvml.nvmlEventSetWait(events, data, 1), nvml.nvmlEventSetWait(events, None, 1))
print([getattr(nvml, name)(device, data, data, data) for name in (
    "nvmlDeviceGetAttributes", "nvmlDeviceGetDriverModel", "nvmlDeviceGetNvLinkRemotePciInfo", "nvmlDeviceRemoveGpu")])
"""


def test_a_program_of_an_older_nvml(tmp_path):
    (tmp_path / "script.py").write_text(OLDER)
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "script.py"]
    done = processes.run(command, cwd=tmp_path)
    assert done.stdout == "[(0, 36), (0, 36)]\n10 2\n[3, 3, 3, 3]\n", done.stderr
