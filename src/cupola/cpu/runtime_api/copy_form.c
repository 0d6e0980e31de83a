/* Copies of the runtime in the form of the driver, and back. The runtime names a direction (cudaMemcpyKind), the driver the
 * kind of memory at either end; with the default kind both are found from the addresses. */
#include "runtime_api.h"

CUresult check_kind(enum cudaMemcpyKind kind) {
    return (unsigned)kind <= cudaMemcpyDefault
               ? CUDA_SUCCESS
               : fail_runtime(cudaErrorInvalidMemcpyDirection, "%d is not a cudaMemcpyKind", (int)kind);
}

CUmemorytype source_type(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ? CU_MEMORYTYPE_DEVICE
           : kind == cudaMemcpyHostToDevice                                   ? CU_MEMORYTYPE_HOST
                                                                              : CU_MEMORYTYPE_UNIFIED;
}

CUmemorytype target_type(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ? CU_MEMORYTYPE_DEVICE
           : kind == cudaMemcpyDeviceToHost                                   ? CU_MEMORYTYPE_HOST
                                                                              : CU_MEMORYTYPE_UNIFIED;
}

static enum cudaMemcpyKind kind_of(CUmemorytype source, CUmemorytype target) {
    bool from_host = source == CU_MEMORYTYPE_HOST, to_host = target == CU_MEMORYTYPE_HOST;
    if (source == CU_MEMORYTYPE_UNIFIED || target == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
    return from_host ? to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice
           : to_host ? cudaMemcpyDeviceToHost
                     : cudaMemcpyDeviceToDevice;
}

static CUresult check_pitch(const char *role, const struct cudaPitchedPtr *end, const struct cudaExtent *extent) {
    bool several = extent->height > 1 || extent->depth > 1;
    if (several && end->pitch < extent->width)
        return fail_runtime(cudaErrorInvalidPitchValue, "the pitch of the %s is %zu bytes, less than the width of %zu",
                            role, end->pitch, extent->width);
    return CUDA_SUCCESS;
}

CUresult form_of_copy(const struct cudaMemcpy3DParms *copy, CUDA_MEMCPY3D *form) {
    if (!copy) return fail_null("p");
    RETURN_IF(check_kind(copy->kind));
    if (copy->srcArray || copy->dstArray)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "the runtime of the CPU device does not copy from and to arrays: use the "
                                              "driver's functions, or linear memory");
    RETURN_IF(check_pitch("source", &copy->srcPtr, &copy->extent));
    RETURN_IF(check_pitch("target", &copy->dstPtr, &copy->extent));
    *form = (CUDA_MEMCPY3D){
        .srcXInBytes = copy->srcPos.x,
        .srcY = copy->srcPos.y,
        .srcZ = copy->srcPos.z,
        .srcMemoryType = source_type(copy->kind),
        .srcHost = copy->srcPtr.ptr,
        .srcDevice = (CUdeviceptr)copy->srcPtr.ptr,
        .srcPitch = copy->srcPtr.pitch,
        .srcHeight = copy->srcPtr.ysize,
        .dstXInBytes = copy->dstPos.x,
        .dstY = copy->dstPos.y,
        .dstZ = copy->dstPos.z,
        .dstMemoryType = target_type(copy->kind),
        .dstHost = copy->dstPtr.ptr,
        .dstDevice = (CUdeviceptr)copy->dstPtr.ptr,
        .dstPitch = copy->dstPtr.pitch,
        .dstHeight = copy->dstPtr.ysize,
        .WidthInBytes = copy->extent.width,
        .Height = copy->extent.height,
        .Depth = copy->extent.depth,
    };
    return CUDA_SUCCESS;
}

CUresult form_of_row(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *form) {
    struct cudaMemcpy3DParms copy = {
        .srcPtr = {.ptr = (void *)source, .pitch = bytes, .xsize = bytes, .ysize = 1},
        .dstPtr = {.ptr = target, .pitch = bytes, .xsize = bytes, .ysize = 1},
        .extent = {.width = bytes, .height = 1, .depth = 1},
        .kind = kind,
    };
    return form_of_copy(&copy, form);
}

void copy_of_form(const CUDA_MEMCPY3D *form, struct cudaMemcpy3DParms *copy) {
    bool from_host = form->srcMemoryType == CU_MEMORYTYPE_HOST, to_host = form->dstMemoryType == CU_MEMORYTYPE_HOST;
    *copy = (struct cudaMemcpy3DParms){
        .srcPos = {form->srcXInBytes, form->srcY, form->srcZ},
        .srcPtr = {.ptr = from_host ? (void *)form->srcHost : (void *)form->srcDevice,
                   .pitch = form->srcPitch,
                   .xsize = form->srcPitch,
                   .ysize = form->srcHeight},
        .dstPos = {form->dstXInBytes, form->dstY, form->dstZ},
        .dstPtr = {.ptr = to_host ? form->dstHost : (void *)form->dstDevice,
                   .pitch = form->dstPitch,
                   .xsize = form->dstPitch,
                   .ysize = form->dstHeight},
        .extent = {form->WidthInBytes, form->Height, form->Depth},
        .kind = kind_of(form->srcMemoryType, form->dstMemoryType),
    };
}
