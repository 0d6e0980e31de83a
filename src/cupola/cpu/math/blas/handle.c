/* Handles of cuBLAS: their streams, modes and workspaces. */
#include <stdarg.h>

#include "blas.h"

/* ---- statuses ---------------------------------------------------------------------------------------------------- */

cublasStatus_t blas_fail(cublasStatus_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    math_explain((int)status, format, arguments);
    va_end(arguments);
    return status;
}

cublasStatus_t blas_null(const char *function, const char *what) {
    return blas_fail(CUBLAS_STATUS_INVALID_VALUE, "%s: '%s' is a null pointer", function, what);
}

cublasStatus_t blas_status(CUresult status) {
    return (cublasStatus_t)math_status(status, CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_NOT_INITIALIZED,
                                       CUBLAS_STATUS_EXECUTION_FAILED);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

cublasStatus_t blas_check(cublasHandle_t handle, const char *function) {
    if (likely(handle_is_live(handle, HANDLE_MATH))) return CUBLAS_STATUS_SUCCESS;
    return blas_fail(CUBLAS_STATUS_NOT_INITIALIZED, "%s: the handle %p is no handle of this library, or was destroyed",
                     function, (void *)handle);
}

cublasStatus_t blas_create(const char *function, cublasHandle_t *handle) {
    CUresult status = enter_runtime();
    if (status) return blas_fail(CUBLAS_STATUS_NOT_INITIALIZED, "%s: there is no usable context", function);
    struct cublasContext *made = handle_new(HANDLE_MATH, sizeof *made);
    if (!made) return blas_fail(CUBLAS_STATUS_ALLOC_FAILED, "%s: the host has no memory for a handle", function);
    made->context = current_context();
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_destroy(const char *function, cublasHandle_t handle) {
    BLAS_RETURN_IF(blas_check(handle, function));
    if (!handle_kill(handle)) return blas_check(handle, function);
    cuCtxSynchronize(); /* as documented: the device is idle afterwards */
    if (handle_release(handle)) handle_free(HANDLE_MATH, handle);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    if (!handle) return blas_null("cublasCreate", "handle");
    return blas_create("cublasCreate", handle);
}

static cublasStatus_t cublasDestroy(cublasHandle_t handle) { return blas_destroy("cublasDestroy", handle); }

static cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
    (void)handle;
    if (!version) return blas_null("cublasGetVersion", "version");
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
    static const int parts[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
    BLAS_CHECK((unsigned)type < 3, "cublasGetProperty: %d is no property of a library", (int)type);
    if (!value) return blas_null("cublasGetProperty", "value");
    *value = parts[type];
    return CUBLAS_STATUS_SUCCESS;
}

static size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }

const char *blas_status_name(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
        case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
        case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
        case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
        case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
        case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
        case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
        case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
        case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
        case CUBLAS_STATUS_LICENSE_ERROR: return "CUBLAS_STATUS_LICENSE_ERROR";
        default: return "<unknown>";
    }
}

const char *blas_status_string(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS: return "success";
        case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
        case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
        case CUBLAS_STATUS_INVALID_VALUE: return "an invalid numerical value was used as an argument";
        case CUBLAS_STATUS_ARCH_MISMATCH: return "an absent device architectural feature is required";
        case CUBLAS_STATUS_MAPPING_ERROR: return "an access to GPU memory space failed";
        case CUBLAS_STATUS_EXECUTION_FAILED: return "the GPU program failed to execute";
        case CUBLAS_STATUS_INTERNAL_ERROR: return "an internal operation failed";
        case CUBLAS_STATUS_NOT_SUPPORTED: return "the functionality is not supported";
        case CUBLAS_STATUS_LICENSE_ERROR:
            return "the functionality requested requires some license and an error was detected";
        default: return "the status is unknown";
    }
}

static const char *cublasGetStatusName(cublasStatus_t status) { return blas_status_name(status); }
static const char *cublasGetStatusString(cublasStatus_t status) { return blas_status_string(status); }

/* A setting of a handle, its getter and setter; `good` says which values there are. */
#define SETTING(Name, type, field, good)                                                                   \
    static cublasStatus_t cublasSet##Name(cublasHandle_t handle, type value) {                             \
        BLAS_RETURN_IF(blas_check(handle, "cublasSet" #Name));                                             \
        BLAS_CHECK(good, "cublasSet" #Name ": %d is no value of this setting", (int)value);                \
        handle->field = value;                                                                             \
        return CUBLAS_STATUS_SUCCESS;                                                                      \
    }                                                                                                      \
    static cublasStatus_t cublasGet##Name(cublasHandle_t handle, type *value) {                            \
        BLAS_RETURN_IF(blas_check(handle, "cublasGet" #Name));                                             \
        if (!value) return blas_null("cublasGet" #Name, "value");                                          \
        *value = handle->field;                                                                            \
        return CUBLAS_STATUS_SUCCESS;                                                                      \
    }

SETTING(PointerMode, cublasPointerMode_t, pointer_mode, (unsigned)value <= CUBLAS_POINTER_MODE_DEVICE)
SETTING(AtomicsMode, cublasAtomicsMode_t, atomics, (unsigned)value <= CUBLAS_ATOMICS_ALLOWED)
SETTING(MathMode, cublasMath_t, math_mode, (unsigned)value <= 31 /* any of the bits, as on a GPU */)
SETTING(SmCountTarget, int, multiprocessors, value >= 0 && value <= handle->context->device->model->multiprocessors)

/* Also back to the default workspace, as documented. */
static cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
    BLAS_RETURN_IF(blas_check(handle, "cublasSetStream"));
    handle->stream = stream;
    handle->workspace = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream) {
    BLAS_RETURN_IF(blas_check(handle, "cublasGetStream"));
    if (!stream) return blas_null("cublasGetStream", "streamId");
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

/* Nothing here needs one. */
static cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t size) {
    BLAS_RETURN_IF(blas_check(handle, "cublasSetWorkspace"));
    handle->workspace = workspace;
    handle->workspace_size = size;
    return CUBLAS_STATUS_SUCCESS;
}

/* There is no log to switch on. */
static cublasStatus_t cublasLoggerConfigure(int on, int to_stdout, int to_stderr, const char *file) {
    (void)to_stdout, (void)to_stderr, (void)file;
    if (!on) return CUBLAS_STATUS_SUCCESS;
    return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLoggerConfigure: the CPU device's cuBLAS writes no log");
}

const struct entry blas_handle_entries[] = {
    BLAS_ENTRY(cublasCreate),           BLAS_ENTRY(cublasDestroy),
    BLAS_ENTRY(cublasGetVersion),       BLAS_ENTRY(cublasGetProperty),
    BLAS_ENTRY(cublasGetCudartVersion), BLAS_ENTRY(cublasGetStatusName),
    BLAS_ENTRY(cublasGetStatusString),  BLAS_ENTRY(cublasSetStream),
    BLAS_ENTRY(cublasGetStream),        BLAS_ENTRY(cublasSetWorkspace),
    BLAS_ENTRY(cublasSetPointerMode),   BLAS_ENTRY(cublasGetPointerMode),
    BLAS_ENTRY(cublasSetAtomicsMode),   BLAS_ENTRY(cublasGetAtomicsMode),
    BLAS_ENTRY(cublasSetMathMode),      BLAS_ENTRY(cublasGetMathMode),
    BLAS_ENTRY(cublasSetSmCountTarget), BLAS_ENTRY(cublasGetSmCountTarget),
    BLAS_ENTRY(cublasLoggerConfigure),  {NULL, NULL, NULL},
};
