/* Copies of the runtime in the form of the driver, and back. The runtime names a direction (cudaMemcpyKind), the driver
 * the kind of memory at either end; with the default kind both are found from the addresses. */
#include "cudart.h"

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

/* One end of a copy: memory at an address, or an array. Positions count bytes, but the array's texels when there is one
 * at either end. */
static CUresult check_end(const char *role, cudaArray_t array, const struct cudaPitchedPtr *end, size_t width,
                          const struct cudaExtent *extent) {
    bool several = extent->height > 1 || extent->depth > 1;
    if (array && end->ptr)
        return fail(CUDA_ERROR_INVALID_VALUE, "the %s is given as an array and as an address: it can be only one",
                    role);
    if (!array && several && end->pitch < width)
        return fail_runtime(cudaErrorInvalidPitchValue, "the pitch of the %s is %zu bytes, less than the width of %zu",
                            role, end->pitch, width);
    return CUDA_SUCCESS;
}

static CUresult in_bytes(size_t count, size_t texel, size_t *bytes) {
    if (!__builtin_mul_overflow(count, texel, bytes)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%zu texels of %zu bytes are more than the address space holds", count,
                texel);
}

/* Where and how many texels are in blocks: what is only begun counts whole. */
static CUresult in_blocks(const char *role, const struct cudaPos *given, size_t block, struct cudaPos *place) {
    *place = (struct cudaPos){given->x / block, given->y / block, given->z};
    if (given->x % block == 0 && given->y % block == 0) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "the place in the %s, x %zu and y %zu, is within a block of %zu x %zu texels",
                role, given->x, given->y, block, block);
}

CUresult form_of_copy(const struct cudaMemcpy3DParms *copy, CUDA_MEMCPY3D *form) {
    if (!copy) return fail_null("p");
    RETURN_IF(check_kind(copy->kind));
    size_t texel = 1, to_texel, from_x, to_x, width, block = 1;
    struct cudaPos from, to;
    if (copy->srcArray) RETURN_IF(texel_of(copy->srcArray, &texel, &block));
    to_texel = texel;
    if (copy->dstArray) RETURN_IF(texel_of(copy->dstArray, &to_texel, &block));
    if (copy->srcArray && texel != to_texel)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the source has texels of %zu bytes, the target of %zu: they must be the same", texel, to_texel);
    RETURN_IF(in_blocks("source", &copy->srcPos, block, &from));
    RETURN_IF(in_blocks("target", &copy->dstPos, block, &to));
    RETURN_IF(in_bytes(from.x, to_texel, &from_x));
    RETURN_IF(in_bytes(to.x, to_texel, &to_x));
    RETURN_IF(in_bytes(copy->extent.width / block + !!(copy->extent.width % block), to_texel, &width));
    RETURN_IF(check_end("source", copy->srcArray, &copy->srcPtr, width, &copy->extent));
    RETURN_IF(check_end("target", copy->dstArray, &copy->dstPtr, width, &copy->extent));
    *form = (CUDA_MEMCPY3D){
        .srcXInBytes = from_x,
        .srcY = from.y,
        .srcZ = from.z,
        .srcMemoryType = copy->srcArray ? CU_MEMORYTYPE_ARRAY : source_type(copy->kind),
        .srcArray = (CUarray)copy->srcArray,
        .srcHost = copy->srcPtr.ptr,
        .srcDevice = (CUdeviceptr)copy->srcPtr.ptr,
        .srcPitch = copy->srcPtr.pitch,
        .srcHeight = copy->srcPtr.ysize,
        .dstXInBytes = to_x,
        .dstY = to.y,
        .dstZ = to.z,
        .dstMemoryType = copy->dstArray ? CU_MEMORYTYPE_ARRAY : target_type(copy->kind),
        .dstArray = (CUarray)copy->dstArray,
        .dstHost = copy->dstPtr.ptr,
        .dstDevice = (CUdeviceptr)copy->dstPtr.ptr,
        .dstPitch = copy->dstPtr.pitch,
        .dstHeight = copy->dstPtr.ysize,
        .WidthInBytes = width,
        .Height = copy->extent.height / block + !!(copy->extent.height % block),
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
    size_t texel = 1, block = 1; /* for an array that is gone, too */
    if (form->srcArray || form->dstArray)
        (void)texel_of((cudaArray_t)(form->srcArray ? form->srcArray : form->dstArray), &texel, &block);
    *copy = (struct cudaMemcpy3DParms){
        .srcArray = (cudaArray_t)form->srcArray,
        .dstArray = (cudaArray_t)form->dstArray,
        .srcPos = {form->srcXInBytes / texel * block, form->srcY * block, form->srcZ},
        .srcPtr = {.ptr = from_host ? (void *)form->srcHost : (void *)form->srcDevice,
                   .pitch = form->srcPitch,
                   .xsize = form->srcPitch,
                   .ysize = form->srcHeight},
        .dstPos = {form->dstXInBytes / texel * block, form->dstY * block, form->dstZ},
        .dstPtr = {.ptr = to_host ? form->dstHost : (void *)form->dstDevice,
                   .pitch = form->dstPitch,
                   .xsize = form->dstPitch,
                   .ysize = form->dstHeight},
        .extent = {form->WidthInBytes / texel * block, form->Height * block, form->Depth},
        .kind = kind_of(form->srcMemoryType, form->dstMemoryType),
    };
}
