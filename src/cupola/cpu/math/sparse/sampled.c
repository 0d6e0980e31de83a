/* Products of dense matrices at the places of a sparse one: SDDMM (cuSPARSE Library, 6.7.10).
 *
 * C = alpha (op(A) op(B)) o spy(C) + beta C. */
#include <complex.h>
#undef I

#include "sparse.h"

struct sampled {
    struct sparse *sparse;
    const struct matrix *c;
    const struct dense *a, *b;
    int64_t step_a[2], step_b[2], inner; /* of op(A) and op(B): from row to row, from column to column */
    bool conjugate_a, conjugate_b;
    number alpha, beta;
};

static void sample(void *data, int64_t row, int64_t column, int64_t place) {
    const struct sampled *s = data;
    number sum = 0;
    for (int64_t k = 0; k < s->inner; k++) {
        number a = element_load(s->a->type, s->a->values, row * s->step_a[0] + k * s->step_a[1]);
        number b = element_load(s->b->type, s->b->values, k * s->step_b[0] + column * s->step_b[1]);
        sum += times(s->conjugate_a ? conj(a) : a, s->conjugate_b ? conj(b) : b);
    }
    sum = times(s->alpha, sum);
    if (s->beta != 0) sum += times(s->beta, element_load(s->c->type, s->c->values, place));
    element_store(s->c->type, s->c->values, place, sum);
}

static void some_lines(void *data, int64_t first, int64_t last) {
    struct sampled *s = data;
    each_element(s->sparse, s->c, "matC", first, last, sample, s);
}

static void steps(const struct dense *dense, cusparseOperation_t op, int64_t step[2]) {
    bool turned = op != CUSPARSE_OPERATION_NON_TRANSPOSE;
    step[turned] = row_step(dense);
    step[!turned] = column_step(dense);
}

