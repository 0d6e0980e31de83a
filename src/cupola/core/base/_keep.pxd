from cupola.core.base._cuda cimport CUresult, CUstream

# A reference to `value` (and to `memory`, from malloc; NULL: none) that release_kept gives back. On failure the memory
# is freed.
cdef void* keep(object value, void* memory) except NULL
cdef void release_kept(void* kept) noexcept nogil       # on any thread, with or without the GIL; takes no lock
# The same as a CUstreamCallback, which the driver calls when the work before it is over, or has been lost in a fault.
cdef void release_kept_behind(CUstream stream, CUresult status, void* kept) noexcept nogil
cdef void forget_kept(void* kept) noexcept              # at once, where the driver has not seen it

# Drop the objects that were released meanwhile. This also happens automatically soon after, unless the interpreter is
# very busy.
cdef void drop_released() noexcept
