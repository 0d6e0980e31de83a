from libc.stdint cimport uintptr_t

from cupola.core._memory_resource cimport MemoryResource


cdef class Allocation:
    """A piece of memory and how to give it back, shared by a Buffer and by whatever else uses the memory."""
    cdef readonly uintptr_t pointer
    cdef readonly size_t size
    cdef readonly MemoryResource resource   # frees the memory; None: nobody does
    cdef readonly object owner              # kept alive as long as this; None when there is a resource
    cdef object stream                      # Stream that orders the release, None for host-only resources
    cdef void* context                      # CUcontext that a default stream stands for, else NULL
    cdef signed char kind                   # from the pointer's attributes; KIND_UNKNOWN until asked
    cdef int device


cdef class Buffer:
    # The launch path reads `pointer` inline; it is 0 once the buffer is closed (check `allocation is None`).
    cdef uintptr_t pointer
    cdef size_t nbytes
    cdef Allocation allocation              # None once closed
    cdef object __weakref__
    cdef Allocation open_allocation(self)   # RuntimeError once closed


cdef Buffer new_buffer(uintptr_t pointer, size_t size, MemoryResource resource, object stream)