static CUresult run(struct sparse *sparse) {
    struct sampled s = {.sparse = sparse};
    RETURN_IF(scalar_load(sparse, &sparse->alpha, &s.alpha));
    RETURN_IF(scalar_load(sparse, &sparse->beta, &s.beta));
    RETURN_IF(touch_sparse(sparse, &sparse->c, "matC"));
    RETURN_IF(touch_dense(sparse, &sparse->x, "the values of matA"));
    RETURN_IF(touch_dense(sparse, &sparse->y, "the values of matB"));
    steps(&sparse->x, sparse->op_a, s.step_a);
    steps(&sparse->y, sparse->op_b, s.step_b);
    s.inner = op_rows(sparse->op_a, sparse->x.columns, sparse->x.rows);
    s.conjugate_a = sparse->op_a == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
    s.conjugate_b = sparse->op_b == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
    for (int64_t i = 0; i < larger(sparse->c.batch, 1); i++) {
        struct matrix c = matrix_of_batch(sparse->c, i);
        struct dense a = of_batch(sparse->x, i), b = of_batch(sparse->y, i);
        s.a = &a, s.b = &b, s.c = &c;
        in_parts(some_lines, &s, major_count(&c), element_count(&c) * (s.inner + 1));
    }
    return CUDA_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static cusparseStatus_t check(cusparseHandle_t handle, const char *function, cusparseOperation_t op_a,
                              cusparseOperation_t op_b, const void *alpha, cusparseConstDnMatDescr_t matA,
                              cusparseConstDnMatDescr_t matB, const void *beta, cusparseConstSpMatDescr_t matC,
                              cudaDataType compute, cusparseSDDMMAlg_t alg) {
    SPARSE_RETURN_IF(sparse_check(handle, function));
    SPARSE_RETURN_IF(object_check(matA, DENSE_MATRIX, function, "matA"));
    SPARSE_RETURN_IF(object_check(matB, DENSE_MATRIX, function, "matB"));
    SPARSE_RETURN_IF(object_check(matC, SPARSE_MATRIX, function, "matC"));
    if (!alpha || !beta) return sparse_null(function, alpha ? "beta" : "alpha");
    SPARSE_RETURN_IF(check_operation(function, "opA", op_a));
    SPARSE_RETURN_IF(check_operation(function, "opB", op_b));
    SPARSE_RETURN_IF(check_compute(function, compute));
    SPARSE_RETURN_IF(check_matrix(function, &matC->is));
    SPARSE_RETURN_IF(check_no_triangle(function, &matC->is));
    SPARSE_RETURN_IF(check_conjugation(function, "opA", op_a, matA->is.type));
    SPARSE_RETURN_IF(check_conjugation(function, "opB", op_b, matB->is.type));
    SPARSE_CHECK(alg == CUSPARSE_SDDMM_ALG_DEFAULT, "%s: %d is no algorithm", function, (int)alg);
    const struct dense *a = &matA->is, *b = &matB->is;
    int64_t rows = op_rows(op_a, a->rows, a->columns), inner = op_rows(op_a, a->columns, a->rows);
    int64_t inner_b = op_rows(op_b, b->rows, b->columns), columns = op_rows(op_b, b->columns, b->rows);
    SPARSE_CHECK(rows == matC->is.rows && columns == matC->is.columns && inner == inner_b,
                 "%s: op(A) is %lld by %lld, op(B) %lld by %lld and C %lld by %lld", function, (long long)rows,
                 (long long)inner, (long long)inner_b, (long long)columns, (long long)matC->is.rows,
                 (long long)matC->is.columns);
    SPARSE_SUPPORT(matC->is.format == CUSPARSE_FORMAT_CSR || matC->is.format == CUSPARSE_FORMAT_BSR,
                   "%s: matC must be in the format CSR or BSR", function);
    SPARSE_SUPPORT(matC->is.format == CUSPARSE_FORMAT_CSR || inner % matC->is.block_rows == 0,
                   "%s: op(A) has %lld columns, not a multiple of the size of blocks, %lld", function, (long long)inner,
                   (long long)matC->is.block_rows);
    int64_t batch = matC->is.batch;
    SPARSE_CHECK(a->batch == batch && b->batch == batch, "%s: batches of %lld, %lld and %lld matrices", function,
                 (long long)a->batch, (long long)b->batch, (long long)batch);
    enum element type = matC->is.type;
    bool known = (type == S || type == D || type == C || type == Z) && a->type == type && b->type == type &&
                 value_of(compute) == type;
    known |= (a->type == H && b->type == H && compute == CUDA_R_32F && (type == H || type == S));
    return check_types(function, known, &matC->is, a, b, compute);
}

static cusparseStatus_t cusparseSDDMM(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                      const void *alpha, cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b,
                                      const void *beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                      cusparseSDDMMAlg_t alg, void *buffer) {
    SPARSE_RETURN_IF(check(handle, "cusparseSDDMM", op_a, op_b, alpha, a, b, beta, c, compute, alg));
    SPARSE_RETURN_IF(check_external("cusparseSDDMM", buffer));
    struct sparse *sparse = sparse_new("cusparseSDDMM", run);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    sparse->op_a = op_a, sparse->op_b = op_b;
    sparse->x = a->is, sparse->y = b->is, sparse->c = c->is;
    sparse_scalar(handle, &sparse->alpha, value_of(compute), alpha);
    sparse_scalar(handle, &sparse->beta, value_of(compute), beta);
    return sparse_submit(handle, sparse, false);
}

static cusparseStatus_t cusparseSDDMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                 cusparseOperation_t op_b, const void *alpha,
                                                 cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b,
                                                 const void *beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                                 cusparseSDDMMAlg_t alg, size_t *size) {
    SPARSE_RETURN_IF(check(handle, "cusparseSDDMM_bufferSize", op_a, op_b, alpha, a, b, beta, c, compute, alg));
    if (!size) return sparse_null("cusparseSDDMM_bufferSize", "bufferSize");
    *size = BUFFER_BYTES;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSDDMM_preprocess(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                 cusparseOperation_t op_b, const void *alpha,
                                                 cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b,
                                                 const void *beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                                 cusparseSDDMMAlg_t alg, void *buffer) {
    SPARSE_RETURN_IF(check(handle, "cusparseSDDMM_preprocess", op_a, op_b, alpha, a, b, beta, c, compute, alg));
    return check_external("cusparseSDDMM_preprocess", buffer);
}

const struct entry sparse_sampled_entries[] = {
    SPARSE_ENTRY(cusparseSDDMM),
    SPARSE_ENTRY(cusparseSDDMM_bufferSize),
    SPARSE_ENTRY(cusparseSDDMM_preprocess),
    {NULL, NULL, NULL},
};
