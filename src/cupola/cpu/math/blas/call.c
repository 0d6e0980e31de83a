/* Calls of cuBLAS on their way into a stream, and what all of them need while they run. */
#include <stdlib.h>
#include <string.h>

#include "blas.h"

static CUresult run_call(struct call *call) {
    struct blas *blas = (struct blas *)call;
    return blas->run(blas);
}

struct blas *blas_new(const char *function, CUresult (*run)(struct blas *blas), enum element type) {
    struct blas *blas = calloc(1, sizeof *blas);
    if (!blas) return NULL;
    blas->call.references = 1;
    blas->call.run = run_call;
    blas->function = function;
    blas->run = run;
    blas->type = blas->b_type = blas->c_type = blas->compute = blas->result_type = type;
    blas->batch = NO_BATCH;
    return blas;
}

cublasStatus_t blas_scalar(cublasHandle_t handle, struct blas *blas, struct scalar *scalar, enum element type,
                           const void *pointer) {
    (void)blas;
    scalar->type = type;
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) scalar->device = pointer;
    else memcpy(scalar->value, pointer, element_size(type));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_submit(cublasHandle_t handle, struct blas *blas) {
    CUstream stream;
    CUresult status = math_stream(handle->stream, &stream);
    if (unlikely(status)) {
        call_release(&blas->call);
        return blas_status(status);
    }
    return blas_status(math_submit(stream, &blas->call, blas->result_on_host));
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

CUresult scalar_value(const struct blas *blas, const struct scalar *scalar, number *value) {
    if (scalar->device) RETURN_IF(math_touch(blas->function, "a scalar", scalar->device, element_size(scalar->type)));
    *value = element_load(scalar->type, scalar->device ? scalar->device : scalar->value, 0);
    return CUDA_SUCCESS;
}

/* From the first element to the last, where `steps` steps lead to the last `rest` elements. What is larger than the address
 * space is no memory that there is. */
static CUresult touch_extent(const struct blas *blas, const char *what, const void *place, enum element type,
                             uint64_t steps, uint64_t step, uint64_t rest) {
    size_t bytes;
    if (__builtin_mul_overflow(steps, step, &bytes) || __builtin_add_overflow(bytes, rest, &bytes) ||
        __builtin_mul_overflow(bytes, element_size(type), &bytes))
        bytes = SIZE_MAX;
    return math_touch(blas->function, what, place, bytes);
}

CUresult touch_matrix(const struct blas *blas, const char *what, const void *a, enum element type, int64_t rows,
                      int64_t columns, int64_t ld) {
    if (rows <= 0 || columns <= 0) return CUDA_SUCCESS;
    return touch_extent(blas, what, a, type, (uint64_t)columns - 1, (uint64_t)ld, (uint64_t)rows);
}

CUresult touch_vector(const struct blas *blas, const char *what, const void *x, enum element type, int64_t n,
                      int64_t increment) {
    if (n <= 0) return CUDA_SUCCESS;
    uint64_t step = increment < 0 ? -(uint64_t)increment : (uint64_t)increment;
    return touch_extent(blas, what, x, type, (uint64_t)n - 1, step, 1);
}

CUresult batch_at(const struct blas *blas, const char *what, void *place, enum element type, int64_t stride,
                  int64_t index, void **matrix) {
    if (!blas->pointers) {
        *matrix = element_at(place, type, stride * index);
        return CUDA_SUCCESS;
    }
    RETURN_IF(math_touch(blas->function, what, (void **)place + index, sizeof *matrix));
    *matrix = ((void **)place)[index];
    return CUDA_SUCCESS;
}

CUresult write_result(const struct blas *blas, number value) {
    if (!blas->result_on_host)
        RETURN_IF(math_touch(blas->function, "the result", blas->result, element_size(blas->result_type)));
    element_store(blas->result_type, blas->result, 0, value);
    return CUDA_SUCCESS;
}

void scale_by(enum element type, void *place, int64_t rows, int64_t columns, int64_t ld, number beta) {
    if (beta == 1) return;
    if (ld == rows) rows *= columns, columns = 1; /* in one piece */
    for (int64_t j = 0; j < columns; j++) {
        void *column = element_at(place, type, j * ld);
        if (beta == 0) memset(column, 0, (size_t)rows * element_size(type));
        else
            for (int64_t i = 0; i < rows; i++) element_store(type, column, i, element_load(type, column, i) * beta);
    }
}
