from cupola.core.program._library cimport Library


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
    cdef Library known_library(self)        # None until loaded
    cdef bytes find_symbol(self, object name, str what)


# module: bytes-like, or a path (str, PathLike); symbols: dict or None, kept as given.
cdef ObjectCode new_object_code(object module, str code_type, str name, object symbols)
