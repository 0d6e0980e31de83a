/* Handles of cuSOLVER, and its objects with settings. */
#include <stdio.h>

#include "solver.h"

/* ---- statuses ------------------------------------------------------------------------------------------------------ */

cusolverStatus_t solver_fail(cusolverStatus_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    math_explain((int)status, format, arguments);
    va_end(arguments);
    return status;
}

cusolverStatus_t solver_status(CUresult status) {
    return (cusolverStatus_t)math_status(status, CUSOLVER_STATUS_ALLOC_FAILED, CUSOLVER_STATUS_NOT_INITIALIZED,
                                         CUSOLVER_STATUS_EXECUTION_FAILED);
}

#define NULL_POINTER(function, what) solver_fail(CUSOLVER_STATUS_INVALID_VALUE, "%s: '%s' is a null pointer", function, what)

/* ---- handles ------------------------------------------------------------------------------------------------------- */

cusolverStatus_t solver_check(cusolverDnHandle_t handle, const char *function) {
    if (likely(handle_is_live(handle, HANDLE_SOLVER))) return CUSOLVER_STATUS_SUCCESS;
    return solver_fail(CUSOLVER_STATUS_NOT_INITIALIZED,
                       "%s: the handle %p is none of cusolverDnCreate's, or was destroyed", function, (void *)handle);
}

static cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle) {
    const char *problem;
    if (!handle) return NULL_POINTER("cusolverDnCreate", "handle");
    if (enter_runtime())
        return solver_fail(CUSOLVER_STATUS_NOT_INITIALIZED, "cusolverDnCreate: there is no usable context");
    if (!lapack_load(&problem))
        return solver_fail(CUSOLVER_STATUS_NOT_INITIALIZED,
                           "cusolverDnCreate: the OpenBLAS that is installed has no LAPACK routine %s; install a newer "
                           "scipy-openblas64",
                           problem);
    struct cusolverDnContext *made = handle_new(HANDLE_SOLVER, sizeof *made);
    if (!made)
        return solver_fail(CUSOLVER_STATUS_ALLOC_FAILED, "cusolverDnCreate: the host has no memory for a handle");
    made->determinism = CUSOLVER_DETERMINISTIC_RESULTS;
    made->math_mode = CUSOLVER_DEFAULT_MATH;
    *handle = made;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
    SOLVER_RETURN_IF(solver_check(handle, "cusolverDnDestroy"));
    if (!handle_kill(handle)) return solver_check(handle, "cusolverDnDestroy");
    if (handle_release(handle)) handle_free(HANDLE_SOLVER, handle);
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
    SOLVER_RETURN_IF(solver_check(handle, "cusolverDnSetStream"));
    handle->stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream) {
    SOLVER_RETURN_IF(solver_check(handle, "cusolverDnGetStream"));
    if (!stream) return NULL_POINTER("cusolverDnGetStream", "streamId");
    *stream = handle->stream;
    return CUSOLVER_STATUS_SUCCESS;
}

