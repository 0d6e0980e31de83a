/* Linear equations: Cholesky's factorization and LU (cuSolverDN, potrf, getrf and their kin). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver.h"

/* ---- the work ------------------------------------------------------------------------------------------------------ */

static int64_t potrf_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    int64_t info = lapack.potrf[s->type](COLUMNS, fill_letter(s), s->n, at[AT_A], s->lda);
    if (info < 0) return info;
    /* What is not a number is not positive. Some of OpenBLAS's kernels go on there, and say so of a later column. */
    int64_t factored = info ? info - 1 : s->n;
    for (int64_t j = 0; j < factored; j++)
        if (isnan(creal(element_load(s->type, at[AT_A], j * s->lda + j)))) return j + 1;
    return info;
}

static int64_t potrs_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.potrs[s->type](COLUMNS, fill_letter(s), s->n, s->k, at[AT_A], s->lda, at[AT_B], s->ldb);
}

static int64_t potri_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.potri[s->type](COLUMNS, fill_letter(s), s->n, at[AT_A], s->lda);
}

static int64_t lauum_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.lauum[s->type](COLUMNS, fill_letter(s), s->n, at[AT_A], s->lda);
}

static int64_t trtri_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.trtri[s->type](COLUMNS, fill_letter(s), *diagonal_name(s->diagonal), s->n, at[AT_A], s->lda);
}

static int64_t getrf_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    if (!at[AT_PIVOTS]) return plain_lu(s->type, s->m, s->n, at[AT_A], s->lda);
    int64_t count = smaller(s->m, s->n), *pivots = malloc((size_t)larger(count, 1) * sizeof *pivots);
    if (!pivots) return LAPACK_NO_MEMORY;
    int64_t info = lapack.getrf[s->type](COLUMNS, s->m, s->n, at[AT_A], s->lda, pivots);
    if (info != LAPACK_NO_MEMORY) pivots_write(s, at[AT_PIVOTS], pivots, count);
    free(pivots);
    return info;
}

static int64_t getrs_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    int64_t *pivots = NULL;
    if (at[AT_PIVOTS]) pivots = pivots_read(s, at[AT_PIVOTS], s->n, s->n, false);
    else if ((pivots = malloc((size_t)larger(s->n, 1) * sizeof *pivots)))
        for (int64_t j = 0; j < s->n; j++) pivots[j] = j + 1;
    if (!pivots) return LAPACK_NO_MEMORY;
    int64_t info = lapack.getrs[s->type](COLUMNS, op_letter(s), s->n, s->k, at[AT_A], s->lda, pivots, at[AT_B], s->ldb);
    free(pivots);
    return info;
}

/* Rows from `first` to `last`, counted from 1, are swapped with those of their pivots. */
static int64_t laswp_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    int64_t count = s->last - s->first + 1, *pivots = pivots_read(s, at[AT_PIVOTS], count, s->lda, false);
    int64_t *placed = pivots ? calloc((size_t)s->last, sizeof *placed) : NULL; /* LAPACK counts from number 1 */
    int64_t info = LAPACK_NO_MEMORY;
    if (placed) {
        memcpy(placed + s->first - 1, pivots, (size_t)count * sizeof *pivots);
        info = lapack.laswp[s->type](COLUMNS, s->n, at[AT_A], s->lda, s->first, s->last, placed, s->k);
    }
    free(pivots), free(placed);
    return info;
}

/* ---- the families -------------------------------------------------------------------------------------------------- */

/* A square matrix of which one triangle counts. */
static cusolverStatus_t square(struct solver *s, int64_t (*one)(struct solver *, void **, int64_t)) {
    NEED_LD(4, "lda", s->lda, s->n);
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    s->one = one;
    return solver_submit(s);
}

static cusolverStatus_t potrf(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    NEED_FILL(1);
    if (s->asks) return solver_answer(s, s->n);
    NEED_SIZE(2, "n", s->n);
    s->must_tell = true;
    return square(s, potrf_one);
}

static cusolverStatus_t potri(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_FILL(1);
    NEED_SIZE(2, "n", s->n);
    return square(s, potri_one);
}

static cusolverStatus_t lauum(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_FILL(1);
    NEED_SIZE(0, "n", s->n);
    return square(s, lauum_one);
}

