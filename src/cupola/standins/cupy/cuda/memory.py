"""Memory of the device with CuPy's interface: pieces, pointers into them, pools, and who gives arrays theirs."""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import gc
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import cupola
from cupola.core.device._memory_resource import MemoryResource
from cupola.core.device._stream import Stream as _CoreStream
from cupola.core.memory._buffer import Buffer
from cupola.numpy._lazy import records, watch
from cupola.standins.cupy._errors import OutOfMemoryError as OutOfMemoryError
from cupola.standins.cupy.cuda import _state, memory_hook, runtime
from cupola.standins.cupy.cuda.device import Device
from cupola.standins.cupy.cuda.stream import get_current_stream

_NO_MEMORY = 2  # cudaErrorMemoryAllocation
UNIT = 512  # a pool gives memory in multiples of so many bytes


# --- pieces of memory -------------------------------------------------------------------------------------------

# When the interpreter ends, the names of modules may be gone, and the process gives its memory back anyway: so each
# __del__ here has what tells that as the default of a parameter, and does nothing then.


class BaseMemory:
    """A piece of memory."""

    ptr = 0
    size = 0
    device_id = -1

    @property
    def device(self) -> Device:
        """Device: which has it."""
        return Device(self.device_id)

    def __int__(self) -> int:
        return self.ptr


class Memory(BaseMemory):
    """Memory from ``cudaMalloc``, freed when it is collected.

    Parameters
    ----------
    size : int
        Bytes.
    """

    def __init__(self, size: int) -> None:
        self.size, self.device_id = int(size), _state.device_id()
        if size > 0:
            self.ptr = self._get(self.size)

    def _get(self, size: int) -> int:
        return int(runtime.malloc(size))

    def __del__(self, ends: Any = sys.is_finalizing) -> None:
        if self.ptr and not ends():
            with contextlib.suppress(runtime.CUDARuntimeError):  # the context is broken: it has no memory any more
                runtime.free(self.ptr)


class ManagedMemory(Memory):
    """Memory that the host and devices may use.

    Parameters
    ----------
    size : int
        Bytes.
    """

    def _get(self, size: int) -> int:
        return runtime.mallocManaged(size)

    def prefetch(self, stream: Any, *, device_id: int | None = None) -> None:
        """Move it to a device."""
        runtime.memPrefetchAsync(self.ptr, self.size, self.device_id if device_id is None else device_id, stream.ptr)


class MemoryAsync(BaseMemory):
    """Memory from ``cudaMallocAsync``, freed in the order of its stream.

    Parameters
    ----------
    size : int
        Bytes.
    stream : Stream
        In whose order.
    """

    def __init__(self, size: int, stream: Any) -> None:
        self.size, self.device_id, self.stream = int(size), _state.device_id(), stream
        self.address = int(stream.ptr)  # of the stream in whose order it is freed
        if size > 0:
            self.ptr = int(runtime.mallocAsync(self.size, stream.ptr))

    def __del__(self, ends: Any = sys.is_finalizing) -> None:
        if self.ptr and not ends():
            with contextlib.suppress(runtime.CUDARuntimeError):
                runtime.freeAsync(self.ptr, self.address)


class UnownedMemory(BaseMemory):
    """Memory of another library.

    Parameters
    ----------
    ptr, size : int
        Address and bytes.
    owner : object
        Is kept.
    device_id : int
        Which device has it; by default that of the address.
    """

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        self.ptr, self.size, self._owner = int(ptr), int(size), owner
        self.device_id = device_id if device_id >= 0 else max(runtime.pointerGetAttributes(int(ptr)).device, 0)


class PooledMemory(BaseMemory):
    """Memory of a pool, to which it returns when it is collected."""

    def __init__(self, chunk: _Chunk, pool: MemoryPool, own: MemoryAsync | Memory | None) -> None:
        self._chunk, self._pool, self._own = chunk, pool, own
        self.ptr = chunk.ptr if own is None else own.ptr
        self.size, self.device_id = chunk.size, chunk.memory.device_id
        self.stream = chunk.stream  # in whose order it is given back

    def free(self) -> None:
        """Give it back."""
        if not self.ptr:
            return
        hooks = memory_hook.hooks()
        what = {"device_id": self.device_id, "mem_size": self.size, "mem_ptr": self.ptr, "pmem_id": id(self)}
        self.ptr = 0
        memory_hook.call(hooks, "free_preprocess", **what)
        if isinstance(self._own, MemoryAsync):
            self._own.address = self.stream
        self._own = None
        self._pool._give_back(self._chunk, self.stream)
        memory_hook.call(hooks, "free_postprocess", **what)

    def __del__(self, ends: Any = sys.is_finalizing) -> None:
        if self.ptr and not ends():
            self.free()


