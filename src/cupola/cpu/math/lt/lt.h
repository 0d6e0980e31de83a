/* cuBLASLt: what its files share (cuBLAS Library, chapter 3, https://docs.nvidia.com/cuda/cublas).
 *
 * A product is described by records that the program makes, sets attributes of, and hands over with each call
 * (descriptor.c). There is one algorithm (algorithm.c). What a call is to do, and whether that exists, is decided when it
 * is made (matmul.c); what it does with the sums is the epilogue (epilogue.c). */
#ifndef CUPOLA_CPU_MATH_LT_H
#define CUPOLA_CPU_MATH_LT_H

#include <cupola/cublaslt.h>

#include "math/base/convert.h"
#include "math/blas/blas.h"

/* ---- descriptors (descriptor.c) ---------------------------------------------------------------------------------- */

/* What is in the memory of the opaque records, which programs may also provide themselves. The first word tells the
 * kinds apart, and what is none. */
enum lt_kind {
    LT_OPERATION = 0x6c744f50,
    LT_LAYOUT = 0x6c744c41,
    LT_TRANSFORM = 0x6c745452,
    LT_PREFERENCE = 0x6c745052
};

struct lt_operation {
    uint64_t kind;
    int32_t compute, scale, pointer_mode, op_a, op_b, op_c, fill;
    uint32_t epilogue;
    void *bias;
    int64_t bias_stride;
    void *aux;
    int64_t aux_ld, aux_stride, alpha_vector_stride;
    const void *a_scale, *b_scale, *c_scale, *d_scale;
    void *amax, *aux_scale, *aux_amax;
    void *d_out_scale, *emulation;
    int64_t alpha_stride, beta_stride;
    int32_t multiprocessors, aux_type, bias_type;
    int32_t a_mode, b_mode, c_mode, d_mode, aux_mode, d_out_mode, invariance;
    int8_t fast;
};

struct lt_layout {
    uint64_t kind;
    uint32_t type;
    int32_t order;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batch;
    uint32_t batch_mode;
    int64_t stride, plane;
};

struct lt_transform {
    uint64_t kind;
    int32_t scale, pointer_mode, op_a, op_b;
};

struct lt_preference {
    uint64_t kind, workspace, implementations;
    uint32_t search, reductions, alignment[4];
    float waves;
};

/* Whether a pointer that a function was given is a descriptor of that kind. */
static inline bool lt_is(const void *descriptor, enum lt_kind kind) {
    return descriptor && *(const uint64_t *)descriptor == kind;
}

/* Attributes: their numbers, where they are in the record, and their sizes. */
struct lt_attribute {
    int number;
    uint16_t offset, size;
};
#define LT_ATTRIBUTE(number, type, field) {number, offsetof(struct type, field), sizeof(((struct type *)0)->field)}
cublasStatus_t lt_set(const char *function, const struct lt_attribute *attributes, size_t count, void *record,
                      int number, const void *value, size_t size);
cublasStatus_t lt_get(const char *function, const struct lt_attribute *attributes, size_t count, const void *record,
                      int number, void *value, size_t size, size_t *written);

/* ---- products (matmul.c, epilogue.c) ----------------------------------------------------------------------------- */

struct matrix {
    void *data;
    enum element type;
    int64_t rows, columns, ld, stride; /* stride: to the next of a batch, in elements */
    bool by_rows;
};

/* One call. The sums are formed in `sums`, and alpha, beta and what follows are applied in `scale`. */
struct lt_call {
    struct call call;
    struct lt_operation operation;
    struct matrix a, b, c, d;
    int64_t m, n, k, batch;
    enum element sums, scale, bias_type, aux_type;
    struct scalar alpha, beta;
    bool is_fp8;
    bool is_known; /* there are such products, though no algorithm may do this one */
};

/* Largest magnitudes of a call: of D and of the auxiliary matrix, before their scales. */
struct lt_largest {
    float d, aux;
};

/* The sums of some lines of D: columns, or, when D lies in rows, rows. `length` is that of a line. */
struct lt_lines {
    void *sums;
    int64_t first, count, length;
    int64_t index; /* of the batch */
    number alpha, beta;
    float d_scale, aux_scale; /* 1: none */
    struct lt_largest *largest;
    void *gradients; /* sums over the columns, of the scale's type */
};

#define LT_NAME "cublasLtMatmul"
/* Turn sums into results. */
CUresult lt_finish(const struct lt_call *call, const struct lt_lines *lines);
bool lt_is_epilogue(uint32_t epilogue);
static inline bool has_epilogue(const struct lt_call *call, uint32_t bit) { return call->operation.epilogue & bit; }
enum {
    LT_RELU = 2,
    LT_BIAS = 4,
    LT_DRELU = 8,
    LT_BGRAD = 16,
    LT_GELU = 32,
    LT_DGELU = 64,
    LT_AUX = 128,
    LT_BGRADA = 256,
    LT_BGRADB = 512
};

/* Whether there is such a product, without the addresses; fills the call. */
cublasStatus_t lt_describe(const char *function, const struct lt_operation *operation, const struct lt_layout *a,
                           const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *d,
                           struct lt_call *call);
enum element lt_element_of(int type); /* those of element_of(), and the ones of eight bits */
static inline bool is_fp8(enum element type) { return type == E4M3 || type == E5M2; }
/* Whether there are products of these types. */
cublasStatus_t lt_types(const char *function, int compute, int scale, int a, int b, int c, int d, struct lt_call *call);

CUresult lt_touch(const char *function, const char *what, const struct matrix *matrix, int64_t index);
/* Strides are any numbers: a product that does not fit wraps around, to an address that the check refuses. */
static inline int64_t times(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static inline int64_t matrix_at(const struct matrix *matrix, int64_t index) { return times(index, matrix->stride); }

#define LT_ENTRY(name) MATH_ENTRY(cupola_cublaslt_table, name)

#endif
