"""The CUDA driver for all compiled modules of core: the function table, and functions that check a status.

    from cupola.core.base._cuda cimport check, cu
    check(cu.cuStreamSynchronize(stream), "cuStreamSynchronize")
"""

from cupola.bindings.cdriver cimport *

cdef const cupola_driver_table* cu
cdef object driver_module       # cupola.bindings.driver, for the classes of handles

# What `check` and `report` do for a failure. Names of functions are the public ones, without a version suffix.
cdef int fail(CUresult status, const char* call) except -1
cdef int fail_because(CUresult status, const char* call, str detail) except -1     # with a sentence of our own
cdef int fail_with(CUresult status, const char* call, str reason) except -1        # which says all that there is to say
cdef void report_failure(CUresult status, const char* call) noexcept
# Whether the status means that nothing runs in the context any more: a fault made it unusable, or it was destroyed.
cdef bint context_is_broken(CUresult status) noexcept
cdef int not_raised(object error) except -1     # a CUDAError that was caught instead of reaching the user
cdef void forget_faults() noexcept      # a context was reset: the next fault is a new one

cdef inline int check(CUresult status, const char* call) except -1:
    """Raise CUDAError unless `status` is CUDA_SUCCESS."""
    if status != 0:
        return fail(status, call)
    return 0

cdef inline void report(CUresult status, const char* call) noexcept:
    """Like `check`, but issue a CUDAWarning, for destructors, where no exception can be raised."""
    if status != 0:
        report_failure(status, call)

# Call this after trying a function that older drivers lack: otherwise the next error would be mistaken for that one.
cdef void forget_missing() noexcept

# cuInit, once per process; CUDAError in a child that was forked after it.
cdef int initialise() except -1

# False when the interpreter is finalizing, and in a forked child: destructors must then not call the driver.
cdef bint driver_usable() noexcept nogil

cdef object closed_error(object instance)               # RuntimeError("<Class> has been closed")
cdef object gone_error(object instance)                 # CUDAError: its context was reset; or the name of a class
cdef object factory_error(str name, str factories)      # RuntimeError for classes that are not called directly
