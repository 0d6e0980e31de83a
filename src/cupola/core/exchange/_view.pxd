from cupola.core.exchange._strided_memory cimport StridedMemory


cdef class StridedMemoryView(StridedMemory):
    cdef int apply(self, object layout, object dtype) except -1
