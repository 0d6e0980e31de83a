from cupola.core.base._cuda cimport CUcontext
from cupola.core.device._stream cimport StreamHandle


cdef class User:
    """A stream that has used memory."""
    cdef StreamHandle stream
    cdef CUcontext context          # the one that `stream` stands in, if that is a default stream, else NULL
    cdef object green               # what keeps that context, if it is a green one of this package
    cdef unsigned long born         # `resets` at that time


cdef class Users:
    cdef User writer                # whose work made the contents; None: nobody who is known
    cdef tuple readers              # those who have read them since
    cdef int before(self, StreamHandle stream, bint writes) except -1
    cdef bint before_release(self, StreamHandle stream) except -1
    cdef bint is_busy(self) except -1
    cdef int sync(self) except -1
    cdef tuple all(self)

cdef bint is_recorded(StreamHandle stream) noexcept

cdef Users begin_users(StreamHandle stream, CUcontext context, unsigned long born)
