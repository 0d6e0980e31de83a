/* Level 3 apart from general products: symmetric, Hermitian and triangular matrices, and two extensions that BLAS does not
 * have, sums (geam) and products with diagonals (dgmm) (cuBLAS Library, 2.7 and 2.8). */
#include <stdlib.h>
#include <string.h>

#include "blas.h"

enum form { SYMM, SYRK, SYR2K, TRMM, TRSM, GEAM, DGMM };

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

/* Beta times the triangle of C that is used; the diagonal of a Hermitian one is real. */
static void scale_triangle(const struct blas *blas, number beta) {
    for (int64_t j = 0; j < blas->n; j++) {
        bool upper = blas->fill == CUBLAS_FILL_MODE_UPPER;
        int64_t first = upper ? 0 : j, rows = upper ? j + 1 : blas->n - j;
        scale_by(blas->type, element_at(blas->c, blas->type, j * blas->ldc + first), rows, 1, rows, beta);
        if (blas->conjugate) {
            void *diagonal = element_at(blas->c, blas->type, j * blas->ldc + j);
            element_store(blas->type, diagonal, 0, creal(element_load(blas->type, diagonal, 0)));
        }
    }
}

static CUresult run_symmetric(struct blas *blas) {
    enum element type = blas->type;
    number alpha, beta;
    char factor[16], one[16];
    RETURN_IF(scalar_value(blas, &blas->alpha, &alpha));
    RETURN_IF(scalar_value(blas, &blas->beta, &beta));
    element_store(blas->alpha.type, factor, 0, alpha);
    element_store(blas->beta.type, one, 0, 1);
    RETURN_IF(
        touch_matrix(blas, "the matrix C", blas->c, type, blas->form == SYMM ? blas->m : blas->n, blas->n, blas->ldc));
    if (blas->form == SYMM) scale_by(type, blas->c, blas->m, blas->n, blas->ldc, beta);
    else scale_triangle(blas, beta);
    if (alpha == 0 || (blas->form != SYMM && !blas->k)) return CUDA_SUCCESS;
    int64_t side = blas->side == CUBLAS_SIDE_LEFT ? blas->m : blas->n;
    int64_t rows = blas->form == SYMM ? side : blas->op_a == CUBLAS_OP_N ? blas->n : blas->k;
    int64_t columns = blas->form == SYMM ? side : blas->n + blas->k - rows;
    RETURN_IF(touch_matrix(blas, "the matrix A", blas->a, type, rows, columns, blas->lda));
    if (blas->form == SYMM) {
        RETURN_IF(touch_matrix(blas, "the matrix B", blas->b, type, blas->m, blas->n, blas->ldb));
        (blas->conjugate ? openblas.hemm : openblas.symm)[type](
            side_name(blas->side), fill_name(blas->fill), &blas->m, &blas->n, factor, blas->a, &blas->lda, blas->b,
            &blas->ldb, one, blas->c, &blas->ldc, (size_t)1, (size_t)1);
        return CUDA_SUCCESS;
    }
    /* cuBLAS takes _T and _C alike where only one of them makes sense. */
    const char *op = blas->op_a == CUBLAS_OP_N ? "N" : blas->conjugate && is_complex(type) ? "C" : "T";
    if (blas->form == SYRK) {
        (blas->conjugate ? openblas.herk : openblas.syrk)[type](fill_name(blas->fill), op, &blas->n, &blas->k, factor,
                                                                blas->a, &blas->lda, one, blas->c, &blas->ldc,
                                                                (size_t)1, (size_t)1);
        return CUDA_SUCCESS;
    }
    RETURN_IF(touch_matrix(blas, "the matrix B", blas->b, type, rows, columns, blas->ldb));
    (blas->conjugate ? openblas.her2k : openblas.syr2k)[type](fill_name(blas->fill), op, &blas->n, &blas->k, factor,
                                                              blas->a, &blas->lda, blas->b, &blas->ldb, one, blas->c,
                                                              &blas->ldc, (size_t)1, (size_t)1);
    return CUDA_SUCCESS;
}

