"""DLPack export, shared by buffers and views.

A capsule holds a *managed tensor*: a DLTensor with a deleter. Until a consumer takes it (and renames it), the
capsule's own destructor runs that deleter; afterwards the consumer does, on any thread, with or without the GIL.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.string cimport memcpy

cdef extern from "Python.h":
    int Py_IsInitialized() nogil


cdef bint parse_request(object stream, object max_version, object dl_device, object copy) except -1:
    if stream is not None and not isinstance(stream, int):
        raise TypeError(f"stream must be an int or None, got {type(stream).__name__}")
    if dl_device is not None:
        raise BufferError("the memory stays on its device: dl_device must be None")
    if copy:
        raise BufferError("the memory is never copied: copy must be False or None")
    if max_version is None:
        return False
    if not isinstance(max_version, tuple):
        raise TypeError(f"max_version must be a tuple (major, minor) or None, got {type(max_version).__name__}")
    if len(<tuple>max_version) != 2:
        raise BufferError(f"max_version must be a tuple (major, minor), got {max_version}")
    return max_version >= (1, 0)


cdef object make_capsule(const DLTensor* tensor, object keeper, bint versioned, bint read_only):
    if versioned:
        return _versioned(tensor, keeper, read_only)
    return _unversioned(tensor, keeper)


cdef DLDevice classify(bint device, bint host, bint managed, int device_id) except *:
    cdef DLDevice result
    result.device_id = 0
    if managed:
        result.device_type = kDLCUDAManaged
    elif device and host:
        result.device_type = kDLCUDAHost
    elif device:
        result.device_type = kDLCUDA
        result.device_id = device_id
    elif host:
        result.device_type = kDLCPU
    else:
        raise BufferError("memory that neither the host nor a device can access cannot be exported")
    return result


cdef object _unversioned(const DLTensor* tensor, object keeper):
    cdef DLManagedTensor* managed = <DLManagedTensor*>_allocate(sizeof(DLManagedTensor), tensor.ndim)
    _fill(&managed.dl_tensor, tensor, <int64_t*>(managed + 1))
    managed.deleter = _delete
    managed.manager_ctx = <void*>keeper
    Py_INCREF(keeper)
    return PyCapsule_New(managed, b"dltensor", _drop)


cdef object _versioned(const DLTensor* tensor, object keeper, bint read_only):
    cdef DLManagedTensorVersioned* managed = <DLManagedTensorVersioned*>_allocate(
        sizeof(DLManagedTensorVersioned), tensor.ndim
    )
    _fill(&managed.dl_tensor, tensor, <int64_t*>(managed + 1))
    managed.version.major, managed.version.minor = 1, 3
    managed.flags = DLPACK_READ_ONLY if read_only else 0
    managed.deleter = _delete_versioned
    managed.manager_ctx = <void*>keeper
    Py_INCREF(keeper)
    return PyCapsule_New(managed, b"dltensor_versioned", _drop_versioned)


cdef void* _allocate(size_t head, int ndim) except NULL:
    cdef void* memory = PyMem_RawMalloc(head + 2 * ndim * sizeof(int64_t))
    if memory == NULL:
        raise MemoryError()
    return memory


cdef void _fill(DLTensor* target, const DLTensor* source, int64_t* extents) noexcept:
    cdef size_t length = source.ndim * sizeof(int64_t)
    target[0] = source[0]
    target.shape = extents
    target.strides = extents + source.ndim
    memcpy(target.shape, source.shape, length)
    memcpy(target.strides, source.strides, length)


# The consumer may call these from anywhere, even while Python finalizes; the memory then no longer matters.
cdef void _delete(DLManagedTensor* managed) noexcept nogil:
    if Py_IsInitialized():
        _let_go(managed.manager_ctx)
    PyMem_RawFree(managed)


cdef void _delete_versioned(DLManagedTensorVersioned* managed) noexcept nogil:
    if Py_IsInitialized():
        _let_go(managed.manager_ctx)
    PyMem_RawFree(managed)


cdef void _let_go(void* keeper) noexcept with gil:
    Py_DECREF(<object>keeper)


cdef void _drop(object capsule) noexcept:
    cdef DLManagedTensor* managed
    if PyCapsule_IsValid(capsule, b"dltensor"):
        managed = <DLManagedTensor*>PyCapsule_GetPointer(capsule, b"dltensor")
        managed.deleter(managed)


cdef void _drop_versioned(object capsule) noexcept:
    cdef DLManagedTensorVersioned* managed
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        managed = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        managed.deleter(managed)
