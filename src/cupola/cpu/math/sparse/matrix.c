/* Descriptors of sparse matrices (cuSPARSE Library, 6.6): CSR, CSC, COO, BSR and Blocked ELL. */
#include <string.h>

#include "sparse.h"

/* ---- made and destroyed ------------------------------------------------------------------------------------------ */

static bool is_index(cusparseIndexType_t type) { return type >= CUSPARSE_INDEX_16U && type <= CUSPARSE_INDEX_64I; }

static struct matrix arrays(cusparseFormat_t format, int64_t rows, int64_t columns, int64_t count, const void *offsets,
                            const void *indices, const void *values, cusparseIndexType_t offset_type,
                            cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType type) {
    return (struct matrix){.format = format,
                           .rows = rows,
                           .columns = columns,
                           .count = count,
                           .offsets = (void *)offsets,
                           .indices = (void *)indices,
                           .values = (void *)values,
                           .offset_type = offset_type,
                           .index_type = index_type,
                           .base = (int64_t)base,
                           .value_type = type};
}

static cusparseStatus_t new_matrix(const char *function, const void *result, struct matrix is) {
    if (!result) return sparse_null(function, "spMatDescr");
    SPARSE_CHECK(is_size(is.rows) && is_size(is.columns) && is_size(is.count),
                 "%s: rows is %lld, cols is %lld and nnz is %lld", function, (long long)is.rows, (long long)is.columns,
                 (long long)is.count);
    int64_t most;
    if (__builtin_mul_overflow(is.rows, is.columns, &most)) most = INT64_MAX;
    SPARSE_CHECK(is.count <= most, "%s: nnz is %lld, but the matrix has %lld elements", function, (long long)is.count,
                 (long long)most);
    SPARSE_CHECK(is_index(is.offset_type) && is_index(is.index_type),
                 "%s: the types of indices are %d and %d; they must be CUSPARSE_INDEX_32I or _64I", function,
                 (int)is.offset_type, (int)is.index_type);
    SPARSE_CHECK((uint64_t)is.base <= 1, "%s: idxBase is %lld; it must be 0 or 1", function, (long long)is.base);
    is.type = value_of(is.value_type);
    SPARSE_CHECK(is_value_type(is.value_type), "%s: the type %d of values is none that cuSPARSE has", function,
                 (int)is.value_type);
    SPARSE_SUPPORT(is.offset_type == is.index_type, "%s: offsets and indices are of different types, %d and %d",
                   function, (int)is.offset_type, (int)is.index_type);
    is.batch = 1;
    struct cusparseSpMatDescr *made = object_new(SPARSE_MATRIX);
    if (!made)
        return sparse_fail(CUSPARSE_STATUS_ALLOC_FAILED, "%s: the host has no memory for a descriptor", function);
    made->is = is;
    *(cusparseSpMatDescr_t *)result = made;
    return CUSPARSE_STATUS_SUCCESS;
}

/* The functions that make and read matrices of a format whose arrays are offsets, indices and values. */
#define COMPRESSED(Form, FORMAT)                                                                                         \
    static cusparseStatus_t cusparseCreate##Form(cusparseSpMatDescr_t *result, int64_t rows, int64_t columns,            \
                                                 int64_t nnz, void *offsets, void *indices, void *values,                \
                                                 cusparseIndexType_t offset_type, cusparseIndexType_t index_type,        \
                                                 cusparseIndexBase_t base, cudaDataType type) {                          \
        struct matrix is = arrays(FORMAT, rows, columns, nnz, offsets, indices, values, offset_type, index_type, base, type); \
        return new_matrix("cusparseCreate" #Form, result, is);                                                           \
    }                                                                                                                    \
    static cusparseStatus_t cusparseCreateConst##Form(                                                                   \
        cusparseConstSpMatDescr_t *result, int64_t rows, int64_t columns, int64_t nnz, const void *offsets,              \
        const void *indices, const void *values, cusparseIndexType_t offset_type, cusparseIndexType_t index_type,        \
        cusparseIndexBase_t base, cudaDataType type) {                                                                   \
        struct matrix is = arrays(FORMAT, rows, columns, nnz, offsets, indices, values, offset_type, index_type, base, type);                                                \
        return new_matrix("cusparseCreateConst" #Form, result, is);                                                      \
    }                                                                                                                    \
    static cusparseStatus_t cusparse##Form##Get(                                                                         \
        cusparseSpMatDescr_t matrix, int64_t *rows, int64_t *columns, int64_t *nnz, void **offsets, void **indices,      \
        void **values, cusparseIndexType_t *offset_type, cusparseIndexType_t *index_type, cusparseIndexBase_t *base,     \
        cudaDataType *type) {                                                                                            \
        return get_arrays("cusparse" #Form "Get", matrix, FORMAT, rows, columns, nnz, offsets, indices, values,          \
                          offset_type, index_type, base, type);                                                          \
    }                                                                                                                    \
    static cusparseStatus_t cusparseConst##Form##Get(                                                                    \
        cusparseConstSpMatDescr_t matrix, int64_t *rows, int64_t *columns, int64_t *nnz, const void **offsets,           \
        const void **indices, const void **values, cusparseIndexType_t *offset_type, cusparseIndexType_t *index_type,    \
        cusparseIndexBase_t *base, cudaDataType *type) {                                                                 \
        return get_arrays("cusparseConst" #Form "Get", matrix, FORMAT, rows, columns, nnz, (void **)offsets,             \
                          (void **)indices, (void **)values, offset_type, index_type, base, type);                       \
    }

