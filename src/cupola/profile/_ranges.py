"""Ranges with names, which a program puts around its steps."""

from __future__ import annotations

import threading
import time
from contextlib import ContextDecorator
from typing import TYPE_CHECKING

from cupola.profile._record import Record

if TYPE_CHECKING:
    from types import TracebackType


# Where ranges go while a timeline is recorded.
_records: list[Record] | None = None


def record_into(records: list[Record] | None) -> None:
    """Store ranges and marks from now on there, or nowhere."""
    global _records
    _records = records


class range(ContextDecorator):
    """Give a part of the program a name on the timeline: around a ``with`` block, or as a decorator of a function.

    While no timeline is recorded, it does nothing.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> with cupola.profile.range("step"):
    ...     launch(stream, config, kernel, x)
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        self.name = name
        self._begins: list[int] = []

    def __enter__(self) -> range:
        self._begins.append(time.monotonic_ns())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        begin, records = self._begins.pop(), _records
        if records is not None:
            records.append(Record("range", self.name, begin, time.monotonic_ns(), place=threading.get_native_id()))

    def _recreate_cm(self) -> range:
        return range(self.name)


def mark(name: str) -> None:
    """Give this moment a name on the timeline.

    Parameters
    ----------
    name : str
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    if _records is not None:
        now = time.monotonic_ns()
        _records.append(Record("mark", name, now, now, place=threading.get_native_id()))
