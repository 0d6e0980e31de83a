from libc.stdint cimport uint8_t, uint32_t

from cupola.core._cuda cimport CUkernel
from cupola.core._object_code cimport Library


# Which plain Python numbers the fast path of a launch converts for a parameter, and to what.
cdef enum:
    TAKES_INT64 = 1         # and pointers
    TAKES_INT32 = 2
    TAKES_DOUBLE = 4
    TAKES_FLOAT = 8


cdef struct Parameter:
    uint32_t offset
    uint32_t size
    uint8_t takes           # of the above
    uint8_t kind            # INTEGER, FLOATING or UNKNOWN of _signatures.py


# The kinds of _signatures.py.
cdef enum:
    UNKNOWN = 0
    INTEGER = 1
    FLOATING = 2


cdef enum:
    LAYOUT_UNKNOWN = -2             # the driver cannot tell (before 12.4)
    LAYOUT_UNREAD = -1


cdef class Kernel:
    cdef CUkernel pointer
    cdef Library library            # keeps the code loaded; None when somebody else does
    cdef object owner               # ObjectCode given to from_handle, or None
    cdef Parameter* parameters      # the kernel's own layout, read at the first launch
    cdef int parameter_count        # or one of the constants above
    cdef object known_attributes
    cdef object known_occupancy
    cdef str known_name
    cdef object __weakref__
    cdef int read_layout(self) except -1
    cdef str find_name(self)        # for messages


cdef Kernel new_kernel(CUkernel pointer, Library library, str name)