static cusparseStatus_t check_format(const char *function, cusparseConstSpMatDescr_t matrix, cusparseFormat_t format) {
    SPARSE_RETURN_IF(object_check(matrix, SPARSE_MATRIX, function, "spMatDescr"));
    SPARSE_CHECK(matrix->is.format == format, "%s: the matrix has another format, %d", function,
                 (int)matrix->is.format);
    return CUSPARSE_STATUS_SUCCESS;
}

/* What matrices of all formats have. */
static cusparseStatus_t get_common(const char *function, cusparseConstSpMatDescr_t matrix, cusparseFormat_t format,
                                   int64_t *rows, int64_t *columns, void **indices, void **values,
                                   cusparseIndexType_t *index_type, cusparseIndexBase_t *base, cudaDataType *type) {
    SPARSE_RETURN_IF(check_format(function, matrix, format));
    WANT(rows, columns, indices, values, index_type, base, type);
    *rows = matrix->is.rows, *columns = matrix->is.columns;
    *indices = matrix->is.indices, *values = matrix->is.values;
    *index_type = matrix->is.index_type, *base = (cusparseIndexBase_t)matrix->is.base;
    *type = matrix->is.value_type;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t get_arrays(const char *function, cusparseConstSpMatDescr_t matrix, cusparseFormat_t format,
                                   int64_t *rows, int64_t *columns, int64_t *nnz, void **offsets, void **indices,
                                   void **values, cusparseIndexType_t *offset_type, cusparseIndexType_t *index_type,
                                   cusparseIndexBase_t *base, cudaDataType *type) {
    WANT(nnz, offsets, offset_type);
    SPARSE_RETURN_IF(get_common(function, matrix, format, rows, columns, indices, values, index_type, base, type));
    *nnz = matrix->is.count, *offsets = matrix->is.offsets, *offset_type = matrix->is.offset_type;
    return CUSPARSE_STATUS_SUCCESS;
}
COMPRESSED(Csr, CUSPARSE_FORMAT_CSR)
COMPRESSED(Csc, CUSPARSE_FORMAT_CSC)

static cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t *result, int64_t rows, int64_t columns, int64_t nnz,
                                          void *row_indices, void *indices, void *values, cusparseIndexType_t type,
                                          cusparseIndexBase_t base, cudaDataType value_type) {
    struct matrix is =
        arrays(CUSPARSE_FORMAT_COO, rows, columns, nnz, row_indices, indices, values, type, type, base, value_type);
    return new_matrix("cusparseCreateCoo", result, is);
}

static cusparseStatus_t cusparseCreateConstCoo(cusparseConstSpMatDescr_t *result, int64_t rows, int64_t columns,
                                               int64_t nnz, const void *row_indices, const void *indices,
                                               const void *values, cusparseIndexType_t type, cusparseIndexBase_t base,
                                               cudaDataType value_type) {
    struct matrix is =
        arrays(CUSPARSE_FORMAT_COO, rows, columns, nnz, row_indices, indices, values, type, type, base, value_type);
    return new_matrix("cusparseCreateConstCoo", result, is);
}

static cusparseStatus_t cusparseCooGet(cusparseSpMatDescr_t matrix, int64_t *rows, int64_t *columns, int64_t *nnz,
                                       void **row_indices, void **indices, void **values, cusparseIndexType_t *type,
                                       cusparseIndexBase_t *base, cudaDataType *value_type) {
    return get_arrays("cusparseCooGet", matrix, CUSPARSE_FORMAT_COO, rows, columns, nnz, row_indices, indices, values,
                      type, type, base, value_type);
}

