"""Waiting for events of devices."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from cupola.bindings import nvml

from ._library import Unpicklable
from ._names import EVENT_TYPES
from .typing import EventType

if TYPE_CHECKING:
    from ._device import Device

Result = TypeVar("Result")

_SLICE = 200
"""Milliseconds that NVML waits at a time: between two waits Python handles signals."""


def wait_for(attempt: Callable[[int], Result], timeout_ms: int) -> Result:
    """Try until an event has come, for at most `timeout_ms`; 0: forever. Raises NVML's TimeoutError."""
    if timeout_ms < 0:
        raise ValueError(f"timeout_ms must not be negative, got {timeout_ms}; 0 waits forever")
    end = time.monotonic() + timeout_ms / 1000
    while True:
        left = round((end - time.monotonic()) * 1000) if timeout_ms else _SLICE
        try:
            return attempt(max(0, min(left, _SLICE)))
        except nvml.TimeoutError:
            if timeout_ms and left <= _SLICE:
                raise


class EventData(Unpicklable):
    """An event of a device."""

    def __init__(self, device: Device, record: nvml.EventData) -> None:
        self._device = device
        self._record = record

    @property
    def device(self) -> Device:
        """Device: where it happened."""
        return self._device

    @property
    def event_type(self) -> EventType:
        """EventType: what happened."""
        return EVENT_TYPES.member(self._record.event_type)

    @property
    def event_data(self) -> int:
        """int: the number of the Xid error. ValueError for other events."""
        return self._of_xid(self._record.event_data)

    @property
    def gpu_instance_id(self) -> int:
        """int: the GPU instance of a MIG device where an Xid error happened. ValueError for other events."""
        return self._of_xid(self._record.gpu_instance_id)

    @property
    def compute_instance_id(self) -> int:
        """int: the compute instance of a MIG device where an Xid error happened. ValueError for other events."""
        return self._of_xid(self._record.compute_instance_id)

    def _of_xid(self, value: int) -> int:
        if self.event_type is not EventType.XID_CRITICAL_ERROR:
            raise ValueError(f"only events of type 'xid_critical_error' have this, not {self.event_type.value!r}")
        return value


class DeviceEvents(Unpicklable):
    """Events of a device, registered with ``Device.register_events``.

    The registration ends with the object.

    Notes
    -----
    Threads may share it, and several may wait for the next event.
    """

    def __init__(self, device: Device, events: EventType | str | list[EventType | str]) -> None:
        mask = EVENT_TYPES.mask(events)
        self._device = device
        self._set = nvml.event_set_create()
        weakref.finalize(self, nvml.event_set_free, self._set)
        nvml.device_register_events(device._handle, mask, self._set)

    def wait(self, timeout_ms: int = 0) -> EventData:
        """Wait for the next event (``nvmlEventSetWait_v2``). Ctrl-C ends the wait.

        Parameters
        ----------
        timeout_ms
            The longest time to wait, in milliseconds; 0 for no limit.

        Raises
        ------
        system.TimeoutError
            When nothing happened in that time.
        system.GpuIsLostError
            When the device is gone.
        """
        record = wait_for(lambda limit: nvml.event_set_wait_v2(self._set, limit), timeout_ms)
        return EventData(type(self._device)._from_handle(record.device_), record)
