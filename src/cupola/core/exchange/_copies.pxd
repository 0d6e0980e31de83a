from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport CUdeviceptr, CUstream
from cupola.core.device._stream cimport Stream


cdef class Side:
    """One side of a copy."""
    cdef uintptr_t pointer
    cdef size_t size
    cdef object owner           # keeps the memory alive: an Allocation, a view, or None for a Py_buffer
    cdef bint is_buffer         # a Buffer, which sees to its life itself
    cdef Py_buffer view         # while `is_held`
    cdef bint is_held
    # For an array whose elements are not contiguous in row-major order: its strides, and memory in which its elements
    # are contiguous.
    cdef Py_ssize_t* extents    # and behind them the strides in bytes; NULL for all other sides
    cdef int ndim
    cdef Py_ssize_t itemsize
    cdef char* gathered
    cdef object keeper(self)                    # what a graph has to keep for the copy, or None
    cdef CUdeviceptr place(self) noexcept       # what the driver copies
    cdef bint is_pageable(self) noexcept        # whether CUDA does not know that memory
    cdef void gather(self) noexcept             # before the copy
    cdef void scatter(self) noexcept            # behind it, if `extents` is set
    cdef int take_strides(self, str name, object shape, object strides, Py_ssize_t itemsize, bint captured) except -1


# The side for `memory`, a Buffer or an array; `name` is its name in errors.
cdef Side side_of(object memory, str name, bint writable, Stream queue, bint captured)

# Keep an array alive until the work in the stream so far is over.
cdef int keep_until_done(Side side, CUstream stream) except -1
