/* Level 2: a matrix and vectors (cuBLAS Library, 2.6). */
#include "blas.h"

enum form { GEMV, SYMV, TRMV, TRSV, GER };

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

/* y = alpha op(A) x + beta y, for one matrix. */
static CUresult product(const struct blas *blas, const void *a, const void *x, void *y, number alpha, number beta) {
    enum element type = blas->type;
    bool turned = blas->form == GEMV && blas->op_a != CUBLAS_OP_N;
    int64_t rows = blas->m, columns = blas->n, length_x = turned ? rows : columns, length_y = turned ? columns : rows;
    blas_int incx = blas->ldb, incy = blas->ldc, lda = blas->lda;
    RETURN_IF(touch_vector(blas, "the vector y", y, type, length_y, incy));
    scale_by(type, y, 1, length_y, incy < 0 ? -incy : incy, beta);
    if (alpha == 0) return CUDA_SUCCESS;
    RETURN_IF(touch_matrix(blas, "the matrix A", a, type, rows, columns, lda));
    RETURN_IF(touch_vector(blas, "the vector x", x, type, length_x, incx));
    char factor[16], one[16];
    element_store(type, factor, 0, alpha);
    element_store(type, one, 0, 1);
    if (blas->form == GEMV && multiply_in_pieces(type, turned, rows, columns, factor, a, lda, x, incx, y, incy))
        return CUDA_SUCCESS;
    if (blas->form == GEMV)
        openblas.gemv[type](operation_name(blas->op_a), &blas->m, &blas->n, factor, a, &lda, x, &incx, one, y, &incy,
                            (size_t)1);
    else
        (blas->conjugate ? openblas.hemv : openblas.symv)[type](fill_name(blas->fill), &blas->n, factor, a, &lda, x,
                                                                &incx, one, y, &incy, (size_t)1);
    return CUDA_SUCCESS;
}

static CUresult run_product(struct blas *blas) {
    number alpha, beta;
    RETURN_IF(scalar_value(blas, &blas->alpha, &alpha));
    RETURN_IF(scalar_value(blas, &blas->beta, &beta));
    int64_t count = blas->batch == NO_BATCH ? 1 : blas->batch;
    for (int64_t i = 0; i < count; i++) {
        void *a, *x, *y;
        RETURN_IF(batch_at(blas, "the array of A", blas->a, blas->type, blas->stride_a, i, &a));
        RETURN_IF(batch_at(blas, "the array of x", blas->b, blas->type, blas->stride_b, i, &x));
        RETURN_IF(batch_at(blas, "the array of y", blas->c, blas->type, blas->stride_c, i, &y));
        RETURN_IF(product(blas, a, x, y, alpha, beta));
    }
    return CUDA_SUCCESS;
}

static CUresult run_triangle(struct blas *blas) {
    RETURN_IF(touch_matrix(blas, "the matrix A", blas->a, blas->type, blas->n, blas->n, blas->lda));
    RETURN_IF(touch_vector(blas, "the vector x", blas->b, blas->type, blas->n, blas->ldb));
    (blas->form == TRMV ? openblas.trmv : openblas.trsv)[blas->type](
        fill_name(blas->fill), operation_name(blas->op_a), diagonal_name(blas->diagonal), &blas->n, blas->a, &blas->lda,
        blas->b, &blas->ldb, (size_t)1, (size_t)1, (size_t)1);
    return CUDA_SUCCESS;
}

