"""Memory resources without a pool: page-locked host memory, and device memory where there are no pools.

Their allocations are not ordered by any stream. So ``deallocate`` first waits for the stream that it is given, because
queued work may still use the memory.
"""

from libc.stdint cimport uintptr_t

from cupola.core.memory._buffer cimport new_buffer
from cupola.core.device._context cimport current_context, enter, leave, primary_context
from cupola.core.base._cuda cimport (
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUDA_SUCCESS, CUdeviceptr, CUresult, CUstream, check, cu,
    initialise,
)
from cupola.core.device._memory_resource cimport MemoryResource, byte_count
from cupola.core.device._stream cimport StreamHandle, default_stream, new_stream, older_stream, stream_argument

cimport cython


cdef class UnpooledMemoryResource(MemoryResource):
    """Memory that is made and freed at once. See its subclasses."""
    cdef bint overridden    # a subclass in Python has its own `deallocate`

    def __cinit__(self, *args, **kwargs):
        self.overridden = type(self).deallocate is not UnpooledMemoryResource.deallocate

    cdef uintptr_t make(self, size_t size) except? 0:
        """Memory of at least one byte, made in the current context."""
        raise NotImplementedError

    cdef int free(self, uintptr_t pointer) except -1:
        raise NotImplementedError

    cdef int enter_context(self) except -1:
        """Make the context current in which to make memory; for leave()."""
        initialise()
        return 0

    @cython.embedsignature(False)      # which would show `older`
    def allocate(self, size, older=None, *, stream=None):
        """allocate($self, size, *, stream=None)\n--\n\nAllocate memory.

        Parameters
        ----------
        size : int
            Bytes; 0 gives a buffer at address 0.
        stream : Stream or GraphBuilder, optional
            Not needed; checked only.

        Returns
        -------
        Buffer
            Its release waits for the default stream unless it is given another.
        """
        cdef uintptr_t pointer = 0
        cdef size_t count = byte_count(size)
        cdef int pushed
        if older is not None:
            stream = older_stream(older, stream, "allocate(size")
        if stream is not None:
            stream_argument(stream)
        pushed = self.enter_context()
        try:
            if count != 0:
                pointer = self.make(count)
            try:
                return new_buffer(pointer, count, self, default_stream().known_handle())
            except:
                if pointer != 0:
                    self.free(pointer)
                raise
        finally:
            leave(pushed)

    @cython.embedsignature(False)      # which would show `older`
    def deallocate(self, ptr, size_t size, older=None, *, stream=None):
        """deallocate($self, ptr, size, *, stream=None)\n--\n\nWait for `stream`, if given, then free the memory.

        Parameters
        ----------
        ptr : int
            Address.
        size : int
            Bytes.
        stream : Stream or GraphBuilder, optional
            The stream that may still use the memory.
        """
        if older is not None:
            stream = older_stream(older, stream, "deallocate(ptr, size")
        cdef StreamHandle queue = None if stream is None else stream_argument(stream).hold()
        if size != 0:
            self.wait_and_free(<uintptr_t>int(ptr), queue)

    cdef int release(self, uintptr_t pointer, size_t size, StreamHandle stream) except -1:
        if self.overridden:
            return MemoryResource.release(self, pointer, size, stream)
        return self.wait_and_free(pointer, stream)

    cdef int wait_and_free(self, uintptr_t pointer, StreamHandle stream) except -1:
        cdef int pushed
        if pointer == 0:
            return 0
        pushed = _wait_for(stream)
        try:
            return self.free(pointer)
        finally:
            leave(pushed)

    @property
    def is_device_accessible(self):
        """bool: True."""
        return True


cdef class LegacyPinnedMemoryResource(UnpooledMemoryResource):
    """Page-locked host memory outside any pool, which every CUDA version has (``cuMemHostAlloc``).

    The host and all devices can access it at the same address. Allocating is slow and synchronizes; prefer
    :class:`PinnedMemoryResource` where host pools are supported.

    Notes
    -----
    Threads may share it.
    """

    cdef uintptr_t make(self, size_t size) except? 0:
        cdef void* pointer = NULL
        cdef CUresult status
        with nogil:
            status = cu.cuMemHostAlloc(&pointer, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)
        check(status, b"cuMemHostAlloc")
        return <uintptr_t>pointer

    cdef int free(self, uintptr_t pointer) except -1:
        cdef CUresult status
        with nogil:
            status = cu.cuMemFreeHost(<void*>pointer)
        return check(status, b"cuMemFreeHost")

    @property
    def is_host_accessible(self):
        """bool: True."""
        return True

    @property
    def device_id(self):
        """int: not available, because page-locked host memory belongs to no device.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError("page-locked host memory belongs to no device, so it has no device_id")

    def __repr__(self):
        return "<LegacyPinnedMemoryResource>"

    def __reduce__(self):
        return type(self), (), getattr(self, "__dict__", None)      # which classes derived from this one have


cdef class SynchronousMemoryResource(UnpooledMemoryResource):
    """Device memory for devices without memory pools (``cuMemAlloc``).

    Parameters
    ----------
    device_id : int
        Ordinal of the device.

    Notes
    -----
    Threads may share it.
    """

    cdef int ordinal

    def __init__(self, device_id):
        self.ordinal = int(device_id)

    cdef int enter_context(self) except -1:
        initialise()
        return enter(primary_context(self.ordinal))     # whose default stream then is the one to wait for

    cdef uintptr_t make(self, size_t size) except? 0:
        cdef CUdeviceptr pointer = 0
        cdef CUresult status
        with nogil:
            status = cu.cuMemAlloc(&pointer, size)
        check(status, b"cuMemAlloc")
        return <uintptr_t>pointer

    cdef int free(self, uintptr_t pointer) except -1:
        cdef CUresult status
        with nogil:
            status = cu.cuMemFree(<CUdeviceptr>pointer)
        return check(status, b"cuMemFree")

    @property
    def is_host_accessible(self):
        """bool: False."""
        return False

    @property
    def device_id(self):
        """int: ordinal of the device."""
        return self.ordinal

    def __repr__(self):
        return f"<SynchronousMemoryResource device={self.ordinal}>"


cdef int _wait_for(StreamHandle stream) except -1:
    """Wait, then make the stream's context current if the thread has none; pass the result to leave()."""
    cdef CUresult status
    cdef CUstream native
    cdef int pushed = 0
    if stream is None:
        return 0
    native = stream.pointer
    if current_context() == NULL:
        pushed = enter(new_stream(stream).find_context())
    with nogil:
        status = cu.cuStreamSynchronize(native)
    if status != CUDA_SUCCESS:
        leave(pushed)
        check(status, b"cuStreamSynchronize")
    return pushed