/* In the place of the result: B for trsm, C, a copy of B, for trmm. */
static CUresult triangle(const struct blas *blas, const void *a, const void *b, void *c, number alpha) {
    enum element type = blas->type;
    int64_t side = blas->side == CUBLAS_SIDE_LEFT ? blas->m : blas->n;
    char factor[16];
    RETURN_IF(touch_matrix(blas, "the matrix A", a, type, side, side, blas->lda));
    RETURN_IF(touch_matrix(blas, "the matrix B", b, type, blas->m, blas->n, blas->ldb));
    RETURN_IF(touch_matrix(blas, "the result", c, type, blas->m, blas->n, blas->ldc));
    if (b != c)
        for (int64_t j = 0; j < blas->n; j++)
            memcpy(element_at(c, type, j * blas->ldc), element_at(b, type, j * blas->ldb),
                   (size_t)blas->m * element_size(type));
    /* A zero forgets B, not A: what is not a number in A stays in the result, as on a GPU. */
    element_store(type, factor, 0, alpha == 0 ? 1 : alpha);
    if (alpha == 0 && blas->form == TRSM) scale_by(type, c, blas->m, blas->n, blas->ldc, 0);
    (blas->form == TRMM ? openblas.trmm : openblas.trsm)[type](
        side_name(blas->side), fill_name(blas->fill), operation_name(blas->op_a), diagonal_name(blas->diagonal),
        &blas->m, &blas->n, factor, a, &blas->lda, c, &blas->ldc, (size_t)1, (size_t)1, (size_t)1, (size_t)1);
    for (int64_t j = 0; alpha == 0 && blas->form == TRMM && j < blas->n; j++)
        for (int64_t i = 0; i < blas->m; i++)
            element_store(type, c, j * blas->ldc + i, element_load(type, c, j * blas->ldc + i) * 0.0);
    return CUDA_SUCCESS;
}

static CUresult run_triangle(struct blas *blas) {
    number alpha;
    RETURN_IF(scalar_value(blas, &blas->alpha, &alpha));
    int64_t count = blas->batch == NO_BATCH ? 1 : blas->batch;
    for (int64_t i = 0; i < count; i++) {
        void *a, *b, *c;
        RETURN_IF(batch_at(blas, "the array of A", blas->a, blas->type, 0, i, &a));
        RETURN_IF(batch_at(blas, "the array of B", blas->b, blas->type, 0, i, &b));
        RETURN_IF(batch_at(blas, "the array of the results", blas->c, blas->type, 0, i, &c));
        RETURN_IF(triangle(blas, a, b, c, alpha));
    }
    return CUDA_SUCCESS;
}

/* op(A) at (i, j). */
static number at(enum element type, cublasOperation_t op, const void *a, int64_t ld, int64_t i, int64_t j) {
    number value = element_load(type, a, op == CUBLAS_OP_N ? j * ld + i : i * ld + j);
    return op == CUBLAS_OP_C ? conj(value) : value;
}

/* C = alpha op(A) + beta op(B); a matrix whose factor is zero is not read. */
static CUresult run_sum(struct blas *blas) {
    enum element type = blas->type;
    number alpha, beta;
    RETURN_IF(scalar_value(blas, &blas->alpha, &alpha));
    RETURN_IF(scalar_value(blas, &blas->beta, &beta));
    bool turned_a = blas->op_a != CUBLAS_OP_N, turned_b = blas->op_b != CUBLAS_OP_N;
    if (alpha != 0)
        RETURN_IF(touch_matrix(blas, "the matrix A", blas->a, type, turned_a ? blas->n : blas->m,
                               turned_a ? blas->m : blas->n, blas->lda));
    if (beta != 0)
        RETURN_IF(touch_matrix(blas, "the matrix B", blas->b, type, turned_b ? blas->n : blas->m,
                               turned_b ? blas->m : blas->n, blas->ldb));
    RETURN_IF(touch_matrix(blas, "the matrix C", blas->c, type, blas->m, blas->n, blas->ldc));
    for (int64_t j = 0; j < blas->n; j++)
        for (int64_t i = 0; i < blas->m; i++) {
            number sum = alpha == 0 ? 0 : alpha * at(type, blas->op_a, blas->a, blas->lda, i, j);
            if (beta != 0) sum += beta * at(type, blas->op_b, blas->b, blas->ldb, i, j);
            element_store(type, blas->c, j * blas->ldc + i, sum);
        }
    return CUDA_SUCCESS;
}

