"""A device as NVML sees it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cupola.bindings import nvml

from ._board import DeviceAttributes, InforomInfo
from ._clocks import ClockInfo, GpuDynamicPstatesInfo, performance_state, supported_pstates
from ._cooling import CoolerInfo, FanInfo, Temperature
from ._events import DeviceEvents
from ._fields import FieldIds, FieldValues, requested
from ._library import Unpicklable, device_handles, initialize
from ._memory import BAR1MemoryInfo, MemoryInfo, ProcessInfo, RepairStatus, Utilization, running_processes
from ._mig import MigInfo
from ._names import (
    ADDRESSING_MODES,
    AFFINITY_SCOPES,
    CLOCKS_EVENT_REASONS,
    EVENT_TYPES,
    TOPOLOGY_LEVELS,
    bits,
    brand_name,
)
from ._pci import NvlinkInfo, PciInfo, nvlink_count
from .typing import (
    AddressingMode,
    AffinityScope,
    ClocksEventReasons,
    ClockType,
    DeviceArch,
    EventType,
    GpuTopologyLevel,
)

if TYPE_CHECKING:
    import cupola

_MEMORY_NODES = 1024
"""The most NUMA nodes that Linux knows."""


class Device(Unpicklable):
    """A device as NVML sees it: its state rather than what it computes.

    Looking at a device makes no CUDA context and needs none. Each call of the class makes an object. Indexes of NVML
    may differ from CUDA's: `to_cuda_device` finds the same device there.

    Parameters
    ----------
    index
        NVML's index, from 0.
    uuid
        The UUID with its prefix, as in `uuid`.
    pci_bus_id
        The place on PCI, as in `pci_bus_id`.

    Raises
    ------
    ValueError
        When not exactly one of them is given.
    InvalidArgumentError
        If there is no device with the index.
    NotFoundError
        If there is no device with the UUID or PCI bus id.

    Notes
    -----
    Threads may share it.
    """

    __slots__ = ("__weakref__", "_address")

    def __init__(
        self, *, index: int | None = None, uuid: str | bytes | None = None, pci_bus_id: str | bytes | None = None
    ) -> None:
        given = sum(choice is not None for choice in (index, uuid, pci_bus_id))
        if given != 1:
            raise ValueError(
                f"give one of index, uuid and pci_bus_id to name the device, not {given or 'none'} of them"
            )
        initialize()
        if index is not None:
            self._address = nvml.device_get_handle_by_index_v2(index)
        elif uuid is not None:
            self._address = nvml.device_get_handle_by_uuid(_text(uuid))
        elif pci_bus_id is not None:
            self._address = nvml.device_get_handle_by_pci_bus_id_v2(_text(pci_bus_id))

    @classmethod
    def _from_handle(cls, handle: int) -> Device:
        device = cls.__new__(cls)
        device._address = handle
        return device

    @property
    def _handle(self) -> int:
        initialize()  # again, after a fork
        return self._address

    # ---- finding devices ----

    @classmethod
    def get_device_count(cls) -> int:
        """Count the devices (``nvmlDeviceGetCount_v2``), those that CUDA_VISIBLE_DEVICES hides included."""
        initialize()
        return nvml.device_get_count_v2()

    @classmethod
    def get_all_devices(cls) -> Iterator[Device]:
        """Go through all devices in the order of their index."""
        for handle in device_handles():
            yield cls._from_handle(handle)

    @classmethod
    def get_all_devices_with_cpu_affinity(cls, cpu_index: int) -> Iterator[Device]:
        """Go through the devices that are near a processor (``nvmlSystemGetTopologyGpuSet``). Linux only.

        Parameters
        ----------
        cpu_index
            The number of the processor.
        """
        initialize()
        for handle in nvml.system_get_topology_gpu_set(cpu_index):
            yield cls._from_handle(handle)

    def to_cuda_device(self) -> cupola.Device:
        """Find CUDA's device that is the same.

        Raises
        ------
        RuntimeError
            When CUDA does not see it, because CUDA_VISIBLE_DEVICES hides it, for example.
        """
        from cupola import Device as CudaDevice

        wanted = self.uuid_without_prefix
        for device in CudaDevice.get_all_devices():
            if device.uuid == wanted:
                return device
        raise RuntimeError(f"CUDA does not see the device with the UUID {self.uuid}: look at CUDA_VISIBLE_DEVICES")

    # ---- identity ----

    @property
    def index(self) -> int:
        """int: NVML's index (``nvmlDeviceGetIndex``)."""
        return nvml.device_get_index(self._handle)

    @property
    def uuid(self) -> str:
        """str: the UUID, with the prefix ``GPU-`` or ``MIG-`` (``nvmlDeviceGetUUID``)."""
        return nvml.device_get_uuid(self._handle)

    @property
    def uuid_without_prefix(self) -> str:
        """str: the UUID as CUDA writes it."""
        return self.uuid.partition("-")[2]

    @property
    def pci_bus_id(self) -> str:
        """str: PCI address as ``domain:bus:device.function`` in hexadecimal (``nvmlDeviceGetPciInfo_v3``)."""
        return nvml.device_get_pci_info_v3(self._handle).bus_id

    @property
    def numa_node_id(self) -> int:
        """int: the NUMA node that the GPU's memory is, where it is one (``nvmlDeviceGetNumaNodeId``)."""
        return nvml.device_get_numa_node_id(self._handle)

    @property
    def arch(self) -> DeviceArch:
        """DeviceArch: the generation; newer ones are greater (``nvmlDeviceGetArchitecture``)."""
        return DeviceArch(nvml.device_get_architecture(self._handle))

    @property
    def name(self) -> str:
        """str: the name of the product (``nvmlDeviceGetName``)."""
        return nvml.device_get_name(self._handle)

    @property
    def brand(self) -> str:
        """str: the brand, "Unknown" when it is not known (``nvmlDeviceGetBrand``)."""
        return brand_name(nvml.device_get_brand(self._handle))

    @property
    def serial(self) -> str:
        """str: the serial number on the board; needs an InfoROM (``nvmlDeviceGetSerial``)."""
        return nvml.device_get_serial(self._handle)

    @property
    def module_id(self) -> int:
        """int: place among the modules of a baseboard (``nvmlDeviceGetModuleId``)."""
        return nvml.device_get_module_id(self._handle)

    @property
    def minor_number(self) -> int:
        """int: X of ``/dev/nvidiaX``; Linux only (``nvmlDeviceGetMinorNumber``)."""
        return nvml.device_get_minor_number(self._handle)

    @property
    def cuda_compute_capability(self) -> tuple[int, int]:
        """tuple of int: such as (9, 0) (``nvmlDeviceGetCudaComputeCapability``)."""
        return nvml.device_get_cuda_compute_capability(self._handle)

    # ---- state ----

    @property
    def is_c2c_enabled(self) -> bool:
        """bool: whether a chip-to-chip link to the processor is in use (``nvmlDeviceGetC2cModeInfoV``)."""
        return bool(nvml.device_get_c2c_mode_info_v(self._handle).is_c2c_enabled)

    @property
    def is_persistence_mode_enabled(self) -> bool:
        """bool: whether the driver stays loaded without users; administrators may set it."""
        return nvml.device_get_persistence_mode(self._handle) == nvml.EnableState.ENABLED

    @is_persistence_mode_enabled.setter
    def is_persistence_mode_enabled(self, enabled: bool) -> None:
        nvml.device_set_persistence_mode(
            self._handle, nvml.EnableState.ENABLED if enabled else nvml.EnableState.DISABLED
        )

    @property
    def addressing_mode(self) -> AddressingMode | None:
        """AddressingMode or None: how kernels reach the system's memory; None: not at all."""
        mode = nvml.device_get_addressing_mode(self._handle).value
        return None if mode == nvml.DeviceAddressingModeType.NONE else ADDRESSING_MODES.member(mode)

    @property
    def is_display_connected(self) -> bool:
        """bool: whether a display is connected (``nvmlDeviceGetDisplayMode``)."""
        return nvml.device_get_display_mode(self._handle) == nvml.EnableState.ENABLED

    @property
    def is_display_active(self) -> bool:
        """bool: whether a display shows what the device draws (``nvmlDeviceGetDisplayActive``)."""
        return nvml.device_get_display_active(self._handle) == nvml.EnableState.ENABLED

    @property
    def mig(self) -> MigInfo:
        """MigInfo: whether the GPU is divided, and into which devices."""
        return MigInfo(self)

    @property
    def attributes(self) -> DeviceAttributes:
        """DeviceAttributes: the share that a MIG device has of its GPU. Ampere and newer, Linux only."""
        return DeviceAttributes(self._handle)

    @property
    def inforom(self) -> InforomInfo:
        """InforomInfo: what the board's own memory tells."""
        return InforomInfo(self._handle)

    @property
    def repair_status(self) -> RepairStatus:
        """RepairStatus: whether memory repairs wait for a reset. Ampere and newer."""
        return RepairStatus(self._handle)

    @property
    def pci_info(self) -> PciInfo:
        """PciInfo: place and link on PCI. RuntimeError for a MIG device, which has none of its own."""
        if self.mig.is_mig_device:
            raise RuntimeError("a MIG device has no PCI address of its own: ask mig.parent")
        return PciInfo(self._handle)

    # ---- memory and work ----

    @property
    def memory_info(self) -> MemoryInfo:
        """MemoryInfo: memory in use and free, in bytes."""
        return MemoryInfo(self._handle)

    @property
    def bar1_memory_info(self) -> BAR1MemoryInfo:
        """BAR1MemoryInfo: the window to device memory, in bytes."""
        return BAR1MemoryInfo(self._handle)

    @property
    def compute_running_processes(self) -> list[ProcessInfo]:
        """list of ProcessInfo: the processes that compute on the device."""
        return running_processes(self._handle)

    @property
    def utilization(self) -> Utilization:
        """Utilization: how busy the device is, in percent."""
        return Utilization(self._handle)

    # ---- clocks, temperatures, fans ----

    @property
    def is_auto_boosted_clocks_enabled(self) -> tuple[bool, bool]:
        """tuple of bool: whether clocks are boosted now, and by default (``nvmlDeviceGetAutoBoostedClocksEnabled``)."""
        now, default = nvml.device_get_auto_boosted_clocks_enabled(self._handle)
        return now == nvml.EnableState.ENABLED, default == nvml.EnableState.ENABLED

    @property
    def current_clock_event_reasons(self) -> list[ClocksEventReasons]:
        """list of ClocksEventReasons: why the clocks are not higher (``nvmlDeviceGetCurrentClocksEventReasons``)."""
        return CLOCKS_EVENT_REASONS.members(nvml.device_get_current_clocks_event_reasons(self._handle))

    @property
    def supported_clock_event_reasons(self) -> list[ClocksEventReasons]:
        """list of ClocksEventReasons: the reasons that the device can tell."""
        return CLOCKS_EVENT_REASONS.members(nvml.device_get_supported_clocks_event_reasons(self._handle))

    def get_clock(self, clock_type: ClockType | str) -> ClockInfo:
        """Choose a clock to ask about.

        Parameters
        ----------
        clock_type
            The clock domain.
        """
        return ClockInfo(self._handle, clock_type)

    @property
    def performance_state(self) -> int | None:
        """int or None: 0 (fastest) to 15, None when it is not known (``nvmlDeviceGetPerformanceState``)."""
        return performance_state(self._handle)

    @property
    def supported_pstates(self) -> list[int]:
        """list of int: the performance states that there are (``nvmlDeviceGetSupportedPerformanceStates``)."""
        return supported_pstates(self._handle)

    @property
    def dynamic_pstates_info(self) -> GpuDynamicPstatesInfo:
        """GpuDynamicPstatesInfo: what decides on the performance state."""
        return GpuDynamicPstatesInfo(self._handle)

    @property
    def temperature(self) -> Temperature:
        """Temperature: temperatures and their limits."""
        return Temperature(self._handle)

    @property
    def cooler(self) -> CoolerInfo:
        """CoolerInfo: what cools the device."""
        return CoolerInfo(self._handle)

    @property
    def num_fans(self) -> int:
        """int: how many fans there are (``nvmlDeviceGetNumFans``)."""
        return nvml.device_get_num_fans(self._handle)

    def get_fan(self, fan: int = 0) -> FanInfo:
        """Choose a fan.

        Parameters
        ----------
        fan
            Its number, from 0.

        Raises
        ------
        ValueError
            When there is no such fan.
        """
        return FanInfo(self._handle, fan)

    # ---- neighbors ----

    def get_memory_affinity(self, scope: AffinityScope | str = AffinityScope.NODE) -> list[int]:
        """List the NUMA nodes whose memory is near (``nvmlDeviceGetMemoryAffinity``). Linux only.

        Parameters
        ----------
        scope
            Near means of the same node, or of the same socket.
        """
        words = nvml.device_get_memory_affinity(self._handle, _MEMORY_NODES // 64, AFFINITY_SCOPES.number(scope))
        return bits(words)

    def get_cpu_affinity(self, scope: AffinityScope | str = AffinityScope.NODE) -> list[int]:
        """List the processors that are near (``nvmlDeviceGetCpuAffinityWithinScope``). Linux only.

        Parameters
        ----------
        scope
            Near means of the same node, or of the same socket.
        """
        return bits(
            nvml.device_get_cpu_affinity_within_scope(self._handle, _processor_words(), AFFINITY_SCOPES.number(scope))
        )

    def set_cpu_affinity(self) -> None:
        """Bind the calling thread to the processors that are near (``nvmlDeviceSetCpuAffinity``). Linux only."""
        nvml.device_set_cpu_affinity(self._handle)

    def clear_cpu_affinity(self) -> None:
        """Let the calling thread run everywhere again (``nvmlDeviceClearCpuAffinity``). Linux only."""
        nvml.device_clear_cpu_affinity(self._handle)

    def get_topology_nearest_gpus(self, level: GpuTopologyLevel | str) -> Iterable[Device]:
        """Go through the devices that have a part of the computer in common with this one.

        Parameters
        ----------
        level
            The part. ``nvmlDeviceGetTopologyNearestGpus``; Linux only.
        """
        for handle in nvml.device_get_topology_nearest_gpus(self._handle, TOPOLOGY_LEVELS.number(level)):
            yield type(self)._from_handle(handle)

    def get_nvlink(self, link: int) -> NvlinkInfo:
        """Choose an NVLink.

        Parameters
        ----------
        link
            Its number, from 0 to `get_nvlink_count` - 1.

        Raises
        ------
        ValueError
            When there is no such link.
        system.NotSupportedError
            When the device has no NVLinks.
        """
        count = self.get_nvlink_count()
        if not 0 <= link < count:
            raise ValueError(f"link must be from 0 to {count - 1}, got {link}")
        return NvlinkInfo(self._handle, link)

    def get_nvlink_count(self) -> int:
        """Count the NVLinks. Raises ``system.NotSupportedError`` if the device has none."""
        return nvlink_count(self._handle)

    def get_nvlinks(self) -> Iterable[NvlinkInfo]:
        """Go through the NVLinks. Raises ``system.NotSupportedError`` if the device has none."""
        handle = self._handle
        return (NvlinkInfo(handle, link) for link in range(nvlink_count(handle)))

    # ---- fields and events ----

    def get_field_values(self, field_ids: FieldIds) -> FieldValues:
        """Ask for several facts in one call (``nvmlDeviceGetFieldValues``).

        Parameters
        ----------
        field_ids
            Members of ``system.typing.FieldId`` or their numbers; a pair (field, scope) where there are several, such
            as links.

        Returns
        -------
        FieldValues
            One for each field, in this order; a fact that the device does not have raises when its value is read.
        """
        records = requested(field_ids)
        return FieldValues(nvml.device_get_field_values(self._handle, records) if len(records) else records)

    def clear_field_values(self, field_ids: FieldIds) -> None:
        """Set counters among the field values to zero (``nvmlDeviceClearFieldValues``).

        Parameters
        ----------
        field_ids
            As for `get_field_values`.
        """
        records = requested(field_ids)
        if len(records):
            nvml.device_clear_field_values(self._handle, records)

    def get_supported_event_types(self) -> list[EventType]:
        """List the events that the device can report (``nvmlDeviceGetSupportedEventTypes``)."""
        return EVENT_TYPES.members(nvml.device_get_supported_event_types(self._handle))

    def register_events(self, events: EventType | str | list[EventType | str]) -> DeviceEvents:
        """Ask for events of the device (``nvmlDeviceRegisterEvents``). Linux only.

        Parameters
        ----------
        events
            One or several, as members or strings.

        Returns
        -------
        DeviceEvents
            Its ``wait`` returns them one by one.

        Raises
        ------
        ValueError
            For an unknown string.
        TypeError
            For what is neither a string nor a list.
        NotSupportedError
            For events that the device cannot report.
        """
        return DeviceEvents(self, events)


def system_device(uuid: str) -> Device:
    """NVML's device with a UUID of CUDA, which has no prefix."""
    try:
        return Device(uuid=f"GPU-{uuid}")
    except nvml.NotFoundError:
        return Device(uuid=f"MIG-{uuid}")


def _text(value: str | bytes) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else value


def _processor_words() -> int:
    """Words of 64 bits with a bit for each processor."""
    return ((os.cpu_count() or 1) + 63) // 64
