/* Sparse times dense: SpMV and SpMM (cuSPARSE Library, 6.7.4 and 6.7.7).
 *
 * y = alpha op(A) x + beta y, and the same for the columns of a matrix. Rows of op(A) are independent, so they are shared
 * out among threads. CSR, and CSC when it is turned, have these rows one after the other and are read where they are;
 * other matrices are copied into that form first. Sums are formed in double precision and rounded once. */
#include <complex.h>
#undef I
#include <stdlib.h>

#include "sparse.h"

struct product {
    struct sparse *sparse;
    const char *name; /* of the matrix */
    /* op(A), by rows. */
    int64_t columns, count, base;
    const void *offsets, *indices, *values;
    cusparseIndexType_t offset_type, index_type;
    enum element type;
    bool conjugate_a;
    /* op(B) and C: an element is at row * step[0] + column * step[1]. */
    struct dense b, c;
    int64_t step_b[2], step_c[2];
    bool conjugate_b;
    number alpha, beta;
};

enum { WIDTH = 8 }; /* columns of C that are formed at a time */

static inline __attribute__((always_inline)) double real_at(enum element type, const void *place, int64_t index) {
    return type == S   ? (double)((const float *)place)[index]
           : type == D ? ((const double *)place)[index]
                       : creal(element_load(type, place, index));
}
static inline __attribute__((always_inline)) number complex_at(enum element type, const void *place, int64_t index) {
    return type == Z ? ((const number *)place)[index] : element_load(type, place, index);
}
static inline __attribute__((always_inline)) void real_put(enum element type, void *place, int64_t index,
                                                           double value) {
    if (type == S) ((float *)place)[index] = (float)value;
    else if (type == D) ((double *)place)[index] = value;
    else element_store(type, place, index, value);
}

static inline bool row_range(const struct product *p, int64_t row, int64_t *begin, int64_t *end) {
    *begin = index_from(p->base, p->offset_type, p->offsets, row);
    *end = index_from(p->base, p->offset_type, p->offsets, row + 1);
    bool first = (uint64_t)*begin > (uint64_t)p->count;
    if (likely(!first && (uint64_t)*end <= (uint64_t)p->count)) return true;
    note_bad(p->sparse, "offsets", p->name, first ? row : row + 1, first ? *begin : *end, p->count + 1);
    return false;
}

/* The rows first to last of C, columns `from` and following ones: `width` of them. Called with constants, for each type. */
static inline __attribute__((always_inline)) void real_rows(const struct product *p, int64_t first, int64_t last,
                                                            int64_t from, int width, enum element type_a,
                                                            enum element type_b, enum element type_c,
                                                            cusparseIndexType_t index_type) {
    const void *b = element_size(type_b) * (size_t)(from * p->step_b[1]) + (const char *)p->b.values;
    void *c = element_size(type_c) * (size_t)(from * p->step_c[1]) + (char *)p->c.values;
    double alpha = creal(p->alpha), beta = creal(p->beta);
    for (int64_t row = first; row < last; row++) {
        int64_t begin, end;
        if (!row_range(p, row, &begin, &end)) return;
        double sums[WIDTH] = {0};
        for (int64_t e = begin; e < end; e++) {
            int64_t column = index_from(p->base, index_type, p->indices, e);
            if (unlikely((uint64_t)column >= (uint64_t)p->columns))
                return note_bad(p->sparse, "indices", p->name, e, column, p->columns);
            double value = real_at(type_a, p->values, e);
            for (int k = 0; k < width; k++)
                sums[k] += value * real_at(type_b, b, column * p->step_b[0] + k * p->step_b[1]);
        }
        for (int k = 0; k < width; k++) {
            int64_t at = row * p->step_c[0] + k * p->step_c[1];
            double sum = begin < end && alpha != 0 ? alpha * sums[k] : 0; /* not even a NaN times nothing */
            real_put(type_c, c, at, beta == 0 ? sum : sum + beta * real_at(type_c, c, at));
        }
    }
}

