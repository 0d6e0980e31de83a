"""Reading a tensor through one of the exchange protocols: DLPack, the CUDA array interface, NumPy's array interface.

Each protocol has its own idea of stream order. The consumer names the stream in which it will use the data; then

* DLPack hands that stream to the exporter, which makes it wait for the data;
* the CUDA array interface names the exporter's stream, behind which we make the consumer's stream wait;
* DLPack's C exchange API (PyTorch) does no synchronization but tells the exporter's current stream, with which we
  do the same.

Three shortcuts avoid a detour through Python: NumPy arrays give their ``__array_struct__``, types with the C exchange
API fill a DLTensor, and CuPy arrays whose data nobody waits for are read attribute by attribute. They read the same
values as through the protocols.
"""

import sys

from cpython.mem cimport PyMem_RawMalloc
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_SetName
from libc.stdint cimport intptr_t, int64_t, uint8_t, uintptr_t

from cupola.core.base._cuda cimport (
    CU_MEMORYTYPE_HOST, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS,
    CUdevice, CUdeviceptr, CUpointer_attribute, CUresult, CUstream, check, cu, initialise,
)
from cupola.core.base._dlpack cimport (
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_READ_ONLY, DLPackExchangeAPI, DLTensor, kDLBool, kDLComplex,
    kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged, kDLFloat, kDLInt, kDLUInt,
)
from cupola.core.device._stream_order cimport wait_for
from cupola.core.exchange._strided_memory cimport OTHER_TYPE, StridedMemory

cdef extern from "Python.h":
    bint PyIndex_Check(object) noexcept
    object PyNumber_Index(object)

cdef extern from *:
    """
    /* NumPy's C structure behind __array_struct__, version 3 of the array interface. */
    typedef struct {
        int two, nd;
        char typekind;
        int itemsize, flags;
        intptr_t *shape, *strides;
        void *data;
        PyObject *descr;
    } CupolaArrayStruct;
    """
    ctypedef struct CupolaArrayStruct:
        int nd
        char typekind
        int itemsize, flags
        intptr_t* shape
        intptr_t* strides
        void* data

cdef enum:
    ARRAY_C_CONTIGUOUS = 0x1
    ARRAY_NATIVE = 0x200
    ARRAY_WRITEABLE = 0x400

cdef struct Exporter:
    PyTypeObject* type
    const DLPackExchangeAPI* api
    bint borrows        # a tensor of it may be read without asking for an owner

cdef Exporter NOBODY
NOBODY.type, NOBODY.api, NOBODY.borrows = NULL, NULL, False
cdef tuple NO_KIND = (0, 0, None)

cdef object _ndarray = None             # numpy.ndarray, once somebody has imported NumPy
cdef object _cupy_ndarray = None        # cupy.ndarray, likewise

# What is found here stays for good, so the last of each can be noted by its address alone, which threads read and replace
# as a whole.
cdef dict _exchange_apis = {}           # type -> address of its Exporter
cdef const Exporter* _recent_exporter = &NOBODY
cdef PyTypeObject* _recent_type = NULL  # of that, or of another one as long as it is being replaced
cdef dict _cupy_types = {}              # dtype -> (kind, item size, dtype) of those that DLPack has
cdef PyObject* _recent_kind = <PyObject*>NO_KIND        # a dtype takes long to hash

cdef tuple _VERSION = (1, 3)


cdef bint has_dlpack(object source) except -1:
    return hasattr(source, "__dlpack__") and hasattr(source, "__dlpack_device__")


cdef bint is_viewable(object source) except -1:
    return has_dlpack(source) or hasattr(source, "__cuda_array_interface__")


cdef int import_any(StridedMemory view, object source, object stream_ptr) except -1:
    if (Py_TYPE(source) == _recent_type or _is_ndarray(source) or _is_cupy(source)) or has_dlpack(source):
        return import_dlpack(view, source, stream_ptr)
    if hasattr(source, "__cuda_array_interface__"):
        return import_cuda_array_interface(view, source, stream_ptr)
    raise BufferError(f"{type(source).__name__} does not support any data exchange protocol (DLPack, CUDA array interface)")


# --- DLPack -----------------------------------------------------------------------------------------------

