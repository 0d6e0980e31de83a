from cupola.core.exchange._strided_memory cimport StridedMemory


cdef class StridedMemoryView(StridedMemory):
    cdef int apply(self, object layout, object dtype) except -1


# How StridedMemoryView.as_tensor_map does it, which is in a module above (_tensor_map.pyx); NULL until that is imported.
cdef object (*make_tensor_map)(
    StridedMemoryView view, object box_dim, object options, object element_strides, object data_type, object interleave,
    object swizzle, object l2_promotion, object oob_fill
)
