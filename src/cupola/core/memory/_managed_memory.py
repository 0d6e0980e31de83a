"""Managed memory: one address on all processors, and pages that move between them."""

from __future__ import annotations

import warnings

from cupola.core.base._errors import CUDAError
from cupola.core.base._options import as_options
from cupola.core.device._device import Device
from cupola.core.memory import _migration
from cupola.core.memory._accessed_by import AccessedBySetProxy
from cupola.core.memory._buffer import Buffer, wrap_handle
from cupola.core.memory._pool import (
    ALLOCATION_MANAGED,
    LOCATION_DEVICE,
    LOCATION_HOST,
    LOCATION_HOST_NUMA,
    LOCATION_NONE,
    PoolMemoryResource,
    require_cuda_13,
)

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self, SupportsInt

    from cupola.core.device._memory_resource import MemoryResource
    from cupola.core.device._stream import Stream
    from cupola.core.memory._host import Host
    from cupola.core.memory._options import ManagedMemoryResourceOptions
    from cupola.graph import GraphBuilder
    from cupola.typing import ManagedMemoryLocationType


class ManagedBuffer(Buffer):
    """A piece of managed memory, which the host and all devices use at one address while its pages move.

    Buffers of a :class:`ManagedMemoryResource` are of this class; :meth:`from_handle` wraps other managed memory.

    Advice (:attr:`read_mostly`, :attr:`preferred_location`, :attr:`accessed_by`) and discarding are for managed memory
    from outside of pools, such as that of ``cuMemAllocManaged``: drivers refuse advice for the memory of a pool with
    ``CUDA_ERROR_NOT_SUPPORTED``.

    Notes
    -----
    Threads may share it, as any Buffer.

    Examples
    --------
    >>> buffer = ManagedMemoryResource({}).allocate(4000, stream=stream)
    >>> buffer.prefetch(dev, stream=stream)
    """

    @classmethod
    def from_handle(
        cls,
        ptr: SupportsInt,
        size: int,
        mr: MemoryResource | None = None,
        owner: object | None = None,
        *,
        stream: Stream | GraphBuilder | None = None,
    ) -> Self:
        """Wrap managed memory that exists already. The first operation checks that it is managed.

        Parameters
        ----------
        ptr, size, mr, owner, stream
            As for :meth:`Buffer.from_handle`.

        Returns
        -------
        ManagedBuffer
        """
        return wrap_handle(cls, ptr, size, mr, owner, stream)

    # --- advice ---------------------------------------------------------------------------------------

    @property
    def read_mostly(self) -> bool:
        """bool: advice that the memory is read far more often than written, so each reader gets copies of pages.

        Assign to give or withdraw the advice (``cuMemAdvise``).
        """
        return _migration.is_read_mostly(self)

    @read_mostly.setter
    def read_mostly(self, value: bool) -> None:
        _migration.set_read_mostly(self, bool(value))

    @property
    def preferred_location(self) -> Device | Host | None:
        """Device or Host or None: where pages should stay even when others access them.

        Assign a place, or None for no preference (``cuMemAdvise``).
        """
        return _migration.get_preferred_location(self)

    @preferred_location.setter
    def preferred_location(self, place: Device | Host | None) -> None:
        _migration.set_preferred_location(self, place)

    @property
    def accessed_by(self) -> AccessedBySetProxy:
        """AccessedBySetProxy: devices, and ``Host()``, for which the memory stays mapped; assign to replace them."""
        if self.is_closed:
            raise RuntimeError(f"{type(self).__name__} has been closed")
        return AccessedBySetProxy(self)

    @accessed_by.setter
    def accessed_by(self, places: Iterable[Device | Host]) -> None:
        self.accessed_by._replace(places)

    # --- moving ---------------------------------------------------------------------------------------

    def prefetch(self, location: Device | Host, *, stream: Stream | GraphBuilder) -> None:
        """Move the pages to a place, ahead of their use there (``cuMemPrefetchAsync``).

        Parameters
        ----------
        location : Device or Host
            Where to.
        stream : Stream or GraphBuilder
            Orders the move.

        Raises
        ------
        TypeError
            When `location` is something else, or a NUMA node and the driver is older than CUDA 13.
        ValueError
            When `location` is None, or the memory is not managed.
        """
        _migration.prefetch(self, location, stream)

    def discard(self, *, stream: Stream | GraphBuilder) -> None:
        """Discard the contents of the memory (``cuMemDiscardBatchAsync``, CUDA 13).

        The contents are undefined until they are written again. Until then no page needs to migrate.

        Parameters
        ----------
        stream : Stream or GraphBuilder
            The work after which this happens.

        Raises
        ------
        NotImplementedError
            When the driver is older than CUDA 13.
        ValueError
            When the memory is not managed.
        """
        _migration.discard(self, stream)

    def discard_prefetch(self, location: Device | Host, *, stream: Stream | GraphBuilder) -> None:
        """Discard the contents, and place the pages (``cuMemDiscardAndPrefetchBatchAsync``, CUDA 13).

        Parameters
        ----------
        location : Device or Host
            Where to.
        stream : Stream or GraphBuilder
            The work after which this happens.

        Raises
        ------
        NotImplementedError
            When the driver is older than CUDA 13.
        TypeError, ValueError
            As for :meth:`prefetch`.
        """
        _migration.discard_prefetch(self, location, stream)


