"""Faults on purpose: `cupola.cpu.faults`, and what ``CUPOLA_INJECT`` and ``cupola run --inject`` ask for.

The rules are applied by the emulated driver (``driver/inject``). A kind of fault is one row of `KINDS`.
"""

from __future__ import annotations

import atexit
import dataclasses
import difflib
import logging
import os
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any

from cupola._above import above
from cupola.cpu import _driver

ENVIRONMENT = "CUPOLA_INJECT"
"""Rules for a whole process and those that it starts."""

_begun: list[Faults] = []


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of fault: its number in ``inject.h``, the error that it means, and what one of it is called."""

    number: int
    error: str
    one: str


KINDS = {
    "call": Kind(0, "CUDA_ERROR_OUT_OF_MEMORY", "call"),
    "kernel": Kind(1, "CUDA_ERROR_LAUNCH_FAILED", "launch"),
    "copy": Kind(2, "CUDA_ERROR_ILLEGAL_ADDRESS", "copy or fill"),
    "delay": Kind(3, "", "operation"),
    "shuffle": Kind(4, "", "launch"),
    "flip": Kind(5, "", "operation"),
    "memory": Kind(6, "", ""),
    "lost": Kind(7, "CUDA_ERROR_UNKNOWN", ""),
    "reorder": Kind(8, "", "operation"),
}
_FAILING = ("call", "kernel", "copy", "lost")
_MOST_SECONDS = 60.0
_MOST_DEVICES = 16


@dataclasses.dataclass(frozen=True)
class Happening:
    """A fault that was injected.

    Attributes
    ----------
    number
        Which of all that the rule applies to: 3 for the third call, launch or operation since the rule began.
    what
        What it was: the name of the function or kernel, or the bit that flipped.
    """

    number: int
    what: str


class Faults:
    """A rule for faults, which `cupola.cpu.faults` makes; it holds inside a ``with`` statement.

    Examples
    --------
    >>> from cupola import Device, CUDAError, cpu
    >>> dev = Device()
    >>> dev.set_current()
    >>> with cpu.faults(call="cuMemAlloc*", nth=2) as faults:
    ...     first = dev.allocate(1024, stream=dev.default_stream)
    ...     try:
    ...         second = dev.allocate(1024, stream=dev.default_stream)
    ...     except CUDAError as error:
    ...         print(str(error).split(":")[0])
    CUDA_ERROR_OUT_OF_MEMORY
    >>> faults.count
    1
    """

    _text: str
    _kind: Kind
    _rule: tuple[Any, ...]
    _id: int | None = None
    _result: tuple[int, int, tuple[tuple[int, str], ...]] = (0, 0, ())

    def __enter__(self) -> Faults:
        """Begin to inject; chooses the CPU device, as `cupola.cpu.use` does."""
        if self._id is not None:
            raise RuntimeError("this rule holds already: make another one with cupola.cpu.faults")
        try:
            above("request")("cpu")
        except RuntimeError as error:
            raise RuntimeError(f"faults can be injected on the CPU device only: {error}") from None
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop injecting. What has happened can still be asked for."""
        assert self._id is not None
        self._result = _driver.injected(self._id)
        _driver.end_injection(self._id)
        self._id = None

    def __repr__(self) -> str:
        applied, count, _ = self._look()
        return f"<Faults {self._text}: {count} of {applied}>"

    @property
    def applied(self) -> int:
        """int: how many calls, launches or operations the rule applied to, those that did not fail included."""
        return self._look()[0]

    @property
    def count(self) -> int:
        """int: how many of them were made to fail, delayed, or otherwise disturbed."""
        return self._look()[1]

    @property
    def happened(self) -> list[Happening]:
        """list of Happening: what was injected, in the order in which it happened, up to 4096 of them."""
        return [Happening(number, what) for number, what in self._look()[2]]

    def _begin(self) -> None:
        self._id = _driver.inject(*self._rule)

    def _look(self) -> tuple[int, int, tuple[tuple[int, str], ...]]:
        return self._result if self._id is None else _driver.injected(self._id)