static inline __attribute__((always_inline)) void complex_rows(const struct product *p, int64_t first, int64_t last,
                                                               int64_t from, int width, enum element type_a,
                                                               enum element type_b, enum element type_c,
                                                               cusparseIndexType_t index_type) {
    const void *b = element_size(type_b) * (size_t)(from * p->step_b[1]) + (const char *)p->b.values;
    void *c = element_size(type_c) * (size_t)(from * p->step_c[1]) + (char *)p->c.values;
    for (int64_t row = first; row < last; row++) {
        int64_t begin, end;
        if (!row_range(p, row, &begin, &end)) return;
        number sums[WIDTH] = {0};
        for (int64_t e = begin; e < end; e++) {
            int64_t column = index_from(p->base, index_type, p->indices, e);
            if (unlikely((uint64_t)column >= (uint64_t)p->columns))
                return note_bad(p->sparse, "indices", p->name, e, column, p->columns);
            number value = complex_at(type_a, p->values, e);
            if (p->conjugate_a) value = conj(value);
            for (int k = 0; k < width; k++) {
                number x = complex_at(type_b, b, column * p->step_b[0] + k * p->step_b[1]);
                sums[k] += times(value, p->conjugate_b ? conj(x) : x);
            }
        }
        for (int k = 0; k < width; k++) {
            int64_t at = row * p->step_c[0] + k * p->step_c[1];
            number sum = begin < end && p->alpha != 0 ? times(p->alpha, sums[k]) : 0;
            element_store(type_c, c, at, p->beta == 0 ? sum : sum + times(p->beta, element_load(type_c, c, at)));
        }
    }
}

