"""The pytest plugin, which registers itself where cupola is installed: fixtures, the mark ``cupola``, and options.

It loads nothing of CUDA, and changes nothing, until a test asks for a device. The options choose it, for example
``--cupola-device cpu``, ``--cupola-model t4`` and ``--cupola-devices 2``. ``--cupola-names``, or the setting
``cupola_names = true``, lets tests of programs written for CUDA Python run on cupola.

The device is chosen once for a process. Tests that want another one, by a mark or because of ``--cupola-gpu-too``, run
in a pytest of their own (:mod:`cupola.testing._elsewhere`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from cupola import standins
from cupola._device_options import add_device
from cupola.testing import _elsewhere, _not_rewritten
from cupola.testing._elsewhere import Choice

if TYPE_CHECKING:
    from cupola import Device, Stream
    from cupola.cli.coverage import Session

FIXTURES = {"device", "stream", "fresh_device"}
MARK = (
    "cupola(device=None, model=None, devices=None): the device for a test: 'cpu' or 'gpu', the model of the CPU "
    "device, and how many there are. Lists run the test on each."
)

_STARTED = pytest.StashKey[bool]()
_NAMES = pytest.StashKey[bool]()
_USED = pytest.StashKey[bool]()
_COVERAGE: pytest.StashKey[Session] = pytest.StashKey()
_CHECKED = pytest.StashKey[bool]()


# ---- options and the device ------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose the device."""
    group = parser.getgroup("cupola", "tests of kernels, with and without a GPU")
    add_device(group.addoption, "--cupola-")
    group.addoption(
        "--cupola-check",
        metavar="CHECKS",
        help="check kernels on the CPU device; findings fail their test: race, init...",
    )
    group.addoption(
        "--cupola-gpu-too", action="store_true", help="run each test of a device on the CPU device and on a GPU"
    )
    group.addoption(
        "--cupola-cov", action="store_true", help="say which lines and branches of CUDA C++ ran on the CPU device"
    )
    group.addoption(
        "--cupola-cov-report",
        metavar="DIR",
        help="also write that to a folder, as pages (index.html) and for lcov and Cobertura",
    )
    names = "let cuda.core, cuda.bindings and cuda.pathfinder be cupola, for tests of CUDA Python programs"
    group.addoption("--cupola-names", action="store_true", help=names)
    parser.addini("cupola_names", names, type="bool", default=False)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Choose the device before any conftest.py is read, which may import the program under test."""
    start(early_config)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Add the mark; and choose the device where a conftest.py names the plugin, late but in time for the tests."""
    config.addinivalue_line("markers", MARK)
    start(config)
    _elsewhere.begin(config)


def start(config: pytest.Config, *, names: bool = False) -> None:
    """Choose the device for the process, and take the names over if that is asked for here or by an option."""
    options = config.known_args_namespace
    # Without the options where a conftest.py has named the plugin after they were parsed.
    chosen = [getattr(options, name, None) for name in ("cupola_device", "cupola_model", "cupola_devices")]
    gpu_too = getattr(options, "cupola_gpu_too", False)
    names = names or getattr(options, "cupola_names", False) or _setting(config)
    try:
        if not config.stash.get(_STARTED, False):
            config.stash[_STARTED] = True
            _not_rewritten.keep(config)
            if gpu_too and chosen[0] not in (None, "cpu"):
                raise ValueError("--cupola-gpu-too runs the tests on both devices: leave --cupola-device out")
            report = getattr(options, "cupola_cov_report", None)
            if report is not None or getattr(options, "cupola_cov", False):
                from cupola.cli import coverage

                chosen[0] = coverage.prepare(chosen[0], report, "--cupola-cov-report")
                config.stash[_COVERAGE] = coverage.Session(report)
            check = getattr(options, "cupola_check", None)
            if check is not None:
                from cupola.cli.check import prepare

                chosen[0] = prepare(check, (), chosen[0])
                config.stash[_CHECKED] = True
            if any(value is not None for value in chosen) or gpu_too:
                from cupola.cli.run import choose_device

                if not _elsewhere.is_child():
                    choose_device("cpu" if gpu_too else chosen[0], chosen[1], chosen[2])
        if names and not config.stash.get(_NAMES, False):
            from cupola import _aliases

            config.stash[_NAMES] = True
            _aliases.install()
    except (ValueError, RuntimeError) as error:
        raise pytest.UsageError(str(error)) from None


def _setting(config: pytest.Config) -> bool:
    try:
        return bool(config.getini("cupola_names"))
    except ValueError:  # named by a conftest.py, after settings were declared
        return False


# ---- coverage --------------------------------------------------------------------------------------------------------


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write down what this process has counted: it may be a worker of another one."""
    if _COVERAGE in session.config.stash:
        session.config.stash[_COVERAGE].save()


# ---- which tests run where -------------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each device that its mark, or ``--cupola-gpu-too``, asks for."""
    mark = metafunc.definition.get_closest_marker("cupola")
    concerned = mark is not None or FIXTURES.intersection(metafunc.fixturenames) or _NAMES in metafunc.config.stash
    if not concerned:
        return
    try:
        choices = _elsewhere.choices(mark, gpu_too=bool(metafunc.config.getoption("cupola_gpu_too", False)))
    except (TypeError, ValueError) as error:
        pytest.fail(f"{metafunc.definition.nodeid}: {error}", pytrace=False)
    if len(choices) > 1:
        metafunc.fixturenames.append("_cupola_choice")
        metafunc.parametrize("_cupola_choice", choices, ids=[str(choice) for choice in choices], indirect=True)


@pytest.fixture
def _cupola_choice(request: pytest.FixtureRequest) -> Choice:
    choice: Choice = request.param
    return choice


