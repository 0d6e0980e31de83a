"""Stream-ordered memory pools: what the device and pinned memory resources share.

CUDA Driver API, "Stream Ordered Memory Allocator". An allocation is usable by work behind it in its stream, and its
release waits for the work ahead of it, so neither synchronizes. A destroyed pool lives on until its last allocation is
freed, which is why a resource may be closed while its buffers are in use.
"""

from cpython.pystate cimport PyThreadState
from libc.stdint cimport int32_t, uint64_t, uintptr_t
from libc.string cimport memset

from cupola.core.memory._buffer cimport Buffer, begin_buffer, fill_buffer, put_off, release_put_off
from cupola.core.device._context cimport current_context, enter, enter_if_there, green_of, leave, resets
from cupola.core.device._later cimport destroy, let_go_now, waiting
from cupola.core.base._cuda cimport (
    CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,
    CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ALLOCATION_TYPE_MANAGED,
    CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST,
    CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_NONE, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
    CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
    CU_MEMPOOL_ATTR_USED_MEM_HIGH, CU_STREAM_CAPTURE_STATUS_NONE, CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_FOUND, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_SUCCESS, CUcontext,
    CUdevice_attribute, CUdeviceptr, CUmemAccessDesc, CUmemAccess_flags, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUmemoryPool, CUmemPool_attribute, CUmemPoolProps, CUresult, CUstream,
    CUstreamCaptureStatus, check, closed_error, cu, driver_usable, factory_error, forget_missing, initialise,
)
from cupola.core.base._gil cimport let_others_run, take_back
from cupola.core.device._memory_resource cimport MemoryResource, byte_count
from cupola.core.device._stream cimport Stream, StreamHandle, older_stream, stream_argument

from cupola.core.base._errors import CUDAError

cimport cython

cdef enum:
    MOST_DEVICES = 64

LOCATION_DEVICE = <int>CU_MEM_LOCATION_TYPE_DEVICE
LOCATION_HOST = <int>CU_MEM_LOCATION_TYPE_HOST
LOCATION_HOST_NUMA = <int>CU_MEM_LOCATION_TYPE_HOST_NUMA
LOCATION_NONE = <int>CU_MEM_LOCATION_TYPE_NONE
ALLOCATION_PINNED = <int>CU_MEM_ALLOCATION_TYPE_PINNED
ALLOCATION_MANAGED = <int>CU_MEM_ALLOCATION_TYPE_MANAGED


def require_cuda_13(str what, str remedy):
    """RuntimeError when the driver is older than CUDA 13."""
    cdef int version = 0
    forget_missing()
    check(cu.cuDriverGetVersion(&version), b"cuDriverGetVersion")
    if version < 13000:
        raise RuntimeError(
            f"{what} requires CUDA 13.0 or later, and the driver has {version // 1000}.{version % 1000 // 10}; {remedy}"
        )


cdef CUresult _destroy(void* pool) noexcept nogil:
    return cu.cuMemPoolDestroy(<CUmemoryPool>pool)


cdef class PoolHandle:
    def __dealloc__(self):
        if self.owned and self.pointer != NULL and driver_usable():
            destroy(_destroy, self.pointer, b"cuMemPoolDestroy", NULL, resets)