cdef int import_dlpack(StridedMemory view, object source, object stream_ptr) except -1:
    cdef const Exporter* exporter
    cdef int device_type
    view.exporting_obj = source
    if Py_TYPE(source) == _recent_type:     # before anything that need not be asked again and again
        exporter = _recent_exporter
        if Py_TYPE(source) == exporter.type:
            return _import_through_api(view, source, stream_ptr, exporter)
    if _is_ndarray(source):
        if stream_ptr is None:
            raise _ambiguous()
        if stream_ptr is not None and type(stream_ptr) is not int:
            _stream_number(stream_ptr)
        if _read_array_struct(view, source, True):
            return 0
    elif _is_cupy(source) and type(stream_ptr) is int and stream_ptr == -1 and _read_cupy(view, source):
        return 0
    else:
        exporter = _find_exporter(source)
        if exporter != NULL:
            return _import_through_api(view, source, stream_ptr, exporter)
    device_type, _ = source.__dlpack_device__()
    if device_type == kDLCPU or device_type == kDLCUDA:
        if stream_ptr is None:
            raise _ambiguous()
    elif device_type != kDLCUDAHost and device_type != kDLCUDAManaged:
        raise BufferError(f"tensors on a device of DLPack type {device_type} cannot be viewed, only on host and CUDA")
    stream = None if stream_ptr is None else _stream_number(stream_ptr)
    if stream == 0 or device_type == kDLCPU:
        stream = None       # zero leaves the choice to the exporter; for host memory there is no stream
    try:
        capsule = source.__dlpack__(stream=stream, max_version=_VERSION)
    except TypeError:
        capsule = source.__dlpack__(stream=stream)      # an exporter from before versions
    return _consume(view, capsule)


cdef int _consume(StridedMemory view, object capsule) except -1:
    """Take over the tensor in a capsule; the view runs its deleter in the end."""
    cdef void* pointer
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        pointer = PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        return adopt(view, <DLManagedTensorVersioned*>pointer)
    if PyCapsule_IsValid(capsule, b"dltensor"):
        view.managed = <DLManagedTensor*>PyCapsule_GetPointer(capsule, b"dltensor")
        PyCapsule_SetName(capsule, b"used_dltensor")
        return _read_tensor(view, &view.managed.dl_tensor)
    raise BufferError("__dlpack__ did not return an unused DLPack capsule")


cdef int adopt(StridedMemory view, DLManagedTensorVersioned* managed) except -1:
    view.managed_versioned = managed
    if managed.version.major != 1:
        raise BufferError(f"DLPack version {managed.version.major} is not supported, only version 1")
    view.readonly = managed.flags & DLPACK_READ_ONLY != 0
    return _read_tensor(view, &managed.dl_tensor)


