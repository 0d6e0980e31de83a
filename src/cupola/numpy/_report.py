"""What costs time without being seen in the program: waits for the device, copies to it, and compiled kernels.

Each is counted with the line of the program that has caused it: the innermost one outside of cupola and NumPy.
"""

from __future__ import annotations

import linecache
import sys
import threading
import time
from typing import Any, NamedTuple

_PACKAGES = ("cupola", "numpy")
_OURS = tuple(f"{name}." for name in _PACKAGES)
_lock = threading.Lock()
_found: dict[tuple[str, str, int], list[float]] = {}


class Row(NamedTuple):
    """What one line has caused.

    Attributes
    ----------
    kind : str
        ``"wait"``, ``"copy"`` or ``"compile"``.
    file, line : str and int
        The line of the program.
    times : int
        How often.
    seconds : float
        How long altogether.
    """

    kind: str
    file: str
    line: int
    times: int
    seconds: float


class Report(tuple[Row, ...]):
    """The rows of a report, the most time first; its text is a table with the lines of source."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "no waits, copies or compiled kernels"
        lines = ["   count      ms  what     where"]
        for row in self:
            source = linecache.getline(row.file, row.line).strip()
            lines.append(
                f"{row.times:8} {1e3 * row.seconds:7.1f}  {row.kind:8} {row.file}:{row.line}  {source}".rstrip()
            )
        return "\n".join(lines)

    __repr__ = __str__


class noted:
    """A block of code that is counted as one wait, copy or compilation, unless it raises an error."""

    __slots__ = ("_began", "_kind")

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, kind: object = None, *error: object) -> None:
        if kind is not None:
            return
        took = time.perf_counter() - self._began
        frame: Any = sys._getframe(1)
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            if not name.startswith(_OURS) and name not in _PACKAGES:
                break
            frame = frame.f_back
        key = (self._kind, frame.f_code.co_filename, frame.f_lineno) if frame is not None else (self._kind, "", 0)
        with _lock:
            row = _found.get(key)
            if row is None:
                row = _found[key] = [0, 0.0]
            row[0] += 1
            row[1] += took


def report(*, reset: bool = False) -> Report:
    """Waits, copies to the device and compiled kernels so far, with the lines of the program that have caused them.

    Parameters
    ----------
    reset : bool
        Whether to begin anew afterwards.

    Returns
    -------
    Report
        Rows with ``kind``, ``file``, ``line``, ``times`` and ``seconds``; printed, a table.
    """
    with _lock:
        rows = [Row(*key, int(times), seconds) for key, (times, seconds) in _found.items()]
        if reset:
            _found.clear()
    return Report(sorted(rows, key=lambda row: -row.seconds))
