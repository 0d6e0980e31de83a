"""Host callbacks in graphs."""

from cupola.core.base._cuda cimport CUhostFn


cdef struct HostCall:
    CUhostFn function
    void* data


# The function that the driver calls for `fn`, and the objects that must be kept alive for it, `fn` first.
# TypeError, ValueError.
cdef tuple prepare_callback(object fn, object user_data, HostCall* call)

# The Python callable that a node calls, or None when it calls anything else.
cdef object callable_of(CUhostFn function, void* data)

cdef bint is_ctypes_function(object fn)
