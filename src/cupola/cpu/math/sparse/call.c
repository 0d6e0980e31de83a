/* Calls of cuSPARSE on their way into a stream, and what all of them need while they run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "sparse.h"

static CUresult run_call(struct call *call) {
    struct sparse *sparse = (struct sparse *)call;
    atomic_store_explicit(&sparse->bad.is, 0, memory_order_relaxed); /* a node of a graph runs again */
    RETURN_IF(touch(sparse, "the buffer", sparse->buffer, sparse->buffer_size, 1));
    CUresult status = sparse->run(sparse);
    return likely(!status) ? bad_index(sparse) : status;
}

struct sparse *sparse_new(const char *function, CUresult (*run)(struct sparse *sparse)) {
    struct sparse *sparse = calloc(1, sizeof *sparse);
    if (!sparse) return NULL;
    sparse->call.references = 1;
    sparse->call.run = run_call;
    sparse->function = function;
    sparse->run = run;
    return sparse;
}

void sparse_scalar(cusparseHandle_t handle, struct scalar *scalar, enum element type, const void *pointer) {
    scalar->type = type;
    scalar->device = NULL;
    if (handle->pointer_mode == CUSPARSE_POINTER_MODE_DEVICE) scalar->device = pointer;
    else memcpy(scalar->value, pointer, element_size(type));
}

cusparseStatus_t sparse_submit(cusparseHandle_t handle, struct sparse *sparse, bool wait) {
    CUstream stream;
    CUresult status = math_stream(handle->stream, &stream);
    if (unlikely(status)) {
        call_release(&sparse->call);
        return sparse_status(status);
    }
    return sparse_status(math_submit(stream, &sparse->call, wait));
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

CUresult scalar_load(const struct sparse *sparse, const struct scalar *scalar, number *value) {
    if (scalar->device) RETURN_IF(touch(sparse, "a scalar", scalar->device, 1, element_size(scalar->type)));
    *value = element_load(scalar->type, scalar->device ? scalar->device : scalar->value, 0);
    return CUDA_SUCCESS;
}

/* So many elements of that size. What is larger than the address space is no memory that there is. */
CUresult touch(const struct sparse *sparse, const char *what, const void *place, uint64_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    if (!bytes) return CUDA_SUCCESS;
    if (unlikely((uintptr_t)place % (size < 8 ? size : 8))) {
        thread_state.failed = CUDA_ERROR_MISALIGNED_ADDRESS;
        return fail(CUDA_ERROR_MISALIGNED_ADDRESS, "%s of %s, %p, is not aligned to its elements of %zu bytes", what,
                    sparse->function, place, size);
    }
    return math_touch(sparse->function, what, place, bytes);
}

/* Arrays of a batch: from the first to the last element of the last matrix. */
static uint64_t extent(int64_t batch, int64_t stride, int64_t count) {
    uint64_t size;
    if (batch <= 1) return (uint64_t)count;
    if (__builtin_mul_overflow((uint64_t)batch - 1, (uint64_t)stride, &size) ||
        __builtin_add_overflow(size, (uint64_t)count, &size))
        return UINT64_MAX;
    return size;
}

CUresult touch_structure(const struct sparse *sparse, const struct matrix *matrix, const char *name) {
    char what[64];
    int64_t offsets = matrix->format == CUSPARSE_FORMAT_COO ? matrix->count : major_count(matrix) + 1;
    snprintf(what, sizeof what, "the offsets of %s", name);
    if (matrix->format != CUSPARSE_FORMAT_BLOCKED_ELL)
        RETURN_IF(touch(sparse, what, matrix->offsets, extent(matrix->batch, matrix->offset_stride, offsets),
                        index_size(matrix->offset_type)));
    snprintf(what, sizeof what, "the indices of %s", name);
    return touch(sparse, what, matrix->indices, extent(matrix->batch, matrix->index_stride, matrix->count),
                 index_size(matrix->index_type));
}

CUresult touch_sparse(const struct sparse *sparse, const struct matrix *matrix, const char *name) {
    char what[64];
    RETURN_IF(touch_structure(sparse, matrix, name));
    snprintf(what, sizeof what, "the values of %s", name);
    return touch(sparse, what, matrix->values, extent(matrix->batch, matrix->value_stride, element_count(matrix)),
                 element_size(matrix->type));
}

CUresult touch_dense(const struct sparse *sparse, const struct dense *dense, const char *name) {
    if (!dense->rows || !dense->columns) return CUDA_SUCCESS;
    bool by_row = dense->order == CUSPARSE_ORDER_ROW;
    uint64_t lines = (uint64_t)(by_row ? dense->rows : dense->columns), size;
    if (__builtin_mul_overflow(lines - 1, (uint64_t)dense->ld, &size) ||
        __builtin_add_overflow(size, (uint64_t)(by_row ? dense->columns : dense->rows), &size) || size > INT64_MAX)
        size = UINT64_MAX;
    else size = extent(dense->batch, dense->stride, (int64_t)size);
    return touch(sparse, name, dense->values, size, element_size(dense->type));
}

CUresult touch_sparse_vector(const struct sparse *sparse, const struct sparse_vector *vector, const char *name) {
    char what[64];
    snprintf(what, sizeof what, "the indices of %s", name);
    RETURN_IF(touch(sparse, what, vector->indices, (uint64_t)vector->count, index_size(vector->index_type)));
    snprintf(what, sizeof what, "the values of %s", name);
    return touch(sparse, what, vector->values, (uint64_t)vector->count, element_size(vector->type));
}

void note_bad(struct sparse *sparse, const char *what, const char *name, int64_t place, int64_t value, int64_t limit) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&sparse->bad.is, &none, 1)) return;
    sparse->bad.what = what, sparse->bad.name = name, sparse->bad.place = place, sparse->bad.value = value,
    sparse->bad.limit = limit;
}

