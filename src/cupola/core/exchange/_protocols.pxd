"""Reading a tensor through one of the exchange protocols into an empty view."""

from cupola.core.base._dlpack cimport DLManagedTensorVersioned
from cupola.core.exchange._strided_memory cimport StridedMemory

cdef int import_any(StridedMemory view, object source, object stream_ptr) except -1
cdef int import_dlpack(StridedMemory view, object source, object stream_ptr) except -1
cdef int import_cuda_array_interface(StridedMemory view, object source, object stream_ptr) except -1
cdef int import_array_interface(StridedMemory view, object source) except -1

# Fill a view from a tensor that it owns from now on.
cdef int adopt(StridedMemory view, DLManagedTensorVersioned* managed) except -1

# Whether `source` offers DLPack, and whether it offers anything.
cdef bint has_dlpack(object source) except -1
cdef bint is_viewable(object source) except -1
