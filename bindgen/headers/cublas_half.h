/* The functions of cuBLAS for matrices of halves, which cublas_api.h declares for C++ only. */
#include "cublas_api.h"
#include "half.h"

#define HALF_PRODUCTS(suffix, size)                                                                                    \
    cublasStatus_t cublasHgemm##suffix(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,       \
                                       size m, size n, size k, const __half *alpha, const __half *A, size lda,          \
                                       const __half *B, size ldb, const __half *beta, __half *C, size ldc);             \
    cublasStatus_t cublasHgemmBatched##suffix(                                                                          \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, size m, size n, size k,              \
        const __half *alpha, const __half *const Aarray[], size lda, const __half *const Barray[], size ldb,            \
        const __half *beta, __half *const Carray[], size ldc, size batchCount);                                         \
    cublasStatus_t cublasHgemmStridedBatched##suffix(                                                                   \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, size m, size n, size k,              \
        const __half *alpha, const __half *A, size lda, long long int strideA, const __half *B, size ldb,               \
        long long int strideB, const __half *beta, __half *C, size ldc, long long int strideC, size batchCount);

HALF_PRODUCTS(, int)
HALF_PRODUCTS(_64, int64_t)