cdef class PoolMemoryResource(MemoryResource):
    """A memory resource on a stream-ordered pool (``CUmemoryPool``). See its subclasses.

    Notes
    -----
    Threads may share it, and any of them may close it.
    """

    def __cinit__(self, *args, **kwargs):
        self.overridden = type(self).deallocate is not PoolMemoryResource.deallocate
        self.direct = type(self).allocate is PoolMemoryResource.allocate
        self._buffer_class = Buffer
        self.ordinal = -1

    # --- how subclasses find or make their pool -------------------------------------------------------

    def _use_device_pool(self, int device_id):
        """Use the current pool of a device without owning it, and let it keep memory between synchronizations."""
        cdef CUmemoryPool pool
        cdef uint64_t threshold = 0
        initialise()
        check(cu.cuDeviceGetMemPool(&pool, device_id), b"cuDeviceGetMemPool")
        # Pools start with a threshold of 0, which returns all memory to the system at each synchronization.
        check(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), b"cuMemPoolGetAttribute")
        if threshold == 0:
            threshold = <uint64_t>-1
            check(
                cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
                b"cuMemPoolSetAttribute",
            )
        self._hold(pool, False)
        self.ordinal, self.only_device = device_id, True

    def _use_current_pool(self, int location_type, int allocation_type):
        """Use the current pool of host or managed memory without owning it (``cuMemGetMemPool``, CUDA 13)."""
        cdef CUmemoryPool pool
        cdef CUmemLocation location
        cdef CUresult status
        initialise()
        memset(&location, 0, sizeof(location))
        location.type = <CUmemLocationType>location_type
        status = cu.cuMemGetMemPool(&pool, &location, <CUmemAllocationType>allocation_type)
        if status == CUDA_ERROR_NOT_FOUND:
            require_cuda_13(
                f"{type(self).__name__}() without options",
                f"pass {type(self).__name__}Options() for a pool of its own, or use LegacyPinnedMemoryResource()"
                if allocation_type == ALLOCATION_PINNED else "use cuMemAllocManaged and Buffer.from_handle",
            )
        check(status, b"cuMemGetMemPool")
        self._hold(pool, False)
        if location_type == LOCATION_HOST and allocation_type == ALLOCATION_PINNED:
            try:
                self._let_devices_in(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED)
            except CUDAError:
                # The current pool must not be changed here; an owned pool may be.
                self._make_pool(LOCATION_HOST, 0, 0)

    def _make_pool(self, int location_type, int location_id, size_t max_size, int allocation_type=ALLOCATION_PINNED,
                   bint shared=False):
        """Make a pool and own it (``cuMemPoolCreate``)."""
        cdef CUmemoryPool pool
        cdef CUmemPoolProps properties
        cdef CUresult status
        initialise()
        memset(&properties, 0, sizeof(properties))
        properties.allocType = <CUmemAllocationType>allocation_type
        properties.handleTypes = <CUmemAllocationHandleType><int>(
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR if shared else CU_MEM_HANDLE_TYPE_NONE
        )
        properties.location.type = <CUmemLocationType>location_type
        properties.location.id = location_id
        properties.maxSize = max_size
        with nogil:
            status = cu.cuMemPoolCreate(&pool, &properties)
        check(status, b"cuMemPoolCreate")
        self._hold(pool, True)
        self.shared = shared
        if location_type == LOCATION_DEVICE:
            self.ordinal, self.only_device = location_id, allocation_type == ALLOCATION_PINNED
        if allocation_type != ALLOCATION_PINNED:
            return      # managed memory is for all devices from the start
        if location_type == LOCATION_HOST:
            self._let_devices_in(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED)
        elif location_type == LOCATION_HOST_NUMA:
            self._let_devices_in(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED)

    cdef _hold(self, CUmemoryPool pool, bint owned):
        cdef PoolHandle handle = PoolHandle.__new__(PoolHandle)
        handle.pointer, handle.owned = pool, owned
        with cython.critical_section(self):
            self.pool = handle
            self.cached_attributes = None

    # --- who may access the memory --------------------------------------------------------------------

    def _has_access(self, int device_id):
        """Whether a device may read and write the memory (``cuMemPoolGetAccess``)."""
        cdef CUmemLocation location
        cdef CUmemAccess_flags flags
        cdef PoolHandle held = self.open_pool()
        memset(&location, 0, sizeof(location))
        location.type, location.id = CU_MEM_LOCATION_TYPE_DEVICE, device_id
        check(cu.cuMemPoolGetAccess(&flags, held.pointer, &location), b"cuMemPoolGetAccess")
        return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE

    def _change_access(self, list added, list removed):
        """Give devices access and take it from others, in one call (``cuMemPoolSetAccess``)."""
        cdef CUmemAccessDesc descriptions[MOST_DEVICES]
        cdef size_t count = 0
        cdef PoolHandle held = self.open_pool()
        if len(added) + len(removed) > MOST_DEVICES:
            raise ValueError(f"the access of at most {MOST_DEVICES} devices can be changed at once")
        memset(descriptions, 0, sizeof(descriptions))
        for devices, flags in (
            (added, <int>CU_MEM_ACCESS_FLAGS_PROT_READWRITE), (removed, <int>CU_MEM_ACCESS_FLAGS_PROT_NONE)
        ):
            for number in devices:
                descriptions[count].location.type = CU_MEM_LOCATION_TYPE_DEVICE
                descriptions[count].location.id = number
                descriptions[count].flags = <CUmemAccess_flags><int>flags
                count += 1
        check(cu.cuMemPoolSetAccess(held.pointer, descriptions, count), b"cuMemPoolSetAccess")

    cdef _let_devices_in(self, CUdevice_attribute supported):
        """Give all devices that can use host memory access to it; at first only the host has access."""
        cdef int count = 0, able
        check(cu.cuDeviceGetCount(&count), b"cuDeviceGetCount")
        missing = []
        for number in range(count):
            able = 0
            check(cu.cuDeviceGetAttribute(&able, supported, number), b"cuDeviceGetAttribute")
            if able and not self._has_access(number):
                missing.append(number)
        if missing:
            self._change_access(missing, [])

    # --- allocation -----------------------------------------------------------------------------------

    @cython.embedsignature(False)      # which would show `older`
    def allocate(self, size, older=None, *, stream=None):
        """allocate($self, size, *, stream=None)\n--\n\nAllocate memory, usable by work submitted to `stream` from here on (``cuMemAllocFromPoolAsync``).

        Parameters
        ----------
        size : int
            Bytes; 0 gives a buffer at address 0.
        stream : Stream or GraphBuilder
            Orders the allocation, and the release unless the buffer is given another stream. It must not be
            capturing.

        Returns
        -------
        Buffer

        Raises
        ------
        CUDAError
            For example CUDA_ERROR_OUT_OF_MEMORY.
        TypeError
            When the pool was imported from another process.
        RuntimeError
            When the resource is closed, or the stream is being captured into a graph.
        """
        return self.obtain(size, stream if older is None else older_stream(older, stream, "allocate(size"))

    cdef object obtain(self, object size, object stream):
        cdef size_t count = byte_count(size)
        cdef Stream queue = stream_argument(stream)
        cdef CUstream native
        cdef PoolHandle held
        cdef CUmemoryPool pool
        cdef CUdeviceptr pointer = 0
        cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE
        cdef CUresult status
        cdef PyThreadState* others
        cdef Buffer buffer
        if self.pool is None:
            raise closed_error(self)
        if self.imported:
            raise TypeError(
                f"a {type(self).__name__} that was imported from another process cannot allocate: allocate in the "
                "process that made it, and pass the buffer"
            )
        if waiting:
            let_go_now()
        if _deferred or put_off:
            _free_deferred()
        # Made first, so that nothing can fail once there is memory. It holds the stream.
        buffer = begin_buffer(queue.hold(), self._buffer_class, self.overridden)
        if count == 0:
            fill_buffer(buffer, 0, 0, self)
            return buffer
        held = self.open_pool()
        pool, native = held.pointer, buffer.allocation.stream.pointer
        others = let_others_run()
        status = cu.cuStreamIsCapturing(native, &capture)
        if status == CUDA_SUCCESS and capture == CU_STREAM_CAPTURE_STATUS_NONE:
            status = cu.cuMemAllocFromPoolAsync(&pointer, count, pool, native)
        take_back(others)
        if capture != CU_STREAM_CAPTURE_STATUS_NONE:
            raise RuntimeError(
                f"{type(self).__name__} cannot allocate on a stream that is being captured into a graph; "
                "use GraphMemoryResource, or allocate before begin_building()"
            )
        if status != CUDA_SUCCESS:
            self._fail(status, stream)
        fill_buffer(buffer, pointer, count, self)
        if held.owned:
            buffer.allocation.pool = held
        return buffer

    cdef _fail(self, CUresult status, object stream):
        try:
            check(status, b"cuMemAllocFromPoolAsync")
        except CUDAError as error:
            self._explain_failure(stream, error)
            raise

    def _explain_failure(self, stream, error):
        """Raise a more helpful error than `error`, if there is one."""

    @cython.embedsignature(False)      # which would show `older`
    def deallocate(self, ptr, size_t size, older=None, *, stream=None):
        """deallocate($self, ptr, size, *, stream=None)\n--\n\nFree memory of the pool behind the work in `stream` (``cuMemFreeAsync``). Works after :meth:`close`, too.

        Parameters
        ----------
        ptr : int
            Address.
        size : int
            Bytes.
        stream : Stream or GraphBuilder
            Orders the release.
        """
        if older is not None:
            stream = older_stream(older, stream, "deallocate(ptr, size")
        _free(<uintptr_t>int(ptr), stream_argument(stream).hold())

    cdef int release(self, uintptr_t pointer, size_t size, StreamHandle stream) except -1:
        if self.overridden:
            return MemoryResource.release(self, pointer, size, stream)
        if _deferred or put_off:
            _free_deferred()
        return _free(pointer, stream)

    # --- properties and closing -----------------------------------------------------------------------

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Drop the pool. A pool made by this resource is destroyed when its last allocation is freed."""
        cdef PoolHandle pool
        with cython.critical_section(self):
            pool = self.pool        # let go of behind this
            self.pool = None

    @property
    def is_closed(self):
        """bool: whether the resource was closed."""
        return self.pool is None

    @property
    def handle(self):
        """cupola.bindings.driver.CUmemoryPool: the pool, null once closed."""
        from cupola.bindings.driver import CUmemoryPool as Handle

        cdef PoolHandle pool = self.known_pool()
        return Handle(0 if pool is None else <uintptr_t>pool.pointer)

    @property
    def is_handle_owned(self):
        """bool: whether this resource made the pool, rather than using the current one."""
        cdef PoolHandle pool = self.known_pool()
        return pool is not None and pool.owned

    @property
    def is_ipc_enabled(self):
        """bool: whether the memory can be shared with other processes."""
        return False

    @property
    def is_mapped(self):
        """bool: whether the pool was imported from another process; False once closed."""
        return self.imported and self.pool is not None

    @property
    def uuid(self):
        """uuid.UUID or None: name of a pool that is shared between processes."""
        return None

    @property
    def device_id(self):
        """int: ordinal of the device that the memory belongs to, or prefers; -1 for the host's."""
        return self.ordinal

    @property
    def is_device_accessible(self):
        """bool: True."""
        return True

    @property
    def is_host_accessible(self):
        """bool: whether the CPU may use the memory."""
        return not self.only_device

    @property
    def attributes(self):
        """PoolAttributes: limits and usage of the pool, read when asked for."""
        cdef PoolAttributes attributes
        with cython.critical_section(self):
            found = self.cached_attributes
        if found is None:
            attributes = PoolAttributes.__new__(PoolAttributes)
            attributes.pool = self.open_pool()
            attributes.resource_name = type(self).__name__
            with cython.critical_section(self):
                if self.cached_attributes is None:      # and no other thread was faster
                    self.cached_attributes = attributes
                found = self.cached_attributes
        return found

    def _about(self):
        return f"device={self.ordinal}"

    def __repr__(self):
        return f"<{type(self).__name__} {self._about()}{'' if self.pool is not None else ' closed'}>"

    def __reduce__(self):
        raise RuntimeError(f"a {type(self).__name__} that is not shared between processes (IPC) cannot be pickled")


