/* Copies and fills (CUDA Runtime API, "Memory Management"). */
#include "cudart.h"

/* ---- rows ------------------------------------------------------------------------------------------------------ */

CUresult copy_row(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind) {
    CUdeviceptr to = (CUdeviceptr)target, from = (CUdeviceptr)source;
    RETURN_IF(check_kind(kind));
    if (!bytes) return CUDA_SUCCESS;
    switch (kind) {
        case cudaMemcpyHostToDevice: return cuMemcpyHtoD(to, source, bytes);
        case cudaMemcpyDeviceToHost: return cuMemcpyDtoH(target, from, bytes);
        case cudaMemcpyDeviceToDevice: return cuMemcpyDtoD(to, from, bytes);
        default: return cuMemcpy(to, from, bytes);
    }
}

CUresult copy_row_async(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    CUdeviceptr to = (CUdeviceptr)target, from = (CUdeviceptr)source;
    RETURN_IF(check_kind(kind));
    if (!bytes) return CUDA_SUCCESS;
    switch (kind) {
        case cudaMemcpyHostToDevice: return cuMemcpyHtoDAsync(to, source, bytes, stream);
        case cudaMemcpyDeviceToHost: return cuMemcpyDtoHAsync(target, from, bytes, stream);
        case cudaMemcpyDeviceToDevice: return cuMemcpyDtoDAsync(to, from, bytes, stream);
        default: return cuMemcpyAsync(to, from, bytes, stream);
    }
}

static CUresult copy_peer(void *target, int to, const void *source, int from, size_t bytes, bool async,
                          cudaStream_t stream) {
    CUcontext to_context, from_context;
    RETURN_IF(primary_context(to, &to_context));
    RETURN_IF(primary_context(from, &from_context));
    if (!bytes) return CUDA_SUCCESS;
    return async ? cuMemcpyPeerAsync((CUdeviceptr)target, to_context, (CUdeviceptr)source, from_context, bytes, stream)
                 : cuMemcpyPeer((CUdeviceptr)target, to_context, (CUdeviceptr)source, from_context, bytes);
}

/* ---- boxes ----------------------------------------------------------------------------------------------------- */

static CUresult copy_box(const struct cudaMemcpy3DParms *copy, bool async, cudaStream_t stream) {
    CUDA_MEMCPY3D form;
    RETURN_IF(form_of_copy(copy, &form));
    if (!form.WidthInBytes || !form.Height || !form.Depth) return CUDA_SUCCESS;
    return async ? cuMemcpy3DAsync(&form, stream) : cuMemcpy3D(&form);
}

static CUresult copy_rows(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                          size_t height, enum cudaMemcpyKind kind, bool async, cudaStream_t stream) {
    struct cudaMemcpy3DParms copy = {
        .srcPtr = {.ptr = (void *)source, .pitch = source_pitch, .xsize = width, .ysize = height},
        .dstPtr = {.ptr = target, .pitch = target_pitch, .xsize = width, .ysize = height},
        .extent = {.width = width, .height = height, .depth = 1},
        .kind = kind,
    };
    return copy_box(&copy, async, stream);
}

static CUresult copy_box_peer(const struct cudaMemcpy3DPeerParms *copy, bool async, cudaStream_t stream) {
    CUDA_MEMCPY3D form;
    if (!copy) return fail_null("p");
    struct cudaMemcpy3DParms same = {copy->srcArray, copy->srcPos, copy->srcPtr, copy->dstArray,
                                     copy->dstPos,   copy->dstPtr, copy->extent, cudaMemcpyDefault};
    RETURN_IF(form_of_copy(&same, &form));
    CUDA_MEMCPY3D_PEER peer = AS(CUDA_MEMCPY3D_PEER, form); /* its reserved pointers are the contexts here */
    RETURN_IF(primary_context(copy->srcDevice, &peer.srcContext));
    RETURN_IF(primary_context(copy->dstDevice, &peer.dstContext));
    if (!peer.WidthInBytes || !peer.Height || !peer.Depth) return CUDA_SUCCESS;
    return async ? cuMemcpy3DPeerAsync(&peer, stream) : cuMemcpy3DPeer(&peer);
}

RUNTIME_STREAM(cudaMemcpy, (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
               (dst, src, count, kind), copy_row(dst, src, count, kind))
RUNTIME_STREAM(cudaMemcpyAsync,
               (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream),
               (dst, src, count, kind, stream), copy_row_async(dst, src, count, kind, stream))
RUNTIME(cudaMemcpyPeer, (void *dst, int dstDevice, const void *src, int srcDevice, size_t count),
        copy_peer(dst, dstDevice, src, srcDevice, count, false, NULL))
RUNTIME(cudaMemcpyPeerAsync,
        (void *dst, int dstDevice, const void *src, int srcDevice, size_t count, cudaStream_t stream),
        copy_peer(dst, dstDevice, src, srcDevice, count, true, stream))
RUNTIME_STREAM(cudaMemcpy2D,
               (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                enum cudaMemcpyKind kind),
               (dst, dpitch, src, spitch, width, height, kind),
               copy_rows(dst, dpitch, src, spitch, width, height, kind, false, NULL))
RUNTIME_STREAM(cudaMemcpy2DAsync,
               (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                enum cudaMemcpyKind kind, cudaStream_t stream),
               (dst, dpitch, src, spitch, width, height, kind, stream),
               copy_rows(dst, dpitch, src, spitch, width, height, kind, true, stream))
RUNTIME_STREAM(cudaMemcpy3D, (const struct cudaMemcpy3DParms *p), (p), copy_box(p, false, NULL))
RUNTIME_STREAM(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t stream), (p, stream),
               copy_box(p, true, stream))