class ManagedMemoryResource(PoolMemoryResource):
    """Managed memory from a stream-ordered pool (CUDA 13): all processors use it, and its pages move between them.

    Parameters
    ----------
    options : ManagedMemoryResourceOptions or dict, optional
        Make a new pool with these options. Without them the current pool of managed memory is used
        (``cuMemGetMemPool``).

    Raises
    ------
    RuntimeError
        When the driver is older than CUDA 13, or there is no current pool of managed memory.
    ValueError
        When the options contradict each other.
    CUDAError
        When the driver refuses to make the pool (``cuMemPoolCreate``).

    Notes
    -----
    Threads may share it, and any of them may close it.
    """

    __slots__ = ("_preferred",)

    def __init__(self, options: ManagedMemoryResourceOptions | dict[str, Any] | None = None) -> None:
        self._preferred: tuple[ManagedMemoryLocationType, int | None] | None = None
        self._buffer_class = ManagedBuffer
        if options is None:
            _warn_of_slow_migration()
            self._use_managed_pool()
            return
        from cupola.core.memory._options import ManagedMemoryResourceOptions
        from cupola.typing import ManagedMemoryLocationType

        wanted = as_options(ManagedMemoryResourceOptions, options)
        name, number = _place(wanted.preferred_location_type, wanted.preferred_location)
        if name is not None:
            self._preferred = ManagedMemoryLocationType(name), number
        require_cuda_13(type(self).__name__, "use cuMemAllocManaged and ManagedBuffer.from_handle")
        _warn_of_slow_migration()
        location = {None: LOCATION_NONE, "device": LOCATION_DEVICE, "host": LOCATION_HOST}.get(name, LOCATION_HOST_NUMA)
        self._make_pool(location, number or 0, 0, ALLOCATION_MANAGED)

    def _use_managed_pool(self) -> None:
        require_cuda_13(type(self).__name__, "use cuMemAllocManaged and ManagedBuffer.from_handle")
        try:
            self._use_current_pool(LOCATION_NONE, ALLOCATION_MANAGED)
        except CUDAError as error:
            if Device(0).properties.concurrent_managed_access:
                raise
            raise RuntimeError(
                "there is no current pool of managed memory on this system; "
                "pass ManagedMemoryResourceOptions() for a pool of its own"
            ) from error

    @property
    def preferred_location(self) -> tuple[ManagedMemoryLocationType, int | None] | None:
        """tuple of (ManagedMemoryLocationType, int or None), or None: where allocations prefer to be."""
        return self._preferred

    @property
    def is_managed(self) -> bool:
        """bool: True."""
        return True

    def _about(self) -> str:
        if self._preferred is None:
            return "preferred_location=None"
        kind, number = self._preferred
        return f"preferred_location={kind}{'' if number is None else f':{number}'}"


def _place(kind: str | None, number: Device | int | None) -> tuple[str | None, int | None]:
    """The place that options name, as the name of its type and its number."""
    if isinstance(number, Device):
        number = number.device_id
    if number is not None and not hasattr(type(number), "__index__"):
        raise TypeError(
            f"preferred_location must be a Device, a number or None, got {number!r}; "
            "preferred_location_type takes 'host'"
        )
    if kind is None:
        if number is None:
            return None, None
        if number < -1:
            raise ValueError(
                f"preferred_location must be the number of a device, -1 for the host or None, got {number}"
            )
        return ("host", None) if number == -1 else ("device", number)
    if kind == "device":
        if number is None or number < 0:
            raise ValueError(f"preferred_location must be the number of a device, got {number}")
        return "device", number
    if kind == "host":
        if number is not None:
            raise ValueError(f"preferred_location must be None for the host, got {number}; 'host_numa' takes a node")
        return "host", None
    if kind == "host_numa":
        if number is None:
            number = Device().properties.host_numa_id
            if number < 0:
                raise RuntimeError(
                    "the NUMA node of the current device is not known; pass its number as preferred_location"
                )
        if number < 0:
            raise ValueError(f"preferred_location must be the number of a NUMA node, got {number}")
        return "host_numa", number
    raise ValueError(f"preferred_location_type must be 'device', 'host', 'host_numa' or None, got {kind!r}")


_warned = False


def _warn_of_slow_migration() -> None:
    """Warn once in the process when host and devices cannot use managed memory at the same time."""
    global _warned
    if _warned or Device(0).properties.concurrent_managed_access:
        return
    _warned = True
    warnings.warn(
        "on this system the host must not touch managed memory while a device works: "
        "device 0 has no concurrent managed access",
        UserWarning,
        stacklevel=3,
    )
