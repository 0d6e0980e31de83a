/* Sparse matrices from two sparse matrices: SpGEMM, SpGEMMreuse and SpGEAM (cuSPARSE Library, 6.7.11 and following).
 *
 * How many elements the result has is known only when the arrays have been looked at, so the step that finds it out waits
 * for its operation, and tells the number in the descriptor of C. Until the caller has made room, the result is kept in the
 * descriptor of the plan. Columns of a row are in order, and an element whose value happens to be zero is one. */
#include <complex.h>
#undef I
#include <stdlib.h>
#include <string.h>

#include "sparse.h"

struct result {
    _Atomic unsigned references; /* the descriptor's, and those of operations */
    pthread_mutex_t lock;
    struct rows rows;
    int64_t products; /* of two elements */
};

struct cusparseSpGEMMDescr {
    struct object object;
    struct result *result;
    bool estimated, counted;
};
struct cusparseSpGEAMDescr {
    struct cusparseSpGEMMDescr is;
};

static struct result *result_new(void) {
    struct result *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->references = 1;
    pthread_mutex_init(&made->lock, NULL);
    return made;
}

static void result_release(struct result *result) {
    if (atomic_fetch_sub_explicit(&result->references, 1, memory_order_acq_rel) != 1) return;
    rows_free(&result->rows);
    pthread_mutex_destroy(&result->lock);
    free(result);
}

static void end_call(struct call *call) { result_release(((struct sparse *)call)->plan); }

/* ---- while it runs: rows of the result, first counted, then filled ----------------------------------------------- */

struct combination {
    const struct rows *a, *b;
    bool is_sum; /* alpha A + beta B instead of alpha A B */
    number alpha, beta;
    struct rows *to;
    bool fill;
    _Atomic bool no_memory;
};

/* The row that is being formed: which columns it has, and their sums. */
struct line {
    int64_t *seen; /* 1 + the row for which the column was last met */
    int64_t *columns;
    number *sums;
    int64_t count;
};

static number value_at(const struct rows *rows, int64_t e) {
    return rows->type == D ? ((const double *)rows->values)[e] : ((const number *)rows->values)[e];
}

static void add(struct line *line, int64_t row, int64_t column, number value) {
    if (line->seen[column] != row + 1) {
        line->seen[column] = row + 1;
        line->columns[line->count++] = column;
        line->sums[column] = 0;
    }
    line->sums[column] += value;
}

static void form_row(const struct combination *c, struct line *line, int64_t row) {
    line->count = 0;
    for (int64_t e = c->a->offsets[row]; e < c->a->offsets[row + 1]; e++) {
        int64_t k = c->a->indices[e];
        number value = times(c->alpha, value_at(c->a, e));
        if (c->is_sum) add(line, row, k, value);
        else
            for (int64_t f = c->b->offsets[k]; f < c->b->offsets[k + 1]; f++)
                add(line, row, c->b->indices[f], times(value, value_at(c->b, f)));
    }
    if (c->is_sum)
        for (int64_t f = c->b->offsets[row]; f < c->b->offsets[row + 1]; f++)
            add(line, row, c->b->indices[f], times(c->beta, value_at(c->b, f)));
}

