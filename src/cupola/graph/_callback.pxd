"""Host callbacks in graphs."""

from cupola.core.base._cuda cimport CUhostFn


cdef struct HostCall:
    CUhostFn function
    void* data


# What the driver shall call for `fn`, and what must be kept alive for it: the returned objects, `fn` first.
# TypeError, ValueError.
cdef tuple prepare_callback(object fn, object user_data, HostCall* call)

# The Python callable that a node calls, or None when it calls anything else.
cdef object callable_of(CUhostFn function, void* data)

cdef bint is_ctypes_function(object fn)
