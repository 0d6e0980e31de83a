from cupola.core.base._cuda cimport CUjit_option, CUkernel, CUlibrary


cdef enum:
    LOG_SIZE = 8192


cdef class Library:
    """A loaded library, unloaded with the last ObjectCode or Kernel that uses it."""
    cdef CUlibrary pointer
    # The driver's log when it assembles PTX. With lazy loading that may happen as late as for the first kernel, so the
    # options and the log's buffer live as long as the library.
    cdef char* log
    cdef CUjit_option options[2]
    cdef void* option_values[2]
    cdef bytes heads                # of its kernels in PTX (_signatures.py), or None
    cdef list kernels               # addresses of those that were asked for
    cdef object __weakref__
    cdef int remember(self, CUkernel kernel) except -1


# The library of a kernel from get_kernel, if it is still loaded, else None.
cdef Library library_of(CUkernel kernel)
