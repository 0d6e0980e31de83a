"""Checks of kernels: `cupola.cpu.checks`, and what ``CUPOLA_CHECK`` and ``cupola run --check`` ask for."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import time
from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from cupola._above import above
from cupola.cpu import _driver, _instruments
from cupola.cpu.reports import kinds

if TYPE_CHECKING:
    from cupola.cpu.reports.findings import Finding

ENVIRONMENT = "CUPOLA_CHECK"
"""Checks for a whole process and those that it starts, such as ``race,init``."""

PATIENCE = 60.0
"""Seconds for which `expect_finding` waits for kernels that still run."""

_on: Counter[str] = Counter()


def _change(names: tuple[str, ...], by: int) -> None:
    for name in names:
        _on[name] += by
    switch = _instruments.switch_on if by > 0 else _instruments.switch_off
    switch(*(name for name in names if name in kinds.INSTRUMENTS))
    _driver.set_checks(kinds.bits_of(tuple(name for name in kinds.CHECKS if _on[name] > 0)))


def are_on() -> tuple[str, ...]:
    """The checks that are on."""
    return tuple(name for name in kinds.CHECKS if _on[name] > 0)


class Checks:
    """Checks that are on inside a ``with`` statement; `cupola.cpu.checks` makes it."""

    _names: tuple[str, ...]
    _seen: dict[int, int]
    _result: list[Finding] | None = None

    def __enter__(self) -> Checks:
        """Check kernels that are launched from now on; chooses the CPU device, as `cupola.cpu.use` does."""
        try:
            above("request")("cpu")
        except RuntimeError as error:
            raise RuntimeError(f"kernels are checked on the CPU device only: {error}") from None
        self._seen = {id(finding): finding.count for finding in findings()}
        _change(self._names, 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for what was launched, and check no more."""
        _wait()
        self._result = self.findings
        _change(self._names, -1)

    def __repr__(self) -> str:
        return f"<Checks {', '.join(self._names)}>"

    @property
    def findings(self) -> list[Finding]:
        """list of Finding: what was found inside the ``with`` statement so far."""
        if self._result is not None:
            return self._result
        made = ((finding, self._seen.get(id(finding), 0)) for finding in findings())
        from cupola.cpu.reports.in_notebooks import Findings

        return Findings(finding._since(count) if count else finding for finding, count in made if finding.count > count)


def checks(
    *, race: bool = False, init: bool = False, sync: bool = False, memory: bool = False, leak: bool = False
) -> Checks:
    """Check the kernels that are launched inside a ``with`` statement.

    Parameters
    ----------
    race
        Accesses to shared and global memory that nothing orders.
    init
        Reads of memory that nobody has written. Memory that was allocated before the check was on counts as written.
    sync
        Barriers and warp operations that not all named threads take part in.
    memory
        Accesses outside of what is allocated, and all else that ends kernels. These are errors in any case; the check
        makes findings of them.
    leak
        Memory that is still allocated when the process ends, if this check is on then: for `CUPOLA_CHECK` and
        ``cupola run --check``. It is told then, and is not among `findings`.

    Returns
    -------
    Checks
        The context manager; its ``findings`` are those that were made inside.

    Raises
    ------
    TypeError
        Unless at least one is asked for.
    RuntimeError
        On entering, when a GPU is in use.

    Examples
    --------
    >>> from cupola import cpu
    >>> with cpu.checks(race=True, sync=True) as checks:
    ...     pass  # launches
    >>> checks.findings
    []
    """
    asked = {"race": race, "init": init, "sync": sync, "memory": memory, "leak": leak}
    names = tuple(name for name, is_asked in asked.items() if is_asked)
    if not names:
        raise TypeError(f"checks() takes at least one of {', '.join(asked)}")
    made = Checks()
    made._names = names
    return made


def findings(kind: str | None = None, *, silenced: bool = False) -> list[Finding]:
    """What checks have found in this process so far, each thing once.

    Parameters
    ----------
    kind
        Only of this check, such as ``"race"``.
    silenced
        With those that `silence` is meant for.

    Returns
    -------
    list of Finding
        In the order in which they were found.
    """
    if kind is not None and kind not in kinds.CHECKS:
        raise ValueError(f"kind must be one of {', '.join(kinds.CHECKS)}, got {kind!r}")
    from cupola.cpu.reports import findings as kept
    from cupola.cpu.reports.in_notebooks import Findings

    _driver.tell_checks()
    found = kept.kept()
    return Findings(f for f in found if (kind is None or f.kind == kind) and (silenced or f.silenced is None))


