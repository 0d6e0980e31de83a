/* Triangular systems: SpSV and SpSM (cuSPARSE Library, 6.7.5 and 6.7.8).
 *
 * op(A) C = alpha op(B), where the attributes of A say which triangle counts and whether its diagonal is one. The analysis
 * copies op(A), and solving uses that copy, so new values need cusparseSpSV_updateMatrix() as on a GPU. Rows are solved one
 * after the other, columns of C independently. */
#include <complex.h>
#undef I
#include <stdlib.h>

#include "sparse.h"

struct plan {
    _Atomic unsigned references; /* the descriptor's, and those of operations */
    pthread_mutex_t lock;
    bool known;
    struct rows rows; /* of op(A) */
    int64_t count;    /* of A's values */
    enum element type;
    bool upper, unit, conjugate; /* of op(A) */
};

struct cusparseSpSVDescr {
    struct object object;
    struct plan *plan; /* NULL: no analysis yet */
};
struct cusparseSpSMDescr {
    struct cusparseSpSVDescr is;
};

static struct plan *plan_retain(struct plan *plan) {
    atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
    return plan;
}

static void plan_release(struct plan *plan) {
    if (!plan || atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1) return;
    rows_free(&plan->rows);
    pthread_mutex_destroy(&plan->lock);
    free(plan);
}

static void end_call(struct call *call) { plan_release(((struct sparse *)call)->plan); }

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static CUresult run_analysis(struct sparse *sparse) {
    struct plan *plan = sparse->plan;
    const struct matrix *a = &sparse->a;
    struct rows rows;
    RETURN_IF(touch_sparse(sparse, a, "matA"));
    RETURN_IF(rows_of(sparse, a, "matA", sparse->op_a, true, &rows));
    pthread_mutex_lock(&plan->lock);
    rows_free(&plan->rows);
    plan->rows = rows;
    plan->count = a->count;
    plan->type = a->type;
    plan->upper = (a->fill == CUSPARSE_FILL_MODE_UPPER) != (sparse->op_a != CUSPARSE_OPERATION_NON_TRANSPOSE);
    plan->unit = a->diagonal == CUSPARSE_DIAG_TYPE_UNIT;
    plan->conjugate = sparse->op_a == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
    plan->known = true;
    pthread_mutex_unlock(&plan->lock);
    return CUDA_SUCCESS;
}

struct solution {
    const struct plan *plan;
    const struct dense *b, *c;
    int64_t step_b[2]; /* of op(B): from row to row, from column to column */
    bool conjugate_b;
    number alpha;
    _Atomic bool no_memory;
};

static void solve_columns(void *data, int64_t first, int64_t last) {
    struct solution *s = data;
    const struct rows *a = &s->plan->rows;
    int64_t n = a->rows;
    number *x = malloc(((size_t)n + 1) * sizeof *x);
    if (!x) atomic_store(&s->no_memory, true);
    for (int64_t k = first; x && k < last; k++) {
        for (int64_t step = 0; step < n; step++) {
            int64_t i = s->plan->upper ? n - 1 - step : step;
            number b = element_load(s->b->type, s->b->values, i * s->step_b[0] + k * s->step_b[1]);
            number sum = times(s->alpha, s->conjugate_b ? conj(b) : b), diagonal = 1; /* also where there is none */
            for (int64_t e = a->offsets[i]; e < a->offsets[i + 1]; e++) {
                int64_t j = a->indices[e];
                number value = a->type == D ? ((const double *)a->values)[e] : ((const number *)a->values)[e];
                if (j == i) diagonal = s->plan->unit ? 1 : value;
                else if (s->plan->upper ? j > i : j < i) sum -= times(value, x[j]);
            }
            x[i] = cimag(diagonal) == 0 ? CMPLX(creal(sum) / creal(diagonal), cimag(sum) / creal(diagonal))
                                        : sum / diagonal;
        }
        for (int64_t i = 0; i < n; i++)
            element_store(s->c->type, s->c->values, i * row_step(s->c) + k * column_step(s->c), x[i]);
    }
    free(x);
}

static CUresult run_solve(struct sparse *sparse) {
    struct solution s = {.plan = sparse->plan, .b = &sparse->x, .c = &sparse->y};
    bool turned = sparse->op_b != CUSPARSE_OPERATION_NON_TRANSPOSE;
    RETURN_IF(scalar_load(sparse, &sparse->alpha, &s.alpha));
    RETURN_IF(touch_dense(sparse, &sparse->x, "the values of the right-hand side"));
    RETURN_IF(touch_dense(sparse, &sparse->y, "the values of the solution"));
    s.step_b[turned] = row_step(s.b), s.step_b[!turned] = column_step(s.b);
    s.conjugate_b = sparse->op_b == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
    struct plan *plan = sparse->plan;
    pthread_mutex_lock(&plan->lock);
    bool fits = plan->known && plan->rows.rows == sparse->y.rows;
    if (fits) in_parts(solve_columns, &s, sparse->y.columns, (plan->rows.count + 1) * sparse->y.columns);
    pthread_mutex_unlock(&plan->lock);
    if (s.no_memory) return no_memory("a triangular system");
    return fits ? CUDA_SUCCESS
                : fail(CUDA_ERROR_INVALID_VALUE, "%s: the analysis has not been made, or was one of another matrix",
                       sparse->function);
}