static cusparseStatus_t cusparseConstCooGet(cusparseConstSpMatDescr_t matrix, int64_t *rows, int64_t *columns,
                                            int64_t *nnz, const void **row_indices, const void **indices,
                                            const void **values, cusparseIndexType_t *type, cusparseIndexBase_t *base,
                                            cudaDataType *value_type) {
    return get_arrays("cusparseConstCooGet", matrix, CUSPARSE_FORMAT_COO, rows, columns, nnz, (void **)row_indices,
                      (void **)indices, (void **)values, type, type, base, value_type);
}

static cusparseStatus_t new_blocks(const char *function, const void *result, int64_t block_rows, int64_t block_columns,
                                   cusparseOrder_t order, struct matrix is) {
    SPARSE_CHECK(block_rows > 0 && block_columns == block_rows,
                 "%s: blocks must be square, but one has %lld by %lld elements", function, (long long)block_rows,
                 (long long)block_columns);
    SPARSE_CHECK(order == CUSPARSE_ORDER_COL || order == CUSPARSE_ORDER_ROW,
                 "%s: order is %d; it must be CUSPARSE_ORDER_COL or _ROW", function, (int)order);
    is.block_rows = block_rows, is.block_columns = block_columns;
    is.blocks_by_column = order == CUSPARSE_ORDER_COL;
    int64_t most, size;
    SPARSE_CHECK(!__builtin_mul_overflow(is.rows, is.columns, &most) && is.count <= most &&
                     !__builtin_mul_overflow(block_rows, block_columns, &size) &&
                     !__builtin_mul_overflow(larger(is.count, 1), size, &size) &&
                     !__builtin_mul_overflow(is.rows, block_rows, &is.rows) &&
                     !__builtin_mul_overflow(is.columns, block_columns, &is.columns),
                 "%s: there are %lld blocks, of %lld by %lld elements", function, (long long)is.count,
                 (long long)block_rows, (long long)block_columns);
    return new_matrix(function, result, is);
}

static cusparseStatus_t cusparseCreateBsr(cusparseSpMatDescr_t *result, int64_t rows, int64_t columns, int64_t nnz,
                                          int64_t block_rows, int64_t block_columns, void *offsets, void *indices,
                                          void *values, cusparseIndexType_t offset_type, cusparseIndexType_t index_type,
                                          cusparseIndexBase_t base, cudaDataType type, cusparseOrder_t order) {
    struct matrix is =
        arrays(CUSPARSE_FORMAT_BSR, rows, columns, nnz, offsets, indices, values, offset_type, index_type, base, type);
    return new_blocks("cusparseCreateBsr", result, block_rows, block_columns, order, is);
}

static cusparseStatus_t cusparseCreateConstBsr(cusparseConstSpMatDescr_t *result, int64_t rows, int64_t columns,
                                               int64_t nnz, int64_t block_rows, int64_t block_columns,
                                               const void *offsets, const void *indices, const void *values,
                                               cusparseIndexType_t offset_type, cusparseIndexType_t index_type,
                                               cusparseIndexBase_t base, cudaDataType type, cusparseOrder_t order) {
    struct matrix is =
        arrays(CUSPARSE_FORMAT_BSR, rows, columns, nnz, offsets, indices, values, offset_type, index_type, base, type);
    return new_blocks("cusparseCreateConstBsr", result, block_rows, block_columns, order, is);
}

