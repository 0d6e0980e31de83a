/* Level 1: operations on vectors (cuBLAS Library, 2.5). */
#include <math.h>

#include "blas.h"

/* Which of the functions of the family. */
enum form { AXPY, COPY, SWAP, SCAL, SCAL_REAL, ROT, ROT_COMPLEX, DOT, NRM2, ASUM, AMAX, AMIN };

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static double magnitude(enum element type, const void *x, int64_t index) {
    number value = element_load(type, x, index);
    return fabs(creal(value)) + fabs(cimag(value));
}

/* The place of the first largest or smallest element, counted from one; 0 in an empty vector. */
static int64_t extreme(const struct blas *blas) {
    if (blas->n < 1 || blas->lda < 1) return 0;
    int64_t place = 0;
    double best = magnitude(blas->type, blas->a, 0);
    for (int64_t i = 1; i < blas->n; i++) {
        double value = magnitude(blas->type, blas->a, i * blas->lda);
        if (blas->form == AMAX ? value > best : value < best) best = value, place = i;
    }
    return place + 1;
}

/* An infinity counts for more than a NaN in a GPU's norms of single precision. */
static bool has_infinity(const struct blas *blas) {
    for (int64_t i = 0; i < blas->n; i++)
        if (isinf(magnitude(blas->type, blas->a, i * blas->lda))) return true;
    return false;
}

static CUresult run_reduction(struct blas *blas) {
    blas_int n = blas->n > 0 ? blas->n : 0, incx = blas->lda, incy = blas->ldb;
    bool pair = blas->form == DOT;
    if (!pair && incx <= 0) n = 0;
    RETURN_IF(touch_vector(blas, "the vector x", blas->a, blas->type, n, incx));
    if (pair) RETURN_IF(touch_vector(blas, "the vector y", blas->b, blas->type, n, incy));
    if (blas->form >= AMAX) return write_result(blas, (double)extreme(blas));
    if (!n) return write_result(blas, 0);
    enum element type = blas->type;
    if (pair && is_complex(type)) {
        char result[16];
        typedef void reduce(blas_int, const void *, blas_int, const void *, blas_int, void *);
        ((reduce *)(blas->conjugate ? openblas.dotc : openblas.dot)[type])(n, blas->a, incx, blas->b, incy, result);
        return write_result(blas, element_load(type, result, 0));
    }
    void *routine = (void *)(pair ? openblas.dot : blas->form == NRM2 ? openblas.nrm2 : openblas.asum)[type];
    typedef float reduce_float(const blas_int *, const void *, const blas_int *, const void *, const blas_int *);
    typedef double reduce_double(const blas_int *, const void *, const blas_int *, const void *, const blas_int *);
    double norm = real_of(type) == S ? ((reduce_float *)routine)(&n, blas->a, &incx, blas->b, &incy)
                                     : ((reduce_double *)routine)(&n, blas->a, &incx, blas->b, &incy);
    if (blas->form == NRM2 && real_of(type) == S && isnan(norm) && has_infinity(blas)) norm = INFINITY;
    return write_result(blas, norm);
}

/* Part by part, so that infinities and NaN stay what they become on a GPU; BLAS makes zeros of them. */
static void scale_complex(const struct blas *blas, number alpha) {
    for (int64_t i = 0; i < blas->n; i++) {
        number x = element_load(blas->type, blas->a, i * blas->lda);
        double real = creal(alpha) * creal(x) - cimag(alpha) * cimag(x);
        element_store(blas->type, blas->a, i * blas->lda,
                      CMPLX(real, creal(alpha) * cimag(x) + cimag(alpha) * creal(x)));
    }
}

