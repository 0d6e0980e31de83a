"""Waiting for events of the system: devices that are added to or removed from the driver."""

from __future__ import annotations

import weakref

from cupola.bindings import nvml

from ._device import Device
from ._events import wait_for
from ._library import Unpicklable, initialize
from ._names import SYSTEM_EVENT_TYPES
from .typing import SystemEventType


class SystemEvent(Unpicklable):
    """An event of the system."""

    def __init__(self, record: nvml.SystemEventData_v1) -> None:
        self._record = record

    @property
    def event_type(self) -> SystemEventType:
        """SystemEventType: what happened."""
        return SYSTEM_EVENT_TYPES.member(self._record.event_type)

    @property
    def gpu_id(self) -> int:
        """int: PCI address of the device: domain, bus and device number, from the high bits to the low ones."""
        return self._record.gpu_id

    @property
    def device(self) -> Device:
        """Device: the device that it happened to."""
        return Device(pci_bus_id=bus_id_of(self.gpu_id))


class SystemEvents(Unpicklable):
    """Events of the system: a sequence."""

    def __init__(self, records: nvml.SystemEventData_v1) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> SystemEvent:
        return SystemEvent(self._records[index])


class RegisteredSystemEvents(Unpicklable):
    """Events of the system, registered with `register_events`. The registration ends with the object.

    Notes
    -----
    Threads may share it, and several may wait for the next event.
    """

    def __init__(self, events: SystemEventType | str | list[SystemEventType | str]) -> None:
        mask = SYSTEM_EVENT_TYPES.mask(events)
        initialize()
        self._set = nvml.system_event_set_create()
        weakref.finalize(self, nvml.system_event_set_free, self._set)
        nvml.system_register_events(mask, self._set)

    def wait(self, timeout_ms: int = 0, buffer_size: int = 1) -> SystemEvents:
        """Wait for the next events (``nvmlSystemEventSetWait``). Ctrl-C ends the wait.

        Parameters
        ----------
        timeout_ms
            The longest time to wait, in milliseconds; 0 for no limit.
        buffer_size
            The most events to take at a time.

        Raises
        ------
        system.TimeoutError
            When nothing happened in that time.
        """
        return SystemEvents(
            wait_for(lambda limit: nvml.system_event_set_wait(self._set, limit, buffer_size), timeout_ms)
        )


def register_events(events: SystemEventType | str | list[SystemEventType | str]) -> RegisteredSystemEvents:
    """Register for events of the system (``nvmlSystemRegisterEvents``).

    Parameters
    ----------
    events
        One or several, as members or strings.

    Raises
    ------
    ValueError
        For an unknown string.
    TypeError
        For anything else than a string or a list.
    """
    return RegisteredSystemEvents(events)


def bus_id_of(gpu_id: int) -> str:
    """The PCI address of a device as text. An id has 16 bits of domain, 8 of bus and 8 of device."""
    return f"{gpu_id >> 16 & 0xFFFF:08X}:{gpu_id >> 8 & 0xFF:02X}:{gpu_id & 0xFF:02X}.0"
