"""Pinned memory that messages pass through."""

from libc.stdint cimport uintptr_t

from cupola.core.device._stream cimport Stream
from cupola.core.memory._buffer cimport Buffer


cdef class Stage:
    cdef readonly object buffer
    cdef readonly object bytes
    cdef uintptr_t place
    cdef int order              # it has SMALLEST << order bytes
    cdef Stream queue           # with the copies that use it; None: there are none
    cdef object last_use        # an event behind them, once another stream wants it
    cdef object seen            # what `flat` returned last, of this type and size
    cdef object seen_type
    cdef Py_ssize_t seen_size
    cdef object flat(self, object dtype, Py_ssize_t size)           # its first bytes as a row of elements
    cdef bint is_free_for(self, Stream queue) except -1


cdef class Stages:
    cdef list idle              # of SMALLEST << n bytes in the list n
    cdef object resource        # the last one that was seen to be of a device
    cdef object status          # a spare MPI.Status, or None
    cdef Stage find(self, Py_ssize_t size, Stream queue)
    cdef int put(self, Stage stage, Stream queue) except -1
    cdef bint is_of_device(self, Buffer memory) except -1
