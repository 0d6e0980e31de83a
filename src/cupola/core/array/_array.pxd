"""Array: memory with a type, a shape and strides."""

from libc.stdint cimport uint16_t, uintptr_t

from cupola.core.memory._buffer cimport Buffer

cdef enum:
    INLINE_AXES = 4         # arrays with more dimensions keep their extents on the heap
    MOST_AXES = 64


cdef class Array:
    # The launch path reads `pointer` and `memory.pointer`; the latter is 0 once the buffer is closed.
    cdef uintptr_t pointer              # of the first element; 0 as long as there is no memory
    cdef Buffer memory                  # None as long as a subclass has not computed the elements
    cdef uint16_t element               # a bit of _elements.pxd, or ANY_ELEMENT
    cdef bint readonly
    cdef bint dense                     # in row-major order without gaps
    cdef int rank
    cdef readonly Py_ssize_t itemsize
    cdef Py_ssize_t* extents            # shape, then strides in bytes
    cdef Py_ssize_t few_extents[2 * INLINE_AXES]
    cdef object type                    # numpy.dtype
    cdef object __weakref__

    cdef int set_rank(self, Py_ssize_t rank) except -1
    cdef int set_shape(self, object shape, object dtype) except -1     # in row-major order; before there is memory
    cdef int set_type(self, object dtype) except -1
    cdef int take_strides(self, object strides) except -1
    cdef int find_dense(self) except -1                                 # whether it is, from the strides
    cdef inline Py_ssize_t count(self) noexcept:                        # of the elements
        cdef Py_ssize_t result = 1
        cdef int axis
        for axis in range(self.rank):
            result *= self.extents[axis]
        return result
    cdef Buffer open_memory(self)       # RuntimeError once closed
    cdef Array part(self, object key)   # the view that an index of ints, slices, ... and None chooses
    cdef Array beside(self, Py_ssize_t rank)        # another array of the same memory and type, without extents


# The dtype for what numpy.dtype takes; a NumPy scalar type, `float` and the like are found without NumPy's help.
cdef object as_dtype(object dtype)