def _choice_of(item: pytest.Item) -> Choice | None:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if "_cupola_choice" in parameters:
        found: Choice = parameters["_cupola_choice"]
        return found
    mark = item.get_closest_marker("cupola")
    if mark is None:
        return None
    try:
        choices = _elsewhere.choices(mark)
    except (TypeError, ValueError):
        return None  # told when the tests were collected
    return choices[0] if len(choices) == 1 else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test that wants another device than this process has in a process of its own."""
    return _elsewhere.run(item, nextitem, _choice_of)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs more GPUs than there are."""
    choice = _choice_of(item)
    if choice is None:
        return
    from cupola import Device

    there = len(Device.get_all_devices())
    if choice.devices is not None and there < choice.devices:
        pytest.skip(f"needs {choice.devices} GPUs; there {'is' if there == 1 else 'are'} {there}")


# ---- faults ----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose kernel faulted, even if only destructors of its objects saw the error; or has findings."""
    __tracebackhide__ = True
    try:
        result = yield
    except (Exception, pytest.fail.Exception):
        if found := _take_findings(item):
            item.add_report_section("call", "findings", found)
        raise
    _raise_fault(item)
    if found := _take_findings(item):
        pytest.fail(found, pytrace=False)
    return result


def _take_findings(item: pytest.Item) -> str:
    """What checks have found in the test so far; the next test begins without."""
    if not item.config.stash.get(_CHECKED, False):
        return ""
    from cupola.cli.check import take_findings

    return take_findings()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Do the same for errors and findings that appear in a test's fixtures."""
    __tracebackhide__ = True
    result = yield
    _raise_fault(item)
    if found := _take_findings(item):
        pytest.fail(found, pytrace=False)
    return result


def _raise_fault(item: pytest.Item) -> None:
    __tracebackhide__ = True
    if _NAMES not in item.config.stash and _USED not in item.stash:
        return
    from cupola.core.base._cuda import take_unraised

    error = take_unraised()
    if error is not None:
        raise error


# ---- what ran where --------------------------------------------------------------------------------------------------


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what runs the tests, where that was chosen for them."""
    options = ("cupola_device", "cupola_model", "cupola_devices", "cupola_gpu_too")
    if _NAMES not in config.stash and not any(config.getoption(name, None) for name in options):
        return None
    text = f"cupola: {_describe()}"
    if standins.is_active():
        text += f"; `import cupy` is cupola's stand-in for CuPy {standins.VERSION}"
    return text + "; and each test on a GPU, too" if config.getoption("cupola_gpu_too", False) else text


def _describe() -> str:
    from cupola import Device

    devices = Device.get_all_devices()
    return f"{len(devices)} x {devices[0].name}" if len(devices) > 1 else devices[0].name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which devices the tests ran on that used one, and which lines of CUDA C++ ran in all processes."""
    stash = terminalreporter.config.stash
    if _COVERAGE in stash and stash[_COVERAGE].is_first:
        terminalreporter.section("CUDA C++")
        terminalreporter.write(stash[_COVERAGE].finish())
    ran = Counter(
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == "cupola"
    )
    if ran:
        parts = ", ".join(f"{count} test{'' if count == 1 else 's'} on {where}" for where, count in ran.most_common())
        terminalreporter.write_line(f"cupola: {parts}")


# ---- fixtures --------------------------------------------------------------------------------------------------------


def _begin(request: pytest.FixtureRequest) -> Device:
    """Device 0, current, for a test that is noted as one that uses it."""
    from cupola import Device
    from cupola.core.base._cuda import take_unraised

    node = request.node
    if _USED not in node.stash:
        node.stash[_USED] = True
        if _NAMES not in request.config.stash:
            take_unraised()  # an error that some test has left behind which is not watched
        node.user_properties.append(("cupola", _describe()))
    return Device(0)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Device 0, current on the test's thread.

    After the test, the fixture waits for running work. Errors of that work fail the test, unless they were raised in it
    before. After a fault the device is reset, so that the next test can use it.

    Yields
    ------
    Device
        Device 0.
    """
    found = _begin(request)
    found.set_current()
    yield found
    _end(found)


@pytest.fixture
def stream(device: Device) -> Iterator[Stream]:
    """A stream for the test, on the device of the fixture `device`; closed after it.

    Yields
    ------
    Stream
        A new stream.
    """
    from cupola import CUDAError

    queue = device.create_stream()
    yield queue
    try:
        queue.close()
    except CUDAError as error:
        if not error._raised_before:
            raise


@pytest.fixture
def fresh_device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device with a new context: no streams, no modules, no error (``cuDevicePrimaryCtxReset``).

    Memory from pools belongs to the device, not to its context, and stays until its buffers are closed. The device is
    current on the test's thread. After the test, the fixture waits for running work. Errors of that work fail the
    test, unless they were raised in it before. Then the device is reset again.

    Yields
    ------
    Device
        Device 0.
    """
    found = _begin(request)
    _reset(found)
    found.set_current()
    yield found
    _end(found, always=True)


def _end(device: Device, *, always: bool = False) -> None:
    """Wait for the work of a test, and reset the device if it failed."""
    __tracebackhide__ = True
    from cupola import CUDAError

    try:
        device.set_current()
        device.sync()
    except CUDAError as error:
        always = True
        if not error._raised_before:  # else the test has had it, and expected it
            raise
    finally:
        if always:
            _reset(device)


def _reset(device: Device) -> None:
    import gc

    from cupola import CUDAError
    from cupola.bindings import driver

    gc.collect()  # objects that only a cycle keeps alive would otherwise outlive their context
    (status,) = driver.cuDevicePrimaryCtxReset(device.device_id)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise CUDAError(f"{status.name}: the device could not be reset")
