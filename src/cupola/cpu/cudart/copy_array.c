/* Copies from and to arrays whose offsets and widths are bytes (CUDA Runtime API, "Memory Management"). cudaMemcpy3D,
 * which counts texels, is in copy.c. */
#include "cudart.h"

struct end { /* an array with an offset, or memory with a pitch */
    cudaArray_t array;
    size_t x, y; /* bytes, rows */
    char *memory;
    size_t pitch;
};

static CUresult copy_block(const struct end *to, const struct end *from, size_t width, size_t height,
                           enum cudaMemcpyKind kind, bool async, cudaStream_t stream) {
    CUDA_MEMCPY3D form = {
        .srcXInBytes = from->x,
        .srcY = from->y,
        .srcMemoryType = from->array ? CU_MEMORYTYPE_ARRAY : source_type(kind),
        .srcArray = (CUarray)from->array,
        .srcHost = from->memory,
        .srcDevice = (CUdeviceptr)from->memory,
        .srcPitch = from->pitch,
        .dstXInBytes = to->x,
        .dstY = to->y,
        .dstMemoryType = to->array ? CU_MEMORYTYPE_ARRAY : target_type(kind),
        .dstArray = (CUarray)to->array,
        .dstHost = to->memory,
        .dstDevice = (CUdeviceptr)to->memory,
        .dstPitch = to->pitch,
        .WidthInBytes = width,
        .Height = height,
        .Depth = 1,
    };
    return async ? cuMemcpy3DAsync(&form, stream) : cuMemcpy3D(&form);
}

/* A null array would pass for memory. */
static CUresult check_end(const struct end *end, bool is_array, size_t width, size_t height) {
    if (is_array && !end->array) return fail(CUDA_ERROR_INVALID_HANDLE, "the CUDA array is null");
    if (!is_array && height > 1 && end->pitch < width)
        return fail_runtime(cudaErrorInvalidPitchValue, "the pitch is %zu bytes, less than the width of %zu",
                            end->pitch, width);
    return CUDA_SUCCESS;
}

static CUresult copy_rows(struct end to, bool to_array, struct end from, bool from_array, size_t width, size_t height,
                          enum cudaMemcpyKind kind, bool async, cudaStream_t stream) {
    RETURN_IF(check_kind(kind));
    RETURN_IF(check_end(&to, to_array, width, height));
    RETURN_IF(check_end(&from, from_array, width, height));
    return width && height ? copy_block(&to, &from, width, height, kind, async, stream) : CUDA_SUCCESS;
}

/* ---- bytes that go on from row to row -------------------------------------------------------------------------- */

/* The bytes of an array's rows; of memory, as if it were a single endless one. */
static CUresult row_length(const struct end *end, size_t *bytes) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    size_t texel, block;
    *bytes = SIZE_MAX;
    if (!end->array) return CUDA_SUCCESS;
    RETURN_IF(cuArray3DGetDescriptor(&descriptor, (CUarray)end->array));
    RETURN_IF(texel_of(end->array, &texel, &block));
    *bytes = (descriptor.Width + block - 1) / block * texel;
    if (end->x < *bytes) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "the offset is %zu bytes, the rows of the array have %zu", end->x, *bytes);
}

static void advance(struct end *end, size_t row, size_t bytes) {
    if (!end->array) {
        end->memory += bytes;
        return;
    }
    end->x += bytes;
    end->y += end->x / row;
    end->x %= row;
}

/* What is left of a row, or all the whole rows at once. */
static CUresult copy_stream(struct end to, bool to_array, struct end from, bool from_array, size_t count,
                            enum cudaMemcpyKind kind, bool async, cudaStream_t stream) {
    size_t to_row, from_row;
    RETURN_IF(check_kind(kind));
    RETURN_IF(check_end(&to, to_array, 0, 0));
    RETURN_IF(check_end(&from, from_array, 0, 0));
    RETURN_IF(row_length(&to, &to_row));
    RETURN_IF(row_length(&from, &from_row));
    while (count) {
        size_t row = to_row < from_row ? to_row : from_row, rest = count, height = 1;
        if (rest > to_row - to.x) rest = to_row - to.x;
        if (rest > from_row - from.x) rest = from_row - from.x;
        bool whole = to.x == 0 && from.x == 0 && (to_row == from_row || !to.array || !from.array);
        if (whole && count >= row) {
            rest = row;
            height = count / row;
        }
        to.pitch = from.pitch = rest;
        RETURN_IF(copy_block(&to, &from, rest, height, kind, async, stream));
        advance(&to, to_row, rest * height);
        advance(&from, from_row, rest * height);
        count -= rest * height;
    }
    return CUDA_SUCCESS;
}

