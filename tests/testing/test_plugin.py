"""The pytest plugin, in runs of pytest of their own."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import processes

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


# pytest would like to rewrite the loader of an editable installation, too.
EDITABLE = "Module already imported so cannot be rewritten; _cupola_editable_loader"


@pytest.fixture
def pytest_in(tmp_path):
    def run(source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(source)
        return processes.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", f"ignore:{EDITABLE}", *arguments],
            cwd=tmp_path,
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


OWN = """
import gc
import os
import pytest
import cupola
from cupola import Device, LaunchConfig, Program, launch

def test_without_a_device():
    pass

def test_fixtures(device, stream):
    assert device == Device() and stream.device == device and device.name == "cupola CPU device (H200 model)"

@pytest.mark.cupola(model="t4", devices=2)
def test_two(device):
    assert [(d.arch, "T4" in d.name) for d in Device.get_all_devices()] == [("75", True)] * 2

@pytest.mark.cupola(model=["t4", "h200"])
def test_models(stream, tmp_path):
    assert stream.device.arch == "90"  # and one fails

@pytest.mark.cupola(model="t4")
def test_crash():
    os._exit(3)

@pytest.mark.cupola(device="gpu")
def test_gpu(device):
    assert device.properties.multiprocessor_count

@pytest.mark.cupola(wrong="t4")
def test_misspelled():
    pass

def store(device, stream):
    source = 'extern "C" __global__ void store(int* x) { *x = 1; }'
    launch(stream, LaunchConfig(grid=1, block=1), Program(source, "c++").compile("cubin").get_kernel("store"), 64)

def test_fault(device, stream):
    store(device, stream)

def test_after(device, stream):
    stream.sync()
"""


@pytest.mark.cpu_only  # as above
def test_fixtures_and_marks(pytest_in):
    device = ("-p", "cupola.testing.plugin", "--cupola-device", "cpu")
    done = pytest_in(OWN, *device, "-rA", "--strict-markers", "-k", "not fault and not after")
    text = done.stdout + done.stderr
    assert "the mark cupola takes device=, model= and devices=, not wrong" in text and "1 error in" in text, text
    good = OWN.replace("wrong", "model")
    done = pytest_in(good, *device, "-rA", "--strict-markers")
    lines = done.stdout.splitlines()
    assert "PASSED test_it.py::test_two" in lines and "PASSED test_it.py::test_models[h200]" in lines, done.stdout
    assert any(
        line.startswith("FAILED test_it.py::test_models[t4] - AssertionError: assert '75' == '90'") for line in lines
    )
    assert any(line.startswith("FAILED test_it.py::test_crash - the process of this test ended with") for line in lines)
    assert "ERROR test_it.py::test_fault" in done.stdout and "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout
    assert "PASSED test_it.py::test_after" in lines and "PASSED test_it.py::test_misspelled" in lines
    assert "there is no GPU to run on" in done.stdout
    assert "1 skipped, 1 error" in lines[-1] and "2 failed, 7 passed" in lines[-1]
    where = "cupola: 4 tests on cupola CPU device (H200 model), 1 test on 2 x cupola CPU device (T4 model), 1 test on"
    assert any(line.startswith(where) for line in lines), done.stdout
    assert ".pyx" not in done.stdout  # frames that show no source
    assert "\ncupola: cupola CPU device (H200 model)\n" in pytest_in(good, *device, "-v", "-k", "without").stdout


TOO = """
import pytest

def test_plain():
    pass

def test_device(device):
    pass

@pytest.mark.cupola(model="t4")
def test_model(device):
    pass
"""


def test_gpu_too(pytest_in, monkeypatch):
    from tests.conftest import on_cpu_device

    monkeypatch.delenv("CUPOLA_DEVICE", raising=False)
    done = pytest_in(TOO, "-p", "cupola.testing.plugin", "--cupola-gpu-too", "-rA", "-v")
    passed = "3 passed, 1 skipped" if on_cpu_device() else "4 passed"
    assert passed in done.stdout, done.stdout + done.stderr
    assert "PASSED test_it.py::test_device[cpu]" in done.stdout and "\nSKIPPED" in done.stdout or not on_cpu_device()
    assert "cupola CPU device (H200 model); and each test on a GPU, too" in done.stdout


def test_the_plugin_changes_nothing_by_itself(pytest_in, tmp_path):
    source = """
import sys

def test_nothing_is_loaded():
    assert not [name for name in sys.modules if name.startswith(("cupola.core", "cupola.bindings", "cupola._aliases"))]
    assert "cuda.core" not in sys.modules
"""
    done = pytest_in(source, "-p", "cupola.testing.plugin")
    assert "1 passed" in done.stdout and "cupola:" not in done.stdout, done.stdout + done.stderr
    (tmp_path / "pytest.ini").write_text("[pytest]\ncupola_names = true\n")
    done = pytest_in(
        "import cuda.core, cupola\ndef test(): assert cuda.core.Device is cupola.Device", "-p", "cupola.testing.plugin"
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("options", [[], ["-p", "cupola.testing"]], ids=["installed", "named"])
def test_modules_keep_their_code(pytest_in, options):
    """Threads import modules while hypothesis changes the recursion limit, which parsing for pytest does not survive.

    An editable installation has a finder of its own, so there the test always passes.
    """
    source = """
import importlib, sys

def test_it():
    for name in ("numpy._common", "cpu.compiler.modules", "cpu.compiler.emit.bodies", "testing.strategies"):
        loader = importlib.import_module(f"cupola.{name}").__loader__
        assert "rewrite" not in type(loader).__module__, (name, loader)

def test_other_finders_come_after():
    import cuda.core, cupola
    assert cuda.core.Device is cupola.Device
"""
    done = pytest_in(source, *options, "--cupola-names")
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_it_is_declared():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    ((name, module),) = project["entry-points"]["pytest11"].items()
    # The name is that of the module, so that naming it with -p is no second plugin.
    assert name == module == "cupola.testing.plugin" and importlib.import_module(module).pytest_addoption
