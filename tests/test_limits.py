"""What ends a test whose time is over: its children, then the test, then the process; and that the time grows."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import limits, processes

ROOT = Path(__file__).resolve().parents[1]


def test_the_time_grows_with_the_load(monkeypatch):
    processors = len(os.sched_getaffinity(0))
    load = 0.0
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    limit = limits.Limit(10)
    assert limit.left() == 10 and limit.left(limits.CHILDREN) == 9
    load = 3.0 * processors
    assert limit.left() == 30 and limit.left(limits.CHILDREN) == 27
    load = 0.0  # it has been busy
    assert limit.left() == 30
    load = 1e9
    assert limit.left() == 10 * limits.MOST
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0 + 9.5 * limits.MOST)
    assert limit.left(limits.CHILDREN) < 0 < limit.left()


def test_what_others_do_is_waited_for(monkeypatch):
    answers = iter([0, 0, 1])
    limits.until(lambda: next(answers))
    monkeypatch.setattr(limits, "_present", limits.Limit(0))
    with pytest.raises(AssertionError, match="in 0 s: nobody came"):
        limits.until(lambda: False, "nobody came")


BODIES = """
import signal, subprocess, sys, time
import pytest
from tests import processes

SAYS = "import time; print('said by it'); time.sleep(600)"

def test_sleeps():
    time.sleep(600)

def test_waits_for_a_program():
    subprocess.run(["sleep", "600"])

def test_runs_a_child():
    processes.run([sys.executable, "-uc", SAYS])

def test_waits_beside_a_child():
    with processes.Child(["sleep", 600]) as child:
        child.wait()

@pytest.fixture
def hangs():
    yield
    time.sleep(600)

def test_fails(hangs):
    assert False

def test_is_quick():
    pass
"""
KERNEL = """
from cupola import Device, LaunchConfig, Program, launch

def test_waits_for_a_kernel():
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kernel = Program('extern "C" __global__ void k(volatile int *p) { while (!*p); }', "c++").compile("cubin")
    memory = device.allocate(64, stream=stream)
    memory.fill(0, stream=stream)
    stream.sync()
    launch(stream, LaunchConfig(grid=1, block=32), kernel.get_kernel("k"), memory)
    stream.sync()

def test_is_quick():
    pass
"""
DEAF = """
import signal, time

def test_takes_no_signal():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(600)
"""


def pytest_in(folder: Path, source: str, seconds: int) -> subprocess.CompletedProcess[str]:
    """Run tests with the limits of this suite. They are ended, so their fixtures and files are no part of it."""
    program = folder / "test_it.py"
    program.write_text(source)
    plugins = ["tests.conftest", "no:cacheprovider", "no:hypothesispytest", "no:xdist", "no:cupola.testing.plugin"]
    options = [word for plugin in plugins for word in ("-p", plugin)]
    settings = ["-c", "/dev/null", "--rootdir", folder, "-o", f"timeout={seconds}", "-o", "timeout_method=signal"]
    return processes.run([sys.executable, "-m", "pytest", "--assert=plain", *options, *settings, program], cwd=ROOT)


def test_tests_end_and_the_others_go_on(tmp_path):
    done = pytest_in(tmp_path, BODIES, 2)
    assert "5 failed, 1 passed, 1 error" in done.stdout, done.stdout + done.stderr
    said = [line.removeprefix("E").strip() for line in done.stdout.splitlines() if line.startswith("E ")]
    assert sum(line.startswith("Failed: Timeout (>") for line in said) == 3, said
    assert sum(line.startswith("tests.processes.Overdue: a child process had not ended") for line in said) == 2, said
    assert said[said.index("---- its standard output ----") + 1] == "said by it"


@pytest.mark.cpu_only("no signal reaches a thread that waits for a GPU")
def test_a_test_that_waits_for_a_kernel_ends(tmp_path):
    done = pytest_in(tmp_path, KERNEL, 3)
    assert "1 failed, 1 passed" in done.stdout and "Failed: Timeout (>" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1


def test_a_thread_that_takes_no_signal_ends_with_its_process(tmp_path):
    done = pytest_in(tmp_path, DEAF, 1)
    assert done.returncode == 1 and "in test_takes_no_signal" in done.stderr, done.stdout + done.stderr
