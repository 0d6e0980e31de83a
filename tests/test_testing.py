"""The pytest plugin, in runs of pytest of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

TESTS = """
import pytest
from cuda.core import Device, LegacyPinnedMemoryResource
import cupola

streams = []

def test_names():
    assert Device is cupola.Device

@pytest.mark.parametrize("run", [1, 2])
def test_fresh(fresh_device, run):
    # What an earlier test left behind is gone.
    for stream in streams:
        with pytest.raises(cupola.CUDAError, match="has been reset"):
            stream.sync()
    streams.append(fresh_device.create_stream())
    streams[-1].sync()
"""

FAULT = """
import pytest
from cupola import CUDAError
from cuda.core import Device, LaunchConfig, Program, launch

def test_fault(fresh_device):
    source = 'extern "C" __global__ void store(int* x) { *x = 1; }'
    kernel = Program(source, "c++", {"arch": f"sm_{fresh_device.arch}"}).compile("cubin").get_kernel("store")
    launch(fresh_device.create_stream(), LaunchConfig(grid=1, block=1), kernel, 64)

def test_after(fresh_device):
    fresh_device.sync()

def test_expected_fault(fresh_device):
    stream = fresh_device.create_stream()
    kernel = Program('extern "C" __global__ void trap() { asm("trap;"); }', "c++").compile("cubin").get_kernel("trap")
    launch(stream, LaunchConfig(grid=1, block=1), kernel)
    with pytest.raises(CUDAError, match="LAUNCH_FAILED"):
        stream.sync()

def test_after_that(fresh_device):
    fresh_device.sync()
"""


UNSEEN = """
import pytest
from cuda.core import Device, LaunchConfig, Program, launch

def fault(device, stream):
    source = 'extern "C" __global__ void store(int* x) { *x = 1; }'
    kernel = Program(source, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin").get_kernel("store")
    launch(stream, LaunchConfig(grid=1, block=1), kernel, 64)

def wait(stream):
    from cupola.bindings import driver
    driver.cuStreamSynchronize(int(stream.handle))  # which raises nothing

@pytest.mark.filterwarnings("ignore::cupola.CUDAWarning")
def test_memory(fresh_device):
    stream = fresh_device.create_stream()
    buffer = fresh_device.allocate(64, stream=stream)
    fault(fresh_device, stream)
    wait(stream)

@pytest.mark.filterwarnings("ignore::cupola.CUDAWarning")
def test_event(fresh_device):
    stream = fresh_device.create_stream()
    event = fresh_device.create_event()
    fault(fresh_device, stream)
    wait(stream)

def test_after(fresh_device):
    fresh_device.sync()

@pytest.mark.filterwarnings("ignore::cupola.CUDAWarning")
def test_without_the_fixture():
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    fault(device, stream)
    wait(stream)
"""


@pytest.fixture
def pytest_in(tmp_path):
    def run(source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(source)
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=tmp_path, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    return run


def test_a_suite_runs_unchanged(pytest_in):
    done = pytest_in(TESTS, "-p", "cupola.testing", "-v")
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr
    assert "\ncupola: " in done.stdout


def test_the_plugin_can_be_named_in_conftest(pytest_in, tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["cupola.testing"]')
    done = pytest_in(TESTS)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


def test_the_device_is_chosen_on_the_command_line(pytest_in):
    source = "from cuda.core import Device\ndef test(): assert [d.arch for d in Device.get_all_devices()] == ['75'] * 2"
    device = ("--cupola-device", "cpu", "--cupola-model", "t4", "--cupola-devices", "2")
    assert pytest_in(source, "-p", "cupola.testing", *device).returncode == 0
    done = pytest_in(source, "-p", "cupola.testing", "--cupola-device", "gpu", "--cupola-devices", "2")
    assert done.returncode == 4 and "for the CPU device only" in done.stderr


@pytest.mark.cpu_only  # a GPU's process cannot go on after a fault
def test_a_fault_belongs_to_its_test(pytest_in):
    done = pytest_in(FAULT, "-p", "cupola.testing")
    assert "4 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "ERROR at teardown of test_fault" in done.stdout and "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout


@pytest.mark.cpu_only  # as above
def test_a_fault_that_only_destructors_met_belongs_to_its_test(pytest_in):
    done = pytest_in(UNSEEN, "-p", "cupola.testing", "-rA")
    assert "2 failed, 2 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("CUDA_ERROR_ILLEGAL_ADDRESS: ") >= 3
