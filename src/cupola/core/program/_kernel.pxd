from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cupola.core.base._cuda cimport CUkernel
from cupola.core.program._library cimport Library


# The kind of value that the fast path of a launch passes for a parameter.
cdef enum:
    TAKES_POINTER = 1
    TAKES_INT = 2           # a Python int from least() to most()
    TAKES_DOUBLE = 4        # a Python float
    TAKES_FLOAT = 8         # the same, as float


cdef struct Parameter:      # small: a launch reads one for each argument
    uint32_t offset
    uint32_t size           # 0: not known
    uint8_t takes           # of the above
    uint8_t kind            # INTEGER, FLOATING or UNKNOWN of _signatures.py
    uint8_t signed          # and not unsigned: of 8 bytes, whose most() is that of an int64 either way
    uint8_t bits_below      # of the least number, 0 when there are none below zero
    uint8_t bits_above      # of the greatest
    uint8_t declared        # whether the code tells the type of the elements below, and not only the source
    uint16_t elements       # of arrays that a pointer takes, bits of base/_elements.pxd


cdef inline int64_t least(const Parameter* parameter) noexcept:
    return <int64_t>(~<uint64_t>0 << parameter.bits_below) if parameter.bits_below else 0


cdef inline int64_t most(const Parameter* parameter) noexcept:
    return <int64_t>((<uint64_t>1 << parameter.bits_above) - 1)


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
    cdef object attached            # what a room above keeps with the kernel, or None
    cdef object __weakref__
    cdef int read_layout(self) except -1
    cdef str find_name(self)        # for messages


cdef Kernel new_kernel(CUkernel pointer, Library library, str name)

# Fill in what follows from the kind and the size: what a plain number is passed as.
cdef void settle_parameter(Parameter* parameter, bint signed, bint unsigned) noexcept

# The parameters, read if they are not yet; NotImplementedError when the driver cannot tell.
cdef int require_layout(Kernel kernel) except -1
