/* Handles of cuSPARSE, statuses, and what says something about the library (cuSPARSE Library, chapter 4). */
#include <stdarg.h>

#include "sparse.h"

/* ---- statuses ---------------------------------------------------------------------------------------------------- */

cusparseStatus_t sparse_fail(cusparseStatus_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    math_explain((int)status, format, arguments);
    va_end(arguments);
    return status;
}

cusparseStatus_t sparse_null(const char *function, const char *what) {
    return sparse_fail(CUSPARSE_STATUS_INVALID_VALUE, "%s: '%s' is a null pointer", function, what);
}

cusparseStatus_t sparse_status(CUresult status) {
    return (cusparseStatus_t)math_status(status, CUSPARSE_STATUS_ALLOC_FAILED, CUSPARSE_STATUS_NOT_INITIALIZED,
                                         CUSPARSE_STATUS_EXECUTION_FAILED);
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct cusparseSpMatDescr) <= OBJECT_BYTES, "slots are too small");

void *object_new(enum object_kind kind) {
    struct object *made = handle_new(HANDLE_SPARSE, OBJECT_BYTES);
    if (made) made->kind = kind;
    return made;
}

bool object_is(const void *object, enum object_kind kind) {
    return handle_is_live(object, HANDLE_SPARSE) && ((const struct object *)object)->kind == kind;
}

cusparseStatus_t sparse_check(cusparseHandle_t handle, const char *function) {
    if (likely(object_is(handle, LIBRARY))) return CUSPARSE_STATUS_SUCCESS;
    if (!handle) return sparse_null(function, "handle");
    return sparse_fail(CUSPARSE_STATUS_NOT_INITIALIZED,
                       "%s: the handle %p is none of cusparseCreate's, or was destroyed", function, (void *)handle);
}

cusparseStatus_t object_check(const void *object, enum object_kind kind, const char *function, const char *what) {
    if (likely(object_is(object, kind))) return CUSPARSE_STATUS_SUCCESS;
    if (!object) return sparse_null(function, what);
    return sparse_fail(CUSPARSE_STATUS_INVALID_VALUE, "%s: '%s', %p, is no descriptor of this kind, or was destroyed",
                       function, what, object);
}

