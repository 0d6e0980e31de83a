"""Releasing what an executable graph needs once its launches are over.

Nothing is noted at a launch. The driver is asked when it matters: an upload is ordered behind all launches of the
executable before it, in whatever stream (CUDA Driver API, cuGraphUpload), and a callback behind
the upload is called when they are over, or lost in a fault. It uses a separate stream, so nothing waits here.
"""

from cupola.core.base._cuda cimport (
    CU_STREAM_NON_BLOCKING, CUDA_ERROR_NOT_PERMITTED, CUDA_SUCCESS, CUcontext, CUgraphExec, CUresult, CUstream, context_is_broken, cu,
)
from cupola.core.base._keep cimport drop_released, forget_kept, keep, release_kept_behind


cdef CUresult keep_until_over(CUgraphExec executable, CUcontext context, object value) except *:
    cdef CUstream stream = NULL
    cdef CUcontext popped
    cdef CUresult status, ended
    cdef bint queued = False
    cdef void* kept
    drop_released()
    kept = keep(value, NULL)
    with nogil:
        status = cu.cuCtxPushCurrent(context)
        if status == CUDA_SUCCESS:
            status = cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)
            if status == CUDA_SUCCESS:
                status = cu.cuGraphUpload(executable, stream)
                if status == CUDA_SUCCESS:
                    status = cu.cuStreamAddCallback(stream, release_kept_behind, kept, 0)
                    queued = status == CUDA_SUCCESS
                ended = cu.cuStreamDestroy(stream)  # what is queued there is done all the same
                if status == CUDA_SUCCESS:
                    status = ended
            ended = cu.cuCtxPopCurrent(&popped)
            if status == CUDA_SUCCESS:
                status = ended
    if status == CUDA_ERROR_NOT_PERMITTED and not queued:
        forget_kept(kept)
        return status
    if not context_is_broken(status):
        return status
    if not queued:
        forget_kept(kept)
    return CUDA_SUCCESS


cdef int keep_for_good(object value) except -1:
    keep(value, NULL)
    return 0
