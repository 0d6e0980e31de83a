/* Eigenvalues (cuSolverDN, syevd, syevj, sygvd, geev and their kin). Jacobi's method is LAPACK's divide and conquer here:
 * it is more exact than any tolerance that is set. */
#include <math.h>
#include <stdlib.h>

#include "solver.h"

/* ---- the work ------------------------------------------------------------------------------------------------------ */

static inline char job_letter(const struct solver *s) { return s->job == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N'; }

/* What is not a number makes LAPACK's iterations go astray. */
static bool is_sound(const struct solver *s, void **at) {
    bool upper = s->uplo == CUBLAS_FILL_MODE_UPPER;
    return triangle_finite(s->type, at[AT_A], s->n, s->lda, upper) &&
           (!at[AT_B] || triangle_finite(s->type, at[AT_B], s->n, s->ldb, upper));
}

static int64_t unsound(const struct solver *s, void **at) {
    fill_nan(real_of(s->type), at[AT_W], s->n, 1, s->n);
    if (s->job == CUSOLVER_EIG_MODE_VECTOR) fill_nan(s->type, at[AT_A], s->n, s->n, s->lda);
    return s->object ? s->n + 1 : 0; /* Jacobi's method has not converged; the others do not notice */
}

static int64_t syevd_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    if (s->object) s->object->residual = 0, s->object->done = 1, s->object->batched = s->batch > 0;
    if (!is_sound(s, at)) return unsound(s, at);
    return lapack.syevd[s->type](COLUMNS, job_letter(s), fill_letter(s), s->n, at[AT_A], s->lda, at[AT_W]);
}

static int64_t sygvd_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    if (s->object) s->object->residual = 0, s->object->done = 1;
    if (!is_sound(s, at)) return unsound(s, at);
    int64_t info = lapack.sygvd[s->type](COLUMNS, (int64_t)s->kind, job_letter(s), fill_letter(s), s->n, at[AT_A],
                                         s->lda, at[AT_B], s->ldb, at[AT_W]);
    return s->object && info > s->n ? info - s->n : info; /* sygvj does not tell the two kinds of failures apart */
}

static void tell_count(const struct solver *s, int64_t count) {
    if (s->count) *s->count = (int)count;
    if (s->wide_count) *s->wide_count = count;
}

/* Bounds are arguments of the matrix's real type. */
typedef int64_t (*some_floats)(int, char, char, char, int64_t, void *, int64_t, float, float, int64_t, int64_t, float,
                               int64_t *, void *, void *, int64_t, int64_t *);
typedef int64_t (*some_doubles)(int, char, char, char, int64_t, void *, int64_t, double, double, int64_t, int64_t,
                                double, int64_t *, void *, void *, int64_t, int64_t *);
typedef int64_t (*general_floats)(int, int64_t, char, char, char, int64_t, void *, int64_t, void *, int64_t, float,
                                  float, int64_t, int64_t, float, int64_t *, void *, void *, int64_t, int64_t *);
typedef int64_t (*general_doubles)(int, int64_t, char, char, char, int64_t, void *, int64_t, void *, int64_t, double,
                                   double, int64_t, int64_t, double, int64_t *, void *, void *, int64_t, int64_t *);

