"""``cupola run``: a program written for CUDA Python, or linked with CUDA's libraries, unchanged, on cupola."""

from __future__ import annotations

import logging
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from cupola import _aliases, standins

from . import native


def run(arguments: Sequence[str], *, module: str | None) -> int:
    """Run a script or a program, the first of `arguments`, or a module, with the rest as its ``sys.argv``."""
    if module is None and (program := native.find_program(arguments[0])):
        native.run(program, arguments)
    _aliases.install()
    _set_environment()
    if module is not None:
        sys.argv = [module, *arguments]
        sys.path.insert(0, os.getcwd())
        if not _exists(module):
            raise SystemExit(f"cupola: no module named {module}")
        with _ending():
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        return 0
    script = Path(arguments[0])
    source = read(script)
    sys.argv = list(arguments)
    sys.path.insert(0, str(script.resolve().parent))
    main = ModuleType("__main__")
    main.__file__ = str(script)
    # The program's module stays where it is until the interpreter exits, as without cupola: multiprocessing looks for
    # it there, and so do destructors.
    sys.modules["__main__"] = main
    try:
        with _ending():
            exec(compile(source, str(script), "exec", dont_inherit=True), vars(main))
    except Exception as error:
        assert error.__traceback__ is not None
        own = error.with_traceback(error.__traceback__.tb_next)  # without the frame of this command
        sys.excepthook(type(own), own, own.__traceback__)
        return 1
    return 0


def _set_environment() -> None:
    """On the CPU device, tell this process and those that it starts where CUDA's libraries are.

    The libraries are in this process already, but programs look into ``LD_LIBRARY_PATH`` themselves, such as
    `ctypes.util.find_library`.
    """
    from cupola.bindings import _provider

    if not _provider.stands_in():
        return
    from cupola.cpu import programs

    try:
        os.environ.update(programs.environment())
    except RuntimeError as error:  # this process needs no libpython, only programs in other languages do
        logging.getLogger("cupola").info("%s", error)


@contextmanager
def _ending() -> Iterator[None]:
    """Make the status 1 where it would be 0, if work failed on the CPU device and no call has returned the error."""
    try:
        yield
    except SystemExit as end:
        if end.code in (None, 0) and _failed_unheard():
            raise SystemExit(1) from None
        raise
    if _failed_unheard():
        raise SystemExit(1)


def _failed_unheard() -> bool:
    at_exit = sys.modules.get("cupola.cpu._at_exit")
    return at_exit is not None and at_exit.tell()


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return False
        raise


def read(script: Path) -> bytes:
    """The source of a script.

    Raises
    ------
    SystemExit
        When it cannot be read.
    """
    if script.is_dir():
        raise SystemExit(f"cupola: {script} is a folder; name a script, or use -m for a module")
    try:
        return script.read_bytes()
    except OSError as error:
        raise SystemExit(f"cupola: cannot read {script}: {error.strerror}") from None


def inject(rules: Sequence[str], device: str | None) -> str:
    """Inject faults into this process and those that it starts; returns the device, which must be the CPU.

    Raises
    ------
    ValueError
        For a rule that makes no sense, or when the device is a GPU.
    """
    if device not in (None, "cpu"):
        raise ValueError("faults are injected on the CPU device only: --inject goes with --device cpu")
    from cupola.cpu import _faults

    for rule in rules:
        _faults.parse(rule)
    os.environ["CUPOLA_INJECT"] = ";".join(filter(None, [os.environ.get("CUPOLA_INJECT"), *rules]))
    return "cpu"


def choose_device(device: str | None, model: str | None, devices: int | None) -> None:
    """Choose the device for this process and those that it starts.

    Raises
    ------
    ValueError
        When a model or a number of devices is asked for and the device is not the CPU.
    """
    if model is None and devices is None:
        if device is not None:
            os.environ["CUPOLA_DEVICE"] = device
        return
    if device not in (None, "cpu"):
        raise ValueError("--model and --devices are for the CPU device only: add --device cpu")
    from cupola import cpu

    cpu.use(model or os.environ.get("CUPOLA_CPU_MODEL") or "h200", _count() if devices is None else devices)


def _count() -> int:
    """The number of devices of the CPU device, as the environment says it."""
    text = os.environ.get("CUPOLA_CPU_DEVICES") or "1"
    if not (text.isdecimal() and 1 <= int(text) <= 16):
        raise ValueError(f"CUPOLA_CPU_DEVICES is {text!r}: it must be a number from 1 to 16")
    return int(text)


def check_environment() -> None:
    """Refuse what the environment says of devices, faults and checks, if the first call of CUDA would refuse it.

    Raises
    ------
    ValueError
        With the name of the variable.
    """
    from cupola.bindings import _provider

    if _provider.wanted() == "gpu":
        return
    if os.environ.get("CUPOLA_INJECT"):
        from cupola.cpu import _faults

        _faults.check_devices(_faults.rules_of_environment(), _count())
    if os.environ.get("CUPOLA_CHECK"):
        from cupola.cpu.reports import kinds

        try:
            kinds.parse(os.environ["CUPOLA_CHECK"])
        except ValueError as error:
            raise ValueError(f"CUPOLA_CHECK: {error}") from None


def choose_cupy(stands_in: bool | None) -> None:
    """Choose what ``import cupy`` gives, for this process and those that it starts; None: as the environment says.

    Raises
    ------
    ValueError
        When the environment says something that is not known.
    """
    if stands_in is not None:
        os.environ[standins.SWITCH] = "1" if stands_in else "0"
    standins.choice()
