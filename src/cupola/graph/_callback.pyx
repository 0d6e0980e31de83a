"""Host callbacks in graphs: Python callables and C functions given through ctypes."""

import sys

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.exc cimport PyErr_WriteUnraisable
from cpython.ref cimport PyObject, Py_XDECREF
from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport CUhostFn, driver_usable
from cupola.core.device._later cimport begin_host_function, end_host_function


cdef extern from "Python.h":
    # Without Cython's own check, which would print the exception twice and name a function of this module.
    PyObject* PyObject_CallNoArgs(PyObject* function)


cdef tuple prepare_callback(object fn, object user_data, HostCall* call):
    call.data = NULL
    if is_ctypes_function(fn):
        _check_prototype(fn)
        copied = _read_user_data(user_data, call)
        import ctypes

        call.function = <CUhostFn><uintptr_t>ctypes.cast(fn, ctypes.c_void_p).value
        return fn, copied
    if not callable(fn):
        raise TypeError(f"callback must be callable, got {type(fn).__name__}")
    if user_data is not None:
        raise ValueError("user_data is for ctypes functions; a Python callable can carry its data itself")
    call.function = _call_python
    call.data = <void*>fn
    return (fn,)


cdef object callable_of(CUhostFn function, void* data):
    return <object>data if function == <CUhostFn>_call_python and data != NULL else None


cdef void _call_python(void* data) noexcept nogil:
    # A thread that asks for the GIL while the interpreter finalizes never gets it.
    if driver_usable():
        _call_with_gil(data)


cdef void _call_with_gil(void* data) noexcept with gil:
    cdef object function = <object>data     # a reference for the time of the call, in which the graph's may go
    cdef PyObject* result
    begin_host_function()
    result = PyObject_CallNoArgs(<PyObject*>function)
    if result == NULL:
        PyErr_WriteUnraisable(function)     # to sys.unraisablehook, and the graph goes on
    Py_XDECREF(result)
    end_host_function()


cdef bint is_ctypes_function(object fn):
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


cdef object _read_user_data(object user_data, HostCall* call):
    """Set what the function is called with; returns the copy that this points to, or None."""
    if user_data is None:
        return None
    if isinstance(user_data, int):
        call.data = <void*><uintptr_t>user_data
        return None
    try:
        # Not bytes: the function may write there, and the interpreter shares short bytes objects.
        copied = bytearray(memoryview(user_data).cast("B"))
    except TypeError:
        raise TypeError(
            f"user_data must be None, an address or bytes-like, got {type(user_data).__name__}"
        ) from None
    if copied:
        call.data = PyByteArray_AS_STRING(copied)
    return copied