/* Some of the eigenvalues, with or without a matrix B. */
static int64_t some_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    int64_t n = s->n, count = 0, info;
    if (!is_sound(s, at)) {
        tell_count(s, 0);
        return unsound(s, at);
    }
    char job = job_letter(s), fill = fill_letter(s);
    char range = s->range == CUSOLVER_EIG_RANGE_I ? 'I' : s->range == CUSOLVER_EIG_RANGE_V ? 'V' : 'A';
    size_t vectors = s->job == CUSOLVER_EIG_MODE_VECTOR ? (size_t)(n * n) * element_size(s->type) : 1;
    void *z = malloc(vectors), *w = malloc((size_t)n * element_size(real_of(s->type)));
    int64_t *support = malloc(2 * (size_t)n * sizeof *support);
    bool is_single = real_of(s->type) == S;
    if (!z || !w || !support) info = LAPACK_NO_MEMORY;
    else if (at[AT_B] && is_single)
        info = ((general_floats)lapack.sygvx[s->type])(COLUMNS, s->kind, job, range, fill, n, at[AT_A], s->lda,
                                                       at[AT_B], s->ldb, (float)s->low, (float)s->high, s->first,
                                                       s->last, 0, &count, w, z, n, support);
    else if (at[AT_B])
        info = ((general_doubles)lapack.sygvx[s->type])(COLUMNS, s->kind, job, range, fill, n, at[AT_A], s->lda,
                                                        at[AT_B], s->ldb, s->low, s->high, s->first, s->last, 0, &count,
                                                        w, z, n, support);
    else if (is_single)
        info = ((some_floats)lapack.syevr[s->type])(COLUMNS, job, range, fill, n, at[AT_A], s->lda, (float)s->low,
                                                    (float)s->high, s->first, s->last, 0, &count, w, z, n, support);
    else
        info = ((some_doubles)lapack.syevr[s->type])(COLUMNS, job, range, fill, n, at[AT_A], s->lda, s->low, s->high,
                                                     s->first, s->last, 0, &count, w, z, n, support);
    if (info >= 0) {
        copy_block(real_of(s->type), w, n, at[AT_W], n, count, 1);
        if (s->job == CUSOLVER_EIG_MODE_VECTOR) copy_block(s->type, z, n, at[AT_A], s->lda, n, count);
        tell_count(s, count);
    }
    free(z), free(w), free(support);
    return info;
}

static int64_t all_or_some_one(struct solver *s, void **at, int64_t i) {
    if (s->range != CUSOLVER_EIG_RANGE_ALL) return some_one(s, at, i);
    int64_t info = at[AT_B] ? sygvd_one(s, at, i) : syevd_one(s, at, i);
    tell_count(s, at[AT_B] && info ? 0 : s->n);
    return info;
}

/* ---- of a matrix without structure --------------------------------------------------------------------------------- */

/* Of a real matrix, whose complex eigenvalues are pairs; their vectors are real and imaginary parts. */
static int64_t geev_real(struct solver *s, void **at, char right) {
    enum element type = s->type;
    int64_t n = s->n;
    size_t vector = (size_t)n * element_size(type);
    char *parts = malloc(2 * vector);
    if (!parts) return LAPACK_NO_MEMORY;
    int64_t info = lapack.geev[type](COLUMNS, 'N', right, n, at[AT_A], s->lda, parts, parts + vector, NULL, (int64_t)1,
                                     at[AT_V], larger(s->ldv, 1));
    for (int64_t j = 0; j < n; j++) {
        double real = creal(element_load(type, parts, j)), part = creal(element_load(type, parts, n + j));
        if (is_complex(s->w_type)) element_store(s->w_type, at[AT_W], j, CMPLX(real, part));
        else element_store(type, at[AT_W], j, real), element_store(type, at[AT_W], n + j, part);
    }
    free(parts);
    return info;
}

static int64_t geev_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    char right = s->job_v == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N';
    if (!all_finite(s->type, at[AT_A], s->n, s->n, s->lda)) {
        fill_nan(s->w_type, at[AT_W], s->operand[AT_W].rows, 1, 1);
        if (right == 'V') fill_nan(s->type, at[AT_V], s->n, s->n, s->ldv);
        return 0;
    }
    if (!is_complex(s->type)) return geev_real(s, at, right);
    return lapack.geev[s->type](COLUMNS, 'N', right, s->n, at[AT_A], s->lda, at[AT_W], NULL, (int64_t)1, at[AT_V],
                                larger(s->ldv, 1));
}

/* ---- the families -------------------------------------------------------------------------------------------------- */