class MemoryPointer:
    """A place in a piece of memory.

    Parameters
    ----------
    mem : BaseMemory
        The piece.
    offset : int
        Bytes from its beginning.
    """

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem = mem
        self.ptr = int(mem.ptr) + int(offset)

    @property
    def device(self) -> Device:
        """Device: which has it."""
        return Device(self.device_id)

    @property
    def device_id(self) -> int:
        """int: the number of the device."""
        return int(self.mem.device_id)

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - int(self.mem.ptr) + offset)

    __radd__ = __add__

    def __iadd__(self, offset: int) -> MemoryPointer:
        self.ptr += offset
        return self

    def __sub__(self, offset: int) -> MemoryPointer:
        return self + -offset

    def __isub__(self, offset: int) -> MemoryPointer:
        self.ptr -= offset
        return self

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """Copy bytes from the device."""
        runtime.memcpy(self.ptr, src.ptr, size, runtime.memcpyDeviceToDevice)

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        """Copy bytes from the device, in the order of a stream."""
        runtime.memcpyAsync(self.ptr, src.ptr, size, runtime.memcpyDeviceToDevice, _address_of(stream))

    def copy_from_host(self, mem: Any, size: int) -> None:
        """Copy bytes from the host, where `mem` is an address, or a pointer of ctypes."""
        runtime.memcpy(self.ptr, _host(mem), size, runtime.memcpyHostToDevice)

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes from the host, in the order of a stream."""
        runtime.memcpyAsync(self.ptr, _host(mem), size, runtime.memcpyHostToDevice, _address_of(stream))

    def copy_from(self, mem: Any, size: int) -> None:
        """Copy bytes from the device or the host."""
        (self.copy_from_device if isinstance(mem, MemoryPointer) else self.copy_from_host)(mem, size)

    def copy_from_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes from the device or the host, in the order of a stream."""
        copy = self.copy_from_device_async if isinstance(mem, MemoryPointer) else self.copy_from_host_async
        copy(mem, size, stream)

    def copy_to_host(self, mem: Any, size: int) -> None:
        """Copy bytes to the host."""
        runtime.memcpy(_host(mem), self.ptr, size, runtime.memcpyDeviceToHost)

    def copy_to_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes to the host, in the order of a stream."""
        runtime.memcpyAsync(_host(mem), self.ptr, size, runtime.memcpyDeviceToHost, _address_of(stream))

    def memset(self, value: int, size: int) -> None:
        """Set bytes."""
        runtime.memset(self.ptr, value, size)

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        """Set bytes, in the order of a stream."""
        runtime.memsetAsync(self.ptr, value, size, _address_of(stream))

    def __repr__(self) -> str:
        return f"<MemoryPointer 0x{self.ptr:x} device={self.device_id} mem={self.mem!r}>"


def _address_of(stream: Any) -> int:
    return int((get_current_stream() if stream is None else stream).ptr)


def _host(mem: Any) -> int:
    """The address in a pointer of ctypes, or the number itself."""
    return int(mem.value or 0) if isinstance(mem, ctypes.c_void_p) else int(mem)


# --- pools --------------------------------------------------------------------------------------------------------


class _Counted(BaseMemory):
    """What a pool that only counts has of a device."""

    def __init__(self, device: int) -> None:
        self.device_id = device


class _Chunk:
    """A part of a piece of memory, between its neighbors there."""

    def __init__(self, memory: BaseMemory, offset: int, size: int, stream: int) -> None:
        self.memory, self.offset, self.size, self.stream = memory, offset, size, stream
        self.before: _Chunk | None = None
        self.behind: _Chunk | None = None
        self.is_free = False

    @property
    def ptr(self) -> int:
        return self.memory.ptr + self.offset


def _rounded(size: int) -> int:
    """What a pool gives for so many bytes."""
    return -(-size // UNIT) * UNIT


class MemoryPool:
    """Keeps memory that arrays have given back, for the next ones of the same stream.

    Without an allocator the pool only counts. Each array has memory of its own, of its very size, from the driver's
    pool, so that the CPU device notices an access behind its end.

    Parameters
    ----------
    allocator : callable, optional
        Where the pool gets memory: a function that returns a MemoryPointer for a number of bytes.
    """

    def __init__(self, allocator: Callable[[int], MemoryPointer] | None = None) -> None:
        self._allocator = allocator
        self._lock = threading.RLock()
        self._free: dict[tuple[int, int], list[_Chunk]] = {}  # by device and stream, in the order of sizes
        self._total: dict[int, int] = {}
        self._used: dict[int, int] = {}
        self._limits: dict[int, int] = {}
        self._returned: deque[tuple[_Chunk, int]] = deque()  # what is yet to be joined with its neighbors
        self._inside = False  # whether the tables are being changed
        self._from_environment(os.environ.get("CUPY_GPU_MEMORY_LIMIT"))

    def _from_environment(self, text: str | None) -> None:
        if not text:
            return
        for device in range(runtime.getDeviceCount()):
            with Device(device):
                if text.endswith("%"):
                    self.set_limit(fraction=float(text[:-1]) / 100)
                else:
                    self.set_limit(size=int(text))

    def malloc(self, size: int) -> MemoryPointer:
        """Memory of at least so many bytes.

        Raises
        ------
        OutOfMemoryError
            When the device has no more, or the limit is reached.
        """
        if size < 0:
            raise ValueError(f"size must not be negative, got {size}")
        if size == 0:
            return MemoryPointer(Memory(0), 0)
        hooks = memory_hook.hooks()
        if not hooks:
            return MemoryPointer(self._pooled(int(size), hooks), 0)
        what = {"device_id": _state.device_id(), "size": int(size), "mem_size": _rounded(int(size))}
        made = None
        memory_hook.call(hooks, "malloc_preprocess", **what)
        try:
            made = self._pooled(int(size), hooks)
        finally:
            where = (0, 0) if made is None else (made.ptr, id(made))
            memory_hook.call(hooks, "malloc_postprocess", **what, mem_ptr=where[0], pmem_id=where[1])
        return MemoryPointer(made, 0)

    def _pooled(self, wanted: int, hooks: list[memory_hook.MemoryHook]) -> PooledMemory:
        """Memory of the pool, which gets more from the device if it has none."""
        size, device, stream = _rounded(wanted), _state.device_id(), get_current_stream()
        with self._lock, self._changing():
            chunk = self._found(device, int(stream.ptr), size)
        fresh, made = chunk is None, None
        if fresh:
            memory_hook.call(hooks, "alloc_preprocess", device_id=device, mem_size=size)
        try:
            with self._lock:
                chunk = chunk or self._fresh(device, int(stream.ptr), size)
                with self._changing():
                    self._used[device] = self._used.get(device, 0) + chunk.size
            own = None if self._allocator is not None else self._own(wanted, stream, chunk)
            made = PooledMemory(chunk, self, own)
        finally:
            if fresh:
                at = 0 if made is None else made.ptr
                memory_hook.call(hooks, "alloc_postprocess", device_id=device, mem_size=size, mem_ptr=at)
        return made

    def _own(self, size: int, stream: Any, chunk: _Chunk) -> MemoryAsync | Memory:
        """Memory for one array."""
        for attempt in range(2):
            try:
                # Recorded work uses memory that is there before and behind it.
                return Memory(size) if stream.is_capturing() else MemoryAsync(size, stream)
            except runtime.CUDARuntimeError as error:
                if error.status != _NO_MEMORY:  # such as a capture that is spoiled
                    self._give_back(chunk, chunk.stream)
                    raise
            if attempt == 0:
                gc.collect()
        self._give_back(chunk, chunk.stream)
        self.free_all_blocks()
        raise OutOfMemoryError(chunk.size, self.total_bytes(), self.get_limit())

    def _found(self, device: int, stream: int, size: int) -> _Chunk | None:
        """The smallest free part that is large enough; what it has too much stays free."""
        free = self._free.get((device, stream), [])
        place = bisect.bisect_left(free, size, key=_size)
        if place == len(free):
            return None
        chunk = free.pop(place)
        chunk.is_free = False
        if chunk.size > size:
            rest = _Chunk(chunk.memory, chunk.offset + size, chunk.size - size, stream)
            rest.before, rest.behind, chunk.size = chunk, chunk.behind, size
            if chunk.behind is not None:
                chunk.behind.before = rest
            chunk.behind = rest
            self._add(rest, device)
        return chunk

    def _fresh(self, device: int, stream: int, size: int) -> _Chunk:
        limit = self._limits.get(device, 0)
        for attempt in range(3):
            total = self._total.get(device, 0)
            if not limit or total + size <= limit:
                with contextlib.suppress(runtime.CUDARuntimeError, OutOfMemoryError):
                    pointer = MemoryPointer(_Counted(device), 0) if self._allocator is None else self._allocator(size)
                    self._total[device] = total + size
                    return _Chunk(pointer.mem, pointer.ptr - pointer.mem.ptr, size, stream)
            if attempt == 0:
                self.free_all_blocks()
            elif attempt == 1:
                gc.collect()
                self.free_all_blocks()
        raise OutOfMemoryError(size, self._total.get(device, 0), limit)

    def _add(self, chunk: _Chunk, device: int) -> None:
        chunk.is_free = True
        bisect.insort(self._free.setdefault((device, chunk.stream), []), chunk, key=_size)

    def _remove(self, chunk: _Chunk, device: int) -> None:
        free = self._free[device, chunk.stream]
        place = bisect.bisect_left(free, chunk.size, key=_size)
        while free[place] is not chunk:
            place += 1
        del free[place]
        chunk.is_free = False

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the tables. What is given back meanwhile, by the collector or other threads, comes after it."""
        with self._lock:
            self._settle()
            self._inside = True
            try:
                yield
            finally:
                self._inside = False

    def _give_back(self, chunk: _Chunk, stream: int) -> None:
        self._returned.append((chunk, stream))
        if not self._inside:
            self._settle()

    def _settle(self) -> None:
        """Take back what is returned."""
        with self._lock:
            if self._inside:
                return
            self._inside = True
            try:
                while self._returned:
                    self._take_back(*self._returned.popleft())
            finally:
                self._inside = False

    def _take_back(self, chunk: _Chunk, stream: int) -> None:
        device = chunk.memory.device_id
        self._used[device] -= chunk.size
        chunk.stream = stream
        for other, first in ((chunk.behind, chunk), (chunk.before, chunk.before)):
            if other is None or first is None or not other.is_free or other.stream != stream:
                continue
            second = first.behind
            assert second is not None
            self._remove(other, device)
            first.size += second.size
            first.behind = second.behind
            if second.behind is not None:
                second.behind.before = first
            chunk = first
        self._add(chunk, device)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give the device back what no array has, of one stream or of all."""
        with self._changing():
            for (device, address), free in self._free.items():
                if stream is None or address == stream.ptr:
                    for chunk in [chunk for chunk in free if chunk.before is None and chunk.behind is None]:
                        free.remove(chunk)
                        self._total[device] -= chunk.size

    free_all_free = free_all_blocks

    def n_free_blocks(self) -> int:
        """How many parts are free."""
        device = _state.device_id()
        self._settle()
        return sum(len(free) for (place, _), free in self._free.items() if place == device)

    def used_bytes(self) -> int:
        """Bytes that arrays have."""
        self._settle()
        return self._used.get(_state.device_id(), 0)

    def free_bytes(self) -> int:
        """Bytes that are kept for arrays."""
        return self.total_bytes() - self.used_bytes()

    def total_bytes(self) -> int:
        """Bytes that the pool has."""
        return self._total.get(_state.device_id(), 0)

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Limit the bytes that the pool has of the current device; 0: as much as there is."""
        if (size is None) == (fraction is None):
            raise ValueError("a limit is either a size or a fraction: set_limit(size=...) or set_limit(fraction=...)")
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise ValueError(f"memory limit fraction out of range: {fraction}")
            size = int(fraction * Device().mem_info[1])
        assert size is not None
        if size < 0:
            raise ValueError(f"memory limit size out of range: {size}")
        self._limits[_state.device_id()] = int(size)

    def get_limit(self) -> int:
        """The limit on the current device; 0: none."""
        return self._limits.get(_state.device_id(), 0)