/* For the usual types, loops of their own; the others look at the types in the loop. */
static void some_rows(void *data, int64_t first, int64_t last) {
    const struct product *p = data;
    bool same = p->type == p->b.type && p->type == p->c.type, wide = p->index_type == CUSPARSE_INDEX_64I;
    bool copied = p->type == D && p->b.type == S && p->c.type == S; /* a matrix in one form */
    for (int64_t from = 0; from < p->c.columns; from += WIDTH) {
        int width = (int)smaller(WIDTH, p->c.columns - from);
#define LOOP(kind, a, b, c, index)                                                         \
    (width == 1 ? kind##_rows(p, first, last, from, 1, a, b, c, index)                     \
                : kind##_rows(p, first, last, from, width, a, b, c, index))
        if (is_complex(p->c.type)) LOOP(complex, p->type, p->b.type, p->c.type, p->index_type);
        else if (same && p->type == S && !wide) LOOP(real, S, S, S, CUSPARSE_INDEX_32I);
        else if (same && p->type == D && !wide) LOOP(real, D, D, D, CUSPARSE_INDEX_32I);
        else if (same && p->type == D) LOOP(real, D, D, D, CUSPARSE_INDEX_64I);
        else if (copied && wide) LOOP(real, D, S, S, CUSPARSE_INDEX_64I);
        else LOOP(real, p->type, p->b.type, p->c.type, p->index_type);
    }
}

/* One product of a batch. */
static CUresult multiply(struct sparse *sparse, const struct matrix *a, const struct dense *b, const struct dense *c,
                         number alpha, number beta) {
    cusparseOperation_t op = sparse->op_a;
    bool turned = op != CUSPARSE_OPERATION_NON_TRANSPOSE, turned_b = sparse->op_b != CUSPARSE_OPERATION_NON_TRANSPOSE;
    struct rows copy = {0};
    struct product p = {.sparse = sparse, .name = "matA", .b = *b, .c = *c, .alpha = alpha, .beta = beta};
    p.step_b[turned_b] = row_step(b), p.step_b[!turned_b] = column_step(b);
    p.step_c[0] = row_step(c), p.step_c[1] = column_step(c);
    p.conjugate_b = sparse->op_b == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
    if (a->format == (turned ? CUSPARSE_FORMAT_CSC : CUSPARSE_FORMAT_CSR)) {
        p.columns = turned ? a->rows : a->columns, p.count = a->count, p.base = a->base, p.type = a->type;
        p.offsets = a->offsets, p.indices = a->indices, p.values = a->values;
        p.offset_type = a->offset_type, p.index_type = a->index_type;
        p.conjugate_a = op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
    } else {
        RETURN_IF(rows_of(sparse, a, "matA", op, false, &copy));
        p.columns = copy.columns, p.count = copy.count, p.type = copy.type;
        p.offsets = copy.offsets, p.indices = copy.indices, p.values = copy.values;
        p.offset_type = p.index_type = CUSPARSE_INDEX_64I;
    }
    in_parts(some_rows, &p, c->rows, (p.count + c->rows) * c->columns);
    rows_free(&copy);
    return CUDA_SUCCESS;
}

static CUresult run(struct sparse *sparse) {
    number alpha, beta;
    bool vectors = sparse->form;
    RETURN_IF(scalar_load(sparse, &sparse->alpha, &alpha));
    RETURN_IF(scalar_load(sparse, &sparse->beta, &beta));
    RETURN_IF(touch_dense(sparse, &sparse->y, vectors ? "the values of vecY" : "the values of matC"));
    RETURN_IF(touch_dense(sparse, &sparse->x, vectors ? "the values of vecX" : "the values of matB"));
    RETURN_IF(touch_sparse(sparse, &sparse->a, "matA"));
    if (!sparse->y.rows || !sparse->y.columns) return CUDA_SUCCESS;
    for (int64_t i = 0; i < larger(sparse->y.batch, 1); i++) {
        struct matrix a = matrix_of_batch(sparse->a, i);
        struct dense b = of_batch(sparse->x, i), c = of_batch(sparse->y, i);
        RETURN_IF(multiply(sparse, &a, &b, &c, alpha, beta));
        RETURN_IF(bad_index(sparse));
    }
    return CUDA_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Which types go together (cuSPARSE Library, the tables of cusparseSpMV and cusparseSpMM): of A, of B and C, of the sums. */
struct combination {
    cudaDataType a, b, c, compute;
};

static bool types_fit(const struct matrix *a, const struct dense *b, const struct dense *c, cudaDataType compute,
                      bool vectors) {
    static const struct combination of_blocks[] = {
        {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},   {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F},
        {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F},   {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F},
        {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F}, {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
        {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},   {CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I},
    };
    static const struct combination of_all[] = {
        {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},    {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
        {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F},    {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F},
        {CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I},      {CUDA_R_8I, CUDA_R_8I, CUDA_R_32F, CUDA_R_32F},
        {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F},    {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F},
        {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F}, {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F},
        {CUDA_R_32F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},    {CUDA_R_32F, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F},
        {CUDA_R_64F, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F},    {CUDA_C_16F, CUDA_C_16F, CUDA_C_16F, CUDA_C_32F},
        {CUDA_C_16BF, CUDA_C_16BF, CUDA_C_16BF, CUDA_C_32F},
    };
    bool ell = a->format == CUSPARSE_FORMAT_BLOCKED_ELL;
    const struct combination *fits = ell ? of_blocks : of_all;
    size_t count = ell ? sizeof of_blocks / sizeof *of_blocks : sizeof of_all / sizeof *of_all;
    for (size_t i = 0; i < count; i++)
        if (fits[i].a == a->value_type && fits[i].b == b->value_type && fits[i].c == c->value_type &&
            fits[i].compute == compute)
            return vectors || a->type != S || b->type != D;
    return false;
}

struct operands {
    const char *function;
    cusparseOperation_t op_a, op_b;
    const void *alpha, *beta;
    const struct matrix *a;
    const struct dense *b, *c;
    cudaDataType compute;
    bool vectors, on_device; /* where the scalars are */
};

/* Products of Blocked ELL are those of one algorithm, with its own conditions. */
static cusparseStatus_t check_ell(const struct operands *p) {
    const char *function = p->function;
    SPARSE_SUPPORT(!p->vectors, "%s: there are no such products of matrices in the format BLOCKED_ELL", function);
    SPARSE_SUPPORT(p->op_a == CUSPARSE_OPERATION_NON_TRANSPOSE,
                   "%s: opA must be NON_TRANSPOSE for matrices in the format BLOCKED_ELL", function);
    SPARSE_SUPPORT(p->a->index_type == CUSPARSE_INDEX_32I,
                   "%s: matrices in the format BLOCKED_ELL must have indices of 32 bits", function);
    SPARSE_SUPPORT(!p->on_device, "%s: the scalars must be on the host for matrices in the format BLOCKED_ELL",
                   function);
    bool by_column = (p->b->order == CUSPARSE_ORDER_COL) == (p->op_b == CUSPARSE_OPERATION_NON_TRANSPOSE);
    SPARSE_SUPPORT(p->a->type != I8 || (by_column && p->a->block_rows > 1),
                   "%s: with whole numbers, op(B) must lie in columns, and blocks have more than one element",
                   function);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t check(const struct operands *p) {
    SPARSE_RETURN_IF(check_operation(p->function, "opA", p->op_a));
    SPARSE_RETURN_IF(check_operation(p->function, "opB", p->op_b));
    if (!p->alpha || !p->beta) return sparse_null(p->function, p->alpha ? "beta" : "alpha");
    SPARSE_RETURN_IF(check_compute(p->function, p->compute));
    SPARSE_RETURN_IF(check_matrix(p->function, p->a));
    int64_t m = op_rows(p->op_a, p->a->rows, p->a->columns), k = op_rows(p->op_a, p->a->columns, p->a->rows);
    int64_t rows = op_rows(p->op_b, p->b->rows, p->b->columns), n = op_rows(p->op_b, p->b->columns, p->b->rows);
    SPARSE_CHECK(
        k == rows && m == p->c->rows && n == p->c->columns,
        "%s: the sparse matrix is %lld by %lld, the operand %lld by %lld and the result %lld by %lld, all as op "
        "turns them",
        p->function, (long long)m, (long long)k, (long long)rows, (long long)n, (long long)p->c->rows,
        (long long)p->c->columns);
    SPARSE_RETURN_IF(
        check_types(p->function, types_fit(p->a, p->b, p->c, p->compute, p->vectors), p->a, p->b, p->c, p->compute));
    SPARSE_SUPPORT(p->a->format != CUSPARSE_FORMAT_BSR || p->op_a == CUSPARSE_OPERATION_NON_TRANSPOSE,
                   "%s: opA must be NON_TRANSPOSE for matrices in the format BSR", p->function);
    SPARSE_RETURN_IF(check_no_triangle(p->function, p->a));
    SPARSE_RETURN_IF(check_conjugation(p->function, "opA", p->op_a, p->c->type));
    SPARSE_RETURN_IF(check_conjugation(p->function, "opB", p->op_b, p->b->type));
    return p->a->format == CUSPARSE_FORMAT_BLOCKED_ELL ? check_ell(p) : CUSPARSE_STATUS_SUCCESS;
}

/* Which algorithms there are for a format: all give the same numbers here. */
static cusparseStatus_t check_algorithm(const struct operands *p, int alg) {
    static const struct {
        cusparseFormat_t format;
        bool vectors;
        unsigned algorithms; /* a bit for each */
    } fits[] = {
        {CUSPARSE_FORMAT_CSR, true, 1 | 1 << CUSPARSE_SPMV_CSR_ALG1 | 1 << CUSPARSE_SPMV_CSR_ALG2},
        {CUSPARSE_FORMAT_CSC, true, 1 | 1 << CUSPARSE_SPMV_CSR_ALG1 | 1 << CUSPARSE_SPMV_CSR_ALG2},
        {CUSPARSE_FORMAT_COO, true, 1 | 1 << CUSPARSE_SPMV_COO_ALG1 | 1 << CUSPARSE_SPMV_COO_ALG2},
        {CUSPARSE_FORMAT_BSR, true, 1 | 1 << CUSPARSE_SPMV_BSR_ALG1},
        {CUSPARSE_FORMAT_CSR, false,
         1 | 1 << CUSPARSE_SPMM_CSR_ALG1 | 1 << CUSPARSE_SPMM_CSR_ALG2 | 1 << CUSPARSE_SPMM_CSR_ALG3},
        {CUSPARSE_FORMAT_CSC, false, 1 | 1 << CUSPARSE_SPMM_CSR_ALG1 | 1 << CUSPARSE_SPMM_CSR_ALG2},
        {CUSPARSE_FORMAT_COO, false,
         1 | 1 << CUSPARSE_SPMM_COO_ALG1 | 1 << CUSPARSE_SPMM_COO_ALG2 | 1 << CUSPARSE_SPMM_COO_ALG3 |
             1 << CUSPARSE_SPMM_COO_ALG4},
        {CUSPARSE_FORMAT_BSR, false, 1 | 1 << CUSPARSE_SPMM_BSR_ALG1},
        {CUSPARSE_FORMAT_BLOCKED_ELL, false, 1 | 1 << CUSPARSE_SPMM_BLOCKED_ELL_ALG1},
    };
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++)
        if (fits[i].format == p->a->format && fits[i].vectors == p->vectors && (unsigned)alg < 32 &&
            fits[i].algorithms >> alg & 1)
            return CUSPARSE_STATUS_SUCCESS;
    return sparse_fail(CUSPARSE_STATUS_INVALID_VALUE, "%s: there is no algorithm %d for matrices of the format %d",
                       p->function, alg, (int)p->a->format);
}

static bool needs_buffer(const struct operands *p) {
    if (p->vectors && !p->a->count) return false;
    if (p->a->format == CUSPARSE_FORMAT_CSR || p->a->format == CUSPARSE_FORMAT_CSC) return true;
    return p->a->format == CUSPARSE_FORMAT_COO && p->vectors && p->op_a == CUSPARSE_OPERATION_NON_TRANSPOSE;
}

static cusparseStatus_t check_buffer(const struct operands *p, cusparseStatus_t status, const void *buffer) {
    if (buffer || !needs_buffer(p)) return CUSPARSE_STATUS_SUCCESS;
    return sparse_fail(status,
                       "%s: 'externalBuffer' is a null pointer; it must have as many bytes as %s_bufferSize says",
                       p->function, p->vectors ? "cusparseSpMV" : "cusparseSpMM");
}

static cusparseStatus_t submit(cusparseHandle_t handle, const struct operands *p, bool vectors, void *buffer) {
    struct sparse *sparse = sparse_new(p->function, run);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    sparse->form = vectors;
    if (needs_buffer(p)) sparse->buffer = buffer, sparse->buffer_size = BUFFER_BYTES;
    sparse->op_a = p->op_a, sparse->op_b = p->op_b;
    sparse->a = *p->a, sparse->x = *p->b, sparse->y = *p->c;
    sparse->compute = value_of(p->compute);
    sparse_scalar(handle, &sparse->alpha, sparse->compute, p->alpha);
    sparse_scalar(handle, &sparse->beta, sparse->compute, p->beta);
    return sparse_submit(handle, sparse, false);
}

#define CHECK_OBJECTS(a, kind_a, b, kind_b, c, kind_c)                     \
    do {                                                                   \
        SPARSE_RETURN_IF(sparse_check(handle, function));                  \
        SPARSE_RETURN_IF(object_check(a, kind_a, function, #a));           \
        SPARSE_RETURN_IF(object_check(b, kind_b, function, #b));           \
        SPARSE_RETURN_IF(object_check(c, kind_c, function, #c));           \
    } while (0)

static cusparseStatus_t vector_operands(cusparseHandle_t handle, const char *function, cusparseOperation_t op,
                                        const void *alpha, cusparseConstSpMatDescr_t matA,
                                        cusparseConstDnVecDescr_t vecX, const void *beta, cusparseDnVecDescr_t vecY,
                                        cudaDataType compute, cusparseSpMVAlg_t alg, struct operands *p) {
    CHECK_OBJECTS(matA, SPARSE_MATRIX, vecX, DENSE_VECTOR, vecY, DENSE_VECTOR);
    *p = (struct operands){function,
                           op,
                           CUSPARSE_OPERATION_NON_TRANSPOSE,
                           alpha,
                           beta,
                           &matA->is,
                           &vecX->is,
                           &vecY->is,
                           compute,
                           true,
                           handle->pointer_mode == CUSPARSE_POINTER_MODE_DEVICE};
    SPARSE_RETURN_IF(check(p));
    return check_algorithm(p, (int)alg);
}

static cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                                     cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void *beta,
                                     cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t alg,
                                     void *buffer) {
    struct operands p;
    SPARSE_RETURN_IF(vector_operands(handle, "cusparseSpMV", op, alpha, a, x, beta, y, compute, alg, &p));
    SPARSE_RETURN_IF(check_buffer(&p, CUSPARSE_STATUS_INVALID_VALUE, buffer));
    return submit(handle, &p, true, buffer);
}

static cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                                                cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                                const void *beta, cusparseDnVecDescr_t y, cudaDataType compute,
                                                cusparseSpMVAlg_t alg, size_t *size) {
    struct operands p;
    SPARSE_RETURN_IF(vector_operands(handle, "cusparseSpMV_bufferSize", op, alpha, a, x, beta, y, compute, alg, &p));
    if (!size) return sparse_null(p.function, "bufferSize");
    *size = needs_buffer(&p) ? BUFFER_BYTES : 0;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpMV_preprocess(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                                                cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                                const void *beta, cusparseDnVecDescr_t y, cudaDataType compute,
                                                cusparseSpMVAlg_t alg, void *buffer) {
    struct operands p;
    SPARSE_RETURN_IF(vector_operands(handle, "cusparseSpMV_preprocess", op, alpha, a, x, beta, y, compute, alg, &p));
    return check_buffer(&p, CUSPARSE_STATUS_INTERNAL_ERROR, buffer);
}

static cusparseStatus_t matrix_operands(cusparseHandle_t handle, const char *function, cusparseOperation_t op_a,
                                        cusparseOperation_t op_b, const void *alpha, cusparseConstSpMatDescr_t matA,
                                        cusparseConstDnMatDescr_t matB, const void *beta, cusparseDnMatDescr_t matC,
                                        cudaDataType compute, cusparseSpMMAlg_t alg, struct operands *p) {
    CHECK_OBJECTS(matA, SPARSE_MATRIX, matB, DENSE_MATRIX, matC, DENSE_MATRIX);
    *p = (struct operands){function,
                           op_a,
                           op_b,
                           alpha,
                           beta,
                           &matA->is,
                           &matB->is,
                           &matC->is,
                           compute,
                           false,
                           handle->pointer_mode == CUSPARSE_POINTER_MODE_DEVICE};
    int64_t batch = matC->is.batch;
    SPARSE_CHECK(matA->is.batch == batch && matB->is.batch == batch,
                 "%s: batches of %lld, %lld and %lld matrices; a stride of 0 makes one matrix serve all", function,
                 (long long)matA->is.batch, (long long)matB->is.batch, (long long)batch);
    SPARSE_RETURN_IF(check(p));
    return check_algorithm(p, (int)alg);
}

static cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                     const void *alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                     const void *beta, cusparseDnMatDescr_t c, cudaDataType compute,
                                     cusparseSpMMAlg_t alg, void *buffer) {
    struct operands p;
    SPARSE_RETURN_IF(matrix_operands(handle, "cusparseSpMM", op_a, op_b, alpha, a, b, beta, c, compute, alg, &p));
    SPARSE_RETURN_IF(check_buffer(&p, CUSPARSE_STATUS_INTERNAL_ERROR, buffer));
    return submit(handle, &p, false, buffer);
}

static cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                cusparseOperation_t op_b, const void *alpha,
                                                cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                                const void *beta, cusparseDnMatDescr_t c, cudaDataType compute,
                                                cusparseSpMMAlg_t alg, size_t *size) {
    struct operands p;
    SPARSE_RETURN_IF(
        matrix_operands(handle, "cusparseSpMM_bufferSize", op_a, op_b, alpha, a, b, beta, c, compute, alg, &p));
    if (!size) return sparse_null(p.function, "bufferSize");
    *size = needs_buffer(&p) ? BUFFER_BYTES : 0;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpMM_preprocess(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                cusparseOperation_t op_b, const void *alpha,
                                                cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                                const void *beta, cusparseDnMatDescr_t c, cudaDataType compute,
                                                cusparseSpMMAlg_t alg, void *buffer) {
    struct operands p;
    SPARSE_RETURN_IF(
        matrix_operands(handle, "cusparseSpMM_preprocess", op_a, op_b, alpha, a, b, beta, c, compute, alg, &p));
    return check_buffer(&p, CUSPARSE_STATUS_INTERNAL_ERROR, buffer);
}

const struct entry sparse_multiply_entries[] = {
    SPARSE_ENTRY(cusparseSpMV), SPARSE_ENTRY(cusparseSpMV_bufferSize), SPARSE_ENTRY(cusparseSpMV_preprocess),
    SPARSE_ENTRY(cusparseSpMM), SPARSE_ENTRY(cusparseSpMM_bufferSize), SPARSE_ENTRY(cusparseSpMM_preprocess),
    {NULL, NULL, NULL},
};
