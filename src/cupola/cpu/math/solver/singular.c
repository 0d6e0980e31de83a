/* Singular values (cuSolverDN, gesvd, gesvdj, gesvda, gesvdp and their kin): LAPACK's divide and conquer, gesdd, which takes a
 * fraction of the time of its gesvd. That is for what only gesvd gives: one of U and V, or either in the place of A. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver.h"

/* ---- the work ------------------------------------------------------------------------------------------------------ */

static int64_t gesvd_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    int64_t count = smaller(s->m, s->n);
    enum element real = real_of(s->type);
    if (!all_finite(s->type, at[AT_A], s->m, s->n, s->lda)) {
        fill_nan(real, at[AT_W], count, 1, count);
        if (at[AT_U]) fill_nan(s->type, at[AT_U], s->operand[AT_U].rows, s->operand[AT_U].columns, s->ldu);
        if (at[AT_V]) fill_nan(s->type, at[AT_V], s->operand[AT_V].rows, s->operand[AT_V].columns, s->ldv);
        return 0;
    }
    bool with_u = s->job == 'A' || s->job == 'S', with_v = s->job_v == 'A' || s->job_v == 'S';
    if ((with_u && with_v && s->m >= s->n) || (s->job == 'N' && s->job_v == 'N')) /* V is of either size then */
        return lapack.gesdd[s->type](COLUMNS, s->job, s->m, s->n, at[AT_A], s->lda, at[AT_W], at[AT_U],
                                     larger(s->ldu, 1), at[AT_V], larger(s->ldv, 1));
    void *rest = malloc((size_t)larger(count, 1) * element_size(real)); /* what has not converged */
    if (!rest) return LAPACK_NO_MEMORY;
    int64_t info = lapack.gesvd[s->type](COLUMNS, s->job, s->job_v, s->m, s->n, at[AT_A], s->lda, at[AT_W], at[AT_U],
                                         larger(s->ldu, 1), at[AT_V], larger(s->ldv, 1), rest);
    free(rest);
    return info;
}

/* V from the conjugate transpose of its columns. */
static void turn(enum element type, const void *vt, int64_t ldvt, void *v, int64_t ldv, int64_t rows, int64_t columns) {
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            element_store(type, v, j * ldv + i, conj(element_load(type, vt, i * ldvt + j)));
}

/* U, singular values and V of a matrix, `k` columns of U and V at most; A is lost. */
static int64_t decompose(const struct solver *s, void *a, void *values, void *u, void *v, int64_t columns_u,
                         int64_t columns_v) {
    enum element type = s->type;
    int64_t m = s->m, n = s->n, count = smaller(m, n);
    bool whole = columns_u > count || columns_v > count;
    int64_t all_u = whole ? m : count, all_v = whole ? n : count;
    if (s->job == CUSOLVER_EIG_MODE_NOVECTOR)
        return lapack.gesdd[type](COLUMNS, 'N', m, n, a, s->lda, values, NULL, (int64_t)1, NULL, (int64_t)1);
    size_t size = element_size(type);
    void *own_u = malloc((size_t)(m * all_u) * size), *vt = malloc((size_t)(all_v * n) * size);
    int64_t info = LAPACK_NO_MEMORY;
    if (own_u && vt) {
        info = lapack.gesdd[type](COLUMNS, whole ? 'A' : 'S', m, n, a, s->lda, values, own_u, m, vt, all_v);
        if (info >= 0) {
            copy_block(type, own_u, m, u, s->ldu, m, columns_u);
            turn(type, vt, all_v, v, s->ldv, n, columns_v);
        }
    }
    free(own_u), free(vt);
    return info;
}

static int64_t gesvdj_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    int64_t m = s->m, n = s->n, count = smaller(m, n);
    int64_t columns_u = s->economic ? count : m, columns_v = s->economic ? count : n;
    if (s->object) s->object->residual = 0, s->object->done = 1, s->object->batched = s->batch > 0;
    if (s->values) *s->values = 0; /* of a method that perturbs the matrix, which this is not */
    if (!count) return 0;
    if (!all_finite(s->type, at[AT_A], m, n, s->lda)) {
        fill_nan(real_of(s->type), at[AT_W], count, 1, count);
        if (at[AT_U]) fill_nan(s->type, at[AT_U], m, columns_u, s->ldu);
        if (at[AT_V]) fill_nan(s->type, at[AT_V], n, columns_v, s->ldv);
        return s->object ? n + 1 : 0; /* Jacobi's method has not converged; the others do not notice */
    }
    return decompose(s, at[AT_A], at[AT_W], at[AT_U], at[AT_V], columns_u, columns_v);
}