#define IN_ARRAY(handle, w, h) ((struct end){.array = (cudaArray_t)(handle), .x = (w), .y = (h)}), true
#define IN_MEMORY(address, distance) ((struct end){.memory = (char *)(address), .pitch = (distance)}), false

RUNTIME_STREAM(cudaMemcpy2DToArray,
               (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width,
                size_t height, enum cudaMemcpyKind kind),
               (dst, wOffset, hOffset, src, spitch, width, height, kind),
               copy_rows(IN_ARRAY(dst, wOffset, hOffset), IN_MEMORY(src, spitch), width, height, kind, false, NULL))
RUNTIME_STREAM(cudaMemcpy2DToArrayAsync,
               (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width,
                size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
               (dst, wOffset, hOffset, src, spitch, width, height, kind, stream),
               copy_rows(IN_ARRAY(dst, wOffset, hOffset), IN_MEMORY(src, spitch), width, height, kind, true, stream))
RUNTIME_STREAM(cudaMemcpy2DFromArray,
               (void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
                size_t height, enum cudaMemcpyKind kind),
               (dst, dpitch, src, wOffset, hOffset, width, height, kind),
               copy_rows(IN_MEMORY(dst, dpitch), IN_ARRAY(src, wOffset, hOffset), width, height, kind, false, NULL))
RUNTIME_STREAM(cudaMemcpy2DFromArrayAsync,
               (void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
                size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
               (dst, dpitch, src, wOffset, hOffset, width, height, kind, stream),
               copy_rows(IN_MEMORY(dst, dpitch), IN_ARRAY(src, wOffset, hOffset), width, height, kind, true, stream))
RUNTIME_STREAM(cudaMemcpy2DArrayToArray,
               (cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,
                size_t hOffsetSrc, size_t width, size_t height, enum cudaMemcpyKind kind),
               (dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, width, height, kind),
               copy_rows(IN_ARRAY(dst, wOffsetDst, hOffsetDst), IN_ARRAY(src, wOffsetSrc, hOffsetSrc), width, height,
                         kind, false, NULL))
RUNTIME_STREAM(cudaMemcpyToArray,
               (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
                enum cudaMemcpyKind kind),
               (dst, wOffset, hOffset, src, count, kind),
               copy_stream(IN_ARRAY(dst, wOffset, hOffset), IN_MEMORY(src, 0), count, kind, false, NULL))
RUNTIME_STREAM(cudaMemcpyToArrayAsync,
               (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
                enum cudaMemcpyKind kind, cudaStream_t stream),
               (dst, wOffset, hOffset, src, count, kind, stream),
               copy_stream(IN_ARRAY(dst, wOffset, hOffset), IN_MEMORY(src, 0), count, kind, true, stream))
RUNTIME_STREAM(cudaMemcpyFromArray,
               (void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                enum cudaMemcpyKind kind),
               (dst, src, wOffset, hOffset, count, kind),
               copy_stream(IN_MEMORY(dst, 0), IN_ARRAY(src, wOffset, hOffset), count, kind, false, NULL))
RUNTIME_STREAM(cudaMemcpyFromArrayAsync,
               (void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                enum cudaMemcpyKind kind, cudaStream_t stream),
               (dst, src, wOffset, hOffset, count, kind, stream),
               copy_stream(IN_MEMORY(dst, 0), IN_ARRAY(src, wOffset, hOffset), count, kind, true, stream))
RUNTIME_STREAM(cudaMemcpyArrayToArray,
               (cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,
                size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind),
               (dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, count, kind),
               copy_stream(IN_ARRAY(dst, wOffsetDst, hOffsetDst), IN_ARRAY(src, wOffsetSrc, hOffsetSrc), count, kind,
                           false, NULL))

const struct entry runtime_copy_array_entries[] = {
    RUNTIME_ENTRY_STREAM(cudaMemcpy2DToArray),
    RUNTIME_ENTRY_STREAM(cudaMemcpy2DToArrayAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpy2DFromArray),
    RUNTIME_ENTRY_STREAM(cudaMemcpy2DFromArrayAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpy2DArrayToArray),
    RUNTIME_ENTRY_STREAM(cudaMemcpyToArray),
    RUNTIME_ENTRY_STREAM(cudaMemcpyToArrayAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpyFromArray),
    RUNTIME_ENTRY_STREAM(cudaMemcpyFromArrayAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpyArrayToArray),
    {NULL, NULL, NULL},
};
