/* cuBLAS: what its files share (cuBLAS Library, https://docs.nvidia.com/cuda/cublas).
 *
 * All functions of a family come down to one, for all types, sizes of 32 and of 64 bits, and batches: `struct blas` has
 * the arguments of any of them, and `run` of its family carries it out. */
#ifndef CUPOLA_CPU_MATH_BLAS_H
#define CUPOLA_CPU_MATH_BLAS_H

#include <cupola/cublas.h>

#include "math/base/element.h"
#include "math/base/math.h"

/* ---- OpenBLAS: the routines of Fortran, which have one signature for the four types (openblas.c) ----------- */

typedef int64_t blas_int;
/* Behind "|" stands the name for complex numbers; "%" in it is the letter of their real type, as in csrot. */
#define BLAS_ROUTINES(X)                                                                                               \
    X(axpy, "axpy") X(copy, "copy") X(swap, "swap") X(scal, "scal") X(scal_real, "scal|%scal") X(rot, "rot|%rot")        \
    X(rot_complex, "rot|rot") X(dot, "dot|dotu_sub") X(dotc, "dot|dotc_sub") X(nrm2, "nrm2") X(asum, "asum")             \
    X(gemv, "gemv") X(symv, "symv") X(syr, "syr") X(hemv, "symv|hemv") X(trmv, "trmv") X(trsv, "trsv") X(ger, "ger|geru")              \
    X(gerc, "ger|gerc") X(gemm, "gemm") X(symm, "symm") X(hemm, "symm|hemm") X(trmm, "trmm") X(trsm, "trsm")             \
    X(syrk, "syrk") X(herk, "syrk|herk") X(syr2k, "syr2k") X(her2k, "syr2k|her2k") X(getrf, "getrf") X(getrs, "getrs")   \
    X(getri, "getri") X(geqrf, "geqrf") X(gels, "gels")
typedef void (*blas_routine)(); /* of any signature: all arguments are pointers */
struct blas_routines {
#define FIELD(name, symbols) blas_routine name[4];
    BLAS_ROUTINES(FIELD)
#undef FIELD
};
extern struct blas_routines openblas;

/* Open OpenBLAS (a library of the package scipy-openblas64), with at most that many threads. False: it cannot be used,
 * and `problem` says why. Once; later calls do nothing. */
bool math_load(const char *path, int threads, char *problem, size_t size);
void *math_symbol(const char *symbol); /* of the library that math_load() has opened; NULL: there is none */
int math_threads(void);                /* how many the libraries may use */

/* ---- handles (handle.c) ------------------------------------------------------------------------------------------ */

struct cublasContext {
    struct handle handle;
    CUcontext context;
    cudaStream_t stream;
    cublasPointerMode_t pointer_mode;
    cublasMath_t math_mode;
    cublasAtomicsMode_t atomics;
    int multiprocessors; /* to use at most; 0: as cuBLAS likes */
    void *workspace;
    size_t workspace_size;
};

cublasStatus_t blas_check(cublasHandle_t handle, const char *function); /* NOT_INITIALIZED */
cublasStatus_t blas_status(CUresult status);
cublasStatus_t blas_create(const char *function, cublasHandle_t *handle);
cublasStatus_t blas_destroy(const char *function, cublasHandle_t handle);
const char *blas_status_name(cublasStatus_t status);
const char *blas_status_string(cublasStatus_t status);