/* A += alpha x y', where A is c, x is a and y is b. */
static CUresult run_outer(struct blas *blas) {
    number alpha;
    char factor[16];
    RETURN_IF(scalar_value(blas, &blas->alpha, &alpha));
    if (alpha == 0) return CUDA_SUCCESS;
    RETURN_IF(touch_vector(blas, "the vector x", blas->a, blas->type, blas->m, blas->lda));
    RETURN_IF(touch_vector(blas, "the vector y", blas->b, blas->type, blas->n, blas->ldb));
    RETURN_IF(touch_matrix(blas, "the matrix A", blas->c, blas->type, blas->m, blas->n, blas->ldc));
    element_store(blas->type, factor, 0, alpha);
    (blas->conjugate ? openblas.gerc : openblas.ger)[blas->type](&blas->m, &blas->n, factor, blas->a, &blas->lda,
                                                                 blas->b, &blas->ldb, blas->c, &blas->ldc);
    return CUDA_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct operands {
    enum form form;
    enum element type;
    bool conjugate, pointers;
    cublasOperation_t op;
    cublasFillMode_t fill;
    int64_t m, n;
    const void *alpha, *a, *x, *beta;
    void *y;
    int64_t lda, incx, incy, stride_a, stride_x, stride_y, batch;
};

static cublasStatus_t submit_product(cublasHandle_t handle, const char *function, struct operands p) {
    BLAS_RETURN_IF(blas_check(handle, function));
    if (p.form == GEMV) {
        if (p.m <= 0 || p.n <= 0 || !p.batch) return CUBLAS_STATUS_SUCCESS; /* as cuBLAS does */
        BLAS_CHECK((unsigned)p.op <= CUBLAS_OP_C, "%s: trans is %d; it must be CUBLAS_OP_N, _T or _C", function,
                   (int)p.op);
    } else {
        BLAS_CHECK((unsigned)p.fill < CUBLAS_FILL_MODE_FULL, "%s: uplo is %d; it must be LOWER or UPPER", function,
                   (int)p.fill);
        BLAS_CHECK(p.n >= 0, "%s: n is %lld", function, (long long)p.n);
    }
    BLAS_CHECK(p.lda >= larger(1, p.m), "%s: lda is %lld, but A has %lld rows", function, (long long)p.lda,
               (long long)p.m);
    BLAS_CHECK(p.incx && p.incy, "%s: inc%c is 0", function, p.incx ? 'y' : 'x');
    if (p.batch < NO_BATCH) return blas_fail(CUBLAS_STATUS_EXECUTION_FAILED, "%s: batchCount is negative", function);
    if (!p.n) return CUBLAS_STATUS_SUCCESS;
    if (!p.alpha || !p.beta) return blas_null(function, p.alpha ? "beta" : "alpha");
    struct blas *blas = blas_new(function, run_product, p.type);
    if (!blas) return blas_status(no_memory("a call of cuBLAS"));
    blas->form = p.form, blas->conjugate = p.conjugate, blas->pointers = p.pointers;
    blas->op_a = p.op, blas->fill = p.fill;
    blas->m = p.m, blas->n = p.n;
    blas->a = (void *)p.a, blas->b = (void *)p.x, blas->c = p.y;
    blas->lda = p.lda, blas->ldb = p.incx, blas->ldc = p.incy;
    blas->stride_a = p.stride_a, blas->stride_b = p.stride_x, blas->stride_c = p.stride_y;
    blas->batch = p.batch;
    blas_scalar(handle, blas, &blas->alpha, p.type, p.alpha);
    blas_scalar(handle, blas, &blas->beta, p.type, p.beta);
    return blas_submit(handle, blas);
}

static cublasStatus_t submit_triangle(cublasHandle_t handle, const char *function, enum form form, enum element type,
                                      cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t diagonal, int64_t n,
                                      const void *a, int64_t lda, void *x, int64_t incx) {
    BLAS_RETURN_IF(blas_check(handle, function));
    BLAS_CHECK((unsigned)fill < CUBLAS_FILL_MODE_FULL, "%s: uplo is %d; it must be LOWER or UPPER", function,
               (int)fill);
    BLAS_CHECK((unsigned)op <= CUBLAS_OP_C, "%s: trans is %d; it must be CUBLAS_OP_N, _T or _C", function, (int)op);
    BLAS_CHECK((unsigned)diagonal <= CUBLAS_DIAG_UNIT, "%s: diag is %d; it must be NON_UNIT or UNIT", function,
               (int)diagonal);
    BLAS_CHECK(n >= 0, "%s: n is %lld", function, (long long)n);
    BLAS_CHECK(lda >= larger(1, n), "%s: lda is %lld, but A has %lld rows", function, (long long)lda, (long long)n);
    BLAS_CHECK(incx, "%s: incx is 0", function);
    if (!n) return CUBLAS_STATUS_SUCCESS;
    struct blas *blas = blas_new(function, run_triangle, type);
    if (!blas) return blas_status(no_memory("a call of cuBLAS"));
    blas->form = form, blas->fill = fill, blas->op_a = op, blas->diagonal = diagonal;
    blas->n = n, blas->a = (void *)a, blas->lda = lda, blas->b = x, blas->ldb = incx;
    return blas_submit(handle, blas);
}

static cublasStatus_t submit_outer(cublasHandle_t handle, const char *function, enum element type, bool conjugate,
                                   int64_t m, int64_t n, const void *alpha, const void *x, int64_t incx, const void *y,
                                   int64_t incy, void *a, int64_t lda) {
    BLAS_RETURN_IF(blas_check(handle, function));
    BLAS_CHECK(m >= 0 && n >= 0, "%s: a size is negative: m %lld, n %lld", function, (long long)m, (long long)n);
    BLAS_CHECK(incx && incy, "%s: inc%c is 0", function, incx ? 'y' : 'x');
    BLAS_CHECK(lda >= larger(1, m), "%s: lda is %lld, but A has %lld rows", function, (long long)lda, (long long)m);
    if (!m || !n) return CUBLAS_STATUS_SUCCESS;
    if (!alpha) return blas_null(function, "alpha");
    struct blas *blas = blas_new(function, run_outer, type);
    if (!blas) return blas_status(no_memory("a call of cuBLAS"));
    blas->form = GER, blas->conjugate = conjugate, blas->m = m, blas->n = n;
    blas->a = (void *)x, blas->b = (void *)y, blas->c = a;
    blas->lda = incx, blas->ldb = incy, blas->ldc = lda;
    blas_scalar(handle, blas, &blas->alpha, type, alpha);
    return blas_submit(handle, blas);
}

#define OPERANDS(the_form, element) \
    .form = the_form, .type = element, .n = n, .alpha = alpha, .a = A, .lda = lda, .x = x, .incx = incx, .beta = beta, \
    .y = (void *)y, .incy = incy

#define ALL_TYPES(L, T, element, W, N)                                                                                   \
    static cublasStatus_t cublas##L##gemv##W(cublasHandle_t handle, cublasOperation_t trans, N m, N n, const T *alpha,   \
                                             const T *A, N lda, const T *x, N incx, const T *beta, T *y, N incy) {       \
        return submit_product(handle, "cublas" #L "gemv" #W,                                                             \
                              (struct operands){OPERANDS(GEMV, element), .op = trans, .m = m, .batch = NO_BATCH});       \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##gemvBatched##W(                                                                     \
        cublasHandle_t handle, cublasOperation_t trans, N m, N n, const T *alpha, const T *const A[], N lda,             \
        const T *const x[], N incx, const T *beta, T *const y[], N incy, N batchCount) {                                 \
        return submit_product(handle, "cublas" #L "gemvBatched" #W,                                                      \
                              (struct operands){OPERANDS(GEMV, element), .op = trans, .m = m, .pointers = true,          \
                                                .batch = batchCount < 0 ? NO_BATCH - 1 : batchCount});                   \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##gemvStridedBatched##W(                                                              \
        cublasHandle_t handle, cublasOperation_t trans, N m, N n, const T *alpha, const T *A, N lda, long long strideA,  \
        const T *x, N incx, long long stridex, const T *beta, T *y, N incy, long long stridey, N batchCount) {           \
        return submit_product(handle, "cublas" #L "gemvStridedBatched" #W,                                               \
                              (struct operands){OPERANDS(GEMV, element), .op = trans, .m = m, .stride_a = strideA,       \
                                                .stride_x = stridex, .stride_y = stridey,                                \
                                                .batch = batchCount < 0 ? NO_BATCH - 1 : batchCount});                   \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##symv##W(cublasHandle_t handle, cublasFillMode_t uplo, N n, const T *alpha,          \
                                             const T *A, N lda, const T *x, N incx, const T *beta, T *y, N incy) {       \
        return submit_product(handle, "cublas" #L "symv" #W,                                                             \
                              (struct operands){OPERANDS(SYMV, element), .m = n, .fill = uplo, .batch = NO_BATCH});      \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##trmv##W(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,      \
                                             cublasDiagType_t diag, N n, const T *A, N lda, T *x, N incx) {              \
        return submit_triangle(handle, "cublas" #L "trmv" #W, TRMV, element, uplo, trans, diag, n, A, lda, x, incx);     \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##trsv##W(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,      \
                                             cublasDiagType_t diag, N n, const T *A, N lda, T *x, N incx) {              \
        return submit_triangle(handle, "cublas" #L "trsv" #W, TRSV, element, uplo, trans, diag, n, A, lda, x, incx);     \
    }
BLAS_ALL(ALL_TYPES)

#define OUTER(L, name, T, element, conjugate, W, N)                                                                      \
    static cublasStatus_t cublas##L##name##W(cublasHandle_t handle, N m, N n, const T *alpha, const T *x, N incx,        \
                                             const T *y, N incy, T *A, N lda) {                                          \
        return submit_outer(handle, "cublas" #L #name #W, element, conjugate, m, n, alpha, x, incx, y, incy, A, lda);    \
    }
#define REAL_TYPES(L, T, element, W, N) OUTER(L, ger, T, element, false, W, N)
BLAS_REAL(REAL_TYPES)

#define COMPLEX_TYPES(L, T, element, W, N)                                                                               \
    OUTER(L, geru, T, element, false, W, N)                                                                              \
    OUTER(L, gerc, T, element, true, W, N)                                                                               \
    static cublasStatus_t cublas##L##hemv##W(cublasHandle_t handle, cublasFillMode_t uplo, N n, const T *alpha,          \
                                             const T *A, N lda, const T *x, N incx, const T *beta, T *y, N incy) {       \
        return submit_product(                                                                                           \
            handle, "cublas" #L "hemv" #W,                                                                               \
            (struct operands){OPERANDS(SYMV, element), .m = n, .fill = uplo, .conjugate = true, .batch = NO_BATCH});     \
    }
BLAS_COMPLEX(COMPLEX_TYPES)

#define ENTRIES(L, T, element, W, N)                                                                        \
    BLAS_ENTRY(cublas##L##gemv##W), BLAS_ENTRY(cublas##L##gemvBatched##W),                                  \
        BLAS_ENTRY(cublas##L##gemvStridedBatched##W), BLAS_ENTRY(cublas##L##symv##W),                       \
        BLAS_ENTRY(cublas##L##trmv##W), BLAS_ENTRY(cublas##L##trsv##W),
#define ENTRIES_REAL(L, T, element, W, N) BLAS_ENTRY(cublas##L##ger##W),
#define ENTRIES_COMPLEX(L, T, element, W, N) \
    BLAS_ENTRY(cublas##L##geru##W), BLAS_ENTRY(cublas##L##gerc##W), BLAS_ENTRY(cublas##L##hemv##W),

const struct entry blas_matvec_entries[] = {
    BLAS_ALL(ENTRIES) BLAS_REAL(ENTRIES_REAL) BLAS_COMPLEX(ENTRIES_COMPLEX){NULL, NULL, NULL},
};
