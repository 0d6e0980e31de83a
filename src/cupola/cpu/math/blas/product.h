/* Products of matrices, for the files that have functions of them (product.c). */
#ifndef CUPOLA_CPU_MATH_BLAS_PRODUCT_H
#define CUPOLA_CPU_MATH_BLAS_PRODUCT_H

#include "blas.h"

/* The arguments of all their functions. */
struct product {
    cublasOperation_t op_a, op_b;
    int64_t m, n, k;
    const void *alpha, *a, *b, *beta;
    void *c;
    enum element a_type, b_type, c_type, compute, scale;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
    bool pointers;
};

/* The operation of a product, whose arguments are checked; NULL: there is nothing to do. */
cublasStatus_t product_make(cublasHandle_t handle, const char *function, struct product p, struct blas **made);

#endif
