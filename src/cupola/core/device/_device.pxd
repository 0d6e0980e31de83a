from cupola.core.base._cuda cimport CUcontext
from cupola.core.device._context cimport Context


cdef class Device:
    cdef readonly int device_id     # also the CUdevice: the driver's handle is the ordinal
    cdef Context current            # last made current through this object, None before set_current()
    cdef object memory              # the memory resource, None until asked for
    cdef bint memory_is_own         # found by this object, not set by the user
    cdef unsigned long born         # `resets` when set_current() was last called
    cdef object known_properties
    cdef object known_resources
    cdef object known_capability
    cdef str known_name
    cdef str known_uuid
    cdef object __weakref__
    cdef Context require_context(self)                                  # CUDAError before set_current()
    cdef int read_attribute(self, int number, int fallback) except? -1  # cuDeviceGetAttribute


cdef Device get_device(Py_ssize_t device_id)    # this thread's object; ValueError out of range
cdef Device get_current_device()                # of the current context, else device 0

# How Device.create_texture_object does it, which is in a module above (texture/_objects.pyx); NULL until that is imported.
cdef object (*make_texture)(int device_id, CUcontext context, object resource, object options)
