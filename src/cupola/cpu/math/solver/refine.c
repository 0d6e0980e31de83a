/* Linear equations and least squares by iterative refinement (cuSolverDN, ZCgesv, DSgels, IRSXgesv and their kin). On a GPU a
 * factorization of lower precision is made better by iterations. Here the factorization has the precision of the matrix, so
 * there is nothing to refine. */
#include <stdlib.h>

#include "solver.h"

enum { NOT_FACTORED = -3 }; /* the number of iterations that says so */

/* ---- the work ------------------------------------------------------------------------------------------------------ */

static void tell_iterations(const struct solver *s, int count) {
    *s->count = count;
    if (s->object) s->object->done = count, s->object->inner_done = count;
}

/* A stays as it is, unless the factorization is what the function promises. */
static int64_t gesv_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    int64_t n = s->n, info = LAPACK_NO_MEMORY;
    void *a = malloc((size_t)larger(n * n, 1) * element_size(s->type));
    int64_t *pivots = malloc((size_t)larger(n, 1) * sizeof *pivots);
    if (a && pivots) {
        copy_block(s->type, at[AT_A], s->lda, a, n, n, n);
        info = lapack.getrf[s->type](COLUMNS, n, n, a, n, pivots);
        if (!info) {
            copy_block(s->type, at[AT_B], s->ldb, at[AT_C], s->ldc, n, s->k);
            info = lapack.getrs[s->type](COLUMNS, 'N', n, s->k, a, n, pivots, at[AT_C], s->ldc);
        }
        if (s->economic) copy_block(s->type, a, n, at[AT_A], s->lda, n, n);
        if (info >= 0 && at[AT_PIVOTS]) pivots_write(s, at[AT_PIVOTS], pivots, n);
        tell_iterations(s, info ? NOT_FACTORED : 0);
    }
    free(a), free(pivots);
    return info;
}

static int64_t gels_one(struct solver *s, void **at, int64_t i) {
    (void)i;
    int64_t m = s->m, n = s->n, columns = s->k, info = LAPACK_NO_MEMORY;
    size_t size = element_size(s->type);
    void *a = malloc((size_t)larger(m * n, 1) * size), *b = malloc((size_t)larger(m * columns, 1) * size);
    if (a && b) {
        copy_block(s->type, at[AT_A], s->lda, a, m, m, n);
        copy_block(s->type, at[AT_B], s->ldb, b, m, m, columns);
        info = lapack.gels[s->type](COLUMNS, 'N', m, n, columns, a, m, b, m);
        if (!info) copy_block(s->type, b, m, at[AT_C], s->ldc, n, columns);
        if (s->economic) copy_block(s->type, a, m, at[AT_A], s->lda, m, n);
        tell_iterations(s, info ? NOT_FACTORED : 0);
    }
    free(a), free(b);
    return info;
}

/* ---- the families -------------------------------------------------------------------------------------------------- */

static cusolverStatus_t check_work(const struct solver *s) {
    if (s->room >= (int64_t)element_size(s->type)) return CUSOLVER_STATUS_SUCCESS;
    return solver_fail(CUSOLVER_STATUS_INVALID_WORKSPACE, "%s: the workspace has %lld bytes", s->function,
                       (long long)s->room);
}