cdef int _read_tensor(StridedMemory view, const DLTensor* tensor) except -1:
    cdef int axis, place, ndim = tensor.ndim
    view.set_rank(ndim)
    if ndim > 0 and tensor.shape == NULL:
        view.ndim = -1
        raise BufferError(f"the tensor has {ndim} dimensions and no shape")
    view.ptr = <uintptr_t>tensor.data + tensor.byte_offset if tensor.data != NULL else 0
    view.dl_type = tensor.dtype
    view.itemsize = (tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
    for axis in range(ndim):
        view.extents[axis] = tensor.shape[axis]
        if tensor.shape[axis] < 0:
            shape = tuple([tensor.shape[place] for place in range(ndim)])
            view.ndim = -1
            raise BufferError(f"extents must not be negative, got shape {shape}")
    if tensor.strides == NULL:
        view.set_row_major()
    else:
        view.explicit_strides = True
        for axis in range(ndim):
            view.extents[ndim + axis] = tensor.strides[axis]
    view.device_type = tensor.device.device_type
    view.is_device_accessible = tensor.device.device_type != kDLCPU
    view.device_id = tensor.device.device_id if view.is_device_accessible else -1
    return 0


cdef const Exporter* _find_exporter(object source) except? NULL:
    """What is known of the type of `source` if it has the C exchange API, or NULL."""
    global _recent_exporter, _recent_type
    cdef const DLPackExchangeAPI* api
    cdef const Exporter* exporter
    cdef Exporter* made
    kind = type(source)
    known = _exchange_apis.get(kind)
    if known is None:
        if isinstance(source, StridedMemory):
            return NULL         # a view has no stream of its own that could be waited for
        capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
        if capsule is None or not PyCapsule_IsValid(capsule, b"dlpack_exchange_api"):
            return NULL
        api = <const DLPackExchangeAPI*>PyCapsule_GetPointer(capsule, b"dlpack_exchange_api")
        if api.version.major != 1 or api.current_work_stream == NULL:
            return NULL
        made = <Exporter*>PyMem_RawMalloc(sizeof(Exporter))
        if made == NULL:
            raise MemoryError()
        made.type, made.api = Py_TYPE(source), api
        # PyTorch has no read-only tensors, so the borrowed tensor, which has no flags, is enough.
        made.borrows = api.dltensor_from_py_object_no_sync != NULL and kind.__module__.startswith("torch")
        known = _exchange_apis.setdefault(kind, <uintptr_t>made)    # which keeps the type, too
    exporter = <const Exporter*><uintptr_t>known
    _recent_exporter, _recent_type = exporter, exporter.type
    return exporter


cdef int _import_through_api(
    StridedMemory view, object source, object stream_ptr, const Exporter* exporter
) except -1:
    cdef const DLPackExchangeAPI* api = exporter.api
    cdef DLTensor tensor
    cdef DLManagedTensorVersioned* managed = NULL
    cdef void* producer = NULL
    cdef intptr_t consumer
    if exporter.borrows:
        api.dltensor_from_py_object_no_sync(<void*>source, &tensor)
        _read_tensor(view, &tensor)
    else:
        api.managed_tensor_from_py_object_no_sync(<void*>source, &managed)
        adopt(view, managed)
    if view.device_type == kDLCPU:
        return 0
    if view.device_type not in (kDLCUDA, kDLCUDAHost, kDLCUDAManaged):
        raise BufferError(f"tensors on a device of DLPack type {view.device_type} cannot be viewed")
    if stream_ptr is None:
        if view.device_type == kDLCUDA:
            raise _ambiguous()
        return 0
    consumer = _stream_number(stream_ptr)
    if consumer == -1:
        return 0
    api.current_work_stream(view.device_type, view.device_id, &producer)
    return wait_for(<CUstream>producer, <CUstream>consumer)


# --- NumPy ------------------------------------------------------------------------------------------------

cdef int import_array_interface(StridedMemory view, object source) except -1:
    view.exporting_obj = source
    if _is_ndarray(source):
        _read_array_struct(view, source, False)
        return 0
    interface = source.__array_interface__
    _read_interface(view, interface, "array interface")
    view.keeper = interface     # some exporters keep a temporary alive in it
    return 0


cdef bint _is_ndarray(object source) noexcept:
    global _ndarray
    if _ndarray is None:
        _ndarray = _find_ndarray("numpy")
    return type(source) is _ndarray


cdef object _find_ndarray(str library):
    """The class of a library's arrays, None as long as nobody has imported the library."""
    module = sys.modules.get(library)
    return None if module is None else getattr(module, "ndarray", None)


cdef bint _read_array_struct(StridedMemory view, object source, bint as_dlpack) except -1:
    """Read a numpy.ndarray. False, with nothing read, if DLPack cannot express it: NumPy then says why."""
    cdef object capsule = source.__array_struct__
    cdef CupolaArrayStruct* array = <CupolaArrayStruct*>PyCapsule_GetPointer(capsule, NULL)
    cdef int axis, flags = array.flags, ndim = array.nd
    cdef bint plain = _set_type(view, array.typekind, array.itemsize, array.flags & ARRAY_NATIVE != 0)
    if not plain:
        if as_dlpack:
            return False
        view.type_text = source.dtype
        flags = source.flags.num        # the structure's are lost for a dtype with fields
    for axis in range(ndim):
        if array.itemsize == 0 or array.strides[axis] % array.itemsize:
            if as_dlpack:
                return False
            raise ValueError(f"byte strides {source.strides} must be multiples of the item size {array.itemsize}")
    view.set_rank(ndim)
    view.itemsize = array.itemsize
    view.ptr = <uintptr_t>array.data
    view.readonly = flags & ARRAY_WRITEABLE == 0
    view.explicit_strides = True
    for axis in range(ndim):
        view.extents[axis] = array.shape[axis]
        view.extents[ndim + axis] = array.strides[axis] // array.itemsize
    if not as_dlpack and flags & ARRAY_C_CONTIGUOUS:
        view.set_row_major()        # the array interface, unlike DLPack, then says no strides
    return True


# --- CuPy ------------------------------------------------------------------------------------------------

cdef bint _is_cupy(object source) noexcept:
    global _cupy_ndarray
    if _cupy_ndarray is None:
        _cupy_ndarray = _find_ndarray("cupy")
    return type(source) is _cupy_ndarray


cdef bint _read_cupy(StridedMemory view, object source) except -1:
    """Read a cupy.ndarray. False, with nothing read, when it is empty or of a type that DLPack does not have."""
    global _recent_kind
    cdef CUpointer_attribute attributes[2]
    cdef void* values[2]
    cdef int device = -1
    cdef unsigned int managed = 0
    cdef uintptr_t address = source.data.ptr
    cdef int axis, ndim
    cdef Py_ssize_t itemsize
    cdef PyObject* recent
    cdef tuple known
    dtype = source.dtype
    recent = _recent_kind       # only now: asking for the dtype may have let another thread run
    known = <tuple>recent
    if known[2] is not dtype:
        known = _cupy_types.get(dtype)
        if known is None:
            if not dtype.isnative or not _set_type(view, <char>ord(dtype.kind), dtype.itemsize, True):
                return False
            known = _cupy_types.setdefault(dtype, (ord(dtype.kind), dtype.itemsize, dtype))
        if known[2] is dtype:
            _recent_kind = <PyObject*>known
    shape, strides = <tuple?>source.shape, <tuple?>source.strides
    attributes[0], values[0] = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &device
    attributes[1], values[1] = CU_POINTER_ATTRIBUTE_IS_MANAGED, &managed
    if address == 0 or cu.cuPointerGetAttributes(2, attributes, values, <CUdeviceptr>address) != CUDA_SUCCESS or device < 0:
        return False
    itemsize = known[1]
    ndim = <int>len(<tuple>shape)
    for axis in range(ndim):
        if <int64_t>(<tuple>strides)[axis] % itemsize:
            return False
    _set_type(view, <int>known[0], itemsize, True)
    view.set_rank(ndim)
    view.itemsize = itemsize
    view.explicit_strides = True
    for axis in range(ndim):
        view.extents[axis] = (<tuple>shape)[axis]
        view.extents[ndim + axis] = <int64_t>(<tuple>strides)[axis] // itemsize
    view.ptr = address
    view.device_type = kDLCUDAManaged if managed else kDLCUDA
    view.device_id = device
    view.is_device_accessible = True
    return True


# --- the CUDA array interface -----------------------------------------------------------------------------

cdef int import_cuda_array_interface(StridedMemory view, object source, object stream_ptr) except -1:
    cdef intptr_t consumer
    cdef CUpointer_attribute attributes[3]
    cdef void* values[3]
    cdef int device = -1
    cdef unsigned int memory_type = 0, managed = 0
    cdef CUdevice current
    cdef CUresult status
    view.exporting_obj = source
    interface = source.__cuda_array_interface__
    _read_interface(view, interface, "CUDA array interface")
    if stream_ptr is None:
        raise _ambiguous()
    consumer = _stream_number(stream_ptr)
    initialise()
    if view.ptr == 0:
        check(cu.cuCtxGetDevice(&current), b"cuCtxGetDevice")
        device = current
    else:
        attributes[0], values[0] = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &device
        attributes[1], values[1] = CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &memory_type
        attributes[2], values[2] = CU_POINTER_ATTRIBUTE_IS_MANAGED, &managed
        status = cu.cuPointerGetAttributes(3, attributes, values, <CUdeviceptr>view.ptr)
        if status == CUDA_ERROR_INVALID_VALUE or (status == CUDA_SUCCESS and memory_type == 0):
            raise BufferError(f"the address {view.ptr:#x} in the CUDA array interface is unknown to CUDA")
        check(status, b"cuPointerGetAttributes")
    view.device_type = (
        kDLCUDAManaged if managed else kDLCUDAHost if memory_type == CU_MEMORYTYPE_HOST else kDLCUDA
    )
    view.device_id = max(device, -1)        # -1 for a pool of host memory
    view.is_device_accessible = True
    producer = interface.get("stream")
    if consumer == -1 or producer is None:
        return 0
    return wait_for(<CUstream><intptr_t>producer, <CUstream>consumer)


cdef int _read_interface(StridedMemory view, object interface, str protocol) except -1:
    """Read the entries that NumPy's array interface and the CUDA array interface have in common."""
    cdef int axis, ndim
    cdef int64_t stride
    version = interface.get("version", 0)
    if version < 3:
        raise BufferError(f"the {protocol} must have version 3 or later, got {version}")
    if interface.get("mask") is not None:
        raise BufferError(f"an {protocol} with a mask cannot be viewed")
    shape, strides, data = interface["shape"], interface.get("strides"), interface.get("data")
    _read_typestr(view, interface["typestr"], interface.get("descr"))
    ndim = <int>len(shape)
    view.set_rank(ndim)
    for axis in range(ndim):
        view.extents[axis] = shape[axis]
        if view.extents[axis] < 0:
            raise ValueError(f"extents must not be negative, got shape {shape}")
    if strides is None:
        view.set_row_major()
    else:
        view.explicit_strides = True
        if len(strides) != ndim:
            raise ValueError(f"shape {shape} and strides {strides} differ in length")
        for axis in range(ndim):
            stride = strides[axis]
            if stride % view.itemsize:
                raise ValueError(f"byte strides {strides} must be multiples of the item size {view.itemsize}")
            view.extents[ndim + axis] = stride // view.itemsize
    if data is None:
        raise BufferError(f"the {protocol} has no data address")
    address, read_only = data
    view.ptr = address or 0
    view.readonly = read_only
    return 0


cdef int _read_typestr(StridedMemory view, str text, object descr) except -1:
    cdef Py_ssize_t itemsize
    if len(text) < 3 or not text[2:].isdigit():
        raise TypeError(f"typestr {text!r} is not of the form '<f4'")
    itemsize = int(text[2:])
    if itemsize <= 0:
        raise ValueError(f"typestr {text!r} has no item size")
    view.itemsize = itemsize
    if not _set_type(view, <char>ord(text[1]), itemsize, text[0] in "<|="):
        view.type_text = descr if text[1] == "V" and descr is not None else text
    return 0


cdef bint _set_type(StridedMemory view, char kind, Py_ssize_t itemsize, bint native) noexcept:
    """Set the DLPack type of a plain number; False, and OTHER_TYPE, for everything else."""
    cdef int code = OTHER_TYPE
    if native and 0 < itemsize <= (16 if kind == b"c" else 8):
        if kind == b"f":
            code = kDLFloat
        elif kind == b"i":
            code = kDLInt
        elif kind == b"u":
            code = kDLUInt
        elif kind == b"c":
            code = kDLComplex
        elif kind == b"b":
            code = kDLBool
    view.dl_type.code, view.dl_type.bits, view.dl_type.lanes = <uint8_t>code, <uint8_t>(8 * itemsize), 1
    return code != OTHER_TYPE


# --- streams ----------------------------------------------------------------------------------------------

cdef intptr_t _stream_number(object stream_ptr) except? -2:
    """The address of a stream, given as an integer or as a handle of the bindings."""
    if isinstance(stream_ptr, int):
        return stream_ptr
    if PyIndex_Check(stream_ptr):
        return PyNumber_Index(stream_ptr)
    if hasattr(stream_ptr, "__int__") and not isinstance(stream_ptr, float):
        return int(stream_ptr)
    raise TypeError(f"stream_ptr must be the address of a stream, such as stream.handle, got {type(stream_ptr).__name__}")


cdef object _ambiguous():
    return BufferError(
        "stream_ptr=None is ambiguous: pass the stream that will use the data (stream.handle), "
        "or -1 when no synchronization is needed"
    )
