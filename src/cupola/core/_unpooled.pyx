"""Memory resources without a pool: page-locked host memory, and device memory where there are no pools.

Their allocations are not ordered by any stream. So that freeing one does not pull memory away from under queued work,
``deallocate`` first waits for the stream that it is given.
"""

from libc.stdint cimport uintptr_t

from cupola.core._buffer cimport new_buffer
from cupola.core._context cimport current_context, enter, leave, primary_context
from cupola.core._cuda cimport (
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUDA_SUCCESS, CUdeviceptr, CUresult, CUstream, check, cu,
    initialise,
)
from cupola.core._memory_resource cimport MemoryResource, byte_count
from cupola.core._stream cimport StreamHandle, default_stream, new_stream, stream_argument


cdef class LegacyPinnedMemoryResource(MemoryResource):
    """Page-locked host memory outside any pool, which every CUDA version has.

    The host and all devices can access it at the same address. Allocating is slow and synchronises; prefer
    :class:`PinnedMemoryResource` where host pools are supported.
    """

    def allocate(self, size, *, stream=None):
        """Allocate page-locked memory (``cuMemHostAlloc``).

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
        cdef void* pointer = NULL
        cdef size_t count = byte_count(size)
        cdef CUresult status
        if stream is not None:
            stream_argument(stream)
        if count != 0:
            initialise()
            with nogil:
                status = cu.cuMemHostAlloc(&pointer, count, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)
            check(status, b"cuMemHostAlloc")
        try:
            return new_buffer(<uintptr_t>pointer, count, self, default_stream().native)
        except:
            if pointer != NULL:
                cu.cuMemFreeHost(pointer)
            raise

    def deallocate(self, ptr, size_t size, *, stream=None):
        """Wait for `stream`, if given, then free the memory (``cuMemFreeHost``).

        Parameters
        ----------
        ptr : int
            Address.
        size : int
            Bytes.
        stream : Stream or GraphBuilder, optional
            The stream that may still use the memory.
        """
        _free_host(<uintptr_t>int(ptr), None if stream is None else stream_argument(stream).native)

    cdef int release(self, uintptr_t pointer, size_t size, StreamHandle stream) except -1:
        if type(self) is not LegacyPinnedMemoryResource:
            return MemoryResource.release(self, pointer, size, stream)
        return _free_host(pointer, stream)

    @property
    def is_device_accessible(self):
        """bool: True."""
        return True

    @property
    def is_host_accessible(self):
        """bool: True."""
        return True

    @property
    def device_id(self):
        """int: not there, since page-locked host memory belongs to no device.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError("page-locked host memory belongs to no device, so it has no device_id")


cdef class SynchronousMemoryResource(MemoryResource):
    """Device memory for devices without memory pools (``cuMemAlloc``, ``cuMemFree``).

    Parameters
    ----------
    device_id : int
        Ordinal of the device.
    """

    cdef int ordinal

    def __init__(self, device_id):
        self.ordinal = int(device_id)

    def allocate(self, size, *, stream=None):
        """Allocate device memory (``cuMemAlloc``).

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
        cdef CUdeviceptr pointer = 0
        cdef size_t count = byte_count(size)
        cdef CUresult status
        cdef int pushed
        if stream is not None:
            stream_argument(stream)
        if count != 0:
            initialise()
            pushed = enter(primary_context(self.ordinal))
            try:
                with nogil:
                    status = cu.cuMemAlloc(&pointer, count)
                check(status, b"cuMemAlloc")
                return self.wrap(pointer, count)    # the default stream is that of the device
            finally:
                leave(pushed)
        return self.wrap(0, 0)

    cdef wrap(self, CUdeviceptr pointer, size_t count):
        try:
            return new_buffer(<uintptr_t>pointer, count, self, default_stream().native if count else None)
        except:
            if pointer != 0:
                cu.cuMemFree(pointer)
            raise

    def deallocate(self, ptr, size_t size, *, stream=None):
        """Wait for `stream`, if given, then free the memory (``cuMemFree``).

        Parameters
        ----------
        ptr : int
            Address.
        size : int
            Bytes.
        stream : Stream or GraphBuilder, optional
            The stream that may still use the memory.
        """
        _free_device(<uintptr_t>int(ptr), None if stream is None else stream_argument(stream).native)

    cdef int release(self, uintptr_t pointer, size_t size, StreamHandle stream) except -1:
        return _free_device(pointer, stream)

    @property
    def is_device_accessible(self):
        """bool: True."""
        return True

    @property
    def is_host_accessible(self):
        """bool: False."""
        return False

    @property
    def device_id(self):
        """int: ordinal of the device."""
        return self.ordinal


cdef int _free_host(uintptr_t pointer, StreamHandle stream) except -1:
    cdef CUresult status
    cdef int pushed
    if pointer == 0:
        return 0
    pushed = _wait_for(stream)
    with nogil:
        status = cu.cuMemFreeHost(<void*>pointer)
    leave(pushed)
    return check(status, b"cuMemFreeHost")


cdef int _free_device(uintptr_t pointer, StreamHandle stream) except -1:
    cdef CUresult status
    cdef int pushed
    if pointer == 0:
        return 0
    pushed = _wait_for(stream)
    with nogil:
        status = cu.cuMemFree(<CUdeviceptr>pointer)
    leave(pushed)
    return check(status, b"cuMemFree")


cdef int _wait_for(StreamHandle stream) except -1:
    """Wait, and lend the stream's context to a thread that has none, for the release; pass the result to leave()."""
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