static cusolverStatus_t trtri(struct solver *s) {
    SOLVER_RETURN_IF(solver_check(s->handle, s->function));
    if (s->type > Z)
        return solver_refuse(s, CUSOLVER_STATUS_NOT_SUPPORTED, 0,
                             "%s: the type may be CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F", s->function);
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_FILL(1);
    SOLVER_NEED(2, (unsigned)s->diagonal <= CUBLAS_DIAG_UNIT, "diag is %d", s->diagonal);
    NEED_SIZE(3, "n", s->n);
    NEED_LD(6, "lda", s->lda, s->n);
    return square(s, trtri_one);
}

static cusolverStatus_t potrs(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    NEED_FILL(1);
    NEED_SIZE(2, "n", s->n);
    NEED_SIZE(3, "nrhs", s->k);
    NEED_LD(5, "lda", s->lda, s->n);
    NEED_LD(7, "ldb", s->ldb, s->n);
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    use_matrix(s, AT_B, "the matrix B", s->b, s->n, s->k, s->ldb);
    s->one = potrs_one;
    return solver_submit(s);
}

static cusolverStatus_t potrf_batched(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    s->positive = true;
    SOLVER_NEED(QUIET, s->batch > 0, "batchSize is %lld", (long long)s->batch);
    NEED_FILL(1);
    NEED_SIZE(2, "n", s->n);
    NEED_LD(4, "lda", s->lda, s->n);
    use_matrix(s, AT_A, "a matrix A", s->a, s->n, s->n, s->lda);
    s->operand[AT_A].pointers = true;
    s->one = potrf_one;
    return solver_submit(s);
}

static cusolverStatus_t potrs_batched(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    s->positive = true;
    SOLVER_NEED(9, s->batch > 0, "batchSize is %lld", (long long)s->batch);
    NEED_FILL(1);
    NEED_SIZE(2, "n", s->n);
    SOLVER_NEED(3, s->k == 1, "nrhs is %lld; it may only be 1", (long long)s->k);
    NEED_LD(5, "lda", s->lda, s->n);
    NEED_LD(7, "ldb", s->ldb, s->n);
    use_matrix(s, AT_A, "a matrix A", s->a, s->n, s->n, s->lda);
    use_matrix(s, AT_B, "a matrix B", s->b, s->n, s->k, s->ldb);
    s->operand[AT_A].pointers = s->operand[AT_B].pointers = true;
    s->one = potrs_one;
    return solver_submit(s);
}

static cusolverStatus_t getrf(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_SIZE(1, "m", s->m);
    NEED_SIZE(2, "n", s->n);
    NEED_LD(4, "lda", s->lda, s->m);
    use_matrix(s, AT_A, "the matrix A", s->a, s->m, s->n, s->lda);
    use_pivots(s, smaller(s->m, s->n));
    s->must_tell = true;
    s->one = getrf_one;
    return solver_submit(s);
}

static cusolverStatus_t getrs(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    SOLVER_NEED(QUIET, (unsigned)s->op <= CUBLAS_OP_C, "trans is %d", s->op);
    NEED_SIZE(QUIET, "n", s->n);
    NEED_SIZE(QUIET, "nrhs", s->k);
    NEED_LD(QUIET, "lda", s->lda, s->n);
    NEED_LD(QUIET, "ldb", s->ldb, s->n);
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    use_matrix(s, AT_B, "the matrix B", s->b, s->n, s->k, s->ldb);
    use_pivots(s, s->n);
    s->one = getrs_one;
    return solver_submit(s);
}

static cusolverStatus_t laswp(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->n <= 0) return CUSOLVER_STATUS_SUCCESS;
    SOLVER_NEED(QUIET, s->first >= 1 && s->last <= s->lda, "k1 is %lld and k2 %lld, but lda %lld", (long long)s->first,
                (long long)s->last, (long long)s->lda);
    SOLVER_NEED(QUIET, s->k == 1 || s->k == -1, "incx is %lld; it may be 1 or -1", (long long)s->k);
    if (s->last < s->first) return CUSOLVER_STATUS_SUCCESS;
    use_matrix(s, AT_A, "the matrix A", s->a, s->lda, s->n, s->lda);
    use_vector(s, AT_PIVOTS, "the pivots", (int *)s->pivots + s->first - 1, I32, s->last - s->first + 1);
    s->silent = true;
    s->one = laswp_one;
    return solver_submit(s);
}

/* ---- the functions ------------------------------------------------------------------------------------------------- */

