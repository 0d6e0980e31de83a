from libc.stdint cimport uintptr_t


cdef class MemoryResource:
    cdef object __weakref__
    # Gives `size` bytes at `pointer` back, ordered behind the work in `stream`. Resources written in Python are
    # reached through their `deallocate`; the ones that ship with cupola override this.
    cdef int release(self, uintptr_t pointer, size_t size, object stream) except -1
