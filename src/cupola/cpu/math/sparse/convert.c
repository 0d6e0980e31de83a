/* From one format to another: SparseToDense, DenseToSparse, Csr2cscEx2, Xcoo2csr and Xcsr2coo (cuSPARSE Library, 5.9 and
 * 6.7). */
#include <complex.h>
#undef I
#include <stdlib.h>
#include <string.h>

#include "sparse.h"

/* ---- sparse to dense --------------------------------------------------------------------------------------------- */

struct filling {
    const struct matrix *from;
    const struct dense *to;
    size_t size;
};

static char *place_in(const struct dense *dense, int64_t row, int64_t column) {
    return (char *)dense->values +
           (row * row_step(dense) + column * column_step(dense)) * (int64_t)element_size(dense->type);
}

static void fill_element(void *data, int64_t row, int64_t column, int64_t place) {
    const struct filling *filling = data;
    memcpy(place_in(filling->to, row, column), (char *)filling->from->values + place * (int64_t)filling->size,
           filling->size);
}

static CUresult run_to_dense(struct sparse *sparse) {
    const struct dense *to = &sparse->x;
    RETURN_IF(touch_dense(sparse, to, "the values of matB"));
    RETURN_IF(touch_sparse(sparse, &sparse->a, "matA"));
    struct filling filling = {&sparse->a, to, element_size(to->type)};
    bool by_row = to->order == CUSPARSE_ORDER_ROW;
    int64_t lines = by_row ? to->rows : to->columns, length = by_row ? to->columns : to->rows;
    for (int64_t i = 0; i < lines; i++)
        memset((char *)to->values + i * to->ld * (int64_t)filling.size, 0, (size_t)length * filling.size);
    each_element(sparse, &sparse->a, "matA", 0, major_count(&sparse->a), fill_element, &filling);
    return CUDA_SUCCESS;
}

static cusparseStatus_t check_pair(cusparseHandle_t handle, const char *function, cusparseConstSpMatDescr_t sparse,
                                   cusparseConstDnMatDescr_t dense, int alg, const char *name_of_sparse,
                                   const char *name_of_dense) {
    SPARSE_RETURN_IF(sparse_check(handle, function));
    SPARSE_RETURN_IF(object_check(sparse, SPARSE_MATRIX, function, name_of_sparse));
    SPARSE_RETURN_IF(object_check(dense, DENSE_MATRIX, function, name_of_dense));
    SPARSE_CHECK(!alg, "%s: %d is no algorithm", function, alg);
    SPARSE_CHECK(sparse->is.rows == dense->is.rows && sparse->is.columns == dense->is.columns,
                 "%s: one matrix is %lld by %lld, the other %lld by %lld", function, (long long)sparse->is.rows,
                 (long long)sparse->is.columns, (long long)dense->is.rows, (long long)dense->is.columns);
    SPARSE_SUPPORT(sparse->is.value_type == dense->is.value_type, "%s: one matrix is of type %d, the other of %d",
                   function, (int)sparse->is.value_type, (int)dense->is.value_type);
    SPARSE_SUPPORT(sparse->is.format != CUSPARSE_FORMAT_BSR, "%s: the format BSR", function);
    SPARSE_RETURN_IF(check_no_triangle(function, &sparse->is));
    return check_matrix(function, &sparse->is);
}

