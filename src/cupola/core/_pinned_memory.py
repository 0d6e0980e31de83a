"""Page-locked host memory from stream-ordered pools."""

from __future__ import annotations

from cupola.core._errors import CUDAError
from cupola.core._pool import ALLOCATION_PINNED, LOCATION_HOST, LOCATION_HOST_NUMA, PoolMemoryResource
from cupola.core._stream import Stream

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core._options import PinnedMemoryResourceOptions
    from cupola.graph import GraphBuilder


class PinnedMemoryResource(PoolMemoryResource):
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
        When the driver has no current host pool.
    ValueError
        For a negative `numa_id`.
    CUDAError
        When the driver refuses to make the pool (``cuMemPoolCreate``).
    """

    def __init__(self, options: PinnedMemoryResourceOptions | dict[str, Any] | None = None) -> None:
        self._numa_id = -1
        if options is None:
            self._use_current_pool(LOCATION_HOST, ALLOCATION_PINNED)
            return
        from cupola.core._options import PinnedMemoryResourceOptions, as_options

        wanted = as_options(PinnedMemoryResourceOptions, options)
        if wanted.ipc_enabled:
            raise NotImplementedError("memory shared between processes (ipc_enabled) is not supported yet")
        if wanted.numa_id is None:
            self._make_pool(LOCATION_HOST, 0, wanted.max_size)
            return
        if wanted.numa_id < 0:
            raise ValueError(f"numa_id must not be negative, got {wanted.numa_id}; use None for any node")
        self._numa_id = wanted.numa_id
        self._make_pool(LOCATION_HOST_NUMA, self._numa_id, wanted.max_size)

    def _explain_failure(self, stream: Stream | GraphBuilder, error: CUDAError) -> None:
        device = (stream if isinstance(stream, Stream) else stream.stream).device
        numa = self._numa_id >= 0
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
        """int: NUMA node of the memory, -1 when the system chose."""
        return self._numa_id

    def _about(self) -> str:
        return f"numa_id={self._numa_id}"
