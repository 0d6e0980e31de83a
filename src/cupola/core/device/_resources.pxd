from cupola.core.base._cuda cimport CUdevResource


cdef class SMResource:
    cdef CUdevResource raw
    cdef unsigned int least         # of these the driver tells only what a device or context has
    cdef unsigned int alignment
    cdef bint dry                   # made by a dry run: no resource of the driver is behind it
    cdef object lock
    cdef object __weakref__


cdef class WorkqueueResource:
    cdef CUdevResource raw
    cdef object __weakref__


cdef class DeviceResources:
    cdef int device_id              # of a device ...
    cdef object context             # ... or a Context of our own, which keeps a green one
    cdef object __weakref__


cdef class Raw:
    """Resources one after the other, as the driver takes them."""
    cdef CUdevResource* items
    cdef unsigned int count

