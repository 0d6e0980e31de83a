"""Results that a worker of Dask keeps: on the device up to a limit, then in the memory of the host, then on disk.

The least recently used goes first. What a task needs comes back. Dask stores the results of tasks in a mapping, and
this is one. Results may be arrays of the device, or tuples, lists and dicts with such arrays in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import numpy
import zict
from distributed.spill import SpillBuffer

import cupola.numpy as device_numpy
from cupola.numpy import ndarray


class _OnHost:
    """The elements of an array that was moved to the host."""

    def __init__(self, elements: numpy.ndarray) -> None:
        self.elements = elements

    def __sizeof__(self) -> int:
        return int(self.elements.nbytes)


def _arrays(value: Any) -> Iterator[ndarray]:
    if isinstance(value, ndarray):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _arrays(inner)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from _arrays(inner)


def _replaced(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """A value with each object of a class in it replaced."""
    if isinstance(value, kind):
        return change(value)
    if type(value) is dict:
        return {key: _replaced(inner, kind, change) for key, inner in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_replaced(inner, kind, change) for inner in value)
    return value


class SpillToHost(MutableMapping[Any, Any]):
    """The mapping ``data`` of a worker.

    Parameters
    ----------
    worker_local_directory : str
        Where files go when the host's share is full.
    device_limit : int
        Bytes of results on the device.
    host_limit : int
        Bytes of results in the memory of the host.
    """

    def __init__(self, worker_local_directory: str, device_limit: int, host_limit: int) -> None:
        self.host = SpillBuffer(worker_local_directory, host_limit)
        self.device: zict.LRU[Any, Any] = zict.LRU(
            device_limit, {}, weight=lambda key, value: sum(x.nbytes for x in _arrays(value)), on_evict=self._move
        )
        self.moved = 0  # how many results went to the host

    @property
    def fast(self) -> Any:
        """The results in the memory of the host: Dask's worker asks for them when its process becomes too large."""
        return self.host.fast

    def evict(self) -> int:
        """Write the result of the host that was not used for the longest time to disk; its bytes, or -1 if it stays."""
        return self.host.evict()

    def _move(self, key: Any, value: Any) -> None:
        self.host[key] = _replaced(value, ndarray, lambda x: _OnHost(x.to_numpy()))
        self.moved += 1

    def __setitem__(self, key: Any, value: Any) -> None:
        self.pop(key, None)
        if next(_arrays(value), None) is None:
            self.host[key] = value
            return
        for x in _arrays(value):
            x._compute_now()  # else it would keep the arrays that it is computed from
        self.device[key] = value

    def __getitem__(self, key: Any) -> Any:
        if key in self.device:
            return self.device[key]
        value = self.host[key]
        found = _replaced(value, _OnHost, lambda moved: device_numpy.asarray(moved.elements))
        if found is not value and next(_arrays(found), None) is not None:
            del self.host[key]
            self.device[key] = found
        return found

    def __delitem__(self, key: Any) -> None:
        if key in self.device:
            del self.device[key]
        else:
            del self.host[key]

    def __contains__(self, key: object) -> bool:
        return key in self.device or key in self.host

    def __iter__(self) -> Iterator[Any]:
        yield from self.device
        yield from self.host

    def __len__(self) -> int:
        return len(self.device) + len(self.host)