static cusparseStatus_t check_source(const char *function, cusparseConstSpMatDescr_t a) {
    SPARSE_RETURN_IF(object_check(a, SPARSE_MATRIX, function, "matA"));
    SPARSE_SUPPORT(a->is.format != CUSPARSE_FORMAT_BLOCKED_ELL, "%s: the format BLOCKED_ELL", function);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSparseToDense_bufferSize(cusparseHandle_t handle, cusparseConstSpMatDescr_t a,
                                                         cusparseDnMatDescr_t b, cusparseSparseToDenseAlg_t alg,
                                                         size_t *size) {
    SPARSE_RETURN_IF(check_source("cusparseSparseToDense_bufferSize", a));
    SPARSE_RETURN_IF(check_pair(handle, "cusparseSparseToDense_bufferSize", a, b, (int)alg, "matA", "matB"));
    if (!size) return sparse_null("cusparseSparseToDense_bufferSize", "bufferSize");
    *size = BUFFER_BYTES;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSparseToDense(cusparseHandle_t handle, cusparseConstSpMatDescr_t a,
                                              cusparseDnMatDescr_t b, cusparseSparseToDenseAlg_t alg, void *buffer) {
    SPARSE_RETURN_IF(check_source("cusparseSparseToDense", a));
    SPARSE_RETURN_IF(check_pair(handle, "cusparseSparseToDense", a, b, (int)alg, "matA", "matB"));
    SPARSE_RETURN_IF(check_external("cusparseSparseToDense", buffer));
    struct sparse *sparse = sparse_new("cusparseSparseToDense", run_to_dense);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    sparse->a = a->is;
    sparse->x = b->is;
    return sparse_submit(handle, sparse, false);
}

/* ---- dense to sparse --------------------------------------------------------------------------------------------- */

enum form { ANALYSIS, CONVERT };

/* The places of the blocks are known before: only their values are taken. */
static void take_element(void *data, int64_t row, int64_t column, int64_t place) {
    const struct filling *filling = data;
    const struct matrix *blocks = filling->from;
    int64_t size = blocks->block_rows, in_row = blocks->width / size;
    char *to = (char *)blocks->values + place * (int64_t)filling->size;
    if (is_no_block(blocks, row / size * in_row + place % blocks->width / size)) memset(to, 0, filling->size);
    else memcpy(to, place_in(filling->to, row, column), filling->size);
}

static CUresult run_to_blocks(struct sparse *sparse) {
    const struct dense *from = &sparse->x;
    RETURN_IF(touch_dense(sparse, from, "the values of matA"));
    if (sparse->form == ANALYSIS) return CUDA_SUCCESS;
    RETURN_IF(touch_sparse(sparse, &sparse->a, "matB"));
    struct filling filling = {&sparse->a, from, element_size(from->type)};
    each_element(sparse, &sparse->a, "matB", 0, major_count(&sparse->a), take_element, &filling);
    return CUDA_SUCCESS;
}

/* Elements that are not zero, in the order of the sparse format; when converting, they are written. */
static CUresult run_to_sparse(struct sparse *sparse) {
    if (sparse->a.format == CUSPARSE_FORMAT_BLOCKED_ELL) return run_to_blocks(sparse);
    const struct dense *from = &sparse->x;
    const struct matrix *to = &sparse->a;
    bool by_column = to->format == CUSPARSE_FORMAT_CSC, coordinates = to->format == CUSPARSE_FORMAT_COO;
    bool convert = sparse->form == CONVERT;
    int64_t lines = by_column ? to->columns : to->rows, length = by_column ? to->rows : to->columns, count = 0;
    size_t size = element_size(from->type);
    RETURN_IF(touch_dense(sparse, from, "the values of matA"));
    if (convert) RETURN_IF(touch_sparse(sparse, to, "matB"));
    else if (!coordinates)
        RETURN_IF(touch(sparse, "the offsets of matB", to->offsets, (uint64_t)lines + 1, index_size(to->offset_type)));
    for (int64_t i = 0; i < lines; i++) {
        if (!coordinates) index_put(to->offset_type, to->offsets, i, count + to->base);
        for (int64_t j = 0; j < length; j++) {
            const char *value = by_column ? place_in(from, j, i) : place_in(from, i, j);
            if (element_load(from->type, value, 0) == 0) continue;
            if (convert) {
                if (count == to->count) { /* the matrix has changed since the analysis */
                    note_bad(sparse, "elements", "matB", count, count, to->count);
                    return CUDA_SUCCESS;
                }
                if (coordinates) index_put(to->offset_type, to->offsets, count, i + to->base);
                index_put(to->index_type, to->indices, count, j + to->base);
                memcpy((char *)to->values + count * (int64_t)size, value, size);
            }
            count++;
        }
    }
    if (!coordinates) index_put(to->offset_type, to->offsets, lines, count + to->base);
    if (!convert) *(int64_t *)sparse->result = count;
    return CUDA_SUCCESS;
}

static cusparseStatus_t to_sparse(cusparseHandle_t handle, const char *function, enum form form,
                                  cusparseConstDnMatDescr_t a, cusparseSpMatDescr_t b, int alg) {
    SPARSE_RETURN_IF(check_pair(handle, function, b, a, alg, "matB", "matA"));
    struct sparse *sparse = sparse_new(function, run_to_sparse);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    int64_t count = 0;
    sparse->form = form;
    sparse->x = a->is;
    sparse->a = b->is;
    if (form == ANALYSIS) sparse->result = &count;
    SPARSE_RETURN_IF(sparse_submit(handle, sparse, form == ANALYSIS));
    if (form == ANALYSIS && b->is.format != CUSPARSE_FORMAT_BLOCKED_ELL) b->is.count = count;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseDenseToSparse_bufferSize(cusparseHandle_t handle, cusparseConstDnMatDescr_t a,
                                                         cusparseSpMatDescr_t b, cusparseDenseToSparseAlg_t alg,
                                                         size_t *size) {
    SPARSE_RETURN_IF(check_pair(handle, "cusparseDenseToSparse_bufferSize", b, a, (int)alg, "matB", "matA"));
    if (!size) return sparse_null("cusparseDenseToSparse_bufferSize", "bufferSize");
    *size = BUFFER_BYTES;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseDenseToSparse_analysis(cusparseHandle_t handle, cusparseConstDnMatDescr_t a,
                                                       cusparseSpMatDescr_t b, cusparseDenseToSparseAlg_t alg,
                                                       void *buffer) {
    SPARSE_RETURN_IF(check_pair(handle, "cusparseDenseToSparse_analysis", b, a, (int)alg, "matB", "matA"));
    SPARSE_RETURN_IF(check_external("cusparseDenseToSparse_analysis", buffer));
    return to_sparse(handle, "cusparseDenseToSparse_analysis", ANALYSIS, a, b, (int)alg);
}

static cusparseStatus_t cusparseDenseToSparse_convert(cusparseHandle_t handle, cusparseConstDnMatDescr_t a,
                                                      cusparseSpMatDescr_t b, cusparseDenseToSparseAlg_t alg,
                                                      void *buffer) {
    (void)buffer;
    return to_sparse(handle, "cusparseDenseToSparse_convert", CONVERT, a, b, (int)alg);
}

/* ---- CSR to CSC -------------------------------------------------------------------------------------------------- */

enum { CSC_VALUES, CSC_OFFSETS, CSC_INDICES }; /* places in `extra` */

static CUresult run_turn(struct sparse *sparse) {
    struct matrix from = sparse->a;
    int32_t *offsets = sparse->extra[CSC_OFFSETS], *indices = sparse->extra[CSC_INDICES];
    char *values = sparse->extra[CSC_VALUES];
    size_t size = element_size(from.type);
    uint64_t count = (uint64_t)from.count;
    struct rows rows;
    RETURN_IF(touch(sparse, "csrRowPtr", from.offsets, (uint64_t)from.rows + 1, sizeof(int32_t)));
    RETURN_IF(touch(sparse, "csrColInd", from.indices, count, sizeof(int32_t)));
    RETURN_IF(touch(sparse, "cscColPtr", offsets, (uint64_t)from.columns + 1, sizeof(int32_t)));
    RETURN_IF(touch(sparse, "cscRowInd", indices, count, sizeof(int32_t)));
    if (sparse->form) RETURN_IF(touch(sparse, "csrVal", from.values, count, size));
    if (sparse->form) RETURN_IF(touch(sparse, "cscVal", values, count, size));
    if (!count) { /* the offsets do not matter */
        for (int64_t i = 0; i <= from.columns; i++) offsets[i] = (int32_t)from.base;
        return CUDA_SUCCESS;
    }
    const char *source = from.values;
    from.values = NULL;
    RETURN_IF(rows_of(sparse, &from, "the CSR matrix", CUSPARSE_OPERATION_TRANSPOSE, true, &rows));
    for (int64_t i = 0; i <= rows.rows; i++) offsets[i] = (int32_t)(rows.offsets[i] + from.base);
    for (int64_t i = 0; i < rows.count; i++) {
        indices[i] = (int32_t)(rows.indices[i] + from.base);
        if (sparse->form) memcpy(values + i * (int64_t)size, source + rows.places[i] * (int64_t)size, size);
    }
    rows_free(&rows);
    return CUDA_SUCCESS;
}

struct turn {
    struct matrix from;
    void *values, *offsets, *indices;
    cusparseAction_t action;
    cusparseCsr2CscAlg_t alg;
};

static cusparseStatus_t check_turn(cusparseHandle_t handle, const char *function, struct turn *turn) {
    struct matrix *a = &turn->from;
    SPARSE_RETURN_IF(sparse_check(handle, function));
    SPARSE_CHECK(a->rows >= 0 && a->columns >= 0 && a->count >= 0 && a->count <= a->rows * a->columns,
                 "%s: m is %lld, n is %lld and nnz is %lld", function, (long long)a->rows, (long long)a->columns,
                 (long long)a->count);
    SPARSE_CHECK((unsigned)turn->action <= CUSPARSE_ACTION_NUMERIC, "%s: copyValues is %d", function,
                 (int)turn->action);
    SPARSE_CHECK((uint64_t)a->base <= 1, "%s: idxBase is %lld; it must be 0 or 1", function, (long long)a->base);
    SPARSE_CHECK(turn->alg == CUSPARSE_CSR2CSC_ALG_DEFAULT, "%s: %d is no algorithm", function, (int)turn->alg);
    SPARSE_CHECK(is_value_type(a->value_type), "%s: the type %d of values is none that cuSPARSE has", function,
                 (int)a->value_type);
    bool numeric = turn->action == CUSPARSE_ACTION_NUMERIC;
    SPARSE_CHECK(a->offsets && turn->offsets && (!a->count || (a->indices && turn->indices)) &&
                     (!a->count || !numeric || (a->values && turn->values)),
                 "%s: the address of an array is a null pointer", function);
    a->type = value_of(a->value_type);
    a->format = CUSPARSE_FORMAT_CSR;
    a->offset_type = a->index_type = CUSPARSE_INDEX_32I;
    a->batch = 1;
    return CUSPARSE_STATUS_SUCCESS;
}

static struct turn turn_of(int m, int n, int nnz, const void *values, const int *offsets, const int *indices,
                           void *csc_values, int *csc_offsets, int *csc_indices, cudaDataType type,
                           cusparseAction_t action, cusparseIndexBase_t base, cusparseCsr2CscAlg_t alg) {
    struct matrix from = {.rows = m, .columns = n, .count = nnz, .base = (int64_t)base, .value_type = type};
    from.values = (void *)values, from.offsets = (void *)offsets, from.indices = (void *)indices;
    return (struct turn){from, csc_values, csc_offsets, csc_indices, action, alg};
}

static cusparseStatus_t cusparseCsr2cscEx2(cusparseHandle_t handle, int m, int n, int nnz, const void *values,
                                           const int *offsets, const int *indices, void *csc_values, int *csc_offsets,
                                           int *csc_indices, cudaDataType type, cusparseAction_t action,
                                           cusparseIndexBase_t base, cusparseCsr2CscAlg_t alg, void *buffer) {
    static const char function[] = "cusparseCsr2cscEx2";
    struct turn turn =
        turn_of(m, n, nnz, values, offsets, indices, csc_values, csc_offsets, csc_indices, type, action, base, alg);
    SPARSE_RETURN_IF(check_turn(handle, function, &turn));
    SPARSE_RETURN_IF(check_external(function, buffer));
    struct sparse *sparse = sparse_new(function, run_turn);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    sparse->a = turn.from;
    sparse->buffer = buffer, sparse->buffer_size = BUFFER_BYTES;
    sparse->form = action == CUSPARSE_ACTION_NUMERIC;
    sparse->extra[CSC_VALUES] = csc_values;
    sparse->extra[CSC_OFFSETS] = csc_offsets;
    sparse->extra[CSC_INDICES] = csc_indices;
    return sparse_submit(handle, sparse, false);
}

static cusparseStatus_t cusparseCsr2cscEx2_bufferSize(cusparseHandle_t handle, int m, int n, int nnz,
                                                      const void *values, const int *offsets, const int *indices,
                                                      void *csc_values, int *csc_offsets, int *csc_indices,
                                                      cudaDataType type, cusparseAction_t action,
                                                      cusparseIndexBase_t base, cusparseCsr2CscAlg_t alg,
                                                      size_t *size) {
    static const char function[] = "cusparseCsr2cscEx2_bufferSize";
    struct turn turn =
        turn_of(m, n, nnz, values, offsets, indices, csc_values, csc_offsets, csc_indices, type, action, base, alg);
    SPARSE_RETURN_IF(check_turn(handle, function, &turn));
    if (!size) return sparse_null(function, "bufferSize");
    *size = BUFFER_BYTES;
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- indices of rows, and offsets -------------------------------------------------------------------------------- */

/* Row indices, which are in order, become offsets. */
static CUresult run_compress(struct sparse *sparse) {
    const struct matrix *a = &sparse->a;
    int32_t *offsets = sparse->extra[0];
    const int32_t *indices = a->indices;
    RETURN_IF(touch(sparse, "cooRowInd", indices, (uint64_t)a->count, sizeof *indices));
    RETURN_IF(touch(sparse, "csrSortedRowPtr", offsets, (uint64_t)a->rows + 1, sizeof *offsets));
    int64_t row = 0;
    for (int64_t e = 0; e < a->count; e++) {
        int64_t next = indices[e] - a->base;
        if (unlikely((uint64_t)next >= (uint64_t)a->rows)) {
            note_bad(sparse, "row indices", "cooRowInd", e, next, a->rows);
            return CUDA_SUCCESS;
        }
        while (row <= next) offsets[row++] = (int32_t)(e + a->base);
    }
    while (row <= a->rows) offsets[row++] = (int32_t)(a->count + a->base);
    return CUDA_SUCCESS;
}

static CUresult run_expand(struct sparse *sparse) {
    const struct matrix *a = &sparse->a;
    int32_t *indices = sparse->extra[0];
    const int32_t *offsets = a->offsets;
    RETURN_IF(touch(sparse, "csrSortedRowPtr", offsets, (uint64_t)a->rows + 1, sizeof *offsets));
    RETURN_IF(touch(sparse, "cooRowInd", indices, (uint64_t)a->count, sizeof *indices));
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t begin = offsets[row] - a->base, end = offsets[row + 1] - a->base;
        if (unlikely(begin < 0 || end > a->count)) {
            note_bad(sparse, "offsets", "csrSortedRowPtr", row, begin < 0 ? begin : end, a->count + 1);
            return CUDA_SUCCESS;
        }
        for (int64_t e = begin; e < end; e++) indices[e] = (int32_t)(row + a->base);
    }
    return CUDA_SUCCESS;
}

static cusparseStatus_t change_indices(cusparseHandle_t handle, const char *function,
                                       CUresult (*run)(struct sparse *sparse), const int *from, int nnz, int m, int *to,
                                       cusparseIndexBase_t base) {
    if (!handle) return sparse_fail(CUSPARSE_STATUS_NOT_INITIALIZED, "%s: 'handle' is a null pointer", function);
    SPARSE_RETURN_IF(sparse_check(handle, function));
    SPARSE_CHECK(nnz >= 0 && m >= 0, "%s: nnz is %d and m is %d", function, nnz, m);
    SPARSE_CHECK((unsigned)base <= 1, "%s: idxBase is %d; it must be 0 or 1", function, (int)base);
    if (!m || (!nnz && run == run_expand)) return CUSPARSE_STATUS_SUCCESS;
    struct sparse *sparse = sparse_new(function, run);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    sparse->a = (struct matrix){.rows = m, .count = nnz, .base = base, .batch = 1};
    sparse->a.offsets = sparse->a.indices = (void *)from;
    sparse->extra[0] = to;
    return sparse_submit(handle, sparse, false);
}

static cusparseStatus_t cusparseXcoo2csr(cusparseHandle_t handle, const int *rows, int nnz, int m, int *offsets,
                                         cusparseIndexBase_t base) {
    return change_indices(handle, "cusparseXcoo2csr", run_compress, rows, nnz, m, offsets, base);
}

static cusparseStatus_t cusparseXcsr2coo(cusparseHandle_t handle, const int *offsets, int nnz, int m, int *rows,
                                         cusparseIndexBase_t base) {
    return change_indices(handle, "cusparseXcsr2coo", run_expand, offsets, nnz, m, rows, base);
}

const struct entry sparse_convert_entries[] = {
    SPARSE_ENTRY(cusparseSparseToDense_bufferSize),
    SPARSE_ENTRY(cusparseSparseToDense),
    SPARSE_ENTRY(cusparseDenseToSparse_bufferSize),
    SPARSE_ENTRY(cusparseDenseToSparse_analysis),
    SPARSE_ENTRY(cusparseDenseToSparse_convert),
    SPARSE_ENTRY(cusparseCsr2cscEx2),
    SPARSE_ENTRY(cusparseCsr2cscEx2_bufferSize),
    SPARSE_ENTRY(cusparseXcoo2csr),
    SPARSE_ENTRY(cusparseXcsr2coo),
    {NULL, NULL, NULL},
};