/* C = A diag(x) or diag(x) A. */
static CUresult run_diagonal(struct blas *blas) {
    enum element type = blas->type;
    int64_t length = blas->side == CUBLAS_SIDE_LEFT ? blas->m : blas->n, step = blas->ldb;
    RETURN_IF(touch_matrix(blas, "the matrix A", blas->a, type, blas->m, blas->n, blas->lda));
    RETURN_IF(touch_vector(blas, "the vector x", blas->b, type, length, step));
    RETURN_IF(touch_matrix(blas, "the matrix C", blas->c, type, blas->m, blas->n, blas->ldc));
    int64_t first = step < 0 ? -(length - 1) * step : 0;
    for (int64_t j = 0; j < blas->n; j++)
        for (int64_t i = 0; i < blas->m; i++) {
            int64_t index = first + (blas->side == CUBLAS_SIDE_LEFT ? i : j) * step;
            number value = element_load(type, blas->a, j * blas->lda + i) * element_load(type, blas->b, index);
            element_store(type, blas->c, j * blas->ldc + i, value);
        }
    return CUDA_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct operands {
    enum form form;
    enum element type, alpha_type, beta_type;
    bool conjugate, pointers;
    cublasSideMode_t side;
    cublasFillMode_t fill;
    cublasOperation_t op_a, op_b;
    cublasDiagType_t diagonal;
    int64_t m, n, k;
    const void *alpha, *a, *b, *beta;
    void *c;
    int64_t lda, ldb, ldc, batch;
};

/* The checks that these functions have in common; sizes of what a function does not have are 0 and pass. */
static cublasStatus_t check(cublasHandle_t handle, const char *function, const struct operands *p) {
    BLAS_RETURN_IF(blas_check(handle, function));
    BLAS_CHECK((unsigned)p->side <= CUBLAS_SIDE_RIGHT, "%s: side is %d; it must be LEFT or RIGHT", function,
               (int)p->side);
    BLAS_CHECK((unsigned)p->fill < CUBLAS_FILL_MODE_FULL, "%s: uplo is %d; it must be LOWER or UPPER", function,
               (int)p->fill);
    BLAS_CHECK((unsigned)p->op_a <= CUBLAS_OP_C && (unsigned)p->op_b <= CUBLAS_OP_C,
               "%s: an operation is %d; it must be CUBLAS_OP_N, _T or _C", function,
               (int)((unsigned)p->op_a <= CUBLAS_OP_C ? p->op_b : p->op_a));
    BLAS_CHECK((unsigned)p->diagonal <= CUBLAS_DIAG_UNIT, "%s: diag is %d; it must be NON_UNIT or UNIT", function,
               (int)p->diagonal);
    BLAS_CHECK(p->m >= 0 && p->n >= 0 && p->k >= 0, "%s: a size is negative: m %lld, n %lld, k %lld", function,
               (long long)p->m, (long long)p->n, (long long)p->k);
    BLAS_CHECK(p->batch >= NO_BATCH, "%s: batchCount is negative", function);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_ld(const char *function, const char *name, int64_t ld, int64_t rows) {
    BLAS_CHECK(ld >= larger(1, rows), "%s: %s is %lld, but the matrix has %lld rows", function, name, (long long)ld,
               (long long)rows);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t submit(cublasHandle_t handle, const char *function, const struct operands *p,
                             CUresult (*run)(struct blas *blas)) {
    struct blas *blas = blas_new(function, run, p->type);
    if (!blas) return blas_status(no_memory("a call of cuBLAS"));
    blas->form = p->form, blas->conjugate = p->conjugate, blas->pointers = p->pointers;
    blas->side = p->side, blas->fill = p->fill, blas->diagonal = p->diagonal;
    blas->op_a = p->op_a, blas->op_b = p->op_b;
    blas->m = p->m, blas->n = p->n, blas->k = p->k;
    blas->a = (void *)p->a, blas->b = (void *)p->b, blas->c = p->c;
    blas->lda = p->lda, blas->ldb = p->ldb, blas->ldc = p->ldc;
    blas->batch = p->batch;
    if (p->alpha) blas_scalar(handle, blas, &blas->alpha, p->alpha_type, p->alpha);
    if (p->beta) blas_scalar(handle, blas, &blas->beta, p->beta_type, p->beta);
    return blas_submit(handle, blas);
}

static cublasStatus_t symmetric(cublasHandle_t handle, const char *function, struct operands p) {
    BLAS_RETURN_IF(check(handle, function, &p));
    int64_t rows = p.form == SYMM ? p.side == CUBLAS_SIDE_LEFT ? p.m : p.n : p.op_a == CUBLAS_OP_N ? p.n : p.k;
    BLAS_RETURN_IF(check_ld(function, "lda", p.lda, rows));
    if (p.form != SYRK) BLAS_RETURN_IF(check_ld(function, "ldb", p.ldb, p.form == SYMM ? p.m : rows));
    BLAS_RETURN_IF(check_ld(function, "ldc", p.ldc, p.form == SYMM ? p.m : p.n));
    if (!p.n || (p.form == SYMM && !p.m)) return CUBLAS_STATUS_SUCCESS;
    if (!p.alpha || !p.beta) return blas_null(function, p.alpha ? "beta" : "alpha");
    return submit(handle, function, &p, run_symmetric);
}

static cublasStatus_t triangular(cublasHandle_t handle, const char *function, struct operands p) {
    BLAS_RETURN_IF(check(handle, function, &p));
    BLAS_RETURN_IF(check_ld(function, "lda", p.lda, p.side == CUBLAS_SIDE_LEFT ? p.m : p.n));
    BLAS_RETURN_IF(check_ld(function, "ldb", p.ldb, p.m));
    BLAS_RETURN_IF(check_ld(function, "ldc", p.ldc, p.m));
    if (!p.m || !p.n || !p.batch) return CUBLAS_STATUS_SUCCESS;
    if (!p.alpha) return blas_null(function, "alpha");
    return submit(handle, function, &p, run_triangle);
}

static cublasStatus_t sum(cublasHandle_t handle, const char *function, struct operands p) {
    BLAS_RETURN_IF(check(handle, function, &p));
    BLAS_RETURN_IF(check_ld(function, "lda", p.lda, p.op_a == CUBLAS_OP_N ? p.m : p.n));
    BLAS_RETURN_IF(check_ld(function, "ldb", p.ldb, p.op_b == CUBLAS_OP_N ? p.m : p.n));
    BLAS_RETURN_IF(check_ld(function, "ldc", p.ldc, p.m));
    BLAS_CHECK(p.c != p.a || (p.op_a == CUBLAS_OP_N && p.lda == p.ldc), "%s: C may be A only if A is not transposed",
               function);
    BLAS_CHECK(p.c != p.b || (p.op_b == CUBLAS_OP_N && p.ldb == p.ldc), "%s: C may be B only if B is not transposed",
               function);
    if (!p.m || !p.n) return CUBLAS_STATUS_SUCCESS;
    if (!p.alpha || !p.beta) return blas_null(function, p.alpha ? "beta" : "alpha");
    return submit(handle, function, &p, run_sum);
}

static cublasStatus_t diagonal(cublasHandle_t handle, const char *function, struct operands p) {
    BLAS_RETURN_IF(check(handle, function, &p));
    BLAS_RETURN_IF(check_ld(function, "lda", p.lda, p.m));
    BLAS_RETURN_IF(check_ld(function, "ldc", p.ldc, p.m));
    if (!p.m || !p.n) return CUBLAS_STATUS_SUCCESS;
    return submit(handle, function, &p, run_diagonal);
}

#define SCALARS(element) .type = element, .alpha_type = element, .beta_type = element, .batch = NO_BATCH

#define SYMMETRIC_PRODUCT(L, name, T, element, is_hermitian, W, N)                                                       \
    static cublasStatus_t cublas##L##name##W(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, N m,   \
                                             N n, const T *alpha, const T *A, N lda, const T *B_, N ldb, const T *beta,  \
                                             T *C_, N ldc) {                                                             \
        return symmetric(handle, "cublas" #L #name #W,                                                                   \
                         (struct operands){SCALARS(element), .form = SYMM, .conjugate = is_hermitian, .side = side,      \
                                           .fill = uplo, .m = m, .n = n, .alpha = alpha, .a = A, .lda = lda, .b = B_,    \
                                           .ldb = ldb, .beta = beta, .c = C_, .ldc = ldc});                              \
    }
#define RANK_K(L, name, T, TA, element, scale, is_hermitian, W, N)                                                       \
    static cublasStatus_t cublas##L##name##W(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, N n, \
                                             N k, const TA *alpha, const T *A, N lda, const TA *beta, T *C_, N ldc) {    \
        return symmetric(handle, "cublas" #L #name #W,                                                                   \
                         (struct operands){.type = element, .alpha_type = scale, .beta_type = scale, .batch = NO_BATCH,  \
                                           .form = SYRK, .conjugate = is_hermitian, .fill = uplo, .op_a = trans, .n = n, \
                                           .k = k, .alpha = alpha, .a = A, .lda = lda, .beta = beta, .c = C_,            \
                                           .ldc = ldc});                                                                 \
    }
#define RANK_2K(L, name, T, TB, element, scale, is_hermitian, W, N)                                                      \
    static cublasStatus_t cublas##L##name##W(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, N n, \
                                             N k, const T *alpha, const T *A, N lda, const T *B_, N ldb, const TB *beta, \
                                             T *C_, N ldc) {                                                             \
        return symmetric(handle, "cublas" #L #name #W,                                                                   \
                         (struct operands){.type = element, .alpha_type = element, .beta_type = scale,                   \
                                           .batch = NO_BATCH, .form = SYR2K, .conjugate = is_hermitian, .fill = uplo,    \
                                           .op_a = trans, .n = n, .k = k, .alpha = alpha, .a = A, .lda = lda, .b = B_,   \
                                           .ldb = ldb, .beta = beta, .c = C_, .ldc = ldc});                              \
    }
