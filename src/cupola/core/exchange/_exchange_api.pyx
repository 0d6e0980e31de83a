"""DLPack's C exchange API for views: a table of functions by which other libraries read them without Python calls.

The table hangs on the type as a capsule (DLPack specification, "Python Specification for DLPack"). Its functions are
called with the GIL held, report failure by -1 with an exception set, and never synchronise.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t

from cupola.core.base._dlpack cimport DLManagedTensorVersioned, DLPackExchangeAPI, DLTensor, make_capsule
from cupola.core.exchange._protocols cimport adopt
from cupola.core.exchange._strided_memory cimport StridedMemory

from cupola._above import above

cdef DLPackExchangeAPI _api


cdef int _to_managed(void* view, DLManagedTensorVersioned** out) except -1:
    cdef DLTensor tensor
    cdef StridedMemory source = <StridedMemory?><object>view
    source.describe(&tensor)
    capsule = make_capsule(&tensor, source, True, source.readonly)
    out[0] = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    PyCapsule_SetName(capsule, b"used_dltensor_versioned")     # the tensor is the caller's now
    return 0


cdef int _from_managed(DLManagedTensorVersioned* managed, void** out) except -1:
    kind = above("StridedMemoryView")
    view = kind.__new__(kind)
    adopt(<StridedMemory>view, managed)
    Py_INCREF(view)
    out[0] = <void*>view
    return 0


cdef int _to_borrowed(void* view, DLTensor* out) except -1:
    return (<StridedMemory?><object>view).describe(out)


cdef int _current_stream(int32_t device_type, int32_t device_id, void** out) except -1:
    out[0] = NULL       # a view knows of no stream
    return 0


cdef int _allocate(
    DLTensor* prototype,
    DLManagedTensorVersioned** out,
    void* context,
    void (*set_error)(void*, const char*, const char*) noexcept,
) noexcept:
    set_error(context, b"NotImplementedError", b"a StridedMemoryView sees memory and allocates none")
    return -1


_api.version.major, _api.version.minor = 1, 3
_api.prev_api = NULL
_api.managed_tensor_allocator = _allocate
_api.managed_tensor_from_py_object_no_sync = _to_managed
_api.managed_tensor_to_py_object_no_sync = _from_managed
_api.dltensor_from_py_object_no_sync = _to_borrowed
_api.current_work_stream = _current_stream

capsule = PyCapsule_New(&_api, b"dlpack_exchange_api", NULL)
