"""Program caches: compiled code that is kept for later.

Imported when a cache is first used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import RLock
from typing import Any, Self, overload

from cupola.core.program._object_code import ObjectCode
from cupola.core.program._signatures import from_cache, to_cache

Key = bytes | bytearray | str
Value = bytes | bytearray | memoryview | ObjectCode


class ProgramCacheResource(ABC):
    """A cache for results of :meth:`cupola.Program.compile`: a mapping from keys to bytes.

    Keys are bytes, or str as their UTF-8 bytes. Values are bytes, or an :class:`~cupola.ObjectCode`, whose code is
    kept. There is no ``in`` and no iteration: an entry that exists now may be gone a moment later, so use :meth:`get`.

    Subclasses define ``__getitem__``, ``__setitem__``, ``__delitem__``, ``__len__`` and :meth:`clear`; the functions
    `as_key` and `as_value` of this class check and convert their arguments. The result of `as_value` may have data
    behind the code, from which launches know the types of parameters; :meth:`cupola.ObjectCode.from_cubin` finds it.

    Notes
    -----
    Threads may share the caches of this package. A subclass is called on the threads that compile.
    """

    @abstractmethod
    def __getitem__(self, key: Key) -> bytes: ...

    @abstractmethod
    def __setitem__(self, key: Key, value: Value) -> None: ...

    @abstractmethod
    def __delitem__(self, key: Key) -> None: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def clear(self) -> None:
        """Remove everything."""

    @overload
    def get(self, key: Key) -> bytes | None: ...

    @overload
    def get(self, key: Key, default: bytes) -> bytes: ...

    def get(self, key: Key, default: bytes | None = None) -> bytes | None:
        """Look up an entry.

        Parameters
        ----------
        key : bytes, bytearray or str
            Its key.
        default : bytes, optional
            What to return if there is no such entry.

        Returns
        -------
        bytes or None
        """
        try:
            return self[key]
        except KeyError:
            return default

    def update(self, items: Mapping[Key, Value] | Iterable[tuple[Key, Value]], /) -> None:
        """Store several entries, one after the other.

        Parameters
        ----------
        items : mapping or iterable of pairs
            Keys and values.
        """
        pairs: Iterable[Any] = items.items() if isinstance(items, Mapping) else items
        for key, value in pairs:
            self[key] = value

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Release what the cache holds open. Here: nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __contains__(self, key: object) -> bool:
        raise TypeError("a cache may lose an entry at any time: use get() and compare with None")

    def __iter__(self) -> Any:
        raise TypeError("a cache cannot be iterated over")

    @staticmethod
    def as_key(key: Key) -> bytes:
        """Check and convert a key.

        Parameters
        ----------
        key : bytes, bytearray or str
            What was given.

        Returns
        -------
        bytes

        Raises
        ------
        TypeError
            It is something else.
        """
        if isinstance(key, str):
            return key.encode()
        if isinstance(key, bytes | bytearray):
            return bytes(key)
        raise TypeError(f"a key is bytes, bytearray or str, not {type(key).__name__}")

    @staticmethod
    def as_value(value: Value) -> bytes:
        """Check and convert a value.

        Parameters
        ----------
        value : bytes, bytearray, memoryview or ObjectCode
            What was given. The file of an ObjectCode with a path is read.

        Returns
        -------
        bytes

        Raises
        ------
        TypeError
            It is something else.
        FileNotFoundError
            The file of an ObjectCode does not exist.
        """
        if isinstance(value, bytes):
            return bytes(to_cache(value))
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        if isinstance(value, ObjectCode):
            return value._to_cache()
        raise TypeError(f"a cache keeps bytes, bytearray, memoryview or ObjectCode, not {type(value).__name__}")


def checked_limit(max_size_bytes: int | None) -> int | None:
    """The limit of a cache, when it is one."""
    if max_size_bytes is not None and max_size_bytes <= 0:
        raise ValueError(f"max_size_bytes must be positive or None, got {max_size_bytes}")
    return max_size_bytes


class InMemoryProgramCache(ProgramCacheResource):
    """A cache in the memory of this process, safe to share among threads.

    Parameters
    ----------
    max_size_bytes : int, optional
        Most bytes of code to keep; the entries not used for the longest time go first. None: no limit.

    Raises
    ------
    ValueError
        The limit is not positive.

    Notes
    -----
    Threads may share it.

    Examples
    --------
    >>> cache = InMemoryProgramCache()
    >>> code = program.compile("cubin", cache=cache)
    """

    def __init__(self, *, max_size_bytes: int | None = None) -> None:
        self._limit = checked_limit(max_size_bytes)
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()  # the newest last
        self._size = 0
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"<InMemoryProgramCache of {len(self._entries)} entries, {self._size} bytes>"

    def __getitem__(self, key: Key) -> bytes:
        with self._lock:
            found = self._entries.get(self.as_key(key))
            if found is None:
                raise KeyError(key)
            self._entries.move_to_end(self.as_key(key))
            return from_cache(found)

    def __setitem__(self, key: Key, value: Value) -> None:
        name, data = self.as_key(key), self.as_value(value)
        with self._lock:
            self._size += len(data) - len(self._entries.pop(name, b""))
            self._entries[name] = data
            while self._limit is not None and self._size > self._limit:
                self._size -= len(self._entries.popitem(last=False)[1])

    def __delitem__(self, key: Key) -> None:
        with self._lock:
            if self.as_key(key) not in self._entries:
                raise KeyError(key)
            self._size -= len(self._entries.pop(self.as_key(key)))

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._entries.clear()
            self._size = 0

    def __reduce__(self) -> str:
        raise TypeError(
            "an InMemoryProgramCache belongs to this process: other processes share a FileStreamProgramCache"
        )
