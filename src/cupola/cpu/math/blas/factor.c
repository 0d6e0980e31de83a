/* Factorizations of many small matrices (cuBLAS Library, 2.8: getrfBatched and its kin). LAPACK does the work, one matrix
 * after another. Pivots are int in CUDA and 64 bits wide in this LAPACK; LU without pivots LAPACK does not have. */
#include <stdlib.h>
#include <string.h>

#include "blas.h"

enum form { GETRF, GETRS, GETRI, MATINV, GEQRF, GELS };
enum { MATINV_MOST = 32 }; /* rows */

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

/* LU with the pivots that are there anyway. Returns LAPACK's info: the first zero on the diagonal, counted from one. */
static blas_int factor_plainly(const struct blas *blas, void *a) {
    enum element type = blas->type;
    blas_int info = 0;
    for (int64_t k = 0; k < blas->n; k++) {
        number pivot = element_load(type, a, k * blas->lda + k);
        if (pivot == 0) {
            if (!info) info = k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < blas->n; i++)
            element_store(type, a, k * blas->lda + i, element_load(type, a, k * blas->lda + i) / pivot);
        for (int64_t j = k + 1; j < blas->n; j++) {
            number factor = element_load(type, a, j * blas->lda + k);
            for (int64_t i = k + 1; i < blas->n; i++) {
                number value = element_load(type, a, j * blas->lda + i);
                element_store(type, a, j * blas->lda + i, value - element_load(type, a, k * blas->lda + i) * factor);
            }
        }
    }
    return info;
}

/* The pivots of matrix number i, or rows that stay where they are. */
static CUresult read_pivots(const struct blas *blas, int64_t i, blas_int *pivots) {
    const int *given = blas->pivots ? (const int *)blas->pivots + i * blas->n : NULL;
    if (given) RETURN_IF(math_touch(blas->function, "the pivots", given, (size_t)blas->n * sizeof *given));
    for (int64_t j = 0; j < blas->n; j++) {
        pivots[j] = given ? given[j] : j + 1;
        if (pivots[j] < j + 1 || pivots[j] > blas->n)
            return fail(CUDA_ERROR_ILLEGAL_ADDRESS, "%s: pivot %lld of matrix %lld is %lld; the matrix has %lld rows",
                        blas->function, (long long)j + 1, (long long)i, (long long)pivots[j], (long long)blas->n);
    }
    return CUDA_SUCCESS;
}

static CUresult write_info(const struct blas *blas, int64_t i, blas_int info) {
    if (!blas->info) return CUDA_SUCCESS;
    int *place = (int *)blas->info + i;
    RETURN_IF(math_touch(blas->function, "the array of infos", place, sizeof *place));
    *place = (int)info;
    return CUDA_SUCCESS;
}

static void copy_matrix(const struct blas *blas, const void *a, void *c) {
    for (int64_t j = 0; j < blas->n; j++)
        memcpy(element_at(c, blas->type, j * blas->ldc), element_at(a, blas->type, j * blas->lda),
               (size_t)blas->n * element_size(blas->type));
}

/* C, which holds a factorization, becomes the inverse. */
static blas_int invert(const struct blas *blas, void *c, const blas_int *pivots, void *work, blas_int room) {
    blas_int info = 0;
    openblas.getri[blas->type](&blas->n, c, &blas->ldc, pivots, work, &room, &info);
    return info;
}

static CUresult factor(struct blas *blas, int64_t i, blas_int *pivots, void *work, blas_int room) {
    enum element type = blas->type;
    void *a, *c = NULL;
    blas_int info = 0;
    RETURN_IF(batch_at(blas, "the array of A", blas->a, type, 0, i, &a));
    if (blas->c) RETURN_IF(batch_at(blas, "the array of the second matrices", blas->c, type, 0, i, &c));
    bool tall = blas->form >= GEQRF;
    RETURN_IF(touch_matrix(blas, "a matrix A", a, type, tall ? blas->m : blas->n, blas->n, blas->lda));
    switch (blas->form) {
        case GETRF: {
            if (!blas->pivots) return write_info(blas, i, factor_plainly(blas, a));
            int *given = (int *)blas->pivots + i * blas->n;
            RETURN_IF(math_touch(blas->function, "the pivots", given, (size_t)blas->n * sizeof *given));
            openblas.getrf[type](&blas->n, &blas->n, a, &blas->lda, pivots, &info);
            for (int64_t j = 0; j < blas->n; j++) given[j] = (int)pivots[j];
            return write_info(blas, i, info);
        }
        case GETRS:
            RETURN_IF(touch_matrix(blas, "a matrix B", c, type, blas->n, blas->k, blas->ldc));
            RETURN_IF(read_pivots(blas, i, pivots));
            openblas.getrs[type](operation_name(blas->op_a), &blas->n, &blas->k, a, &blas->lda, pivots, c, &blas->ldc,
                                 &info, (size_t)1);
            return CUDA_SUCCESS;
        case GETRI:
        case MATINV:
            RETURN_IF(touch_matrix(blas, "an inverse", c, type, blas->n, blas->n, blas->ldc));
            copy_matrix(blas, a, c);
            if (blas->form == GETRI) RETURN_IF(read_pivots(blas, i, pivots));
            else openblas.getrf[type](&blas->n, &blas->n, c, &blas->ldc, pivots, &info);
            if (!info) info = invert(blas, c, pivots, work, room);
            return write_info(blas, i, info);
        case GEQRF: {
            int64_t count = blas->m < blas->n ? blas->m : blas->n;
            RETURN_IF(touch_vector(blas, "a vector tau", c, type, count, 1));
            openblas.geqrf[type](&blas->m, &blas->n, a, &blas->lda, c, work, &room, &info);
            return CUDA_SUCCESS;
        }
        default:
            RETURN_IF(touch_matrix(blas, "a matrix C", c, type, blas->m, blas->k, blas->ldc));
            openblas.gels[type]("N", &blas->m, &blas->n, &blas->k, a, &blas->lda, c, &blas->ldc, work, &room, &info,
                                (size_t)1);
            return write_info(blas, i, info);
    }
}

