"""Options of streams, events, contexts and splits.

Imported when options are first used: dataclasses are slow to import.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import InitVar, dataclass, field

from cupola.core.base._options import naming_options

TYPE_CHECKING = False  # so is typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cupola.typing import DeviceResourcesType, WorkqueueSharingScopeType


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


@naming_options
@dataclass(slots=True)
class ContextOptions:
    """Options of :meth:`Device.create_context`.

    Parameters
    ----------
    resources : sequence of SMResource and WorkqueueResource
        What of the device the context has: groups of one split, whose multiprocessors add up, or all of
        :attr:`Device.resources`. Checked when a context is made.
    """

    resources: DeviceResourcesType


@naming_options
@dataclass(slots=True)
class SMResourceOptions:
    """Options of :meth:`SMResource.split`; they are checked there.

    Parameters
    ----------
    count : int or sequence of int, optional
        Multiprocessors of the group, or of each of several groups. None or 0: as many as the driver finds.
    coscheduled_sm_count : int or sequence of int, optional
        So many at a time are close to each other, so that clusters of that many blocks have room. Needs a driver of
        CUDA 13.1, as does the next one.
    preferred_coscheduled_sm_count : int or sequence of int, optional
        The same, as far as it can be had.
    backfill : bool or sequence of bool
        Rather have multiprocessors that are not close to each other than not enough of them.
    """

    count: int | Sequence[int | None] | None = None
    coscheduled_sm_count: int | Sequence[int | None] | None = None
    preferred_coscheduled_sm_count: int | Sequence[int | None] | None = None
    backfill: bool | Sequence[bool] = False


@naming_options
@dataclass(slots=True)
class WorkqueueResourceOptions:
    """Options of :meth:`WorkqueueResource.configure`.

    Parameters
    ----------
    sharing_scope : WorkqueueSharingScopeType or str, optional
        ``"device_ctx"``: all contexts of the device share the queues. ``"green_ctx_balanced"``: contexts have queues
        of their own, as far as there are enough.
    concurrency_limit : int, optional
        How many streams are expected to be at work at the same time, at least 1.

    Raises
    ------
    ValueError
        The scope is unknown, or the limit is below 1.
    TypeError
        The limit is no number.
    """

    sharing_scope: WorkqueueSharingScopeType | str | None = None
    concurrency_limit: int | None = None

    def __post_init__(self) -> None:
        if self.sharing_scope not in (None, "device_ctx", "green_ctx_balanced"):
            raise ValueError(
                f"sharing_scope must be None, 'device_ctx' or 'green_ctx_balanced', not {self.sharing_scope!r}"
            )
        if self.concurrency_limit is not None:
            if not hasattr(type(self.concurrency_limit), "__int__"):
                raise TypeError(
                    f"concurrency_limit must be an int or None, not {type(self.concurrency_limit).__name__}"
                )
            self.concurrency_limit = int(self.concurrency_limit)
            if self.concurrency_limit < 1:
                raise ValueError(f"concurrency_limit must be >= 1, got {self.concurrency_limit}")
