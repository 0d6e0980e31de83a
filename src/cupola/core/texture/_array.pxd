from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cupola.core.base._cuda cimport CUcontext
from cupola.core.base._shared cimport Alone, begin_alone, end_alone
from cupola.core.texture._native cimport NativeObject


cdef class OpaqueArray:
    cdef NativeObject native        # None once closed
    cdef readonly tuple shape
    cdef readonly object format
    cdef readonly int num_channels
    cdef readonly int element_bytes
    cdef readonly bint is_surface_load_store
    cdef int device_id
    cdef inline NativeObject known_native(self):        # None once closed
        cdef Alone alone
        cdef NativeObject native
        begin_alone(&alone, <PyObject*>self)
        native = self.native
        end_alone(&alone)
        return native
    cdef NativeObject open_native(self)     # RuntimeError once closed, CUDAError once gone


cdef class MipmappedArray:
    cdef NativeObject native
    cdef readonly tuple shape
    cdef readonly object format
    cdef readonly int num_channels
    cdef readonly int num_levels
    cdef readonly bint is_surface_load_store
    cdef int device_id
    cdef inline NativeObject known_native(self):        # None once closed
        cdef Alone alone
        cdef NativeObject native
        begin_alone(&alone, <PyObject*>self)
        native = self.native
        end_alone(&alone)
        return native
    cdef NativeObject open_native(self)


# An array that the driver has already: not destroyed in the end, `needs` is kept as long.
cdef OpaqueArray borrowed_array(
    uint64_t handle, CUcontext context, int device_id, object needs, tuple shape, object format, int num_channels,
    bint is_surface_load_store
)
