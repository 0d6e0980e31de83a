"""The current stream of each thread and device, and how the arrays learn of it."""

from __future__ import annotations

import threading
from typing import Any

from cupola.core.device._stream import Stream as _CoreStream
from cupola.core.device._stream import enter_stream, leave_stream
from cupola.numpy._evaluate import device as _current_device


class _Thread(threading.local):
    def __init__(self) -> None:
        self.streams: dict[int, Any] = {}  # by device, what is not the null stream
        self.entered: _CoreStream | None = None  # what calls of cupola take
        self.waits = True  # whether the program allows it


_thread = _Thread()


class DeviceSynchronized(RuntimeError):
    """Raised where the host would wait for the device, in a block of ``cupyx.allow_synchronize(False)``."""


def may_wait() -> None:
    """Raise the error in such a block of this thread."""
    if not _thread.waits:
        raise DeviceSynchronized("the host waits for the device here: cupyx.allow_synchronize(False)")


def allow_waits(allow: bool) -> bool:
    """Set whether this thread may wait; what was set before."""
    before, _thread.waits = _thread.waits, allow
    return before


def device_id() -> int:
    """The number of the current device."""
    return int(_current_device().device_id)


def stream_of(device: int) -> Any:
    """The current stream of a device on this thread; None: the null stream."""
    return _thread.streams.get(device)


def set_stream(device: int, stream: Any) -> None:
    """Make a stream, or None for the null stream, the current one of a device on this thread."""
    if stream is None:
        _thread.streams.pop(device, None)
    else:
        _thread.streams[device] = stream
    if device == device_id():
        apply()


def apply() -> None:
    """Let calls of cupola on this thread take the current stream of the current device."""
    stream = _thread.streams.get(device_id())
    core = None if stream is None else stream._core
    if _thread.entered is core:
        return
    if _thread.entered is not None:
        leave_stream(_thread.entered)
    _thread.entered = core
    if core is not None:
        enter_stream(core)
