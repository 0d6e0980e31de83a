"""Options of memory pools and mapped memory.

Imported when options are first used: dataclasses are slow to import.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from cupola.core.base._options import naming_options

TYPE_CHECKING = False  # so is typing
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cupola.core.device._device import Device
    from cupola.typing import (
        ManagedMemoryLocationType,
        VirtualMemoryAccessType,
        VirtualMemoryAllocationType,
        VirtualMemoryGranularityType,
        VirtualMemoryHandleType,
        VirtualMemoryLocationType,
    )


@naming_options
@dataclass(slots=True)
class DeviceMemoryResourceOptions:
    """How to make the pool of a :class:`DeviceMemoryResource`.

    Parameters
    ----------
    ipc_enabled : bool
        Share the memory with other processes.
    max_size : int
        The maximum size of the pool in bytes, rounded by the driver; 0 for what the system allows.
    """

    ipc_enabled: bool = False
    max_size: int = 0


@naming_options
@dataclass(slots=True)
class PinnedMemoryResourceOptions:
    """How to make the pool of a :class:`PinnedMemoryResource`.

    Parameters
    ----------
    ipc_enabled : bool
        Share the memory with other processes.
    max_size : int
        The maximum size of the pool in bytes, rounded by the driver; 0 for what the system allows.
    numa_id : int, optional
        NUMA node of the host to take the memory from; None leaves that to the system.
    """

    ipc_enabled: bool = False
    max_size: int = 0
    numa_id: int | None = None


@naming_options
@dataclass(slots=True)
class ManagedMemoryResourceOptions:
    """How to make the pool of a :class:`ManagedMemoryResource`.

    The two are checked when the resource is made.

    Parameters
    ----------
    preferred_location : int, optional
        Ordinal of a device or number of a NUMA node, as the type says. Without a type: a device, or -1 for the host.
    preferred_location_type : ManagedMemoryLocationType or str, optional
        ``"device"``; ``"host"``, which takes no number; or ``"host_numa"``, by default the node of the current device.
    """

    preferred_location: int | None = None
    preferred_location_type: ManagedMemoryLocationType | str | None = None


@naming_options
@dataclass(slots=True)
class VirtualMemoryResourceOptions:
    """The memory that a :class:`VirtualMemoryResource` makes. Strings are checked when memory is made.

    Parameters
    ----------
    allocation_type : VirtualMemoryAllocationType or str
        ``"pinned"``, or ``"managed"`` where the driver has that (CUDA 13).
    location_type : VirtualMemoryLocationType or str
        ``"device"``; ``"host"``; ``"host_numa"``, the NUMA node nearest to the device; or ``"host_numa_current"``, that
        of the calling thread.
    handle_type : VirtualMemoryHandleType or str, optional
        How the memory can be exported to other processes: ``"posix_fd"``, ``"win32_kmt"``, ``"fabric"``, or None.
        Memory on ``"host"`` cannot.
    granularity : VirtualMemoryGranularityType or str
        Sizes are rounded up to the ``"recommended"`` or the ``"minimum"`` one.
    gpu_direct_rdma : bool
        Other hardware will access the memory directly.
    addr_hint : int
        Address to prefer, 0 for none.
    addr_align : int, optional
        Alignment of the address in bytes, a power of two; None or 0 for the granularity.
    peers : iterable of int or Device
        Other devices that get access, of the kind `peer_access`.
    self_access, peer_access : VirtualMemoryAccessType or str, optional
        ``"rw"``, ``"r"``, or None for no access. `self_access` is that of the location itself.
    """

    allocation_type: VirtualMemoryAllocationType | str = "pinned"
    location_type: VirtualMemoryLocationType | str = "device"
    handle_type: VirtualMemoryHandleType | str | None = "posix_fd"
    granularity: VirtualMemoryGranularityType | str = "recommended"
    gpu_direct_rdma: bool = False
    addr_hint: int = 0
    addr_align: int | None = None
    peers: Iterable[int | Device] = ()
    self_access: VirtualMemoryAccessType | str | None = "rw"
    peer_access: VirtualMemoryAccessType | str | None = "rw"

    def __post_init__(self) -> None:
        from cupola.typing import (
            VirtualMemoryAccessType,
            VirtualMemoryAllocationType,
            VirtualMemoryGranularityType,
            VirtualMemoryHandleType,
            VirtualMemoryLocationType,
        )

        self.peers = tuple(self.peers)
        for name, kind in (
            ("allocation_type", VirtualMemoryAllocationType),
            ("location_type", VirtualMemoryLocationType),
            ("handle_type", VirtualMemoryHandleType),
            ("granularity", VirtualMemoryGranularityType),
            ("self_access", VirtualMemoryAccessType),
            ("peer_access", VirtualMemoryAccessType),
        ):
            with suppress(ValueError):  # None, or a spelling that is refused when memory is made
                setattr(self, name, kind(getattr(self, name)))
