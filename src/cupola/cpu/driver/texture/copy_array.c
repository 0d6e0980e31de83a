/* Copies from and to CUDA arrays (CUDA Driver API, "Memory Management": cuMemcpyHtoA and its like, and the sides of
 * type CU_MEMORYTYPE_ARRAY of cuMemcpy2D and cuMemcpy3D). A layer counts as a slice, the face of a cube as a layer.
 * Bytes are copied, whatever texels they are of: also parts of them, and from texels of one size to those of another.
 * */
#include "array.h"

CUresult array_texel(CUarray array, size_t *bytes) {
    RETURN_IF(array_check(array));
    *bytes = array->texel;
    return CUDA_SUCCESS;
}

static CUresult check_within(const char *role, const char *what, size_t from, size_t count, size_t extent) {
    size_t end;
    if (!__builtin_add_overflow(from, count, &end) && end <= extent) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%zu %s from %zu on do not fit in %s, an array with %zu.", count, what, from,
                role, extent);
}

CUresult array_place_check(const struct array_place *place, const CUDA_MEMCPY3D *form, uint64_t *start, size_t *pitch,
                           size_t *slice) {
    CUarray array = place->array;
    const char *role = place->role;
    if (!array) return fail(CUDA_ERROR_INVALID_VALUE, "the array of %s is null.", role);
    RETURN_IF(array_check(array));
    const struct cpu_image *image = &array->image;
    const size_t unit = array->texel;
    if (array_is_compressed(array) && (place->x % unit || form->WidthInBytes % unit))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "%zu bytes from %zu on, in %s, are not whole blocks: they have %zu bytes each, and 4 x 4 texels.",
                    form->WidthInBytes, place->x, role, unit);
    RETURN_IF(check_within(role, "bytes of a row", place->x, form->WidthInBytes, image->row));
    RETURN_IF(check_within(role, "rows", place->y, form->Height, image->slice / image->row)); /* of texels, or blocks */
    RETURN_IF(check_within(role, "slices or layers", place->z, form->Depth, (size_t)image->depth * image->layers));
    *pitch = image->row;
    *slice = image->slice;
    *start = image->base + place->z * image->slice + place->y * image->row + place->x;
    return CUDA_SUCCESS;
}

/* ---- one row ------------------------------------------------------------------------------------------ */

static CUDA_MEMCPY3D row(size_t size) { return (CUDA_MEMCPY3D){.WidthInBytes = size, .Height = 1, .Depth = 1}; }

static void from_array(CUDA_MEMCPY3D *form, CUarray array, size_t offset) {
    form->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    form->srcArray = array;
    form->srcXInBytes = offset;
}

static void to_array(CUDA_MEMCPY3D *form, CUarray array, size_t offset) {
    form->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    form->dstArray = array;
    form->dstXInBytes = offset;
}

static CUDA_MEMCPY3D host_to_array(CUarray array, size_t offset, const void *host, size_t size) {
    CUDA_MEMCPY3D form = row(size);
    form.srcMemoryType = CU_MEMORYTYPE_HOST;
    form.srcHost = host;
    to_array(&form, array, offset);
    return form;
}

static CUDA_MEMCPY3D array_to_host(void *host, CUarray array, size_t offset, size_t size) {
    CUDA_MEMCPY3D form = row(size);
    form.dstMemoryType = CU_MEMORYTYPE_HOST;
    form.dstHost = host;
    from_array(&form, array, offset);
    return form;
}

static CUresult copy_now(const char *call, const CUDA_MEMCPY3D *form) {
    CUstream stream;
    RETURN_IF(enter_synchronous(call, &stream));
    return copy_submit_form(stream, form, true);
}

CUresult cuMemcpyHtoA(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount) {
    CUDA_MEMCPY3D form = host_to_array(dstArray, dstOffset, srcHost, ByteCount);
    return copy_now("cuMemcpyHtoA", &form);
}

CUresult cuMemcpyAtoH(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
    CUDA_MEMCPY3D form = array_to_host(dstHost, srcArray, srcOffset, ByteCount);
    return copy_now("cuMemcpyAtoH", &form);
}

CUresult cuMemcpyDtoA(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount) {
    CUDA_MEMCPY3D form = row(ByteCount);
    form.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    form.srcDevice = srcDevice;
    to_array(&form, dstArray, dstOffset);
    return copy_now("cuMemcpyDtoA", &form);
}

CUresult cuMemcpyAtoD(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
    CUDA_MEMCPY3D form = row(ByteCount);
    form.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    form.dstDevice = dstDevice;
    from_array(&form, srcArray, srcOffset);
    return copy_now("cuMemcpyAtoD", &form);
}

CUresult cuMemcpyAtoA(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
    CUDA_MEMCPY3D form = row(ByteCount);
    from_array(&form, srcArray, srcOffset);
    to_array(&form, dstArray, dstOffset);
    return copy_now("cuMemcpyAtoA", &form);
}

CUresult cuMemcpyHtoAAsync(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
                           CUstream hStream) {
    CUstream stream;
    CUDA_MEMCPY3D form = host_to_array(dstArray, dstOffset, srcHost, ByteCount);
    RETURN_IF(enter_stream(hStream, &stream));
    return copy_submit_form(stream, &form, false);
}

CUresult cuMemcpyAtoHAsync(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream) {
    CUstream stream;
    CUDA_MEMCPY3D form = array_to_host(dstHost, srcArray, srcOffset, ByteCount);
    RETURN_IF(enter_stream(hStream, &stream));
    return copy_submit_form(stream, &form, false);
}

PER_THREAD(cuMemcpyHtoA, (CUarray dst, size_t offset, const void *src, size_t n), (dst, offset, src, n))
PER_THREAD(cuMemcpyAtoH, (void *dst, CUarray src, size_t offset, size_t n), (dst, src, offset, n))
PER_THREAD(cuMemcpyDtoA, (CUarray dst, size_t offset, CUdeviceptr src, size_t n), (dst, offset, src, n))
PER_THREAD(cuMemcpyAtoD, (CUdeviceptr dst, CUarray src, size_t offset, size_t n), (dst, src, offset, n))
PER_THREAD(cuMemcpyAtoA, (CUarray dst, size_t to, CUarray src, size_t from, size_t n), (dst, to, src, from, n))
PER_THREAD(cuMemcpyHtoAAsync, (CUarray dst, size_t offset, const void *src, size_t n, CUstream s),
           (dst, offset, src, n, s))
PER_THREAD(cuMemcpyAtoHAsync, (void *dst, CUarray src, size_t offset, size_t n, CUstream s), (dst, src, offset, n, s))

const struct entry copy_array_entries[] = {
    ENTRY_STREAM_V2(cuMemcpyHtoA),      ENTRY_STREAM_V2(cuMemcpyAtoH),
    ENTRY_STREAM_V2(cuMemcpyDtoA),      ENTRY_STREAM_V2(cuMemcpyAtoD),
    ENTRY_STREAM_V2(cuMemcpyAtoA),      ENTRY_STREAM_V2(cuMemcpyHtoAAsync),
    ENTRY_STREAM_V2(cuMemcpyAtoHAsync), {NULL, NULL, NULL},
};