/* The norm of A - U S Vᴴ, whose rank may be less than that of A. */
static double residual(const struct solver *s, const void *a, const void *values, const void *u, const void *v) {
    double sum = 0;
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t i = 0; i < s->m; i++) {
            number rest = element_load(s->type, a, j * s->m + i);
            for (int64_t k = 0; k < s->k; k++)
                rest -= element_load(s->type, u, k * s->ldu + i) * creal(element_load(real_of(s->type), values, k)) *
                        conj(element_load(s->type, v, k * s->ldv + j));
            sum += creal(rest) * creal(rest) + cimag(rest) * cimag(rest);
        }
    return sqrt(sum);
}

/* The first `k` singular values and vectors. A is left as it is. */
static int64_t gesvda_one(struct solver *s, void **at, int64_t i) {
    int64_t m = s->m, n = s->n, count = smaller(m, n), info = LAPACK_NO_MEMORY;
    enum element real = real_of(s->type);
    struct solver own = *s;
    own.lda = m;
    if (!count) return 0;
    if (!all_finite(s->type, at[AT_A], m, n, s->lda)) {
        fill_nan(real, at[AT_W], s->k, 1, s->k);
        if (at[AT_U]) fill_nan(s->type, at[AT_U], m, s->k, s->ldu);
        if (at[AT_V]) fill_nan(s->type, at[AT_V], n, s->k, s->ldv);
        return 0;
    }
    void *a = malloc((size_t)(m * n) * element_size(s->type)), *values = malloc((size_t)count * element_size(real));
    if (a && values) {
        copy_block(s->type, at[AT_A], s->lda, a, m, m, n);
        info = decompose(&own, a, values, at[AT_U], at[AT_V], s->k, s->k);
        if (info >= 0) copy_block(real, values, count, at[AT_W], count, s->k, 1);
        if (info >= 0 && s->values && s->job == CUSOLVER_EIG_MODE_VECTOR) {
            copy_block(s->type, at[AT_A], s->lda, a, m, m, n);
            s->values[i] = residual(s, a, at[AT_W], at[AT_U], at[AT_V]);
        }
    }
    free(a), free(values);
    return info;
}

/* ---- the families -------------------------------------------------------------------------------------------------- */

static bool has_types(const struct solver *s) {
    return !s->by_number || (s->w_type == real_of(s->type) && s->v_type == s->type);
}

static cusolverStatus_t gesvd(struct solver *s) {
    int64_t count = smaller(s->m, s->n);
    s->quiet_types = true;
    SOLVER_RETURN_IF(solver_begin(s));
    SOLVER_NEED(QUIET, has_types(s), "the types of S, U and VT are not those of A");
    if (s->asks) {
        SOLVER_NEED(QUIET, !s->by_number || s->m >= s->n, "m is %lld and n %lld; m may not be the smaller one",
                    (long long)s->m, (long long)s->n);
        return solver_answer(s, larger(s->m, s->n));
    }
    SOLVER_NEED(1, s->job && strchr("ASON", s->job), "jobu is %d, none of 'A', 'S', 'O', 'N'", s->job);
    SOLVER_NEED(2, s->job_v && strchr("ASON", s->job_v), "jobvt is %d, none of 'A', 'S', 'O', 'N'", s->job_v);
    SOLVER_NEED(2, s->job != 'O' || s->job_v != 'O', "only one of jobu and jobvt may be 'O'");
    NEED_SIZE(3, "m", s->m);
    NEED_SIZE(4, "n", s->n);
    NEED_LD(6, "lda", s->lda, s->m);
    NEED_LD(9, "ldu", s->ldu, s->job == 'A' || s->job == 'S' ? s->m : 1);
    NEED_LD(11, "ldvt", s->ldv, s->job_v == 'A' ? s->n : s->job_v == 'S' ? count : 1);
    SOLVER_NEED(0, s->m >= s->n || !s->m, "m is %lld and n %lld; m may not be the smaller one: transpose the matrix",
                (long long)s->m, (long long)s->n);
    use_matrix(s, AT_A, "the matrix A", s->a, s->m, s->n, s->lda);
    use_vector(s, AT_W, "the singular values S", s->w, real_of(s->type), count);
    if (s->job == 'A' || s->job == 'S')
        use_matrix(s, AT_U, "the matrix U", s->u, s->m, s->job == 'A' ? s->m : count, s->ldu);
    if (s->job_v == 'A' || s->job_v == 'S')
        use_matrix(s, AT_V, "the matrix VT", s->v, s->job_v == 'A' ? s->n : count, s->n, s->ldv);
    s->one = gesvd_one;
    return solver_submit(s);
}