/* One of the functions for a symmetric matrix, with or without B. The positions of arguments follow from one another. */
static cusolverStatus_t symmetric(struct solver *s, int64_t (*one)(struct solver *, void **, int64_t), bool general,
                                  bool batched) {
    bool some = one == all_or_some_one;
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->by_number && s->w_type != real_of(s->type))
        return solver_refuse(s, CUSOLVER_STATUS_INVALID_VALUE, 0, "%s: the type of W is not the real type of A's",
                             s->function);
    if (s->asks) {
        if (general) NEED_FILL(QUIET);
        if (!s->by_number) NEED_SIZE(QUIET, "n", s->n);
        if (!s->by_number && (general || s->object)) NEED_SIZE(QUIET, "lda", s->lda);
        if (!s->by_number && batched) NEED_SIZE(QUIET, "batchSize", s->batch);
        return solver_answer(s, s->n);
    }
    int job = general || s->by_number ? 2 : 1, range = job + 1, fill = some ? range + 1 : range, size = fill + 1;
    int lda = size + (s->by_number ? 3 : 2), ldb = general ? lda + 2 : lda, low = ldb + 1;
    SOLVER_NEED(1, !general || (s->kind >= CUSOLVER_EIG_TYPE_1 && s->kind <= CUSOLVER_EIG_TYPE_3),
                "itype is %d; it may be 1, 2 or 3", s->kind);
    SOLVER_NEED(job, (unsigned)s->job <= CUSOLVER_EIG_MODE_VECTOR,
                "jobz is %d, neither CUSOLVER_EIG_MODE_NOVECTOR nor CUSOLVER_EIG_MODE_VECTOR", s->job);
    SOLVER_NEED(range, !some || (s->range >= CUSOLVER_EIG_RANGE_ALL && s->range <= CUSOLVER_EIG_RANGE_V), "range is %d",
                s->range);
    NEED_FILL(fill);
    NEED_SIZE(size, "n", s->n);
    NEED_LD(lda, "lda", s->lda, s->n);
    if (general) NEED_LD(ldb, "ldb", s->ldb, s->n);
    if (some && s->range == CUSOLVER_EIG_RANGE_I && s->n) {
        SOLVER_NEED(low + 2, s->first >= 1, "il is %lld; the first eigenvalue is number 1", (long long)s->first);
        SOLVER_NEED(low + 3, s->last <= s->n && s->first <= s->last, "iu is %lld, il %lld, n %lld", (long long)s->last,
                    (long long)s->first, (long long)s->n);
    }
    if (some && s->range == CUSOLVER_EIG_RANGE_V) {
        SOLVER_NEED(low, !s->no_bounds, "vl and vu may not be null pointers");
        SOLVER_NEED(low + 1, s->low < s->high, "vl is %g, vu %g", s->low, s->high);
    }
    if (batched && s->by_number) SOLVER_NEED(16, s->batch > 0, "batchSize is %lld", (long long)s->batch);
    if (batched && !s->by_number && (s->batch <= 0 || !s->n)) return CUSOLVER_STATUS_SUCCESS;
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    s->operand[AT_A].stride = product(s->lda, s->n);
    if (general) use_matrix(s, AT_B, "the matrix B", s->b, s->n, s->n, s->ldb);
    use_vector(s, AT_W, "the eigenvalues W", s->w, real_of(s->type), s->n);
    s->must_tell = general || (batched && !s->by_number);
    s->one = one;
    return solver_submit(s);
}

