"""Clocks and performance states."""

from __future__ import annotations

from cupola.bindings import nvml

from ._library import Unpicklable
from ._names import CLOCK_IDS, CLOCK_TYPES, pstate_number
from .typing import ClockId, ClockType


class ClockOffsets(Unpicklable):
    """How far a clock is, and may be, set off from its usual rate (``nvmlDeviceGetClockOffsets``)."""

    def __init__(self, handle: int, clock: int, pstate: int) -> None:
        self._offset = nvml.device_get_clock_offsets(handle, clock, pstate)

    @property
    def clock_offset_mhz(self) -> int:
        """int: the present offset in MHz."""
        return self._offset.clock_offset_m_hz

    @property
    def max_offset_mhz(self) -> int:
        """int: the highest offset that may be set, in MHz."""
        return self._offset.max_clock_offset_m_hz

    @property
    def min_offset_mhz(self) -> int:
        """int: the lowest offset that may be set, in MHz."""
        return self._offset.min_clock_offset_m_hz


class ClockInfo(Unpicklable):
    """One clock of a device."""

    def __init__(self, handle: int, clock_type: ClockType | str) -> None:
        self._handle = handle
        self._type = CLOCK_TYPES.number(clock_type)

    def get_current_mhz(self, clock_id: ClockId | str = ClockId.CURRENT) -> int:
        """Ask for the clock's rate in MHz (``nvmlDeviceGetClock``).

        Parameters
        ----------
        clock_id
            The current rate, or the most that the board's maker allows.
        """
        return nvml.device_get_clock(self._handle, self._type, CLOCK_IDS.number(clock_id))

    def get_max_mhz(self) -> int:
        """Ask for the highest rate in MHz (``nvmlDeviceGetMaxClockInfo``)."""
        return nvml.device_get_max_clock_info(self._handle, self._type)

    def get_max_customer_boost_mhz(self) -> int:
        """Ask for the highest rate that the board's maker allows, in MHz (``nvmlDeviceGetMaxCustomerBoostClock``)."""
        return nvml.device_get_max_customer_boost_clock(self._handle, self._type)

    def get_min_max_clock_of_pstate_mhz(self, pstate: int) -> tuple[int, int]:
        """Ask for the lowest and highest rate of a performance state in MHz (``nvmlDeviceGetMinMaxClockOfPState``).

        Parameters
        ----------
        pstate
            The performance state, 0 (fastest) to 15.

        Raises
        ------
        ValueError
            For another number.
        """
        return nvml.device_get_min_max_clock_of_p_state(self._handle, self._type, pstate_number(pstate))

    def get_offsets(self, pstate: int) -> ClockOffsets:
        """Ask how far the clock is set off in a performance state.

        Parameters
        ----------
        pstate
            The performance state, 0 (fastest) to 15.

        Raises
        ------
        ValueError
            For another number.
        """
        return ClockOffsets(self._handle, self._type, pstate_number(pstate))


class GpuDynamicPstatesUtilization(Unpicklable):
    """One domain of `GpuDynamicPstatesInfo`."""

    def __init__(self, record: nvml.GpuDynamicPstatesInfo_utilization) -> None:
        self._record = record

    @property
    def is_present(self) -> bool:
        """bool: whether the device has this domain."""
        return bool(self._record.b_is_present)

    @property
    def percentage(self) -> int:
        """int: percent of the time in which the domain was busy."""
        return self._record.percentage

    @property
    def inc_threshold(self) -> int:
        """int: percent above which a faster performance state is chosen."""
        return self._record.inc_threshold

    @property
    def dec_threshold(self) -> int:
        """int: percent below which a slower performance state is chosen."""
        return self._record.dec_threshold


class GpuDynamicPstatesInfo(Unpicklable):
    """What decides on the performance state, domain by domain: a sequence (``nvmlDeviceGetDynamicPstatesInfo``)."""

    def __init__(self, handle: int) -> None:
        self._domains = nvml.device_get_dynamic_pstates_info(handle).utilization

    def __len__(self) -> int:
        return len(self._domains)

    def __getitem__(self, index: int) -> GpuDynamicPstatesUtilization:
        return GpuDynamicPstatesUtilization(self._domains[index])


def performance_state(handle: int) -> int | None:
    """The performance state of a device, None when it is not known."""
    state = nvml.device_get_performance_state(handle)
    return None if state == nvml.Pstates.PSTATE_UNKNOWN else state


def supported_pstates(handle: int) -> list[int]:
    """The performance states that a device can be in."""
    states = nvml.device_get_supported_performance_states(handle)
    return [state for state in states if state != nvml.Pstates.PSTATE_UNKNOWN]
