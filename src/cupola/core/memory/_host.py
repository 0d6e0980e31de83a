"""The host as a place for managed memory, beside the devices."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

_instances: dict[tuple[int | None, bool], Host] = {}
_making = allocate_lock()


class Host:
    """The memory of the host, or of one of its NUMA nodes, as a place for managed memory.

    There is one object for each combination of arguments: ``Host(1) is Host(numa_id=1)``. ``Host()`` is any memory of
    the host.

    Parameters
    ----------
    numa_id : int, optional
        A NUMA node (CUDA 13).
    is_numa_current : bool
        The node nearest to the calling thread, whichever that is at the time of the call (CUDA 13).

    Raises
    ------
    ValueError
        When `numa_id` is not an int or negative, or both are given.
    """

    __slots__ = ("__weakref__", "_is_numa_current", "_numa_id")

    _numa_id: int | None
    _is_numa_current: bool

    def __new__(cls, numa_id: int | None = None, *, is_numa_current: bool = False) -> Host:
        if numa_id is not None and (isinstance(numa_id, bool) or not isinstance(numa_id, int) or numa_id < 0):
            raise ValueError(f"numa_id must be the number of a NUMA node or None, got {numa_id!r}")
        if is_numa_current and numa_id is not None:
            raise ValueError("numa_id and is_numa_current cannot be given together")
        key = (numa_id, bool(is_numa_current))
        with _making:
            host = _instances.get(key)
            if host is None:
                host = object.__new__(cls)
                object.__setattr__(host, "_numa_id", numa_id)
                object.__setattr__(host, "_is_numa_current", key[1])
                _instances[key] = host
        return host

    @classmethod
    def numa_current(cls) -> Host:
        """The NUMA node nearest to the calling thread, whichever that is at the time of the call.

        Returns
        -------
        Host
        """
        return cls(is_numa_current=True)

    @property
    def numa_id(self) -> int | None:
        """int or None: the NUMA node."""
        return self._numa_id

    @property
    def is_numa_current(self) -> bool:
        """bool: whether it is the node nearest to the calling thread."""
        return self._is_numa_current

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Host objects are shared: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._numa_id, self._is_numa_current)

    def __repr__(self) -> str:
        if self._is_numa_current:
            return "Host.numa_current()"
        return "Host()" if self._numa_id is None else f"Host(numa_id={self._numa_id})"


def _restore(numa_id: int | None, is_numa_current: bool) -> Host:
    return Host(numa_id, is_numa_current=is_numa_current)
