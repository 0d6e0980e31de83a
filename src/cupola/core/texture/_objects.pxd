from cupola.core.texture._native cimport NativeObject
from cupola.core.texture._resource cimport ResourceDescriptor


cdef class TextureObject:
    cdef NativeObject native        # None once closed
    cdef ResourceDescriptor described
    cdef object chosen              # its options, None for the default ones that nobody has asked for
    cdef int device_id


cdef class SurfaceObject:
    cdef NativeObject native
    cdef ResourceDescriptor described
    cdef int device_id