def faults(
    *,
    call: str | None = None,
    kernel: str | None = None,
    copy: bool = False,
    delay: float | None = None,
    shuffle: bool = False,
    flip: bool = False,
    memory: int | str | None = None,
    lost: int | None = None,
    reorder: bool = False,
    error: object = None,
    nth: int = 1,
    times: int | None = None,
    probability: float = 1.0,
    device: int | None = None,
    seed: int = 0,
) -> Faults:
    """Make something go wrong on the CPU device, inside a ``with`` statement.

    One of the first nine parameters says what; the others say which of them, and how. Several rules are several
    context managers in one ``with`` statement.

    Parameters
    ----------
    call
        Calls of the driver or the runtime that fail without doing anything: a name such as ``"cuMemAllocAsync"``, or a
        pattern such as ``"cuMemAlloc*"`` or ``"cuda[MS]*"``, as in `fnmatch`. Calls that the program makes count, its
        libraries and the object layer of cupola included; not those that the driver makes within itself.
    kernel
        Kernels that fail when they would run, by name or pattern. As on a GPU, the error comes from a later call and
        the context cannot be used any more. For a kernel in C++, its name without namespaces and parameters will do.
    copy
        Copies and fills that fail when they would run, as kernels do.
    delay
        Kernels, copies and fills begin late, each by a random time of up to so many seconds, at most 60. Streams get
        out of step with each other and with the host as far as CUDA allows, which shows missing synchronization.
    shuffle
        The blocks of each grid begin in another order than the ascending one, one after the other, and so do the warps
        of a block with barriers.
    flip
        A bit flips in the memory that is allocated on the device, before an operation: choose which by `nth` or
        `probability`.
    memory
        Devices have so much memory: bytes, or a text such as ``"256 MiB"``.
    lost
        The ordinal of a device that falls off the bus: its contexts cannot be used any more, and no new ones can be
        made until the ``with`` statement is left. Other devices cannot copy from its memory or read it in kernels, and
        NVML says ``NVML_ERROR_GPU_IS_LOST``.
    reorder
        All streams carry out one operation at a time, in an order that `seed` chooses among those that CUDA allows:
        only streams, events and graphs order operations. Much is left until the program waits for it.
    error
        The error of what fails, as a member of ``CUresult`` or its name, with or without ``CUDA_ERROR_``. Unless
        given, OUT_OF_MEMORY for calls, LAUNCH_FAILED for kernels, ILLEGAL_ADDRESS for copies, UNKNOWN for a lost
        device.
    nth
        The first one that fails: 1 for the first that `call`, `kernel`, `copy` or `flip` applies to.
    times
        How many fail, from the `nth` on. None: one, or with `probability` less than 1 all that are drawn. 0: all.
    probability
        With which each one fails, from 0 to 1.
    device
        Only on the device with this ordinal (not for calls, nor for `reorder`). None: on all.
    seed
        Chooses the random numbers. A program that makes its calls in the same order meets the same faults with the
        same seed.

    Returns
    -------
    Faults
        The context manager, which also tells what has happened.

    Raises
    ------
    TypeError
        Unless just one thing is asked for, or for something of another type.
    ValueError
        For a number out of range, or an error that does not exist.
    RuntimeError
        On entering, when a GPU is in use.

    Examples
    --------
    >>> from cupola import cpu
    >>> with cpu.faults(delay=0.001, seed=7), cpu.faults(shuffle=True, seed=7):
    ...     pass  # a test
    """
    asked = {"call": call, "kernel": kernel, "copy": copy, "delay": delay, "shuffle": shuffle, "flip": flip}
    asked |= {"reorder": reorder}
    given = {name: value for name, value in asked.items() if value is not None and value is not False}
    given |= {name: value for name, value in {"memory": memory, "lost": lost}.items() if value is not None}
    if len(given) != 1:
        what = " and ".join(given) or "nothing"
        raise TypeError(f"faults() takes just one of {', '.join(KINDS)}, got {what}; use one faults() for each")
    ((name, value),) = given.items()
    kind = KINDS[name]
    for parameter, number, least in (("nth", nth, 1), ("times", times or 0, 0), ("seed", seed, 0)):
        _check_number(parameter, number, least)
    if not 0 <= probability <= 1:
        raise ValueError(f"probability must be a number from 0 to 1, got {probability!r}")
    if error is not None and name not in _FAILING:
        raise TypeError(f"'error' is for {', '.join(_FAILING)}: nothing fails by {name}")
    if device is not None:
        _check_number("device", device, 0, _MOST_DEVICES - 1)
        if name in ("call", "lost", "reorder"):
            raise TypeError(f"'device' does not go with '{name}'")
    pattern, amount = "*", 0.0
    ordinal: int = -1 if device is None else device
    if name in ("call", "kernel"):
        if not isinstance(value, str) or not value:
            raise TypeError(f"{name} must be a name or a pattern, got {value!r}")
        if name == "call" and not value.startswith(("cu", "*", "?", "[")):
            raise ValueError(f"call must be a function of the driver (cu...) or the runtime (cuda...), got {value!r}")
        if name == "call":
            _check_call(value)
        pattern = value
    elif name == "delay":
        amount = float(value)
        if not 0 < amount <= _MOST_SECONDS:
            raise ValueError(f"delay must be more than 0 and at most {_MOST_SECONDS:g} seconds, got {value!r}")
    elif name == "memory":
        amount = float(_bytes(value))
    elif name == "lost":
        ordinal = _check_number("lost", value, 0, _MOST_DEVICES - 1)
    if times is None:
        times = 1 if name in ("call", "kernel", "copy", "flip") and probability == 1 else 0
    rule = (
        kind.number, pattern, _error_name(error) if error is not None else kind.error or "CUDA_SUCCESS", ordinal,
        nth, times, seed, float(probability), amount,
    )  # fmt: skip
    made = Faults()
    made._text, made._kind, made._rule = name if value is True else f"{name}={value}", kind, rule
    return made


def _check_number(name: str, value: object, least: int, most: int = 2**63 - 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    if value > most:
        raise ValueError(f"{name} must be at most {most}, got {value}")
    return value


_UNITS = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9}