static CUresult run(struct blas *blas) {
    int64_t most = larger(larger(blas->m, blas->n), blas->k);
    blas_int room = 64 * larger(most, 1), *pivots = malloc((size_t)larger(most, 1) * sizeof *pivots);
    void *work = malloc((size_t)room * element_size(blas->type));
    CUresult status = pivots && work ? CUDA_SUCCESS : no_memory("a factorization");
    for (int64_t i = 0; i < blas->batch && !status; i++) status = factor(blas, i, pivots, work, room);
    free(pivots), free(work);
    return status;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct operands {
    enum form form;
    enum element type;
    cublasOperation_t op;
    int64_t m, n, k, lda, ldc, batch;
    const void *a;
    void *c, *pivots, *info;
};

static cublasStatus_t submit(cublasHandle_t handle, const char *function, struct operands p) {
    if (!p.n || !p.batch || (p.form >= GEQRF && !p.m)) return CUBLAS_STATUS_SUCCESS;
    struct blas *blas = blas_new(function, run, p.type);
    if (!blas) return blas_status(no_memory("a call of cuBLAS"));
    blas->form = p.form, blas->pointers = true, blas->op_a = p.op;
    blas->m = p.m, blas->n = p.n, blas->k = p.k, blas->batch = p.batch;
    blas->a = (void *)p.a, blas->c = p.c, blas->lda = p.lda, blas->ldc = p.ldc;
    blas->pivots = p.pivots, blas->info = p.info;
    return blas_submit(handle, blas);
}

/* Functions whose arguments are checked as any others'. */
static cublasStatus_t square(cublasHandle_t handle, const char *function, struct operands p) {
    BLAS_RETURN_IF(blas_check(handle, function));
    BLAS_CHECK(p.n >= 0 && p.batch >= 0, "%s: n is %lld, batchSize %lld", function, (long long)p.n, (long long)p.batch);
    BLAS_CHECK(p.form != MATINV || p.n <= MATINV_MOST, "%s: n is %lld; it may be %d at most: use getrf and getri",
               function, (long long)p.n, MATINV_MOST);
    BLAS_CHECK(p.lda >= larger(1, p.n), "%s: lda is %lld, but a matrix has %lld rows", function, (long long)p.lda,
               (long long)p.n);
    BLAS_CHECK(p.form == GETRF || p.ldc >= larger(1, p.n),
               "%s: the second leading dimension is %lld, but a matrix has %lld rows", function, (long long)p.ldc,
               (long long)p.n);
    return submit(handle, function, p);
}

/* Functions that say on the host which argument is bad, as LAPACK does: its number, negative. */
struct rule {
    bool good;
    int argument;
    const char *what;
};

static cublasStatus_t judged(cublasHandle_t handle, const char *function, int *info, const struct rule *rules,
                             struct operands p) {
    BLAS_RETURN_IF(blas_check(handle, function));
    if (!info) return blas_null(function, "info");
    *info = 0;
    for (const struct rule *rule = rules; rule->what; rule++)
        if (!rule->good) {
            *info = -rule->argument;
            return blas_fail(CUBLAS_STATUS_INVALID_VALUE, "%s: %s is out of range", function, rule->what);
        }
    if (p.form == GELS && (p.op != CUBLAS_OP_N || p.m < p.n))
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED,
                         "%s: only overdetermined systems (m >= n, CUBLAS_OP_N) are solved", function);
    return submit(handle, function, p);
}

