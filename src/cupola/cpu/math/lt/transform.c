/* Transformations of matrices: C = alpha op(A) + beta op(B), in any order and type (cuBLAS Library, 3.4.23). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lt.h"

#define NAME "cublasLtMatrixTransform"

struct transformation {
    struct call call;
    struct matrix a, b, c; /* a, b without data: there is none */
    int op_a, op_b;
    int64_t batch;
    struct scalar alpha, beta;
};

static number value_of(const struct matrix *matrix, int op, int64_t index, int64_t row, int64_t column) {
    int64_t i = op == CUBLAS_OP_N ? row : column, j = op == CUBLAS_OP_N ? column : row;
    int64_t place = matrix_at(matrix, index) + (matrix->by_rows ? i * matrix->ld + j : j * matrix->ld + i);
    number value = element_load(matrix->type, matrix->data, place);
    return op == CUBLAS_OP_C ? conj(value) : value;
}

static CUresult scalar_of(const struct scalar *scalar, number *value) {
    if (scalar->device) RETURN_IF(math_touch(NAME, "a scalar", scalar->device, element_size(scalar->type)));
    *value = element_load(scalar->type, scalar->device ? scalar->device : scalar->value, 0);
    return CUDA_SUCCESS;
}

static CUresult run(struct call *head) {
    const struct transformation *call = (const struct transformation *)head;
    const struct matrix *c = &call->c;
    number alpha = 0, beta = 0;
    if (call->a.data) RETURN_IF(scalar_of(&call->alpha, &alpha));
    if (call->b.data) RETURN_IF(scalar_of(&call->beta, &beta));
    for (int64_t index = 0; index < call->batch; index++) {
        if (alpha != 0) RETURN_IF(lt_touch(NAME, "the matrix A", &call->a, index));
        if (beta != 0) RETURN_IF(lt_touch(NAME, "the matrix B", &call->b, index));
        RETURN_IF(lt_touch(NAME, "the matrix C", c, index));
        int64_t lines = c->by_rows ? c->rows : c->columns, length = c->by_rows ? c->columns : c->rows;
        for (int64_t line = 0; line < lines; line++)
            for (int64_t i = 0; i < length; i++) {
                int64_t row = c->by_rows ? line : i, column = c->by_rows ? i : line;
                number value = 0;
                if (alpha != 0) value += alpha * value_of(&call->a, call->op_a, index, row, column);
                if (beta != 0) value += beta * value_of(&call->b, call->op_b, index, row, column);
                if (c->type == I8 || c->type == I32) value = trunc(creal(value)); /* not to nearest, as on a GPU */
                element_store(c->type, c->data, matrix_at(c, index) + line * c->ld + i, value);
            }
    }
    return CUDA_SUCCESS;
}

static bool is_scale_of(enum element scale, enum element type) {
    if (scale == I32) return type == I8 || type == I32;
    if (scale == S) return type == S || type == H || type == B || type == I8 || type == I32;
    return type == scale;
}

/* Types may differ between A and C, when there is no B, and they are float and a shorter one. */
static bool agree(enum element a, enum element c, bool alone) {
    bool near = (a == S && (c == H || c == B)) || (c == S && (a == H || a == B));
    return a == c || (alone && near);
}

static cublasStatus_t matrix_of(const char *name, const struct lt_layout *layout, void *data, int op, int64_t rows,
                                int64_t columns, enum element scale, struct matrix *matrix) {
    bool by_rows = layout->order == CUBLASLT_ORDER_ROW;
    enum element type = element_of((cudaDataType)layout->type);
    if ((layout->order != CUBLASLT_ORDER_COL && !by_rows) || layout->plane || layout->batch_mode)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, NAME ": %s has an order that is not emulated", name);
    if (!is_scale_of(scale, type))
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, NAME ": %s has type %u, which these scalars cannot be of", name,
                         layout->type);
    BLAS_CHECK(layout->rows <= INT32_MAX && layout->columns <= INT32_MAX, NAME ": %s has too many rows or columns",
               name);
    int64_t own_rows = op == CUBLAS_OP_N ? rows : columns, own_columns = op == CUBLAS_OP_N ? columns : rows;
    BLAS_CHECK((int64_t)layout->rows == own_rows && (int64_t)layout->columns == own_columns,
               NAME ": %s does not have the size of C", name);
    BLAS_CHECK(layout->ld >= (by_rows ? own_columns : own_rows), NAME ": %s has a leading dimension of %lld", name,
               (long long)layout->ld);
    *matrix = (struct matrix){.data = data,
                              .type = type,
                              .rows = own_rows,
                              .columns = own_columns,
                              .ld = layout->ld,
                              .stride = layout->stride,
                              .by_rows = by_rows};
    return CUBLAS_STATUS_SUCCESS;
}

