"""Page-locked host memory from stream-ordered pools."""

from __future__ import annotations

from cupola.core.base._errors import CUDAError
from cupola.core.base._options import as_options
from cupola.core.device._device import Device
from cupola.core.device._stream import Stream
from cupola.core.memory._pool import ALLOCATION_PINNED, LOCATION_HOST, LOCATION_HOST_NUMA
from cupola.core.memory._shareable_pool import ShareablePoolResource, require_ipc

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core.memory._ipc import IPCAllocationHandle
    from cupola.core.memory._options import PinnedMemoryResourceOptions
    from cupola.graph import GraphBuilder


class PinnedMemoryResource(ShareablePoolResource):
    """Page-locked host memory from a stream-ordered pool: the host and all devices can access it.

    Where the driver or a device has no host pools, use :class:`LegacyPinnedMemoryResource`; ask
    ``Device.properties.host_memory_pools_supported``.

    Parameters
    ----------
    options : PinnedMemoryResourceOptions or dict, optional
        Make a new pool with these options. Without them the current host pool is used (``cuMemGetMemPool``), which
        needs CUDA 13.

    Raises
    ------
    RuntimeError
        When the driver has no current host pool; for `ipc_enabled`, when the node of the current device is not known.
    ValueError
        For a negative `numa_id`.
    CUDAError
        When the driver refuses to make the pool (``cuMemPoolCreate``).

    Notes
    -----
    Threads may share it, and any of them may close it.
    """

    __slots__ = ("_numa_id",)

    def __init__(self, options: PinnedMemoryResourceOptions | dict[str, Any] | None = None) -> None:
        if options is None:
            self._use_current_pool(LOCATION_HOST, ALLOCATION_PINNED)
            return
        from cupola.core.memory._options import PinnedMemoryResourceOptions

        wanted = as_options(PinnedMemoryResourceOptions, options)
        if wanted.ipc_enabled:
            require_ipc()
        node = wanted.numa_id
        if node is None and wanted.ipc_enabled:
            node = _node_of_current_device()
        if node is None:
            self._make_pool(LOCATION_HOST, 0, wanted.max_size)
            return
        if node < 0:
            raise ValueError(f"numa_id must not be negative, got {node}; use None for any node")
        self._numa_id = node
        self._make_pool(LOCATION_HOST_NUMA, node, wanted.max_size, shared=bool(wanted.ipc_enabled))
        if wanted.ipc_enabled:
            self._share()

    @classmethod
    def from_allocation_handle(cls, alloc_handle: int | IPCAllocationHandle) -> PinnedMemoryResource:
        """Import the pool of another process (``cuMemPoolImportFromShareableHandle``).

        Parameters
        ----------
        alloc_handle : IPCAllocationHandle or int
            The ``allocation_handle`` there; or a file descriptor, which is duplicated.

        Returns
        -------
        PinnedMemoryResource
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
        return cls._import(alloc_handle, -1)

    def _explain_failure(self, stream: Stream | GraphBuilder, error: CUDAError) -> None:
        device = (stream if isinstance(stream, Stream) else stream.stream).device
        numa = self.numa_id >= 0
        if numa:
            supported = device.properties.host_numa_memory_pools_supported
        else:
            supported = device.properties.host_memory_pools_supported
        if not supported:
            raise RuntimeError(
                f"{device} does not support pools of {'NUMA ' if numa else ''}host memory; "
                "use LegacyPinnedMemoryResource"
            ) from error

    @property
    def numa_id(self) -> int:
        """int: NUMA node of the memory, -1 when the system, or another process, chose."""
        return getattr(self, "_numa_id", -1)

    def _about(self) -> str:
        return f"numa_id={self.numa_id}"


def _node_of_current_device() -> int:
    node = Device().properties.host_numa_id
    if node < 0:
        raise RuntimeError(
            "the NUMA node of the device is not known: name one with PinnedMemoryResourceOptions(numa_id=...), as "
            "memory that processes share has to be on a certain node"
        )
    return node
