/* Orthogonal factors: QR, and the reductions to two diagonals (cuSolverDN, geqrf, ormqr, gebrd, sytrd and their kin). */
#include "solver.h"

/* ---- the work ------------------------------------------------------------------------------------------------------ */

static int64_t geqrf_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.geqrf[s->type](COLUMNS, s->m, s->n, at[AT_A], s->lda, at[AT_TAU]);
}

static int64_t orgqr_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.orgqr[s->type](COLUMNS, s->m, s->n, s->k, at[AT_A], s->lda, at[AT_TAU]);
}

static int64_t ormqr_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.ormqr[s->type](COLUMNS, side_letter(s), op_letter(s), s->m, s->n, s->k, at[AT_A], s->lda, at[AT_TAU],
                                 at[AT_C], s->ldc);
}

static int64_t gebrd_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.gebrd[s->type](COLUMNS, s->m, s->n, at[AT_A], s->lda, at[AT_W], at[AT_E], at[AT_TAU], at[AT_TAUP]);
}

static int64_t orgbr_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.orgbr[s->type](COLUMNS, s->side == CUBLAS_SIDE_LEFT ? 'Q' : 'P', s->m, s->n, s->k, at[AT_A], s->lda,
                                 at[AT_TAU]);
}

static int64_t sytrd_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.sytrd[s->type](COLUMNS, fill_letter(s), s->n, at[AT_A], s->lda, at[AT_W], at[AT_E], at[AT_TAU]);
}

static int64_t orgtr_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.orgtr[s->type](COLUMNS, fill_letter(s), s->n, at[AT_A], s->lda, at[AT_TAU]);
}

static int64_t ormtr_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    return lapack.ormtr[s->type](COLUMNS, side_letter(s), fill_letter(s), op_letter(s), s->m, s->n, at[AT_A], s->lda,
                                 at[AT_TAU], at[AT_C], s->ldc);
}

/* ---- the families -------------------------------------------------------------------------------------------------- */

static cusolverStatus_t geqrf(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_SIZE(1, "m", s->m);
    NEED_SIZE(2, "n", s->n);
    NEED_LD(4, "lda", s->lda, s->m);
    use_matrix(s, AT_A, "the matrix A", s->a, s->m, s->n, s->lda);
    use_vector(s, AT_TAU, "the vector tau", s->tau, s->type, smaller(s->m, s->n));
    s->one = geqrf_one;
    return solver_submit(s);
}

static cusolverStatus_t orgqr(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_SIZE(1, "m", s->m);
    SOLVER_NEED(2, s->n >= 0 && s->n <= s->m, "n is %lld, m %lld", (long long)s->n, (long long)s->m);
    SOLVER_NEED(3, s->k >= 0 && s->k <= s->n, "k is %lld, n %lld", (long long)s->k, (long long)s->n);
    NEED_LD(5, "lda", s->lda, s->m);
    use_matrix(s, AT_A, "the matrix A", s->a, s->m, s->n, s->lda);
    use_vector(s, AT_TAU, "the vector tau", s->tau, s->type, s->k);
    s->one = orgqr_one;
    return solver_submit(s);
}

/* Real factors are transposed, complex ones conjugated, too. */
static bool is_operation(const struct solver *s) {
    return s->op == CUBLAS_OP_N || s->op == (is_complex(s->type) ? CUBLAS_OP_C : CUBLAS_OP_T);
}

static cusolverStatus_t ormqr(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, larger(s->m, s->n));
    SOLVER_NEED(1, (unsigned)s->side <= CUBLAS_SIDE_RIGHT, "side is %d", s->side);
    SOLVER_NEED(2, is_operation(s), "trans is %d; it may be N, or T for real and C for complex numbers", s->op);
    NEED_SIZE(3, "m", s->m);
    NEED_SIZE(4, "n", s->n);
    int64_t rows = s->side == CUBLAS_SIDE_LEFT ? s->m : s->n;
    SOLVER_NEED(5, s->k >= 0 && s->k <= rows, "k is %lld, but Q has %lld rows", (long long)s->k, (long long)rows);
    NEED_LD(7, "lda", s->lda, rows);
    NEED_LD(10, "ldc", s->ldc, s->m);
    use_matrix(s, AT_A, "the matrix A", s->a, rows, s->k, s->lda);
    use_vector(s, AT_TAU, "the vector tau", s->tau, s->type, s->k);
    use_matrix(s, AT_C, "the matrix C", s->c, s->m, s->n, s->ldc);
    s->one = ormqr_one;
    return solver_submit(s);
}

