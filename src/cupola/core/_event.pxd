from cupola.core._cuda cimport CUcontext, CUevent


cdef class Event:
    cdef CUevent pointer
    cdef CUcontext context
    cdef int device_id
    cdef bint closed
    cdef bint timing
    cdef bint blocking
    cdef object __weakref__
    cdef int require_open(self) except -1


cdef Event new_event(CUcontext context, int device_id, bint timing, bint blocking)  # NULL: the current context
