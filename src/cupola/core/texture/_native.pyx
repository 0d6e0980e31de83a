"""Native arrays, textures and surfaces, each with what it must not outlive."""

from cpython.pystate cimport PyThreadState

from cupola.core.base._cuda cimport (
    CUDA_ERROR_NOT_PERMITTED, CUDA_SUCCESS, CUarray, CUcontext, CUmipmappedArray, CUresult, CUsurfObject, CUtexObject,
    cu, driver_usable, report,
)
from cupola.core.base._gil cimport let_others_run, take_back
from cupola.core.device._context cimport is_gone, resets
from cupola.core.device._later cimport in_host_function, let_go_later

cimport cython


# `needs` stays when the collector takes a cycle apart: it goes behind the object that needs it.
@cython.no_gc_clear
@cython.freelist(8)
cdef class NativeObject:

    def __dealloc__(self):
        if self.handle != 0 and self.kind != LEVEL and driver_usable() and not self.is_gone():
            _destroy(self)

    cdef bint is_gone(self) noexcept:
        return is_gone(self.context, self.born)


cdef NativeObject new_native(Kind kind, uint64_t handle, CUcontext context, int device_id, object needs):
    cdef NativeObject native = NativeObject.__new__(NativeObject)
    native.kind, native.handle, native.context, native.device_id = kind, handle, context, device_id
    native.born, native.needs = resets, needs
    return native


cdef void _destroy(NativeObject self) noexcept:
    cdef CUresult status = CUDA_ERROR_NOT_PERMITTED
    cdef const char* name = b""
    cdef NativeObject remains
    if not in_host_function():
        status = _call(self, &name)
    if status != CUDA_ERROR_NOT_PERMITTED:
        report(status, name)
        return
    remains = NativeObject.__new__(NativeObject)
    remains.kind, remains.handle, remains.context, remains.device_id = (
        self.kind, self.handle, self.context, self.device_id
    )
    remains.born, remains.needs = self.born, self.needs
    let_go_later(remains)


cdef CUresult _call(NativeObject self, const char** name) noexcept:
    """Destroy it in its context: the thread may have none, or another device's."""
    cdef CUcontext current = NULL
    cdef CUresult status = cu.cuCtxGetCurrent(&current)
    cdef PyThreadState* others
    cdef bint pushed = status == CUDA_SUCCESS and current != self.context
    if pushed:
        name[0] = b"cuCtxPushCurrent"
        status = cu.cuCtxPushCurrent(self.context)
        if status != CUDA_SUCCESS:
            return status
    if self.kind == TEXTURE:        # waits for no work of the device
        name[0] = b"cuTexObjectDestroy"
        others = let_others_run()
        status = cu.cuTexObjectDestroy(<CUtexObject>self.handle)
        take_back(others)
    else:
        with nogil:
            status = _destroy_other(self, name)
    if pushed:
        cu.cuCtxPopCurrent(&current)
    return status


cdef CUresult _destroy_other(NativeObject self, const char** name) noexcept nogil:
    if self.kind == ARRAY:
        name[0] = b"cuArrayDestroy"
        return cu.cuArrayDestroy(<CUarray>self.handle)
    if self.kind == MIPMAPPED:
        name[0] = b"cuMipmappedArrayDestroy"
        return cu.cuMipmappedArrayDestroy(<CUmipmappedArray>self.handle)
    name[0] = b"cuSurfObjectDestroy"
    return cu.cuSurfObjectDestroy(<CUsurfObject>self.handle)
