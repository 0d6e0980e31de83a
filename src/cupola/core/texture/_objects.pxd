from cpython.object cimport PyObject

from cupola.core.base._shared cimport Alone, begin_alone, end_alone
from cupola.core.texture._native cimport NativeObject
from cupola.core.texture._resource cimport ResourceDescriptor


cdef class TextureObject:
    cdef NativeObject native        # None once closed
    cdef ResourceDescriptor described
    cdef object chosen              # its options, None for the default ones that nobody has asked for
    cdef int device_id
    cdef inline NativeObject known_native(self):        # None once closed
        cdef Alone alone
        cdef NativeObject native
        begin_alone(&alone, <PyObject*>self)
        native = self.native
        end_alone(&alone)
        return native


cdef class SurfaceObject:
    cdef NativeObject native
    cdef ResourceDescriptor described
    cdef int device_id
    cdef inline NativeObject known_native(self):        # None once closed
        cdef Alone alone
        cdef NativeObject native
        begin_alone(&alone, <PyObject*>self)
        native = self.native
        end_alone(&alone)
        return native
