"""Host callbacks in graphs."""

from cupola.core._cuda cimport CUhostFn


cdef struct HostCall:
    CUhostFn function
    void* data
    void* memory            # the copy of the user's data that `data` points to, from malloc, or NULL


# What the driver shall call for `fn`, and what must be kept alive for it: the returned object. TypeError, ValueError.
cdef object prepare_callback(object fn, object user_data, HostCall* call)