static CUresult run_update(struct sparse *sparse) {
    struct plan *plan = sparse->plan;
    const void *values = sparse->extra[0];
    bool all = sparse->form == CUSPARSE_SPSV_UPDATE_GENERAL;
    pthread_mutex_lock(&plan->lock);
    struct rows *rows = &plan->rows;
    CUresult status =
        touch(sparse, "newValues", values, (uint64_t)(all ? plan->count : rows->rows), element_size(plan->type));
    for (int64_t i = 0; !status && i < rows->rows; i++)
        for (int64_t e = rows->offsets[i]; e < rows->offsets[i + 1]; e++) {
            if (!all && rows->indices[e] != i) continue;
            number value = element_load(plan->type, values, all ? rows->places[e] : i);
            if (rows->type == D) ((double *)rows->values)[e] = creal(value);
            else ((number *)rows->values)[e] = plan->conjugate ? conj(value) : value;
        }
    pthread_mutex_unlock(&plan->lock);
    return status;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static cusparseStatus_t create(const char *function, struct cusparseSpSVDescr **descr) {
    if (!descr) return sparse_null(function, "descr");
    struct cusparseSpSVDescr *made = object_new(SOLVE_PLAN);
    if (!made)
        return sparse_fail(CUSPARSE_STATUS_ALLOC_FAILED, "%s: the host has no memory for a descriptor", function);
    *descr = made;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t destroy(const char *function, struct cusparseSpSVDescr *descr) {
    if (!descr) return CUSPARSE_STATUS_SUCCESS; /* as free() does */
    SPARSE_RETURN_IF(object_check(descr, SOLVE_PLAN, function, "descr"));
    struct plan *plan = descr->plan;
    SPARSE_RETURN_IF(object_destroy(descr, SOLVE_PLAN, function));
    plan_release(plan);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpSV_createDescr(cusparseSpSVDescr_t *descr) {
    return create("cusparseSpSV_createDescr", descr);
}
static cusparseStatus_t cusparseSpSV_destroyDescr(cusparseSpSVDescr_t descr) {
    return destroy("cusparseSpSV_destroyDescr", descr);
}
static cusparseStatus_t cusparseSpSM_createDescr(cusparseSpSMDescr_t *descr) {
    return create("cusparseSpSM_createDescr", (struct cusparseSpSVDescr **)descr);
}
static cusparseStatus_t cusparseSpSM_destroyDescr(cusparseSpSMDescr_t descr) {
    return destroy("cusparseSpSM_destroyDescr", (struct cusparseSpSVDescr *)descr);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct operands {
    cusparseHandle_t handle;
    const char *function;
    cusparseOperation_t op_a, op_b;
    const void *alpha;
    cusparseConstSpMatDescr_t a;
    const void *b, *c; /* descriptors of vectors or matrices */
    cudaDataType compute;
    unsigned alg, algorithms;
    struct cusparseSpSVDescr *descr;
    bool vectors;
};

static const struct dense *dense_of(const struct operands *p, const void *descriptor) {
    return p->vectors ? &((cusparseConstDnVecDescr_t)descriptor)->is : &((cusparseConstDnMatDescr_t)descriptor)->is;
}

static cusparseStatus_t check_matrix_of(const struct operands *p) {
    const char *function = p->function;
    SPARSE_RETURN_IF(sparse_check(p->handle, function));
    SPARSE_RETURN_IF(object_check(p->a, SPARSE_MATRIX, function, "matA"));
    SPARSE_RETURN_IF(object_check(p->descr, SOLVE_PLAN, function, "the descriptor of the plan"));
    if (!p->alpha) return sparse_null(function, "alpha");
    SPARSE_RETURN_IF(check_operation(function, "opA", p->op_a));
    SPARSE_RETURN_IF(check_operation(function, "opB", p->op_b));
    SPARSE_RETURN_IF(check_compute(function, p->compute));
    SPARSE_CHECK(p->alg <= p->algorithms, "%s: %d is no algorithm", function, (int)p->alg);
    const struct matrix *a = &p->a->is;
    SPARSE_CHECK(a->rows == a->columns, "%s: matA is %lld by %lld; it must be square", function, (long long)a->rows,
                 (long long)a->columns);
    SPARSE_SUPPORT(a->format == CUSPARSE_FORMAT_CSR || a->format == CUSPARSE_FORMAT_COO,
                   "%s: matA must be in the format CSR or COO", function);
    SPARSE_RETURN_IF(check_matrix(function, a));
    SPARSE_SUPPORT(a->type <= Z, "%s: matA is of type %d", function, (int)a->value_type);
    SPARSE_SUPPORT(p->op_b != CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE, "%s: opB must be NON_TRANSPOSE or TRANSPOSE",
                   function);
    return check_conjugation(function, "opA", p->op_a, a->type);
}

/* The analysis looks at the matrix, and of matrices at the right-hand side. */
static cusparseStatus_t check_right_hand_side(const struct operands *p) {
    const char *function = p->function;
    SPARSE_RETURN_IF(
        object_check(p->b, p->vectors ? DENSE_VECTOR : DENSE_MATRIX, function, p->vectors ? "vecX" : "matB"));
    const struct dense *b = dense_of(p, p->b);
    int64_t rows = op_rows(p->op_b, b->rows, b->columns), n = p->a->is.rows;
    SPARSE_CHECK(rows == n, "%s: matA has %lld rows, the right-hand side %lld", function, (long long)n,
                 (long long)rows);
    SPARSE_SUPPORT(b->type == p->a->is.type, "%s: matA is of type %d, the right-hand side of %d", function,
                   (int)p->a->is.value_type, (int)b->value_type);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t check_analysis(const struct operands *p) {
    SPARSE_RETURN_IF(check_matrix_of(p));
    return p->vectors ? CUSPARSE_STATUS_SUCCESS : check_right_hand_side(p);
}

static cusparseStatus_t check_solution(const struct operands *p) {
    const char *function = p->function;
    SPARSE_RETURN_IF(check_matrix_of(p));
    SPARSE_RETURN_IF(check_right_hand_side(p));
    SPARSE_RETURN_IF(
        object_check(p->c, p->vectors ? DENSE_VECTOR : DENSE_MATRIX, function, p->vectors ? "vecY" : "matC"));
    const struct matrix *a = &p->a->is;
    const struct dense *b = dense_of(p, p->b), *c = dense_of(p, p->c);
    int64_t columns = op_rows(p->op_b, b->columns, b->rows);
    SPARSE_CHECK(c->rows == a->rows && columns == c->columns,
                 "%s: the solution is %lld by %lld instead of %lld by %lld", function, (long long)c->rows,
                 (long long)c->columns, (long long)a->rows, (long long)columns);
    return check_types(function, c->type == a->type && value_of(p->compute) == a->type, a, b, c, p->compute);
}

static cusparseStatus_t buffer_size(const struct operands *p, size_t *size) {
    SPARSE_RETURN_IF(check_analysis(p));
    if (!size) return sparse_null(p->function, "bufferSize");
    *size = BUFFER_BYTES;
    return CUSPARSE_STATUS_SUCCESS;
}

static struct sparse *new_call(const struct operands *p, CUresult (*run)(struct sparse *sparse)) {
    struct sparse *sparse = sparse_new(p->function, run);
    if (!sparse) return NULL;
    sparse->call.end = end_call;
    sparse->plan = plan_retain(p->descr->plan);
    sparse->op_a = p->op_a, sparse->op_b = p->op_b;
    sparse->a = p->a->is;
    return sparse;
}

static cusparseStatus_t analyse(const struct operands *p, const void *buffer) {
    SPARSE_RETURN_IF(check_analysis(p));
    SPARSE_RETURN_IF(check_external(p->function, buffer));
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan) return sparse_status(no_memory("an analysis"));
    plan->references = 1;
    pthread_mutex_init(&plan->lock, NULL);
    plan_release(p->descr->plan);
    p->descr->plan = plan;
    struct sparse *sparse = new_call(p, run_analysis);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    return sparse_submit(p->handle, sparse, false);
}

static cusparseStatus_t solve(const struct operands *p) {
    SPARSE_RETURN_IF(check_solution(p));
    if (!p->descr->plan)
        return sparse_fail(CUSPARSE_STATUS_NOT_INITIALIZED, "%s: the analysis comes first", p->function);
    struct sparse *sparse = new_call(p, run_solve);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    sparse->x = *dense_of(p, p->b), sparse->y = *dense_of(p, p->c);
    sparse_scalar(p->handle, &sparse->alpha, value_of(p->compute), p->alpha);
    return sparse_submit(p->handle, sparse, false);
}

static cusparseStatus_t update(cusparseHandle_t handle, const char *function, struct cusparseSpSVDescr *descr,
                               void *values, unsigned part) {
    SPARSE_RETURN_IF(sparse_check(handle, function));
    SPARSE_RETURN_IF(object_check(descr, SOLVE_PLAN, function, "the descriptor of the plan"));
    if (!values) return sparse_null(function, "newValues");
    SPARSE_CHECK(part <= CUSPARSE_SPSV_UPDATE_DIAGONAL, "%s: updatePart is %d", function, (int)part);
    SPARSE_CHECK(descr->plan, "%s: the analysis comes first", function);
    struct sparse *sparse = sparse_new(function, run_update);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    sparse->call.end = end_call;
    sparse->plan = plan_retain(descr->plan);
    sparse->form = (int)part;
    sparse->extra[0] = values;
    return sparse_submit(handle, sparse, false);
}

#define VECTORS(function)                                                                                      \
    &(struct operands) {                                                                                       \
        handle, function, op, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, a, x, y, compute, (unsigned)alg,        \
            CUSPARSE_SPSV_ALG2, descr, true                                                                    \
    }
#define MATRICES(function)                                                                                     \
    &(struct operands) {                                                                                       \
        handle, function, op_a, op_b, alpha, a, b, c, compute, (unsigned)alg, CUSPARSE_SPSM_ALG_DEFAULT,       \
            (struct cusparseSpSVDescr *)descr, false                                                                                  \
    }

static cusparseStatus_t cusparseSpSV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                                                cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                                cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t alg,
                                                cusparseSpSVDescr_t descr, size_t *size) {
    return buffer_size(VECTORS("cusparseSpSV_bufferSize"), size);
}

static cusparseStatus_t cusparseSpSV_analysis(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                                              cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                              cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t alg,
                                              cusparseSpSVDescr_t descr, void *buffer) {
    return analyse(VECTORS("cusparseSpSV_analysis"), buffer);
}

static cusparseStatus_t cusparseSpSV_solve(cusparseHandle_t handle, cusparseOperation_t op, const void *alpha,
                                           cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                           cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t alg,
                                           cusparseSpSVDescr_t descr) {
    return solve(VECTORS("cusparseSpSV_solve"));
}

static cusparseStatus_t cusparseSpSV_updateMatrix(cusparseHandle_t handle, cusparseSpSVDescr_t descr, void *values,
                                                  cusparseSpSVUpdate_t part) {
    return update(handle, "cusparseSpSV_updateMatrix", descr, values, (unsigned)part);
}

static cusparseStatus_t cusparseSpSM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                cusparseOperation_t op_b, const void *alpha,
                                                cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                                cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpSMAlg_t alg,
                                                cusparseSpSMDescr_t descr, size_t *size) {
    return buffer_size(MATRICES("cusparseSpSM_bufferSize"), size);
}

static cusparseStatus_t cusparseSpSM_analysis(cusparseHandle_t handle, cusparseOperation_t op_a,
                                              cusparseOperation_t op_b, const void *alpha, cusparseConstSpMatDescr_t a,
                                              cusparseConstDnMatDescr_t b, cusparseDnMatDescr_t c, cudaDataType compute,
                                              cusparseSpSMAlg_t alg, cusparseSpSMDescr_t descr, void *buffer) {
    return analyse(MATRICES("cusparseSpSM_analysis"), buffer);
}

static cusparseStatus_t cusparseSpSM_solve(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                           const void *alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                           cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpSMAlg_t alg,
                                           cusparseSpSMDescr_t descr) {
    return solve(MATRICES("cusparseSpSM_solve"));
}

static cusparseStatus_t cusparseSpSM_updateMatrix(cusparseHandle_t handle, cusparseSpSMDescr_t descr, void *values,
                                                  cusparseSpSMUpdate_t part) {
    return update(handle, "cusparseSpSM_updateMatrix", (struct cusparseSpSVDescr *)descr, values, (unsigned)part);
}

const struct entry sparse_triangle_entries[] = {
    SPARSE_ENTRY(cusparseSpSV_createDescr),
    SPARSE_ENTRY(cusparseSpSV_destroyDescr),
    SPARSE_ENTRY(cusparseSpSV_bufferSize),
    SPARSE_ENTRY(cusparseSpSV_analysis),
    SPARSE_ENTRY(cusparseSpSV_solve),
    SPARSE_ENTRY(cusparseSpSV_updateMatrix),
    SPARSE_ENTRY(cusparseSpSM_createDescr),
    SPARSE_ENTRY(cusparseSpSM_destroyDescr),
    SPARSE_ENTRY(cusparseSpSM_bufferSize),
    SPARSE_ENTRY(cusparseSpSM_analysis),
    SPARSE_ENTRY(cusparseSpSM_solve),
    SPARSE_ENTRY(cusparseSpSM_updateMatrix),
    {NULL, NULL, NULL},
};
