/* Products of matrices: C = alpha op(A) op(B) + beta C, alone, in batches, and with types of every kind (cuBLAS Library,
 * 2.7.1 and 2.8.13).
 *
 * The four types of BLAS go to OpenBLAS as they are. All others are widened first: halves to float, whole numbers to
 * double, which holds their sums exactly. Then the sum is formed once, and the result rounded once, which is at least as
 * exact as the GPU's. That is also so for the compute types that may round the operands (TF32 and the like). */
#include <stdlib.h>
#include <string.h>

#include "math/base/convert.h"
#include "product.h"

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

/* op(A) as a vector has the elements of A, which only a conjugation changes. */
static bool is_conjugated(enum element type, cublasOperation_t op) { return op == CUBLAS_OP_C && is_complex(type); }

/* C += alpha op(A) op(B) where C has one column or one row, as the product of a matrix and a vector: gemm() copies its
 * operands into an order that pays for large matrices only. False: it is none of these. */
static bool multiply_vector(const struct blas *blas, enum element type, const void *alpha, const void *a, blas_int lda,
                            const void *b, blas_int ldb, void *c, blas_int ldc) {
    char one[16];
    blas_int close = 1;
    element_store(type, one, 0, 1);
    bool is_column = blas->n == 1 && !is_conjugated(type, blas->op_b);
    /* The row is op(B) turned, times the column that op(A) is when it is turned. */
    bool is_row = blas->m == 1 && !is_conjugated(type, blas->op_a) && !is_conjugated(type, blas->op_b);
    if (!is_column && !is_row) return false;
    cublasOperation_t op = is_column ? blas->op_a : blas->op_b == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
    blas_int results = is_column ? blas->m : blas->n, rows = op == CUBLAS_OP_N ? results : blas->k;
    blas_int columns = op == CUBLAS_OP_N ? blas->k : results, incy = is_column ? close : ldc;
    blas_int incx = is_column ? (blas->op_b == CUBLAS_OP_N ? close : ldb) : blas->op_a == CUBLAS_OP_N ? lda : close;
    const void *matrix = is_column ? a : b, *x = is_column ? b : a;
    blas_int ld = is_column ? lda : ldb;
    if (!multiply_in_pieces(type, op != CUBLAS_OP_N, rows, columns, alpha, matrix, ld, x, incx, c, incy))
        openblas.gemv[type](operation_name(op), &rows, &columns, alpha, matrix, &ld, x, &incx, one, c, &incy,
                            (size_t)1);
    return true;
}

static void multiply(const struct blas *blas, enum element type, const void *alpha, const void *a, blas_int lda,
                     const void *b, blas_int ldb, const void *beta, void *c, blas_int ldc) {
    openblas.gemm[type](operation_name(blas->op_a), operation_name(blas->op_b), &blas->m, &blas->n, &blas->k, alpha, a,
                        &lda, b, &ldb, beta, c, &ldc, (size_t)1, (size_t)1);
}

/* A matrix of another type, its columns close together. NULL: no memory. */
static void *widen(enum element from, const void *source, int64_t rows, int64_t columns, int64_t ld, enum element to) {
    void *made = malloc((size_t)larger(rows * columns, 1) * element_size(to));
    if (made) convert_matrix(from, source, rows, columns, ld, to, made);
    return made;
}

/* A column of C = alpha sums + beta C, with numbers of the type R, rounded once. */
#define FINISH_COLUMN(R, name)                                                                                         \
    static void finish_##name(enum element type, void *c, int64_t rows, R alpha, R beta, R *sums, R *old) {            \
        if (beta != 0) {                                                                                               \
            load_##name(type, c, 0, 1, rows, old);                                                                     \
            for (int64_t i = 0; i < rows; i++) sums[i] = alpha * sums[i] + beta * old[i];                              \
        } else                                                                                                         \
            for (int64_t i = 0; i < rows; i++) sums[i] *= alpha;                                                       \
        store_##name(type, c, 0, 1, rows, sums);                                                                       \
    }
