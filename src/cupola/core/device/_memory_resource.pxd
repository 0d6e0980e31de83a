from libc.stdint cimport uintptr_t

from cupola.core.device._stream cimport StreamHandle


cdef class MemoryResource:
    cdef object __weakref__
    cdef bint in_graph      # its memory is allocated and freed by a graph, which need not keep buffers alive
    cdef bint shared        # with other processes: it is made for that, or came from one
    cdef bint direct        # `allocate` is cupola's own, and no more than `obtain`, which needs no way through Python
    cdef object obtain(self, object size, object stream)
    # Free `size` bytes at `pointer`, ordered behind the work in `stream` (None: the default stream). For resources
    # written in Python this calls their `deallocate`; cupola's own override it.
    cdef int release(self, uintptr_t pointer, size_t size, StreamHandle stream) except -1


# The `size` of an allocation, in bytes; TypeError, OverflowError.
cdef size_t byte_count(object size) except? <size_t>-1