CUresult bad_index(const struct sparse *sparse) {
    if (likely(!atomic_load_explicit(&sparse->bad.is, memory_order_relaxed))) return CUDA_SUCCESS;
    thread_state.failed = CUDA_ERROR_ILLEGAL_ADDRESS;
    return fail(CUDA_ERROR_ILLEGAL_ADDRESS,
                "%s: number %lld of the %s of %s is %lld, without the base; it must be from 0 to %lld",
                sparse->function, (long long)sparse->bad.place, sparse->bad.what, sparse->bad.name,
                (long long)sparse->bad.value, (long long)sparse->bad.limit - 1);
}

struct matrix matrix_of_batch(struct matrix matrix, int64_t index) {
    if (matrix.batch <= 1) return matrix;
    matrix.offsets = (char *)matrix.offsets + index * matrix.offset_stride * (int64_t)index_size(matrix.offset_type);
    matrix.indices = (char *)matrix.indices + index * matrix.index_stride * (int64_t)index_size(matrix.index_type);
    matrix.values = (char *)matrix.values + index * matrix.value_stride * (int64_t)element_size(matrix.type);
    return matrix;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

struct parts {
    void (*work)(void *data, int64_t first, int64_t last);
    void *data;
    int64_t count, size;
};

static void part(void *data, uint64_t index) {
    const struct parts *parts = data;
    int64_t first = (int64_t)index * parts->size;
    parts->work(parts->data, first, smaller(first + parts->size, parts->count));
}

void in_parts(void (*work)(void *data, int64_t first, int64_t last), void *data, int64_t count, int64_t units) {
    enum { UNITS_OF_A_PART = 65536, MOST_PARTS = 1024 };
    int64_t parts = smaller(smaller(larger(units / UNITS_OF_A_PART, 1), MOST_PARTS), larger(count, 1));
    int64_t size = (count + parts - 1) / parts;
    struct parts all = {work, data, count, larger(size, 1)};
    cpu_pool_run(part, &all, (uint64_t)((count + all.size - 1) / all.size));
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

cusparseStatus_t check_operation(const char *function, const char *what, cusparseOperation_t op) {
    SPARSE_CHECK((unsigned)op <= CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE,
                 "%s: %s is %d; it must be NON_TRANSPOSE, TRANSPOSE or CONJUGATE_TRANSPOSE", function, what, (int)op);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t check_conjugation(const char *function, const char *what, cusparseOperation_t op, enum element type) {
    SPARSE_CHECK(op != CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE || is_complex(type),
                 "%s: %s is CONJUGATE_TRANSPOSE, but the numbers are real", function, what);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t check_compute(const char *function, cudaDataType compute) {
    SPARSE_CHECK(is_value_type(compute), "%s: computeType is %d, which is no type", function, (int)compute);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t check_matrix(const char *function, const struct matrix *matrix) {
    SPARSE_SUPPORT(matrix->type != ELEMENTS && matrix->index_type != CUSPARSE_INDEX_16U,
                   "%s: the CPU device does not calculate with values of type %d and indices of type %d", function,
                   (int)matrix->value_type, (int)matrix->index_type);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t check_no_triangle(const char *function, const struct matrix *matrix) {
    SPARSE_SUPPORT(!matrix->is_triangle,
                   "%s: the matrix has the attributes of a triangle, which triangular systems take only", function);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t check_external(const char *function, const void *buffer) {
    SPARSE_CHECK(buffer,
                 "%s: 'externalBuffer' is a null pointer; it must have as many bytes as the function for its size says",
                 function);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t check_types(const char *function, bool known, const struct matrix *a, const struct dense *x,
                             const struct dense *y, cudaDataType compute) {
    SPARSE_SUPPORT(known,
                   "%s: there is no such combination of types: matrix %d, operand %d, result %d, compute type %d",
                   function, (int)a->value_type, (int)x->value_type, (int)y->value_type, (int)compute);
    return CUSPARSE_STATUS_SUCCESS;
}
