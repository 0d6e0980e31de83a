"""From the string enumerations of `typing` to the numbers of NVML, and back."""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeVar

from cupola.bindings import nvml

from . import typing

Member = TypeVar("Member", bound=StrEnum)


class Names(Generic[Member]):
    """The members of one enumeration beside NVML's numbers.

    A member has the name of NVML's constant, except for those in `others` (our name = NVML's name).
    """

    def __init__(self, kind: type[Member], constants: type, **others: str) -> None:
        self.kind = kind
        self._numbers = {member: int(getattr(constants, others.get(member.name, member.name))) for member in kind}
        # Of members with the same number the first is meant.
        self._members = {number: member for member, number in reversed(self._numbers.items())}

    def number(self, value: Member | str) -> int:
        """NVML's number of a member or its string. ValueError for anything else."""
        try:
            return self._numbers[self.kind(value)]
        except ValueError:
            known = ", ".join(repr(member.value) for member in self.kind)
            raise ValueError(f"{value!r} is not a {self.kind.__name__}: it must be one of {known}") from None

    def member(self, number: int) -> Member:
        """The member for a number of NVML. ValueError if there is no such member."""
        try:
            return self._members[number]
        except KeyError:
            raise ValueError(f"NVML answered {number}, which is not a {self.kind.__name__} that cupola knows") from None

    def members(self, mask: int) -> list[Member]:
        """The members for the bits that are set in a mask."""
        return [self.member(1 << bit) for bit in range(mask.bit_length()) if mask >> bit & 1]

    def mask(self, values: Member | str | list[Member | str]) -> int:
        """One or several members as a mask. TypeError for what is neither a string nor a list of strings."""
        if isinstance(values, str):
            values = [values]
        if not isinstance(values, list):
            raise TypeError(f"expected a {self.kind.__name__}, a string or a list of them, not {type(values).__name__}")
        mask = 0
        for value in values:
            mask |= self.number(value)
        return mask


ADDRESSING_MODES = Names(typing.AddressingMode, nvml.DeviceAddressingModeType)
AFFINITY_SCOPES = Names(typing.AffinityScope, nvml.AffinityScope)
CLOCK_IDS = Names(typing.ClockId, nvml.ClockId)
CLOCK_TYPES = Names(typing.ClockType, nvml.ClockType, MEMORY="MEM")
CLOCKS_EVENT_REASONS = Names(typing.ClocksEventReasons, nvml.ClocksEventReasons)
COOLER_CONTROLS = Names(typing.CoolerControl, nvml.CoolerControl)
COOLER_TARGETS = Names(typing.CoolerTarget, nvml.CoolerTarget)
EVENT_TYPES = Names(typing.EventType, nvml.EventType)
FAN_CONTROL_POLICIES = Names(
    typing.FanControlPolicy, nvml.FanControlPolicy, TEMPERATURE_CONTROLLED="TEMPERATURE_CONTINUOUS_SW"
)
INFOROM_OBJECTS = Names(typing.InforomObject, nvml.InforomObject)
P2P_CAPS = Names(typing.GpuP2PCapsIndex, nvml.GpuP2PCapsIndex)
P2P_STATUSES = Names(typing.GpuP2PStatus, nvml.GpuP2PStatus)
SYSTEM_EVENT_TYPES = Names(
    typing.SystemEventType, nvml.SystemEventType, UNBIND="GPU_DRIVER_UNBIND", BIND="GPU_DRIVER_BIND"
)
TEMPERATURE_THRESHOLDS = Names(typing.TemperatureThresholds, nvml.TemperatureThresholds)
THERMAL_CONTROLLERS = Names(typing.ThermalController, nvml.ThermalController)
THERMAL_TARGETS = Names(typing.ThermalTarget, nvml.ThermalTarget)
TOPOLOGY_LEVELS = Names(typing.GpuTopologyLevel, nvml.GpuTopologyLevel)

BRANDS = {
    "UNKNOWN": "Unknown",
    "QUADRO": "Quadro",
    "TESLA": "Tesla",
    "NVS": "NVS",
    "GRID": "GRID",
    "GEFORCE": "GeForce",
    "TITAN": "Titan",
    "NVIDIA_VAPPS": "NVIDIA vApps",
    "NVIDIA_VPC": "NVIDIA VPC",
    "NVIDIA_VCS": "NVIDIA VCS",
    "NVIDIA_VWS": "NVIDIA VWS",
    "NVIDIA_CLOUD_GAMING": "NVIDIA Cloud Gaming",
    "QUADRO_RTX": "Quadro RTX",
    "NVIDIA_RTX": "NVIDIA RTX",
    "NVIDIA": "NVIDIA",
    "GEFORCE_RTX": "GeForce RTX",
    "TITAN_RTX": "Titan RTX",
}
"""NVML's name of a brand -> the name that people know."""


def brand_name(number: int) -> str:
    """The name of a brand, "Unknown" for one that is not in the table."""
    try:
        return BRANDS.get(nvml.BrandType(number).name, "Unknown")
    except ValueError:
        return "Unknown"


NVLINK_VERSIONS = {
    nvml.NvlinkVersion.VERSION_1_0: (1, 0),
    nvml.NvlinkVersion.VERSION_2_0: (2, 0),
    nvml.NvlinkVersion.VERSION_2_2: (2, 2),
    nvml.NvlinkVersion.VERSION_3_0: (3, 0),
    nvml.NvlinkVersion.VERSION_3_1: (3, 1),
    nvml.NvlinkVersion.VERSION_4_0: (4, 0),
    nvml.NvlinkVersion.VERSION_5_0: (5, 0),
    nvml.NvlinkVersion.VERSION_6_0: (6, 0),
}


def pstate_number(pstate: int) -> int:
    """A performance state as NVML takes it. TypeError if it is no int, ValueError outside 0 to 15."""
    if not isinstance(pstate, int):
        raise TypeError(f"pstate must be an int from 0 (fastest) to 15, not {type(pstate).__name__}")
    if not 0 <= pstate <= 15:
        raise ValueError(f"a performance state is a number from 0 (fastest) to 15, got {pstate!r}")
    return pstate


def bits(words: list[int]) -> list[int]:
    """The numbers of the bits that are set in words of 64 bits."""
    return [64 * place + bit for place, word in enumerate(words) for bit in range(64) if word >> bit & 1]
