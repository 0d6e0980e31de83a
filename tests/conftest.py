"""What every test may use. The whole suite runs on the device that CUPOLA_DEVICE names (auto, cpu, gpu)."""

from __future__ import annotations

import faulthandler
import functools
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import pytest_timeout

from tests import limits, processes, shared_arrays, turns


@functools.cache
def on_cpu_device() -> bool:
    """Whether the process drives the CPU device; this makes the choice if it has not been made."""
    from cupola import Device

    return Device(0).name.startswith("cupola")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--examples", type=int, default=5, help="drawn examples for each test of the Array API")
    turns.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cpu_only: checks something that only the CPU device does")
    config.addinivalue_line("markers", "gpu_only: needs a real GPU")
    config.addinivalue_line(
        "markers", "finds(*kinds, reason): is meant to have findings of these checks, if they are on"
    )
    config.addinivalue_line("markers", "unchecked(reason): is about something that is another way while checks are on")
    config.addinivalue_line("markers", turns.MARK)
    os.environ.setdefault("CUPOLA_NUMPY_AHEAD", "0")  # no process in the background
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which the children of tests then have, too
    turns.begin(config)
    os.environ[processes.MARK] = processes.OWN  # for pytest's workers, and whatever else is started
    assert sys.__stderr__ is not None
    config.stash[STDERR] = os.dup(sys.__stderr__.fileno())  # before pytest takes what tests print


STDERR = pytest.StashKey[int]()
SETTINGS = pytest.StashKey[Any]()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """After the last test, end this process if what it lets go of waits for a kernel that never ends."""
    seconds = pytest_timeout.get_env_settings(session.config).timeout or limits.DEFAULT
    faulthandler.dump_traceback_later(limits.Limit(seconds).whole(), exit=True, file=session.config.stash[STDERR])


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End what tests have left, also in workers that are gone."""
    for command in processes.end_all() if "PYTEST_XDIST_WORKER" not in os.environ else ():
        print(f"a test has left this process, which was killed: {command}", file=sys.stderr)


@pytest.hookimpl
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Give the test its time, which grows with the load of the machine: `tests.limits` says how, and what ends it."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    item.stash[SETTINGS] = settings
    limit = limits.begin(settings.timeout)

    def watch() -> None:
        left = limit.left()
        faulthandler.dump_traceback_later(left + limit.whole(), exit=True, file=item.config.stash[STDERR])
        signal.setitimer(signal.ITIMER_REAL, left)

    def over(*_: object) -> None:
        __tracebackhide__ = True
        if limit.left() > 0:
            watch()
        else:
            pytest_timeout.timeout_sigalrm(item, settings._replace(timeout=round(limit.whole())))

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        limits.end()

    item.cancel_timeout = cancel  # type: ignore[attr-defined]  # pytest-timeout calls it
    signal.signal(signal.SIGALRM, over)
    watch()
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Give the fixtures of a test that has failed their time, too: pytest-timeout has stopped watching it by now."""
    if SETTINGS in item.stash and not limits.is_set() and not item.config.getoption("usepdb"):
        pytest_timeout_set_timer(item, item.stash[SETTINGS])


def pytest_report_header(config: pytest.Config) -> str:
    return f"CUPOLA_DEVICE={os.environ.get('CUPOLA_DEVICE', 'auto')}, {turns.header()}"


def checks_are_on(config: pytest.Config) -> bool:
    """Whether kernels are checked (``make checked``)."""
    return config.getoption("--cupola-check", None) is not None


@pytest.hookimpl(trylast=True)  # when all marks are there
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    turns.leave_out(config, items)
    shared_arrays.protect({item.module for item in items if isinstance(item, pytest.Function)})
    for item in items if checks_are_on(config) else ():
        mark = item.get_closest_marker("unchecked")
        if mark is not None:
            item.add_marker(pytest.mark.skip(reason=f"not while kernels are checked: {mark.kwargs['reason']}"))
    marked = [i for i in items if i.get_closest_marker("cpu_only") or i.get_closest_marker("gpu_only")]
    if not marked:
        return
    cpu = on_cpu_device()
    for item in marked:
        if cpu and item.get_closest_marker("gpu_only"):
            item.add_marker(pytest.mark.skip(reason="needs a real GPU; this run is on the CPU device"))
        if not cpu and item.get_closest_marker("cpu_only"):
            item.add_marker(pytest.mark.skip(reason="only the CPU device does this; this run is on a GPU"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Take the findings that a test is meant to have, before the plugin sees them. A mark that is out of date fails."""
    result = yield
    mark = item.get_closest_marker("finds") if checks_are_on(item.config) else None
    if mark is not None:
        from cupola.cpu import _checks

        found = _checks.take()
        kinds = set(mark.args) & set(_checks.are_on())
        assert {each.kind for each in found} == kinds, (
            "\n".join(map(str, found)) or f"none of {sorted(kinds)} was found"
        )
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    """Spare the collector what is there to stay: it would go through all tests each time."""
    gc.collect()
    gc.freeze()


# Of these CUDA says that the process must be relaunched. On the CPU device a reset of the context is enough.
FATAL = {700, 710, 714, 715, 716, 717, 718, 719}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, object, object]:
    """End a worker whose GPU has faulted, with a word on the test that did it: every test behind it would fail, too."""
    report = yield
    driver = sys.modules.get("cupola.bindings.driver")
    if call.when == "call" and driver is not None and "PYTEST_XDIST_WORKER" in os.environ and not on_cpu_device():
        status = driver.cuMemGetInfo()[0]  # which a capture under way does not mind, unlike waiting
        if int(status) in FATAL:
            text = getattr(report, "longreprtext", "") or "passed, but left the fault behind"
            os.write(2, f"\n== {item.nodeid} ended its worker: {status.name}\n{text}\n".encode())
            os._exit(1)
    return report


@pytest.fixture
def device():
    """Device 0, current on this thread."""
    from cupola import Device

    dev = Device(0)
    dev.set_current()
    return dev


@pytest.fixture
def stream(device):
    """A stream of its own for the test, closed behind it."""
    stream = device.create_stream()
    yield stream
    stream.close()


@pytest.fixture
def gl(device):
    """A context of OpenGL without a window: of the GPU, or for the CPU device Mesa's. Skips where there is none."""
    from examples.opengl import NoOpenGL, OpenGL

    try:
        context = OpenGL(None if on_cpu_device() else 0)
    except NoOpenGL as error:
        pytest.skip(str(error))
    yield context
    context.close()


def need_devices(count: int) -> None:
    """Skip the test where there are fewer GPUs. Of the CPU device, CUPOLA_CPU_DEVICES makes as many as are wanted."""
    from cupola import Device

    there = len(Device.get_all_devices())
    if not on_cpu_device() and there < count:
        pytest.skip(f"needs {count} GPUs; there {'is' if there == 1 else 'are'} {there}")


@pytest.fixture
def run_on_devices(run_python) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program in a process of its own that sees several devices: ``run_on_devices(2, source)``."""

    def run(count: int, source: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        need_devices(count)
        return run_python(source, CUPOLA_CPU_DEVICES=str(count), **environment)

    return run


@pytest.fixture
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program, a text or a file, in a process of its own: for errors that end a context, and for exit itself."""

    def run(source: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *([source] if isinstance(source, Path) else ["-c", source])]
        return processes.run(command, env={**os.environ, **environment})

    return run