/* With parameters, the handle, they and the infos count as positions, too. */
static cusolverStatus_t gesv(struct solver *s) {
    int more = s->object ? 3 : 0;
    s->wrong = CUSOLVER_STATUS_IRS_PARAMS_INVALID;
    SOLVER_RETURN_IF(solver_begin(s));
    NEED_SIZE(1 + more, "n", s->n);
    NEED_SIZE(2 + more, "nrhs", s->k);
    if (!s->no_matrices) {
        NEED_LD(4 + more, "ldda", s->lda, s->n);
        NEED_LD(7 + more, "lddb", s->ldb, s->n);
        NEED_LD(9 + more, "lddx", s->ldc, s->n);
    }
    if (s->asks) return s->bytes ? solver_answer(s, s->n) : solver_fail(s->wrong, "%s: a null pointer", s->function);
    SOLVER_CHECK(s->count, "%s: 'niters' is a null pointer", s->function);
    if (!s->n || !s->k) return CUSOLVER_STATUS_SUCCESS;
    SOLVER_RETURN_IF(check_work(s));
    use_matrix(s, AT_A, "the matrix A", s->a, s->n, s->n, s->lda);
    use_matrix(s, AT_B, "the matrix B", s->b, s->n, s->k, s->ldb);
    use_matrix(s, AT_C, "the matrix X", s->c, s->n, s->k, s->ldc);
    use_pivots(s, s->n);
    s->must_tell = true;
    s->one = gesv_one;
    return solver_submit(s);
}

static cusolverStatus_t gels(struct solver *s) {
    int more = s->object ? 3 : 0;
    s->wrong = CUSOLVER_STATUS_IRS_PARAMS_INVALID;
    SOLVER_RETURN_IF(solver_begin(s));
    NEED_SIZE(1 + more, "m", s->m);
    SOLVER_NEED(2 + more, s->n >= 0 && s->n <= s->m, "n is %lld and m %lld; n may not be the larger one",
                (long long)s->n, (long long)s->m);
    NEED_SIZE(3 + more, "nrhs", s->k);
    if (!s->no_matrices) {
        NEED_LD(5 + more, "ldda", s->lda, s->m);
        NEED_LD(7 + more, "lddb", s->ldb, s->m);
        NEED_LD(9 + more, "lddx", s->ldc, s->n);
    }
    if (s->asks) return s->bytes ? solver_answer(s, s->m) : solver_fail(s->wrong, "%s: a null pointer", s->function);
    SOLVER_CHECK(s->count, "%s: 'niters' is a null pointer", s->function);
    if (!s->n || !s->k) return CUSOLVER_STATUS_SUCCESS;
    SOLVER_RETURN_IF(check_work(s));
    use_matrix(s, AT_A, "the matrix A", s->a, s->m, s->n, s->lda);
    use_matrix(s, AT_B, "the matrix B", s->b, s->m, s->k, s->ldb);
    use_matrix(s, AT_C, "the matrix X", s->c, s->n, s->k, s->ldc);
    s->must_tell = true;
    s->one = gels_one;
    return solver_submit(s);
}

/* ---- the functions of two types ------------------------------------------------------------------------------------ */

#define SYSTEM .n = n, .k = nrhs, .a = dA, .lda = ldda, .b = dB, .ldb = lddb, .c = dX, .ldc = lddx
#define SIZES .asks = true, .bytes = bytes
#define WORKS .work = work, .room = (int64_t)bytes, .count = iterations, .info = info

