"""Destructors in host functions, where the driver must not be called.

A host function, such as the callback of a graph, may release any object, and the garbage collector may run in it. CUDA
forbids calls of the driver there, and refuses them with CUDA_ERROR_NOT_PERMITTED (CUDA Driver API, cuLaunchHostFunc).
So the work of a destructor is left to a separate object, the *remains*. The destructor of the remains tries again: on
the main thread, where Python runs pending calls, or in the next allocation on any thread, whichever comes first.
"""

from cpython.exc cimport PyErr_WriteUnraisable
from cpython.ref cimport Py_INCREF

from cupola.core.base._cuda cimport CUDA_ERROR_NOT_PERMITTED, CUcontext, CUresult, cu, driver_usable, report
from cupola.core.base._keep cimport drop_released, keep, release_kept
from cupola.core.base._shared cimport add_shared
from cupola.core.device._context cimport is_gone

cdef extern from *:
    """
    static _Thread_local int cupola_depth;      /* of host functions on this thread */
    """
    int cupola_depth


cdef void begin_host_function() noexcept:
    global cupola_depth
    add_shared(&host_functions, 1)
    cupola_depth += 1


cdef void end_host_function() noexcept:
    global cupola_depth
    add_shared(&host_functions, -1)
    cupola_depth -= 1


cdef bint runs_host_function() noexcept:
    return cupola_depth != 0


cdef bint refused_here() noexcept:
    cdef CUcontext context
    return in_host_function() or cu.cuCtxGetCurrent(&context) == CUDA_ERROR_NOT_PERMITTED


cdef class Remains:
    """A native object that is still to be destroyed."""
    cdef Destroy call
    cdef void* handle
    cdef const char* name
    cdef CUcontext context
    cdef unsigned long born

    def __dealloc__(self):
        if driver_usable() and not is_gone(self.context, self.born):
            destroy(self.call, self.handle, self.name, self.context, self.born)


cdef void destroy(Destroy call, void* handle, const char* name, CUcontext context, unsigned long born) noexcept:
    cdef CUresult status = CUDA_ERROR_NOT_PERMITTED
    if not in_host_function():
        with nogil:
            status = call(handle)
    after_destroy(status, call, handle, name, context, born)


cdef void after_destroy(
    CUresult status, Destroy call, void* handle, const char* name, CUcontext context, unsigned long born
) noexcept:
    cdef Remains remains
    if status != CUDA_ERROR_NOT_PERMITTED:
        report(status, name)
        return
    remains = Remains.__new__(Remains)
    remains.call, remains.handle, remains.name, remains.context, remains.born = call, handle, name, context, born
    let_go_later(remains)


cdef void let_go_later(object remains) noexcept:
    global waiting
    try:
        release_kept(keep(remains, NULL))
        waiting = True
    except MemoryError:
        PyErr_WriteUnraisable(remains)
        Py_INCREF(remains)      # else its destructor would come here again


cdef void let_go_now() noexcept:
    global waiting
    waiting = False
    drop_released()
