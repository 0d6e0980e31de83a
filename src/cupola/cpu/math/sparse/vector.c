/* Sparse vectors: Gather, Scatter, Axpby, Rot and SpVV (cuSPARSE Library, 6.7.1). */
#include <complex.h>
#undef I

#include "sparse.h"

enum form { GATHER, SCATTER, AXPBY, ROT, DOT };

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static CUresult write_result(struct sparse *sparse, number sum) {
    if (!sparse->result_on_host)
        RETURN_IF(touch(sparse, "the result", sparse->result, 1, element_size(sparse->compute)));
    element_store(sparse->compute, sparse->result, 0, sum);
    return CUDA_SUCCESS;
}

static CUresult run(struct sparse *sparse) {
    const struct sparse_vector *x = &sparse->v;
    const struct dense *y = &sparse->y;
    number alpha = 0, beta = 0, sum = 0;
    RETURN_IF(touch_sparse_vector(sparse, x, "vecX"));
    RETURN_IF(touch_dense(sparse, y, "the values of vecY"));
    if (sparse->form == AXPBY || sparse->form == ROT) {
        RETURN_IF(scalar_load(sparse, &sparse->alpha, &alpha));
        RETURN_IF(scalar_load(sparse, &sparse->beta, &beta));
    }
    if (sparse->form == AXPBY && beta != 1)
        for (int64_t i = 0; i < y->rows; i++)
            element_store(y->type, y->values, i, beta == 0 ? 0 : times(beta, element_load(y->type, y->values, i)));
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = index_from(x->base, x->index_type, x->indices, i);
        if (unlikely((uint64_t)at >= (uint64_t)y->rows)) {
            note_bad(sparse, "indices", "vecX", i, at, y->rows);
            return CUDA_SUCCESS; /* told by who called */
        }
        number a = element_load(x->type, x->values, i), b = element_load(y->type, y->values, at);
        switch (sparse->form) {
            case GATHER: element_store(x->type, x->values, i, b); break;
            case SCATTER: element_store(y->type, y->values, at, a); break;
            case AXPBY:
                if (alpha != 0) element_store(y->type, y->values, at, b + times(alpha, a));
                break;
            case ROT:
                element_store(x->type, x->values, i, times(alpha, a) + times(beta, b));
                element_store(y->type, y->values, at, times(alpha, b) - times(beta, a));
                break;
            default: sum += times(sparse->op_a == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? conj(a) : a, b); break;
        }
    }
    return sparse->form == DOT ? write_result(sparse, sum) : CUDA_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* The type in which elements of a type are added up, and of scalars that they are multiplied with. */
static enum element sum_type(enum element type) {
    return type == H || type == B                     ? S
           : type == CH || type == CB                 ? C
           : type == I8 || type == I32 || type == I64 ? ELEMENTS
                                                      : type;
}