#define PAIR(P, T, E)                                                                                                  \
    static cusolverStatus_t cusolverDn##P##gesv_bufferSize(cusolverDnHandle_t handle, int n, int nrhs, T *dA, int ldda, \
                                                           int *pivots, T *dB, int lddb, T *dX, int lddx, void *work,   \
                                                           size_t *bytes) {                                             \
        (void)pivots, (void)work;                                                                                       \
        CALL(gesv, TYPED(#P "gesv_bufferSize", E), SYSTEM, SIZES);                                                      \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##P##gesv(cusolverDnHandle_t handle, int n, int nrhs, T *dA, int ldda,            \
                                                int *pivots, T *dB, int lddb, T *dX, int lddx, void *work,              \
                                                size_t bytes, int *iterations, int *info) {                             \
        CALL(gesv, TYPED(#P "gesv", E), SYSTEM, .pivots = pivots, WORKS);                                               \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##P##gels_bufferSize(cusolverDnHandle_t handle, int m, int n, int nrhs, T *dA,    \
                                                           int ldda, T *dB, int lddb, T *dX, int lddx, void *work,      \
                                                           size_t *bytes) {                                             \
        (void)work;                                                                                                     \
        CALL(gels, TYPED(#P "gels_bufferSize", E), .m = m, SYSTEM, SIZES);                                              \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##P##gels(cusolverDnHandle_t handle, int m, int n, int nrhs, T *dA, int ldda,     \
                                                T *dB, int lddb, T *dX, int lddx, void *work, size_t bytes,             \
                                                int *iterations, int *info) {                                           \
        CALL(gels, TYPED(#P "gels", E), .m = m, SYSTEM, WORKS);                                                         \
    }
/* The type of the matrix, and that in which a GPU factors it. */
#define PAIRS(X)                                                                                                    \
    X(SS, float, S) X(SH, float, S) X(SB, float, S) X(SX, float, S) X(DD, double, D) X(DS, double, D)                \
    X(DH, double, D) X(DB, double, D) X(DX, double, D) X(CC, cuComplex, C) X(CE, cuComplex, C) X(CK, cuComplex, C)   \
    X(CY, cuComplex, C) X(ZZ, cuDoubleComplex, Z) X(ZC, cuDoubleComplex, Z) X(ZE, cuDoubleComplex, Z)                \
    X(ZK, cuDoubleComplex, Z) X(ZY, cuDoubleComplex, Z)
PAIRS(PAIR)

/* ---- with parameters ----------------------------------------------------------------------------------------------- */

static struct solver_object *params_of(cusolverDnIRSParams_t params) {
    return solver_object(params, OBJECT_REFINEMENT);
}

#define PARAMS(function)                                                                                          \
    struct solver_object *object = params_of(params);                                                             \
    if (!object)                                                                                                  \
        return solver_fail(CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED,                                            \
                           "cusolverDn" function ": 'params' is none of cusolverDnIRSParamsCreate's")

/* What makes no sense is found when a solver uses it. */
#define SETTING(name, type, field)                                                                   \
    static cusolverStatus_t cusolverDnIRSParams##name(cusolverDnIRSParams_t params, type value) {    \
        PARAMS("IRSParams" #name);                                                                   \
        object->field = value;                                                                       \
        return CUSOLVER_STATUS_SUCCESS;                                                              \
    }
SETTING(SetSolverMainPrecision, cusolverPrecType_t, main_precision)
SETTING(SetSolverLowestPrecision, cusolverPrecType_t, lowest_precision)
SETTING(SetRefinementSolver, cusolverIRSRefinement_t, refinement)
SETTING(SetMaxIters, int, iterations)
SETTING(SetMaxItersInner, int, inner_iterations)

static cusolverStatus_t cusolverDnIRSParamsSetSolverPrecisions(cusolverDnIRSParams_t params, cusolverPrecType_t main,
                                                               cusolverPrecType_t lowest) {
    PARAMS("IRSParamsSetSolverPrecisions");
    object->main_precision = main, object->lowest_precision = lowest;
    return CUSOLVER_STATUS_SUCCESS;
}

#define TOLERANCE(name, field)                                                                                     \
    static cusolverStatus_t cusolverDnIRSParams##name(cusolverDnIRSParams_t params, double value) {                \
        PARAMS("IRSParams" #name);                                                                                 \
        SOLVER_CHECK(object->main_precision, "cusolverDnIRSParams" #name ": set the precisions before");           \
        object->field = value;                                                                                     \
        return CUSOLVER_STATUS_SUCCESS;                                                                            \
    }
TOLERANCE(SetTol, tolerance)
TOLERANCE(SetTolInner, inner_tolerance)

static cusolverStatus_t cusolverDnIRSParamsEnableFallback(cusolverDnIRSParams_t params) {
    PARAMS("IRSParamsEnableFallback");
    object->no_fallback = false;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverDnIRSParamsDisableFallback(cusolverDnIRSParams_t params) {
    PARAMS("IRSParamsDisableFallback");
    object->no_fallback = true;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverDnIRSParamsGetMaxIters(cusolverDnIRSParams_t params, int *value) {
    PARAMS("IRSParamsGetMaxIters");
    SOLVER_CHECK(value, "cusolverDnIRSParamsGetMaxIters: 'maxiters' is a null pointer");
    *value = object->iterations;
    return CUSOLVER_STATUS_SUCCESS;
}

#define INFOS(function)                                                                                        \
    struct solver_object *object = solver_object(infos, OBJECT_RECORD);                                        \
    if (!object)                                                                                               \
        return solver_fail(CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED,                                          \
                           "cusolverDn" function ": 'infos' is none of cusolverDnIRSInfosCreate's")

#define REPORT(name, field)                                                                                    \
    static cusolverStatus_t cusolverDnIRSInfos##name(cusolverDnIRSInfos_t infos, int *value) {                 \
        INFOS("IRSInfos" #name);                                                                               \
        SOLVER_CHECK(value, "cusolverDnIRSInfos" #name ": the result is a null pointer");                      \
        *value = object->field;                                                                                \
        return CUSOLVER_STATUS_SUCCESS;                                                                        \
    }
REPORT(GetNiters, done)
REPORT(GetOuterNiters, inner_done)
REPORT(GetMaxIters, iterations)

static cusolverStatus_t cusolverDnIRSInfosRequestResidual(cusolverDnIRSInfos_t infos) {
    INFOS("IRSInfosRequestResidual");
    object->wants_residuals = true;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverDnIRSInfosGetResidualHistory(cusolverDnIRSInfos_t infos, void **history) {
    INFOS("IRSInfosGetResidualHistory");
    SOLVER_CHECK(history && object->wants_residuals,
                 "cusolverDnIRSInfosGetResidualHistory: ask for the residuals before the solver runs");
    return solver_fail(CUSOLVER_STATUS_NOT_SUPPORTED,
                       "cusolverDnIRSInfosGetResidualHistory: there are no iterations, and so no residuals");
}

static enum element element_of_precision(int precision) {
    switch (precision) {
        case CUSOLVER_R_32F: return S;
        case CUSOLVER_R_64F: return D;
        case CUSOLVER_C_32F: return C;
        case CUSOLVER_C_64F: return Z;
        default: return ELEMENTS;
    }
}

/* A function whose types the parameters say. */
static cusolverStatus_t with_params(struct solver *s, cusolverStatus_t (*family)(struct solver *),
                                    cusolverDnIRSParams_t params, cusolverDnIRSInfos_t infos) {
    SOLVER_RETURN_IF(solver_check(s->handle, s->function));
    struct solver_object *object = params_of(params);
    if (!object)
        return solver_fail(CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED,
                           "%s: the parameters are none of cusolverDnIRSParamsCreate's", s->function);
    if (!s->asks && !(s->object = solver_object(infos, OBJECT_RECORD)))
        return solver_fail(CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED,
                           "%s: the infos are none of cusolverDnIRSInfosCreate's", s->function);
    s->type = element_of_precision(object->main_precision);
    enum element lowest = element_of_precision(object->lowest_precision);
    if (s->type == ELEMENTS)
        return solver_fail(s->asks ? CUSOLVER_STATUS_IRS_PARAMS_INVALID : CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC,
                           "%s: set the precisions first, with cusolverDnIRSParamsSetSolverPrecisions", s->function);
    bool known =
        object->refinement >= CUSOLVER_IRS_REFINE_NONE && object->refinement <= CUSOLVER_IRS_REFINE_GMRES_NOPCOND;
    if (!known && !s->asks)
        return solver_fail(CUSOLVER_STATUS_IRS_PARAMS_INVALID_REFINE,
                           "%s: set a method first, with cusolverDnIRSParamsSetRefinementSolver", s->function);
    if (known && object->refinement >= CUSOLVER_IRS_REFINE_CLASSICAL_GMRES && s->k > 1)
        return solver_fail(s->asks ? CUSOLVER_STATUS_IRS_NRHS_NOT_SUPPORTED_FOR_REFINE_GMRES
                                   : CUSOLVER_STATUS_IRS_NOT_SUPPORTED,
                           "%s: GMRES solves for one right-hand side", s->function);
    s->economic = object->refinement == CUSOLVER_IRS_REFINE_NONE && lowest == s->type; /* A becomes its factors */
    s->no_matrices = s->asks;
    if (s->object) s->object->iterations = object->iterations;
    return family(s);
}

#define CALL_WITH(family, params, infos, ...) return with_params(&(struct solver){__VA_ARGS__}, family, params, infos)

static cusolverStatus_t cusolverDnIRSXgesv_bufferSize(cusolverDnHandle_t handle, cusolverDnIRSParams_t params, int n,
                                                      int nrhs, size_t *bytes) {
    CALL_WITH(gesv, params, NULL, TYPED("IRSXgesv_bufferSize", S), .n = n, .k = nrhs, SIZES);
}

static cusolverStatus_t cusolverDnIRSXgesv(cusolverDnHandle_t handle, cusolverDnIRSParams_t params,
                                           cusolverDnIRSInfos_t infos, int n, int nrhs, void *dA, int ldda, void *dB,
                                           int lddb, void *dX, int lddx, void *work, size_t bytes, int *iterations,
                                           int *info) {
    CALL_WITH(gesv, params, infos, TYPED("IRSXgesv", S), SYSTEM, WORKS);
}

static cusolverStatus_t cusolverDnIRSXgels_bufferSize(cusolverDnHandle_t handle, cusolverDnIRSParams_t params, int m,
                                                      int n, int nrhs, size_t *bytes) {
    CALL_WITH(gels, params, NULL, TYPED("IRSXgels_bufferSize", S), .m = m, .n = n, .k = nrhs, SIZES);
}

static cusolverStatus_t cusolverDnIRSXgels(cusolverDnHandle_t handle, cusolverDnIRSParams_t params,
                                           cusolverDnIRSInfos_t infos, int m, int n, int nrhs, void *dA, int ldda,
                                           void *dB, int lddb, void *dX, int lddx, void *work, size_t bytes,
                                           int *iterations, int *info) {
    CALL_WITH(gels, params, infos, TYPED("IRSXgels", S), .m = m, SYSTEM, WORKS);
}

#define ENTRIES(P, T, E) BOTH(P##gesv), BOTH(P##gels),

const struct entry solver_refine_entries[] = {
    PAIRS(ENTRIES) BOTH(IRSXgesv),
    BOTH(IRSXgels),
    SOLVER_ENTRY(cusolverDnIRSParamsSetSolverMainPrecision),
    SOLVER_ENTRY(cusolverDnIRSParamsSetSolverLowestPrecision),
    SOLVER_ENTRY(cusolverDnIRSParamsSetSolverPrecisions),
    SOLVER_ENTRY(cusolverDnIRSParamsSetRefinementSolver),
    SOLVER_ENTRY(cusolverDnIRSParamsSetTol),
    SOLVER_ENTRY(cusolverDnIRSParamsSetTolInner),
    SOLVER_ENTRY(cusolverDnIRSParamsSetMaxIters),
    SOLVER_ENTRY(cusolverDnIRSParamsSetMaxItersInner),
    SOLVER_ENTRY(cusolverDnIRSParamsEnableFallback),
    SOLVER_ENTRY(cusolverDnIRSParamsDisableFallback),
    SOLVER_ENTRY(cusolverDnIRSParamsGetMaxIters),
    SOLVER_ENTRY(cusolverDnIRSInfosGetNiters),
    SOLVER_ENTRY(cusolverDnIRSInfosGetOuterNiters),
    SOLVER_ENTRY(cusolverDnIRSInfosGetMaxIters),
    SOLVER_ENTRY(cusolverDnIRSInfosRequestResidual),
    SOLVER_ENTRY(cusolverDnIRSInfosGetResidualHistory),
    {NULL, NULL, NULL},
};