/* Rows of blocks, each with the same number of places for blocks; the column of a block that is none is -1. */
static cusparseStatus_t new_ell(const char *function, const void *result, int64_t rows, int64_t columns, int64_t size,
                                int64_t width, const void *indices, const void *values, cusparseIndexType_t index_type,
                                cusparseIndexBase_t base, cudaDataType type) {
    bool is_nothing = !rows && !columns && !size && !width;
    SPARSE_CHECK(is_size(rows) && is_size(columns) && is_size(size) && is_size(width) &&
                     (is_nothing || (size > 0 && size <= rows)),
                 "%s: rows is %lld, cols is %lld, ellBlockSize is %lld and ellCols is %lld", function, (long long)rows,
                 (long long)columns, (long long)size, (long long)width);
    size = larger(size, 1);
    SPARSE_CHECK(width <= columns, "%s: ellCols is %lld, but the matrix has %lld columns", function, (long long)width,
                 (long long)columns);
    SPARSE_CHECK(rows % size == 0 && columns % size == 0 && width % size == 0,
                 "%s: %lld rows, %lld columns and ellCols %lld are not all multiples of the block size, %lld", function,
                 (long long)rows, (long long)columns, (long long)width, (long long)size);
    size_t unit = element_size(value_of(type) == ELEMENTS ? I8 : value_of(type));
    SPARSE_CHECK((uintptr_t)values % (unit < 8 ? unit : 8) == 0, "%s: ellValue, %p, is not aligned to its elements",
                 function, values);
    int64_t elements;
    SPARSE_CHECK(!__builtin_mul_overflow(rows, width, &elements), "%s: the matrix is too large", function);
    struct matrix is = arrays(CUSPARSE_FORMAT_BLOCKED_ELL, rows, columns, elements / size / size, NULL, indices, values,
                              index_type, index_type, base, type);
    is.block_rows = is.block_columns = size, is.width = width;
    return new_matrix(function, result, is);
}

static cusparseStatus_t cusparseCreateBlockedEll(cusparseSpMatDescr_t *result, int64_t rows, int64_t columns,
                                                 int64_t size, int64_t width, void *indices, void *values,
                                                 cusparseIndexType_t index_type, cusparseIndexBase_t base,
                                                 cudaDataType type) {
    return new_ell("cusparseCreateBlockedEll", result, rows, columns, size, width, indices, values, index_type, base,
                   type);
}

static cusparseStatus_t cusparseCreateConstBlockedEll(cusparseConstSpMatDescr_t *result, int64_t rows, int64_t columns,
                                                      int64_t size, int64_t width, const void *indices,
                                                      const void *values, cusparseIndexType_t index_type,
                                                      cusparseIndexBase_t base, cudaDataType type) {
    return new_ell("cusparseCreateConstBlockedEll", result, rows, columns, size, width, indices, values, index_type,
                   base, type);
}

static cusparseStatus_t get_ell(const char *function, cusparseConstSpMatDescr_t matrix, int64_t *rows, int64_t *columns,
                                int64_t *size, int64_t *width, void **indices, void **values,
                                cusparseIndexType_t *index_type, cusparseIndexBase_t *base, cudaDataType *type) {
    WANT(size, width);
    SPARSE_RETURN_IF(get_common(function, matrix, CUSPARSE_FORMAT_BLOCKED_ELL, rows, columns, indices, values,
                                index_type, base, type));
    *size = matrix->is.block_rows, *width = matrix->is.width;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseBlockedEllGet(cusparseSpMatDescr_t matrix, int64_t *rows, int64_t *columns,
                                              int64_t *size, int64_t *width, void **indices, void **values,
                                              cusparseIndexType_t *index_type, cusparseIndexBase_t *base,
                                              cudaDataType *type) {
    return get_ell("cusparseBlockedEllGet", matrix, rows, columns, size, width, indices, values, index_type, base,
                   type);
}

static cusparseStatus_t cusparseConstBlockedEllGet(cusparseConstSpMatDescr_t matrix, int64_t *rows, int64_t *columns,
                                                   int64_t *size, int64_t *width, const void **indices,
                                                   const void **values, cusparseIndexType_t *index_type,
                                                   cusparseIndexBase_t *base, cudaDataType *type) {
    return get_ell("cusparseConstBlockedEllGet", matrix, rows, columns, size, width, (void **)indices, (void **)values,
                   index_type, base, type);
}

static cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) {
    return object_destroy(matrix, SPARSE_MATRIX, "cusparseDestroySpMat");
}

/* ---- read and changed -------------------------------------------------------------------------------------------- */

#define CHECK_MATRIX() SPARSE_RETURN_IF(object_check(matrix, SPARSE_MATRIX, function, "spMatDescr"))