# Memory that was released while its stream was being captured, as (address, stream, the context that a default stream
# stands in or 0, what keeps that one). The garbage collector may do that at any time, and freeing memory that is not part
# of the graph would invalidate the capture.
cdef list _deferred = []


cdef int _free(uintptr_t pointer, StreamHandle stream) except -1:
    """Free behind the work in `stream`, or later if that is being captured."""
    cdef CUstream native = NULL if stream is None else stream.pointer
    cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE
    cdef CUresult status
    cdef CUcontext context = NULL
    cdef int pushed
    cdef PyThreadState* others
    if pointer == 0 or (stream is not None and stream.is_gone()):
        return 0
    others = let_others_run()
    status = cu.cuStreamIsCapturing(native, &capture)
    if capture == CU_STREAM_CAPTURE_STATUS_NONE and status != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
        status = cu.cuMemFreeAsync(<CUdeviceptr>pointer, native)
    take_back(others)
    if capture != CU_STREAM_CAPTURE_STATUS_NONE or status == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
        if <uintptr_t>native <= 2:
            context = current_context()
        _deferred.append((pointer, stream, <uintptr_t>context, green_of(context)))
        return 0
    if status == CUDA_SUCCESS:
        return 0
    if status == CUDA_ERROR_INVALID_CONTEXT and cu.cuStreamGetCtx(native, &context) == CUDA_SUCCESS:
        # The garbage collector may run on a thread that never had a context; make the stream's context current
        # meanwhile.
        pushed = enter(context)
        with nogil:
            status = cu.cuMemFreeAsync(<CUdeviceptr>pointer, native)
        leave(pushed)
    if status == CUDA_ERROR_INVALID_CONTEXT or status == CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return 0    # the memory went with its context
    return check(status, b"cuMemFreeAsync")


