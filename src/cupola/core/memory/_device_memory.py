"""Device memory from the stream-ordered pools of a device."""

from __future__ import annotations

from cupola.core.base._options import as_options
from cupola.core.device._device import Device
from cupola.core.memory._peer_access import PeerAccessibleBySetProxy
from cupola.core.memory._pool import LOCATION_DEVICE
from cupola.core.memory._shareable_pool import ShareablePoolResource, require_ipc

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from cupola.core.memory._ipc import IPCAllocationHandle
    from cupola.core.memory._options import DeviceMemoryResourceOptions


class DeviceMemoryResource(ShareablePoolResource):
    """Memory of a device, from a stream-ordered pool.

    Parameters
    ----------
    device_id : Device or int
        The device.
    options : DeviceMemoryResourceOptions or dict, optional
        Make a new pool with these options. Without them the current pool of the device is used
        (``cuDeviceGetMemPool``); its release threshold is raised to the maximum if it was 0, so that freed memory is
        reused instead of being returned to the system at every synchronization.

    Raises
    ------
    ValueError
        When there is no such device.
    CUDAError
        When the driver refuses to make the pool (``cuMemPoolCreate``).

    Notes
    -----
    Threads may share it, and any of them may close it.
    """

    __slots__ = ()

    def __init__(
        self, device_id: Device | int, options: DeviceMemoryResourceOptions | dict[str, Any] | None = None
    ) -> None:
        ordinal = Device(device_id).device_id
        if options is None:
            self._use_device_pool(ordinal)
            return
        from cupola.core.memory._options import DeviceMemoryResourceOptions

        wanted = as_options(DeviceMemoryResourceOptions, options)
        if wanted.ipc_enabled:
            require_ipc()
        self._make_pool(LOCATION_DEVICE, ordinal, wanted.max_size, shared=bool(wanted.ipc_enabled))
        if wanted.ipc_enabled:
            self._share()

    @classmethod
    def from_allocation_handle(
        cls, device_id: Device | int, alloc_handle: int | IPCAllocationHandle
    ) -> DeviceMemoryResource:
        """Import the pool of another process (``cuMemPoolImportFromShareableHandle``).

        Parameters
        ----------
        device_id : Device or int
            The device that the memory is on.
        alloc_handle : IPCAllocationHandle or int
            The ``allocation_handle`` there; or a file descriptor, which is duplicated.

        Returns
        -------
        DeviceMemoryResource
            A resource that imports buffers and does not allocate. If this process has the pool already, its existing
            resource.

        Raises
        ------
        TypeError
            This process knows the pool as one of another class.
        OSError
            The file descriptor is not open.
        CUDAError
            It is not one of a pool.
        """
        return cls._import(alloc_handle, Device(device_id).device_id)

    def _import_arguments(self) -> tuple[int, IPCAllocationHandle]:
        return self.device_id, self.allocation_handle

    @property
    def peer_accessible_by(self) -> PeerAccessibleBySetProxy:
        """PeerAccessibleBySetProxy: the other devices that may access the memory; assign devices to replace them."""
        if self.is_closed:
            raise RuntimeError("DeviceMemoryResource has been closed")
        return PeerAccessibleBySetProxy(self)

    @peer_accessible_by.setter
    def peer_accessible_by(self, devices: Iterable[Device | int]) -> None:
        self.peer_accessible_by._replace(devices)
