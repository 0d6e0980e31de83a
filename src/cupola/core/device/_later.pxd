from cupola.core.base._cuda cimport CUcontext, CUresult

ctypedef CUresult (*Destroy)(void* handle) noexcept nogil

# The number of host functions written in Python that are running, on any thread; each of them calls these two around
# its body.
cdef int host_functions
cdef void begin_host_function() noexcept
cdef void end_host_function() noexcept
cdef bint runs_host_function() noexcept

cdef inline bint in_host_function() noexcept:
    """Whether this thread runs one, so the driver must not be called."""
    return host_functions != 0 and runs_host_function()

# Whether this thread runs a host function, also one that some other library made. It asks the driver.
cdef bint refused_here() noexcept

# Destroy a native object of `context` (NULL: of none), made when `resets` was `born`; what fails is a CUDAWarning.
cdef void destroy(Destroy call, void* handle, const char* name, CUcontext context, unsigned long born) noexcept
# The same where the call was made already, with this status.
cdef void after_destroy(
    CUresult status, Destroy call, void* handle, const char* name, CUcontext context, unsigned long born
) noexcept

# Release an object later, when the driver may be called again: its destructor does what cannot be done now.
cdef void let_go_later(object remains) noexcept

# Whether objects wait for that; and release them now. This also happens automatically soon after, unless Python is
# very busy.
cdef bint waiting
cdef void let_go_now() noexcept
