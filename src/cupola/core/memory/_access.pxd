from libc.stdint cimport uint32_t

from cupola.core.base._cuda cimport (
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
    CUDA_ERROR_INVALID_CONTEXT, CUDA_SUCCESS, CUcontext, CUdeviceptr, CUpointer_attribute, CUresult, CUstream, cu,
)


cdef inline CUresult read_pointer(
    CUdeviceptr pointer, unsigned int* memory_type, int* device, unsigned int* managed
) noexcept:
    """What the driver knows of memory (``cuPointerGetAttributes``): its CUmemorytype, device, and whether it migrates."""
    cdef CUpointer_attribute attributes[3]
    cdef void* values[3]
    attributes[0], values[0] = CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory_type
    attributes[1], values[1] = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device
    attributes[2], values[2] = CU_POINTER_ATTRIBUTE_IS_MANAGED, managed
    return cu.cuPointerGetAttributes(3, attributes, values, pointer)


cdef inline CUresult copy_async(CUdeviceptr to, CUdeviceptr frm, size_t size, CUstream stream) noexcept nogil:
    """cuMemcpyAsync; CUDA_ERROR_INVALID_CONTEXT where none is current.

    Without a current context, driver 580 crashes if a side is memory that the stream's device has no access to.
    """
    cdef CUcontext current = NULL
    if cu.cuCtxGetCurrent(&current) == CUDA_SUCCESS and current == NULL:
        return CUDA_ERROR_INVALID_CONTEXT
    return cu.cuMemcpyAsync(to, frm, size, stream)


cdef inline CUresult fill_async(
    CUdeviceptr pointer, uint32_t pattern, int width, size_t count, CUstream stream
) noexcept nogil:
    """Fill with `count` patterns of `width` bytes: 1, 2 or 4."""
    if width == 1:
        return cu.cuMemsetD8Async(pointer, <unsigned char>pattern, count, stream)
    if width == 2:
        return cu.cuMemsetD16Async(pointer, <unsigned short>pattern, count, stream)
    return cu.cuMemsetD32Async(pointer, pattern, count, stream)