FINISH_COLUMN(float, floats)
FINISH_COLUMN(double, doubles)

static CUresult product(const struct blas *blas, const void *a, const void *b, void *c, number alpha, number beta) {
    int64_t rows_a = blas->op_a == CUBLAS_OP_N ? blas->m : blas->k, columns_a = blas->m + blas->k - rows_a;
    int64_t rows_b = blas->op_b == CUBLAS_OP_N ? blas->k : blas->n, columns_b = blas->k + blas->n - rows_b;
    /* A zero that lies in device memory is multiplied with, on a GPU, too: only the host's value is known at the call. */
    bool reads = (alpha != 0 || blas->alpha.device) && blas->k > 0;
    if (reads) RETURN_IF(touch_matrix(blas, "the matrix A", a, blas->type, rows_a, columns_a, blas->lda));
    if (reads) RETURN_IF(touch_matrix(blas, "the matrix B", b, blas->b_type, rows_b, columns_b, blas->ldb));
    RETURN_IF(touch_matrix(blas, "the matrix C", c, blas->c_type, blas->m, blas->n, blas->ldc));
    enum element wide = blas->compute;
    char one[16], factor[16], zero[16] = {0};
    element_store(wide, factor, 0, alpha);
    element_store(wide, one, 0, 1);
    if (!reads || (alpha != 0 && blas->type == wide && blas->b_type == wide && blas->c_type == wide)) {
        scale_by(blas->c_type, c, blas->m, blas->n, blas->ldc, beta);
        if (reads && !multiply_vector(blas, wide, factor, a, blas->lda, b, blas->ldb, c, blas->ldc))
            multiply(blas, wide, factor, a, blas->lda, b, blas->ldb, one, c, blas->ldc);
        return CUDA_SUCCESS;
    }
    /* A part of the columns at a time, whose sums are finished while they are in the cache. */
    int64_t block = larger(256, (1 << 20) / blas->m);
    if (block > blas->n) block = blas->n;
    void *wide_a = widen(blas->type, a, rows_a, columns_a, blas->lda, wide);
    void *wide_b = widen(blas->b_type, b, rows_b, columns_b, blas->ldb, wide);
    void *sums = malloc((size_t)(blas->m * (block + 1)) * element_size(wide));
    bool fits = wide_a && wide_b && sums;
    for (int64_t first = 0; fits && first < blas->n; first += block) {
        struct blas part = *blas;
        part.n = blas->n - first < block ? blas->n - first : block;
        const void *of_b = element_at(wide_b, wide, blas->op_b == CUBLAS_OP_N ? first * rows_b : first);
        multiply(&part, wide, one, wide_a, rows_a, of_b, rows_b, zero, sums, blas->m);
        void *old = element_at(sums, wide, blas->m * block);
        for (int64_t j = 0; j < part.n; j++) {
            void *column = element_at(c, blas->c_type, (first + j) * blas->ldc);
            void *of_column = element_at(sums, wide, j * blas->m);
            if (wide == S)
                finish_floats(blas->c_type, column, blas->m, (float)creal(alpha), (float)creal(beta), of_column, old);
            else if (wide == D)
                finish_doubles(blas->c_type, column, blas->m, creal(alpha), creal(beta), of_column, old);
            else
                for (int64_t i = 0; i < blas->m; i++) {
                    number sum = alpha * element_load(wide, of_column, i);
                    if (beta != 0) sum += beta * element_load(blas->c_type, column, i);
                    element_store(blas->c_type, column, i, sum);
                }
        }
    }
    free(wide_a), free(wide_b), free(sums);
    return fits ? CUDA_SUCCESS : no_memory("a product of matrices");
}

