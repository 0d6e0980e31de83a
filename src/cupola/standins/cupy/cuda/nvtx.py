"""Named ranges of time, which ``cupola profile --timeline`` shows."""

from __future__ import annotations

import threading
from typing import Any

from cupola.profile import mark, range

available = True


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open: list[Any] = []


_thread = _Thread()
_started: dict[int, Any] = {}


def Mark(message: str, id_color: int = -1) -> None:
    """Name this moment."""
    mark(message)


def MarkC(message: str, color: int = 0) -> None:
    """Name this moment."""
    mark(message)


def RangePush(message: str, id_color: int = -1) -> None:
    """Begin a range of this thread."""
    begun = range(message)
    begun.__enter__()
    _thread.open.append(begun)


def RangePushC(message: str, color: int = 0) -> None:
    """Begin a range of this thread."""
    RangePush(message)


def RangePop() -> None:
    """End the range of this thread that has begun last."""
    if _thread.open:
        _thread.open.pop().__exit__(None, None, None)


def RangeStart(message: str, color: int = 0) -> int:
    """Begin a range; the result ends it."""
    begun = range(message)
    begun.__enter__()
    number = id(begun)
    _started[number] = begun
    return number


def RangeEnd(range_id: int) -> None:
    """End a range."""
    begun = _started.pop(range_id, None)
    if begun is not None:
        begun.__exit__(None, None, None)