def _size(chunk: _Chunk) -> int:
    return chunk.size


class MemoryAsyncPool:
    """The pool of the driver, in the order of streams."""

    def malloc(self, size: int) -> MemoryPointer:
        """Memory in the order of the current stream."""
        return malloc_async(size)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give the device back what is not used."""
        runtime.memPoolTrimTo(runtime.deviceGetMemPool(_state.device_id()), 0)


# --- who gives memory ----------------------------------------------------------------------------------------------


class PythonFunctionAllocator:
    """Memory from functions of the program.

    Parameters
    ----------
    malloc_func : callable
        ``malloc_func(size, device_id)`` returns an address.
    free_func : callable
        ``free_func(address, device_id)``.
    """

    def __init__(self, malloc_func: Callable[[int, int], int], free_func: Callable[[int, int], None]) -> None:
        self._malloc, self._free = malloc_func, free_func

    def malloc(self, size: int) -> MemoryPointer:
        """Memory of so many bytes."""
        return MemoryPointer(PythonFunctionAllocatorMemory(size, self._malloc, self._free), 0)


class PythonFunctionAllocatorMemory(BaseMemory):
    """Memory from a PythonFunctionAllocator."""

    def __init__(self, size: int, malloc_func: Any, free_func: Any) -> None:
        self._free, self.size, self.device_id = free_func, size, _state.device_id()
        if size > 0:
            self.ptr = int(malloc_func(size, self.device_id))

    def __del__(self, ends: Any = sys.is_finalizing) -> None:
        if self.ptr and not ends():
            self._free(self.ptr, self.device_id)


def _malloc(size: int) -> MemoryPointer:
    return MemoryPointer(Memory(size), 0)


def malloc_managed(size: int) -> MemoryPointer:
    """Memory that the host and devices may use: for ``set_allocator``."""
    return MemoryPointer(ManagedMemory(size), 0)


def malloc_async(size: int) -> MemoryPointer:
    """Memory in the order of the current stream: for ``set_allocator``."""
    return MemoryPointer(MemoryAsync(size, get_current_stream()), 0)


default_pool = MemoryPool()
_allocator: Callable[[int], Any] = default_pool.malloc


class _Thread(threading.local):
    allocator: Callable[[int], Any] | None = None


_thread = _Thread()


def set_allocator(allocator: Callable[[int], Any] | None = None) -> None:
    """Choose who gives arrays their memory: a function that returns a MemoryPointer; None: ``cudaMalloc``."""
    global _allocator
    if _thread.allocator is not None:
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager.")
    _allocator = _malloc if allocator is None else allocator


def get_allocator() -> Callable[[int], Any]:
    """Who gives arrays their memory."""
    return _thread.allocator or _allocator


@contextlib.contextmanager
def using_allocator(allocator: Callable[[int], Any] | None = None) -> Iterator[None]:
    """Choose who gives arrays of this thread their memory, within a ``with`` block."""
    before, _thread.allocator = _thread.allocator, _malloc if allocator is None else allocator
    try:
        yield
    finally:
        _thread.allocator = before


def alloc(size: int) -> Any:
    """Memory from the current allocator."""
    return get_allocator()(size)


# --- memory of arrays ---------------------------------------------------------------------------------------------


class _Resource(MemoryResource):
    """What the buffers of arrays give their memory back to."""

    def __init__(self, device: int) -> None:
        super().__init__()
        self._device = device
        self.held: dict[int, Any] = {}  # by address

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        return _for_arrays(size, stream)

    def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
        pointer = self.held.pop(int(ptr), None)
        if pointer is None:
            return
        core = stream if isinstance(stream, _CoreStream) else None
        if core is not None and records(core):
            _keep(core, pointer)
        elif core is not None and isinstance(pointer.mem, PooledMemory):
            address = int(core.handle)
            pointer.mem.stream = 0 if address == 1 else address

    @property
    def is_device_accessible(self) -> bool:
        return True

    @property
    def is_host_accessible(self) -> bool:
        return False

    @property
    def device_id(self) -> int:
        return self._device


_resources: dict[int, _Resource] = {}


def _keep(core: _CoreStream, pointer: Any) -> None:
    """Keep memory that recorded work uses, until its graph is gone."""
    current = get_current_stream()
    if current._core == core:
        current._kept.append(pointer)


def _for_arrays(size: int, queue: _CoreStream) -> Buffer:
    pointer = get_allocator()(size)
    device = _state.device_id()
    resource = _resources.get(device)
    if resource is None:
        resource = _resources.setdefault(device, _Resource(device))
        _let_others_read(device)
    if not size:
        return Buffer.from_handle(0, 0, owner=pointer)
    resource.held[int(pointer.ptr)] = pointer
    return Buffer.from_handle(pointer.ptr, size, mr=resource, stream=queue)


def _let_others_read(device: int) -> None:
    """Let kernels of the other devices use memory of this one, where that is possible."""
    for other in range(runtime.getDeviceCount()):
        if other != device and runtime.deviceCanAccessPeer(other, device):
            with Device(other), contextlib.suppress(runtime.CUDARuntimeError):  # it is so already
                runtime.deviceEnablePeerAccess(device)
    if runtime.getDeviceCount() > 1:
        found = cupola.Device(device).memory_resource
        if isinstance(found, cupola.DeviceMemoryResource):
            found.peer_accessible_by = cupola.Device.get_all_devices()


def pointer_of(buffer: Buffer) -> MemoryPointer:
    """The beginning of a buffer as a pointer of CuPy."""
    resource = buffer.memory_resource
    if isinstance(resource, _Resource):
        held = resource.held.get(buffer.handle)
        if held is not None:
            return MemoryPointer(held.mem, int(held.ptr) - int(held.mem.ptr))
    if isinstance(buffer.owner, MemoryPointer):
        return buffer.owner
    return MemoryPointer(UnownedMemory(buffer.handle, buffer.size, buffer, max(buffer.device_id, 0)), 0)


watch(_for_arrays)
