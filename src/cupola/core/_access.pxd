from cupola.core._cuda cimport CUDA_ERROR_INVALID_CONTEXT, CUDA_SUCCESS, CUcontext, CUdeviceptr, CUresult, CUstream, cu


cdef inline CUresult copy_async(CUdeviceptr to, CUdeviceptr frm, size_t size, CUstream stream) noexcept nogil:
    """cuMemcpyAsync; CUDA_ERROR_INVALID_CONTEXT where none is current.

    There driver 580 crashes when a side is memory that the stream's device has no access to.
    """
    cdef CUcontext current = NULL
    if cu.cuCtxGetCurrent(&current) == CUDA_SUCCESS and current == NULL:
        return CUDA_ERROR_INVALID_CONTEXT
    return cu.cuMemcpyAsync(to, frm, size, stream)
