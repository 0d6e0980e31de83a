"""DLPack's C exchange API for views: a table of functions by which other libraries read them without Python calls.

The table hangs on the type as a capsule (DLPack specification, "Python Specification for DLPack"). Its functions are
called with the GIL held, report failure by -1 with an exception set, and never synchronize. Callers in C may pass
anything, so arguments are checked for NULL, and after a failure the results are NULL.
"""

from cpython.exc cimport PyErr_SetString
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New, PyCapsule_SetName
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t
from libc.string cimport memset

from cupola.core.base._dlpack cimport DLManagedTensorVersioned, DLPackExchangeAPI, DLTensor, make_capsule
from cupola.core.exchange._protocols cimport adopt
from cupola.core.exchange._strided_memory cimport StridedMemory

from cupola._above import above

cdef DLPackExchangeAPI _api


cdef int _require(const void* argument, str name) except -1:
    if argument == NULL:
        raise ValueError(f"{name} must not be NULL")
    return 0


cdef StridedMemory _view_at(void* view):
    _require(view, "the view")
    return <StridedMemory?><object>view


cdef int _to_managed(void* view, DLManagedTensorVersioned** out) except -1:
    cdef DLTensor tensor
    cdef StridedMemory source
    _require(out, "the place of the result")
    out[0] = NULL
    source = _view_at(view)
    source.describe(&tensor)
    capsule = make_capsule(&tensor, source, True, source.readonly)
    out[0] = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    PyCapsule_SetName(capsule, b"used_dltensor_versioned")     # the tensor is the caller's now
    return 0


cdef int _from_managed(DLManagedTensorVersioned* managed, void** out) except -1:
    _require(out, "the place of the result")
    out[0] = NULL
    _require(managed, "the tensor")
    kind = above("StridedMemoryView")
    view = kind.__new__(kind)
    adopt(<StridedMemory>view, managed)
    Py_INCREF(view)
    out[0] = <void*>view
    return 0


cdef int _to_borrowed(void* view, DLTensor* out) except -1:
    _require(out, "the place of the result")
    memset(out, 0, sizeof(DLTensor))
    return _view_at(view).describe(out)


cdef int _current_stream(int32_t device_type, int32_t device_id, void** out) except -1:
    _require(out, "the place of the result")
    out[0] = NULL       # a view knows of no stream
    return 0


cdef int _allocate(
    DLTensor* prototype,
    DLManagedTensorVersioned** out,
    void* context,
    void (*set_error)(void*, const char*, const char*) noexcept,
) noexcept:
    if out != NULL:
        out[0] = NULL
    if set_error != NULL:
        set_error(context, b"NotImplementedError", b"a StridedMemoryView views memory and cannot allocate any")
    else:
        PyErr_SetString(NotImplementedError, b"a StridedMemoryView views memory and cannot allocate any")
    return -1


_api.version.major, _api.version.minor = 1, 3
_api.prev_api = NULL
_api.managed_tensor_allocator = _allocate
_api.managed_tensor_from_py_object_no_sync = _to_managed
_api.managed_tensor_to_py_object_no_sync = _from_managed
_api.dltensor_from_py_object_no_sync = _to_borrowed
_api.current_work_stream = _current_stream

capsule = PyCapsule_New(&_api, b"dlpack_exchange_api", NULL)