static CUresult run_product(struct blas *blas) {
    number alpha, beta;
    RETURN_IF(scalar_value(blas, &blas->alpha, &alpha));
    RETURN_IF(scalar_value(blas, &blas->beta, &beta));
    int64_t count = blas->batch == NO_BATCH ? 1 : blas->batch;
    for (int64_t i = 0; i < count; i++) {
        void *a, *b, *c;
        RETURN_IF(batch_at(blas, "the array of A", blas->a, blas->type, blas->stride_a, i, &a));
        RETURN_IF(batch_at(blas, "the array of B", blas->b, blas->b_type, blas->stride_b, i, &b));
        RETURN_IF(batch_at(blas, "the array of C", blas->c, blas->c_type, blas->stride_c, i, &c));
        RETURN_IF(product(blas, a, b, c, alpha, beta));
    }
    return CUDA_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool is_operation(cublasOperation_t op) { return (unsigned)op <= CUBLAS_OP_C; }

cublasStatus_t product_make(cublasHandle_t handle, const char *function, struct product p, struct blas **made) {
    *made = NULL;
    BLAS_RETURN_IF(blas_check(handle, function));
    BLAS_CHECK(is_operation(p.op_a), "%s: transa is %d; it must be CUBLAS_OP_N, _T or _C", function, (int)p.op_a);
    BLAS_CHECK(is_operation(p.op_b), "%s: transb is %d; it must be CUBLAS_OP_N, _T or _C", function, (int)p.op_b);
    BLAS_CHECK(p.m >= 0 && p.n >= 0 && p.k >= 0, "%s: a size is negative: m %lld, n %lld, k %lld", function,
               (long long)p.m, (long long)p.n, (long long)p.k);
    int64_t rows_a = p.op_a == CUBLAS_OP_N ? p.m : p.k, rows_b = p.op_b == CUBLAS_OP_N ? p.k : p.n;
    BLAS_CHECK(p.lda >= larger(1, rows_a), "%s: lda is %lld, but A has %lld rows", function, (long long)p.lda,
               (long long)rows_a);
    BLAS_CHECK(p.ldb >= larger(1, rows_b), "%s: ldb is %lld, but B has %lld rows", function, (long long)p.ldb,
               (long long)rows_b);
    BLAS_CHECK(p.ldc >= larger(1, p.m), "%s: ldc is %lld, but C has %lld rows", function, (long long)p.ldc,
               (long long)p.m);
    BLAS_CHECK(p.batch >= NO_BATCH, "%s: the batch has %lld products", function, (long long)p.batch);
    if (!p.m || !p.n || !p.batch) return CUBLAS_STATUS_SUCCESS;
    if (!p.alpha || !p.beta) return blas_null(function, p.alpha ? "beta" : "alpha");
    if (!p.c || (p.k && (!p.a || !p.b))) return blas_null(function, !p.c ? "C" : p.a ? "B" : "A");
    struct blas *blas = blas_new(function, run_product, p.a_type);
    if (!blas) return blas_status(no_memory("a call of cuBLAS"));
    blas->b_type = p.b_type, blas->c_type = p.c_type, blas->compute = p.compute;
    blas->op_a = p.op_a, blas->op_b = p.op_b;
    blas->m = p.m, blas->n = p.n, blas->k = p.k;
    blas->a = (void *)p.a, blas->b = (void *)p.b, blas->c = p.c;
    blas->lda = p.lda, blas->ldb = p.ldb, blas->ldc = p.ldc;
    blas->stride_a = p.stride_a, blas->stride_b = p.stride_b, blas->stride_c = p.stride_c;
    blas->batch = p.batch;
    blas->pointers = p.pointers;
    blas_scalar(handle, blas, &blas->alpha, p.scale, p.alpha);
    blas_scalar(handle, blas, &blas->beta, p.scale, p.beta);
    *made = blas;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t submit_product(cublasHandle_t handle, const char *function, struct product p) {
    struct blas *blas;
    BLAS_RETURN_IF(product_make(handle, function, p, &blas));
    return blas ? blas_submit(handle, blas) : CUBLAS_STATUS_SUCCESS;
}

#define OPERANDS(type_a, type_b, type_c, type_wide, type_scale)                                                         \
    .op_a = transa, .op_b = transb, .m = m, .n = n, .k = k, .alpha = alpha, .a = A, .b = B_, .beta = beta, .c = (void *)C_, \
    .lda = lda, .ldb = ldb, .ldc = ldc, .a_type = type_a, .b_type = type_b, .c_type = type_c, .compute = type_wide,      \
    .scale = type_scale
#define SHAPE(N) cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, N m, N n, N k

#define PRODUCTS(L, T, type, wide, W, N)                                                                                 \
    static cublasStatus_t cublas##L##gemm##W(SHAPE(N), const T *alpha, const T *A, N lda, const T *B_, N ldb,            \
                                             const T *beta, T *C_, N ldc) {                                              \
        return submit_product(handle, "cublas" #L "gemm" #W,                                                             \
                              (struct product){OPERANDS(type, type, type, wide, type), .batch = NO_BATCH});              \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##gemmStridedBatched##W(                                                              \
        SHAPE(N), const T *alpha, const T *A, N lda, long long strideA, const T *B_, N ldb, long long strideB,           \
        const T *beta, T *C_, N ldc, long long strideC, N batchCount) {                                                  \
        BLAS_CHECK(batchCount >= 0 || !handle, "cublas" #L "gemmStridedBatched" #W ": batchCount is negative");          \
        return submit_product(handle, "cublas" #L "gemmStridedBatched" #W,                                               \
                              (struct product){OPERANDS(type, type, type, wide, type), .stride_a = strideA,              \
                                               .stride_b = strideB, .stride_c = strideC, .batch = batchCount});          \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##gemmBatched##W(SHAPE(N), const T *alpha, const T *const A[], N lda,                 \
                                                    const T *const B_[], N ldb, const T *beta, T *const C_[], N ldc,     \
                                                    N batchCount) {                                                      \
        BLAS_CHECK(batchCount >= 0 || !handle, "cublas" #L "gemmBatched" #W ": batchCount is negative");                 \
        return submit_product(                                                                                           \
            handle, "cublas" #L "gemmBatched" #W,                                                                        \
            (struct product){OPERANDS(type, type, type, wide, type), .batch = batchCount, .pointers = true});            \
    }
#define PRODUCT_WIDTHS(L, T, type, wide) PRODUCTS(L, T, type, wide, , int) PRODUCTS(L, T, type, wide, _64, int64_t)
PRODUCT_WIDTHS(S, float, S, S)
PRODUCT_WIDTHS(D, double, D, D)
PRODUCT_WIDTHS(C, cuComplex, C, C)
PRODUCT_WIDTHS(Z, cuDoubleComplex, Z, Z)
PRODUCT_WIDTHS(H, __half, H, S)

/* With three products of real numbers for one of complex ones on a GPU; the result is the same here. */
#define GEMM_3M(L, T, type, W, N)                                                                                        \
    static cublasStatus_t cublas##L##gemm3m##W(SHAPE(N), const T *alpha, const T *A, N lda, const T *B_, N ldb,          \
                                               const T *beta, T *C_, N ldc) {                                            \
        return submit_product(handle, "cublas" #L "gemm3m" #W,                                                           \
                              (struct product){OPERANDS(type, type, type, type, type), .batch = NO_BATCH});              \
    }
BLAS_COMPLEX(GEMM_3M)

/* ---- types by number --------------------------------------------------------------------------------------------- */

/* Which types of operands and results a compute type has (cuBLAS Library, table of cublasGemmEx). */
static const struct combination {
    uint8_t kind; /* of compute type */
    uint8_t a, c, wide, scale;
} combinations[] = {
    {CUBLAS_COMPUTE_16F, H, H, S, H}, {CUBLAS_COMPUTE_32I, I8, I32, D, I32}, {CUBLAS_COMPUTE_32F, B, B, S, S},
    {CUBLAS_COMPUTE_32F, H, H, S, S}, {CUBLAS_COMPUTE_32F, I8, S, D, S},     {CUBLAS_COMPUTE_32F, B, S, S, S},
    {CUBLAS_COMPUTE_32F, H, S, S, S}, {CUBLAS_COMPUTE_32F, S, S, S, S},      {CUBLAS_COMPUTE_32F, C, C, C, C},
    {CUBLAS_COMPUTE_64F, D, D, D, D}, {CUBLAS_COMPUTE_64F, Z, Z, Z, Z},
};

/* The compute type without its manner: pedantic, fast or emulated. 0: there is no such compute type. */
static int kind_of(cublasComputeType_t compute) {
    switch (compute) {
        case CUBLAS_COMPUTE_16F:
        case CUBLAS_COMPUTE_16F_PEDANTIC: return CUBLAS_COMPUTE_16F;
        case CUBLAS_COMPUTE_32I:
        case CUBLAS_COMPUTE_32I_PEDANTIC: return CUBLAS_COMPUTE_32I;
        case CUBLAS_COMPUTE_64F:
        case CUBLAS_COMPUTE_64F_PEDANTIC:
        case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT: return CUBLAS_COMPUTE_64F;
        case CUBLAS_COMPUTE_32F:
        case CUBLAS_COMPUTE_32F_PEDANTIC:
        case CUBLAS_COMPUTE_32F_FAST_16F:
        case CUBLAS_COMPUTE_32F_FAST_16BF:
        case CUBLAS_COMPUTE_32F_FAST_TF32:
        case CUBLAS_COMPUTE_32F_EMULATED_16BFX9: return CUBLAS_COMPUTE_32F;
        default: return 0;
    }
}

/* The numbers of cublasGemmAlgo_t; which one makes no difference here. */
static bool is_algorithm(cublasGemmAlgo_t algorithm) {
    return (algorithm >= CUBLAS_GEMM_DEFAULT && algorithm <= CUBLAS_GEMM_ALGO23) || algorithm == CUBLAS_GEMM_AUTOTUNE ||
           (algorithm >= CUBLAS_GEMM_DEFAULT_TENSOR_OP && algorithm <= CUBLAS_GEMM_ALGO15_TENSOR_OP);
}

static cublasStatus_t by_number(cublasHandle_t handle, const char *function, struct product p, cudaDataType a,
                                cudaDataType b, cudaDataType c, cublasComputeType_t compute,
                                cublasGemmAlgo_t algorithm) {
    BLAS_RETURN_IF(blas_check(handle, function));
    BLAS_CHECK(is_algorithm(algorithm), "%s: %d is no cublasGemmAlgo_t", function, (int)algorithm);
    enum element type = element_of(a), result = element_of(c);
    for (size_t i = 0; a == b && i < sizeof combinations / sizeof *combinations; i++) {
        const struct combination *row = &combinations[i];
        if (row->kind != kind_of(compute) || row->a != type || row->c != result) continue;
        p.a_type = p.b_type = type, p.c_type = result;
        p.compute = row->wide, p.scale = row->scale;
        return submit_product(handle, function, p);
    }
    return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED,
                     "%s: there is no product of the types %d and %d with a result of type %d in compute type %d",
                     function, (int)a, (int)b, (int)c, (int)compute);
}

#define BY_NUMBER(W, N)                                                                                                  \
    static cublasStatus_t cublasGemmEx##W(SHAPE(N), const void *alpha, const void *A, cudaDataType Atype, N lda,         \
                                          const void *B_, cudaDataType Btype, N ldb, const void *beta, void *C_,         \
                                          cudaDataType Ctype, N ldc, cublasComputeType_t computeType,                    \
                                          cublasGemmAlgo_t algo) {                                                       \
        return by_number(handle, "cublasGemmEx" #W,                                                                      \
                         (struct product){OPERANDS(S, S, S, S, S), .batch = NO_BATCH}, Atype, Btype, Ctype, computeType, algo); \
    }                                                                                                                    \
    static cublasStatus_t cublasGemmStridedBatchedEx##W(                                                                 \
        SHAPE(N), const void *alpha, const void *A, cudaDataType Atype, N lda, long long strideA, const void *B_,        \
        cudaDataType Btype, N ldb, long long strideB, const void *beta, void *C_, cudaDataType Ctype, N ldc,             \
        long long strideC, N batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t algo) {                       \
        BLAS_CHECK(batchCount >= 0 || !handle, "cublasGemmStridedBatchedEx" #W ": batchCount is negative");              \
        return by_number(handle, "cublasGemmStridedBatchedEx" #W,                                                        \
                         (struct product){OPERANDS(S, S, S, S, S), .stride_a = strideA, .stride_b = strideB,             \
                                          .stride_c = strideC, .batch = batchCount},                                     \
                         Atype, Btype, Ctype, computeType, algo);                                                              \
    }                                                                                                                    \
    static cublasStatus_t cublasGemmBatchedEx##W(SHAPE(N), const void *alpha, const void *const A[],                     \
                                                 cudaDataType Atype, N lda, const void *const B_[],                      \
                                                 cudaDataType Btype, N ldb, const void *beta, void *const C_[],          \
                                                 cudaDataType Ctype, N ldc, N batchCount,                                \
                                                 cublasComputeType_t computeType, cublasGemmAlgo_t algo) {               \
        BLAS_CHECK(batchCount >= 0 || !handle, "cublasGemmBatchedEx" #W ": batchCount is negative");                     \
        return by_number(handle, "cublasGemmBatchedEx" #W,                                                               \
                         (struct product){OPERANDS(S, S, S, S, S), .batch = batchCount, .pointers = true}, Atype, Btype, \
                         Ctype, computeType, algo);                                                                            \
    }
BY_NUMBER(, int)
BY_NUMBER(_64, int64_t)

/* Sums in the type of the name, operands and result of narrower ones. */
#define NAMED_EX(L, T, type, W, N)                                                                                       \
    static cublasStatus_t cublas##L##gemmEx##W(SHAPE(N), const T *alpha, const void *A, cudaDataType Atype, N lda,       \
                                               const void *B_, cudaDataType Btype, N ldb, const T *beta, void *C_,       \
                                               cudaDataType Ctype, N ldc) {                                              \
        return by_number(handle, "cublas" #L "gemmEx" #W,                                                                \
                         (struct product){OPERANDS(type, type, type, type, type), .batch = NO_BATCH}, Atype, Btype,      \
                         Ctype, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);                                                                     \
    }