#define FACTORS(L, T, element)                                                                                          \
    static cublasStatus_t cublas##L##getrfBatched(cublasHandle_t handle, int n, T *const A[], int lda, int *P, int *info, \
                                                  int batchSize) {                                                      \
        return square(handle, "cublas" #L "getrfBatched",                                                               \
                      (struct operands){.form = GETRF, .type = element, .n = n, .a = A, .lda = lda, .pivots = P,         \
                                        .info = info, .batch = batchSize});                                             \
    }                                                                                                                   \
    static cublasStatus_t cublas##L##getriBatched(cublasHandle_t handle, int n, const T *const A[], int lda,            \
                                                  const int *P, T *const C_[], int ldc, int *info, int batchSize) {     \
        return square(handle, "cublas" #L "getriBatched",                                                               \
                      (struct operands){.form = GETRI, .type = element, .n = n, .a = A, .lda = lda,                     \
                                        .pivots = (void *)P, .c = (void *)C_, .ldc = ldc, .info = info,                 \
                                        .batch = batchSize});                                                           \
    }                                                                                                                   \
    static cublasStatus_t cublas##L##matinvBatched(cublasHandle_t handle, int n, const T *const A[], int lda,           \
                                                   T *const Ainv[], int lda_inv, int *info, int batchSize) {            \
        return square(handle, "cublas" #L "matinvBatched",                                                              \
                      (struct operands){.form = MATINV, .type = element, .n = n, .a = A, .lda = lda, .c = (void *)Ainv,  \
                                        .ldc = lda_inv, .info = info, .batch = batchSize});                             \
    }                                                                                                                   \
    static cublasStatus_t cublas##L##getrsBatched(cublasHandle_t handle, cublasOperation_t trans, int n, int nrhs,      \
                                                  const T *const A[], int lda, const int *P, T *const B_[], int ldb,    \
                                                  int *info, int batchSize) {                                           \
        const struct rule rules[] = {{(unsigned)trans <= CUBLAS_OP_C, 1, "trans"},                                      \
                                     {n >= 0, 2, "n"},                                                                  \
                                     {nrhs >= 0, 3, "nrhs"},                                                            \
                                     {lda >= larger(1, n), 5, "lda"},                                                   \
                                     {ldb >= larger(1, n), 8, "ldb"},                                                   \
                                     {batchSize >= 0, 10, "batchSize"},                                                 \
                                     {true, 0, NULL}};                                                                  \
        return judged(handle, "cublas" #L "getrsBatched", info, rules,                                                  \
                      (struct operands){.form = GETRS, .type = element, .op = trans, .n = n, .k = nrhs, .a = A,          \
                                        .lda = lda, .pivots = (void *)P, .c = (void *)B_, .ldc = ldb,                   \
                                        .batch = nrhs ? batchSize : 0});                                                \
    }                                                                                                                   \
    static cublasStatus_t cublas##L##geqrfBatched(cublasHandle_t handle, int m, int n, T *const A[], int lda,           \
                                                  T *const tau[], int *info, int batchSize) {                           \
        const struct rule rules[] = {{m >= 0, 1, "m"},                                                                  \
                                     {n >= 0, 2, "n"},                                                                  \
                                     {lda >= larger(1, m), 4, "lda"},                                                   \
                                     {batchSize >= 0, 7, "batchSize"},                                                  \
                                     {true, 0, NULL}};                                                                  \
        return judged(handle, "cublas" #L "geqrfBatched", info, rules,                                                  \
                      (struct operands){.form = GEQRF, .type = element, .m = m, .n = n, .a = A, .lda = lda,             \
                                        .c = (void *)tau, .batch = batchSize});                                         \
    }                                                                                                                   \
    static cublasStatus_t cublas##L##gelsBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n, int nrhs, \
                                                 T *const A[], int lda, T *const C_[], int ldc, int *info,              \
                                                 int *devInfo, int batchSize) {                                         \
        const struct rule rules[] = {{m >= 0, 0, "m"},                                                                  \
                                     {n >= 0, 1, "n"},                                                                  \
                                     {nrhs >= 0, 2, "nrhs"},                                                            \
                                     {lda >= larger(1, m), 5, "lda"},                                                   \
                                     {ldc >= larger(1, m), 7, "ldc"},                                                   \
                                     {batchSize >= 0, 10, "batchSize"},                                                 \
                                     {true, 0, NULL}};                                                                  \
        return judged(handle, "cublas" #L "gelsBatched", info, rules,                                                   \
                      (struct operands){.form = GELS, .type = element, .op = trans, .m = m, .n = n, .k = nrhs, .a = A,   \
                                        .lda = lda, .c = (void *)C_, .ldc = ldc, .info = devInfo, .batch = batchSize}); \
    }
FACTORS(S, float, S)
FACTORS(D, double, D)
FACTORS(C, cuComplex, C)
FACTORS(Z, cuDoubleComplex, Z)

#define ENTRIES(L)                                                                                                \
    BLAS_ENTRY(cublas##L##getrfBatched), BLAS_ENTRY(cublas##L##getrsBatched), BLAS_ENTRY(cublas##L##getriBatched), \
        BLAS_ENTRY(cublas##L##matinvBatched), BLAS_ENTRY(cublas##L##geqrfBatched), BLAS_ENTRY(cublas##L##gelsBatched),

const struct entry blas_factor_entries[] = {ENTRIES(S) ENTRIES(D) ENTRIES(C) ENTRIES(Z){NULL, NULL, NULL}};
