/* Handles of cuBLASLt, which are those of cuBLAS, and what concerns the library as a whole. */
#include "lt.h"

static cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    if (!handle) return blas_null("cublasLtCreate", "lightHandle");
    return blas_create("cublasLtCreate", (cublasHandle_t *)handle);
}

static cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    if (!handle) return blas_null("cublasLtDestroy", "lightHandle");
    return blas_destroy("cublasLtDestroy", (cublasHandle_t)handle);
}

static size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
static size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }

static cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value) {
    static const int parts[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
    BLAS_CHECK((unsigned)type < 3, "cublasLtGetProperty: %d is no property of a library", (int)type);
    if (!value) return blas_null("cublasLtGetProperty", "value");
    *value = parts[type];
    return CUBLAS_STATUS_SUCCESS;
}

static const char *cublasLtGetStatusName(cublasStatus_t status) { return blas_status_name(status); }
static const char *cublasLtGetStatusString(cublasStatus_t status) { return blas_status_string(status); }

/* There is nothing that a cache of heuristics would save; programs may set its size. */
static _Atomic size_t capacity = 8192;

static cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *value) {
    if (!value) return blas_null("cublasLtHeuristicsCacheGetCapacity", "capacity");
    *value = capacity;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t value) {
    capacity = value;
    return CUBLAS_STATUS_SUCCESS;
}

static unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask) {
    static _Atomic unsigned known;
    return atomic_exchange(&known, mask);
}

/* There is no log: these accept what switches it off, and settings without which nothing is written. */
static cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t callback) {
    (void)callback;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasLtLoggerSetFile(FILE *file) {
    (void)file;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasLtLoggerOpenFile(const char *file) {
    (void)file;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasLtLoggerSetLevel(int level) {
    BLAS_CHECK(level >= 0, "cublasLtLoggerSetLevel: %d is no level", level);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasLtLoggerSetMask(int mask) {
    (void)mask;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t cublasLtLoggerForceDisable(void) { return CUBLAS_STATUS_SUCCESS; }

const struct entry lt_handle_entries[] = {
    LT_ENTRY(cublasLtCreate),
    LT_ENTRY(cublasLtDestroy),
    LT_ENTRY(cublasLtGetVersion),
    LT_ENTRY(cublasLtGetCudartVersion),
    LT_ENTRY(cublasLtGetProperty),
    LT_ENTRY(cublasLtGetStatusName),
    LT_ENTRY(cublasLtGetStatusString),
    LT_ENTRY(cublasLtHeuristicsCacheGetCapacity),
    LT_ENTRY(cublasLtHeuristicsCacheSetCapacity),
    LT_ENTRY(cublasLtDisableCpuInstructionsSetMask),
    LT_ENTRY(cublasLtLoggerSetCallback),
    LT_ENTRY(cublasLtLoggerSetFile),
    LT_ENTRY(cublasLtLoggerOpenFile),
    LT_ENTRY(cublasLtLoggerSetLevel),
    LT_ENTRY(cublasLtLoggerSetMask),
    LT_ENTRY(cublasLtLoggerForceDisable),
    {NULL, NULL, NULL},
};
