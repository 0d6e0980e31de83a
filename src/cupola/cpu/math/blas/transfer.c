/* Copies of vectors and matrices between the host and the device (cuBLAS Library, 2.4.8 to 2.4.15). */
#include "blas.h"

#include "cudart/driver_functions.h"

/* Lines of `width` bytes, which begin `from_step` and `to_step` bytes after each other. */
struct lines {
    const void *from;
    void *to;
    size_t from_step, to_step, width, count;
    bool to_device;
};

static cublasStatus_t copy_lines(const struct lines *lines, const cudaStream_t *stream) {
    if (!lines->width || !lines->count) return CUBLAS_STATUS_SUCCESS;
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = lines->to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .dstMemoryType = lines->to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .srcPitch = lines->from_step,
        .dstPitch = lines->to_step,
        .WidthInBytes = lines->width,
        .Height = lines->count,
    };
    copy.srcHost = lines->from, copy.srcDevice = (CUdeviceptr)lines->from;
    copy.dstHost = lines->to, copy.dstDevice = (CUdeviceptr)lines->to;
    CUresult status = enter_runtime();
    if (!status) status = stream ? cuMemcpy2DAsync(&copy, (CUstream)*stream) : cuMemcpy2DUnaligned(&copy);
    if (!status) return CUBLAS_STATUS_SUCCESS;
    thread_state.failed = (CUresult)CUBLAS_STATUS_MAPPING_ERROR; /* the sentence of the copy explains this status */
    return CUBLAS_STATUS_MAPPING_ERROR;
}

static cublasStatus_t copy_vector(const char *function, int64_t n, int64_t size, const void *from, int64_t from_step,
                                  void *to, int64_t to_step, bool to_device, const cudaStream_t *stream) {
    BLAS_CHECK(n >= 0, "%s: n is %lld", function, (long long)n);
    if (!n) return CUBLAS_STATUS_SUCCESS;
    BLAS_CHECK(size > 0 && from_step > 0 && to_step > 0, "%s: elements of %lld bytes, increments of %lld and %lld",
               function, (long long)size, (long long)from_step, (long long)to_step);
    struct lines lines = {from,      to,       (size_t)(from_step * size), (size_t)(to_step * size), (size_t)size,
                          (size_t)n, to_device};
    return copy_lines(&lines, stream);
}

static cublasStatus_t copy_matrix(const char *function, int64_t rows, int64_t columns, int64_t size, const void *from,
                                  int64_t lda, void *to, int64_t ldb, bool to_device, const cudaStream_t *stream) {
    BLAS_CHECK(rows >= 0 && columns >= 0 && size > 0 && lda > 0 && ldb > 0,
               "%s: %lld rows, %lld columns, elements of %lld bytes, leading dimensions of %lld and %lld", function,
               (long long)rows, (long long)columns, (long long)size, (long long)lda, (long long)ldb);
    if (!rows || !columns) return CUBLAS_STATUS_SUCCESS;
    if (lda < rows || ldb < rows)
        return blas_fail(CUBLAS_STATUS_MAPPING_ERROR, "%s: leading dimensions of %lld and %lld for %lld rows", function,
                         (long long)lda, (long long)ldb, (long long)rows);
    struct lines lines = {
        from, to, (size_t)(lda * size), (size_t)(ldb * size), (size_t)(rows * size), (size_t)columns, to_device};
    return copy_lines(&lines, stream);
}

#define TRANSFER(Verb, is_to_device, W, N)                                                          \
    static cublasStatus_t cublas##Verb##Vector##W(N n, N size, const void *x, N incx, void *y, N incy) {                \
        return copy_vector("cublas" #Verb "Vector" #W, n, size, x, incx, y, incy, is_to_device, NULL);                  \
    }                                                                                                                   \
    static cublasStatus_t cublas##Verb##VectorAsync##W(N n, N size, const void *x, N incx, void *y, N incy,             \
                                                       cudaStream_t stream) {                                           \
        return copy_vector("cublas" #Verb "VectorAsync" #W, n, size, x, incx, y, incy, is_to_device, &stream);          \
    }                                                                                                                   \
    static cublasStatus_t cublas##Verb##Matrix##W(N rows, N cols, N size, const void *A, N lda, void *B_, N ldb) {      \
        return copy_matrix("cublas" #Verb "Matrix" #W, rows, cols, size, A, lda, B_, ldb, is_to_device, NULL);          \
    }                                                                                                                   \
    static cublasStatus_t cublas##Verb##MatrixAsync##W(N rows, N cols, N size, const void *A, N lda, void *B_, N ldb,   \
                                                       cudaStream_t stream) {                                           \
        return copy_matrix("cublas" #Verb "MatrixAsync" #W, rows, cols, size, A, lda, B_, ldb, is_to_device, &stream);  \
    }
TRANSFER(Set, true, , int)
TRANSFER(Set, true, _64, int64_t)
TRANSFER(Get, false, , int)
TRANSFER(Get, false, _64, int64_t)

#define ENTRIES(Verb, W)                                                                     \
    BLAS_ENTRY(cublas##Verb##Vector##W), BLAS_ENTRY(cublas##Verb##VectorAsync##W),           \
        BLAS_ENTRY(cublas##Verb##Matrix##W), BLAS_ENTRY(cublas##Verb##MatrixAsync##W),

const struct entry blas_transfer_entries[] = {
    ENTRIES(Set, ) ENTRIES(Set, _64) ENTRIES(Get, ) ENTRIES(Get, _64){NULL, NULL, NULL},
};
