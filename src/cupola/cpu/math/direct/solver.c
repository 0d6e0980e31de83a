/* cuDSS: handles, settings, matrices and the phases of a solution (cuDSS, "cuDSS Functions").
 *
 * The analysis chooses an order of rows and columns, the factorization makes factors of the matrix as it is then, and
 * solving uses them. Each phase is one operation of the stream. Settings are kept and told; those that would change a result
 * are refused. */
#include <complex.h>
#undef I
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "direct.h"

/* ---- statuses ---------------------------------------------------------------------------------------------------- */

static cudssStatus_t dss_fail(cudssStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
static cudssStatus_t dss_fail(cudssStatus_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    math_explain((int)status, format, arguments);
    va_end(arguments);
    return status;
}

static cudssStatus_t dss_status(CUresult status) {
    return (cudssStatus_t)math_status(status, CUDSS_STATUS_ALLOC_FAILED, CUDSS_STATUS_NOT_INITIALIZED,
                                      CUDSS_STATUS_EXECUTION_FAILED);
}

#define DSS_RETURN_IF(call)                                     \
    do {                                                        \
        cudssStatus_t dss_return_if = (call);                   \
        if (unlikely(dss_return_if)) return dss_return_if;      \
    } while (0)
#define DSS_CHECK(condition, ...)                                                                 \
    do {                                                                                          \
        if (unlikely(!(condition))) return dss_fail(CUDSS_STATUS_INVALID_VALUE, __VA_ARGS__);     \
    } while (0)
#define DSS_SUPPORT(condition, ...)                                                               \
    do {                                                                                          \
        if (unlikely(!(condition))) return dss_fail(CUDSS_STATUS_NOT_SUPPORTED, __VA_ARGS__);     \
    } while (0)

static cudssStatus_t dss_object(const void *object, enum object_kind kind, const char *function, const char *what) {
    if (likely(object_is(object, kind))) return CUDSS_STATUS_SUCCESS;
    if (kind == DSS_LIBRARY)
        return dss_fail(CUDSS_STATUS_NOT_INITIALIZED, "%s: the handle %p is none of cudssCreate's, or was destroyed",
                        function, object);
    return dss_fail(CUDSS_STATUS_INVALID_VALUE, "%s: '%s', %p, is no such object, or was destroyed", function, what,
                    object);
}

static cudssStatus_t dss_destroy(const void *object, enum object_kind kind, const char *function) {
    DSS_RETURN_IF(dss_object(object, kind, function, "the object"));
    object_destroy(object, kind, function);
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t dss_new(enum object_kind kind, const char *function, const void *result) {
    DSS_CHECK(result, "%s: the place for the result is a null pointer", function);
    void *made = object_new(kind);
    if (!made) return dss_fail(CUDSS_STATUS_ALLOC_FAILED, "%s: the host has no memory for an object", function);
    *(void **)(uintptr_t)result = made;
    return CUDSS_STATUS_SUCCESS;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

struct cudssContext {
    struct object object;
    cudaStream_t stream;
    cudssDeviceMemHandler_t memory; /* kept and told; the host's memory is what factors take */
};

static cudssStatus_t cudssCreate(cudssHandle_t *handle) {
    if (enter_runtime()) return dss_fail(CUDSS_STATUS_NOT_INITIALIZED, "cudssCreate: there is no usable context");
    return dss_new(DSS_LIBRARY, "cudssCreate", handle);
}

static cudssStatus_t cudssDestroy(cudssHandle_t handle) { return dss_destroy(handle, DSS_LIBRARY, "cudssDestroy"); }

static cudssStatus_t cudssGetProperty(libraryPropertyType type, int *value) {
    static const int parts[] = {CUDSS_VERSION_MAJOR, CUDSS_VERSION_MINOR, CUDSS_VERSION_PATCH};
    DSS_CHECK((unsigned)type < 3 && value, "cudssGetProperty: %d is no property of a library", (int)type);
    *value = parts[type];
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssSetStream(cudssHandle_t handle, cudaStream_t stream) {
    DSS_RETURN_IF(dss_object(handle, DSS_LIBRARY, "cudssSetStream", "handle"));
    handle->stream = stream;
    return CUDSS_STATUS_SUCCESS;
}

/* The threads that run kernels are all there are. */
static cudssStatus_t cudssSetThreadingLayer(cudssHandle_t handle, const char *name) {
    (void)name;
    return dss_object(handle, DSS_LIBRARY, "cudssSetThreadingLayer", "handle");
}

static cudssStatus_t cudssSetDeviceMemHandler(cudssHandle_t handle, const cudssDeviceMemHandler_t *memory) {
    DSS_RETURN_IF(dss_object(handle, DSS_LIBRARY, "cudssSetDeviceMemHandler", "handle"));
    DSS_CHECK(memory, "cudssSetDeviceMemHandler: 'handler' is a null pointer");
    handle->memory = *memory;
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssGetDeviceMemHandler(const cudssHandle_t handle, cudssDeviceMemHandler_t *memory) {
    DSS_RETURN_IF(dss_object(handle, DSS_LIBRARY, "cudssGetDeviceMemHandler", "handle"));
    DSS_CHECK(memory, "cudssGetDeviceMemHandler: 'handler' is a null pointer");
    *memory = handle->memory;
    return CUDSS_STATUS_SUCCESS;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

enum { PARAMETERS = CUDSS_CONFIG_MEMORY_OPTIMIZATION_SETTING + 1, MOST_BYTES = 8 };
_Static_assert(PARAMETERS == 30, "a parameter has been added");

struct options {
    char value[PARAMETERS][MOST_BYTES];
};
struct cudssConfig {
    struct object object;
    struct options *settings;
};

/* Settings that ask for another solution than the one that there is, unless they are 0. Factors are in memory of the host
 * anyway, as hybrid memory has them. */
static bool changes_results(cudssConfigParam_t parameter) {
    return parameter == CUDSS_CONFIG_HYBRID_EXECUTE_MODE || parameter == CUDSS_CONFIG_UBATCH_SIZE ||
           parameter == CUDSS_CONFIG_SCHUR_MODE;
}

static int setting(const struct cudssConfig *config, cudssConfigParam_t parameter) {
    int value;
    memcpy(&value, config->settings->value[parameter], sizeof value);
    return value;
}

static cudssStatus_t cudssConfigCreate(cudssConfig_t *config) {
    DSS_RETURN_IF(dss_new(DSS_CONFIG, "cudssConfigCreate", config));
    struct options *settings = (*config)->settings = calloc(1, sizeof *settings);
    if (!settings) {
        object_destroy(*config, DSS_CONFIG, "cudssConfigCreate");
        return dss_fail(CUDSS_STATUS_ALLOC_FAILED, "cudssConfigCreate: the host has no memory for an object");
    }
    static const int on = 1, automatic = CUDSS_MATCHING_ALG_AUTO;
    memcpy(settings->value[CUDSS_CONFIG_USE_CUDA_REGISTER_MEMORY], &on, sizeof on);
    memcpy(settings->value[CUDSS_CONFIG_USE_SUPERPANELS], &on, sizeof on);
    memcpy(settings->value[CUDSS_CONFIG_MATCHING_ALG], &automatic, sizeof automatic);
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssConfigDestroy(cudssConfig_t config) {
    DSS_RETURN_IF(dss_object(config, DSS_CONFIG, "cudssConfigDestroy", "config"));
    struct options *settings = config->settings;
    DSS_RETURN_IF(dss_destroy(config, DSS_CONFIG, "cudssConfigDestroy"));
    free(settings);
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssConfigSet(cudssConfig_t config, cudssConfigParam_t parameter, const void *value,
                                    size_t size) {
    DSS_RETURN_IF(dss_object(config, DSS_CONFIG, "cudssConfigSet", "config"));
    DSS_CHECK((unsigned)parameter < PARAMETERS, "cudssConfigSet: %d is no setting", (int)parameter);
    DSS_CHECK(value, "cudssConfigSet: 'value' is a null pointer");
    DSS_CHECK(size && size <= MOST_BYTES, "cudssConfigSet: setting %d does not have %zu bytes", (int)parameter, size);
    char now[MOST_BYTES] = {0};
    static const char zero[MOST_BYTES];
    memcpy(now, value, size);
    DSS_SUPPORT(!changes_results(parameter) || !memcmp(now, zero, sizeof zero),
                "cudssConfigSet: the CPU device has setting %d as 0 only", (int)parameter);
    int number;
    memcpy(&number, now, sizeof number);
    DSS_CHECK(parameter != CUDSS_CONFIG_SOLVE_MODE || (unsigned)number <= CUDSS_SOLVE_MODE_CONJUGATE_TRANSPOSE,
              "cudssConfigSet: SOLVE_MODE cannot be %d", number);
    memcpy(config->settings->value[parameter], now, sizeof now);
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssConfigGet(const cudssConfig_t config, cudssConfigParam_t parameter, void *value, size_t size,
                                    size_t *written) {
    DSS_RETURN_IF(dss_object(config, DSS_CONFIG, "cudssConfigGet", "config"));
    DSS_CHECK((unsigned)parameter < PARAMETERS, "cudssConfigGet: %d is no setting", (int)parameter);
    DSS_CHECK(value && size && size <= MOST_BYTES, "cudssConfigGet: setting %d does not have %zu bytes", (int)parameter,
              size);
    memcpy(value, config->settings->value[parameter], size);
    if (written) *written = size;
    return CUDSS_STATUS_SUCCESS;
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

enum { NO_BATCH = -1 };

struct cudssMatrix {
    struct object object;
    bool is_sparse;
    struct dense dense;
    struct matrix matrix;
    cudssMatrixType_t type;
    cudssMatrixViewType_t view;
    /* A batch: the shape of each matrix, as integers in memory of the host, and arrays of pointers; `count` of a matrix
     * that is none is NO_BATCH. */
    int64_t count;
    cudaDataType_t integers, offsets, values;
    cudssIndexBase_t base;
    const void *rows, *columns, *third; /* leading dimensions, or numbers of elements */
    const void *const *pointers[3];     /* to offsets, indices and values */
};
enum { POINTERS_TO_OFFSETS, POINTERS_TO_INDICES, POINTERS_TO_VALUES };
_Static_assert(sizeof(struct cudssMatrix) <= OBJECT_BYTES, "slots are too small");

static bool is_number(cudaDataType type) { return element_of(type) <= Z; }

static cudssStatus_t cudssMatrixCreateDn(cudssMatrix_t *result, int64_t rows, int64_t columns, int64_t ld,
                                         const void *values, cudaDataType_t type, cudssLayout_t layout) {
    static const char function[] = "cudssMatrixCreateDn";
    DSS_CHECK(is_size(rows) && is_size(columns) && is_size(ld) && ld >= rows,
              "%s: the matrix is %lld by %lld, and its columns are %lld elements apart", function, (long long)rows,
              (long long)columns, (long long)ld);
    DSS_SUPPORT(layout == CUDSS_LAYOUT_COL_MAJOR, "%s: layout must be CUDSS_LAYOUT_COL_MAJOR", function);
    DSS_SUPPORT(is_number(type), "%s: values cannot be of type %d", function, (int)type);
    DSS_RETURN_IF(dss_new(DSS_MATRIX, function, result));
    (*result)->dense = (struct dense){.rows = rows, .columns = columns, .ld = larger(ld, 1), .values = (void *)values};
    (*result)->dense.type = element_of(type), (*result)->dense.value_type = type;
    (*result)->dense.order = CUSPARSE_ORDER_COL, (*result)->dense.batch = 1;
    (*result)->count = NO_BATCH;
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssMatrixCreateCsr(cudssMatrix_t *result, int64_t rows, int64_t columns, int64_t nnz,
                                          const void *offsets, const void *ends, const void *indices,
                                          const void *values, cudaDataType_t offset_type, cudaDataType_t index_type,
                                          cudaDataType_t type, cudssMatrixType_t kind, cudssMatrixViewType_t view,
                                          cudssIndexBase_t base) {
    static const char function[] = "cudssMatrixCreateCsr";
    DSS_CHECK(is_size(rows) && is_size(columns) && is_size(nnz), "%s: nrows is %lld, ncols is %lld and nnz is %lld",
              function, (long long)rows, (long long)columns, (long long)nnz);
    DSS_SUPPORT(!ends, "%s: 'rowEnd' must be a null pointer", function);
    DSS_SUPPORT((offset_type == CUDA_R_32I || offset_type == CUDA_R_64I) &&
                    (index_type == CUDA_R_32I || index_type == CUDA_R_64I),
                "%s: indices must be of 32 or 64 bits, not of types %d and %d", function, (int)offset_type,
                (int)index_type);
    DSS_SUPPORT(is_number(type), "%s: values cannot be of type %d", function, (int)type);
    DSS_CHECK((unsigned)kind <= CUDSS_MTYPE_HPD && (unsigned)view <= CUDSS_MVIEW_UPPER && (unsigned)base <= 1,
              "%s: mtype is %d, mview is %d and indexBase is %d", function, (int)kind, (int)view, (int)base);
    DSS_RETURN_IF(dss_new(DSS_MATRIX, function, result));
    cudssMatrix_t made = *result;
    made->is_sparse = true, made->type = kind, made->view = view, made->count = NO_BATCH;
    made->matrix = (struct matrix){.format = CUSPARSE_FORMAT_CSR, .rows = rows, .columns = columns, .count = nnz};
    made->matrix.offsets = (void *)offsets, made->matrix.indices = (void *)indices,
    made->matrix.values = (void *)values;
    made->matrix.offset_type = offset_type == CUDA_R_64I ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
    made->matrix.index_type = index_type == CUDA_R_64I ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
    made->matrix.type = element_of(type), made->matrix.value_type = type;
    made->matrix.base = (int64_t)base, made->matrix.batch = 1;
    return CUDSS_STATUS_SUCCESS;
}

/* ---- batches of matrices ----------------------------------------------------------------------------------------- */

static bool is_integer(cudaDataType type) { return type == CUDA_R_32I || type == CUDA_R_64I; }

static cudssStatus_t cudssMatrixCreateBatchDn(cudssMatrix_t *result, int64_t count, const void *rows,
                                              const void *columns, const void *ld, const void *const *values,
                                              cudaDataType_t integers, cudaDataType_t type, cudssLayout_t layout) {
    static const char function[] = "cudssMatrixCreateBatchDn";
    DSS_CHECK(is_size(count) && (!count || (rows && columns && ld && values)),
              "%s: there are %lld matrices, or an array is a null pointer", function, (long long)count);
    DSS_SUPPORT(is_integer(integers) && is_number(type), "%s: integers are of type %d and values of type %d", function,
                (int)integers, (int)type);
    DSS_SUPPORT(layout == CUDSS_LAYOUT_COL_MAJOR, "%s: layout must be CUDSS_LAYOUT_COL_MAJOR", function);
    DSS_RETURN_IF(dss_new(DSS_MATRIX, function, result));
    cudssMatrix_t made = *result;
    made->count = count, made->integers = integers, made->values = type;
    made->rows = rows, made->columns = columns, made->third = ld;
    made->pointers[POINTERS_TO_VALUES] = values;
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssMatrixCreateBatchCsr(cudssMatrix_t *result, int64_t count, const void *rows,
                                               const void *columns, const void *nnz, const void *const *offsets,
                                               const void *const *ends, const void *const *indices,
                                               const void *const *values, cudaDataType_t offset_type,
                                               cudaDataType_t index_type, cudaDataType_t type, cudssMatrixType_t kind,
                                               cudssMatrixViewType_t view, cudssIndexBase_t base) {
    static const char function[] = "cudssMatrixCreateBatchCsr";
    DSS_CHECK(is_size(count) && (!count || (rows && columns && nnz && offsets && indices)),
              "%s: there are %lld matrices, or an array is a null pointer", function, (long long)count);
    DSS_SUPPORT(!ends, "%s: 'rowEnd' must be a null pointer", function);
    DSS_SUPPORT(is_integer(index_type) && offset_type == index_type && is_number(type),
                "%s: offsets are of type %d, indices of type %d and values of type %d", function, (int)offset_type,
                (int)index_type, (int)type);
    DSS_CHECK((unsigned)kind <= CUDSS_MTYPE_HPD && (unsigned)view <= CUDSS_MVIEW_UPPER && (unsigned)base <= 1,
              "%s: mtype is %d, mview is %d and indexBase is %d", function, (int)kind, (int)view, (int)base);
    DSS_RETURN_IF(dss_new(DSS_MATRIX, function, result));
    cudssMatrix_t made = *result;
    made->is_sparse = true, made->type = kind, made->view = view, made->base = base;
    made->count = count, made->integers = index_type, made->offsets = offset_type, made->values = type;
    made->rows = rows, made->columns = columns, made->third = nnz;
    made->pointers[POINTERS_TO_OFFSETS] = offsets, made->pointers[POINTERS_TO_INDICES] = indices;
    made->pointers[POINTERS_TO_VALUES] = values;
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssMatrixSetBatchValues(cudssMatrix_t matrix, const void *const *values) {
    DSS_RETURN_IF(dss_object(matrix, DSS_MATRIX, "cudssMatrixSetBatchValues", "matrix"));
    DSS_CHECK(matrix->count != NO_BATCH, "cudssMatrixSetBatchValues: the matrix is no batch");
    matrix->pointers[POINTERS_TO_VALUES] = values;
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssMatrixSetBatchCsrPointers(cudssMatrix_t matrix, const void *const *offsets,
                                                    const void *const *ends, const void *const *indices,
                                                    const void *const *values) {
    DSS_RETURN_IF(dss_object(matrix, DSS_MATRIX, "cudssMatrixSetBatchCsrPointers", "matrix"));
    DSS_CHECK(matrix->count != NO_BATCH && matrix->is_sparse,
              "cudssMatrixSetBatchCsrPointers: the matrix is no batch of sparse matrices");
    DSS_SUPPORT(!ends, "cudssMatrixSetBatchCsrPointers: 'rowEnd' must be a null pointer");
    matrix->pointers[POINTERS_TO_OFFSETS] = offsets, matrix->pointers[POINTERS_TO_INDICES] = indices;
    matrix->pointers[POINTERS_TO_VALUES] = values;
    return CUDSS_STATUS_SUCCESS;
}

static int64_t integer_at(cudaDataType_t type, const void *integers, int64_t k) {
    return type == CUDA_R_64I ? ((const int64_t *)integers)[k] : ((const int32_t *)integers)[k];
}

/* The arrays of a batch can be read: they are memory of the host, or of the device. */
static cudssStatus_t check_arrays(const char *function, const struct cudssMatrix *batch) {
    size_t size = (batch->integers == CUDA_R_64I ? 8u : 4u) * (size_t)batch->count;
    const void *shapes[] = {batch->rows, batch->columns, batch->third};
    for (int i = 0; i < 3; i++) {
        const void *pointers = batch->pointers[i];
        if (memory_check((uint64_t)shapes[i], size, RANGE_ANY, "an array of a batch", NULL) ||
            (pointers && memory_check((uint64_t)pointers, (size_t)batch->count * sizeof pointers, RANGE_ANY,
                                      "an array of pointers of a batch", NULL)))
            return dss_fail(CUDSS_STATUS_INVALID_VALUE, "%s: an array of a batch of %lld matrices cannot be read",
                            function, (long long)batch->count);
    }
    DSS_CHECK(batch->pointers[POINTERS_TO_VALUES], "%s: a batch has no values", function);
    return CUDSS_STATUS_SUCCESS;
}

/* Matrix number k, in the slot of one that is no object of its own. */
static cudssStatus_t take_one(const char *function, const struct cudssMatrix *batch, int64_t k,
                              struct cudssMatrix *one) {
    int64_t rows = integer_at(batch->integers, batch->rows, k), third = integer_at(batch->integers, batch->third, k);
    int64_t columns = integer_at(batch->integers, batch->columns, k);
    void *values = (void *)(uintptr_t)batch->pointers[POINTERS_TO_VALUES][k];
    DSS_CHECK(is_size(rows) && is_size(columns) && is_size(third) && (batch->is_sparse || third >= rows),
              "%s: matrix %lld of a batch is %lld by %lld, with %lld elements, or columns so far apart", function,
              (long long)k, (long long)rows, (long long)columns, (long long)third);
    *one = (struct cudssMatrix){
        .is_sparse = batch->is_sparse, .type = batch->type, .view = batch->view, .count = NO_BATCH};
    if (!batch->is_sparse) {
        one->dense = (struct dense){.rows = rows, .columns = columns, .ld = larger(third, 1), .values = values};
        one->dense.type = element_of(batch->values), one->dense.value_type = batch->values;
        one->dense.order = CUSPARSE_ORDER_COL, one->dense.batch = 1;
        return CUDSS_STATUS_SUCCESS;
    }
    cusparseIndexType_t index = batch->integers == CUDA_R_64I ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
    one->matrix = (struct matrix){.format = CUSPARSE_FORMAT_CSR, .rows = rows, .columns = columns, .count = third};
    one->matrix.offsets = (void *)(uintptr_t)batch->pointers[POINTERS_TO_OFFSETS][k];
    one->matrix.indices = (void *)(uintptr_t)batch->pointers[POINTERS_TO_INDICES][k];
    one->matrix.values = values;
    one->matrix.offset_type = one->matrix.index_type = index;
    one->matrix.type = element_of(batch->values), one->matrix.value_type = batch->values;
    one->matrix.base = (int64_t)batch->base, one->matrix.batch = 1;
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssMatrixDestroy(cudssMatrix_t matrix) {
    return dss_destroy(matrix, DSS_MATRIX, "cudssMatrixDestroy");
}

static cudssStatus_t cudssMatrixSetValues(cudssMatrix_t matrix, const void *values) {
    DSS_RETURN_IF(dss_object(matrix, DSS_MATRIX, "cudssMatrixSetValues", "matrix"));
    DSS_CHECK(matrix->count == NO_BATCH, "cudssMatrixSetValues: the matrix is a batch");
    if (matrix->is_sparse) matrix->matrix.values = (void *)values;
    else matrix->dense.values = (void *)values;
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssMatrixSetCsrPointers(cudssMatrix_t matrix, const void *offsets, const void *ends,
                                               const void *indices, const void *values) {
    DSS_RETURN_IF(dss_object(matrix, DSS_MATRIX, "cudssMatrixSetCsrPointers", "matrix"));
    DSS_CHECK(matrix->is_sparse && matrix->count == NO_BATCH,
              "cudssMatrixSetCsrPointers: the matrix is dense, or a batch");
    DSS_SUPPORT(!ends, "cudssMatrixSetCsrPointers: 'rowEnd' must be a null pointer");
    matrix->matrix.offsets = (void *)offsets, matrix->matrix.indices = (void *)indices;
    matrix->matrix.values = (void *)values;
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssMatrixGetFormat(const cudssMatrix_t matrix, int *format) {
    DSS_RETURN_IF(dss_object(matrix, DSS_MATRIX, "cudssMatrixGetFormat", "matrix"));
    DSS_CHECK(format, "cudssMatrixGetFormat: 'format' is a null pointer");
    *format = matrix->is_sparse ? CUDSS_MFORMAT_CSR : CUDSS_MFORMAT_DENSE;
    if (matrix->count != NO_BATCH) *format |= CUDSS_MFORMAT_BATCH;
    return CUDSS_STATUS_SUCCESS;
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

struct state {
    _Atomic unsigned references; /* the data's, and those of operations */
    pthread_mutex_t lock;
    int64_t *wanted, wanted_count; /* the user's order, or NULL */
    int64_t *order, n;             /* what the analysis has chosen; NULL: there was none */
    bool known;
    struct factors factors;
    enum element type; /* of the matrix that the factors are of */
    bool has_inertia;  /* and of a matrix that has one */
    int positive, negative;
};

/* What is known of one matrix. */
struct system {
    struct state *state;
    int64_t ordered, analysed; /* one more than the rows of the matrix, or 0 */
    bool factored;
};
struct cudssData {
    struct object object;
    struct system part;
    struct system *parts; /* of a batch; NULL: there was none */
    int64_t count;
};

static bool system_begin(struct system *part) {
    struct state *state = calloc(1, sizeof *state);
    *part = (struct system){.state = state};
    if (!state) return false;
    state->references = 1;
    pthread_mutex_init(&state->lock, NULL);
    return true;
}

static void state_release(struct state *state) {
    if (atomic_fetch_sub_explicit(&state->references, 1, memory_order_acq_rel) != 1) return;
    factors_free(&state->factors);
    free(state->wanted), free(state->order);
    pthread_mutex_destroy(&state->lock);
    free(state);
}

/* Forget a batch. */
static void drop_systems(cudssData_t data) {
    for (int64_t k = 0; k < data->count; k++)
        if (data->parts[k].state) state_release(data->parts[k].state);
    free(data->parts);
    data->parts = NULL, data->count = 0;
}

static void end_call(struct call *call) { state_release(((struct sparse *)call)->plan); }

/* Columns of the whole matrix, of which the arrays may have one triangle: the other is its mirror image. */
static CUresult whole_columns(struct sparse *sparse, cudssMatrixType_t type, cudssMatrixViewType_t view,
                              struct rows *columns) {
    struct rows half;
    bool mirrored = type != CUDSS_MTYPE_GENERAL && view != CUDSS_MVIEW_FULL;
    bool conjugate = type == CUDSS_MTYPE_HERMITIAN || type == CUDSS_MTYPE_HPD;
    RETURN_IF(
        rows_of(sparse, &sparse->a, "the matrix", CUSPARSE_OPERATION_TRANSPOSE, false, mirrored ? &half : columns));
    if (!mirrored) return CUDA_SUCCESS;
    CUresult status = rows_new(columns, half.rows, half.rows, 2 * half.count, half.type);
    for (int pass = 0; !status && pass < 2; pass++) {
        for (int64_t j = 0; j < half.rows; j++)
            for (int64_t e = half.offsets[j]; e < half.offsets[j + 1]; e++) {
                int64_t i = half.indices[e];
                if (view == CUDSS_MVIEW_LOWER ? i < j : i > j) continue;
                for (int copy = 0; copy < (i == j ? 1 : 2); copy++) {
                    int64_t column = copy ? i : j, at = columns->offsets[column + !pass];
                    if (!pass) {
                        columns->offsets[column + 1] = at + 1;
                        continue;
                    }
                    columns->indices[at] = copy ? j : i;
                    if (half.type == D) ((double *)columns->values)[at] = ((const double *)half.values)[e];
                    else {
                        number value = ((const number *)half.values)[e];
                        ((number *)columns->values)[at] = copy && conjugate ? conj(value) : value;
                    }
                    columns->offsets[column]++;
                }
            }
        /* Counts become beginnings, and after the second pass ends become beginnings again. */
        if (!pass) {
            for (int64_t j = 0; j < half.rows; j++) columns->offsets[j + 1] += columns->offsets[j];
        } else {
            for (int64_t j = half.rows; j > 0; j--) columns->offsets[j] = columns->offsets[j - 1];
            columns->offsets[0] = 0;
        }
    }
    if (!status) columns->count = columns->offsets[half.rows];
    rows_free(&half);
    return status;
}

/* One triangle has the structure of both. */
static CUresult run_analysis(struct sparse *sparse) {
    struct state *state = sparse->plan;
    struct rows columns;
    RETURN_IF(touch_structure(sparse, &sparse->a, "the matrix"));
    struct matrix structure = sparse->a;
    structure.values = NULL;
    RETURN_IF(rows_of(sparse, &structure, "the matrix", CUSPARSE_OPERATION_TRANSPOSE, false, &columns));
    int64_t n = columns.rows, *order = malloc(((size_t)n + 1) * sizeof *order);
    bool good = order, natural = sparse->form == CUDSS_REORDERING_ALG_NONE;
    for (int64_t k = 0; good && natural && k < n; k++) order[k] = k;
    if (good && !natural) good = factors_order(&columns, order);
    rows_free(&columns);
    if (!good) {
        free(order);
        return no_memory("the order of a sparse matrix");
    }
    pthread_mutex_lock(&state->lock);
    if (state->wanted && state->wanted_count == n) memcpy(order, state->wanted, (size_t)n * sizeof *order);
    free(state->order);
    state->order = order, state->n = n;
    pthread_mutex_unlock(&state->lock);
    return CUDA_SUCCESS;
}

static CUresult run_factorization(struct sparse *sparse) {
    struct state *state = sparse->plan;
    struct rows columns;
    struct factors factors;
    cudssMatrixType_t kind = (cudssMatrixType_t)sparse->op_a;
    int64_t n = sparse->a.rows, *order = malloc(((size_t)n + 1) * sizeof *order);
    int positive = 0, negative = 0;
    bool has_inertia = kind != CUDSS_MTYPE_GENERAL &&
                       (!is_complex(sparse->a.type) || kind == CUDSS_MTYPE_HERMITIAN || kind == CUDSS_MTYPE_HPD);
    if (!order) return no_memory("the factors of a sparse matrix");
    pthread_mutex_lock(&state->lock);
    bool good = state->order && state->n == n;
    if (good) memcpy(order, state->order, (size_t)n * sizeof *order);
    pthread_mutex_unlock(&state->lock);
    CUresult status = good ? touch_sparse(sparse, &sparse->a, "the matrix")
                           : fail(CUDA_ERROR_INVALID_VALUE, "%s: the analysis has failed", sparse->function);
    if (!status) status = whole_columns(sparse, kind, (cudssMatrixViewType_t)sparse->op_b, &columns);
    if (!status) {
        status = factors_make(&factors, &columns, order);
        if (!status && has_inertia) {
            status = factors_inertia(&factors, &columns, &positive, &negative);
            if (status) factors_free(&factors);
        }
        rows_free(&columns);
    }
    free(order);
    if (status) return status;
    pthread_mutex_lock(&state->lock);
    factors_free(&state->factors);
    state->factors = factors, state->type = sparse->a.type;
    state->has_inertia = has_inertia, state->positive = positive, state->negative = negative;
    state->known = true;
    pthread_mutex_unlock(&state->lock);
    return CUDA_SUCCESS;
}

struct solution {
    const struct factors *factors;
    const struct dense *b, *x;
    cudssSolveMode_t op;
    _Atomic bool no_memory;
};

static void solve_columns(void *data, int64_t first, int64_t last) {
    struct solution *s = data;
    int64_t n = s->factors->n;
    number *b = malloc(((size_t)n + 1) * sizeof *b), *x = malloc(((size_t)n + 1) * sizeof *x);
    if (!b || !x) atomic_store(&s->no_memory, true);
    for (int64_t k = first; b && x && k < last; k++) {
        for (int64_t i = 0; i < n; i++) b[i] = element_load(s->b->type, s->b->values, i + k * s->b->ld);
        factors_solve(s->factors, s->op, b, x);
        for (int64_t i = 0; i < n; i++) element_store(s->x->type, s->x->values, i + k * s->x->ld, x[i]);
    }
    free(b), free(x);
}

static CUresult run_solution(struct sparse *sparse) {
    struct state *state = sparse->plan;
    struct solution s = {&state->factors, &sparse->x, &sparse->y, (cudssSolveMode_t)sparse->form, false};
    RETURN_IF(touch_dense(sparse, &sparse->x, "the values of rhs"));
    RETURN_IF(touch_dense(sparse, &sparse->y, "the values of solution"));
    pthread_mutex_lock(&state->lock);
    bool fits = state->known && state->factors.n == sparse->y.rows;
    if (fits) in_parts(solve_columns, &s, s.x->columns, state->factors.lower_offsets[s.factors->n] * s.x->columns);
    pthread_mutex_unlock(&state->lock);
    if (s.no_memory) return no_memory("a linear system");
    return fits ? CUDA_SUCCESS
                : fail(CUDA_ERROR_INVALID_VALUE, "%s: there are no factors of this matrix", sparse->function);
}

/* ---- data and phases --------------------------------------------------------------------------------------------- */

static cudssStatus_t cudssDataCreate(const cudssHandle_t handle, cudssData_t *data) {
    DSS_RETURN_IF(dss_object(handle, DSS_LIBRARY, "cudssDataCreate", "handle"));
    DSS_RETURN_IF(dss_new(DSS_DATA, "cudssDataCreate", data));
    if (system_begin(&(*data)->part)) return CUDSS_STATUS_SUCCESS;
    object_destroy(*data, DSS_DATA, "cudssDataCreate");
    return dss_fail(CUDSS_STATUS_ALLOC_FAILED, "cudssDataCreate: the host has no memory for an object");
}

static cudssStatus_t cudssDataDestroy(cudssHandle_t handle, cudssData_t data) {
    DSS_RETURN_IF(dss_object(handle, DSS_LIBRARY, "cudssDataDestroy", "handle"));
    DSS_RETURN_IF(dss_object(data, DSS_DATA, "cudssDataDestroy", "data"));
    struct state *state = data->part.state;
    drop_systems(data);
    DSS_RETURN_IF(dss_destroy(data, DSS_DATA, "cudssDataDestroy"));
    state_release(state);
    return CUDSS_STATUS_SUCCESS;
}

/* What the phases find out, and after they have read what is about to change. */
static cudssStatus_t wait_for_phases(cudssHandle_t handle) {
    CUstream stream;
    CUresult status = math_stream(handle->stream, &stream);
    if (!status) status = cuStreamSynchronize((CUstream)handle->stream);
    return dss_status(status);
}

/* An order of rows and columns of the user's, in memory of the host or of the device. */
static cudssStatus_t set_order(struct state *state, const void *value, size_t size) {
    static const char function[] = "cudssDataSet";
    const int *given = value;
    int64_t count = (int64_t)(size / sizeof *given), *order = NULL;
    DSS_CHECK(size % sizeof *given == 0 && (value || !size), "%s: USER_PERM has %zu bytes at %p, no array of int",
              function, size, value);
    if (size) {
        DSS_CHECK(!memory_check((uint64_t)value, size, RANGE_ANY, "USER_PERM", NULL),
                  "%s: USER_PERM, %zu bytes at %p, cannot be read", function, size, value);
        order = malloc(size * 2);
        bool *seen = calloc((size_t)count, sizeof *seen), good = order && seen;
        int64_t bad = -1;
        for (int64_t k = 0; good && bad < 0 && k < count; k++) {
            order[k] = given[k];
            if (order[k] < 0 || order[k] >= count || seen[order[k]]) bad = k;
            else seen[order[k]] = true;
        }
        free(seen);
        if (!good || bad >= 0) {
            int64_t number = good ? order[bad] : 0;
            free(order);
            if (!good) return dss_status(no_memory("an order of a sparse matrix"));
            return dss_fail(CUDSS_STATUS_INVALID_VALUE,
                            "%s: USER_PERM must have each number from 0 to %lld once, but number %lld is %lld",
                            function, (long long)count - 1, (long long)bad, (long long)number);
        }
    }
    pthread_mutex_lock(&state->lock);
    free(state->wanted);
    state->wanted = order, state->wanted_count = count;
    pthread_mutex_unlock(&state->lock);
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssDataSet(const cudssHandle_t handle, cudssData_t data, cudssDataParam_t parameter,
                                  const void *value, size_t size) {
    DSS_RETURN_IF(dss_object(handle, DSS_LIBRARY, "cudssDataSet", "handle"));
    DSS_RETURN_IF(dss_object(data, DSS_DATA, "cudssDataSet", "data"));
    DSS_SUPPORT(parameter == CUDSS_DATA_INFO || parameter == CUDSS_DATA_USER_PERM,
                "cudssDataSet: the CPU device does not take the parameter %d", (int)parameter);
    if (parameter == CUDSS_DATA_INFO) return CUDSS_STATUS_SUCCESS;
    DSS_RETURN_IF(wait_for_phases(handle));
    return set_order(data->part.state, value, size);
}

/* Arrays that tell of one matrix: how many bytes, and the array, in memory that is the caller's to free. */
static cudssStatus_t get_array(struct state *state, cudssDataParam_t parameter, void **array, size_t *bytes) {
    static const char function[] = "cudssDataGet";
    bool of_analysis = parameter == CUDSS_DATA_PERM_REORDER_ROW || parameter == CUDSS_DATA_PERM_REORDER_COL ||
                       parameter == CUDSS_DATA_PERM_MATCHING;
    DSS_CHECK(of_analysis ? state->order != NULL : state->known, "%s: parameter %d is known after the %s", function,
              (int)parameter, of_analysis ? "analysis" : "factorization");
    const struct factors *f = &state->factors;
    int64_t n = of_analysis ? state->n : f->n;
    size_t unit = parameter == CUDSS_DATA_DIAG ? element_size(state->type)
                  : parameter == CUDSS_DATA_SCALE_ROW || parameter == CUDSS_DATA_SCALE_COL
                      ? element_size(real_of(state->type))
                      : sizeof(int);
    void *result = malloc(((size_t)n + 1) * unit);
    if (!result) return dss_status(no_memory("what is known of a sparse matrix"));
    int *numbers = result;
    for (int64_t k = 0; k < n; k++) switch ((int)parameter) {
            case CUDSS_DATA_PERM_REORDER_ROW:
            case CUDSS_DATA_PERM_REORDER_COL: numbers[k] = (int)state->order[k]; break;
            case CUDSS_DATA_PERM_MATCHING: numbers[k] = (int)k; break; /* there is no matching */
            case CUDSS_DATA_PERM_ROW: numbers[f->place[k]] = (int)k; break;
            case CUDSS_DATA_PERM_COL: numbers[k] = (int)f->order[k]; break;
            case CUDSS_DATA_DIAG: element_store(state->type, result, k, f->upper[f->upper_offsets[k + 1] - 1]); break;
            default: element_store(real_of(state->type), result, k, 1); /* and nothing is scaled */
        }
    *array = result, *bytes = (size_t)n * unit;
    return CUDSS_STATUS_SUCCESS;
}

static bool is_array(cudssDataParam_t parameter) {
    return (parameter >= CUDSS_DATA_PERM_REORDER_ROW && parameter <= CUDSS_DATA_DIAG) ||
           (parameter >= CUDSS_DATA_PERM_MATCHING && parameter <= CUDSS_DATA_SCALE_COL);
}

/* Counts, those of a batch added up. */
static void count_systems(const struct cudssData *data, int64_t *elements, int *pivots) {
    const struct system *parts = data->parts ? data->parts : &data->part;
    for (int64_t k = 0; k < (data->parts ? data->count : 1); k++) {
        struct state *state = parts[k].state;
        pthread_mutex_lock(&state->lock);
        const struct factors *f = &state->factors;
        if (state->known) *elements += f->lower_offsets[f->n] + f->upper_offsets[f->n], *pivots += (int)f->pivots;
        pthread_mutex_unlock(&state->lock);
    }
}

static cudssStatus_t cudssDataGet(const cudssHandle_t handle, const cudssData_t data, cudssDataParam_t parameter,
                                  void *value, size_t size, size_t *written) {
    static const char function[] = "cudssDataGet";
    DSS_RETURN_IF(dss_object(handle, DSS_LIBRARY, function, "handle"));
    DSS_RETURN_IF(dss_object(data, DSS_DATA, function, "data"));
    DSS_RETURN_IF(wait_for_phases(handle));
    int64_t result[16] = {0};
    void *array = NULL;
    const void *from = result;
    size_t bytes = sizeof(int64_t);
    int pair[2] = {0};
    struct state *state = data->part.state;
    DSS_SUPPORT(!data->parts || (!is_array(parameter) && parameter != CUDSS_DATA_INERTIA),
                "%s: parameter %d tells of one matrix, and this is a batch", function, (int)parameter);
    switch ((int)parameter) {
        case CUDSS_DATA_INFO:
        case CUDSS_DATA_NSUPERPANELS: /* there are none, and no refinement */
        case CUDSS_DATA_IR_N_STEPS: bytes = sizeof(int); break;
        case CUDSS_DATA_LU_NNZ: count_systems(data, result, pair); break;
        case CUDSS_DATA_NPIVOTS:
            count_systems(data, result, pair);
            bytes = sizeof *pair, from = pair;
            break;
        case CUDSS_DATA_INERTIA: {
            pthread_mutex_lock(&state->lock);
            bool known = state->known, has_inertia = state->has_inertia;
            pair[0] = state->positive, pair[1] = state->negative;
            pthread_mutex_unlock(&state->lock);
            DSS_CHECK(known, "%s: the inertia is known after the factorization", function);
            DSS_SUPPORT(has_inertia, "%s: INERTIA is of matrices that are symmetric and real, or Hermitian", function);
            bytes = sizeof pair, from = pair;
            break;
        }
        case CUDSS_DATA_MEMORY_ESTIMATES: bytes = sizeof result; break; /* none of it is the device's */
        case CUDSS_DATA_HYBRID_DEVICE_MEMORY_MIN: break;
        default: {
            DSS_SUPPORT(is_array(parameter), "%s: the CPU device does not have the parameter %d", function,
                        (int)parameter);
            pthread_mutex_lock(&state->lock);
            cudssStatus_t status = get_array(state, parameter, &array, &bytes);
            pthread_mutex_unlock(&state->lock);
            DSS_RETURN_IF(status);
            from = array;
        }
    }
    if (written) *written = bytes;
    bool asks = !value && !size; /* for the size */
    bool fits = value && size >= bytes;
    bool reaches = fits && !memory_check((uint64_t)value, bytes, RANGE_ANY, "'value'", NULL);
    if (reaches) memcpy(value, from, bytes);
    free(array);
    if (asks || reaches) return CUDSS_STATUS_SUCCESS;
    DSS_CHECK(fits, "%s: parameter %d has %zu bytes, not %zu", function, (int)parameter, bytes, size);
    return dss_fail(CUDSS_STATUS_INVALID_VALUE, "%s: 'value', %zu bytes at %p, cannot be written", function, bytes,
                    value);
}

static cudssStatus_t submit(cudssHandle_t handle, struct system *part, CUresult (*run)(struct sparse *sparse), int form,
                            const struct cudssMatrix *matrix, const struct cudssMatrix *solution,
                            const struct cudssMatrix *rhs) {
    CUstream stream;
    CUresult status = math_stream(handle->stream, &stream);
    if (status) return dss_status(status);
    struct sparse *sparse = sparse_new("cudssExecute", run);
    if (!sparse) return dss_status(no_memory("a call of cuDSS"));
    atomic_fetch_add_explicit(&part->state->references, 1, memory_order_relaxed);
    sparse->call.end = end_call;
    sparse->plan = part->state;
    sparse->form = form;
    sparse->a = matrix->matrix;
    sparse->op_a = (cusparseOperation_t)matrix->type, sparse->op_b = (cusparseOperation_t)matrix->view;
    if (solution) sparse->y = solution->dense;
    if (rhs) sparse->x = rhs->dense;
    return dss_status(math_submit(stream, &sparse->call, false));
}

enum { FACTORS = CUDSS_PHASE_FACTORIZATION | CUDSS_PHASE_REFACTORIZATION };

/* The phases for one matrix; the solution and rhs are there if it is to be solved. */
static cudssStatus_t execute_one(cudssHandle_t handle, int phase, const struct cudssConfig *config, struct system *part,
                                 const struct cudssMatrix *matrix, const struct cudssMatrix *solution,
                                 const struct cudssMatrix *rhs) {
    static const char function[] = "cudssExecute";
    int64_t rows = matrix->matrix.rows;
    DSS_CHECK(matrix->is_sparse && rows == matrix->matrix.columns, "%s: inputMatrix must be sparse and square",
              function);
    if (phase & CUDSS_PHASE_REORDERING) {
        pthread_mutex_lock(&part->state->lock);
        int64_t wanted = part->state->wanted ? part->state->wanted_count : rows;
        pthread_mutex_unlock(&part->state->lock);
        DSS_CHECK(wanted == rows, "%s: USER_PERM has %lld numbers, but inputMatrix has %lld rows", function,
                  (long long)wanted, (long long)rows);
        int algorithm = setting(config, CUDSS_CONFIG_REORDERING_ALG);
        DSS_RETURN_IF(submit(handle, part, run_analysis, algorithm, matrix, NULL, NULL));
        part->ordered = rows + 1;
    }
    if (phase & CUDSS_PHASE_SYMBOLIC_FACTORIZATION) {
        DSS_CHECK(part->ordered == rows + 1, "%s: the reordering of this matrix comes first", function);
        part->analysed = rows + 1;
    }
    if (phase & FACTORS) {
        DSS_CHECK(part->analysed == rows + 1, "%s: the analysis of this matrix comes first", function);
        DSS_RETURN_IF(submit(handle, part, run_factorization, 0, matrix, NULL, NULL));
        part->factored = true;
    }
    if (!(phase & CUDSS_PHASE_SOLVE)) return CUDSS_STATUS_SUCCESS;
    DSS_CHECK(part->factored, "%s: the factorization comes first", function);
    const struct dense *x = &solution->dense, *b = &rhs->dense;
    DSS_CHECK(!solution->is_sparse && !rhs->is_sparse && x->rows == matrix->matrix.rows && b->rows == x->rows &&
                  b->columns == x->columns,
              "%s: inputMatrix has %lld rows, the solution is %lld by %lld and rhs %lld by %lld", function,
              (long long)matrix->matrix.rows, (long long)x->rows, (long long)x->columns, (long long)b->rows,
              (long long)b->columns);
    DSS_SUPPORT(x->type == b->type && x->type == matrix->matrix.type, "%s: the matrices are of types %d, %d and %d",
                function, (int)matrix->matrix.value_type, (int)x->value_type, (int)b->value_type);
    return submit(handle, part, run_solution, setting(config, CUDSS_CONFIG_SOLVE_MODE), matrix, solution, rhs);
}

/* One after the other. What the arrays of pointers have is read here, after the work that may write it. */
static cudssStatus_t execute_batch(cudssHandle_t handle, int phase, const struct cudssConfig *config, cudssData_t data,
                                   const struct cudssMatrix *matrix, const struct cudssMatrix *solution,
                                   const struct cudssMatrix *rhs) {
    static const char function[] = "cudssExecute";
    DSS_SUPPORT(!data->part.state->wanted, "%s: the CPU device takes a USER_PERM for one matrix, not for a batch",
                function);
    DSS_RETURN_IF(wait_for_phases(handle));
    const struct cudssMatrix *batches[] = {matrix, solution, rhs};
    struct cudssMatrix ones[3];
    for (int i = 0; i < 3 && batches[i]; i++) {
        DSS_CHECK(batches[i]->count == matrix->count, "%s: the batches have %lld and %lld matrices", function,
                  (long long)matrix->count, (long long)batches[i]->count);
        DSS_RETURN_IF(check_arrays(function, batches[i]));
    }
    if (phase & CUDSS_PHASE_REORDERING) {
        drop_systems(data);
        data->parts = calloc((size_t)matrix->count + 1, sizeof *data->parts);
        if (!data->parts) return dss_status(no_memory("a batch of matrices"));
        for (; data->count < matrix->count; data->count++)
            if (!system_begin(&data->parts[data->count])) return dss_status(no_memory("a batch of matrices"));
    }
    DSS_CHECK(data->parts && data->count == matrix->count, "%s: the analysis of this batch comes first", function);
    for (int64_t k = 0; k < matrix->count; k++) {
        for (int i = 0; i < 3 && batches[i]; i++) DSS_RETURN_IF(take_one(function, batches[i], k, &ones[i]));
        DSS_RETURN_IF(execute_one(handle, phase, config, &data->parts[k], &ones[0], &ones[1], &ones[2]));
    }
    return CUDSS_STATUS_SUCCESS;
}

static cudssStatus_t cudssExecute(cudssHandle_t handle, int phase, const cudssConfig_t config, cudssData_t data,
                                  const cudssMatrix_t matrix, cudssMatrix_t solution, const cudssMatrix_t rhs) {
    static const char function[] = "cudssExecute";
    DSS_RETURN_IF(dss_object(handle, DSS_LIBRARY, function, "handle"));
    DSS_RETURN_IF(dss_object(config, DSS_CONFIG, function, "config"));
    DSS_RETURN_IF(dss_object(data, DSS_DATA, function, "data"));
    DSS_RETURN_IF(dss_object(matrix, DSS_MATRIX, function, "inputMatrix"));
    DSS_CHECK(matrix->is_sparse, "%s: inputMatrix must be sparse and square", function);
    DSS_CHECK(phase && !(phase & ~(CUDSS_PHASE_ANALYSIS | FACTORS | CUDSS_PHASE_SOLVE)), "%s: %d is no phase", function,
              phase);
    int solve = phase & CUDSS_PHASE_SOLVE, whole = CUDSS_PHASE_SOLVE & ~CUDSS_PHASE_SOLVE_REFINEMENT;
    DSS_SUPPORT(!solve || (solve & whole) == whole, "%s: the CPU device has the phase SOLVE as a whole only", function);
    if (solve) {
        DSS_RETURN_IF(dss_object(solution, DSS_MATRIX, function, "solution"));
        DSS_RETURN_IF(dss_object(rhs, DSS_MATRIX, function, "rhs"));
        DSS_CHECK((solution->count == NO_BATCH) == (matrix->count == NO_BATCH) &&
                      (rhs->count == NO_BATCH) == (matrix->count == NO_BATCH),
                  "%s: one of the matrices is a batch, and another one is none", function);
    }
    const struct cudssMatrix *x = solve ? solution : NULL, *b = solve ? rhs : NULL;
    if (matrix->count != NO_BATCH) return execute_batch(handle, phase, config, data, matrix, x, b);
    return execute_one(handle, phase, config, &data->part, matrix, x, b);
}

#define DSS_ENTRY(name) MATH_ENTRY(cupola_cudss_table, name)

const struct entry direct_solver_entries[] = {
    DSS_ENTRY(cudssCreate),
    DSS_ENTRY(cudssDestroy),
    DSS_ENTRY(cudssGetProperty),
    DSS_ENTRY(cudssSetStream),
    DSS_ENTRY(cudssSetThreadingLayer),
    DSS_ENTRY(cudssSetDeviceMemHandler),
    DSS_ENTRY(cudssGetDeviceMemHandler),
    DSS_ENTRY(cudssConfigCreate),
    DSS_ENTRY(cudssConfigDestroy),
    DSS_ENTRY(cudssConfigSet),
    DSS_ENTRY(cudssConfigGet),
    DSS_ENTRY(cudssDataCreate),
    DSS_ENTRY(cudssDataDestroy),
    DSS_ENTRY(cudssDataSet),
    DSS_ENTRY(cudssDataGet),
    DSS_ENTRY(cudssExecute),
    DSS_ENTRY(cudssMatrixCreateDn),
    DSS_ENTRY(cudssMatrixCreateCsr),
    DSS_ENTRY(cudssMatrixCreateBatchDn),
    DSS_ENTRY(cudssMatrixCreateBatchCsr),
    DSS_ENTRY(cudssMatrixSetBatchValues),
    DSS_ENTRY(cudssMatrixSetBatchCsrPointers),
    DSS_ENTRY(cudssMatrixDestroy),
    DSS_ENTRY(cudssMatrixSetValues),
    DSS_ENTRY(cudssMatrixSetCsrPointers),
    DSS_ENTRY(cudssMatrixGetFormat),
    {NULL, NULL, NULL},
};
