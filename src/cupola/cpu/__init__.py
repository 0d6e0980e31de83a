"""The CPU device: an emulated CUDA driver that runs the PTX of real CUDA C++ where there is no GPU.

Programs use it automatically if no GPU is found, with ``CUPOLA_DEVICE=cpu``, or after `use`.
"""

from __future__ import annotations

import os

from cupola._above import above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola.cpu._checks import Checks as Checks
    from cupola.cpu._checks import checks as checks
    from cupola.cpu._checks import expect_finding as expect_finding
    from cupola.cpu._checks import findings as findings
    from cupola.cpu._checks import silence as silence
    from cupola.cpu._faults import Faults as Faults
    from cupola.cpu._faults import Happening as Happening
    from cupola.cpu._faults import faults as faults
    from cupola.cpu._models import Model as Model
    from cupola.cpu._models import models as models
    from cupola.cpu.debugging import Breakpoint as Breakpoint
    from cupola.cpu.debugging import Debugger as Debugger
    from cupola.cpu.debugging import DebuggerError as DebuggerError
    from cupola.cpu.debugging import ExpressionError as ExpressionError
    from cupola.cpu.debugging import Seen as Seen
    from cupola.cpu.debugging import Stop as Stop
    from cupola.cpu.debugging import Watch as Watch
    from cupola.cpu.debugging import debugger as debugger
    from cupola.cpu.reports.findings import Finding as Finding
    from cupola.cpu.reports.findings import Place as Place

_DEBUGGING = {
    "Breakpoint",
    "Debugger",
    "DebuggerError",
    "ExpressionError",
    "Seen",
    "Stop",
    "Watch",
    "debugger",
}

__all__ = [
    "Breakpoint",
    "Checks",
    "Debugger",
    "DebuggerError",
    "ExpressionError",
    "Faults",
    "Finding",
    "Happening",
    "Model",
    "Place",
    "Seen",
    "Stop",
    "Watch",
    "checks",
    "debugger",
    "expect_finding",
    "faults",
    "findings",
    "models",
    "silence",
    "use",
]


_used: tuple[object, ...] | None = None  # what was said last


def use(
    model: str = "h200",
    devices: int = 1,
    threads: int | None = None,
    cuda_version: str | None = None,
    timeout: float | None = None,
    numerics: str | None = None,
) -> None:
    """Make this process run on the CPU device, before its first CUDA call.

    Without this call the CPU device is one H200 with a thread for each core, or what the environment variables
    CUPOLA_CPU_MODEL, CUPOLA_CPU_DEVICES, CUPOLA_CPU_THREADS, CUPOLA_CPU_CUDA_VERSION, CUPOLA_CPU_TIMEOUT
    and CUPOLA_CPU_NUMERICS say.
    Processes started from here on get the same. Saying the same again, as a cell of a notebook does that runs twice,
    changes nothing.

    Parameters
    ----------
    model
        The GPU that programs see, with its limits and its compute capability: the key of one of `models`, such as
        ``"h200"`` or ``"t4"``.
    devices
        How many such GPUs there are, 1 to 16; each can access the memory of the others.
    threads
        How many threads work on one launch, 1 to 256; None for one for each core.
    cuda_version
        The version of CUDA that the driver reports (``cuDriverGetVersion``), such as ``"13.0"``, to test a program
        with an older driver; None for the newest that cupola knows. All functions stay available.
    timeout
        How many seconds a kernel may run. One that runs longer is ended with ``CUDA_ERROR_LAUNCH_TIMEOUT``, as by the
        watchdog of a GPU that has a display, and the context cannot be used any more. None or 0 for no limit.
    numerics
        ``"exact"``: the approximate functions of PTX give the bits that an H200 gives. ``"fast"``: they only keep to
        the error bounds of the PTX ISA, and take less time. None for ``"exact"``.

    Raises
    ------
    ValueError
        For an unknown model or a number out of range.
    RuntimeError
        When a device is in use already that is not what this asks for.

    Examples
    --------
    >>> import cupola.cpu
    >>> cupola.cpu.use("t4", devices=2)
    """
    global _used
    import re

    from cupola.cpu import _driver

    wanted = (model, devices, threads, cuda_version, timeout, numerics)
    if _used == wanted:
        return
    if threads is not None and not 1 <= threads <= 256:
        raise ValueError(f"threads must be at least 1 and at most 256, got {threads}")
    if timeout is not None and not 0 <= timeout <= 1e6:
        raise ValueError(f"timeout must be a number of seconds from 0 to 1,000,000, got {timeout}")
    if numerics not in (None, "exact", "fast"):
        raise ValueError(f"numerics must be 'exact' or 'fast', got {numerics!r}")
    if cuda_version is not None:
        newest = _driver.CUDA_VERSION // 10
        written = re.fullmatch(r"\d\d\.\d", cuda_version)
        if not written or not 1200 <= int(cuda_version.replace(".", "0")) <= newest:
            raise ValueError(
                f"cuda_version must be one from '12.0' to '{newest // 100}.{newest % 100}', got {cuda_version!r}"
            )
    if model not in (known := [key for key, *_ in _driver.models()]):
        raise ValueError(f"model must be one of {', '.join(known)}, got {model!r}")
    above("request")("cpu")
    _driver.configure(model, devices)
    os.environ.update(CUPOLA_DEVICE="cpu", CUPOLA_CPU_MODEL=model, CUPOLA_CPU_DEVICES=str(devices))
    if threads is not None:
        os.environ["CUPOLA_CPU_THREADS"] = str(threads)
    if cuda_version is not None:
        os.environ["CUPOLA_CPU_CUDA_VERSION"] = cuda_version
    if timeout is not None:
        os.environ["CUPOLA_CPU_TIMEOUT"] = f"{timeout:.9f}"
    if numerics is not None:
        os.environ["CUPOLA_CPU_NUMERICS"] = numerics
    _used = wanted


def __getattr__(name: str) -> object:
    if name in {"Model", "models"}:
        from cupola.cpu import _models

        return getattr(_models, name)
    if name in {"Checks", "checks", "expect_finding", "findings", "silence"}:
        from cupola.cpu import _checks

        return getattr(_checks, name)
    if name in {"Finding", "Place"}:
        from cupola.cpu.reports import findings

        return getattr(findings, name)
    if name in {"Faults", "Happening", "faults"}:
        from cupola.cpu import _faults

        return getattr(_faults, name)
    if name in _DEBUGGING:
        from cupola.cpu import debugging

        return getattr(debugging, name)
    raise AttributeError(f"module 'cupola.cpu' has no attribute {name!r}")