enum { BATCHED_MOST = 32 }; /* rows and columns */

/* gesvdj, its batches, and gesvdp. */
static cusolverStatus_t polar(struct solver *s, bool batched) {
    int64_t count = smaller(s->m, s->n);
    s->quiet_types = true;
    SOLVER_RETURN_IF(solver_begin(s));
    SOLVER_NEED(QUIET, has_types(s), "the types of S, U and V are not those of A");
    if (s->asks) {
        if (!batched && !s->by_number) {
            NEED_SIZE(QUIET, "m", s->m);
            NEED_SIZE(QUIET, "n", s->n);
            NEED_SIZE(QUIET, "lda", s->lda);
        }
        return solver_answer(s, larger(s->m, s->n));
    }
    int m = batched ? 2 : 3;
    SOLVER_NEED(1, (unsigned)s->job <= CUSOLVER_EIG_MODE_VECTOR, "jobz is %d", s->job);
    SOLVER_NEED(m, s->m >= 0 && (!batched || s->m <= BATCHED_MOST), "m is %lld", (long long)s->m);
    SOLVER_NEED(m + 1, s->n >= 0 && (!batched || s->n <= BATCHED_MOST), "n is %lld", (long long)s->n);
    NEED_LD(m + 3, "lda", s->lda, s->m);
    NEED_LD(m + 6, "ldu", s->ldu, s->m);
    NEED_LD(m + 8, "ldv", s->ldv, s->n);
    if (batched) {
        SOLVER_NEED(12, s->room >= 1, "the workspace has %lld elements", (long long)s->room);
        NEED_SIZE(15, "batchSize", s->batch);
        if (!s->batch) return CUSOLVER_STATUS_SUCCESS;
    }
    if (!count && !s->by_number && !batched) return CUSOLVER_STATUS_SUCCESS;
    use_matrix(s, AT_A, "the matrix A", s->a, s->m, s->n, s->lda);
    s->operand[AT_A].stride = product(s->lda, s->n);
    use_vector(s, AT_W, "the singular values S", s->w, real_of(s->type), count);
    if (s->job == CUSOLVER_EIG_MODE_VECTOR) {
        use_matrix(s, AT_U, "the matrix U", s->u, s->m, s->economic ? count : s->m, s->ldu);
        use_matrix(s, AT_V, "the matrix V", s->v, s->n, s->economic ? count : s->n, s->ldv);
        s->operand[AT_U].stride = product(s->ldu, s->m), s->operand[AT_V].stride = product(s->ldv, s->n);
    }
    s->must_tell = batched;
    s->one = gesvdj_one;
    return solver_submit(s);
}

static cusolverStatus_t gesvdp(struct solver *s) { return polar(s, false); }

static cusolverStatus_t gesvdj(struct solver *s, gesvdjInfo_t info, bool batched) {
    SOLVER_RETURN_IF(solver_check(s->handle, s->function));
    s->object = solver_object(info, OBJECT_SVD_JACOBI);
    SOLVER_CHECK(s->object || s->asks, "%s: 'params' is none of cusolverDnCreateGesvdjInfo's", s->function);
    return polar(s, batched);
}