static CUresult run_vector(struct blas *blas) {
    blas_int n = blas->n, incx = blas->lda, incy = blas->ldb;
    enum element type = blas->type;
    number alpha = 0, beta = 0;
    bool one = blas->form == SCAL || blas->form == SCAL_REAL;
    if (n <= 0 || (one && incx <= 0)) return CUDA_SUCCESS;
    RETURN_IF(touch_vector(blas, "the vector x", blas->a, type, n, incx));
    if (!one) RETURN_IF(touch_vector(blas, "the vector y", blas->b, type, n, incy));
    if (blas->form != COPY && blas->form != SWAP) RETURN_IF(scalar_value(blas, &blas->alpha, &alpha));
    if (blas->form == ROT || blas->form == ROT_COMPLEX) RETURN_IF(scalar_value(blas, &blas->beta, &beta));
    char a[16], b[16];
    element_store(blas->alpha.type, a, 0, alpha);
    element_store(blas->beta.type, b, 0, beta);
    switch (blas->form) {
        case AXPY:
            if (alpha != 0) openblas.axpy[type](&n, a, blas->a, &incx, blas->b, &incy);
            break;
        case COPY: openblas.copy[type](&n, blas->a, &incx, blas->b, &incy); break;
        case SWAP: openblas.swap[type](&n, blas->a, &incx, blas->b, &incy); break;
        case SCAL:
            if (is_complex(type)) scale_complex(blas, alpha);
            else openblas.scal[type](&n, a, blas->a, &incx);
            break;
        case SCAL_REAL: openblas.scal_real[type](&n, a, blas->a, &incx); break;
        case ROT: openblas.rot[type](&n, blas->a, &incx, blas->b, &incy, a, b); break;
        default: openblas.rot_complex[type](&n, blas->a, &incx, blas->b, &incy, a, b); break;
    }
    return CUDA_SUCCESS;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static cublasStatus_t prepare(cublasHandle_t handle, const char *function, enum form form, enum element type, int64_t n,
                              const void *x, int64_t incx, const void *y, int64_t incy, struct blas **made) {
    BLAS_RETURN_IF(blas_check(handle, function));
    struct blas *blas = *made = blas_new(function, form >= DOT ? run_reduction : run_vector, type);
    if (!blas) return blas_status(no_memory("a call of cuBLAS"));
    blas->form = form;
    blas->n = n;
    blas->a = (void *)x, blas->lda = incx;
    blas->b = (void *)y, blas->ldb = incy;
    blas->alpha.type = blas->beta.type = type;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t plain(cublasHandle_t handle, const char *function, enum form form, enum element type, int64_t n,
                            const void *x, int64_t incx, void *y, int64_t incy) {
    struct blas *blas;
    BLAS_RETURN_IF(prepare(handle, function, form, type, n, x, incx, y, incy, &blas));
    return blas_submit(handle, blas);
}

static cublasStatus_t scaled(cublasHandle_t handle, const char *function, enum form form, enum element type,
                             enum element alpha_type, int64_t n, const void *alpha, const void *x, int64_t incx,
                             void *y, int64_t incy) {
    struct blas *blas;
    BLAS_RETURN_IF(blas_check(handle, function));
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    if (!alpha) return blas_null(function, "alpha");
    BLAS_RETURN_IF(prepare(handle, function, form, type, n, x, incx, y, incy, &blas));
    blas_scalar(handle, blas, &blas->alpha, alpha_type, alpha);
    return blas_submit(handle, blas);
}

static cublasStatus_t rotate(cublasHandle_t handle, const char *function, enum form form, enum element type,
                             enum element sine_type, int64_t n, void *x, int64_t incx, void *y, int64_t incy,
                             const void *cosine, const void *sine) {
    struct blas *blas;
    BLAS_RETURN_IF(blas_check(handle, function));
    if (!cosine || !sine) return blas_null(function, cosine ? "s" : "c");
    BLAS_RETURN_IF(prepare(handle, function, form, type, n, x, incx, y, incy, &blas));
    blas_scalar(handle, blas, &blas->alpha, real_of(type), cosine);
    blas_scalar(handle, blas, &blas->beta, sine_type, sine);
    return blas_submit(handle, blas);
}

static cublasStatus_t reduce(cublasHandle_t handle, const char *function, enum form form, enum element type,
                             bool conjugate, int64_t n, const void *x, int64_t incx, const void *y, int64_t incy,
                             void *result, enum element result_type) {
    struct blas *blas;
    BLAS_RETURN_IF(blas_check(handle, function));
    if (!result) return blas_null(function, "result");
    BLAS_RETURN_IF(prepare(handle, function, form, type, n, x, incx, y, incy, &blas));
    blas->conjugate = conjugate;
    blas->result = result;
    blas->result_type = result_type;
    blas->result_on_host = handle->pointer_mode == CUBLAS_POINTER_MODE_HOST;
    return blas_submit(handle, blas);
}

#define VECTORS(L, T, type, W, I)                                                                                        \
    static cublasStatus_t cublas##L##axpy##W(cublasHandle_t handle, I n, const T *alpha, const T *x, I incx, T *y,       \
                                             I incy) {                                                                  \
        return scaled(handle, "cublas" #L "axpy" #W, AXPY, type, type, n, alpha, x, incx, y, incy);                      \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##copy##W(cublasHandle_t handle, I n, const T *x, I incx, T *y, I incy) {             \
        return plain(handle, "cublas" #L "copy" #W, COPY, type, n, x, incx, y, incy);                                    \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##swap##W(cublasHandle_t handle, I n, T *x, I incx, T *y, I incy) {                   \
        return plain(handle, "cublas" #L "swap" #W, SWAP, type, n, x, incx, y, incy);                                    \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##scal##W(cublasHandle_t handle, I n, const T *alpha, T *x, I incx) {                 \
        return scaled(handle, "cublas" #L "scal" #W, SCAL, type, type, n, alpha, x, incx, NULL, 0);                      \
    }
BLAS_ALL(VECTORS)

#define DOT_REAL(L, T, type, W, I)                                                                                       \
    static cublasStatus_t cublas##L##dot##W(cublasHandle_t handle, I n, const T *x, I incx, const T *y, I incy,          \
                                            T *result) {                                                                 \
        return reduce(handle, "cublas" #L "dot" #W, DOT, type, false, n, x, incx, y, incy, result, type);                \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##rot##W(cublasHandle_t handle, I n, T *x, I incx, T *y, I incy, const T *c,          \
                                            const T *s) {                                                                \
        return rotate(handle, "cublas" #L "rot" #W, ROT, type, type, n, x, incx, y, incy, c, s);                         \
    }
BLAS_REAL(DOT_REAL)

#define DOT_COMPLEX(L, T, type, W, I)                                                                                    \
    static cublasStatus_t cublas##L##dotu##W(cublasHandle_t handle, I n, const T *x, I incx, const T *y, I incy,         \
                                             T *result) {                                                                \
        return reduce(handle, "cublas" #L "dotu" #W, DOT, type, false, n, x, incx, y, incy, result, type);               \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##dotc##W(cublasHandle_t handle, I n, const T *x, I incx, const T *y, I incy,         \
                                             T *result) {                                                                \
        return reduce(handle, "cublas" #L "dotc" #W, DOT, type, true, n, x, incx, y, incy, result, type);                \
    }
BLAS_COMPLEX(DOT_COMPLEX)

/* Names with two letters: of complex vectors and a real number. */
#define MIXED(L, M, T, R, type, W, I)                                                                                    \
    static cublasStatus_t cublas##L##scal##W(cublasHandle_t handle, I n, const R *alpha, T *x, I incx) {                 \
        return scaled(handle, "cublas" #L "scal" #W, SCAL_REAL, type, real_of(type), n, alpha, x, incx, NULL, 0);        \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##rot##W(cublasHandle_t handle, I n, T *x, I incx, T *y, I incy, const R *c,          \
                                            const R *s) {                                                                \
        return rotate(handle, "cublas" #L "rot" #W, ROT, type, real_of(type), n, x, incx, y, incy, c, s);                \
    }                                                                                                                    \
    static cublasStatus_t cublas##M##rot##W(cublasHandle_t handle, I n, T *x, I incx, T *y, I incy, const R *c,          \
                                            const T *s) {                                                                \
        return rotate(handle, "cublas" #M "rot" #W, ROT_COMPLEX, type, type, n, x, incx, y, incy, c, s);                 \
    }
#define MIXED_WIDTHS(L, M, T, R, type) MIXED(L, M, T, R, type, , int) MIXED(L, M, T, R, type, _64, int64_t)
MIXED_WIDTHS(Cs, C, cuComplex, float, C)
MIXED_WIDTHS(Zd, Z, cuDoubleComplex, double, Z)

#define NORMS(L, T, R, type, W, I)                                                                                       \
    static cublasStatus_t cublas##L##nrm2##W(cublasHandle_t handle, I n, const T *x, I incx, R *result) {                \
        return reduce(handle, "cublas" #L "nrm2" #W, NRM2, type, false, n, x, incx, NULL, 0, result, real_of(type));     \
    }                                                                                                                    \
    static cublasStatus_t cublas##L##asum##W(cublasHandle_t handle, I n, const T *x, I incx, R *result) {                \
        return reduce(handle, "cublas" #L "asum" #W, ASUM, type, false, n, x, incx, NULL, 0, result, real_of(type));     \
    }
#define NORM_WIDTHS(L, T, R, type) NORMS(L, T, R, type, , int) NORMS(L, T, R, type, _64, int64_t)
NORM_WIDTHS(S, float, float, S)
NORM_WIDTHS(D, double, double, D)
NORM_WIDTHS(Sc, cuComplex, float, C)
NORM_WIDTHS(Dz, cuDoubleComplex, double, Z)

#define EXTREMES(l, T, type, W, I, index)                                                                                \
    static cublasStatus_t cublasI##l##amax##W(cublasHandle_t handle, I n, const T *x, I incx, I *result) {               \
        return reduce(handle, "cublasI" #l "amax" #W, AMAX, type, false, n, x, incx, NULL, 0, result, index);            \
    }                                                                                                                    \
    static cublasStatus_t cublasI##l##amin##W(cublasHandle_t handle, I n, const T *x, I incx, I *result) {               \
        return reduce(handle, "cublasI" #l "amin" #W, AMIN, type, false, n, x, incx, NULL, 0, result, index);            \
    }
#define EXTREME_WIDTHS(l, T, type) EXTREMES(l, T, type, , int, I32) EXTREMES(l, T, type, _64, int64_t, I64)
EXTREME_WIDTHS(s, float, S)
EXTREME_WIDTHS(d, double, D)
EXTREME_WIDTHS(c, cuComplex, C)
EXTREME_WIDTHS(z, cuDoubleComplex, Z)

#define ENTRIES(L, T, type, W, I) \
    BLAS_ENTRY(cublas##L##axpy##W), BLAS_ENTRY(cublas##L##copy##W), BLAS_ENTRY(cublas##L##swap##W), BLAS_ENTRY(cublas##L##scal##W),
#define ENTRIES_REAL(L, T, type, W, I) BLAS_ENTRY(cublas##L##dot##W), BLAS_ENTRY(cublas##L##rot##W),
#define ENTRIES_COMPLEX(L, T, type, W, I) \
    BLAS_ENTRY(cublas##L##dotu##W), BLAS_ENTRY(cublas##L##dotc##W), BLAS_ENTRY(cublas##L##rot##W),
#define ENTRIES_MIXED(L, W) BLAS_ENTRY(cublas##L##scal##W), BLAS_ENTRY(cublas##L##rot##W),
#define ENTRIES_NORM(L, W) BLAS_ENTRY(cublas##L##nrm2##W), BLAS_ENTRY(cublas##L##asum##W),
#define ENTRIES_EXTREME(l, W) BLAS_ENTRY(cublasI##l##amax##W), BLAS_ENTRY(cublasI##l##amin##W),
#define BOTH(X, L) X(L, ) X(L, _64)

const struct entry blas_vector_entries[] = {
    BLAS_ALL(ENTRIES) BLAS_REAL(ENTRIES_REAL) BLAS_COMPLEX(ENTRIES_COMPLEX) BOTH(ENTRIES_MIXED, Cs)
        BOTH(ENTRIES_MIXED, Zd) BOTH(ENTRIES_NORM, S) BOTH(ENTRIES_NORM, D) BOTH(ENTRIES_NORM, Sc)
            BOTH(ENTRIES_NORM, Dz) BOTH(ENTRIES_EXTREME, s) BOTH(ENTRIES_EXTREME, d) BOTH(ENTRIES_EXTREME, c)
                BOTH(ENTRIES_EXTREME, z){NULL, NULL, NULL},
};
