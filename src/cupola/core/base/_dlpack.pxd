"""DLPack: the layout of its structures (ABI version 1) and the export of memory as a capsule.

The structures are those of the DLPack specification, https://dmlc.github.io/dlpack/latest/c_api.html.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from *:
    """
    #ifndef CUPOLA_DLPACK
    #define CUPOLA_DLPACK
    #include <stdint.h>
    typedef struct { int32_t device_type, device_id; } DLDevice;
    typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
    typedef struct {
        void *data;
        DLDevice device;
        int32_t ndim;
        DLDataType dtype;
        int64_t *shape;
        int64_t *strides;
        uint64_t byte_offset;
    } DLTensor;
    typedef struct DLManagedTensor {
        DLTensor dl_tensor;
        void *manager_ctx;
        void (*deleter)(struct DLManagedTensor *);
    } DLManagedTensor;
    typedef struct { uint32_t major, minor; } DLPackVersion;
    typedef struct DLManagedTensorVersioned {
        DLPackVersion version;
        void *manager_ctx;
        void (*deleter)(struct DLManagedTensorVersioned *);
        uint64_t flags;
        DLTensor dl_tensor;
    } DLManagedTensorVersioned;
    typedef struct DLPackExchangeAPI {
        DLPackVersion version;
        struct DLPackExchangeAPI *prev_api;
        int (*managed_tensor_allocator)(DLTensor *, DLManagedTensorVersioned **, void *,
                                        void (*)(void *, const char *, const char *));
        int (*managed_tensor_from_py_object_no_sync)(void *, DLManagedTensorVersioned **);
        int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned *, void **);
        int (*dltensor_from_py_object_no_sync)(void *, DLTensor *);
        int (*current_work_stream)(int32_t device_type, int32_t device_id, void **);
    } DLPackExchangeAPI;
    #endif
    """
    ctypedef struct DLDevice:
        int32_t device_type, device_id
    ctypedef struct DLDataType:
        uint8_t code, bits
        uint16_t lanes
    ctypedef struct DLTensor:
        void* data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset
    ctypedef struct DLManagedTensor:
        DLTensor dl_tensor
        void* manager_ctx
        void (*deleter)(DLManagedTensor*) noexcept
    ctypedef struct DLPackVersion:
        uint32_t major, minor
    ctypedef struct DLManagedTensorVersioned:
        DLPackVersion version
        void* manager_ctx
        void (*deleter)(DLManagedTensorVersioned*) noexcept
        uint64_t flags
        DLTensor dl_tensor
    ctypedef struct DLPackExchangeAPI:
        DLPackVersion version
        DLPackExchangeAPI* prev_api
        int (*managed_tensor_allocator)(
            DLTensor*, DLManagedTensorVersioned**, void*, void (*)(void*, const char*, const char*) noexcept
        ) noexcept
        int (*managed_tensor_from_py_object_no_sync)(void*, DLManagedTensorVersioned**) except -1
        int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned*, void**) except -1
        int (*dltensor_from_py_object_no_sync)(void*, DLTensor*) except -1
        int (*current_work_stream)(int32_t, int32_t, void**) except -1


cdef enum:
    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLCUDAManaged = 13

cdef enum:
    kDLInt = 0
    kDLUInt = 1
    kDLFloat = 2
    kDLOpaqueHandle = 3
    kDLBfloat = 4
    kDLComplex = 5
    kDLBool = 6

cdef enum:
    DLPACK_READ_ONLY = 1        # flag of a versioned tensor

# Check the arguments of `__dlpack__`: whether the caller asks for a versioned capsule. BufferError or TypeError for
# requests that would need a copy, because memory is never copied.
cdef bint parse_request(object stream, object max_version, object dl_device, object copy) except -1

# A capsule over `tensor`, whose shape and strides are copied; `keeper` lives as long as the capsule or its consumer.
cdef object make_capsule(const DLTensor* tensor, object keeper, bint versioned, bint read_only)

# The (DLPack device type, id) of memory with these properties; BufferError when nobody can access it.
cdef DLDevice classify(bint device, bint host, bint managed, int device_id) except *