static cusolverStatus_t gebrd(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_SIZE(1, "m", s->m);
    NEED_SIZE(2, "n", s->n);
    NEED_LD(4, "lda", s->lda, s->m);
    if (s->m < s->n)
        return solver_refuse(s, CUSOLVER_STATUS_NOT_SUPPORTED, 0,
                             "%s: m is %lld and n %lld; m may not be the smaller one", s->function, (long long)s->m,
                             (long long)s->n);
    enum element real = real_of(s->type);
    use_matrix(s, AT_A, "the matrix A", s->a, s->m, s->n, s->lda);
    use_vector(s, AT_W, "the diagonal D", s->w, real, s->n);
    use_vector(s, AT_E, "the diagonal E", s->e, real, s->n - 1);
    use_vector(s, AT_TAU, "the vector tauq", s->tau, s->type, s->n);
    use_vector(s, AT_TAUP, "the vector taup", s->taup, s->type, s->n);
    s->one = gebrd_one;
    return solver_submit(s);
}

static cusolverStatus_t orgbr(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, smaller(s->m, s->n));
    SOLVER_NEED(1, (unsigned)s->side <= CUBLAS_SIDE_RIGHT, "side is %d", s->side);
    bool left = s->side == CUBLAS_SIDE_LEFT;
    NEED_SIZE(2, "m", s->m);
    int64_t large = left ? s->m : s->n, small = left ? s->n : s->m; /* as LAPACK's orgbr wants them */
    SOLVER_NEED(3, s->n >= 0 && small <= large && (s->k < 0 || small >= smaller(large, s->k)),
                "m is %lld, n %lld, k %lld", (long long)s->m, (long long)s->n, (long long)s->k);
    NEED_SIZE(4, "k", s->k);
    NEED_LD(6, "lda", s->lda, s->m);
    use_matrix(s, AT_A, "the matrix A", s->a, s->m, s->n, s->lda);
    use_vector(s, AT_TAU, "the vector tau", s->tau, s->type, smaller(large, s->k));
    s->one = orgbr_one;
    return solver_submit(s);
}

static cusolverStatus_t sytrd(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, s->n);
    NEED_FILL(1);
    NEED_SIZE(2, "n", s->n);
    NEED_LD(4, "lda", s->lda, s->n);
    enum element real = real_of(s->type);
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    use_vector(s, AT_W, "the diagonal d", s->w, real, s->n);
    use_vector(s, AT_E, "the diagonal e", s->e, real, s->n - 1);
    use_vector(s, AT_TAU, "the vector tau", s->tau, s->type, s->n - 1);
    s->must_tell = true;
    s->one = sytrd_one;
    return solver_submit(s);
}

static cusolverStatus_t orgtr(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) {
        SOLVER_NEED(QUIET, s->n >= 0 && s->lda >= 0, "n is %lld, lda %lld", (long long)s->n, (long long)s->lda);
        return solver_answer(s, s->n);
    }
    NEED_FILL(1);
    NEED_SIZE(2, "n", s->n);
    NEED_LD(4, "lda", s->lda, s->n);
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    use_vector(s, AT_TAU, "the vector tau", s->tau, s->type, s->n - 1);
    s->one = orgtr_one;
    return solver_submit(s);
}

static cusolverStatus_t ormtr(struct solver *s) {
    SOLVER_RETURN_IF(solver_begin(s));
    if (s->asks) return solver_answer(s, larger(s->m, s->n));
    SOLVER_NEED(1, (unsigned)s->side <= CUBLAS_SIDE_RIGHT, "side is %d", s->side);
    NEED_FILL(2);
    SOLVER_NEED(3, is_operation(s), "trans is %d; it may be N, or T for real and C for complex numbers", s->op);
    NEED_SIZE(4, "m", s->m);
    NEED_SIZE(5, "n", s->n);
    int64_t rows = s->side == CUBLAS_SIDE_LEFT ? s->m : s->n;
    NEED_LD(7, "lda", s->lda, rows);
    NEED_LD(10, "ldc", s->ldc, s->m);
    use_matrix(s, AT_A, "the matrix A", s->a, rows, rows, s->lda);
    use_vector(s, AT_TAU, "the vector tau", s->tau, s->type, rows - 1);
    use_matrix(s, AT_C, "the matrix C", s->c, s->m, s->n, s->ldc);
    s->one = ormtr_one;
    return solver_submit(s);
}