/* Return a status, and keep a sentence that says what is wrong. */
cublasStatus_t blas_fail(cublasStatus_t status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
cublasStatus_t blas_null(const char *function, const char *what) __attribute__((cold));

#define BLAS_RETURN_IF(call)                                     \
    do {                                                         \
        cublasStatus_t blas_return_if = (call);                  \
        if (unlikely(blas_return_if)) return blas_return_if;     \
    } while (0)

/* ---- calls (call.c) ---------------------------------------------------------------------------------------------- */

/* A scalar: its value, taken when the function is called, or where the operation finds it. */
struct scalar {
    const void *device; /* NULL: it is in `value` */
    enum element type;
    _Alignas(16) char value[16];
};

enum { NO_BATCH = -1 }; /* one product, not an array of one */

struct blas {
    struct call call;
    const char *function;
    CUresult (*run)(struct blas *blas);
    enum element type, b_type, c_type; /* of A (and x), B (and y), C; b_type and c_type are `type` for most */
    enum element compute;              /* in which sums are formed, for the functions that say so */
    cublasOperation_t op_a, op_b;
    cublasFillMode_t fill;
    cublasDiagType_t diagonal;
    cublasSideMode_t side;
    bool conjugate; /* of two forms, the one that conjugates: dotc, gerc, hemv, herk, ... */
    int form;       /* which of several functions of a family */
    int64_t m, n, k, lda, ldb, ldc;
    void *a, *b, *c;                             /* matrices, vectors (a is x, b is y), or arrays of pointers to them */
    int64_t stride_a, stride_b, stride_c, batch; /* elements; batch NO_BATCH: just one */
    bool pointers;                               /* a, b and c are arrays of pointers in device memory */
    struct scalar alpha, beta;
    void *result; /* of a reduction */
    enum element result_type;
    bool result_on_host;
    void *pivots, *info; /* of the factorizations */
};

/* The operation of a handle's function, with `run` and the type set. NULL: out of memory. */
struct blas *blas_new(const char *function, CUresult (*run)(struct blas *blas), enum element type);
cublasStatus_t blas_scalar(cublasHandle_t handle, struct blas *blas, struct scalar *scalar, enum element type,
                           const void *pointer);
cublasStatus_t blas_submit(cublasHandle_t handle, struct blas *blas);

/* While it runs. */
CUresult scalar_value(const struct blas *blas, const struct scalar *scalar, number *value);
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
CUresult touch_matrix(const struct blas *blas, const char *what, const void *a, enum element type, int64_t rows,
                      int64_t columns, int64_t ld);
CUresult touch_vector(const struct blas *blas, const char *what, const void *x, enum element type, int64_t n,
                      int64_t increment);
static inline void *element_at(const void *place, enum element type, int64_t index) {
    return (char *)(uintptr_t)place + index * (int64_t)element_size(type);
}
/* The matrices of number i of a batch. */
CUresult batch_at(const struct blas *blas, const char *what, void *place, enum element type, int64_t stride,
                  int64_t index, void **matrix);
CUresult write_result(const struct blas *blas, number value);
static inline const char *operation_name(cublasOperation_t op) {
    return op == CUBLAS_OP_N ? "N" : op == CUBLAS_OP_T ? "T" : "C";
}
static inline const char *fill_name(cublasFillMode_t fill) { return fill == CUBLAS_FILL_MODE_UPPER ? "U" : "L"; }
static inline const char *diagonal_name(cublasDiagType_t diagonal) { return diagonal == CUBLAS_DIAG_UNIT ? "U" : "N"; }
static inline const char *side_name(cublasSideMode_t side) { return side == CUBLAS_SIDE_RIGHT ? "R" : "L"; }
/* y or C times beta, where zero forgets what was there. */
void scale_by(enum element type, void *place, int64_t rows, int64_t columns, int64_t ld, number beta);

/* y += alpha op(A) x for a matrix of so many rows and columns, on the threads of kernels (pieces.c). False: it is better left to
 * OpenBLAS, and nothing happened. */
bool multiply_in_pieces(enum element type, bool is_turned, int64_t rows, int64_t columns, const void *alpha,
                        const void *a, blas_int lda, const void *x, blas_int incx, void *y, blas_int incy);

/* ---- checks ------------------------------------------------------------------------------------------------------ */

#define BLAS_CHECK(condition, ...)                                                                        \
    do {                                                                                                  \
        if (unlikely(!(condition))) return blas_fail(CUBLAS_STATUS_INVALID_VALUE, __VA_ARGS__);           \
    } while (0)

/* ---- families ---------------------------------------------------------------------------------------------------- */

/* Write the eight functions of a family: X(letter, C type, element, suffix of the name, type of sizes). */
#define BLAS_WIDTHS(X, letter, type) X(letter, type, letter, , int) X(letter, type, letter, _64, int64_t)
#define BLAS_REAL(X) BLAS_WIDTHS(X, S, float) BLAS_WIDTHS(X, D, double)
#define BLAS_COMPLEX(X) BLAS_WIDTHS(X, C, cuComplex) BLAS_WIDTHS(X, Z, cuDoubleComplex)
#define BLAS_ALL(X) BLAS_REAL(X) BLAS_COMPLEX(X)
#define BLAS_ENTRY(name) MATH_ENTRY(cupola_cublas_table, name)

#endif
