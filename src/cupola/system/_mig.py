"""MIG: a GPU divided into several devices by the hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.bindings import nvml

from ._library import Unpicklable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._device import Device


class MigInfo(Unpicklable):
    """Whether a GPU is divided into MIG devices, and into which."""

    def __init__(self, device: Device) -> None:
        self._device = device

    @property
    def is_mig_device(self) -> bool:
        """bool: whether this device is such a part itself (``nvmlDeviceIsMigDeviceHandle``)."""
        return bool(nvml.device_is_mig_device_handle(self._device._handle))

    @property
    def mode(self) -> bool:
        """bool: whether the GPU is divided; may be set, by administrators (``nvmlDeviceSetMigMode``)."""
        return nvml.device_get_mig_mode(self._device._handle)[0] == nvml.DeviceMig.ENABLE

    @mode.setter
    def mode(self, enabled: bool) -> None:
        nvml.device_set_mig_mode(self._device._handle, nvml.DeviceMig.ENABLE if enabled else nvml.DeviceMig.DISABLE)

    @property
    def pending_mode(self) -> bool:
        """bool: whether it will be after the next reset; False where the GPU cannot be divided."""
        try:
            return nvml.device_get_mig_mode(self._device._handle)[1] == nvml.DeviceMig.ENABLE
        except nvml.NotSupportedError:
            return False

    @property
    def device_count(self) -> int:
        """int: the largest number of MIG devices; 0 if it has none (``nvmlDeviceGetMaxMigDeviceCount``)."""
        try:
            return nvml.device_get_max_mig_device_count(self._device._handle)
        except nvml.NotSupportedError:
            return 0

    @property
    def parent(self) -> Device:
        """Device: the GPU that this MIG device is a part of."""
        return self._made(nvml.device_get_device_handle_from_mig_device_handle(self._device._handle))

    def get_device_by_index(self, index: int) -> Device:
        """Find a MIG device of this GPU (``nvmlDeviceGetMigDeviceHandleByIndex``).

        Parameters
        ----------
        index
            From 0 to `device_count` - 1; places may be empty, which raises `NotFoundError`.
        """
        return self._made(nvml.device_get_mig_device_handle_by_index(self._device._handle, index))

    def get_all_devices(self) -> Iterator[Device]:
        """Go through the MIG devices of this GPU."""
        for index in range(self.device_count):
            try:
                yield self.get_device_by_index(index)
            except nvml.NotFoundError:
                continue  # nobody has made a device in this place

    def _made(self, handle: int) -> Device:
        return type(self._device)._from_handle(handle)