static cusolverStatus_t gesvda(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) {
        NEED_SIZE(QUIET, "n", s->n);
        return solver_answer(s, larger(s->m, s->n));
    }
    bool vectors = s->job == CUSOLVER_EIG_MODE_VECTOR;
    SOLVER_NEED(1, (unsigned)s->job <= CUSOLVER_EIG_MODE_VECTOR, "jobz is %d", s->job);
    SOLVER_NEED(2, s->k >= 0 && s->k <= s->n, "rank is %lld, but n %lld", (long long)s->k, (long long)s->n);
    SOLVER_NEED(3, s->m >= s->n, "m is %lld and n %lld; m may not be the smaller one", (long long)s->m,
                (long long)s->n);
    NEED_LD(6, "lda", s->lda, s->m);
    SOLVER_NEED(7, s->stride_a >= product(s->lda, s->n), "strideA is %lld", (long long)s->stride_a);
    SOLVER_NEED(9, s->stride_w >= s->k, "strideS is %lld", (long long)s->stride_w);
    NEED_LD(11, "ldu", s->ldu, s->m);
    SOLVER_NEED(12, s->stride_u >= product(s->ldu, s->k), "strideU is %lld", (long long)s->stride_u);
    NEED_LD(14, "ldv", s->ldv, s->n);
    SOLVER_NEED(15, s->stride_v >= product(s->ldv, s->k), "strideV is %lld", (long long)s->stride_v);
    SOLVER_NEED(17, s->room >= 1, "the workspace has %lld elements", (long long)s->room);
    NEED_SIZE(20, "batchSize", s->batch);
    if (!s->batch) return CUSOLVER_STATUS_SUCCESS;
    use_matrix(s, AT_A, "the matrix A", s->a, s->m, s->n, s->lda);
    use_vector(s, AT_W, "the singular values S", s->w, real_of(s->type), s->k);
    s->operand[AT_A].stride = s->stride_a, s->operand[AT_W].stride = s->stride_w;
    if (vectors) {
        use_matrix(s, AT_U, "the matrix U", s->u, s->m, s->k, s->ldu);
        use_matrix(s, AT_V, "the matrix V", s->v, s->n, s->k, s->ldv);
        s->operand[AT_U].stride = s->stride_u, s->operand[AT_V].stride = s->stride_v;
    }
    s->must_tell = true;
    s->one = gesvda_one;
    return solver_submit(s);
}

/* ---- the functions ------------------------------------------------------------------------------------------------- */

#define ASKS .asks = true, .size = lwork
#define WORKS .work = work, .room = lwork, .info = info
#define CALL3(family, object, batched, ...) return family(&(struct solver){__VA_ARGS__}, object, batched)
#define FACTORS                                                                                                       \
    .m = m, .n = n, .a = (void *)A, .lda = lda, .w = (void *)S_, .u = (void *)U, .ldu = ldu, .v = (void *)V, .ldv = ldv
#define STRIDES                                                                                                    \
    .k = rank, .stride_a = strideA, .stride_w = strideS, .stride_u = strideU, .stride_v = strideV, .batch = batch