#define TRIANGLE(element) \
    SCALARS(element), .side = side, .fill = uplo, .op_a = trans, .diagonal = diag, .m = m, .n = n, .alpha = alpha, .a = A, .lda = lda
#define TRIANGLE_PARAMETERS(N) \
    cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, N m, N n

#define ALL_TYPES(L, T, element, W, N)                                                                                   \
    SYMMETRIC_PRODUCT(L, symm, T, element, false, W, N)                                                                  \
    RANK_K(L, syrk, T, T, element, element, false, W, N)                                                                 \
    RANK_2K(L, syr2k, T, T, element, element, false, W, N)                                                               \
    static cublasStatus_t cublas##L##trmm##W(TRIANGLE_PARAMETERS(N), const T *alpha, const T *A, N lda, const T *B_,     \
                                             N ldb, T *C_, N ldc) {                                                      \
        return triangular(handle, "cublas" #L "trmm" #W,                                                                 \
                          (struct operands){TRIANGLE(element), .form = TRMM, .b = B_, .ldb = ldb, .c = C_, .ldc = ldc}); \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##trsm##W(TRIANGLE_PARAMETERS(N), const T *alpha, const T *A, N lda, T *B_, N ldb) {  \
        return triangular(handle, "cublas" #L "trsm" #W,                                                                 \
                          (struct operands){TRIANGLE(element), .form = TRSM, .b = B_, .ldb = ldb, .c = B_, .ldc = ldb}); \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##trsmBatched##W(TRIANGLE_PARAMETERS(N), const T *alpha, const T *const A[], N lda,   \
                                                    T *const B_[], N ldb, N batchCount) {                                \
        struct operands p = {TRIANGLE(element), .form = TRSM, .b = B_, .ldb = ldb, .c = (void *)B_, .ldc = ldb,          \
                             .pointers = true};                                                                          \
        p.batch = batchCount < 0 ? NO_BATCH - 1 : batchCount;                                                            \
        return triangular(handle, "cublas" #L "trsmBatched" #W, p);                                                      \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##geam##W(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,  \
                                             N m, N n, const T *alpha, const T *A, N lda, const T *beta, const T *B_,    \
                                             N ldb, T *C_, N ldc) {                                                      \
        return sum(handle, "cublas" #L "geam" #W,                                                                        \
                   (struct operands){SCALARS(element), .form = GEAM, .op_a = transa, .op_b = transb, .m = m, .n = n,     \
                                     .alpha = alpha, .a = A, .lda = lda, .beta = beta, .b = B_, .ldb = ldb, .c = C_,     \
                                     .ldc = ldc});                                                                       \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##dgmm##W(cublasHandle_t handle, cublasSideMode_t mode, N m, N n, const T *A, N lda,  \
                                             const T *x, N incx, T *C_, N ldc) {                                         \
        return diagonal(handle, "cublas" #L "dgmm" #W,                                                                   \
                        (struct operands){SCALARS(element), .form = DGMM, .side = mode, .m = m, .n = n, .a = A,          \
                                          .lda = lda, .b = x, .ldb = incx, .c = C_, .ldc = ldc});                        \
    }
BLAS_ALL(ALL_TYPES)

#define HERMITIAN(L, T, R, element, real, W, N)              \
    SYMMETRIC_PRODUCT(L, hemm, T, element, true, W, N)       \
    RANK_K(L, herk, T, R, element, real, true, W, N)         \
    RANK_2K(L, her2k, T, R, element, real, true, W, N)
HERMITIAN(C, cuComplex, float, C, S, , int)
HERMITIAN(C, cuComplex, float, C, S, _64, int64_t)
HERMITIAN(Z, cuDoubleComplex, double, Z, D, , int)
HERMITIAN(Z, cuDoubleComplex, double, Z, D, _64, int64_t)

#define ENTRIES(L, T, element, W, N)                                                                                 \
    BLAS_ENTRY(cublas##L##symm##W), BLAS_ENTRY(cublas##L##syrk##W), BLAS_ENTRY(cublas##L##syr2k##W),                 \
        BLAS_ENTRY(cublas##L##trmm##W), BLAS_ENTRY(cublas##L##trsm##W), BLAS_ENTRY(cublas##L##trsmBatched##W),       \
        BLAS_ENTRY(cublas##L##geam##W), BLAS_ENTRY(cublas##L##dgmm##W),
#define ENTRIES_COMPLEX(L, T, element, W, N) \
    BLAS_ENTRY(cublas##L##hemm##W), BLAS_ENTRY(cublas##L##herk##W), BLAS_ENTRY(cublas##L##her2k##W),

const struct entry blas_matrix_entries[] = {
    BLAS_ALL(ENTRIES) BLAS_COMPLEX(ENTRIES_COMPLEX){NULL, NULL, NULL},
};