static cusparseStatus_t prepare(cusparseHandle_t handle, const char *function, enum form form,
                                cusparseConstSpVecDescr_t vecX, cusparseConstDnVecDescr_t vecY, struct sparse **made) {
    SPARSE_RETURN_IF(sparse_check(handle, function));
    SPARSE_RETURN_IF(object_check(vecX, SPARSE_VECTOR, function, "vecX"));
    SPARSE_RETURN_IF(object_check(vecY, DENSE_VECTOR, function, "vecY"));
    SPARSE_CHECK(vecX->is.size == vecY->is.rows, "%s: vecX has %lld elements, vecY %lld", function,
                 (long long)vecX->is.size, (long long)vecY->is.rows);
    SPARSE_SUPPORT(vecX->is.value_type == vecY->is.value_type, "%s: vecX is of type %d, vecY of %d", function,
                   (int)vecX->is.value_type, (int)vecY->is.value_type);
    SPARSE_SUPPORT(vecX->is.type != ELEMENTS && vecX->is.type != I32 && vecX->is.index_type != CUSPARSE_INDEX_16U,
                   "%s: the CPU device has no such vectors: values of type %d, indices of type %d", function,
                   (int)vecX->is.value_type, (int)vecX->is.index_type);
    if (!made) return CUSPARSE_STATUS_SUCCESS;
    struct sparse *sparse = *made = sparse_new(function, run);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    sparse->form = form;
    sparse->v = vecX->is;
    sparse->y = vecY->is;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseGather(cusparseHandle_t handle, cusparseConstDnVecDescr_t y, cusparseSpVecDescr_t x) {
    struct sparse *sparse;
    SPARSE_RETURN_IF(prepare(handle, "cusparseGather", GATHER, x, y, &sparse));
    return sparse_submit(handle, sparse, false);
}

static cusparseStatus_t cusparseScatter(cusparseHandle_t handle, cusparseConstSpVecDescr_t x, cusparseDnVecDescr_t y) {
    struct sparse *sparse;
    SPARSE_RETURN_IF(prepare(handle, "cusparseScatter", SCATTER, x, y, &sparse));
    return sparse_submit(handle, sparse, false);
}

static cusparseStatus_t scaled(cusparseHandle_t handle, const char *function, enum form form, const void *alpha,
                               const void *beta, cusparseConstSpVecDescr_t x, cusparseConstDnVecDescr_t y) {
    struct sparse *sparse;
    SPARSE_RETURN_IF(prepare(handle, function, form, x, y, NULL));
    if (!alpha || !beta) return sparse_null(function, alpha ? "the second scalar" : "the first scalar");
    enum element type = sum_type(x->is.type);
    SPARSE_SUPPORT(type != ELEMENTS, "%s: there is no such function for the type %d", function, (int)x->is.value_type);
    SPARSE_RETURN_IF(prepare(handle, function, form, x, y, &sparse));
    sparse_scalar(handle, &sparse->alpha, type, alpha);
    sparse_scalar(handle, &sparse->beta, type, beta);
    return sparse_submit(handle, sparse, false);
}

static cusparseStatus_t cusparseAxpby(cusparseHandle_t handle, const void *alpha, cusparseConstSpVecDescr_t x,
                                      const void *beta, cusparseDnVecDescr_t y) {
    return scaled(handle, "cusparseAxpby", AXPBY, alpha, beta, x, y);
}

static cusparseStatus_t cusparseRot(cusparseHandle_t handle, const void *cosine, const void *sine,
                                    cusparseSpVecDescr_t x, cusparseDnVecDescr_t y) {
    return scaled(handle, "cusparseRot", ROT, cosine, sine, x, y);
}

static cusparseStatus_t check_dot(cusparseHandle_t handle, const char *function, cusparseOperation_t op,
                                  cusparseConstSpVecDescr_t x, cusparseConstDnVecDescr_t y, const void *result,
                                  cudaDataType compute) {
    SPARSE_RETURN_IF(prepare(handle, function, DOT, x, y, NULL));
    SPARSE_RETURN_IF(check_operation(function, "opX", op));
    if (!result) return sparse_null(function, "result");
    SPARSE_RETURN_IF(check_compute(function, compute));
    enum element type = x->is.type;
    bool known = type == I8 ? compute == CUDA_R_32I || compute == CUDA_R_32F
                            : sum_type(type) != ELEMENTS && value_of(compute) == sum_type(type);
    SPARSE_RETURN_IF(
        check_types(function, known, &(struct matrix){.value_type = x->is.value_type}, &y->is, &y->is, compute));
    SPARSE_CHECK(op != CUSPARSE_OPERATION_TRANSPOSE, "%s: opX must be NON_TRANSPOSE or CONJUGATE_TRANSPOSE", function);
    return check_conjugation(function, "opX", op, type);
}

static cusparseStatus_t cusparseSpVV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op,
                                                cusparseConstSpVecDescr_t x, cusparseConstDnVecDescr_t y,
                                                const void *result, cudaDataType compute, size_t *size) {
    SPARSE_RETURN_IF(check_dot(handle, "cusparseSpVV_bufferSize", op, x, y, result, compute));
    if (!size) return sparse_null("cusparseSpVV_bufferSize", "bufferSize");
    *size = BUFFER_BYTES;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpVV(cusparseHandle_t handle, cusparseOperation_t op, cusparseConstSpVecDescr_t x,
                                     cusparseConstDnVecDescr_t y, void *result, cudaDataType compute, void *buffer) {
    SPARSE_RETURN_IF(check_dot(handle, "cusparseSpVV", op, x, y, result, compute));
    SPARSE_RETURN_IF(check_external("cusparseSpVV", buffer));
    struct sparse *sparse;
    SPARSE_RETURN_IF(prepare(handle, "cusparseSpVV", DOT, x, y, &sparse));
    sparse->op_a = op;
    sparse->compute = value_of(compute);
    sparse->result = result;
    sparse->buffer = buffer, sparse->buffer_size = BUFFER_BYTES;
    sparse->result_on_host = handle->pointer_mode == CUSPARSE_POINTER_MODE_HOST;
    return sparse_submit(handle, sparse, sparse->result_on_host);
}

const struct entry sparse_vector_entries[] = {
    SPARSE_ENTRY(cusparseGather), SPARSE_ENTRY(cusparseScatter),         SPARSE_ENTRY(cusparseAxpby),
    SPARSE_ENTRY(cusparseRot),    SPARSE_ENTRY(cusparseSpVV_bufferSize), SPARSE_ENTRY(cusparseSpVV),
    {NULL, NULL, NULL},
};
