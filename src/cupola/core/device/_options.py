"""Options of streams and events.

Imported when options are first used: dataclasses are slow to import.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import InitVar, dataclass, field

from cupola.core.base._options import naming_options

TYPE_CHECKING = False  # so is typing
if TYPE_CHECKING:
    from typing import Any


def _users_level() -> int:
    """The `stacklevel` for the first caller outside of the package: options are made by users and by our methods."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("cupola."):
        level, frame = level + 1, frame.f_back
    return level


@naming_options
@dataclass(slots=True)
class StreamOptions:
    """Options of :meth:`Device.create_stream`.

    Parameters
    ----------
    nonblocking : bool
        The stream does not wait for the legacy default stream, nor that one for it.
    priority : int, optional
        Lower numbers run first; the device's range is limited, often to ``[-5, 0]``. None: the lowest priority.

    Raises
    ------
    TypeError
        `priority` is not a number.
    """

    nonblocking: bool = True
    priority: int | None = None

    def __post_init__(self) -> None:
        self.nonblocking = bool(self.nonblocking)
        if self.priority is not None:
            if not hasattr(type(self.priority), "__int__"):
                raise TypeError(f"priority must be an int or None, not {type(self.priority).__name__}")
            self.priority = int(self.priority)


_UNSET: Any = object()


@naming_options
@dataclass(slots=True)
class EventOptions:
    """Options of :meth:`Device.create_event` and :meth:`Stream.record`.

    Parameters
    ----------
    timing_enabled : bool, optional
        The event records the time, for ``end - start``; events without timing are cheaper.
    blocking_sync : bool, optional
        :meth:`Event.sync` puts the thread to sleep instead of spinning.
    ipc_enabled : bool, optional
        Other processes may wait for the event.
    enable_timing, busy_waited_sync : bool, optional
        Older spellings of `timing_enabled` and `blocking_sync`.

    Raises
    ------
    TypeError
        An option is not a bool or None, or both spellings of one are given.
    """

    timing_enabled: bool | None = False
    blocking_sync: bool | None = False
    ipc_enabled: bool | None = False
    enable_timing: InitVar[bool | None] = field(default=_UNSET, kw_only=True)
    busy_waited_sync: InitVar[bool | None] = field(default=_UNSET, kw_only=True)

    def __post_init__(self, enable_timing: bool | None, busy_waited_sync: bool | None) -> None:
        for old, new, value in (
            ("enable_timing", "timing_enabled", enable_timing),
            ("busy_waited_sync", "blocking_sync", busy_waited_sync),
        ):
            if value is _UNSET:
                continue
            if getattr(self, new):
                raise TypeError(f"{old} is the older spelling of {new}: give one of them")
            warnings.warn(f"EventOptions({old}=) is now {new}=", DeprecationWarning, stacklevel=_users_level())
            setattr(self, new, value)
        self._check()

    def _check(self) -> None:
        """Refuse values that are not bools. The use of the options checks again, because they can be changed."""
        for name in ("timing_enabled", "blocking_sync", "ipc_enabled"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"{name} must be a bool or None, not {type(value).__name__}")