static void take_scalar(struct scalar *scalar, enum element type, const void *pointer, bool on_device) {
    scalar->type = type;
    if (on_device) scalar->device = pointer;
    else memcpy(scalar->value, pointer, element_size(type));
}

static cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t transform,
                                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                                              const void *beta, const void *b, cublasLtMatrixLayout_t b_layout, void *c,
                                              cublasLtMatrixLayout_t c_layout, cudaStream_t stream) {
    BLAS_RETURN_IF(blas_check((cublasHandle_t)handle, NAME));
    const struct lt_transform *described = (const struct lt_transform *)transform;
    const struct lt_layout *of_a = (struct lt_layout *)a_layout, *of_b = (struct lt_layout *)b_layout,
                           *of_c = (struct lt_layout *)c_layout;
    BLAS_CHECK(lt_is(described, LT_TRANSFORM) && lt_is(of_c, LT_LAYOUT), NAME ": a descriptor is missing, or is none");
    BLAS_CHECK((unsigned)described->op_a <= CUBLAS_OP_C && (unsigned)described->op_b <= CUBLAS_OP_C,
               NAME ": there is no operation %d or %d", described->op_a, described->op_b);
    BLAS_CHECK((unsigned)described->pointer_mode <= CUBLASLT_POINTER_MODE_DEVICE, NAME ": pointer mode %d",
               described->pointer_mode);
    if (!c) return blas_null(NAME, "C");
    enum element scale = element_of((cudaDataType)described->scale);
    bool on_device = described->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
    struct transformation filled = {.op_a = described->op_a, .op_b = described->op_b, .batch = of_c->batch};
    int64_t rows = (int64_t)of_c->rows, columns = (int64_t)of_c->columns;
    BLAS_RETURN_IF(matrix_of("C", of_c, c, CUBLAS_OP_N, rows, columns, scale, &filled.c));
    if (a) {
        BLAS_CHECK(lt_is(of_a, LT_LAYOUT) && of_a->batch == of_c->batch,
                   NAME ": A has no layout, or another batch than C");
        BLAS_RETURN_IF(matrix_of("A", of_a, (void *)a, described->op_a, rows, columns, scale, &filled.a));
        if (!alpha) return blas_null(NAME, "alpha");
        take_scalar(&filled.alpha, scale, alpha, on_device);
    }
    if (b) {
        BLAS_CHECK(lt_is(of_b, LT_LAYOUT) && of_b->batch == of_c->batch,
                   NAME ": B has no layout, or another batch than C");
        BLAS_RETURN_IF(matrix_of("B", of_b, (void *)b, described->op_b, rows, columns, scale, &filled.b));
        if (!beta) return blas_null(NAME, "beta");
        take_scalar(&filled.beta, scale, beta, on_device);
    }
    if ((a && !agree(filled.a.type, filled.c.type, !b)) || (b && !agree(filled.b.type, filled.c.type, !a)))
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, NAME ": A, B and C have different types");
    struct transformation *call = calloc(1, sizeof *call);
    if (!call) return blas_status(no_memory("a call of cuBLASLt"));
    *call = filled;
    call->call.references = 1;
    call->call.run = run;
    CUstream queue;
    CUresult status = math_stream(stream, &queue);
    if (status) call_release(&call->call);
    return blas_status(status ? status : math_submit(queue, &call->call, false));
}

const struct entry lt_transform_entries[] = {LT_ENTRY(cublasLtMatrixTransform), {NULL, NULL, NULL}};