static int by_column(const void *a, const void *b) {
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

static void some_rows(void *data, int64_t first, int64_t last) {
    struct combination *c = data;
    size_t columns = (size_t)c->to->columns + 1;
    struct line line = {calloc(columns, sizeof *line.seen), malloc(columns * sizeof *line.columns),
                        malloc(columns * sizeof *line.sums), 0};
    if (!line.seen || !line.columns || !line.sums) atomic_store(&c->no_memory, true);
    else
        for (int64_t row = first; row < last; row++) {
            form_row(c, &line, row);
            if (!c->fill) {
                c->to->offsets[row + 1] = line.count;
                continue;
            }
            qsort(line.columns, (size_t)line.count, sizeof *line.columns, by_column);
            int64_t at = c->to->offsets[row];
            for (int64_t i = 0; i < line.count; i++, at++) {
                c->to->indices[at] = line.columns[i];
                number sum = line.sums[line.columns[i]];
                if (c->to->type == D) ((double *)c->to->values)[at] = creal(sum);
                else ((number *)c->to->values)[at] = sum;
            }
        }
    free(line.seen), free(line.columns), free(line.sums);
}

static CUresult combine(struct combination *c, struct rows *to) {
    int64_t work = c->a->count + c->b->count;
    struct rows counts;
    RETURN_IF(rows_new(&counts, c->a->rows, c->b->columns, 0, c->a->type));
    c->to = &counts;
    in_parts(some_rows, c, c->a->rows, work);
    for (int64_t i = 0; i < counts.rows; i++) counts.offsets[i + 1] += counts.offsets[i];
    CUresult status = c->no_memory ? no_memory("a sparse matrix")
                                   : rows_new(to, counts.rows, counts.columns, counts.offsets[counts.rows], c->a->type);
    if (!status) {
        memcpy(to->offsets, counts.offsets, ((size_t)counts.rows + 1) * sizeof *to->offsets);
        c->to = to;
        c->fill = true;
        in_parts(some_rows, c, c->a->rows, work);
        if (c->no_memory) {
            rows_free(to);
            status = no_memory("a sparse matrix");
        }
    }
    rows_free(&counts);
    return status;
}

static int64_t products_of(const struct rows *a, const struct rows *b) {
    int64_t count = 0;
    for (int64_t e = 0; e < a->count; e++) count += b->offsets[a->indices[e] + 1] - b->offsets[a->indices[e]];
    return count;
}

/* alpha op(A) op(B), or alpha op(A) + beta op(B). `products`: only count the products. */
static CUresult form(struct sparse *sparse, bool is_sum, bool only_products, struct rows *to, int64_t *products) {
    struct combination c = {.is_sum = is_sum};
    struct rows a, b;
    RETURN_IF(scalar_load(sparse, &sparse->alpha, &c.alpha));
    RETURN_IF(scalar_load(sparse, &sparse->beta, &c.beta));
    RETURN_IF(touch_sparse(sparse, &sparse->a, "matA"));
    RETURN_IF(touch_sparse(sparse, &sparse->b, "matB"));
    RETURN_IF(touch(sparse, "the offsets of matC", sparse->c.offsets, (uint64_t)sparse->c.rows + 1,
                    index_size(sparse->c.offset_type))); /* before work for so many rows begins */
    RETURN_IF(rows_of(sparse, &sparse->a, "matA", sparse->op_a, false, &a));
    CUresult status = rows_of(sparse, &sparse->b, "matB", sparse->op_b, false, &b);
    if (!status) {
        if (!is_sum) *products = products_of(&a, &b);
        c.a = &a, c.b = &b;
        if (!only_products) status = combine(&c, to);
        rows_free(&b);
    }
    rows_free(&a);
    return status;
}

/* What the steps of a plan do. */
enum step { ESTIMATE, COMPUTE, COPY, REUSE_COPY, REUSE_COMPUTE, SUM_COUNT, SUM };

static CUresult put_offsets(struct sparse *sparse, const struct rows *rows) {
    const struct matrix *c = &sparse->c;
    RETURN_IF(touch(sparse, "the offsets of matC", c->offsets, (uint64_t)c->rows + 1, index_size(c->offset_type)));
    for (int64_t i = 0; i <= rows->rows; i++) index_put(c->offset_type, c->offsets, i, rows->offsets[i] + c->base);
    return CUDA_SUCCESS;
}

/* Write the result into C: its structure, its values or both. */
static CUresult put(struct sparse *sparse, const struct rows *rows, bool structure, bool values, bool adds) {
    const struct matrix *c = &sparse->c;
    number beta = 0;
    if (adds) RETURN_IF(scalar_load(sparse, &sparse->beta, &beta));
    RETURN_IF(touch_sparse(sparse, c, "matC"));
    if (rows->rows != c->rows || rows->count > c->count) { /* the plan is that of other matrices */
        note_bad(sparse, "elements", "matC", 0, rows->count, c->count + 1);
        return CUDA_SUCCESS;
    }
    if (structure) RETURN_IF(put_offsets(sparse, rows));
    for (int64_t e = 0; e < rows->count; e++) {
        if (structure) index_put(c->index_type, c->indices, e, rows->indices[e] + c->base);
        if (!values) continue;
        number value = value_at(rows, e);
        if (beta != 0) value += times(beta, element_load(c->type, c->values, e));
        element_store(c->type, c->values, e, value);
    }
    return CUDA_SUCCESS;
}

static CUresult run(struct sparse *sparse) {
    struct result *result = sparse->plan;
    struct rows rows = {0};
    CUresult status;
    int64_t products = 0;
    switch ((enum step)sparse->form) {
        case ESTIMATE:
            RETURN_IF(form(sparse, false, true, NULL, &products));
            pthread_mutex_lock(&result->lock);
            result->products = products;
            pthread_mutex_unlock(&result->lock);
            return CUDA_SUCCESS;
        case COMPUTE:
        case SUM_COUNT:
            RETURN_IF(form(sparse, sparse->form == SUM_COUNT, false, &rows, &products));
            status = sparse->form == SUM_COUNT ? put_offsets(sparse, &rows) : CUDA_SUCCESS;
            pthread_mutex_lock(&result->lock);
            rows_free(&result->rows);
            result->rows = rows;
            pthread_mutex_unlock(&result->lock);
            return status;
        case COPY:
        case REUSE_COPY:
            pthread_mutex_lock(&result->lock);
            status = put(sparse, &result->rows, true, sparse->form == COPY, sparse->form == COPY);
            pthread_mutex_unlock(&result->lock);
            return status;
        default: /* REUSE_COMPUTE and SUM: with the values of now */
            RETURN_IF(form(sparse, sparse->form == SUM, false, &rows, &products));
            status = put(sparse, &rows, sparse->form == SUM, true, sparse->form == REUSE_COMPUTE);
            rows_free(&rows);
            return status;
    }
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static cusparseStatus_t create(const char *function, enum object_kind kind, struct cusparseSpGEMMDescr **descr) {
    if (!descr) return sparse_null(function, "descr");
    struct result *result = result_new();
    struct cusparseSpGEMMDescr *made = result ? object_new(kind) : NULL;
    if (!made) {
        free(result);
        return sparse_fail(CUSPARSE_STATUS_ALLOC_FAILED, "%s: the host has no memory for a descriptor", function);
    }
    made->result = result;
    *descr = made;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t destroy(const char *function, enum object_kind kind, struct cusparseSpGEMMDescr *descr) {
    if (!descr) return CUSPARSE_STATUS_SUCCESS; /* as free() does */
    SPARSE_RETURN_IF(object_check(descr, kind, function, "descr"));
    struct result *result = descr->result;
    SPARSE_RETURN_IF(object_destroy(descr, kind, function));
    result_release(result);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpGEMM_createDescr(cusparseSpGEMMDescr_t *descr) {
    return create("cusparseSpGEMM_createDescr", PRODUCT_PLAN, descr);
}
static cusparseStatus_t cusparseSpGEMM_destroyDescr(cusparseSpGEMMDescr_t descr) {
    return destroy("cusparseSpGEMM_destroyDescr", PRODUCT_PLAN, descr);
}
static cusparseStatus_t cusparseSpGEAM_createDescr(cusparseSpGEAMDescr_t *descr) {
    return create("cusparseSpGEAM_createDescr", SUM_PLAN, (struct cusparseSpGEMMDescr **)descr);
}
static cusparseStatus_t cusparseSpGEAM_destroyDescr(cusparseSpGEAMDescr_t descr) {
    return destroy("cusparseSpGEAM_destroyDescr", SUM_PLAN, (struct cusparseSpGEMMDescr *)descr);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct operands {
    cusparseHandle_t handle;
    const char *function;
    cusparseOperation_t op_a, op_b;
    const void *alpha, *beta;
    cusparseConstSpMatDescr_t a, b;
    cusparseSpMatDescr_t c;
    cudaDataType compute;
    int alg, algorithms;
    struct cusparseSpGEMMDescr *descr;
    bool is_sum;
    bool without_scalars; /* SpGEMMreuse: its structure is found without */
};

static cusparseStatus_t check(const struct operands *p) {
    const char *function = p->function;
    SPARSE_RETURN_IF(sparse_check(p->handle, function));
    SPARSE_RETURN_IF(object_check(p->a, SPARSE_MATRIX, function, "matA"));
    SPARSE_RETURN_IF(object_check(p->b, SPARSE_MATRIX, function, "matB"));
    SPARSE_RETURN_IF(object_check(p->c, SPARSE_MATRIX, function, "matC"));
    SPARSE_RETURN_IF(
        object_check(p->descr, p->is_sum ? SUM_PLAN : PRODUCT_PLAN, function, "the descriptor of the plan"));
    if (!p->without_scalars && (!p->alpha || !p->beta)) return sparse_null(function, p->alpha ? "beta" : "alpha");
    SPARSE_RETURN_IF(check_operation(function, "opA", p->op_a));
    SPARSE_RETURN_IF(check_operation(function, "opB", p->op_b));
    SPARSE_RETURN_IF(check_compute(function, p->compute));
    SPARSE_CHECK(p->alg >= 0 && p->alg <= p->algorithms, "%s: %d is no algorithm", function, p->alg);
    const struct matrix *a = &p->a->is, *b = &p->b->is, *c = &p->c->is;
    SPARSE_SUPPORT(a->format == CUSPARSE_FORMAT_CSR && b->format == CUSPARSE_FORMAT_CSR &&
                       c->format == CUSPARSE_FORMAT_CSR,
                   "%s: the matrices must be in the format CSR", function);
    SPARSE_RETURN_IF(check_matrix(function, a));
    SPARSE_SUPPORT(a->index_type == b->index_type && a->index_type == c->index_type && a->base == b->base &&
                       a->base == c->base,
                   "%s: the matrices must have indices of one type and one base", function);
    bool plain = p->op_a == CUSPARSE_OPERATION_NON_TRANSPOSE && p->op_b == CUSPARSE_OPERATION_NON_TRANSPOSE;
    SPARSE_SUPPORT(p->is_sum || plain, "%s: opA and opB must be NON_TRANSPOSE", function);
    int64_t m = op_rows(p->op_a, a->rows, a->columns), k = op_rows(p->op_a, a->columns, a->rows);
    int64_t rows = op_rows(p->op_b, b->rows, b->columns), n = op_rows(p->op_b, b->columns, b->rows);
    SPARSE_CHECK((p->is_sum ? m == rows && k == n : k == rows) && m == c->rows && n == c->columns,
                 "%s: op(A) is %lld by %lld, op(B) %lld by %lld and C %lld by %lld", function, (long long)m,
                 (long long)k, (long long)rows, (long long)n, (long long)c->rows, (long long)c->columns);
    bool known = a->value_type == b->value_type && a->value_type == c->value_type;
    if (!p->without_scalars) {
        known &= a->type <= B && value_of(p->compute) == a->type;
    }
    SPARSE_SUPPORT(known, "%s: there is no such combination of types: %d, %d and %d, compute type %d", function,
                   (int)a->value_type, (int)b->value_type, (int)c->value_type, (int)p->compute);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t submit(const struct operands *p, enum step step, bool wait) {
    struct sparse *sparse = sparse_new(p->function, run);
    if (!sparse) return sparse_status(no_memory("a call of cuSPARSE"));
    struct result *result = p->descr->result;
    atomic_fetch_add_explicit(&result->references, 1, memory_order_relaxed);
    sparse->call.end = end_call;
    sparse->plan = result;
    sparse->form = (int)step;
    sparse->op_a = p->op_a, sparse->op_b = p->op_b;
    sparse->a = p->a->is, sparse->b = p->b->is, sparse->c = p->c->is;
    if (!p->without_scalars) {
        sparse_scalar(p->handle, &sparse->alpha, value_of(p->compute), p->alpha);
        sparse_scalar(p->handle, &sparse->beta, value_of(p->compute), p->beta);
    }
    return sparse_submit(p->handle, sparse, wait);
}

/* Find the result, and tell how many elements it has. */
static cusparseStatus_t count(const struct operands *p, enum step step) {
    SPARSE_RETURN_IF(submit(p, step, true));
    pthread_mutex_lock(&p->descr->result->lock);
    int64_t elements = p->descr->result->rows.count;
    pthread_mutex_unlock(&p->descr->result->lock);
    if (p->c->is.offset_type == CUSPARSE_INDEX_32I && elements + p->c->is.base > INT32_MAX)
        return sparse_fail(CUSPARSE_STATUS_INSUFFICIENT_RESOURCES,
                           "%s: matC has %lld elements, too many for offsets of 32 bits", p->function,
                           (long long)elements);
    p->c->is.count = elements;
    p->descr->counted = true;
    return CUSPARSE_STATUS_SUCCESS;
}

/* The first of two calls asks for the size of a buffer. */
static bool asks(size_t *size, const void *buffer) {
    if (!buffer) *size = BUFFER_BYTES;
    return !buffer;
}

#define PRODUCT(function_name)                                                                                          \
    struct operands p = {handle, function_name, op_a,     op_b,       alpha,                                           \
                         beta,   a,             b,        c,          compute,                                         \
                         (int)alg, CUSPARSE_SPGEMM_ALG3, descr, false, false};                                         \
    SPARSE_RETURN_IF(check(&p))
#define REUSE(function_name)                                                                                            \
    struct operands p = {handle, function_name, op_a,     op_b,       NULL,                                            \
                         NULL,   a,             b,        c,          CUDA_R_32F,                                      \
                         (int)alg, CUSPARSE_SPGEMM_ALG3, descr, false, true};                                          \
    SPARSE_RETURN_IF(check(&p))
#define SUM_OF(function_name)                                                                                           \
    struct operands p = {handle, function_name, op_a,     op_b,       alpha,                                           \
                         beta,   a,             b,        c,          compute,                                         \
                         (int)alg, CUSPARSE_SPGEAM_ALG1, (struct cusparseSpGEMMDescr *)descr, true, false};            \
    SPARSE_RETURN_IF(check(&p))

static cusparseStatus_t cusparseSpGEMM_workEstimation(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                      cusparseOperation_t op_b, const void *alpha,
                                                      cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                                      const void *beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                                      cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t descr,
                                                      size_t *size, void *buffer) {
    PRODUCT("cusparseSpGEMM_workEstimation");
    if (!size) return sparse_null(p.function, "bufferSize1");
    if (asks(size, buffer)) return CUSPARSE_STATUS_SUCCESS;
    SPARSE_RETURN_IF(submit(&p, ESTIMATE, true));
    descr->estimated = true;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpGEMM_getNumProducts(cusparseSpGEMMDescr_t descr, int64_t *count) {
    SPARSE_RETURN_IF(object_check(descr, PRODUCT_PLAN, "cusparseSpGEMM_getNumProducts", "spgemmDescr"));
    if (!count) return sparse_null("cusparseSpGEMM_getNumProducts", "num_prods");
    pthread_mutex_lock(&descr->result->lock);
    *count = descr->result->products;
    pthread_mutex_unlock(&descr->result->lock);
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpGEMM_estimateMemory(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                      cusparseOperation_t op_b, const void *alpha,
                                                      cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                                      const void *beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                                      cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t descr,
                                                      float fraction, size_t *size3, void *buffer3, size_t *size2) {
    PRODUCT("cusparseSpGEMM_estimateMemory");
    SPARSE_CHECK(alg == CUSPARSE_SPGEMM_ALG2 || alg == CUSPARSE_SPGEMM_ALG3, "%s: the algorithm must be ALG2 or ALG3",
                 p.function);
    SPARSE_CHECK(fraction > 0 && fraction <= 1, "%s: chunk_fraction is %g; it must be above 0, and 1 at most",
                 p.function, (double)fraction);
    if (!size3) return sparse_null(p.function, "bufferSize3");
    if (asks(size3, buffer3)) return CUSPARSE_STATUS_SUCCESS;
    if (!size2) return sparse_null(p.function, "bufferSize2");
    *size2 = BUFFER_BYTES;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpGEMM_compute(cusparseHandle_t handle, cusparseOperation_t op_a,
                                               cusparseOperation_t op_b, const void *alpha, cusparseConstSpMatDescr_t a,
                                               cusparseConstSpMatDescr_t b, const void *beta, cusparseSpMatDescr_t c,
                                               cudaDataType compute, cusparseSpGEMMAlg_t alg,
                                               cusparseSpGEMMDescr_t descr, size_t *size, void *buffer) {
    PRODUCT("cusparseSpGEMM_compute");
    if (!size) return sparse_null(p.function, "bufferSize2");
    if (asks(size, buffer)) return CUSPARSE_STATUS_SUCCESS;
    SPARSE_CHECK(descr->estimated, "%s: cusparseSpGEMM_workEstimation comes first", p.function);
    return count(&p, COMPUTE);
}

static cusparseStatus_t cusparseSpGEMM_copy(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                            const void *alpha, cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                            const void *beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                            cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t descr) {
    PRODUCT("cusparseSpGEMM_copy");
    SPARSE_CHECK(descr->counted, "%s: cusparseSpGEMM_compute comes first", p.function);
    return submit(&p, COPY, false);
}

static cusparseStatus_t cusparseSpGEMMreuse_workEstimation(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                           cusparseOperation_t op_b, cusparseConstSpMatDescr_t a,
                                                           cusparseConstSpMatDescr_t b, cusparseSpMatDescr_t c,
                                                           cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t descr,
                                                           size_t *size, void *buffer) {
    REUSE("cusparseSpGEMMreuse_workEstimation");
    if (!size) return sparse_null(p.function, "bufferSize1");
    if (!asks(size, buffer)) descr->estimated = true;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpGEMMreuse_nnz(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                cusparseOperation_t op_b, cusparseConstSpMatDescr_t a,
                                                cusparseConstSpMatDescr_t b, cusparseSpMatDescr_t c,
                                                cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t descr, size_t *size2,
                                                void *buffer2, size_t *size3, void *buffer3, size_t *size4,
                                                void *buffer4) {
    REUSE("cusparseSpGEMMreuse_nnz");
    if (!size2 || !size3 || !size4) return sparse_null(p.function, "the size of a buffer");
    SPARSE_CHECK(descr->estimated, "%s: cusparseSpGEMMreuse_workEstimation comes first", p.function);
    bool asked = asks(size2, buffer2);
    asked |= asks(size3, buffer3);
    asked |= asks(size4, buffer4);
    return asked ? CUSPARSE_STATUS_SUCCESS : count(&p, COMPUTE);
}

static cusparseStatus_t cusparseSpGEMMreuse_copy(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                 cusparseOperation_t op_b, cusparseConstSpMatDescr_t a,
                                                 cusparseConstSpMatDescr_t b, cusparseSpMatDescr_t c,
                                                 cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t descr, size_t *size,
                                                 void *buffer) {
    REUSE("cusparseSpGEMMreuse_copy");
    if (!size) return sparse_null(p.function, "bufferSize5");
    SPARSE_CHECK(descr->counted, "%s: cusparseSpGEMMreuse_nnz comes first", p.function);
    return asks(size, buffer) ? CUSPARSE_STATUS_SUCCESS : submit(&p, REUSE_COPY, false);
}

static cusparseStatus_t cusparseSpGEMMreuse_compute(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                    cusparseOperation_t op_b, const void *alpha,
                                                    cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                                    const void *beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                                    cusparseSpGEMMAlg_t alg, cusparseSpGEMMDescr_t descr) {
    PRODUCT("cusparseSpGEMMreuse_compute");
    SPARSE_CHECK(descr->counted, "%s: cusparseSpGEMMreuse_nnz comes first", p.function);
    return submit(&p, REUSE_COMPUTE, false);
}

static cusparseStatus_t cusparseSpGEAM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                                  cusparseOperation_t op_b, const void *alpha, cusparseSpMatDescr_t a,
                                                  const void *beta, cusparseSpMatDescr_t b, cusparseSpMatDescr_t c,
                                                  cudaDataType compute, cusparseSpGEAMAlg_t alg,
                                                  cusparseSpGEAMDescr_t descr, size_t *size) {
    SUM_OF("cusparseSpGEAM_bufferSize");
    if (!size) return sparse_null(p.function, "bufferSize");
    *size = BUFFER_BYTES;
    return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t cusparseSpGEAM_nnz(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                           const void *alpha, cusparseSpMatDescr_t a, const void *beta,
                                           cusparseSpMatDescr_t b, cusparseSpMatDescr_t c, cudaDataType compute,
                                           cusparseSpGEAMAlg_t alg, cusparseSpGEAMDescr_t descr, void *buffer) {
    SUM_OF("cusparseSpGEAM_nnz");
    SPARSE_RETURN_IF(check_external(p.function, buffer));
    return count(&p, SUM_COUNT);
}

static cusparseStatus_t cusparseSpGEAM(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                                       const void *alpha, cusparseSpMatDescr_t a, const void *beta,
                                       cusparseSpMatDescr_t b, cusparseSpMatDescr_t c, cudaDataType compute,
                                       cusparseSpGEAMAlg_t alg, cusparseSpGEAMDescr_t descr, void *buffer) {
    SUM_OF("cusparseSpGEAM");
    SPARSE_RETURN_IF(check_external(p.function, buffer));
    SPARSE_CHECK(p.descr->counted, "%s: cusparseSpGEAM_nnz comes first", p.function);
    return submit(&p, SUM, false);
}

const struct entry sparse_combine_entries[] = {
    SPARSE_ENTRY(cusparseSpGEMM_createDescr),
    SPARSE_ENTRY(cusparseSpGEMM_destroyDescr),
    SPARSE_ENTRY(cusparseSpGEMM_workEstimation),
    SPARSE_ENTRY(cusparseSpGEMM_getNumProducts),
    SPARSE_ENTRY(cusparseSpGEMM_estimateMemory),
    SPARSE_ENTRY(cusparseSpGEMM_compute),
    SPARSE_ENTRY(cusparseSpGEMM_copy),
    SPARSE_ENTRY(cusparseSpGEMMreuse_workEstimation),
    SPARSE_ENTRY(cusparseSpGEMMreuse_nnz),
    SPARSE_ENTRY(cusparseSpGEMMreuse_copy),
    SPARSE_ENTRY(cusparseSpGEMMreuse_compute),
    SPARSE_ENTRY(cusparseSpGEAM_createDescr),
    SPARSE_ENTRY(cusparseSpGEAM_destroyDescr),
    SPARSE_ENTRY(cusparseSpGEAM_bufferSize),
    SPARSE_ENTRY(cusparseSpGEAM_nnz),
    SPARSE_ENTRY(cusparseSpGEAM),
    {NULL, NULL, NULL},
};
