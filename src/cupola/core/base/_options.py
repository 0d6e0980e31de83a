"""What streams, events and memory pools can be asked for.

Imported only when somebody names an option: dataclasses are slow to import.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, fields
from functools import wraps

TYPE_CHECKING = False  # so is typing
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeVar

    from cupola.core.device._device import Device
    from cupola.typing import (
        ManagedMemoryLocationType,
        VirtualMemoryAccessType,
        VirtualMemoryAllocationType,
        VirtualMemoryGranularityType,
        VirtualMemoryHandleType,
        VirtualMemoryLocationType,
    )

    T = TypeVar("T")


def as_options(cls: type[T], options: Any, keywords: dict[str, Any] | None = None) -> T:
    """Make `cls`, a class with :func:`naming_options`, from an instance, a dict, None, or keywords.

    Raises
    ------
    TypeError
        `options` is something else, both forms were given, or a name is unknown.
    """
    if keywords:
        if options is not None:
            raise TypeError(f"give {cls.__name__} or keywords, not both")
        return cls(**keywords)
    if options is None:
        return cls()
    if isinstance(options, cls):
        return options
    if isinstance(options, dict):
        return cls(**options)
    raise TypeError(f"options must be {cls.__name__}, a dict of its fields, or None; not {type(options).__name__}")


def naming_options(cls: type[T]) -> type[T]:
    """Let the constructor of a dataclass refuse unknown names with the one that may be meant."""
    make = cls.__init__
    known = cls.__dataclass_fields__  # type: ignore[attr-defined]

    @wraps(make)
    def __init__(self: T, *args: Any, **values: Any) -> None:
        for name in values:
            if name not in known:
                today = [option.name for option in fields(cls)]  # type: ignore[arg-type]  # without older spellings
                raise no_such_name(cls.__name__, "option", name, today)
        make(self, *args, **values)

    cls.__init__ = __init__  # type: ignore[assignment]
    return cls


def no_such_name(whose: str, what: str, name: object, known: Iterable[str]) -> TypeError:
    """The error for a name that is not among those which there are, with the one that may be meant."""
    from difflib import get_close_matches

    near = get_close_matches(str(name), list(known), 1)
    return TypeError(f"{whose} has no {what} {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


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
        `priority` is no number.
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
        The event notes the time, for ``end - start``; events that do not are cheaper.
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
        """Refuse what is no bool; again where the options are used, since they can be changed."""
        for name in ("timing_enabled", "blocking_sync", "ipc_enabled"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"{name} must be a bool or None, not {type(value).__name__}")


@naming_options
@dataclass(slots=True)
class DeviceMemoryResourceOptions:
    """How to make the pool of a :class:`DeviceMemoryResource`.

    Parameters
    ----------
    ipc_enabled : bool
        Share the memory with other processes.
    max_size : int
        Most bytes that the pool may have, rounded by the driver; 0 for what the system allows.
    """

    ipc_enabled: bool = False
    max_size: int = 0


@naming_options
@dataclass(slots=True)
class PinnedMemoryResourceOptions:
    """How to make the pool of a :class:`PinnedMemoryResource`.

    Parameters
    ----------
    ipc_enabled : bool
        Share the memory with other processes.
    max_size : int
        Most bytes that the pool may have, rounded by the driver; 0 for what the system allows.
    numa_id : int, optional
        NUMA node of the host to take the memory from; None leaves that to the system.
    """

    ipc_enabled: bool = False
    max_size: int = 0
    numa_id: int | None = None


@naming_options
@dataclass(slots=True)
class ManagedMemoryResourceOptions:
    """How to make the pool of a :class:`ManagedMemoryResource`.

    The two are checked when the resource is made.

    Parameters
    ----------
    preferred_location : int, optional
        Ordinal of a device or number of a NUMA node, as the type says. Without a type: a device, or -1 for the host.
    preferred_location_type : ManagedMemoryLocationType or str, optional
        ``"device"``; ``"host"``, which takes no number; or ``"host_numa"``, by default the node of the current device.
    """

    preferred_location: int | None = None
    preferred_location_type: ManagedMemoryLocationType | str | None = None


@naming_options
@dataclass(slots=True)
class VirtualMemoryResourceOptions:
    """What memory a :class:`VirtualMemoryResource` makes. Spellings are checked when memory is made.

    Parameters
    ----------
    allocation_type : VirtualMemoryAllocationType or str
        ``"pinned"``, or ``"managed"`` where the driver has that (CUDA 13).
    location_type : VirtualMemoryLocationType or str
        ``"device"``; ``"host"``; ``"host_numa"``, the NUMA node nearest to the device; or ``"host_numa_current"``, that
        of the calling thread.
    handle_type : VirtualMemoryHandleType or str, optional
        How the memory can be exported to other processes: ``"posix_fd"``, ``"win32_kmt"``, ``"fabric"``, or None.
        Memory on ``"host"`` cannot.
    granularity : VirtualMemoryGranularityType or str
        Sizes are rounded up to the ``"recommended"`` or the ``"minimum"`` one.
    gpu_direct_rdma : bool
        Other hardware will access the memory directly.
    addr_hint : int
        Address to prefer, 0 for none.
    addr_align : int, optional
        Alignment of the address in bytes, a power of two; None or 0 for the granularity.
    peers : iterable of int or Device
        Other devices that get access, of the kind `peer_access`.
    self_access, peer_access : VirtualMemoryAccessType or str, optional
        ``"rw"``, ``"r"``, or None for no access. `self_access` is that of the location itself.
    """

    allocation_type: VirtualMemoryAllocationType | str = "pinned"
    location_type: VirtualMemoryLocationType | str = "device"
    handle_type: VirtualMemoryHandleType | str | None = "posix_fd"
    granularity: VirtualMemoryGranularityType | str = "recommended"
    gpu_direct_rdma: bool = False
    addr_hint: int = 0
    addr_align: int | None = None
    peers: Iterable[int | Device] = ()
    self_access: VirtualMemoryAccessType | str | None = "rw"
    peer_access: VirtualMemoryAccessType | str | None = "rw"

    def __post_init__(self) -> None:
        from cupola.typing import (
            VirtualMemoryAccessType,
            VirtualMemoryAllocationType,
            VirtualMemoryGranularityType,
            VirtualMemoryHandleType,
            VirtualMemoryLocationType,
        )

        self.peers = tuple(self.peers)
        for name, kind in (
            ("allocation_type", VirtualMemoryAllocationType),
            ("location_type", VirtualMemoryLocationType),
            ("handle_type", VirtualMemoryHandleType),
            ("granularity", VirtualMemoryGranularityType),
            ("self_access", VirtualMemoryAccessType),
            ("peer_access", VirtualMemoryAccessType),
        ):
            with suppress(ValueError):  # None, or a spelling that is refused when memory is made
                setattr(self, name, kind(getattr(self, name)))
