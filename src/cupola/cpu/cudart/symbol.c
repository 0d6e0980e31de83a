/* Variables of the device by symbol (CUDA Runtime API, "Memory Management").
 *
 * A symbol is the address of the host variable that nvcc has registered for one of the device (host_code.c). A program
 * without code from nvcc has none. */
#include "cudart.h"

static CUresult get_address(void **address, const void *symbol) {
    CUdeviceptr found;
    if (!address) return fail_null("devPtr");
    RETURN_IF(host_variable(symbol, &found, NULL));
    *address = (void *)found;
    return CUDA_SUCCESS;
}

static CUresult get_size(size_t *size, const void *symbol) {
    return size ? host_variable(symbol, NULL, size) : fail_null("size");
}

CUresult part_of_variable(const void *symbol, size_t offset, size_t count, void **address) {
    CUdeviceptr found;
    size_t size, end;
    RETURN_IF(host_variable(symbol, &found, &size));
    if (count && (__builtin_add_overflow(offset, count, &end) || end > size))
        return fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes at offset %zu are not in the variable, which has %zu bytes",
                    count, offset, size);
    *address = (char *)found + offset;
    return CUDA_SUCCESS;
}

static CUresult copy_to(const void *symbol, const void *source, size_t count, size_t offset, enum cudaMemcpyKind kind,
                        bool async, cudaStream_t stream) {
    void *target;
    if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost)
        return fail_runtime(cudaErrorInvalidMemcpyDirection, "the target is a variable of the device");
    RETURN_IF(part_of_variable(symbol, offset, count, &target));
    return async ? copy_row_async(target, source, count, kind, stream) : copy_row(target, source, count, kind);
}

static CUresult copy_from(void *target, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                          bool async, cudaStream_t stream) {
    void *source;
    if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost)
        return fail_runtime(cudaErrorInvalidMemcpyDirection, "the source is a variable of the device");
    RETURN_IF(part_of_variable(symbol, offset, count, &source));
    return async ? copy_row_async(target, source, count, kind, stream) : copy_row(target, source, count, kind);
}

RUNTIME(cudaGetSymbolAddress, (void **devPtr, const void *symbol), get_address(devPtr, symbol))
RUNTIME(cudaGetSymbolSize, (size_t *size, const void *symbol), get_size(size, symbol))
RUNTIME_STREAM(cudaMemcpyToSymbol,
               (const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind),
               (symbol, src, count, offset, kind), copy_to(symbol, src, count, offset, kind, false, NULL))
RUNTIME_STREAM(cudaMemcpyFromSymbol,
               (void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
               (dst, symbol, count, offset, kind), copy_from(dst, symbol, count, offset, kind, false, NULL))
RUNTIME_STREAM(cudaMemcpyToSymbolAsync,
               (const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind,
                cudaStream_t stream),
               (symbol, src, count, offset, kind, stream), copy_to(symbol, src, count, offset, kind, true, stream))
RUNTIME_STREAM(cudaMemcpyFromSymbolAsync,
               (void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                cudaStream_t stream),
               (dst, symbol, count, offset, kind, stream), copy_from(dst, symbol, count, offset, kind, true, stream))

const struct entry runtime_symbol_entries[] = {
    RUNTIME_ENTRY(cudaGetSymbolAddress),
    RUNTIME_ENTRY(cudaGetSymbolSize),
    RUNTIME_ENTRY_STREAM(cudaMemcpyToSymbol),
    RUNTIME_ENTRY_STREAM(cudaMemcpyFromSymbol),
    RUNTIME_ENTRY_STREAM(cudaMemcpyToSymbolAsync),
    RUNTIME_ENTRY_STREAM(cudaMemcpyFromSymbolAsync),
    {NULL, NULL, NULL},
};