def _bytes(value: object) -> int:
    """A number of bytes, or a text of a number and a unit."""
    if isinstance(value, str):
        text = value.strip().lower()
        number = text.rstrip("bgikmt")
        try:
            value = int(float(number) * _UNITS[text[len(number) :]])
        except (ValueError, KeyError, OverflowError):
            raise ValueError(f"memory must be a number of bytes or a text like '256 MiB', got {value!r}") from None
    return _check_number("memory", value, 0)


def _error_name(error: object) -> str:
    name = getattr(error, "name", error)
    if not isinstance(name, str):
        raise TypeError(f"error must be a member of CUresult or its name, got {error!r}")
    if name.startswith("cudaError"):
        raise ValueError(
            f"error must be one of the driver's (CUDA_ERROR_...), which stand for the runtime's, too: {name}"
        )
    full = name if name.startswith("CUDA_") else f"CUDA_ERROR_{name.upper().replace(' ', '_')}"
    known = _driver.error_names()
    if full not in known:
        short = [each.removeprefix("CUDA_ERROR_") for each in known]
        hint = _meant(full.removeprefix("CUDA_ERROR_"), short) or f"there are {', '.join(short)}"
        raise ValueError(f"there is no error {full!r}: {hint}")
    return full


def _check_call(pattern: str) -> None:
    """Refuse what no function can be meant by."""
    known = _driver.injectable_calls()
    if any(fnmatchcase(name, pattern) for name in known):
        return
    hint = _meant(pattern, known) or "it must be a name of CUDA's headers without _v2 and _ptsz, or a pattern for some"
    raise ValueError(f"no function of the driver or the runtime that can fail is called {pattern!r}: {hint}")


def _meant(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, cutoff=0.75)
    return f"do you mean {' or '.join(close)}?" if close else ""


# ---- from the command line and the environment ----------------------------------------------------------------------

_TYPES: dict[str, Callable[[str], object]] = {
    "call": str, "kernel": str, "copy": bool, "delay": float, "shuffle": bool, "flip": bool, "memory": str,
    "lost": int, "reorder": bool, "error": str, "nth": int, "times": int, "probability": float, "device": int,
    "seed": int,
}  # fmt: skip


def parse(text: str) -> Faults:
    """A rule as a text: the parameters of `faults` with commas between them, such as ``call=cuMemAlloc*,nth=3``.

    Raises
    ------
    ValueError
        When it says nothing that makes sense.
    """
    arguments: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in _TYPES:
            raise ValueError(f"'{text}': there is no '{name}', only {', '.join(_TYPES)}")
        if name in arguments:
            raise ValueError(f"'{text}': '{name}' is given twice")
        wants_value = _TYPES[name] is not bool
        if wants_value is not bool(equals):
            raise ValueError(f"'{text}': '{name}' {'needs a' if wants_value else 'takes no'} value")
        try:
            arguments[name] = _TYPES[name](value) if wants_value else True
        except ValueError:
            raise ValueError(f"'{text}': '{value}' is no value for '{name}'") from None
    try:
        return faults(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"'{text}': {error}") from None


def rules_of_environment() -> list[Faults]:
    """The rules of ``CUPOLA_INJECT``, which are separated by semicolons.

    Raises
    ------
    ValueError
        For a rule that makes no sense.
    """
    try:
        return [parse(part) for part in os.environ.get(ENVIRONMENT, "").split(";") if part.strip()]
    except ValueError as error:
        raise ValueError(f"{ENVIRONMENT}: {error}") from None


def check_devices(rules: Iterable[Faults], count: int) -> None:
    """Refuse rules about devices beyond the first `count`, before there are any.

    Raises
    ------
    ValueError
        With what to do.
    """
    for rule in rules:
        device = rule._rule[3]
        if device >= count:
            has = f"the CPU device has {count} (more by --devices or CUPOLA_CPU_DEVICES)"
            raise ValueError(f"'{rule._text}': there is no device {device}: {has}")


def begin_from_environment() -> None:
    """Apply the rules of ``CUPOLA_INJECT`` until the process ends.

    Imported when the CPU device is chosen and the variable is set. Does so once.

    Raises
    ------
    RuntimeError
        For a rule that makes no sense; none is applied then.
    """
    if _begun:
        return
    try:
        rules = rules_of_environment()
    except ValueError as error:
        raise RuntimeError(str(error)) from None
    try:
        for rule in rules:
            rule._begin()
            _begun.append(rule)
    except ValueError as error:
        for rule in _begun:
            rule.__exit__(None, None, None)
        _begun.clear()
        raise RuntimeError(f"{ENVIRONMENT}: {error}") from None
    if rules:
        atexit.register(_tell)


def _tell() -> None:
    for rule in _begun:
        applied, count, happenings = rule._look()
        text = f"injected {rule._text}"
        if rule._kind.one:
            text += f": {count} of {applied}"
        if happenings:
            text += f", first number {happenings[0][0]}: {happenings[0][1]}"
        logging.getLogger("cupola").warning("%s", text)
