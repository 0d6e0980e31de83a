"""The CPU device as ``libnvidia-ml.so.1``, for programs that load NVML themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
    from bindgen.emit import symbols
    from cupola.cpu import _driver

    exported = {line[len("SYMBOL(") : -1] for line in symbols("nvml").splitlines()[1:]}
    assert set(_driver.nvml_symbols()) - exported == set()


def test_a_program_that_loads_nvml(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "--model", "t4", "--devices", "2", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.stdout == "Uninitialized\n2 cupola CPU device (T4 model) 3 0\n", done.stderr
