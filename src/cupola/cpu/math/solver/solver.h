/* cuSOLVER for dense matrices: what its files share (cuSOLVER Library, chapter 2, cuSolverDN).
 *
 * The functions of a family, of the four types and the one that takes types by number, and the functions that ask for the
 * size of their workspace, fill in a `struct solver` and call the family's function. That checks the arguments, says
 * which memory the operation uses, and names the routine `one` that does the work for one matrix: a call of LAPACK. The
 * matrices of a batch are spread over threads. */
#ifndef CUPOLA_CPU_MATH_SOLVER_H
#define CUPOLA_CPU_MATH_SOLVER_H

#include <cupola/cusolver_dn.h>

#include "math/blas/blas.h"

/* ---- LAPACK: the functions of its C interface, columns first (lapack.c) -------------------------------------------- */

/* Behind "|" stands the name for complex numbers. */
#define LAPACK_ROUTINES(X)                                                                                             \
    X(potrf, "potrf") X(potrs, "potrs") X(potri, "potri") X(lauum, "lauum") X(trtri, "trtri") X(getrf, "getrf")          \
    X(getrs, "getrs") X(laswp, "laswp") X(geqrf, "geqrf") X(orgqr, "orgqr|ungqr") X(ormqr, "ormqr|unmqr")                \
    X(sytrf, "sytrf") X(hetrf, "sytrf|hetrf") X(sytri, "sytri") X(sytrs, "sytrs") X(hetrs, "sytrs|hetrs")                \
    X(gebrd, "gebrd") X(orgbr, "orgbr|ungbr") X(sytrd, "sytrd|hetrd") X(orgtr, "orgtr|ungtr") X(ormtr, "ormtr|unmtr")    \
    X(gesvd, "gesvd") X(gesdd, "gesdd") X(syevd, "syevd|heevd") X(syevr, "syevr|heevr") X(sygvd, "sygvd|hegvd")          \
    X(sygvx, "sygvx|hegvx") X(geev, "geev") X(gels, "gels") X(lacpy, "lacpy")
typedef int64_t (*lapack_routine)(); /* of any signature; the first argument is COLUMNS */
struct lapack_routines {
#define FIELD(name, symbols) lapack_routine name[4];
    LAPACK_ROUTINES(FIELD)
#undef FIELD
};
extern struct lapack_routines lapack;
enum { COLUMNS = 102, LAPACK_NO_MEMORY = -1010 };

/* Find the routines in the library that math_load() has opened. False: `problem` says which is missing. */
bool lapack_load(const char **problem);

/* ---- handles and settings (handle.c) ------------------------------------------------------------------------------- */

enum object { OBJECT_HANDLE, OBJECT_PARAMS, OBJECT_JACOBI, OBJECT_SVD_JACOBI, OBJECT_REFINEMENT, OBJECT_RECORD };

struct cusolverDnContext {
    struct handle handle;
    enum object object;
    cudaStream_t stream;
    cusolverDeterministicMode_t determinism;
    cusolverMathMode_t math_mode;
};

/* Settings and reports of several functions; which are used depends on `object`. */
struct solver_object {
    struct handle handle;
    enum object object;
    double tolerance, inner_tolerance; /* of Jacobi's method, of refinements */
    int sweeps, sort;
    int refinement, main_precision, lowest_precision, iterations, inner_iterations;
    bool no_fallback, wants_residuals;
    /* what the last operation reports */
    double residual;
    int done, inner_done;
    bool batched;
};

struct solver_object *solver_object(void *pointer, enum object object); /* NULL: it is none */