#define CHOLESKY_LIKE(L, T, E, name)                                                                                   \
    static cusolverStatus_t cusolverDn##L##name##_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,   \
                                                             T *A, int lda, int *lwork) {                               \
        CALL(name, TYPED(#L #name "_bufferSize", E), .uplo = (int)uplo, .n = n, .a = A, .lda = lda, .asks = true, .size = lwork);    \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##name(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T *A, int lda, \
                                                T *work, int lwork, int *info) {                                        \
        CALL(name, TYPED(#L #name, E), .uplo = (int)uplo, .n = n, .a = A, .lda = lda, .work = work, .room = lwork, .info = info);    \
    }

#define LINEAR(L, T, R, E, or, sy)                                                                                      \
    CHOLESKY_LIKE(L, T, E, potrf)                                                                                       \
    CHOLESKY_LIKE(L, T, E, potri)                                                                                       \
    CHOLESKY_LIKE(L, T, E, lauum)                                                                                       \
    static cusolverStatus_t cusolverDn##L##potrs(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, int nrhs,     \
                                                 const T *A, int lda, T *B_, int ldb, int *info) {                      \
        CALL(potrs, TYPED(#L "potrs", E), .uplo = (int)uplo, .n = n, .k = nrhs, .a = (void *)A, .lda = lda, .b = B_,         \
             .ldb = ldb, .info = info);                                                                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##potrfBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,        \
                                                        T *A[], int lda, int *info, int batch) {                        \
        CALL(potrf_batched, TYPED(#L "potrfBatched", E), .uplo = (int)uplo, .n = n, .a = A, .lda = lda, .info = info,        \
             .batch = batch);                                                                                           \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##potrsBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,        \
                                                        int nrhs, T *A[], int lda, T *B_[], int ldb, int *info,         \
                                                        int batch) {                                                    \
        CALL(potrs_batched, TYPED(#L "potrsBatched", E), .uplo = (int)uplo, .n = n, .k = nrhs, .a = A, .lda = lda, .b = B_,  \
             .ldb = ldb, .info = info, .batch = batch);                                                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##getrf_bufferSize(cusolverDnHandle_t handle, int m, int n, T *A, int lda,     \
                                                            int *lwork) {                                               \
        CALL(getrf, TYPED(#L "getrf_bufferSize", E), .m = m, .n = n, .a = A, .lda = lda, .asks = true, .size = lwork);  \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##getrf(cusolverDnHandle_t handle, int m, int n, T *A, int lda, T *work,       \
                                                 int *pivots, int *info) {                                              \
        CALL(getrf, TYPED(#L "getrf", E), .m = m, .n = n, .a = A, .lda = lda, .work = work, .pivots = pivots,           \
             .info = info);                                                                                             \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##getrs(cusolverDnHandle_t handle, cublasOperation_t trans, int n, int nrhs,   \
                                                 const T *A, int lda, const int *pivots, T *B_, int ldb, int *info) {   \
        CALL(getrs, TYPED(#L "getrs", E), .op = (int)trans, .n = n, .k = nrhs, .a = (void *)A, .lda = lda,                   \
             .pivots = (void *)pivots, .b = B_, .ldb = ldb, .info = info);                                              \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##laswp(cusolverDnHandle_t handle, int n, T *A, int lda, int k1, int k2,       \
                                                 const int *pivots, int incx) {                                         \
        CALL(laswp, TYPED(#L "laswp", E), .n = n, .a = A, .lda = lda, .first = k1, .last = k2,                          \
             .pivots = (void *)pivots, .k = incx);                                                                      \
    }
SOLVER_TYPES(LINEAR)

static cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                    cublasFillMode_t uplo, int64_t n, cudaDataType type, const void *A,
                                                    int64_t lda, cudaDataType compute, size_t *device, size_t *host) {
    (void)compute;
    CALL(potrf, BY_NUMBER("Xpotrf_bufferSize", type, type), .uplo = (int)uplo, .n = n, .a = (void *)A, .lda = lda,
         .params = params, .asks = true, .bytes = device, .host_bytes = host);
}

static cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo,
                                         int64_t n, cudaDataType type, void *A, int64_t lda, cudaDataType compute,
                                         void *work, size_t device, void *host_work, size_t host, int *info) {
    (void)compute; /* a GPU does not look at it either */
    CALL(potrf, BY_NUMBER("Xpotrf", type, type), .uplo = (int)uplo, .n = n, .a = A, .lda = lda, .params = params,
         BUFFERS, .info = info);
}

static cusolverStatus_t cusolverDnXpotrs(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo,
                                         int64_t n, int64_t nrhs, cudaDataType type, const void *A, int64_t lda,
                                         cudaDataType b_type, void *B_, int64_t ldb, int *info) {
    CALL(potrs, BY_NUMBER("Xpotrs", type, b_type), .uplo = (int)uplo, .n = n, .k = nrhs, .a = (void *)A, .lda = lda,
         .b = B_, .ldb = ldb, .params = params, .info = info);
}

static cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
                                                    int64_t n, cudaDataType type, const void *A, int64_t lda,
                                                    cudaDataType compute, size_t *device, size_t *host) {
    (void)compute; /* a GPU does not look at it either */
    CALL(getrf, BY_NUMBER("Xgetrf_bufferSize", type, type), .m = m, .n = n, .a = (void *)A, .lda = lda,
         .params = params, .asks = true, .bytes = device, .host_bytes = host);
}

static cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
                                         cudaDataType type, void *A, int64_t lda, int64_t *pivots, cudaDataType compute,
                                         void *work, size_t device, void *host_work, size_t host, int *info) {
    (void)compute; /* a GPU does not look at it either */
    CALL(getrf, BY_NUMBER("Xgetrf", type, type), .m = m, .n = n, .a = A, .lda = lda, .params = params, .pivots = pivots,
         .wide_pivots = true, BUFFERS, .info = info);
}

static cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t params, cublasOperation_t trans,
                                         int64_t n, int64_t nrhs, cudaDataType type, const void *A, int64_t lda,
                                         const int64_t *pivots, cudaDataType b_type, void *B_, int64_t ldb, int *info) {
    CALL(getrs, BY_NUMBER("Xgetrs", type, b_type), .op = (int)trans, .n = n, .k = nrhs, .a = (void *)A, .lda = lda,
         .params = params, .pivots = (void *)pivots, .wide_pivots = true, .b = B_, .ldb = ldb, .info = info);
}

static cusolverStatus_t cusolverDnXtrtri_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo,
                                                    cublasDiagType_t diag, int64_t n, cudaDataType type, void *A,
                                                    int64_t lda, size_t *device, size_t *host) {
    CALL(trtri, BY_NUMBER("Xtrtri_bufferSize", type, type), .uplo = (int)uplo, .diagonal = (int)diag, .n = n, .a = A,
         .lda = lda, .asks = true, .bytes = device, .host_bytes = host);
}

static cusolverStatus_t cusolverDnXtrtri(cusolverDnHandle_t handle, cublasFillMode_t uplo, cublasDiagType_t diag,
                                         int64_t n, cudaDataType type, void *A, int64_t lda, void *work, size_t device,
                                         void *host_work, size_t host, int *info) {
    CALL(trtri, BY_NUMBER("Xtrtri", type, type), .uplo = (int)uplo, .diagonal = (int)diag, .n = n, .a = A, .lda = lda,
         BUFFERS, .info = info);
}

#define ENTRIES(L, T, R, E, or, sy)                                                                          \
    SOLVER_ENTRY(cusolverDn##L##potrf_bufferSize), SOLVER_ENTRY(cusolverDn##L##potrf),                       \
        SOLVER_ENTRY(cusolverDn##L##potri_bufferSize), SOLVER_ENTRY(cusolverDn##L##potri),                   \
        SOLVER_ENTRY(cusolverDn##L##lauum_bufferSize), SOLVER_ENTRY(cusolverDn##L##lauum),                   \
        SOLVER_ENTRY(cusolverDn##L##potrs), SOLVER_ENTRY(cusolverDn##L##potrfBatched),                       \
        SOLVER_ENTRY(cusolverDn##L##potrsBatched), SOLVER_ENTRY(cusolverDn##L##getrf_bufferSize),            \
        SOLVER_ENTRY(cusolverDn##L##getrf), SOLVER_ENTRY(cusolverDn##L##getrs), SOLVER_ENTRY(cusolverDn##L##laswp),

const struct entry solver_linear_entries[] = {
    SOLVER_TYPES(ENTRIES) SOLVER_ENTRY(cusolverDnXpotrf_bufferSize),
    SOLVER_ENTRY(cusolverDnXpotrf),
    SOLVER_ENTRY(cusolverDnXpotrs),
    SOLVER_ENTRY(cusolverDnXgetrf_bufferSize),
    SOLVER_ENTRY(cusolverDnXgetrf),
    SOLVER_ENTRY(cusolverDnXgetrs),
    SOLVER_ENTRY(cusolverDnXtrtri_bufferSize),
    SOLVER_ENTRY(cusolverDnXtrtri),
    {NULL, NULL, NULL},
};
