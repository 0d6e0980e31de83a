"""Host callbacks in graphs: Python callables and C functions given through ctypes."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from libc.stdint cimport uintptr_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

from cupola.core._cuda cimport CUhostFn, driver_usable


cdef object prepare_callback(object fn, object user_data, HostCall* call):
    call.data = call.memory = NULL
    if _is_ctypes_function(fn):
        _check_prototype(fn)
        _set_user_data(user_data, call)
        import ctypes

        call.function = <CUhostFn><uintptr_t>ctypes.cast(fn, ctypes.c_void_p).value
        return fn
    if not callable(fn):
        raise TypeError(f"callback must be callable, got {type(fn).__name__}")
    if user_data is not None:
        raise ValueError("user_data is for ctypes functions; a Python callable can carry its data itself")
    call.function = _call_python
    call.data = <void*>fn
    return fn


cdef void _call_python(void* data) noexcept nogil:
    # A thread that asks for the GIL while the interpreter goes down never gets it.
    if driver_usable():
        _call_with_gil(data)


cdef void _call_with_gil(void* data) noexcept with gil:
    (<object>data)()        # an exception goes to sys.unraisablehook, and the graph goes on


cdef bint _is_ctypes_function(object fn):
    import sys

    ctypes = sys.modules.get("_ctypes")
    return ctypes is not None and isinstance(fn, ctypes.CFuncPtr)


cdef int _check_prototype(object fn) except -1:
    import ctypes

    argtypes = fn.argtypes
    if fn.restype is None and argtypes is not None and tuple(argtypes) == (ctypes.c_void_p,):
        return 0
    names = "not declared" if argtypes is None else ", ".join(kind.__name__ for kind in argtypes) or "none"
    result = "None" if fn.restype is None else getattr(fn.restype, "__name__", fn.restype)
    raise TypeError(
        f"a ctypes callback must be declared as void(void *), that is CFUNCTYPE(None, c_void_p); "
        f"this one has restype {result} and argtypes {names}"
    )


cdef int _set_user_data(object user_data, HostCall* call) except -1:
    cdef Py_buffer view
    if user_data is None:
        return 0
    if isinstance(user_data, int):
        call.data = <void*><uintptr_t>user_data
        return 0
    if not PyObject_CheckBuffer(user_data):
        raise TypeError(f"user_data must be None, an address or bytes-like, got {type(user_data).__name__}")
    PyObject_GetBuffer(user_data, &view, PyBUF_SIMPLE)
    if view.len > 0:
        call.memory = malloc(view.len)
        if call.memory != NULL:
            memcpy(call.memory, view.buf, view.len)
            call.data = call.memory
    PyBuffer_Release(&view)
    if call.memory == NULL and view.len > 0:
        raise MemoryError()
    return 0