BLAS_WIDTHS(NAMED_EX, S, float)
BLAS_WIDTHS(NAMED_EX, C, cuComplex)

#define ENTRIES(L, W) \
    BLAS_ENTRY(cublas##L##gemm##W), BLAS_ENTRY(cublas##L##gemmBatched##W), BLAS_ENTRY(cublas##L##gemmStridedBatched##W),
#define ENTRIES_NUMBER(W) \
    BLAS_ENTRY(cublasGemmEx##W), BLAS_ENTRY(cublasGemmBatchedEx##W), BLAS_ENTRY(cublasGemmStridedBatchedEx##W),
#define BOTH(L) ENTRIES(L, ) ENTRIES(L, _64)

const struct entry blas_product_entries[] = {
    BOTH(S) BOTH(D) BOTH(C) BOTH(Z) BOTH(H) ENTRIES_NUMBER() ENTRIES_NUMBER(_64) BLAS_ENTRY(cublasCgemm3m),
    BLAS_ENTRY(cublasCgemm3m_64),
    BLAS_ENTRY(cublasZgemm3m),
    BLAS_ENTRY(cublasZgemm3m_64),
    BLAS_ENTRY(cublasSgemmEx),
    BLAS_ENTRY(cublasSgemmEx_64),
    BLAS_ENTRY(cublasCgemmEx),
    BLAS_ENTRY(cublasCgemmEx_64),
    {NULL, NULL, NULL},
};