RUNTIME_STREAM(cudaMemcpy3DPeer, (const struct cudaMemcpy3DPeerParms *p), (p), copy_box_peer(p, false, NULL))
RUNTIME_STREAM(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream), (p, stream),
               copy_box_peer(p, true, stream))
RUNTIME_STREAM(cudaMemcpyBatchAsync,
               (void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
                struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, cudaStream_t stream),
               (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, stream),
               cuMemcpyBatchAsync((CUdeviceptr *)dsts, (CUdeviceptr *)srcs, (size_t *)sizes, count,
                                  (CUmemcpyAttributes *)attrs, attrsIdxs, numAttrs, stream))
RUNTIME_STREAM(cudaMemcpy3DBatchAsync,
               (size_t numOps, struct cudaMemcpy3DBatchOp *opList, unsigned long long flags, cudaStream_t stream),
               (numOps, opList, flags, stream),
               cuMemcpy3DBatchAsync(numOps, (CUDA_MEMCPY3D_BATCH_OP *)opList, flags, stream))
RUNTIME_STREAM(cudaMemcpyWithAttributesAsync,
               (void *dst, const void *src, size_t size, struct cudaMemcpyAttributes *attr, cudaStream_t stream),
               (dst, src, size, attr, stream),
               cuMemcpyWithAttributesAsync((CUdeviceptr)dst, (CUdeviceptr)src, size, (CUmemcpyAttributes *)attr, stream))
RUNTIME_STREAM(cudaMemcpy3DWithAttributesAsync,
               (struct cudaMemcpy3DBatchOp *op, unsigned long long flags, cudaStream_t stream), (op, flags, stream),
               cuMemcpy3DWithAttributesAsync((CUDA_MEMCPY3D_BATCH_OP *)op, flags, stream))

/* ---- fills ----------------------------------------------------------------------------------------------------- */

static CUresult fill_rows(void *target, size_t pitch, int value, size_t width, size_t height, bool async,
                          cudaStream_t stream) {
    CUdeviceptr to = (CUdeviceptr)target;
    if (!width || !height) return CUDA_SUCCESS;
    return async ? cuMemsetD2D8Async(to, pitch, (unsigned char)value, width, height, stream)
                 : cuMemsetD2D8(to, pitch, (unsigned char)value, width, height);
}

/* Slices that follow each other without a gap are one field of rows. */
static CUresult fill_box(struct cudaPitchedPtr box, int value, struct cudaExtent extent, bool async,
                         cudaStream_t stream) {
    if (extent.depth <= 1 || extent.height == box.ysize)
        return fill_rows(box.ptr, box.pitch, value, extent.width, extent.height * extent.depth, async, stream);
    if (box.ysize < extent.height)
        return fail(CUDA_ERROR_INVALID_VALUE, "the extent has %zu rows, but a slice of the memory only %zu",
                    extent.height, box.ysize);
    for (size_t z = 0; z < extent.depth; z++)
        RETURN_IF(fill_rows((char *)box.ptr + z * box.pitch * box.ysize, box.pitch, value, extent.width, extent.height,
                            async, stream));
    return CUDA_SUCCESS;
}

RUNTIME_STREAM(cudaMemset, (void *devPtr, int value, size_t count), (devPtr, value, count),
               count ? cuMemsetD8((CUdeviceptr)devPtr, (unsigned char)value, count) : CUDA_SUCCESS)
RUNTIME_STREAM(cudaMemsetAsync, (void *devPtr, int value, size_t count, cudaStream_t stream),
               (devPtr, value, count, stream),
               count ? cuMemsetD8Async((CUdeviceptr)devPtr, (unsigned char)value, count, stream) : CUDA_SUCCESS)
RUNTIME_STREAM(cudaMemset2D, (void *devPtr, size_t pitch, int value, size_t width, size_t height),
               (devPtr, pitch, value, width, height), fill_rows(devPtr, pitch, value, width, height, false, NULL))
RUNTIME_STREAM(cudaMemset2DAsync,
               (void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
               (devPtr, pitch, value, width, height, stream),
               fill_rows(devPtr, pitch, value, width, height, true, stream))
RUNTIME_STREAM(cudaMemset3D, (struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent),
               (pitchedDevPtr, value, extent), fill_box(pitchedDevPtr, value, extent, false, NULL))
RUNTIME_STREAM(cudaMemset3DAsync,
               (struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent, cudaStream_t stream),
               (pitchedDevPtr, value, extent, stream), fill_box(pitchedDevPtr, value, extent, true, stream))

const struct entry runtime_copy_entries[] = {
    RUNTIME_ENTRY_STREAM(cudaMemcpy),
    RUNTIME_ENTRY_STREAM(cudaMemcpyAsync),
    RUNTIME_ENTRY(cudaMemcpyPeer),
    RUNTIME_ENTRY(cudaMemcpyPeerAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpy2D),
    RUNTIME_ENTRY_STREAM(cudaMemcpy2DAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpy3D),
    RUNTIME_ENTRY_STREAM(cudaMemcpy3DAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpy3DPeer),
    RUNTIME_ENTRY_STREAM(cudaMemcpy3DPeerAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpyBatchAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpy3DBatchAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpyWithAttributesAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpy3DWithAttributesAsync),
    RUNTIME_ENTRY_STREAM(cudaMemset),
    RUNTIME_ENTRY_STREAM(cudaMemsetAsync),
    RUNTIME_ENTRY_STREAM(cudaMemset2D),
    RUNTIME_ENTRY_STREAM(cudaMemset2DAsync),
    RUNTIME_ENTRY_STREAM(cudaMemset3D),
    RUNTIME_ENTRY_STREAM(cudaMemset3DAsync),
    {NULL, NULL, NULL},
};