/* Results are the same each time anyway. */
static cusolverStatus_t cusolverDnSetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t mode) {
    SOLVER_RETURN_IF(solver_check(handle, "cusolverDnSetDeterministicMode"));
    if (mode != CUSOLVER_DETERMINISTIC_RESULTS && mode != CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS)
        return solver_fail(CUSOLVER_STATUS_INTERNAL_ERROR, "cusolverDnSetDeterministicMode: %d is no mode", (int)mode);
    handle->determinism = mode;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverDnGetDeterministicMode(cusolverDnHandle_t handle, cusolverDeterministicMode_t *mode) {
    SOLVER_RETURN_IF(solver_check(handle, "cusolverDnGetDeterministicMode"));
    if (!mode) return NULL_POINTER("cusolverDnGetDeterministicMode", "mode");
    *mode = handle->determinism;
    return CUSOLVER_STATUS_SUCCESS;
}

/* The emulated kinds of arithmetic may be exact. */
static cusolverStatus_t cusolverDnSetMathMode(cusolverDnHandle_t handle, cusolverMathMode_t mode) {
    SOLVER_RETURN_IF(solver_check(handle, "cusolverDnSetMathMode"));
    SOLVER_CHECK(mode > 0 && mode <= (CUSOLVER_DEFAULT_MATH | CUSOLVER_FP32_FP64_EMULATED_MATH),
                 "cusolverDnSetMathMode: %d is no mode", (int)mode);
    handle->math_mode = mode;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverDnGetMathMode(cusolverDnHandle_t handle, cusolverMathMode_t *mode) {
    SOLVER_RETURN_IF(solver_check(handle, "cusolverDnGetMathMode"));
    if (!mode) return NULL_POINTER("cusolverDnGetMathMode", "mode");
    *mode = handle->math_mode;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverGetVersion(int *version) {
    if (!version) return NULL_POINTER("cusolverGetVersion", "version");
    *version = CUSOLVER_VERSION;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t cusolverGetProperty(libraryPropertyType type, int *value) {
    static const int parts[] = {CUSOLVER_VER_MAJOR, CUSOLVER_VER_MINOR, CUSOLVER_VER_PATCH};
    SOLVER_CHECK((unsigned)type < 3, "cusolverGetProperty: %d is no property of a library", (int)type);
    if (!value) return NULL_POINTER("cusolverGetProperty", "value");
    *value = parts[type];
    return CUSOLVER_STATUS_SUCCESS;
}

/* ---- objects with settings ----------------------------------------------------------------------------------------- */

struct solver_object *solver_object(void *pointer, enum object object) {
    struct solver_object *found = pointer;
    return handle_is_live(pointer, HANDLE_SOLVER_OBJECT) && found->object == object ? found : NULL;
}

static cusolverStatus_t make(const char *function, void *place, enum object object) {
    if (!place) return NULL_POINTER(function, "the result");
    struct solver_object *made = handle_new(HANDLE_SOLVER_OBJECT, sizeof *made);
    if (!made) return solver_fail(CUSOLVER_STATUS_ALLOC_FAILED, "%s: the host has no memory", function);
    made->object = object;
    made->sweeps = 100, made->sort = 1;
    made->refinement = CUSOLVER_IRS_REFINE_NOT_SET;
    made->iterations = 50, made->inner_iterations = 50;
    *(struct solver_object **)place = made;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t end(const char *function, void *pointer, enum object object, cusolverStatus_t wrong) {
    struct solver_object *found = solver_object(pointer, object);
    if (!pointer && !wrong) return CUSOLVER_STATUS_SUCCESS;
    if (!found || !handle_kill(found))
        return solver_fail(wrong ? wrong : CUSOLVER_STATUS_INVALID_VALUE,
                           "%s: %p is none of these objects, or was destroyed", function, pointer);
    if (handle_release(found)) handle_free(HANDLE_SOLVER_OBJECT, found);
    return CUSOLVER_STATUS_SUCCESS;
}

#define LIFE(Make, End, type, kind, wrong)                                                                        \
    static cusolverStatus_t cusolverDn##Make(type *place) { return make("cusolverDn" #Make, place, kind); }       \
    static cusolverStatus_t cusolverDn##End(type object) { return end("cusolverDn" #End, object, kind, wrong); }
LIFE(CreateParams, DestroyParams, cusolverDnParams_t, OBJECT_PARAMS, 0)
LIFE(CreateSyevjInfo, DestroySyevjInfo, syevjInfo_t, OBJECT_JACOBI, 0)
LIFE(CreateGesvdjInfo, DestroyGesvdjInfo, gesvdjInfo_t, OBJECT_SVD_JACOBI, 0)
LIFE(IRSParamsCreate, IRSParamsDestroy, cusolverDnIRSParams_t, OBJECT_REFINEMENT,
     CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED)
LIFE(IRSInfosCreate, IRSInfosDestroy, cusolverDnIRSInfos_t, OBJECT_RECORD, CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED)

/* There is one algorithm for each function. */
static cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t function,
                                                cusolverAlgMode_t algorithm) {
    SOLVER_CHECK(solver_object(params, OBJECT_PARAMS), "cusolverDnSetAdvOptions: %p are no parameters", (void *)params);
    SOLVER_CHECK((unsigned)function <= CUSOLVERDN_GEEV, "cusolverDnSetAdvOptions: %d is no function", (int)function);
    SOLVER_CHECK((unsigned)algorithm <= CUSOLVER_ALG_2, "cusolverDnSetAdvOptions: %d is no algorithm", (int)algorithm);
    return CUSOLVER_STATUS_SUCCESS;
}

/* ---- Jacobi's method ------------------------------------------------------------------------------------------------ */

#define OBJECT(pointer, kind, function)                                                                                  \
    struct solver_object *object = solver_object(pointer, kind);                                                        \
    if (!object) return solver_fail(CUSOLVER_STATUS_INVALID_VALUE, "%s: 'info' is no such object", function)

/* What the last operation reports, when that is done. */
static cusolverStatus_t report(cusolverDnHandle_t handle, const char *function, struct solver_object *object) {
    CUstream stream;
    SOLVER_RETURN_IF(solver_status(math_stream(handle->stream, &stream)));
    SOLVER_RETURN_IF(solver_status(cuStreamSynchronize(stream)));
    if (!object->batched) return CUSOLVER_STATUS_SUCCESS;
    return solver_fail(CUSOLVER_STATUS_NOT_SUPPORTED, "%s: a batch has no such report", function);
}

#define JACOBI(name, type, kind, sorted)                                                                                \
    static cusolverStatus_t cusolverDn##name##SetTolerance(type info, double tolerance) {                               \
        OBJECT(info, kind, "cusolverDn" #name "SetTolerance");                                                          \
        object->tolerance = tolerance;                                                                                  \
        return CUSOLVER_STATUS_SUCCESS;                                                                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##name##SetMaxSweeps(type info, int sweeps) {                                     \
        OBJECT(info, kind, "cusolverDn" #name "SetMaxSweeps");                                                          \
        object->sweeps = sweeps;                                                                                        \
        return CUSOLVER_STATUS_SUCCESS;                                                                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##name##SetSortEig(type info, int sort) {                                         \
        OBJECT(info, kind, "cusolverDn" #name "SetSortEig");                                                            \
        object->sort = sort;                                                                                            \
        return CUSOLVER_STATUS_SUCCESS;                                                                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##name##GetResidual(cusolverDnHandle_t handle, type info, double *residual) {     \
        SOLVER_RETURN_IF(solver_check(handle, "cusolverDn" #name "GetResidual"));                                       \
        OBJECT(info, kind, "cusolverDn" #name "GetResidual");                                                           \
        if (!residual) return NULL_POINTER("cusolverDn" #name "GetResidual", "residual");                               \
        SOLVER_RETURN_IF(report(handle, "cusolverDn" #name "GetResidual", object));                                     \
        *residual = object->residual;                                                                                   \
        return CUSOLVER_STATUS_SUCCESS;                                                                                 \
    }                                                                                                                   \
    static cusolverStatus_t cusolverDn##name##GetSweeps(cusolverDnHandle_t handle, type info, int *sweeps) {            \
        SOLVER_RETURN_IF(solver_check(handle, "cusolverDn" #name "GetSweeps"));                                         \
        OBJECT(info, kind, "cusolverDn" #name "GetSweeps");                                                             \
        if (!sweeps) return NULL_POINTER("cusolverDn" #name "GetSweeps", "executed_sweeps");                            \
        SOLVER_RETURN_IF(report(handle, "cusolverDn" #name "GetSweeps", object));                                       \
        *sweeps = object->done;                                                                                         \
        return CUSOLVER_STATUS_SUCCESS;                                                                                 \
    }
JACOBI(Xsyevj, syevjInfo_t, OBJECT_JACOBI, sort_eig)
JACOBI(Xgesvdj, gesvdjInfo_t, OBJECT_SVD_JACOBI, sort_svd)

#define JACOBI_ENTRIES(name)                                                                   \
    SOLVER_ENTRY(cusolverDn##name##SetTolerance), SOLVER_ENTRY(cusolverDn##name##SetMaxSweeps), \
        SOLVER_ENTRY(cusolverDn##name##SetSortEig), SOLVER_ENTRY(cusolverDn##name##GetResidual), \
        SOLVER_ENTRY(cusolverDn##name##GetSweeps)

const struct entry solver_handle_entries[] = {
    SOLVER_ENTRY(cusolverDnCreate),
    SOLVER_ENTRY(cusolverDnDestroy),
    SOLVER_ENTRY(cusolverDnSetStream),
    SOLVER_ENTRY(cusolverDnGetStream),
    SOLVER_ENTRY(cusolverDnSetDeterministicMode),
    SOLVER_ENTRY(cusolverDnGetDeterministicMode),
    SOLVER_ENTRY(cusolverDnSetMathMode),
    SOLVER_ENTRY(cusolverDnGetMathMode),
    SOLVER_ENTRY(cusolverGetVersion),
    SOLVER_ENTRY(cusolverGetProperty),
    SOLVER_ENTRY(cusolverDnCreateParams),
    SOLVER_ENTRY(cusolverDnDestroyParams),
    SOLVER_ENTRY(cusolverDnSetAdvOptions),
    SOLVER_ENTRY(cusolverDnCreateSyevjInfo),
    SOLVER_ENTRY(cusolverDnDestroySyevjInfo),
    JACOBI_ENTRIES(Xsyevj),
    SOLVER_ENTRY(cusolverDnCreateGesvdjInfo),
    SOLVER_ENTRY(cusolverDnDestroyGesvdjInfo),
    JACOBI_ENTRIES(Xgesvdj),
    SOLVER_ENTRY(cusolverDnIRSParamsCreate),
    SOLVER_ENTRY(cusolverDnIRSParamsDestroy),
    SOLVER_ENTRY(cusolverDnIRSInfosCreate),
    SOLVER_ENTRY(cusolverDnIRSInfosDestroy),
    {NULL, NULL, NULL},
};
