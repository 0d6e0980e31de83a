from cupola.core.base._cuda cimport CUcontext, CUresult

ctypedef CUresult (*Destroy)(void* handle) noexcept nogil

# Host functions written in Python that run now, on any thread; each stands between these two.
cdef int host_functions
cdef void begin_host_function() noexcept
cdef void end_host_function() noexcept
cdef bint runs_host_function() noexcept

cdef inline bint in_host_function() noexcept:
    """Whether this thread runs one, so that the driver may not be called."""
    return host_functions != 0 and runs_host_function()

# Whether this thread runs a host function, also one that some other library made. It asks the driver.
cdef bint refused_here() noexcept

# Destroy a native object of `context` (NULL: of none), made when `resets` was `born`; what fails is a CUDAWarning.
cdef void destroy(Destroy call, void* handle, const char* name, CUcontext context, unsigned long born) noexcept
# The same where the call was made already, with this status.
cdef void after_destroy(
    CUresult status, Destroy call, void* handle, const char* name, CUcontext context, unsigned long born
) noexcept

# Let go of an object, whose destructor then does what cannot be done here, when the driver may be called again.
cdef void let_go_later(object remains) noexcept

# Whether something waits for that; and let go of it now. Done by itself soon after, unless Python is very busy.
cdef bint waiting
cdef void let_go_now() noexcept
