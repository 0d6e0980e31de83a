"""The descriptors with which processes share pools and buffers, and how `multiprocessing` sends them.

Imported when something is first shared: `multiprocessing.reduction` is slow to import. A pool travels as a file
descriptor, which only multiprocessing can send; a buffer is described by 64 bytes that any pickle carries. Importing
uses data that a peer sent: share only with processes that you trust.
"""

from __future__ import annotations

import os
from _thread import RLock
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import TYPE_CHECKING, Any, NoReturn, Self
from weakref import WeakValueDictionary

from cupola._above import above
from cupola.core.device._event import Event, import_event
from cupola.core.device._event_ipc import let_events_pass, warn_of_fork
from cupola.core.memory._buffer import Buffer

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from cupola.core.memory._shareable_pool import ShareablePoolResource

# The pools that this process made or imported, by uuid; the table keeps none of them alive.
registry: WeakValueDictionary[UUID, ShareablePoolResource] = WeakValueDictionary()

_closing = RLock()  # a descriptor is closed once


class IPCBufferDescriptor:
    """Tells another process where in a shared pool a buffer is (``CUmemPoolPtrExportData``).

    From :attr:`Buffer.ipc_descriptor`; :meth:`Buffer.from_ipc_descriptor` takes it. Any pickle carries it.
    """

    __slots__ = ("_payload", "_size")
    _payload: bytes
    _size: int

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("IPCBufferDescriptor objects cannot be instantiated directly; use Buffer.ipc_descriptor")

    @property
    def size(self) -> int:
        """int: bytes of the buffer."""
        return self._size

    def __reduce__(self) -> tuple[Any, ...]:
        return buffer_descriptor, (self._payload, self._size)


class IPCAllocationHandle:
    """A file descriptor that stands for a shared pool, closed with this object.

    From the ``allocation_handle`` of a memory resource; its ``from_allocation_handle`` takes it in another process.
    Processes, queues and pipes of multiprocessing send it.
    """

    __slots__ = ("_file", "_uuid")
    _file: int
    _uuid: UUID | None

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(
            "IPCAllocationHandle objects cannot be instantiated directly; use a memory resource's allocation_handle"
        )

    @property
    def handle(self) -> int:
        """int: the file descriptor, -1 once closed."""
        return self._file

    @property
    def uuid(self) -> UUID | None:
        """uuid.UUID or None: name of the pool."""
        return self._uuid

    @property
    def is_closed(self) -> bool:
        """bool: whether the descriptor was closed."""
        return self._file < 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; idempotent. The pool and processes that imported it are not affected."""
        with _closing:
            file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __int__(self) -> int:
        if self._file < 0:
            raise ValueError("the IPCAllocationHandle has been closed")
        return self._file

    # When the interpreter ends, the modules may be gone before the last handles.
    def __del__(self, _close: Callable[[int], None] = os.close) -> None:
        file, self._file = getattr(self, "_file", -1), -1
        if file >= 0:
            _close(file)

    def __repr__(self) -> str:
        return f"<IPCAllocationHandle handle={self._file} uuid={self._uuid}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an IPCAllocationHandle owns a file descriptor: pass it to another process through multiprocessing (the "
            "arguments of a Process, a Queue or a Pipe), which plain pickle cannot do"
        )


def buffer_descriptor(payload: bytes, size: int) -> IPCBufferDescriptor:
    """Make a descriptor of what :attr:`Buffer.ipc_descriptor` says."""
    made = IPCBufferDescriptor.__new__(IPCBufferDescriptor)
    made._payload, made._size = payload, size
    return made


def allocation_handle(file: int, uuid: UUID | None) -> IPCAllocationHandle:
    """Take over a file descriptor.

    Raises
    ------
    ValueError
        It is negative.
    """
    if file < 0:
        raise ValueError(f"a file descriptor must not be negative, got {file}")
    made = IPCAllocationHandle.__new__(IPCAllocationHandle)
    made._file, made._uuid = file, uuid
    return made


# ---- multiprocessing ----------------------------------------------------------------------------------


def _rebuild_handle(file: Any, uuid: UUID | None) -> IPCAllocationHandle:
    return allocation_handle(file.detach(), uuid)


def _reduce_handle(handle: IPCAllocationHandle) -> tuple[Any, ...]:
    warn_of_fork()
    return _rebuild_handle, (DupFd(int(handle)), handle.uuid)


def _rebuild_pool(kind: type[ShareablePoolResource], arguments: tuple[Any, ...]) -> ShareablePoolResource:
    resource: ShareablePoolResource = kind.from_allocation_handle(*arguments)  # type: ignore[attr-defined]
    return resource


def _reduce_pool(resource: ShareablePoolResource) -> tuple[Any, ...]:
    if not resource.is_ipc_enabled:
        return resource.__reduce__()  # raises
    warn_of_fork()
    return _rebuild_pool, (type(resource), resource._import_arguments())


def _reduce_buffer(buffer: Buffer) -> tuple[Any, ...]:
    reduced: tuple[Any, ...] = above("reduce_sent")(buffer)
    return reduced


def _register() -> None:
    let_events_pass(Event, import_event)
    ForkingPickler.register(IPCAllocationHandle, _reduce_handle)
    ForkingPickler.register(Buffer, _reduce_buffer)
    for kind in (above("DeviceMemoryResource"), above("PinnedMemoryResource")):
        ForkingPickler.register(kind, _reduce_pool)


_register()
