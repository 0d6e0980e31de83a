"""Memory whose addresses, physical memory and access are managed apart, so that it can grow in place."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from operator import index

from cupola.core.base._options import as_options
from cupola.core.device._device import Device
from cupola.core.device._memory_resource import MemoryResource
from cupola.core.memory import _mapping
from cupola.core.memory._buffer import Buffer
from cupola.core.memory._options import VirtualMemoryResourceOptions

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from cupola.core.device._stream import Stream
    from cupola.graph import GraphBuilder

# The meaning of the options' strings.
_ALLOCATIONS = {"pinned": _mapping.PINNED, "managed": _mapping.MANAGED}
_LOCATIONS = {
    "device": _mapping.DEVICE,
    "host": _mapping.HOST,
    "host_numa": _mapping.HOST_NUMA,
    "host_numa_current": _mapping.HOST_NUMA,
}
_HANDLES = {
    None: _mapping.NO_HANDLE,
    "posix_fd": _mapping.POSIX_FD,
    "win32_kmt": _mapping.WIN32_KMT,
    "fabric": _mapping.FABRIC,
}
_GRANULARITIES = {"minimum": _mapping.MINIMUM, "recommended": _mapping.RECOMMENDED}
_ACCESS = {"rw": _mapping.READ_WRITE, "r": _mapping.READ}


class _Range:
    """The addresses of a buffer: the memory mapped there, in order, and the reservations that they are from."""

    __slots__ = ("pieces", "reservations")

    def __init__(self) -> None:
        self.pieces: list[tuple[int, int]] = []  # (address, bytes)
        self.reservations: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        return sum(size for _, size in self.pieces)

    def give_back(self) -> None:
        while self.pieces:
            _mapping.unmap(*self.pieces.pop())
        while self.reservations:
            _mapping.free_addresses(*self.reservations.pop())


class VirtualMemoryResource(MemoryResource):
    """Memory made of addresses and physical memory, so that it can grow in place (``cuMemCreate``, ``cuMemMap``).

    Parameters
    ----------
    device_id : Device or int
        The device of the memory; for memory of the host, the device whose NUMA node is meant by ``"host_numa"``.
    config : VirtualMemoryResourceOptions or dict, optional
        The memory to make, and which devices may access it. Strings are checked when memory is made.

    Attributes
    ----------
    device : Device or None
        The device of the memory, None for memory of the host.
    config : VirtualMemoryResourceOptions
        The options.

    Raises
    ------
    RuntimeError
        When the device has no virtual memory management, or cannot do GPUDirect RDMA with it though that is asked for.
    ValueError
        When there is no such device.

    Notes
    -----
    Threads may share it, except while one of them changes an allocation (:meth:`modify_allocation`).

    Examples
    --------
    >>> resource = VirtualMemoryResource(dev)
    >>> buffer = resource.allocate(1 << 20, stream=stream)
    >>> buffer = resource.modify_allocation(buffer, 2 * buffer.size)
    """

    def __init__(
        self, device_id: Device | int, config: VirtualMemoryResourceOptions | dict[str, Any] | None = None
    ) -> None:
        device = Device(device_id)
        self.config = as_options(VirtualMemoryResourceOptions, config)
        self._ordinal = device.device_id
        self._ranges: dict[int, _Range] = {}
        self.device = None if self._is_on_host else device
        if self.device is None:
            return
        if not device.properties.virtual_memory_management_supported:
            raise RuntimeError(f"{device} does not support virtual memory management; use DeviceMemoryResource")
        if self.config.gpu_direct_rdma and not device.properties.gpu_direct_rdma_with_cuda_vmm_supported:
            raise RuntimeError(f"{device} does not support GPUDirect RDMA for virtual memory")

    # --- making memory --------------------------------------------------------------------------------

    def allocate(
        self,
        size: int,
        older: Stream | GraphBuilder | None = None,
        *,
        stream: Stream | GraphBuilder | None = None,
    ) -> Buffer:
        """Make memory, map it, and give access to it.

        Parameters
        ----------
        size : int
            Bytes; rounded up to the granularity, which the size of the buffer then is.
        stream : Stream or GraphBuilder, optional
            Not needed; checked only.

        Returns
        -------
        Buffer
            On a device, its release waits for the default stream of the device unless it is given another stream.

        Raises
        ------
        ValueError
            When an option has an unknown spelling.
        CUDAError
            When the driver refuses one of the steps; those before are undone.
        """
        _mapping.check_stream(_given(older, stream, "allocate(size"))
        kind, step = self._kind()
        size = index(size)
        if size < 0:
            raise OverflowError(f"size must not be negative: {size}")
        made = _Range()
        wanted = _round_up(size, step)
        access = self._access()
        with ExitStack() as undo:
            undo.callback(made.give_back)
            base = _mapping.reserve(wanted, self.config.addr_align or step, self.config.addr_hint)
            made.reservations.append((base, wanted))
            _append(made, base, wanted, kind, access)
            buffer = _mapping.make_buffer(base, wanted, self, -1 if self.device is None else self._ordinal)
            self._ranges[base] = made
            undo.pop_all()
        return buffer

    def deallocate(
        self,
        ptr: int,
        size: int,
        older: Stream | GraphBuilder | None = None,
        *,
        stream: Stream | GraphBuilder | None = None,
    ) -> None:
        """Wait for `stream`, if given and the memory is a device's, then unmap the memory and give it back.

        Parameters
        ----------
        ptr : int
            Address.
        size : int
            Bytes.
        stream : Stream or GraphBuilder, optional
            The stream that may still use the memory.

        Raises
        ------
        ValueError
            When this resource has no memory at the address.
        """
        queue = _given(older, stream, "deallocate(ptr, size")
        if queue is not None and self.device is not None:
            _mapping.wait_for(queue, self._ordinal)
        else:
            _mapping.check_stream(queue)
        found = self._ranges.pop(int(ptr), None)
        if found is None:
            raise ValueError(f"the resource has no memory at {int(ptr):#x}")
        found.give_back()

    def modify_allocation(
        self, buf: Buffer, new_size: int, config: VirtualMemoryResourceOptions | dict[str, Any] | None = None
    ) -> Buffer:
        """Give a buffer more memory, and apply the access options to all of it.

        This does not wait, so no work may use the buffer meanwhile. Use the returned buffer: if the addresses behind
        the old one are taken, the memory with its contents moves to other addresses, and the old buffer is closed.

        Parameters
        ----------
        buf : Buffer
            From this resource.
        new_size : int
            Bytes. Buffers do not shrink.
        config : VirtualMemoryResourceOptions or dict, optional
            Replaces the options of this resource, now and for good.

        Returns
        -------
        Buffer
            `buf` or a new buffer.

        Raises
        ------
        TypeError
            When `buf` is no Buffer.
        RuntimeError
            When it is closed.
        ValueError
            When it is not from this resource, or an option has an unknown spelling.
        CUDAError
            When the driver refuses one of the steps; the buffer is then as before.
        """
        if not isinstance(buf, Buffer):
            raise TypeError(f"buf must be a Buffer, got {type(buf).__name__}")
        if buf.is_closed:
            raise RuntimeError(f"{type(buf).__name__} has been closed")
        if config is not None:
            self.config = as_options(VirtualMemoryResourceOptions, config)
        known = self._ranges.get(buf.handle) if buf.memory_resource is self else None
        if known is None:
            raise ValueError(f"{buf!r} is not memory of this resource")
        kind, step = self._kind()
        access = self._access()
        for piece in known.pieces:
            _mapping.set_access(*piece, access)
        if new_size <= buf.size:
            return buf
        new_size = index(new_size)
        missing = _round_up(new_size, step) - known.size
        if missing <= 0 or self._extend(known, missing, step, kind, access):
            _mapping.resize(buf, new_size)
            return buf
        return self._move(buf, known, missing, step, kind, access)

    def _extend(
        self, known: _Range, missing: int, step: int, kind: _mapping.Kind, access: list[tuple[int, int, int]]
    ) -> bool:
        """Add memory at the addresses behind a range. False, with nothing done, when they are taken."""
        end = known.pieces[-1][0] + known.pieces[-1][1]
        with ExitStack() as undo:
            added = _Range()
            undo.callback(added.give_back)
            base = _mapping.reserve(missing, step, end)
            added.reservations.append((base, missing))
            if base != end:
                return False
            _append(added, base, missing, kind, access)
            undo.pop_all()
        known.pieces += added.pieces
        known.reservations += added.reservations
        return True

    def _move(
        self,
        buf: Buffer,
        known: _Range,
        missing: int,
        step: int,
        kind: _mapping.Kind,
        access: list[tuple[int, int, int]],
    ) -> Buffer:
        """Map the memory of a range, and more, at other addresses."""
        made = _Range()
        with ExitStack() as undo:
            undo.callback(made.give_back)
            size = known.size + missing
            base = _mapping.reserve(size, self.config.addr_align or step, 0)
            made.reservations.append((base, size))
            at = base
            for address, piece in known.pieces:
                handle = _mapping.handle_at(address)
                try:
                    _mapping.map_at(at, piece, handle)
                finally:
                    _mapping.release(handle)
                made.pieces.append((at, piece))
                _mapping.set_access(at, piece, access)
                at += piece
            _append(made, at, missing, kind, access)
            moved = _mapping.make_buffer(base, size, self, -1 if self.device is None else self._ordinal)
            self._ranges[base] = made
            undo.pop_all()
        del self._ranges[buf.handle]
        _mapping.empty(buf)
        known.give_back()
        return moved

    # --- options --------------------------------------------------------------------------------------

    @property
    def _is_on_host(self) -> bool:
        return _known("location_type", self.config.location_type, _LOCATIONS) != _mapping.DEVICE

    def _location(self) -> tuple[int, int]:
        kind = _known("location_type", self.config.location_type, _LOCATIONS)
        if kind == _mapping.DEVICE:
            return kind, self._ordinal
        if kind == _mapping.HOST:
            return kind, 0
        if self.config.location_type == "host_numa_current":
            return kind, _mapping.current_numa_node()
        return kind, max(Device(self._ordinal).properties.host_numa_id, 0)

    def _kind(self) -> tuple[_mapping.Kind, int]:
        """What memory to make, and the granularity of its size."""
        config = self.config
        if config.handle_type == "win32":
            raise NotImplementedError("handle_type 'win32' is not supported; use 'win32_kmt'")
        allocation = _known("allocation_type", config.allocation_type, _ALLOCATIONS)
        handles = _known("handle_type", config.handle_type, _HANDLES)
        location, number = self._location()
        if location == _mapping.HOST:
            handles = _mapping.NO_HANDLE  # such memory cannot be shared (cuMemCreate)
        kind = _mapping.Kind(allocation, location, number, handles, config.gpu_direct_rdma)
        return kind, kind.granularity(_known("granularity", config.granularity, _GRANULARITIES))

    def _access(self) -> list[tuple[int, int, int]]:
        """Who may access the memory: (type of location, its number, flags)."""
        entries = []
        for spec, places in (
            (self.config.self_access, [self._location()]),
            (self.config.peer_access, [(_mapping.DEVICE, int(peer)) for peer in self.config.peers]),
        ):
            if spec is None:
                continue
            if spec not in _ACCESS:
                raise ValueError(f"Unknown access spec: {spec!r}; it must be {_listed(_ACCESS)} or None")
            entries += [(*place, _ACCESS[spec]) for place in places]
        return entries

    # --- properties -----------------------------------------------------------------------------------

    @property
    def is_device_accessible(self) -> bool:
        """bool: whether the memory is a device's."""
        return not self._is_on_host

    @property
    def is_host_accessible(self) -> bool:
        """bool: whether the memory is the host's."""
        return self._is_on_host

    @property
    def device_id(self) -> int:
        """int: ordinal of the device, -1 for memory of the host."""
        return -1 if self._is_on_host else self._ordinal

    def __repr__(self) -> str:
        return f"<VirtualMemoryResource device={self.device}>"


def _append(made: _Range, base: int, size: int, kind: _mapping.Kind, access: list[tuple[int, int, int]]) -> None:
    """Make memory and map it at reserved addresses. The mapping keeps the memory."""
    handle = kind.create(size)
    try:
        _mapping.map_at(base, size, handle)
        made.pieces.append((base, size))
    finally:
        _mapping.release(handle)
    _mapping.set_access(base, size, access)


def _given(older: Any, stream: Any, call: str) -> Any:
    """The stream of a call, which releases before 1.0 took by position."""
    if older is None:
        return stream
    if stream is not None:
        raise TypeError(f"the stream is given twice: write {call}, stream=stream)")
    warnings.warn(f"{call}, stream) is now {call}, stream=stream)", DeprecationWarning, stacklevel=3)
    return older


def _round_up(size: int, step: int) -> int:
    return -(-size // step) * step


def _known(field: str, spelling: Any, table: dict[Any, int]) -> int:
    if spelling not in table:
        raise ValueError(f"Unsupported {field}: {spelling!r}; it must be {_listed(table)}")
    return table[spelling]


def _listed(table: Iterable[object]) -> str:
    return ", ".join("None" if name is None else repr(str(name)) for name in table)
