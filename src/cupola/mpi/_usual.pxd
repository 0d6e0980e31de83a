"""Messages of the most frequent kinds, and which messages are usual."""

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport CUdeviceptr
from cupola.mpi._staging cimport Stages

cdef extern from "library.h" nogil:
    ctypedef struct Message "struct mpi_message":
        const void* out
        void* into "in"
        int out_count, in_count, to, to_tag, source "from", source_tag "from_tag"
        uintptr_t out_type, in_type, op, comm
        void* status


cdef struct Way:        # of one buffer
    CUdeviceptr device
    uintptr_t host          # what MPI uses
    Py_ssize_t size, itemsize
    const uintptr_t* memory # the address of its Buffer, 0 once that is closed
    bint reads, writes, is_staged, is_closed


cdef struct Begun:      # a message with a time limit
    uintptr_t requests[2]
    int count, done


cdef class Settings:
    cdef object plain               # the communicator of mpi4py
    cdef uintptr_t place            # of its handle
    cdef int rank, size             # once they are known: rank is not negative, and the communicator is of one group
    cdef public object stream, timeout
    cdef public Py_ssize_t part
    cdef public Stages _stages

    cdef bint has_rank(self) except -1
    cdef bint look(
        self, int kind, object sent, object got, Message* message, object op, object status, Way* out, Way* into
    ) except -1
    cdef bint carry(self, int kind, object sent, object got, Message* message, object op, object status) except -1


cdef bint is_usual(Stages stages, object item, bint writes) except -1