cdef int _free_deferred() except -1:
    """Free what had to wait, as far as its streams are no longer captured."""
    cdef Py_ssize_t i
    cdef uintptr_t context
    cdef int pushed = 0
    if put_off:
        release_put_off()
    for i in range(len(_deferred)):     # those there are now: what must still wait is put behind them
        try:
            pointer, stream, context, _green = _deferred.pop(0)
        except IndexError:
            break       # another thread frees them as well
        if not enter_if_there(<CUcontext>context, &pushed):
            continue    # the memory went with its context
        try:
            _free(pointer, stream)
        finally:
            leave(pushed)
    return 0


cdef class PoolAttributes:
    """Limits and usage of a memory pool. Each is read from the driver when asked for (``cuMemPoolGetAttribute``).

    Notes
    -----
    Threads may share it.
    """

    def __init__(self):
        raise factory_error("PoolAttributes", "the attributes property of a memory resource")

    cdef int read_flag(self, CUmemPool_attribute attribute) except -1:
        cdef int32_t value = 0
        check(cu.cuMemPoolGetAttribute(self.pool.pointer, attribute, &value), b"cuMemPoolGetAttribute")
        return value != 0

    cdef object read_number(self, CUmemPool_attribute attribute):
        cdef uint64_t value = 0
        check(cu.cuMemPoolGetAttribute(self.pool.pointer, attribute, &value), b"cuMemPoolGetAttribute")
        return value

    @property
    def release_threshold(self):
        """int: bytes that the pool keeps for itself when a synchronization would return memory to the system."""
        return self.read_number(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)

    @property
    def reserved_mem_current(self):
        """int: bytes of memory behind the pool now."""
        return self.read_number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)

    @property
    def reserved_mem_high(self):
        """int: the most bytes that were ever behind the pool."""
        return self.read_number(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)

    @property
    def reuse_allow_internal_dependencies(self):
        """bool: whether the allocator may make a stream wait in order to reuse memory freed in another."""
        return bool(self.read_flag(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES))

    @property
    def reuse_allow_opportunistic(self):
        """bool: whether memory freed in another stream is reused once that release has happened."""
        return bool(self.read_flag(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC))

    @property
    def reuse_follow_event_dependencies(self):
        """bool: whether memory freed in another stream is reused when an event orders the streams."""
        return bool(self.read_flag(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES))

    @property
    def used_mem_current(self):
        """int: bytes allocated from the pool now."""
        return self.read_number(CU_MEMPOOL_ATTR_USED_MEM_CURRENT)

    @property
    def used_mem_high(self):
        """int: the most bytes that were ever allocated from the pool at one time."""
        return self.read_number(CU_MEMPOOL_ATTR_USED_MEM_HIGH)

    def __repr__(self):
        names = sorted(name for name in dir(type(self)) if not name.startswith("_"))
        return f"{self.resource_name}Attributes({', '.join(f'{name}={getattr(self, name)}' for name in names)})"