static cusolverStatus_t check_jacobi(struct solver *s, syevjInfo_t info) {
    SOLVER_RETURN_IF(solver_check(s->handle, s->function));
    s->object = solver_object(info, OBJECT_JACOBI);
    if (s->asks) return CUSOLVER_STATUS_SUCCESS;
    SOLVER_CHECK(s->object, "%s: 'params' is none of cusolverDnCreateSyevjInfo's", s->function);
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t syevd(struct solver *s) { return symmetric(s, syevd_one, false, false); }
static cusolverStatus_t sygvd(struct solver *s) { return symmetric(s, sygvd_one, true, false); }
static cusolverStatus_t syevdx(struct solver *s) { return symmetric(s, all_or_some_one, false, false); }
static cusolverStatus_t sygvdx(struct solver *s) { return symmetric(s, all_or_some_one, true, false); }
static cusolverStatus_t syev_batched(struct solver *s) { return symmetric(s, syevd_one, false, true); }

static cusolverStatus_t syevj(struct solver *s, syevjInfo_t info) {
    SOLVER_RETURN_IF(check_jacobi(s, info));
    return symmetric(s, syevd_one, false, false);
}

static cusolverStatus_t sygvj(struct solver *s, syevjInfo_t info) {
    SOLVER_RETURN_IF(check_jacobi(s, info));
    return symmetric(s, sygvd_one, true, false);
}

static cusolverStatus_t syevj_batched(struct solver *s, syevjInfo_t info) {
    SOLVER_RETURN_IF(check_jacobi(s, info));
    return symmetric(s, syevd_one, false, true);
}

static cusolverStatus_t geev(struct solver *s) {
    s->quiet_types = true;
    SOLVER_RETURN_IF(solver_begin(s));
    enum element wide = s->type == S ? C : s->type == D ? Z : s->type;
    SOLVER_NEED(QUIET, (s->w_type == s->type || s->w_type == wide) && s->v_type == s->type,
                "W has the type of A or its complex type, and the vectors that of A");
    bool vectors = s->job_v == CUSOLVER_EIG_MODE_VECTOR;
    if (!s->asks) s->wrong = CUSOLVER_STATUS_INTERNAL_ERROR; /* what cuSOLVER says */
    NEED_SIZE(QUIET, "n", s->n);
    NEED_LD(QUIET, "lda", s->lda, s->n);
    NEED_LD(QUIET, "ldvl", s->ldu, 1);
    NEED_LD(QUIET, "ldvr", s->ldv, vectors && !s->asks ? s->n : 1);
    if (s->asks) return solver_answer(s, s->n);
    SOLVER_NEED(QUIET, s->job != CUSOLVER_EIG_MODE_VECTOR, "left eigenvectors (jobvl) are not supported");
    if (!s->n) return CUSOLVER_STATUS_SUCCESS;
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    use_vector(s, AT_W, "the eigenvalues W", s->w, s->w_type, s->w_type == wide ? s->n : 2 * s->n);
    if (vectors) use_matrix(s, AT_V, "the vectors VR", s->v, s->n, s->n, s->ldv);
    s->must_tell = true;
    s->one = geev_one;
    return solver_submit(s);
}

/* ---- the functions ------------------------------------------------------------------------------------------------- */

#define ASKS .asks = true, .size = lwork
#define WORKS .work = work, .room = lwork, .info = info
#define CALL2(family, object, ...) return family(&(struct solver){__VA_ARGS__}, object)
#define MATRIX .job = (int)jobz, .uplo = (int)uplo, .n = n, .a = (void *)A, .lda = lda, .w = (void *)W
#define PAIR .kind = (int)itype, MATRIX, .b = (void *)B_, .ldb = ldb
#define SOME .range = (int)range, .low = (double)vl, .high = (double)vu, .first = il, .last = iu

#define EIGEN(L, T, R, E, or, sy)                                                                                        \
    static cusolverStatus_t cusolverDn##L##sy##evd_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t jobz,        \
                                                              cublasFillMode_t uplo, int n, const T *A, int lda,        \
                                                              const R *W, int *lwork) {                                 \
        CALL(syevd, TYPED(#L #sy "evd_bufferSize", E), MATRIX, ASKS);                                                   \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##evd(cusolverDnHandle_t handle, cusolverEigMode_t jobz,                   \
                                                   cublasFillMode_t uplo, int n, T *A, int lda, R *W, T *work,          \
                                                   int lwork, int *info) {                                              \
        CALL(syevd, TYPED(#L #sy "evd", E), MATRIX, WORKS);                                                             \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##evdx_bufferSize(                                                         \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cusolverEigRange_t range, cublasFillMode_t uplo, int n,      \
        const T *A, int lda, R vl, R vu, int il, int iu, int *meig, const R *W, int *lwork) {                           \
        (void)meig;                                                                                                     \
        CALL(syevdx, TYPED(#L #sy "evdx_bufferSize", E), MATRIX, SOME, ASKS);                                           \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##evdx(                                                                    \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cusolverEigRange_t range, cublasFillMode_t uplo, int n,      \
        T *A, int lda, R vl, R vu, int il, int iu, int *meig, R *W, T *work, int lwork, int *info) {                    \
        CALL(syevdx, TYPED(#L #sy "evdx", E), MATRIX, SOME, .count = meig, WORKS);                                      \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##gvd_bufferSize(                                                          \
        cusolverDnHandle_t handle, cusolverEigType_t itype, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,       \
        const T *A, int lda, const T *B_, int ldb, const R *W, int *lwork) {                                            \
        CALL(sygvd, TYPED(#L #sy "gvd_bufferSize", E), PAIR, ASKS);                                                     \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##gvd(cusolverDnHandle_t handle, cusolverEigType_t itype,                  \
                                                   cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, T *A, int lda, \
                                                   T *B_, int ldb, R *W, T *work, int lwork, int *info) {               \
        CALL(sygvd, TYPED(#L #sy "gvd", E), PAIR, WORKS);                                                               \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##gvdx_bufferSize(                                                         \
        cusolverDnHandle_t handle, cusolverEigType_t itype, cusolverEigMode_t jobz, cusolverEigRange_t range,           \
        cublasFillMode_t uplo, int n, const T *A, int lda, const T *B_, int ldb, R vl, R vu, int il, int iu, int *meig, \
        const R *W, int *lwork) {                                                                                       \
        (void)meig;                                                                                                     \
        CALL(sygvdx, TYPED(#L #sy "gvdx_bufferSize", E), PAIR, SOME, ASKS);                                             \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##gvdx(cusolverDnHandle_t handle, cusolverEigType_t itype,                 \
                                                    cusolverEigMode_t jobz, cusolverEigRange_t range,                   \
                                                    cublasFillMode_t uplo, int n, T *A, int lda, T *B_, int ldb, R vl,  \
                                                    R vu, int il, int iu, int *meig, R *W, T *work, int lwork,          \
                                                    int *info) {                                                        \
        CALL(sygvdx, TYPED(#L #sy "gvdx", E), PAIR, SOME, .count = meig, WORKS);                                        \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##evj_bufferSize(cusolverDnHandle_t handle, cusolverEigMode_t jobz,        \
                                                              cublasFillMode_t uplo, int n, const T *A, int lda,        \
                                                              const R *W, int *lwork, syevjInfo_t params) {             \
        CALL2(syevj, params, TYPED(#L #sy "evj_bufferSize", E), MATRIX, ASKS);                                          \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##evj(cusolverDnHandle_t handle, cusolverEigMode_t jobz,                   \
                                                   cublasFillMode_t uplo, int n, T *A, int lda, R *W, T *work,          \
                                                   int lwork, int *info, syevjInfo_t params) {                          \
        CALL2(syevj, params, TYPED(#L #sy "evj", E), MATRIX, WORKS);                                                    \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##evjBatched_bufferSize(                                                   \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, const T *A, int lda,           \
        const R *W, int *lwork, syevjInfo_t params, int batch) {                                                        \
        CALL2(syevj_batched, params, TYPED(#L #sy "evjBatched_bufferSize", E), MATRIX, ASKS, .batch = batch);           \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##evjBatched(cusolverDnHandle_t handle, cusolverEigMode_t jobz,            \
                                                          cublasFillMode_t uplo, int n, T *A, int lda, R *W, T *work,   \
                                                          int lwork, int *info, syevjInfo_t params, int batch) {        \
        CALL2(syevj_batched, params, TYPED(#L #sy "evjBatched", E), MATRIX, WORKS, .batch = batch);                     \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##gvj_bufferSize(                                                          \
        cusolverDnHandle_t handle, cusolverEigType_t itype, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n,       \
        const T *A, int lda, const T *B_, int ldb, const R *W, int *lwork, syevjInfo_t params) {                        \
        CALL2(sygvj, params, TYPED(#L #sy "gvj_bufferSize", E), PAIR, ASKS);                                            \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##gvj(cusolverDnHandle_t handle, cusolverEigType_t itype,                  \
                                                   cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, T *A, int lda, \
                                                   T *B_, int ldb, R *W, T *work, int lwork, int *info,                 \
                                                   syevjInfo_t params) {                                                \
        CALL2(sygvj, params, TYPED(#L #sy "gvj", E), PAIR, WORKS);                                                      \
    }
SOLVER_TYPES(EIGEN)

#define NUMBERS(name) BY_NUMBER(name, type, compute), .params = params, .w_type = element_of(w_type)
#define SIZES .asks = true, .bytes = device, .host_bytes = host

static cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                    cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                                    cudaDataType type, const void *A, int64_t lda, cudaDataType w_type,
                                                    const void *W, cudaDataType compute, size_t *device, size_t *host) {
    CALL(syevd, NUMBERS("Xsyevd_bufferSize"), MATRIX, SIZES);
}

static cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
                                         cublasFillMode_t uplo, int64_t n, cudaDataType type, void *A, int64_t lda,
                                         cudaDataType w_type, void *W, cudaDataType compute, void *work, size_t device,
                                         void *host_work, size_t host, int *info) {
    CALL(syevd, NUMBERS("Xsyevd"), MATRIX, BUFFERS, .info = info);
}

static cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                          cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                                          cudaDataType type, const void *A, int64_t lda,
                                                          cudaDataType w_type, const void *W, cudaDataType compute,
                                                          size_t *device, size_t *host, int64_t batch) {
    CALL(syev_batched, NUMBERS("XsyevBatched_bufferSize"), MATRIX, SIZES, .batch = batch);
}

static cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                               cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                               cudaDataType type, void *A, int64_t lda, cudaDataType w_type, void *W,
                                               cudaDataType compute, void *work, size_t device, void *host_work,
                                               size_t host, int *info, int64_t batch) {
    CALL(syev_batched, NUMBERS("XsyevBatched"), MATRIX, BUFFERS, .info = info, .batch = batch);
}

/* A bound in memory of the host. */
static double bound(const void *at, cudaDataType type) {
    if (!at) return 0;
    enum element element = element_of(type);
    return element > Z ? 0 : creal(element_load(real_of(element), at, 0));
}
#define POINTED                                                                                             \
    .range = (int)range, .low = bound(vl, type), .high = bound(vu, type), .no_bounds = !vl || !vu, .first = il, \
    .last = iu

static cusolverStatus_t cusolverDnXsyevdx_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                     cusolverEigMode_t jobz, cusolverEigRange_t range,
                                                     cublasFillMode_t uplo, int64_t n, cudaDataType type, const void *A,
                                                     int64_t lda, void *vl, void *vu, int64_t il, int64_t iu,
                                                     int64_t *meig, cudaDataType w_type, const void *W,
                                                     cudaDataType compute, size_t *device, size_t *host) {
    (void)meig;
    CALL(syevdx, NUMBERS("Xsyevdx_bufferSize"), MATRIX, POINTED, SIZES);
}

static cusolverStatus_t cusolverDnXsyevdx(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
                                          cusolverEigRange_t range, cublasFillMode_t uplo, int64_t n, cudaDataType type,
                                          void *A, int64_t lda, void *vl, void *vu, int64_t il, int64_t iu,
                                          int64_t *meig, cudaDataType w_type, void *W, cudaDataType compute, void *work,
                                          size_t device, void *host_work, size_t host, int *info) {
    CALL(syevdx, NUMBERS("Xsyevdx"), MATRIX, POINTED, .wide_count = meig, BUFFERS, .info = info);
}

#define VECTORS                                                                                                        \
    .job = (int)jobvl, .job_v = (int)jobvr, .n = n, .a = (void *)A, .lda = lda, .w = (void *)W, .u = (void *)VL,       \
    .ldu = ldvl, .v = (void *)VR, .ldv = ldvr,                                                                         \
    .v_type = vl_type == vr_type ? element_of(vr_type) : ELEMENTS

static cusolverStatus_t cusolverDnXgeev_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                   cusolverEigMode_t jobvl, cusolverEigMode_t jobvr, int64_t n,
                                                   cudaDataType type, const void *A, int64_t lda, cudaDataType w_type,
                                                   const void *W, cudaDataType vl_type, const void *VL, int64_t ldvl,
                                                   cudaDataType vr_type, const void *VR, int64_t ldvr,
                                                   cudaDataType compute, size_t *device, size_t *host) {
    CALL(geev, NUMBERS("Xgeev_bufferSize"), VECTORS, SIZES);
}

static cusolverStatus_t cusolverDnXgeev(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobvl,
                                        cusolverEigMode_t jobvr, int64_t n, cudaDataType type, void *A, int64_t lda,
                                        cudaDataType w_type, void *W, cudaDataType vl_type, void *VL, int64_t ldvl,
                                        cudaDataType vr_type, void *VR, int64_t ldvr, cudaDataType compute, void *work,
                                        size_t device, void *host_work, size_t host, int *info) {
    CALL(geev, NUMBERS("Xgeev"), VECTORS, BUFFERS, .info = info);
}

#define ENTRIES(L, T, R, E, or, sy)                                                                           \
    BOTH(L##sy##evd), BOTH(L##sy##evdx), BOTH(L##sy##gvd), BOTH(L##sy##gvdx), BOTH(L##sy##evj),                \
        BOTH(L##sy##evjBatched), BOTH(L##sy##gvj),

const struct entry solver_eigen_entries[] = {
    SOLVER_TYPES(ENTRIES) BOTH(Xsyevd), BOTH(XsyevBatched), BOTH(Xsyevdx), BOTH(Xgeev), {NULL, NULL, NULL},
};
