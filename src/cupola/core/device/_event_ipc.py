"""The descriptors with which processes share an event, and how `multiprocessing` sends them.

Imported when something is first shared: `multiprocessing.reduction` is slow to import. An event is described by 64
bytes that any pickle carries. Importing uses data that a peer sent: share only with processes that you trust.
"""

from __future__ import annotations

import warnings
from multiprocessing import active_children, get_start_method
from multiprocessing import context as _context
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from cupola.core.device._event import Event

PAYLOAD = 64  # bytes of CUmemPoolPtrExportData and CUipcEventHandle


class Descriptor(Protocol):
    """Tells another process what to open."""

    _payload: bytes


class IPCEventDescriptor:
    """Tells another process which event to wait for (``CUipcEventHandle``).

    From :attr:`Event.ipc_descriptor`; :meth:`Event.from_ipc_descriptor` takes it. Any pickle carries it.
    """

    __slots__ = ("_blocking", "_payload")
    _payload: bytes
    _blocking: bool

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("IPCEventDescriptor objects cannot be instantiated directly; use Event.ipc_descriptor")

    def __eq__(self, other: object) -> bool:
        return self._payload == other._payload if isinstance(other, IPCEventDescriptor) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return event_descriptor, (self._payload, self._blocking)


def event_descriptor(payload: bytes, blocking: bool) -> IPCEventDescriptor:
    """Make a descriptor of what :attr:`Event.ipc_descriptor` says."""
    made = IPCEventDescriptor.__new__(IPCEventDescriptor)
    made._payload, made._blocking = payload, blocking
    return made


def check_payload(descriptor: Descriptor) -> bytes:
    """The bytes for the driver.

    Raises
    ------
    ValueError
        There are too few of them.
    """
    payload = descriptor._payload
    if len(payload) < PAYLOAD:
        raise ValueError(f"the {type(descriptor).__name__} must have {PAYLOAD} bytes, but has {len(payload)}")
    return payload


# ---- multiprocessing ----------------------------------------------------------------------------------

_warned = False


def warn_of_fork() -> None:
    """Warn once if child processes of this process would be forked."""
    global _warned
    if _warned or get_start_method(allow_none=True) not in (None, "fork") or _context.get_spawning_popen() is not None:
        return
    # This is also "fork" if no start method was chosen. Children of get_context("spawn") say so themselves.
    if any(getattr(child, "_start_method", "fork") not in (None, "fork") for child in active_children()):
        return
    _warned = True
    warnings.warn(
        "CUDA does not survive a fork, and child processes are forked unless another start method is chosen: use "
        "multiprocessing.set_start_method('spawn') for processes that share memory or events",
        UserWarning,
        stacklevel=2,
    )


def let_events_pass(kind: type[Event], rebuild: Callable[[IPCEventDescriptor, int], Event]) -> None:
    """Let multiprocessing send events; `rebuild` opens what arrives."""

    def reduce_event(event: Event) -> tuple[Any, ...]:
        if not event.is_ipc_enabled:
            raise RuntimeError(
                "the Event belongs to this process: record one with stream.record(options={'ipc_enabled': True})"
            )
        warn_of_fork()
        return rebuild, (event.ipc_descriptor, event.device.device_id)

    ForkingPickler.register(kind, reduce_event)
