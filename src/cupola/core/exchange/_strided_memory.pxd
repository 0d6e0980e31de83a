from libc.stdint cimport int64_t, uintptr_t

from cupola.core.base._dlpack cimport DLDataType, DLManagedTensor, DLManagedTensorVersioned, DLTensor

cdef enum:
    INLINE_DIMENSIONS = 6       # tensors with more dimensions keep their extents on the heap
    OTHER_TYPE = 255            # in place of a DLPack type code


cdef class StridedMemory:
    """What a view knows of a tensor, and what keeps the memory alive."""
    cdef readonly uintptr_t ptr
    cdef readonly int device_id                 # -1: host memory
    cdef readonly bint is_device_accessible
    cdef readonly bint readonly
    cdef readonly object exporting_obj
    cdef int device_type                        # DLDeviceType
    cdef int ndim                               # -1 as long as nothing was imported
    cdef int64_t* extents                       # shape, then strides in elements
    cdef int64_t few_extents[2 * INLINE_DIMENSIONS]
    cdef bint explicit_strides                  # the exporter gave them; else they are those of row-major order
    cdef Py_ssize_t itemsize
    cdef DLDataType dl_type                     # code OTHER_TYPE: see `type_text`
    cdef object type_text                       # what numpy.dtype makes the type of, or None
    cdef object cached_dtype
    cdef int tensor_type                        # of its elements in tensor maps, plus 1; 0 until asked
    cdef object keeper                          # besides exporting_obj
    cdef DLManagedTensor* managed               # consumed capsules, deleted in the end
    cdef DLManagedTensorVersioned* managed_versioned

    cdef int set_rank(self, int ndim) except -1
    cdef int64_t count(self) except -1
    cdef int require_content(self) except -1
    cdef int require_memory(self) except -1
    cdef object find_dtype(self)
    cdef void set_row_major(self) noexcept
    cdef int describe(self, DLTensor* tensor) except -1
