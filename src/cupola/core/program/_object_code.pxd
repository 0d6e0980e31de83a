from cupola.core.base._cuda cimport CUjit_option, CUlibrary


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


cdef class ObjectCode:
    cdef readonly object code       # the object given, or the path as str
    cdef readonly str code_type
    cdef readonly str name
    cdef object symbols             # name expression -> mangled name, or None
    cdef bytes heads                # of its kernels in PTX, where that is known and not the code itself
    cdef Library library            # None until loaded
    cdef object lock
    cdef object __weakref__
    cdef Library load(self)         # loads at the first call
    cdef bytes find_symbol(self, object name, str what)


# module: bytes-like, or a path (str, PathLike); symbols: dict or None, kept as given.
cdef ObjectCode new_object_code(object module, str code_type, str name, object symbols)