cusolverStatus_t solver_check(cusolverDnHandle_t handle, const char *function); /* NOT_INITIALIZED */
cusolverStatus_t solver_status(CUresult status);
cusolverStatus_t solver_fail(cusolverStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

#define SOLVER_RETURN_IF(call)                                         \
    do {                                                               \
        cusolverStatus_t solver_return_if = (call);                    \
        if (unlikely(solver_return_if)) return solver_return_if;       \
    } while (0)

/* An argument that has to be so. */
#define SOLVER_CHECK(condition, ...)                                                                          \
    do {                                                                                                      \
        if (unlikely(!(condition))) return solver_fail(CUSOLVER_STATUS_INVALID_VALUE, __VA_ARGS__);           \
    } while (0)

/* ---- calls (call.c) ------------------------------------------------------------------------------------------------ */

/* What an operation uses. Matrices of a batch are `stride` elements apart, or `pointers` has their addresses. */
enum place { AT_A, AT_B, AT_C, AT_TAU, AT_TAUP, AT_W, AT_E, AT_U, AT_V, AT_PIVOTS, AT_INFO, PLACES };
struct operand {
    const char *what;
    void *at;
    enum element type;
    int64_t rows, columns, ld, stride;
    bool pointers;
};

struct solver {
    struct call call;
    cusolverDnHandle_t handle;
    const char *function;
    /* The work for matrix number i, at these addresses. Returns what devInfo gets, or LAPACK_NO_MEMORY. */
    int64_t (*one)(struct solver *solver, void **at, int64_t i);
    enum element type, other_type; /* with numbers: of A, and what has to be the same */
    bool by_number;                /* of the family of 64-bit sizes */
    bool quiet_types;              /* wrong numbers of types leave devInfo alone */
    bool silent;                   /* there is no devInfo */
    bool must_tell;                /* a null pointer for devInfo faults, as on a GPU; else nobody is told */
    bool positive;                 /* devInfo tells positions without the minus */
    cusolverStatus_t wrong;        /* for wrong arguments; 0: INVALID_VALUE */
    int uplo, op, side, diagonal, job, job_v, range, kind, economic;
    int64_t m, n, k, lda, ldb, ldc, ldu, ldv, first, last;
    double low, high;
    bool no_matrices; /* only the sizes are known */
    bool no_bounds;   /* there are no addresses of them */
    void *a, *b, *c, *tau, *taup, *w, *e, *u, *v, *pivots, *info;
    bool wide_pivots;
    int64_t stride_a, stride_w, stride_u, stride_v, batch; /* batch 0: just one matrix, not a batch of one */
    enum element w_type, v_type;
    struct solver_object *object; /* referenced, for reports */
    /* workspace: where its size is to be put (a function that asks), or how much there is */
    int *size;
    size_t *bytes, *host_bytes;
    bool asks;
    int64_t room, host_room;
    void *work, *host_work;
    cusolverDnParams_t params;
    /* results in memory of the host: the call waits for them */
    int *count;
    int64_t *wide_count;
    double *values;
    struct operand operand[PLACES];
    _Atomic int64_t next;
    _Atomic bool failed;
    _Atomic int64_t bad_pivot;
};

/* Begin a family's function: the handle, and the numbers of types. */
cusolverStatus_t solver_begin(struct solver *s);

/* A function that asks for the size of its workspace is told `elements`; those functions check little, as on a GPU. */
cusolverStatus_t solver_answer(struct solver *s, int64_t elements);

/* An argument of the operation that has to be so. If it is not, devInfo becomes minus its position, which is not that of C in
 * all functions; QUIET: nothing is written. */
enum { QUIET = 1000 };
cusolverStatus_t solver_refuse(struct solver *s, cusolverStatus_t status, int position, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
#define SOLVER_NEED(position, condition, format, ...)                                                                 \
    do {                                                                                                              \
        if (unlikely(!(condition)))                                                                                   \
            return solver_refuse(s, s->wrong, position, "%s: " format, s->function __VA_OPT__(, ) __VA_ARGS__);       \
    } while (0)
#define NEED_FILL(position)                                                                                          \
    SOLVER_NEED(position, s->uplo == CUBLAS_FILL_MODE_LOWER || s->uplo == CUBLAS_FILL_MODE_UPPER,                     \
                "uplo is %d, neither CUBLAS_FILL_MODE_LOWER nor CUBLAS_FILL_MODE_UPPER", s->uplo)
#define NEED_SIZE(position, what, value) SOLVER_NEED(position, (value) >= 0, what " is %lld", (long long)(value))
#define NEED_LD(position, what, value, rows)                                                                         \
    SOLVER_NEED(position, (value) >= larger(1, rows), what " is %lld, but the matrix has %lld rows", (long long)(value), \
                (long long)(rows))

/* Say what the operation uses. */
void use_matrix(struct solver *s, enum place place, const char *what, void *at, int64_t rows, int64_t columns,
                int64_t ld);
void use_vector(struct solver *s, enum place place, const char *what, void *at, enum element type, int64_t n);
void use_pivots(struct solver *s, int64_t n);

/* Queue the operation; `s` is copied. */
cusolverStatus_t solver_submit(struct solver *s);

/* While it runs. */

/* The pivots as LAPACK has them, from 1 to `most`; `blocks`: in pairs where they are negative. NULL: out of memory, or one
 * is none (`bad_pivot`), and LAPACK_NO_MEMORY is to be returned. */
int64_t *pivots_read(struct solver *s, const void *at, int64_t n, int64_t most, bool blocks);
void pivots_write(const struct solver *s, void *at, const int64_t *pivots, int64_t n);
bool all_finite(enum element type, const void *a, int64_t rows, int64_t columns, int64_t ld);
bool triangle_finite(enum element type, const void *a, int64_t n, int64_t ld, bool upper);
void fill_nan(enum element type, void *a, int64_t rows, int64_t columns, int64_t ld);
void copy_block(enum element type, const void *from, int64_t from_ld, void *to, int64_t to_ld, int64_t rows,
                int64_t columns);

static inline char fill_letter(const struct solver *s) { return s->uplo == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L'; }
static inline char op_letter(const struct solver *s) {
    return s->op == CUBLAS_OP_N ? 'N' : s->op == CUBLAS_OP_T || !is_complex(s->type) ? 'T' : 'C';
}
static inline char side_letter(const struct solver *s) { return s->side == CUBLAS_SIDE_RIGHT ? 'R' : 'L'; }
/* Of sizes that may be anything; what overflows is more than there is memory. */
static inline int64_t product(int64_t a, int64_t b) {
    int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}
static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* LU and L D Lᵀ without pivots (plain.c). They return LAPACK's info. */
int64_t plain_lu(enum element type, int64_t m, int64_t n, void *a, int64_t lda);
int64_t plain_ldl(enum element type, char fill, int64_t n, void *a, int64_t lda);
void plain_ldl_solve(enum element type, char fill, int64_t n, int64_t columns, const void *a, int64_t lda, void *b,
                     int64_t ldb);

/* ---- writing the functions ----------------------------------------------------------------------------------------- */

/* The fields that all functions fill in; `name` without cusolverDn. */
#define TYPED(name, letter) .handle = handle, .function = "cusolverDn" name, .type = letter
#define BY_NUMBER(name, number, other)                                                                           \
    .handle = handle, .function = "cusolverDn" name, .type = element_of(number), .other_type = element_of(other), \
    .by_number = true
#define BUFFERS .work = work, .room = (int64_t)device, .host_work = host_work, .host_room = (int64_t)host
#define CALL(family, ...) return family(&(struct solver){__VA_ARGS__})

/* X(letter, type, real type, element, or, sy): "or" and "sy" are what the letters of two families are for the type. */
#define SOLVER_TYPES(X)                                                                                       \
    X(S, float, float, S, or, sy)                                                                             \
    X(D, double, double, D, or, sy) X(C, cuComplex, float, C, un, he) X(Z, cuDoubleComplex, double, Z, un, he)

#define SOLVER_ENTRY(name) MATH_ENTRY(cupola_cusolver_dn_table, name)
#define BOTH(name) SOLVER_ENTRY(cusolverDn##name##_bufferSize), SOLVER_ENTRY(cusolverDn##name)

#endif
