/* Symmetric matrices that are not positive definite: L D Lᵀ (cuSolverDN, sytrf and its kin). */
#include <stdlib.h>

#include "solver.h"

/* ---- the work ------------------------------------------------------------------------------------------------------ */

static int64_t sytrf_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    if (!at[AT_PIVOTS]) return plain_ldl(s->type, fill_letter(s), s->n, at[AT_A], s->lda);
    int64_t *pivots = malloc((size_t)larger(s->n, 1) * sizeof *pivots);
    if (!pivots) return LAPACK_NO_MEMORY;
    int64_t info = lapack.sytrf[s->type](COLUMNS, fill_letter(s), s->n, at[AT_A], s->lda, pivots);
    if (info != LAPACK_NO_MEMORY) pivots_write(s, at[AT_PIVOTS], pivots, s->n);
    free(pivots);
    return info;
}

static int64_t sytrs_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    if (!at[AT_PIVOTS]) {
        plain_ldl_solve(s->type, fill_letter(s), s->n, s->k, at[AT_A], s->lda, at[AT_B], s->ldb);
        return 0;
    }
    int64_t *pivots = pivots_read(s, at[AT_PIVOTS], s->n, s->n, true);
    if (!pivots) return LAPACK_NO_MEMORY;
    int64_t info =
        lapack.sytrs[s->type](COLUMNS, fill_letter(s), s->n, s->k, at[AT_A], s->lda, pivots, at[AT_B], s->ldb);
    free(pivots);
    return info;
}

static int64_t sytri_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    int64_t *pivots = pivots_read(s, at[AT_PIVOTS], s->n, s->n, true);
    if (!pivots) return LAPACK_NO_MEMORY;
    int64_t info = lapack.sytri[s->type](COLUMNS, fill_letter(s), s->n, at[AT_A], s->lda, pivots);
    free(pivots);
    return info;
}

/* ---- the families -------------------------------------------------------------------------------------------------- */

static cusolverStatus_t sytrf(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) {
        SOLVER_NEED(QUIET, s->lda >= 0, "lda is %lld", (long long)s->lda);
        return solver_answer(s, s->n);
    }
    NEED_FILL(1);
    NEED_SIZE(2, "n", s->n);
    NEED_LD(4, "lda", s->lda, s->n);
    SOLVER_NEED(7, s->room >= 1, "the workspace has %lld elements", (long long)s->room);
    if (!s->n) return CUSOLVER_STATUS_SUCCESS;
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    use_pivots(s, s->n);
    s->must_tell = true;
    s->one = sytrf_one;
    return solver_submit(s);
}

static cusolverStatus_t sytri(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_FILL(1);
    NEED_SIZE(2, "n", s->n);
    NEED_LD(4, "lda", s->lda, s->n);
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    use_vector(s, AT_PIVOTS, "the pivots", s->pivots, I32, s->n);
    s->one = sytri_one;
    return solver_submit(s);
}

static cusolverStatus_t sytrs(struct solver *s) {
    SOLVER_RETURN_IF(solver_check(s->handle, s->function));
    if (s->type > Z || s->other_type != s->type)
        return solver_refuse(s, CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED, 0,
                             "%s: the types are one of CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F", s->function);
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_FILL(1);
    NEED_SIZE(2, "n", s->n);
    NEED_SIZE(3, "nrhs", s->k);
    NEED_LD(6, "lda", s->lda, s->n);
    NEED_LD(10, "ldb", s->ldb, s->n);
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    use_matrix(s, AT_B, "the matrix B", s->b, s->n, s->k, s->ldb);
    use_pivots(s, s->n);
    s->one = sytrs_one;
    return solver_submit(s);
}

/* ---- the functions ------------------------------------------------------------------------------------------------- */

#define SYMMETRIC(L, T, R, E, or, sy)                                                                                   \
    static cusolverStatus_t cusolverDn##L##sytrf_bufferSize(cusolverDnHandle_t handle, int n, T *A, int lda,            \
                                                            int *lwork) {                                               \
        CALL(sytrf, TYPED(#L "sytrf_bufferSize", E), .n = n, .a = A, .lda = lda, .asks = true, .size = lwork);          \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sytrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T *A,         \
                                                 int lda, int *pivots, T *work, int lwork, int *info) {                 \
        CALL(sytrf, TYPED(#L "sytrf", E), .uplo = (int)uplo, .n = n, .a = A, .lda = lda, .pivots = pivots,              \
             .work = work, .room = lwork, .info = info);                                                                \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sytri_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,    \
                                                            T *A, int lda, const int *pivots, int *lwork) {             \
        CALL(sytri, TYPED(#L "sytri_bufferSize", E), .uplo = (int)uplo, .n = n, .a = A, .lda = lda,                     \
             .pivots = (void *)pivots, .asks = true, .size = lwork);                                                    \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sytri(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T *A,         \
                                                 int lda, const int *pivots, T *work, int lwork, int *info) {           \
        CALL(sytri, TYPED(#L "sytri", E), .uplo = (int)uplo, .n = n, .a = A, .lda = lda, .pivots = (void *)pivots,      \
             .work = work, .room = lwork, .info = info);                                                                \
    }
SOLVER_TYPES(SYMMETRIC)

static cusolverStatus_t cusolverDnXsytrs_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo, int64_t n,
                                                    int64_t nrhs, cudaDataType type, const void *A, int64_t lda,
                                                    const int64_t *pivots, cudaDataType b_type, void *B_, int64_t ldb,
                                                    size_t *device, size_t *host) {
    CALL(sytrs, BY_NUMBER("Xsytrs_bufferSize", type, b_type), .uplo = (int)uplo, .n = n, .k = nrhs, .a = (void *)A,
         .lda = lda, .pivots = (void *)pivots, .b = B_, .ldb = ldb, .asks = true, .bytes = device, .host_bytes = host);
}

static cusolverStatus_t cusolverDnXsytrs(cusolverDnHandle_t handle, cublasFillMode_t uplo, int64_t n, int64_t nrhs,
                                         cudaDataType type, const void *A, int64_t lda, const int64_t *pivots,
                                         cudaDataType b_type, void *B_, int64_t ldb, void *work, size_t device,
                                         void *host_work, size_t host, int *info) {
    CALL(sytrs, BY_NUMBER("Xsytrs", type, b_type), .uplo = (int)uplo, .n = n, .k = nrhs, .a = (void *)A, .lda = lda,
         .pivots = (void *)pivots, .wide_pivots = true, .b = B_, .ldb = ldb, BUFFERS, .info = info);
}

#define ENTRIES(L, T, R, E, or, sy) BOTH(L##sytrf), BOTH(L##sytri),

const struct entry solver_symmetric_entries[] = {SOLVER_TYPES(ENTRIES) BOTH(Xsytrs), {NULL, NULL, NULL}};
