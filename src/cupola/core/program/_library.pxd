from cupola.core.base._cuda cimport CUjit_option, CUkernel, CUlibrary


cdef enum:
    LOG_SIZE = 8192


cdef class Library:
    """A loaded library, unloaded when the last ObjectCode or Kernel that uses it lets go."""
    cdef CUlibrary pointer
    # What the driver says when it assembles PTX. It may do so as late as for the first kernel (lazy loading), so the
    # options that it was given, and the buffer that they name, live as long as the library.
    cdef char* log
    cdef CUjit_option options[2]
    cdef void* option_values[2]
    cdef bytes heads                # of its kernels in PTX (_signatures.py), or None
    cdef list kernels               # addresses of those that were asked for
    cdef int remember(self, CUkernel kernel) except -1


# The one that a kernel is of, if it was asked for and is still loaded, else None.
cdef Library library_of(CUkernel kernel)
