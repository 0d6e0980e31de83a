"""Device memory from the stream-ordered pools of a device."""

from __future__ import annotations

from cupola.core._pool import LOCATION_DEVICE, PoolMemoryResource

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from cupola.core._device import Device
    from cupola.core._options import DeviceMemoryResourceOptions
    from cupola.core._peer_access import PeerAccessibleBySetProxy


class DeviceMemoryResource(PoolMemoryResource):
    """Memory of a device, from a stream-ordered pool.

    Parameters
    ----------
    device_id : Device or int
        The device.
    options : DeviceMemoryResourceOptions or dict, optional
        Make a new pool with these options. Without them the current pool of the device is used
        (``cuDeviceGetMemPool``); its release threshold is raised to the maximum if it was 0, so that freed memory is
        reused instead of being returned to the system at every synchronisation.

    Raises
    ------
    ValueError
        When there is no such device.
    CUDAError
        When the driver refuses to make the pool (``cuMemPoolCreate``).
    """

    def __init__(
        self, device_id: Device | int, options: DeviceMemoryResourceOptions | dict[str, Any] | None = None
    ) -> None:
        from cupola.core._device import Device

        ordinal = Device(device_id).device_id
        if options is None:
            self._use_device_pool(ordinal)
            return
        from cupola.core._options import DeviceMemoryResourceOptions, as_options

        wanted = as_options(DeviceMemoryResourceOptions, options)
        if wanted.ipc_enabled:
            raise NotImplementedError("memory shared between processes (ipc_enabled) is not supported yet")
        self._make_pool(LOCATION_DEVICE, ordinal, wanted.max_size)

    @property
    def peer_accessible_by(self) -> PeerAccessibleBySetProxy:
        """PeerAccessibleBySetProxy: the other devices that may access the memory; assign devices to replace them."""
        from cupola.core._peer_access import PeerAccessibleBySetProxy

        if self.is_closed:
            raise RuntimeError("DeviceMemoryResource has been closed")
        return PeerAccessibleBySetProxy(self)

    @peer_accessible_by.setter
    def peer_accessible_by(self, devices: Iterable[Device | int]) -> None:
        self.peer_accessible_by._replace(devices)