#define SINGULAR(L, T, R, E, or, sy)                                                                                    \
    static cusolverStatus_t cusolverDn##L##gesvd_bufferSize(cusolverDnHandle_t handle, int m, int n, int *lwork) {      \
        CALL(gesvd, TYPED(#L "gesvd_bufferSize", E), .m = m, .n = n, ASKS);                                             \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##gesvd(cusolverDnHandle_t handle, signed char jobu, signed char jobvt, int m, \
                                                 int n, T *A, int lda, R *S_, T *U, int ldu, T *V, int ldv, T *work,    \
                                                 int lwork, R *rwork, int *info) {                                      \
        (void)rwork;                                                                                                    \
        CALL(gesvd, TYPED(#L "gesvd", E), .job = jobu, .job_v = jobvt, FACTORS, WORKS);                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##gesvdj_bufferSize(                                                           \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int econ, int m, int n, const T *A, int lda, const R *S_,    \
        const T *U, int ldu, const T *V, int ldv, int *lwork, gesvdjInfo_t params) {                                    \
        CALL3(gesvdj, params, false, TYPED(#L "gesvdj_bufferSize", E), .job = (int)jobz, .economic = econ, FACTORS,     \
              ASKS);                                                                                                    \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##gesvdj(cusolverDnHandle_t handle, cusolverEigMode_t jobz, int econ, int m,   \
                                                  int n, T *A, int lda, R *S_, T *U, int ldu, T *V, int ldv, T *work,   \
                                                  int lwork, int *info, gesvdjInfo_t params) {                          \
        CALL3(gesvdj, params, false, TYPED(#L "gesvdj", E), .job = (int)jobz, .economic = econ, FACTORS, WORKS);        \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##gesvdjBatched_bufferSize(                                                    \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, const T *A, int lda, const R *S_, const T *U,  \
        int ldu, const T *V, int ldv, int *lwork, gesvdjInfo_t params, int batch) {                                     \
        CALL3(gesvdj, params, true, TYPED(#L "gesvdjBatched_bufferSize", E), .job = (int)jobz, FACTORS, ASKS,           \
              .batch = batch);                                                                                          \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##gesvdjBatched(                                                               \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, T *A, int lda, R *S_, T *U, int ldu, T *V,     \
        int ldv, T *work, int lwork, int *info, gesvdjInfo_t params, int batch) {                                       \
        CALL3(gesvdj, params, true, TYPED(#L "gesvdjBatched", E), .job = (int)jobz, FACTORS, WORKS, .batch = batch);    \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##gesvdaStridedBatched_bufferSize(                                             \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int rank, int m, int n, const T *A, int lda,                 \
        long long strideA, const R *S_, long long strideS, const T *U, int ldu, long long strideU, const T *V, int ldv, \
        long long strideV, int *lwork, int batch) {                                                                     \
        CALL(gesvda, TYPED(#L "gesvdaStridedBatched_bufferSize", E), .job = (int)jobz, FACTORS, STRIDES, ASKS);         \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##gesvdaStridedBatched(                                                        \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, int rank, int m, int n, const T *A, int lda,                 \
        long long strideA, R *S_, long long strideS, T *U, int ldu, long long strideU, T *V, int ldv,                   \
        long long strideV, T *work, int lwork, int *info, double *norms, int batch) {                                   \
        CALL(gesvda, TYPED(#L "gesvdaStridedBatched", E), .job = (int)jobz, FACTORS, STRIDES, WORKS, .values = norms);  \
    }
SOLVER_TYPES(SINGULAR)

#define NUMBERS(name)                                                                                                 \
    BY_NUMBER(name, type, compute), .params = params, .w_type = element_of(s_type),                                    \
        .v_type = u_type == v_type ? element_of(u_type) : ELEMENTS
#define SIZES .asks = true, .bytes = device, .host_bytes = host

static cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                    signed char jobu, signed char jobvt, int64_t m, int64_t n,
                                                    cudaDataType type, const void *A, int64_t lda, cudaDataType s_type,
                                                    const void *S_, cudaDataType u_type, const void *U, int64_t ldu,
                                                    cudaDataType v_type, const void *V, int64_t ldv,
                                                    cudaDataType compute, size_t *device, size_t *host) {
    CALL(gesvd, NUMBERS("Xgesvd_bufferSize"), .job = jobu, .job_v = jobvt, FACTORS, SIZES);
}

static cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t handle, cusolverDnParams_t params, signed char jobu,
                                         signed char jobvt, int64_t m, int64_t n, cudaDataType type, void *A,
                                         int64_t lda, cudaDataType s_type, void *S_, cudaDataType u_type, void *U,
                                         int64_t ldu, cudaDataType v_type, void *V, int64_t ldv, cudaDataType compute,
                                         void *work, size_t device, void *host_work, size_t host, int *info) {
    CALL(gesvd, NUMBERS("Xgesvd"), .job = jobu, .job_v = jobvt, FACTORS, BUFFERS, .info = info);
}

static cusolverStatus_t cusolverDnXgesvdp_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                     cusolverEigMode_t jobz, int econ, int64_t m, int64_t n,
                                                     cudaDataType type, const void *A, int64_t lda, cudaDataType s_type,
                                                     const void *S_, cudaDataType u_type, const void *U, int64_t ldu,
                                                     cudaDataType v_type, const void *V, int64_t ldv,
                                                     cudaDataType compute, size_t *device, size_t *host) {
    CALL(gesvdp, NUMBERS("Xgesvdp_bufferSize"), .job = (int)jobz, .economic = econ, FACTORS, SIZES);
}

static cusolverStatus_t cusolverDnXgesvdp(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
                                          int econ, int64_t m, int64_t n, cudaDataType type, void *A, int64_t lda,
                                          cudaDataType s_type, void *S_, cudaDataType u_type, void *U, int64_t ldu,
                                          cudaDataType v_type, void *V, int64_t ldv, cudaDataType compute, void *work,
                                          size_t device, void *host_work, size_t host, int *info, double *error) {
    CALL(gesvdp, NUMBERS("Xgesvdp"), .job = (int)jobz, .economic = econ, FACTORS, BUFFERS, .info = info,
         .values = error);
}

#define ENTRIES(L, T, R, E, or, sy) BOTH(L##gesvd), BOTH(L##gesvdj), BOTH(L##gesvdjBatched), BOTH(L##gesvdaStridedBatched),

const struct entry solver_singular_entries[] = {
    SOLVER_TYPES(ENTRIES) BOTH(Xgesvd),
    BOTH(Xgesvdp),
    {NULL, NULL, NULL},
};
