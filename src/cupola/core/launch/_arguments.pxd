"""Kernel arguments: from Python values to the array of pointers that cuLaunchKernelEx takes."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from cupola.core.program._kernel cimport Kernel, Parameter


cdef union Slot:
    int64_t i
    uint64_t u
    double d
    float f
    double z[2]
    float c[2]


# An array of the host, which is copied to the device for a launch, or back behind it: In, Out or InOut.
cdef class HostArray:
    cdef readonly object array


# Fill pointers[k] for every argument; values that have no memory of their own go to slots[k]. Both arrays have
# room for `count`. The pointers are valid as long as the arguments are. TypeError if a value does not fit. The result is
# 1 if there are arrays of the host among them, which have nothing to be filled in yet, else 0.
cdef int pack(Kernel kernel, PyObject** arguments, Py_ssize_t count, void** pointers, Slot* slots) except -1

# The same with other parameters than the kernel's own: as many as there are arguments, or one for all if `step` is 0.
cdef int pack_as(
    Kernel kernel, const Parameter* parameter, int step, PyObject** arguments, Py_ssize_t count, void** pointers,
    Slot* slots
) except -1

# Read the addresses of Buffers again, after Python code that may have closed them. RuntimeError if it has.
cdef int read_buffers(PyObject** arguments, Py_ssize_t count, Slot* slots) except -1

# The objects that a graph with such a launch must keep alive: the kernel, the memory of Buffers, and objects with
# memory.
cdef tuple operands(Kernel kernel, PyObject** arguments, Py_ssize_t count)

# Let objects of `cls` be arguments: read(object) gives (address, size in bytes) of memory that the object keeps.
cpdef register_argument_type(cls, read)

# Let objects of `cls` stand for a handle of 8 bytes: read(object) gives it, keep(object) what a graph has to keep.
cpdef register_handle_type(cls, read, keep)
