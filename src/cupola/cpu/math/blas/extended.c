/* Level 1 with types by number (cuBLAS Library, 2.8: AxpyEx, DotEx, Nrm2Ex, ScalEx). Which combinations of types there are
 * was recorded on an H200. */
#include <math.h>

#include "blas.h"

enum form { AXPY, SCAL, DOT, NRM2 };

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static int64_t first_of(int64_t n, int64_t increment) { return increment < 0 ? -(n - 1) * increment : 0; }

static CUresult run(struct blas *blas) {
    enum element type = blas->type;
    int64_t n = larger(blas->n, 0), incx = blas->lda, incy = blas->ldb;
    bool one = blas->form == SCAL || blas->form == NRM2;
    if (one && incx <= 0) n = 0;
    RETURN_IF(touch_vector(blas, "the vector x", blas->a, type, n, incx));
    if (!one) RETURN_IF(touch_vector(blas, "the vector y", blas->b, type, n, incy));
    number alpha = 0, sum = 0;
    if (blas->form <= SCAL) RETURN_IF(scalar_value(blas, &blas->alpha, &alpha));
    int64_t at_x = first_of(n, incx), at_y = first_of(n, incy);
    for (int64_t i = 0; i < n; i++, at_x += incx, at_y += incy) {
        number x = element_load(type, blas->a, at_x);
        switch (blas->form) {
            case AXPY: element_store(type, blas->b, at_y, alpha * x + element_load(type, blas->b, at_y)); break;
            case SCAL: element_store(type, blas->a, at_x, alpha * x); break;
            case DOT: sum += (blas->conjugate ? conj(x) : x) * element_load(type, blas->b, at_y); break;
            default: sum += creal(x) * creal(x) + cimag(x) * cimag(x); break;
        }
    }
    if (blas->form <= SCAL) return CUDA_SUCCESS;
    return write_result(blas, blas->form == NRM2 ? sqrt(creal(sum)) : sum);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct operands {
    enum form form;
    bool conjugate;
    cudaDataType alpha_type, x_type, y_type, result_type, execution;
    int64_t n, incx, incy;
    const void *alpha, *x;
    void *y, *result;
};

/* The type in which a vector's elements are added up, and that of alpha. */
static enum element wide_of(enum element type) { return type == H || type == B ? S : type; }

static cublasStatus_t by_number(cublasHandle_t handle, const char *function, struct operands p) {
    BLAS_RETURN_IF(blas_check(handle, function));
    enum element type = element_of(p.x_type);
    bool known = type <= B;
    if (p.form == NRM2 && known)
        known = element_of(p.result_type) == real_of(type) && element_of(p.execution) == wide_of(real_of(type));
    else if (known) {
        known = element_of(p.execution) == wide_of(type);
        if (p.form != SCAL) known &= p.y_type == p.x_type;
        if (p.form <= SCAL) known &= element_of(p.alpha_type) == wide_of(type);
        else known &= p.result_type == p.x_type;
    }
    if (!known)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: there is no such combination of types: x %d, execution %d",
                         function, (int)p.x_type, (int)p.execution);
    if (p.form <= SCAL && p.n <= 0) return CUBLAS_STATUS_SUCCESS;
    if (p.form <= SCAL && !p.alpha) return blas_null(function, "alpha");
    if (p.form > SCAL && !p.result) return blas_null(function, "result");
    struct blas *blas = blas_new(function, run, type);
    if (!blas) return blas_status(no_memory("a call of cuBLAS"));
    blas->form = p.form, blas->conjugate = p.conjugate, blas->n = p.n;
    blas->a = (void *)p.x, blas->lda = p.incx, blas->b = p.y, blas->ldb = p.incy;
    if (p.form <= SCAL) blas_scalar(handle, blas, &blas->alpha, wide_of(type), p.alpha);
    blas->result = p.result;
    blas->result_type = p.form == NRM2 ? real_of(type) : type;
    blas->result_on_host = p.form > SCAL && handle->pointer_mode == CUBLAS_POINTER_MODE_HOST;
    return blas_submit(handle, blas);
}

#define EXTENDED(W, N)                                                                                                   \
    static cublasStatus_t cublasAxpyEx##W(cublasHandle_t handle, N n, const void *alpha, cudaDataType alphaType,         \
                                          const void *x, cudaDataType xType, N incx, void *y, cudaDataType yType, N incy, \
                                          cudaDataType executiontype) {                                                  \
        return by_number(handle, "cublasAxpyEx" #W,                                                                      \
                         (struct operands){.form = AXPY, .n = n, .alpha = alpha, .alpha_type = alphaType, .x = x,        \
                                           .x_type = xType, .incx = incx, .y = y, .y_type = yType, .incy = incy,         \
                                           .execution = executiontype});                                                 \
    }                                                                                                                    \
    static cublasStatus_t cublasScalEx##W(cublasHandle_t handle, N n, const void *alpha, cudaDataType alphaType, void *x, \
                                          cudaDataType xType, N incx, cudaDataType executionType) {                      \
        return by_number(handle, "cublasScalEx" #W,                                                                      \
                         (struct operands){.form = SCAL, .n = n, .alpha = alpha, .alpha_type = alphaType, .x = x,        \
                                           .x_type = xType, .incx = incx, .execution = executionType});                  \
    }                                                                                                                    \
    static cublasStatus_t cublasNrm2Ex##W(cublasHandle_t handle, N n, const void *x, cudaDataType xType, N incx,         \
                                          void *result, cudaDataType resultType, cudaDataType executionType) {           \
        return by_number(handle, "cublasNrm2Ex" #W,                                                                      \
                         (struct operands){.form = NRM2, .n = n, .x = x, .x_type = xType, .incx = incx,                  \
                                           .result = result, .result_type = resultType, .execution = executionType});    \
    }                                                                                                                    \
    DOT_EX(DotEx, false, W, N) DOT_EX(DotcEx, true, W, N)
#define DOT_EX(name, is_conjugate, W, N)                                                                                 \
    static cublasStatus_t cublas##name##W(cublasHandle_t handle, N n, const void *x, cudaDataType xType, N incx,         \
                                          const void *y, cudaDataType yType, N incy, void *result,                       \
                                          cudaDataType resultType, cudaDataType executionType) {                         \
        return by_number(handle, "cublas" #name #W,                                                                      \
                         (struct operands){.form = DOT, .conjugate = is_conjugate, .n = n, .x = x, .x_type = xType,      \
                                           .incx = incx, .y = (void *)y, .y_type = yType, .incy = incy,                  \
                                           .result = result, .result_type = resultType, .execution = executionType});    \
    }
EXTENDED(, int)
EXTENDED(_64, int64_t)

#define ENTRIES(W)                                                                                                 \
    BLAS_ENTRY(cublasAxpyEx##W), BLAS_ENTRY(cublasScalEx##W), BLAS_ENTRY(cublasNrm2Ex##W), BLAS_ENTRY(cublasDotEx##W), \
        BLAS_ENTRY(cublasDotcEx##W),

const struct entry blas_extended_entries[] = {ENTRIES() ENTRIES(_64){NULL, NULL, NULL}};
