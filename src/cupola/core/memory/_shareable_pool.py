"""Pools that processes share: what device and pinned memory resources add to other pools."""

from __future__ import annotations

import os
import sys
import warnings
from operator import index

from cupola.core.memory._pool import PoolMemoryResource

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any, Self
    from uuid import UUID

    from cupola.core.memory._ipc import IPCAllocationHandle


class ShareablePoolResource(PoolMemoryResource):
    """A memory resource whose pool can be shared between processes. See its subclasses.

    A resource made with ``ipc_enabled=True`` allocates memory that other processes can import; one that came from
    another process (:attr:`is_mapped`) imports memory and allocates none.
    """

    # So that an attribute with a misspelled name is an error.
    __slots__ = ("_allocation_handle", "_shared", "_uuid")
    _uuid: UUID | None
    _allocation_handle: IPCAllocationHandle | None
    _shared: bool

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        self = super().__new__(cls)
        self._uuid, self._allocation_handle, self._shared = None, None, False
        return self

    def _share(self) -> None:
        """Give the new pool a name, under which this process finds it again."""
        from uuid import uuid4

        from cupola.core.memory import _ipc

        self._shared, self._uuid = True, uuid4()
        _ipc.registry[self._uuid] = self

    @classmethod
    def _import(cls, alloc_handle: int | IPCAllocationHandle, device_id: int) -> Self:
        from cupola.core.memory import _ipc
        from cupola.core.memory._ipc_memory import import_pool

        if isinstance(alloc_handle, _ipc.IPCAllocationHandle):
            if alloc_handle.is_closed:
                raise RuntimeError("the IPCAllocationHandle has been closed")
            known = _ipc.registry.get(alloc_handle.uuid) if alloc_handle.uuid is not None else None
            if known is not None:
                return cls._checked(known)
            handle = alloc_handle
        elif hasattr(type(alloc_handle), "__index__"):
            handle = _ipc.allocation_handle(os.dup(index(alloc_handle)), None)
        else:
            raise TypeError(
                f"alloc_handle must be an IPCAllocationHandle or a file descriptor, not {type(alloc_handle).__name__}"
            )
        resource = cls.__new__(cls)
        import_pool(resource, int(handle), device_id)
        resource._shared = True
        resource._allocation_handle = handle
        return resource if handle.uuid is None else resource.register(handle.uuid)

    @classmethod
    def _checked(cls, resource: ShareablePoolResource) -> Self:
        if not isinstance(resource, cls):
            raise TypeError(f"{resource.uuid} is the name of a {type(resource).__name__}, not of a {cls.__name__}")
        return resource

    def _import_arguments(self) -> tuple[Any, ...]:
        """The argument of ``from_allocation_handle`` in the other process."""
        return (self.allocation_handle,)

    @property
    def allocation_handle(self) -> IPCAllocationHandle:
        """IPCAllocationHandle: with it another process imports the pool (``cuMemPoolExportToShareableHandle``).

        Owned by the resource, and the same object each time.

        Raises
        ------
        RuntimeError
            The resource is closed, or was not made with ``ipc_enabled=True``.
        """
        if self.is_closed:
            raise RuntimeError(f"{type(self).__name__} has been closed")
        if not self._shared:
            raise RuntimeError(
                f"the {type(self).__name__} is not shared between processes: make it with options "
                "{'ipc_enabled': True}"
            )
        if self._allocation_handle is None:
            from cupola.core.memory import _ipc
            from cupola.core.memory._ipc_memory import export_pool

            self._allocation_handle = _ipc.allocation_handle(export_pool(self), self._uuid)
        return self._allocation_handle

    def get_allocation_handle(self) -> IPCAllocationHandle:
        """Older spelling of :attr:`allocation_handle`.

        Returns
        -------
        IPCAllocationHandle
        """
        warnings.warn("get_allocation_handle() is now the property allocation_handle", DeprecationWarning, stacklevel=2)
        return self.allocation_handle

    def register(self, uuid: UUID) -> Self:
        """Let :meth:`from_registry`, and pickles of the pool, find the resource in this process by a name.

        The registry does not keep the resource alive.

        Parameters
        ----------
        uuid : uuid.UUID
            Name of the pool; becomes :attr:`uuid` when the resource has none.

        Returns
        -------
        ShareablePoolResource
            The resource that has the name: this one, or another one that had it before.

        Raises
        ------
        TypeError
            `uuid` is not a UUID, or the name of a resource of another class.
        ValueError
            The resource has another name.
        RuntimeError
            The resource is closed, or not shared between processes.
        """
        from uuid import UUID

        from cupola.core.memory import _ipc

        if not isinstance(uuid, UUID):
            raise TypeError(f"uuid must be a uuid.UUID, not {type(uuid).__name__}")
        if self.is_closed:
            raise RuntimeError(f"{type(self).__name__} has been closed")
        known = _ipc.registry.get(uuid)
        if known is not None:
            return type(self)._checked(known)
        if not self._shared:
            raise RuntimeError(f"a {type(self).__name__} without ipc_enabled is not shared between processes")
        if self._uuid is not None and self._uuid != uuid:
            raise ValueError(f"the resource is registered as {self._uuid} already")
        self._uuid = uuid
        _ipc.registry[uuid] = self
        return self

    @staticmethod
    def from_registry(uuid: UUID) -> ShareablePoolResource:
        """Find the resource of a pool in this process by the name of the pool.

        Parameters
        ----------
        uuid : uuid.UUID
            The :attr:`uuid` of the resource.

        Returns
        -------
        DeviceMemoryResource or PinnedMemoryResource

        Raises
        ------
        RuntimeError
            There is none; import the pool first, and keep its resource alive.
        """
        from cupola.core.memory import _ipc

        found = _ipc.registry.get(uuid)
        if found is None:
            raise RuntimeError(
                f"Memory resource {uuid} was not found: pass the resource to this process through multiprocessing, or "
                "import it with from_allocation_handle(...).register(uuid), and keep it alive"
            )
        return found

    def close(self) -> None:
        """Drop the pool. A pool made by this resource is destroyed when its last allocation is freed.

        Other processes that imported it keep it. Close buffers that were imported from it first.
        """
        super().close()
        handle, self._allocation_handle = self._allocation_handle, None
        if handle is not None:
            handle.close()
        if self._uuid is not None:
            from cupola.core.memory import _ipc

            if _ipc.registry.get(self._uuid) is self:
                _ipc.registry.pop(self._uuid, None)
        self._uuid, self._shared = None, False

    @property
    def is_ipc_enabled(self) -> bool:
        """bool: whether the memory can be shared with other processes; False once closed."""
        return self._shared

    @property
    def uuid(self) -> UUID | None:
        """uuid.UUID or None: name of a pool that is shared between processes."""
        return self._uuid

    def __repr__(self) -> str:
        shared = " mapped" if self.is_mapped else " ipc" if self._shared else ""
        return super().__repr__().removesuffix(">") + shared + ">"

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._shared or self._uuid is None:
            return super().__reduce__()  # type: ignore[return-value]
        return type(self).from_registry, (self._uuid,)


def require_ipc() -> None:
    """RuntimeError if the system cannot share memory in this way."""
    if sys.platform != "linux":
        raise RuntimeError(f"IPC is not available on {sys.platform}")
