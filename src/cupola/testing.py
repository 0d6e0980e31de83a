"""A pytest plugin that runs the tests of a program written for CUDA Python on cupola: ``pytest -p cupola.testing``.

While the plugin is loaded, ``cuda.core``, ``cuda.bindings`` and ``cuda.pathfinder`` are cupola, as with ``cupola run``.
Options choose the device, for example ``--cupola-device cpu``, ``--cupola-model t4`` and ``--cupola-devices 2``; and
the fixture `fresh_device` gives a test a device in its initial state.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from cupola import _aliases

if TYPE_CHECKING:
    from cupola import Device

__all__ = ["fresh_device"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose the device."""
    group = parser.getgroup("cupola", "run tests of CUDA Python programs on cupola")
    group.addoption(
        "--cupola-device", choices=("auto", "cpu", "gpu"), help="where to run (default: CUPOLA_DEVICE, or auto)"
    )
    group.addoption("--cupola-model", metavar="NAME", help="the GPU that the CPU device models, such as h200 or t4")
    group.addoption("--cupola-devices", metavar="N", type=int, help="how many of them")


# As early as can be: a conftest.py may import the program under test.
@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Choose the device and take the names over, before any conftest.py is read."""
    _start(early_config)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Do the same where a conftest.py names this plugin, which is late but in time for the tests."""
    _start(config)


def _start(config: pytest.Config) -> None:
    from cupola.cli.run import choose_device

    if config.stash.get(_STARTED, False):
        return
    config.stash[_STARTED] = True
    options = config.known_args_namespace
    # Without the options where a conftest.py has named the plugin after they were parsed.
    chosen = [getattr(options, name, None) for name in ("cupola_device", "cupola_model", "cupola_devices")]
    try:
        choose_device(*chosen)
        _aliases.install()
    except (ValueError, RuntimeError) as error:
        raise pytest.UsageError(str(error)) from None


_STARTED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Fail a test whose kernel faulted, even if only destructors of its objects saw the error."""
    result = yield
    _raise_fault()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Do the same for errors that appear in a test's fixtures."""
    result = yield
    _raise_fault()
    return result


def _raise_fault() -> None:
    from cupola.core.base._cuda import take_unraised

    error = take_unraised()
    if error is not None:
        raise error


def pytest_report_header() -> str:
    """Say what runs the tests."""
    from cupola import Device

    device = Device(0)
    return f"cupola: {device.name}, {len(Device.get_all_devices())} of them"


@pytest.fixture
def fresh_device() -> Iterator[Device]:
    """A device with a new context: no streams, no modules, no error (``cuDevicePrimaryCtxReset``).

    Memory from pools belongs to the device, not to its context, and stays until its buffers are closed. The device is
    current on the test's thread. After the test, the fixture waits for running work. Errors of that work fail the
    test, unless they were raised in it before. Then the device is reset again.

    Yields
    ------
    Device
        Device 0.
    """
    from cupola import CUDAError, Device

    device = Device(0)
    _reset(device)
    device.set_current()
    try:
        yield device
        device.set_current()
        device.sync()
    except CUDAError as error:
        if not error._raised_before:  # else the test has had it, and expected it
            raise
    finally:
        _reset(device)


def _reset(device: Device) -> None:
    import gc

    from cupola import CUDAError
    from cupola.bindings import driver

    gc.collect()  # objects that only a cycle keeps alive would otherwise outlive their context
    (status,) = driver.cuDevicePrimaryCtxReset(device.device_id)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise CUDAError(f"{status.name}: the device could not be reset")