cusparseStatus_t object_destroy(const void *object, enum object_kind kind, const char *function) {
    if (!object) return CUSPARSE_STATUS_SUCCESS; /* as free() does */
    SPARSE_RETURN_IF(object_check(object, kind, function, "the descriptor"));
    if (!handle_kill((void *)object)) return object_check(object, kind, function, "the descriptor");
    if (handle_release((void *)object)) handle_free(HANDLE_SPARSE, (void *)object);
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static cusparseStatus_t cusparseCreate(cusparseHandle_t *handle) {
    if (!handle) return sparse_null("cusparseCreate", "handle");
    if (enter_runtime())
        return sparse_fail(CUSPARSE_STATUS_NOT_INITIALIZED, "cusparseCreate: there is no usable context");
    struct cusparseContext *made = object_new(LIBRARY);
    if (!made) return sparse_fail(CUSPARSE_STATUS_ALLOC_FAILED, "cusparseCreate: the host has no memory for a handle");
    *handle = made;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
    return object_destroy(handle, LIBRARY, "cusparseDestroy");
}

static cusparseStatus_t cusparseGetVersion(cusparseHandle_t handle, int *version) {
    SPARSE_RETURN_IF(sparse_check(handle, "cusparseGetVersion"));
    if (!version) return sparse_null("cusparseGetVersion", "version");
    *version = CUSPARSE_VERSION;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseGetProperty(libraryPropertyType type, int *value) {
    static const int parts[] = {CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH};
    SPARSE_CHECK((unsigned)type < 3, "cusparseGetProperty: %d is no property of a library", (int)type);
    if (!value) return sparse_null("cusparseGetProperty", "value");
    *value = parts[type];
    return CUSPARSE_STATUS_SUCCESS;
}

#define STATUSES(X)                                                              \
    X(SUCCESS, "success")                                                        \
    X(NOT_INITIALIZED, "initialization error")                                   \
    X(ALLOC_FAILED, "out of memory")                                             \
    X(INVALID_VALUE, "invalid value")                                            \
    X(ARCH_MISMATCH, "architecture mismatch")                                    \
    X(MAPPING_ERROR, "texture memory mapping error")                                    \
    X(EXECUTION_FAILED, "kernel launch failure")                                 \
    X(INTERNAL_ERROR, "internal error")                                          \
    X(MATRIX_TYPE_NOT_SUPPORTED, "matrix type not supported")                    \
    X(ZERO_PIVOT, "zero pivot")                                                  \
    X(NOT_SUPPORTED, "operation not supported")                                  \
    X(INSUFFICIENT_RESOURCES, "insufficient resources")

static const char *cusparseGetErrorName(cusparseStatus_t status) {
    switch (status) {
#define NAME(name, text) \
    case CUSPARSE_STATUS_##name: return "CUSPARSE_STATUS_" #name;
        STATUSES(NAME)
        default: return "unrecognized error code";
    }
}

static const char *cusparseGetErrorString(cusparseStatus_t status) {
    switch (status) {
#define TEXT(name, text) \
    case CUSPARSE_STATUS_##name: return text;
        STATUSES(TEXT)
        default: return "unrecognized error code";
    }
}

static cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
    SPARSE_RETURN_IF(sparse_check(handle, "cusparseSetStream"));
    handle->stream = stream;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseGetStream(cusparseHandle_t handle, cudaStream_t *stream) {
    SPARSE_RETURN_IF(sparse_check(handle, "cusparseGetStream"));
    if (!stream) return sparse_null("cusparseGetStream", "streamId");
    *stream = handle->stream;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t mode) {
    SPARSE_RETURN_IF(sparse_check(handle, "cusparseSetPointerMode"));
    SPARSE_CHECK((unsigned)mode <= CUSPARSE_POINTER_MODE_DEVICE, "cusparseSetPointerMode: %d is no pointer mode",
                 (int)mode);
    handle->pointer_mode = mode;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseGetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t *mode) {
    SPARSE_RETURN_IF(sparse_check(handle, "cusparseGetPointerMode"));
    if (!mode) return sparse_null("cusparseGetPointerMode", "mode");
    *mode = handle->pointer_mode;
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- descriptors of the functions that are older than the generic ones -------------------------------------------- */

struct cusparseMatDescr {
    struct object object;
    cusparseMatrixType_t Type;
    cusparseFillMode_t FillMode;
    cusparseDiagType_t DiagType;
    cusparseIndexBase_t IndexBase;
};

static cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t *matrix) {
    if (!matrix) return sparse_null("cusparseCreateMatDescr", "descrA");
    struct cusparseMatDescr *made = object_new(LEGACY);
    if (!made)
        return sparse_fail(CUSPARSE_STATUS_ALLOC_FAILED,
                           "cusparseCreateMatDescr: the host has no memory for a descriptor");
    *matrix = made;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseDestroyMatDescr(cusparseMatDescr_t matrix) {
    return object_destroy(matrix, LEGACY, "cusparseDestroyMatDescr");
}

#define SETTING(Name, type, most)                                                                                    \
    static cusparseStatus_t cusparseSetMat##Name(cusparseMatDescr_t matrix, type value) {                            \
        static const char function[] = "cusparseSetMat" #Name;                                                       \
        if (!object_is(matrix, LEGACY))                                                                              \
            return sparse_fail(CUSPARSE_STATUS_NOT_INITIALIZED, "%s: 'descrA' is no descriptor", function);          \
        SPARSE_CHECK((unsigned)value <= most, "%s: %d is no value of this setting", function, (int)value);           \
        matrix->Name = value;                                                                                        \
        return CUSPARSE_STATUS_SUCCESS;                                                                              \
    }                                                                                                                \
    static type cusparseGetMat##Name(const cusparseMatDescr_t matrix) {                                              \
        return object_is(matrix, LEGACY) ? matrix->Name : (type)0;                                                   \
    }
SETTING(Type, cusparseMatrixType_t, CUSPARSE_MATRIX_TYPE_TRIANGULAR)
SETTING(FillMode, cusparseFillMode_t, CUSPARSE_FILL_MODE_UPPER)
SETTING(DiagType, cusparseDiagType_t, CUSPARSE_DIAG_TYPE_UNIT)
SETTING(IndexBase, cusparseIndexBase_t, CUSPARSE_INDEX_BASE_ONE)

/* ---- the log: there is none to switch on ------------------------------------------------------------------------- */

static cusparseStatus_t cusparseLoggerSetLevel(int level) {
    SPARSE_CHECK(level >= 0 && level <= 6, "cusparseLoggerSetLevel: %d is no level; it must be 0 to 6", level);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseLoggerSetMask(int mask) {
    (void)mask;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t no_log(const char *function, bool wanted) {
    SPARSE_SUPPORT(!wanted, "%s: the CPU device's cuSPARSE writes no log", function);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseLoggerSetCallback(cusparseLoggerCallback_t callback) {
    return no_log("cusparseLoggerSetCallback", callback);
}

static cusparseStatus_t cusparseLoggerSetFile(FILE *file) { return no_log("cusparseLoggerSetFile", file); }

static cusparseStatus_t cusparseLoggerOpenFile(const char *name) { return no_log("cusparseLoggerOpenFile", name); }

static cusparseStatus_t cusparseLoggerForceDisable(void) { return CUSPARSE_STATUS_SUCCESS; }

const struct entry sparse_handle_entries[] = {
    SPARSE_ENTRY(cusparseCreate),
    SPARSE_ENTRY(cusparseDestroy),
    SPARSE_ENTRY(cusparseGetVersion),
    SPARSE_ENTRY(cusparseGetProperty),
    SPARSE_ENTRY(cusparseGetErrorName),
    SPARSE_ENTRY(cusparseGetErrorString),
    SPARSE_ENTRY(cusparseSetStream),
    SPARSE_ENTRY(cusparseGetStream),
    SPARSE_ENTRY(cusparseSetPointerMode),
    SPARSE_ENTRY(cusparseGetPointerMode),
    SPARSE_ENTRY(cusparseLoggerSetLevel),
    SPARSE_ENTRY(cusparseLoggerSetMask),
    SPARSE_ENTRY(cusparseLoggerForceDisable),
    SPARSE_ENTRY(cusparseLoggerSetCallback),
    SPARSE_ENTRY(cusparseLoggerSetFile),
    SPARSE_ENTRY(cusparseLoggerOpenFile),
    SPARSE_ENTRY(cusparseCreateMatDescr),
    SPARSE_ENTRY(cusparseDestroyMatDescr),
    SPARSE_ENTRY(cusparseSetMatType),
    SPARSE_ENTRY(cusparseGetMatType),
    SPARSE_ENTRY(cusparseSetMatFillMode),
    SPARSE_ENTRY(cusparseGetMatFillMode),
    SPARSE_ENTRY(cusparseSetMatDiagType),
    SPARSE_ENTRY(cusparseGetMatDiagType),
    SPARSE_ENTRY(cusparseSetMatIndexBase),
    SPARSE_ENTRY(cusparseGetMatIndexBase),
    {NULL, NULL, NULL},
};
