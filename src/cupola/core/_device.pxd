from cupola.core._context cimport Context
from cupola.core._cuda cimport CUdevice


cdef class Device:
    cdef readonly int device_id
    cdef CUdevice ordinal
    cdef Context current            # last made current through this object, None before set_current()
    cdef object memory              # the memory resource, None until asked for
    cdef object cached_properties
    cdef object cached_capability
    cdef object cached_name
    cdef object cached_uuid
    cdef object __weakref__
    cdef Context require_context(self)      # CUDAError before set_current()
    cpdef int attribute(self, int number, int fallback) except? -1   # cuDeviceGetAttribute


cdef Device get_device(int device_id)       # this thread's object; ValueError out of range
cdef Device get_current_device()            # of the current context, else device 0
