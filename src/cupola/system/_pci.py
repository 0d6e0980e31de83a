"""How a device is connected: PCI and NVLink."""

from __future__ import annotations

import warnings

from cupola.bindings import nvml

from ._library import Unpicklable
from ._names import NVLINK_VERSIONS


class PciInfo(Unpicklable):
    """The place and the link of a device on PCI (``nvmlDeviceGetPciInfoExt``)."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._info = nvml.device_get_pci_info_ext(handle)

    @property
    def bus(self) -> int:
        """int: number of the bus."""
        return self._info.bus

    @property
    def bus_id(self) -> str:
        """str: ``domain:bus:device.function`` in hexadecimal."""
        return self._info.bus_id

    @property
    def device(self) -> int:
        """int: number of the device on its bus."""
        return self._info.device_

    @property
    def domain(self) -> int:
        """int: number of the PCI domain."""
        return self._info.domain

    @property
    def vendor_id(self) -> int:
        """int: PCI's number of the vendor, 0x10de for NVIDIA."""
        return self._info.pci_device_id & 0xFFFF

    @property
    def device_id(self) -> int:
        """int: the vendor's number of the device."""
        return self._info.pci_device_id >> 16

    @property
    def subsystem_id(self) -> int:
        """int: number of the board."""
        return self._info.pci_sub_system_id

    @property
    def base_class(self) -> int:
        """int: PCI's base class, 3 for display controllers."""
        return self._info.base_class

    @property
    def sub_class(self) -> int:
        """int: PCI's sub-class."""
        return self._info.sub_class

    @property
    def link_generation(self) -> int:
        """int: the highest generation of PCI Express possible in this computer."""
        return nvml.device_get_max_pcie_link_generation(self._handle)

    @property
    def max_link_generation(self) -> int:
        """int: the highest generation that the GPU itself supports (``nvmlDeviceGetGpuMaxPcieLinkGeneration``)."""
        return nvml.device_get_gpu_max_pcie_link_generation(self._handle)

    @property
    def max_link_width(self) -> int:
        """int: the most lanes possible in this computer (``nvmlDeviceGetMaxPcieLinkWidth``)."""
        return nvml.device_get_max_pcie_link_width(self._handle)

    @property
    def current_link_generation(self) -> int:
        """int: the generation at which the link runs now (``nvmlDeviceGetCurrPcieLinkGeneration``)."""
        return nvml.device_get_curr_pcie_link_generation(self._handle)

    @property
    def current_link_width(self) -> int:
        """int: the lanes in use now (``nvmlDeviceGetCurrPcieLinkWidth``)."""
        return nvml.device_get_curr_pcie_link_width(self._handle)

    @property
    def rx_throughput(self) -> int:
        """int: KB/s received, measured for 20 ms while you wait (``nvmlDeviceGetPcieThroughput``)."""
        return nvml.device_get_pcie_throughput(self._handle, nvml.PcieUtilCounter.RX_BYTES)

    @property
    def tx_throughput(self) -> int:
        """int: KB/s sent, measured for 20 ms while you wait (``nvmlDeviceGetPcieThroughput``)."""
        return nvml.device_get_pcie_throughput(self._handle, nvml.PcieUtilCounter.TX_BYTES)

    @property
    def replay_counter(self) -> int:
        """int: how often something was sent again (``nvmlDeviceGetPcieReplayCounter``)."""
        return nvml.device_get_pcie_replay_counter(self._handle)


class _NvlinkInfoMeta(type):
    @property
    def max_links(cls) -> int:
        """int: the most links that a device had when this was fixed. Deprecated: use ``Device.get_nvlink_count``."""
        warnings.warn(
            "NvlinkInfo.max_links is deprecated: use Device.get_nvlink_count()", DeprecationWarning, stacklevel=2
        )
        return 18


class NvlinkInfo(Unpicklable, metaclass=_NvlinkInfoMeta):
    """One NVLink of a device."""

    def __init__(self, handle: int, link: int) -> None:
        self._handle = handle
        self._link = link

    @property
    def version(self) -> tuple[int, int]:
        """tuple of int: version of NVLink, such as (4, 0) (``nvmlDeviceGetNvLinkVersion``)."""
        number = nvml.device_get_nvlink_version(self._handle, self._link)
        for known, version in NVLINK_VERSIONS.items():
            if known == number:
                return version
        raise RuntimeError(f"NVML answered {number}, which is not a version of NVLink that cupola knows")

    @property
    def state(self) -> bool:
        """bool: whether the link is up (``nvmlDeviceGetNvLinkState``)."""
        return bool(nvml.device_get_nvlink_state(self._handle, self._link))


def nvlink_count(handle: int) -> int:
    """How many NVLinks a device has."""
    field = nvml.FieldValue(1)
    field.field_id = nvml.FieldId.DEV_NVLINK_LINK_COUNT
    found = nvml.device_get_field_values(handle, field)[0]
    nvml.check_status(found.nvml_return)
    return found.value.ui_val