/* ---- the functions ------------------------------------------------------------------------------------------------- */

#define ASKS .asks = true, .size = lwork
#define WORKS .work = work, .room = lwork, .info = info

#define ORTHOGONAL(L, T, R, E, or, sy)                                                                                  \
    static cusolverStatus_t cusolverDn##L##geqrf_bufferSize(cusolverDnHandle_t handle, int m, int n, T *A, int lda,     \
                                                            int *lwork) {                                               \
        CALL(geqrf, TYPED(#L "geqrf_bufferSize", E), .m = m, .n = n, .a = A, .lda = lda, ASKS);                         \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##geqrf(cusolverDnHandle_t handle, int m, int n, T *A, int lda, T *tau,        \
                                                 T *work, int lwork, int *info) {                                       \
        CALL(geqrf, TYPED(#L "geqrf", E), .m = m, .n = n, .a = A, .lda = lda, .tau = tau, WORKS);                       \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##gqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int k,           \
                                                              const T *A, int lda, const T *tau, int *lwork) {          \
        CALL(orgqr, TYPED(#L #or "gqr_bufferSize", E), .m = m, .n = n, .k = k, .a = (void *)A, .lda = lda,              \
             .tau = (void *)tau, ASKS);                                                                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##gqr(cusolverDnHandle_t handle, int m, int n, int k, T *A, int lda,       \
                                                   const T *tau, T *work, int lwork, int *info) {                       \
        CALL(orgqr, TYPED(#L #or "gqr", E), .m = m, .n = n, .k = k, .a = A, .lda = lda, .tau = (void *)tau, WORKS);     \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##mqr_bufferSize(                                                          \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t trans, int m, int n, int k, const T *A,     \
        int lda, const T *tau, const T *C_, int ldc, int *lwork) {                                                      \
        CALL(ormqr, TYPED(#L #or "mqr_bufferSize", E), .side = (int)side, .op = (int)trans, .m = m, .n = n, .k = k,     \
             .a = (void *)A, .lda = lda, .tau = (void *)tau, .c = (void *)C_, .ldc = ldc, ASKS);                        \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##mqr(cusolverDnHandle_t handle, cublasSideMode_t side,                    \
                                                   cublasOperation_t trans, int m, int n, int k, const T *A, int lda,   \
                                                   const T *tau, T *C_, int ldc, T *work, int lwork, int *info) {       \
        CALL(ormqr, TYPED(#L #or "mqr", E), .side = (int)side, .op = (int)trans, .m = m, .n = n, .k = k,                \
             .a = (void *)A, .lda = lda, .tau = (void *)tau, .c = C_, .ldc = ldc, WORKS);                               \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##gebrd_bufferSize(cusolverDnHandle_t handle, int m, int n, int *lwork) {      \
        CALL(gebrd, TYPED(#L "gebrd_bufferSize", E), .m = m, .n = n, ASKS);                                             \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##gebrd(cusolverDnHandle_t handle, int m, int n, T *A, int lda, R *D_, R *E_,  \
                                                 T *tauq, T *taup, T *work, int lwork, int *info) {                     \
        CALL(gebrd, TYPED(#L "gebrd", E), .m = m, .n = n, .a = A, .lda = lda, .w = D_, .e = E_, .tau = tauq,            \
             .taup = taup, WORKS);                                                                                      \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##gbr_bufferSize(cusolverDnHandle_t handle, cublasSideMode_t side, int m,  \
                                                              int n, int k, const T *A, int lda, const T *tau,          \
                                                              int *lwork) {                                             \
        CALL(orgbr, TYPED(#L #or "gbr_bufferSize", E), .side = (int)side, .m = m, .n = n, .k = k, .a = (void *)A,       \
             .lda = lda, .tau = (void *)tau, ASKS);                                                                     \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##gbr(cusolverDnHandle_t handle, cublasSideMode_t side, int m, int n,      \
                                                   int k, T *A, int lda, const T *tau, T *work, int lwork, int *info) { \
        CALL(orgbr, TYPED(#L #or "gbr", E), .side = (int)side, .m = m, .n = n, .k = k, .a = A, .lda = lda,              \
             .tau = (void *)tau, WORKS);                                                                                \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##trd_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,  \
                                                              const T *A, int lda, const R *d, const R *e,              \
                                                              const T *tau, int *lwork) {                               \
        CALL(sytrd, TYPED(#L #sy "trd_bufferSize", E), .uplo = (int)uplo, .n = n, .a = (void *)A, .lda = lda,           \
             .w = (void *)d, .e = (void *)e, .tau = (void *)tau, ASKS);                                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##sy##trd(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T *A,       \
                                                   int lda, R *d, R *e, T *tau, T *work, int lwork, int *info) {        \
        CALL(sytrd, TYPED(#L #sy "trd", E), .uplo = (int)uplo, .n = n, .a = A, .lda = lda, .w = d, .e = e, .tau = tau,  \
             WORKS);                                                                                                    \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##gtr_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n,  \
                                                              const T *A, int lda, const T *tau, int *lwork) {          \
        CALL(orgtr, TYPED(#L #or "gtr_bufferSize", E), .uplo = (int)uplo, .n = n, .a = (void *)A, .lda = lda,           \
             .tau = (void *)tau, ASKS);                                                                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##gtr(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T *A,       \
                                                   int lda, const T *tau, T *work, int lwork, int *info) {              \
        CALL(orgtr, TYPED(#L #or "gtr", E), .uplo = (int)uplo, .n = n, .a = A, .lda = lda, .tau = (void *)tau, WORKS);  \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##mtr_bufferSize(                                                          \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, int m, int n, \
        const T *A, int lda, const T *tau, const T *C_, int ldc, int *lwork) {                                          \
        CALL(ormtr, TYPED(#L #or "mtr_bufferSize", E), .side = (int)side, .uplo = (int)uplo, .op = (int)trans, .m = m,  \
             .n = n, .a = (void *)A, .lda = lda, .tau = (void *)tau, .c = (void *)C_, .ldc = ldc, ASKS);                \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##L##or##mtr(                                                                     \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, int m, int n, \
        T *A, int lda, T *tau, T *C_, int ldc, T *work, int lwork, int *info) {                                         \
        CALL(ormtr, TYPED(#L #or "mtr", E), .side = (int)side, .uplo = (int)uplo, .op = (int)trans, .m = m, .n = n,     \
             .a = A, .lda = lda, .tau = tau, .c = C_, .ldc = ldc, WORKS);                                               \
    }
SOLVER_TYPES(ORTHOGONAL)

static cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
                                                    int64_t n, cudaDataType type, const void *A, int64_t lda,
                                                    cudaDataType tau_type, const void *tau, cudaDataType compute,
                                                    size_t *device, size_t *host) {
    CALL(geqrf, BY_NUMBER("Xgeqrf_bufferSize", type, tau_type == compute ? compute : (cudaDataType)-1), .m = m, .n = n,
         .a = (void *)A, .lda = lda, .tau = (void *)tau, .params = params, .asks = true, .bytes = device,
         .host_bytes = host);
}

static cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m, int64_t n,
                                         cudaDataType type, void *A, int64_t lda, cudaDataType tau_type, void *tau,
                                         cudaDataType compute, void *work, size_t device, void *host_work, size_t host,
                                         int *info) {
    CALL(geqrf, BY_NUMBER("Xgeqrf", type, tau_type == compute ? compute : (cudaDataType)-1), .m = m, .n = n, .a = A,
         .lda = lda, .tau = tau, .params = params, BUFFERS, .info = info);
}

#define ENTRIES(L, T, R, E, or, sy)                                                                              \
    BOTH(L##geqrf), BOTH(L##or##gqr), BOTH(L##or##mqr), BOTH(L##gebrd), BOTH(L##or##gbr), BOTH(L##sy##trd),       \
        BOTH(L##or##gtr), BOTH(L##or##mtr),

const struct entry solver_orthogonal_entries[] = {SOLVER_TYPES(ENTRIES) BOTH(Xgeqrf), {NULL, NULL, NULL}};
