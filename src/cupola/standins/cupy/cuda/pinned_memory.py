"""Memory of the host that devices copy from directly, with CuPy's interface."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy

from cupola.standins.cupy.cuda import runtime


class PinnedMemory:
    """Memory from ``cudaHostAlloc``, freed when it is collected.

    Parameters
    ----------
    size : int
        Bytes.
    flags : int
        Of ``cudaHostAlloc``.
    """

    ptr = 0

    def __init__(self, size: int, flags: int = 0) -> None:
        if size < 0:
            raise ValueError(f"size must not be negative, got {size}")
        self.size = int(size)
        if size > 0:
            self.ptr = int(runtime.hostAlloc(self.size, flags))

    def __del__(self, ends: Any = sys.is_finalizing) -> None:
        if self.ptr and not ends():  # as memory of the device
            with contextlib.suppress(runtime.CUDARuntimeError):  # the context is broken: it has no memory any more
                runtime.freeHost(self.ptr)


class PinnedMemoryPointer(numpy.ndarray):
    """A place in pinned memory: bytes, whose buffer NumPy takes. Arithmetic is that of pointers, and reads nothing.

    Parameters
    ----------
    mem : PinnedMemory
        The memory, or what has its ``ptr`` and ``size``.
    offset : int
        Bytes from its beginning. A place outside of the memory has no bytes.
    size : int, optional
        Bytes; by default all after it.
    """

    # The class is one of NumPy's for its buffer only: elementwise functions would read what nobody has to have.
    __array_ufunc__ = None  # type: ignore[assignment]

    mem: Any
    ptr: int

    def __new__(cls, mem: Any, offset: int, size: int | None = None) -> Any:
        length = mem.size - offset if size is None else size
        inside = mem.ptr and offset >= 0 and length > 0
        memory: Any = (ctypes.c_ubyte * length).from_address(mem.ptr + offset) if inside else bytearray()
        if inside:
            memory.kept = mem  # NumPy's arrays keep the object behind all views
        made: Any = numpy.frombuffer(memory, numpy.uint8).view(cls)
        made.mem, made.ptr = mem, mem.ptr + offset
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.mem, self.ptr = getattr(other, "mem", None), getattr(other, "ptr", 0)

    def __int__(self) -> int:
        return self.ptr

    def size(self) -> int:  # type: ignore[override]
        """How many bytes there are from here to the end of the memory."""
        return int(self.mem.size - (self.ptr - self.mem.ptr))

    def __add__(self, offset: Any) -> Any:
        return PinnedMemoryPointer(self.mem, self.ptr - self.mem.ptr + int(offset))

    __radd__ = __iadd__ = __add__

    def __sub__(self, offset: Any) -> Any:
        return self + -offset

    __isub__ = __sub__

    def __neg__(self) -> Any:
        raise TypeError("bad operand type for unary -: 'PinnedMemoryPointer'")

    __rsub__ = __mul__ = __rmul__ = __imul__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<cupy.cuda.pinned_memory.PinnedMemoryPointer object at {id(self):#x}>"

    __str__ = __repr__


class _Pooled:
    """Memory of a pool, to which it returns when it is collected."""

    def __init__(self, memory: PinnedMemory, pool: PinnedMemoryPool) -> None:
        self._memory, self._pool = memory, pool
        self.ptr, self.size = memory.ptr, memory.size

    def __del__(self, ends: Any = sys.is_finalizing) -> None:
        if not ends():
            self._pool._give_back(self._memory)


class PinnedMemoryPool:
    """Keeps pinned memory that was given back, for the next one of its size.

    Parameters
    ----------
    allocator : callable, optional
        Where the pool gets memory.
    """

    def __init__(self, allocator: Callable[[int], PinnedMemoryPointer] | None = None) -> None:
        self._allocator = allocator or _malloc
        self._lock = threading.RLock()
        self._free: dict[int, list[PinnedMemory]] = {}

    def malloc(self, size: int) -> Any:
        """Memory of at least so many bytes: a power of two, at least 512."""
        if size < 0:
            raise ValueError(f"size must not be negative, got {size}")
        unit = max(512, 1 << (int(size) - 1).bit_length()) if size > 0 else 0
        with self._lock:
            free = self._free.get(unit)
            memory = free.pop() if free else None
        found = self._allocator(unit).mem if memory is None else memory
        return PinnedMemoryPointer(_Pooled(found, self), 0, unit)

    def _give_back(self, memory: PinnedMemory) -> None:
        with self._lock:
            self._free.setdefault(memory.size, []).append(memory)

    def free_all_blocks(self) -> None:
        """Give back what is not used."""
        with self._lock:
            self._free.clear()

    def n_free_blocks(self) -> int:
        """How many pieces are not used."""
        return sum(map(len, self._free.values()))


def _malloc(size: int) -> Any:
    return PinnedMemoryPointer(PinnedMemory(size), 0)


default_pool = PinnedMemoryPool()
_allocator: Callable[[int], PinnedMemoryPointer] = default_pool.malloc


def alloc_pinned_memory(size: int) -> Any:
    """Pinned memory of at least so many bytes; ``numpy.frombuffer`` takes it."""
    return _allocator(size)


def set_pinned_memory_allocator(allocator: Callable[[int], PinnedMemoryPointer] | None = None) -> None:
    """Choose who gives pinned memory; None: ``cudaHostAlloc``."""
    global _allocator
    _allocator = _malloc if allocator is None else allocator


def is_memory_pinned(ptr: int) -> bool:
    """Whether an address is in pinned memory."""
    return bool(runtime.pointerGetMemoryType(ptr) == runtime.memoryTypeHost)