def silence(*, kernel: str = "*", line: str | int = "*", kind: str = "*", reason: str) -> None:
    """Leave findings out that are known and meant, of a kernel and a line.

    Parameters
    ----------
    kernel
        The name of the kernel, in C++ or mangled, or a pattern as in `fnmatch`.
    line
        A line of the CUDA source that one of the places is at: a number, or ``"name.cu:12"``.
    kind
        The check.
    reason
        Why this is no mistake; kept with the findings (``Finding.silenced``).
    """
    if not reason.strip():
        raise ValueError("give the reason why it is no mistake")
    if kernel == "*" and line == "*":
        raise ValueError("name a kernel or a line: to silence a whole check, leave it off")
    if kind != "*" and kind not in kinds.CHECKS:
        raise ValueError(f"kind must be one of {', '.join(kinds.CHECKS)}, got {kind!r}")
    from cupola.cpu.reports import findings as kept

    kept.silence(kept.Silence(kind, kernel, str(line), reason))


@contextlib.contextmanager
def expect_finding(kind: str, *, kernel: str = "*") -> Iterator[list[Finding]]:
    """Expect that a check finds something inside a ``with`` statement, as a test of a faulty kernel does.

    The check is switched on for that long. At the end, the kernels that were launched are waited for, and what was
    found is taken from the findings of the process.

    Parameters
    ----------
    kind
        The check, such as ``"race"``.
    kernel
        The name of the kernel, in C++ or mangled, or a pattern as in `fnmatch`.

    Returns
    -------
    context manager of list of Finding
        The list is empty until the statement ends, and has what was found then.

    Raises
    ------
    AssertionError
        When nothing was found.
    ValueError
        For a check that does not exist, and for ``"leak"``: leaks are told when the process ends.

    Examples
    --------
    >>> from cupola import cpu
    >>> with cpu.expect_finding("race") as found:  # doctest: +SKIP
    ...     launch(stream, config, kernel)
    """
    from cupola.cpu.reports import findings as kept
    from cupola.cpu.reports import names

    if kind not in kinds.CHECKS:
        raise ValueError(f"kind must be one of {', '.join(kinds.CHECKS)}, got {kind!r}")
    if kind == "leak":
        raise ValueError(
            "leaks are told when the process ends, so none can be expected within it: run the program with "
            "`cupola run --check leak`, and expect its exit status 1"
        )
    found: list[Finding] = []
    with checks(**{kind: True}) as checked:
        yield found
    found += [f for f in checked.findings if f.kind == kind and names.matches(f.kernel, kernel)]
    kept.take(found)
    if not found:
        others = "".join(f"\n{finding}" for finding in checked.findings)
        raise AssertionError(f"no {kind} was found" + (f", but:{others}" if others else ""))


def take() -> list[Finding]:
    """What was found so far, when the kernels that were launched are done; the process forgets it."""
    from cupola.cpu.reports import findings as kept

    _wait()
    found = findings()
    kept.take(found)
    return found


def _wait() -> None:
    """Wait for all streams, but for those that only the program can let go on: they wait for a value in memory.

    That nothing else is under way is known when each of them has looked for its value once more since all others were
    seen to have nothing to do.
    """
    end = time.monotonic() + PATIENCE
    before: list[int] | None = None
    while not _driver.is_idle() and time.monotonic() < end:
        polls = _driver.vain_polls()
        if not polls or before is None or len(polls) != len(before):
            before = polls
        elif all(now > then for now, then in zip(polls, before, strict=True)):
            return
        time.sleep(0.0005)


# ---- whole processes -------------------------------------------------------------------------------------------------


def begin_from_environment() -> None:
    """Switch the checks on that ``CUPOLA_CHECK`` names; called where the CPU device is chosen.

    Raises
    ------
    RuntimeError
        For a name that is none.
    """
    if any(_on.values()):
        return
    try:
        names = kinds.parse(os.environ[ENVIRONMENT])
    except ValueError as error:
        raise RuntimeError(f"{ENVIRONMENT}: {error}") from None
    _change(names, 1)
    atexit.register(tell)


def tell() -> bool:
    """Say on the logger what was found, when the process ends; returns whether there was anything."""
    _wait()
    found = findings()
    if found:
        _driver.fail_at_end()
    if not os.environ.get("CUPOLA_FINDINGS"):
        for finding in found:
            logging.getLogger("cupola").error("%s", finding)
    elif found or findings(silenced=True):
        from cupola.cpu.reports import findings as kept

        kept.log(kept.kept())  # with their counts
    return bool(found)
