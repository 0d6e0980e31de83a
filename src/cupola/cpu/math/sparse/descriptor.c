/* Descriptors of vectors and of dense matrices (cuSPARSE Library, 6.2 to 6.5). */
#include "sparse.h"

static cusparseStatus_t no_room(const char *function) {
    return sparse_fail(CUSPARSE_STATUS_ALLOC_FAILED, "%s: the host has no memory for a descriptor", function);
}

/* ---- sparse vectors ---------------------------------------------------------------------------------------------- */

static cusparseStatus_t new_sparse_vector(const char *function, cusparseSpVecDescr_t *result, struct sparse_vector is) {
    if (!result) return sparse_null(function, "spVecDescr");
    SPARSE_CHECK(is_size(is.size) && is.count >= 0 && is.count <= is.size, "%s: size is %lld and nnz is %lld", function,
                 (long long)is.size, (long long)is.count);
    SPARSE_CHECK(is.index_type >= CUSPARSE_INDEX_16U && is.index_type <= CUSPARSE_INDEX_64I,
                 "%s: idxType is %d; it must be CUSPARSE_INDEX_32I or _64I", function, (int)is.index_type);
    SPARSE_CHECK((uint64_t)is.base <= 1, "%s: idxBase is %lld; it must be 0 or 1", function, (long long)is.base);
    is.type = value_of(is.value_type);
    SPARSE_CHECK(is_value_type(is.value_type), "%s: the type %d of values is none that cuSPARSE has", function,
                 (int)is.value_type);
    struct cusparseSpVecDescr *made = object_new(SPARSE_VECTOR);
    if (!made) return no_room(function);
    made->is = is;
    *result = made;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseCreateSpVec(cusparseSpVecDescr_t *result, int64_t size, int64_t nnz, void *indices,
                                            void *values, cusparseIndexType_t index_type, cusparseIndexBase_t base,
                                            cudaDataType type) {
    return new_sparse_vector("cusparseCreateSpVec", result,
                             (struct sparse_vector){size, nnz, indices, values, index_type, base, S, type});
}

static cusparseStatus_t cusparseCreateConstSpVec(cusparseConstSpVecDescr_t *result, int64_t size, int64_t nnz,
                                                 const void *indices, const void *values,
                                                 cusparseIndexType_t index_type, cusparseIndexBase_t base,
                                                 cudaDataType type) {
    struct sparse_vector is = {size, nnz, (void *)indices, (void *)values, index_type, base, S, type};
    return new_sparse_vector("cusparseCreateConstSpVec", (cusparseSpVecDescr_t *)result, is);
}

static cusparseStatus_t cusparseDestroySpVec(cusparseConstSpVecDescr_t vector) {
    return object_destroy(vector, SPARSE_VECTOR, "cusparseDestroySpVec");
}

#define CHECK(object, kind)                                                           \
    SPARSE_RETURN_IF(object_check(object, kind, function, #object))

static cusparseStatus_t get_sparse_vector(const char *function, cusparseConstSpVecDescr_t spVecDescr, int64_t *size,
                                          int64_t *nnz, void **indices, void **values, cusparseIndexType_t *idxType,
                                          cusparseIndexBase_t *idxBase, cudaDataType *valueType) {
    CHECK(spVecDescr, SPARSE_VECTOR);
    WANT(size, nnz, indices, values, idxType, idxBase, valueType);
    GET(size, spVecDescr->is.size);
    GET(nnz, spVecDescr->is.count);
    GET(indices, spVecDescr->is.indices);
    GET(values, spVecDescr->is.values);
    GET(idxType, spVecDescr->is.index_type);
    GET(idxBase, (cusparseIndexBase_t)spVecDescr->is.base);
    GET(valueType, spVecDescr->is.value_type);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpVecGet(cusparseSpVecDescr_t vector, int64_t *size, int64_t *nnz, void **indices,
                                         void **values, cusparseIndexType_t *index_type, cusparseIndexBase_t *base,
                                         cudaDataType *type) {
    return get_sparse_vector("cusparseSpVecGet", vector, size, nnz, indices, values, index_type, base, type);
}

static cusparseStatus_t cusparseConstSpVecGet(cusparseConstSpVecDescr_t vector, int64_t *size, int64_t *nnz,
                                              const void **indices, const void **values,
                                              cusparseIndexType_t *index_type, cusparseIndexBase_t *base,
                                              cudaDataType *type) {
    return get_sparse_vector("cusparseConstSpVecGet", vector, size, nnz, (void **)indices, (void **)values, index_type,
                             base, type);
}

static cusparseStatus_t cusparseSpVecGetIndexBase(cusparseConstSpVecDescr_t spVecDescr, cusparseIndexBase_t *idxBase) {
    static const char function[] = "cusparseSpVecGetIndexBase";
    CHECK(spVecDescr, SPARSE_VECTOR);
    GET(idxBase, (cusparseIndexBase_t)spVecDescr->is.base);
    return CUSPARSE_STATUS_SUCCESS;
}

/* The address of the values, got and set: X(Name, type of the descriptor, kind). */
#define VALUES(Name, Type, kind)                                                                                       \
    static cusparseStatus_t cusparse##Name##GetValues(cusparse##Type##Descr_t descriptor, void **values) {             \
        static const char function[] = "cusparse" #Name "GetValues";                                                   \
        CHECK(descriptor, kind);                                                                                       \
        GET(values, descriptor->is.values);                                                                            \
        return CUSPARSE_STATUS_SUCCESS;                                                                                \
    }                                                                                                                  \
    static cusparseStatus_t cusparseConst##Name##GetValues(cusparseConst##Type##Descr_t descriptor,                    \
                                                           const void **values) {                                      \
        static const char function[] = "cusparseConst" #Name "GetValues";                                              \
        CHECK(descriptor, kind);                                                                                       \
        GET(values, descriptor->is.values);                                                                            \
        return CUSPARSE_STATUS_SUCCESS;                                                                                \
    }                                                                                                                  \
    static cusparseStatus_t cusparse##Name##SetValues(cusparse##Type##Descr_t descriptor, void *values) {              \
        static const char function[] = "cusparse" #Name "SetValues";                                                   \
        CHECK(descriptor, kind);                                                                                       \
        descriptor->is.values = values;                                                                                \
        return CUSPARSE_STATUS_SUCCESS;                                                                                \
    }
VALUES(SpVec, SpVec, SPARSE_VECTOR)
VALUES(DnVec, DnVec, DENSE_VECTOR)
VALUES(DnMat, DnMat, DENSE_MATRIX)

/* ---- dense vectors and matrices ---------------------------------------------------------------------------------- */

static cusparseStatus_t check_dense(const char *function, struct dense *is) {
    is->type = value_of(is->value_type);
    SPARSE_CHECK(is_value_type(is->value_type), "%s: the type %d of values is none that cuSPARSE has", function,
                 (int)is->value_type);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t new_vector(const char *function, cusparseDnVecDescr_t *result, int64_t size, void *values,
                                   cudaDataType type) {
    if (!result) return sparse_null(function, "dnVecDescr");
    SPARSE_CHECK(is_size(size), "%s: size is %lld", function, (long long)size);
    struct dense is = {.rows = size, .columns = 1, .ld = larger(size, 1), .values = values, .value_type = type};
    is.order = CUSPARSE_ORDER_COL, is.batch = 1;
    SPARSE_RETURN_IF(check_dense(function, &is));
    struct cusparseDnVecDescr *made = object_new(DENSE_VECTOR);
    if (!made) return no_room(function);
    made->is = is;
    *result = made;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t *result, int64_t size, void *values,
                                            cudaDataType type) {
    return new_vector("cusparseCreateDnVec", result, size, values, type);
}

static cusparseStatus_t cusparseCreateConstDnVec(cusparseConstDnVecDescr_t *result, int64_t size, const void *values,
                                                 cudaDataType type) {
    return new_vector("cusparseCreateConstDnVec", (cusparseDnVecDescr_t *)result, size, (void *)values, type);
}

static cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector) {
    return object_destroy(vector, DENSE_VECTOR, "cusparseDestroyDnVec");
}

static cusparseStatus_t get_vector(const char *function, cusparseConstDnVecDescr_t dnVecDescr, int64_t *size,
                                   void **values, cudaDataType *valueType) {
    CHECK(dnVecDescr, DENSE_VECTOR);
    WANT(size, values, valueType);
    GET(size, dnVecDescr->is.rows);
    GET(values, dnVecDescr->is.values);
    GET(valueType, dnVecDescr->is.value_type);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseDnVecGet(cusparseDnVecDescr_t vector, int64_t *size, void **values,
                                         cudaDataType *type) {
    return get_vector("cusparseDnVecGet", vector, size, values, type);
}

static cusparseStatus_t cusparseConstDnVecGet(cusparseConstDnVecDescr_t vector, int64_t *size, const void **values,
                                              cudaDataType *type) {
    return get_vector("cusparseConstDnVecGet", vector, size, (void **)values, type);
}

static cusparseStatus_t new_matrix(const char *function, cusparseDnMatDescr_t *result, struct dense is) {
    if (!result) return sparse_null(function, "dnMatDescr");
    SPARSE_CHECK(is_size(is.rows) && is_size(is.columns) && is_size(larger(is.ld, 0)),
                 "%s: rows is %lld and cols is %lld", function, (long long)is.rows, (long long)is.columns);
    SPARSE_CHECK(is.order == CUSPARSE_ORDER_COL || is.order == CUSPARSE_ORDER_ROW,
                 "%s: order is %d; it must be CUSPARSE_ORDER_COL or _ROW", function, (int)is.order);
    int64_t least = is.order == CUSPARSE_ORDER_COL ? is.rows : is.columns;
    SPARSE_CHECK(is.ld >= least, "%s: ld is %lld, but a %s has %lld elements", function, (long long)is.ld,
                 is.order == CUSPARSE_ORDER_COL ? "column" : "row", (long long)least);
    SPARSE_RETURN_IF(check_dense(function, &is));
    struct cusparseDnMatDescr *made = object_new(DENSE_MATRIX);
    if (!made) return no_room(function);
    made->is = is;
    *result = made;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t *result, int64_t rows, int64_t columns, int64_t ld,
                                            void *values, cudaDataType type, cusparseOrder_t order) {
    return new_matrix("cusparseCreateDnMat", result, (struct dense){rows, columns, ld, values, S, type, order, 1, 0});
}

static cusparseStatus_t cusparseCreateConstDnMat(cusparseConstDnMatDescr_t *result, int64_t rows, int64_t columns,
                                                 int64_t ld, const void *values, cudaDataType type,
                                                 cusparseOrder_t order) {
    return new_matrix("cusparseCreateConstDnMat", (cusparseDnMatDescr_t *)result,
                      (struct dense){rows, columns, ld, (void *)values, S, type, order, 1, 0});
}

static cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) {
    return object_destroy(matrix, DENSE_MATRIX, "cusparseDestroyDnMat");
}

static cusparseStatus_t get_matrix(const char *function, cusparseConstDnMatDescr_t dnMatDescr, int64_t *rows,
                                   int64_t *cols, int64_t *ld, void **values, cudaDataType *type,
                                   cusparseOrder_t *order) {
    CHECK(dnMatDescr, DENSE_MATRIX);
    WANT(rows, cols, ld, values, type, order);
    GET(rows, dnMatDescr->is.rows);
    GET(cols, dnMatDescr->is.columns);
    GET(ld, dnMatDescr->is.ld);
    GET(values, dnMatDescr->is.values);
    GET(type, dnMatDescr->is.value_type);
    GET(order, dnMatDescr->is.order);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseDnMatGet(cusparseDnMatDescr_t matrix, int64_t *rows, int64_t *columns, int64_t *ld,
                                         void **values, cudaDataType *type, cusparseOrder_t *order) {
    return get_matrix("cusparseDnMatGet", matrix, rows, columns, ld, values, type, order);
}

static cusparseStatus_t cusparseConstDnMatGet(cusparseConstDnMatDescr_t matrix, int64_t *rows, int64_t *columns,
                                              int64_t *ld, const void **values, cudaDataType *type,
                                              cusparseOrder_t *order) {
    return get_matrix("cusparseConstDnMatGet", matrix, rows, columns, ld, (void **)values, type, order);
}

static cusparseStatus_t cusparseDnMatSetStridedBatch(cusparseDnMatDescr_t dnMatDescr, int batchCount,
                                                     int64_t batchStride) {
    static const char function[] = "cusparseDnMatSetStridedBatch";
    CHECK(dnMatDescr, DENSE_MATRIX);
    struct dense *is = &dnMatDescr->is;
    int64_t size;
    if (__builtin_mul_overflow(is->ld, is->order == CUSPARSE_ORDER_COL ? is->columns : is->rows, &size))
        size = INT64_MAX;
    SPARSE_CHECK(batchCount > 0 && batchStride >= 0, "%s: batchCount is %d and batchStride %lld", function, batchCount,
                 (long long)batchStride);
    SPARSE_CHECK(!batchStride || batchCount == 1 || batchStride >= size,
                 "%s: batchStride is %lld, but a matrix has %lld elements", function, (long long)batchStride,
                 (long long)size);
    is->batch = batchCount;
    is->stride = batchStride;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseDnMatGetStridedBatch(cusparseConstDnMatDescr_t dnMatDescr, int *batchCount,
                                                     int64_t *batchStride) {
    static const char function[] = "cusparseDnMatGetStridedBatch";
    CHECK(dnMatDescr, DENSE_MATRIX);
    WANT(batchCount, batchStride);
    GET(batchCount, (int)dnMatDescr->is.batch);
    GET(batchStride, dnMatDescr->is.stride);
    return CUSPARSE_STATUS_SUCCESS;
}

const struct entry sparse_descriptor_entries[] = {
    SPARSE_ENTRY(cusparseCreateSpVec),
    SPARSE_ENTRY(cusparseCreateConstSpVec),
    SPARSE_ENTRY(cusparseDestroySpVec),
    SPARSE_ENTRY(cusparseSpVecGet),
    SPARSE_ENTRY(cusparseConstSpVecGet),
    SPARSE_ENTRY(cusparseSpVecGetIndexBase),
    SPARSE_ENTRY(cusparseSpVecGetValues),
    SPARSE_ENTRY(cusparseConstSpVecGetValues),
    SPARSE_ENTRY(cusparseSpVecSetValues),
    SPARSE_ENTRY(cusparseCreateDnVec),
    SPARSE_ENTRY(cusparseCreateConstDnVec),
    SPARSE_ENTRY(cusparseDestroyDnVec),
    SPARSE_ENTRY(cusparseDnVecGet),
    SPARSE_ENTRY(cusparseConstDnVecGet),
    SPARSE_ENTRY(cusparseDnVecGetValues),
    SPARSE_ENTRY(cusparseConstDnVecGetValues),
    SPARSE_ENTRY(cusparseDnVecSetValues),
    SPARSE_ENTRY(cusparseCreateDnMat),
    SPARSE_ENTRY(cusparseCreateConstDnMat),
    SPARSE_ENTRY(cusparseDestroyDnMat),
    SPARSE_ENTRY(cusparseDnMatGet),
    SPARSE_ENTRY(cusparseConstDnMatGet),
    SPARSE_ENTRY(cusparseDnMatGetValues),
    SPARSE_ENTRY(cusparseConstDnMatGetValues),
    SPARSE_ENTRY(cusparseDnMatSetValues),
    SPARSE_ENTRY(cusparseDnMatSetStridedBatch),
    SPARSE_ENTRY(cusparseDnMatGetStridedBatch),
    {NULL, NULL, NULL},
};