static cusparseStatus_t cusparseSpMatGetFormat(cusparseConstSpMatDescr_t matrix, cusparseFormat_t *format) {
    static const char function[] = "cusparseSpMatGetFormat";
    CHECK_MATRIX();
    GET(format, matrix->is.format);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpMatGetIndexBase(cusparseConstSpMatDescr_t matrix, cusparseIndexBase_t *idxBase) {
    static const char function[] = "cusparseSpMatGetIndexBase";
    CHECK_MATRIX();
    GET(idxBase, (cusparseIndexBase_t)matrix->is.base);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpMatGetValues(cusparseSpMatDescr_t matrix, void **values) {
    static const char function[] = "cusparseSpMatGetValues";
    CHECK_MATRIX();
    GET(values, matrix->is.values);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseConstSpMatGetValues(cusparseConstSpMatDescr_t matrix, const void **values) {
    static const char function[] = "cusparseConstSpMatGetValues";
    CHECK_MATRIX();
    GET(values, matrix->is.values);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t matrix, void *values) {
    static const char function[] = "cusparseSpMatSetValues";
    CHECK_MATRIX();
    matrix->is.values = values;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t matrix, int64_t *rows, int64_t *cols,
                                             int64_t *nnz) {
    static const char function[] = "cusparseSpMatGetSize";
    CHECK_MATRIX();
    WANT(rows, cols, nnz);
    GET(rows, matrix->is.rows);
    GET(cols, matrix->is.columns);
    GET(nnz, element_count(&matrix->is));
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t set_pointers(const char *function, cusparseSpMatDescr_t matrix, cusparseFormat_t format,
                                     void *offsets, void *indices, void *values) {
    SPARSE_RETURN_IF(check_format(function, matrix, format));
    matrix->is.offsets = offsets, matrix->is.indices = indices, matrix->is.values = values;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t matrix, void *offsets, void *indices,
                                               void *values) {
    return set_pointers("cusparseCsrSetPointers", matrix, CUSPARSE_FORMAT_CSR, offsets, indices, values);
}

static cusparseStatus_t cusparseCscSetPointers(cusparseSpMatDescr_t matrix, void *offsets, void *indices,
                                               void *values) {
    return set_pointers("cusparseCscSetPointers", matrix, CUSPARSE_FORMAT_CSC, offsets, indices, values);
}

static cusparseStatus_t cusparseCooSetPointers(cusparseSpMatDescr_t matrix, void *rows, void *columns, void *values) {
    return set_pointers("cusparseCooSetPointers", matrix, CUSPARSE_FORMAT_COO, rows, columns, values);
}

static cusparseStatus_t set_batch(const char *function, cusparseSpMatDescr_t matrix, cusparseFormat_t format, int count,
                                  int64_t offset_stride, int64_t index_stride, int64_t value_stride) {
    SPARSE_RETURN_IF(object_check(matrix, SPARSE_MATRIX, function, "spMatDescr"));
    cusparseFormat_t own = matrix->is.format == CUSPARSE_FORMAT_CSC ? CUSPARSE_FORMAT_CSR : matrix->is.format;
    SPARSE_CHECK(own == format, "%s: the matrix has another format, %d", function, (int)own);
    SPARSE_CHECK(count > 0, "%s: batchCount is %d", function, count);
    SPARSE_CHECK(offset_stride >= 0 && index_stride >= 0 && value_stride >= 0, "%s: a stride is negative", function);
    int64_t offsets =
        format == CUSPARSE_FORMAT_COO ? matrix->is.count : matrix->is.rows / larger(matrix->is.block_rows, 1) + 1;
    SPARSE_CHECK((!offset_stride || offset_stride >= offsets) && (!index_stride || index_stride >= matrix->is.count) &&
                     (!value_stride || value_stride >= element_count(&matrix->is)),
                 "%s: matrices overlap: they are %lld, %lld and %lld elements apart, but have %lld, %lld and %lld",
                 function, (long long)offset_stride, (long long)index_stride, (long long)value_stride,
                 (long long)offsets, (long long)matrix->is.count, (long long)element_count(&matrix->is));
    matrix->is.batch = count;
    matrix->is.offset_stride = offset_stride;
    matrix->is.index_stride = index_stride;
    matrix->is.value_stride = value_stride;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseCsrSetStridedBatch(cusparseSpMatDescr_t matrix, int count, int64_t offsets,
                                                   int64_t columns_values) {
    return set_batch("cusparseCsrSetStridedBatch", matrix, CUSPARSE_FORMAT_CSR, count, offsets, columns_values,
                     columns_values);
}

static cusparseStatus_t cusparseCooSetStridedBatch(cusparseSpMatDescr_t matrix, int count, int64_t stride) {
    return set_batch("cusparseCooSetStridedBatch", matrix, CUSPARSE_FORMAT_COO, count, stride, stride, stride);
}

static cusparseStatus_t cusparseBsrSetStridedBatch(cusparseSpMatDescr_t matrix, int count, int64_t offsets,
                                                   int64_t columns, int64_t values) {
    return set_batch("cusparseBsrSetStridedBatch", matrix, CUSPARSE_FORMAT_BSR, count, offsets, columns, values);
}

static cusparseStatus_t cusparseSpMatGetStridedBatch(cusparseConstSpMatDescr_t matrix, int *batchCount) {
    static const char function[] = "cusparseSpMatGetStridedBatch";
    CHECK_MATRIX();
    GET(batchCount, (int)matrix->is.batch);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t check_attribute(const char *function, cusparseConstSpMatDescr_t matrix,
                                        cusparseSpMatAttribute_t attribute, const void *data, size_t size) {
    CHECK_MATRIX();
    SPARSE_CHECK(attribute == CUSPARSE_SPMAT_FILL_MODE || attribute == CUSPARSE_SPMAT_DIAG_TYPE,
                 "%s: the CPU device has the attributes FILL_MODE and DIAG_TYPE, not %d", function, (int)attribute);
    if (!data) return sparse_null(function, "data");
    SPARSE_CHECK(size == sizeof(int), "%s: dataSize is %zu, but the attribute has %zu bytes", function, size,
                 sizeof(int));
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute,
                                                  void *data, size_t size) {
    SPARSE_RETURN_IF(check_attribute("cusparseSpMatGetAttribute", matrix, attribute, data, size));
    int value = attribute == CUSPARSE_SPMAT_FILL_MODE ? (int)matrix->is.fill : (int)matrix->is.diagonal;
    memcpy(data, &value, sizeof value);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute,
                                                  void *data, size_t size) {
    SPARSE_RETURN_IF(check_attribute("cusparseSpMatSetAttribute", matrix, attribute, data, size));
    int value;
    memcpy(&value, data, sizeof value);
    matrix->is.is_triangle = true;
    if (attribute == CUSPARSE_SPMAT_FILL_MODE) matrix->is.fill = (cusparseFillMode_t)value;
    else matrix->is.diagonal = (cusparseDiagType_t)value;
    return CUSPARSE_STATUS_SUCCESS;
}

const struct entry sparse_matrix_entries[] = {
    SPARSE_ENTRY(cusparseCreateCsr),
    SPARSE_ENTRY(cusparseCreateConstCsr),
    SPARSE_ENTRY(cusparseCreateCsc),
    SPARSE_ENTRY(cusparseCreateConstCsc),
    SPARSE_ENTRY(cusparseCreateCoo),
    SPARSE_ENTRY(cusparseCreateConstCoo),
    SPARSE_ENTRY(cusparseCreateBsr),
    SPARSE_ENTRY(cusparseCreateConstBsr),
    SPARSE_ENTRY(cusparseCreateBlockedEll),
    SPARSE_ENTRY(cusparseCreateConstBlockedEll),
    SPARSE_ENTRY(cusparseBlockedEllGet),
    SPARSE_ENTRY(cusparseConstBlockedEllGet),
    SPARSE_ENTRY(cusparseDestroySpMat),
    SPARSE_ENTRY(cusparseCsrGet),
    SPARSE_ENTRY(cusparseConstCsrGet),
    SPARSE_ENTRY(cusparseCscGet),
    SPARSE_ENTRY(cusparseConstCscGet),
    SPARSE_ENTRY(cusparseCooGet),
    SPARSE_ENTRY(cusparseConstCooGet),
    SPARSE_ENTRY(cusparseSpMatGetFormat),
    SPARSE_ENTRY(cusparseSpMatGetIndexBase),
    SPARSE_ENTRY(cusparseSpMatGetValues),
    SPARSE_ENTRY(cusparseConstSpMatGetValues),
    SPARSE_ENTRY(cusparseSpMatSetValues),
    SPARSE_ENTRY(cusparseSpMatGetSize),
    SPARSE_ENTRY(cusparseSpMatGetStridedBatch),
    SPARSE_ENTRY(cusparseCsrSetPointers),
    SPARSE_ENTRY(cusparseCscSetPointers),
    SPARSE_ENTRY(cusparseCooSetPointers),
    SPARSE_ENTRY(cusparseCsrSetStridedBatch),
    SPARSE_ENTRY(cusparseCooSetStridedBatch),
    SPARSE_ENTRY(cusparseBsrSetStridedBatch),
    SPARSE_ENTRY(cusparseSpMatGetAttribute),
    SPARSE_ENTRY(cusparseSpMatSetAttribute),
    {NULL, NULL, NULL},
};
