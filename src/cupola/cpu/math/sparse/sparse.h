/* cuSPARSE: what its files share (cuSPARSE Library, https://docs.nvidia.com/cuda/cusparse; the generic API).
 *
 * A call copies what its descriptors say, so that they may change or go while it waits in its stream. What the arrays of
 * a matrix say is looked at when the operation runs, and each index is checked where it is used: it comes from device code.
 * Products of a matrix whose rows can be read one after the other go over the arrays as they are; all else begins with
 * a copy of the matrix in one form, `struct rows` (rows.c). */
#ifndef CUPOLA_CPU_MATH_SPARSE_H
#define CUPOLA_CPU_MATH_SPARSE_H

#include <pthread.h>

#include <cupola/cusparse.h>

#include "math/base/element.h"
#include "math/base/math.h"

/* ---- statuses (handle.c) ----------------------------------------------------------------------------------------- */

cusparseStatus_t sparse_status(CUresult status);
/* Return a status, and keep a sentence that says what is wrong. */
cusparseStatus_t sparse_fail(cusparseStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
cusparseStatus_t sparse_null(const char *function, const char *what) __attribute__((cold));

/* In a function whose name is `function`: all places for results are there; and a result goes to its place. */
#define WANT(...)                                                                     \
    do {                                                                              \
        const void *const places[] = {__VA_ARGS__};                                   \
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)                   \
            if (!places[i]) return sparse_null(function, "a result");                 \
    } while (0)
#define GET(place, value)                                                             \
    do {                                                                              \
        if (!(place)) return sparse_null(function, #place);                           \
        *(place) = (value);                                                           \
    } while (0)

#define SPARSE_RETURN_IF(call)                                     \
    do {                                                           \
        cusparseStatus_t sparse_return_if = (call);                \
        if (unlikely(sparse_return_if)) return sparse_return_if;   \
    } while (0)
#define SPARSE_CHECK(condition, ...)                                                                       \
    do {                                                                                                   \
        if (unlikely(!(condition))) return sparse_fail(CUSPARSE_STATUS_INVALID_VALUE, __VA_ARGS__);        \
    } while (0)
#define SPARSE_SUPPORT(condition, ...)                                                                     \
    do {                                                                                                   \
        if (unlikely(!(condition))) return sparse_fail(CUSPARSE_STATUS_NOT_SUPPORTED, __VA_ARGS__);        \
    } while (0)

/* ---- objects: all that the library hands out --------------------------------------------------------------------- */

/* Those of cuDSS, whose matrices are handled like these, are among them. */
enum object_kind {
    LIBRARY,
    SPARSE_MATRIX,
    DENSE_MATRIX,
    SPARSE_VECTOR,
    DENSE_VECTOR,
    SOLVE_PLAN,
    PRODUCT_PLAN,
    SUM_PLAN,
    LEGACY,
    DSS_LIBRARY,
    DSS_CONFIG,
    DSS_DATA,
    DSS_MATRIX
};
/* One kind of handles for all, in slots of one size. */
enum { OBJECT_BYTES = 384 };

struct object {
    struct handle handle;
    enum object_kind kind;
};

struct cusparseContext {
    struct object object;
    cudaStream_t stream;
    cusparsePointerMode_t pointer_mode;
};

/* Arrays of a sparse matrix. In COO, `offsets` are the indices of the rows. */
struct matrix {
    cusparseFormat_t format;
    int64_t rows, columns, count; /* of elements; in BSR and Blocked ELL count is of blocks */
    void *offsets, *indices, *values;
    cusparseIndexType_t offset_type, index_type;
    int64_t base;
    enum element type;
    cudaDataType value_type;
    int64_t block_rows, block_columns; /* BSR, Blocked ELL */
    int64_t width;                     /* Blocked ELL: columns of each row of blocks, with those that are none */
    bool blocks_by_column;
    int64_t batch, offset_stride, index_stride, value_stride;
    cusparseFillMode_t fill;
    cusparseDiagType_t diagonal;
    bool is_triangle; /* fill and diagonal have been set, to whatever: only triangular systems take it then */
};

/* A dense matrix, or a vector, which is one of one column. */
struct dense {
    int64_t rows, columns, ld;
    void *values;
    enum element type;
    cudaDataType value_type;
    cusparseOrder_t order;
    int64_t batch, stride;
};

struct sparse_vector {
    int64_t size, count;
    void *indices, *values;
    cusparseIndexType_t index_type;
    int64_t base;
    enum element type;
    cudaDataType value_type;
};

struct cusparseSpMatDescr {
    struct object object;
    struct matrix is;
};
struct cusparseDnMatDescr {
    struct object object;
    struct dense is;
};
struct cusparseDnVecDescr {
    struct object object;
    struct dense is;
};
struct cusparseSpVecDescr {
    struct object object;
    struct sparse_vector is;
};

/* A new object of the kind, with room for its struct; NULL: no memory. */
void *object_new(enum object_kind kind);
bool object_is(const void *object, enum object_kind kind);
/* INVALID_VALUE for none, NOT_INITIALIZED for what is no handle. */
cusparseStatus_t sparse_check(cusparseHandle_t handle, const char *function);
/* INVALID_VALUE, naming the argument. */
cusparseStatus_t object_check(const void *object, enum object_kind kind, const char *function, const char *what);
cusparseStatus_t object_destroy(const void *object, enum object_kind kind, const char *function);

/* ---- calls (call.c) ---------------------------------------------------------------------------------------------- */

/* A scalar: its value, taken when the function is called, or where the operation finds it. */
struct scalar {
    const void *device; /* NULL: it is in `value` */
    enum element type;
    _Alignas(16) char value[16];
};

struct sparse {
    struct call call;
    const char *function;
    CUresult (*run)(struct sparse *sparse);
    struct matrix a, b, c;
    struct dense x, y, z;
    struct sparse_vector v;
    cusparseOperation_t op_a, op_b;
    enum element compute;
    struct scalar alpha, beta;
    int form;     /* which of several functions of a family */
    void *result; /* of a reduction */
    bool result_on_host;
    void *plan;   /* what an analysis finds out and later calls use (triangle.c, combine.c) */
    void *buffer; /* of the caller, with so many bytes */
    size_t buffer_size;
    void *extra[6]; /* addresses of functions without descriptors */
    struct {        /* the first index that is none */
        _Atomic int is;
        const char *what, *name;
        int64_t place, value, limit;
    } bad;
};

struct sparse *sparse_new(const char *function, CUresult (*run)(struct sparse *sparse));
void sparse_scalar(cusparseHandle_t handle, struct scalar *scalar, enum element type, const void *pointer);
cusparseStatus_t sparse_submit(cusparseHandle_t handle, struct sparse *sparse, bool wait);

/* While it runs. */
CUresult scalar_load(const struct sparse *sparse, const struct scalar *scalar, number *value);
CUresult touch(const struct sparse *sparse, const char *what, const void *place, uint64_t count, size_t size);
CUresult touch_structure(const struct sparse *sparse, const struct matrix *matrix, const char *name); /* no values */
CUresult touch_sparse(const struct sparse *sparse, const struct matrix *matrix, const char *name);
CUresult touch_dense(const struct sparse *sparse, const struct dense *dense, const char *name);
CUresult touch_sparse_vector(const struct sparse *sparse, const struct sparse_vector *vector, const char *name);
/* An index of an array is none: kept, and told by bad_index() when the operation is over. */
void note_bad(struct sparse *sparse, const char *what, const char *name, int64_t place, int64_t value, int64_t limit)
    __attribute__((cold));
CUresult bad_index(const struct sparse *sparse);

static inline size_t index_size(cusparseIndexType_t type) { return type == CUSPARSE_INDEX_64I ? 8 : 4; }
static inline int64_t index_at(cusparseIndexType_t type, const void *place, int64_t index) {
    return type == CUSPARSE_INDEX_64I ? ((const int64_t *)place)[index] : ((const int32_t *)place)[index];
}
/* From zero on. Any number may be there, also one from which nothing can be taken away. */
static inline int64_t index_from(int64_t base, cusparseIndexType_t type, const void *place, int64_t index) {
    return (int64_t)((uint64_t)index_at(type, place, index) - (uint64_t)base);
}
static inline void index_put(cusparseIndexType_t type, void *place, int64_t index, int64_t value) {
    if (type == CUSPARSE_INDEX_64I) ((int64_t *)place)[index] = value;
    else ((int32_t *)place)[index] = (int32_t)value;
}
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
/* Part by part, so that infinities stay what they become on a GPU. */
static inline number times(number a, number b) {
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}
static inline enum element wide_of(enum element type) { return is_complex(type) ? Z : D; }
/* Steps in elements from row to row, and from column to column; of op(dense) when it is turned. */
static inline int64_t row_step(const struct dense *dense) { return dense->order == CUSPARSE_ORDER_ROW ? dense->ld : 1; }
static inline int64_t column_step(const struct dense *dense) {
    return dense->order == CUSPARSE_ORDER_ROW ? 1 : dense->ld;
}
static inline struct dense of_batch(struct dense dense, int64_t index) {
    if (dense.batch > 1) dense.values = (char *)dense.values + index * dense.stride * (int64_t)element_size(dense.type);
    return dense;
}
struct matrix matrix_of_batch(struct matrix matrix, int64_t index);

/* ---- a matrix in one form (rows.c) ------------------------------------------------------------------------------- */

/* Row by row, indices from zero on, in 64 bits. The elements of a row are in the order in which the matrix has them. */
struct rows {
    int64_t rows, columns, count;
    int64_t *offsets, *indices, *places; /* places: where in the array of values each element was */
    enum element type;                   /* D or Z */
    void *values;
};

/* Call visit for the elements of the major rows first to last of the matrix: rows of CSR, columns of CSC, elements of COO, rows
 * of blocks of BSR and Blocked ELL. `place` is the element's in the array of values. */
typedef void visitor(void *data, int64_t row, int64_t column, int64_t place);
void each_element(struct sparse *sparse, const struct matrix *matrix, const char *name, int64_t first, int64_t last,
                  visitor *visit, void *data);
int64_t major_count(const struct matrix *matrix);
/* Whether this place for a block of Blocked ELL is empty. */
static inline bool is_no_block(const struct matrix *matrix, int64_t place) {
    return index_at(matrix->index_type, matrix->indices, place) == -1;
}
int64_t element_count(const struct matrix *matrix); /* with those of blocks */

/* Copy op(matrix). `with_places`: also where the elements were. */
CUresult rows_of(struct sparse *sparse, const struct matrix *matrix, const char *name, cusparseOperation_t op,
                 bool with_places, struct rows *rows);
/* Room for so many rows and elements; offsets are zeros. */
CUresult rows_new(struct rows *rows, int64_t count_rows, int64_t columns, int64_t count, enum element type);
void rows_free(struct rows *rows);

/* ---- work that is shared out ------------------------------------------------------------------------------------- */

/* Call work for parts of 0 ... count, on several threads if there are more than some ten thousand `units` of work. */
void in_parts(void (*work)(void *data, int64_t first, int64_t last), void *data, int64_t count, int64_t units);

/* ---- checks of arguments (call.c) -------------------------------------------------------------------------------- */

cusparseStatus_t check_operation(const char *function, const char *what, cusparseOperation_t op);
/* Real numbers are not conjugated. */
cusparseStatus_t check_conjugation(const char *function, const char *what, cusparseOperation_t op, enum element type);
cusparseStatus_t check_compute(const char *function, cudaDataType compute);
/* NOT_SUPPORTED: what descriptors may have, but nothing calculates with here. */
cusparseStatus_t check_matrix(const char *function, const struct matrix *matrix);
/* NOT_SUPPORTED for a matrix with the attributes of a triangle. */
cusparseStatus_t check_no_triangle(const char *function, const struct matrix *matrix);
/* Where there must be a buffer. */
cusparseStatus_t check_external(const char *function, const void *buffer);
cusparseStatus_t check_types(const char *function, bool known, const struct matrix *a, const struct dense *x,
                             const struct dense *y, cudaDataType compute);
static inline int64_t op_rows(cusparseOperation_t op, int64_t rows, int64_t columns) {
    return op == CUSPARSE_OPERATION_NON_TRANSPOSE ? rows : columns;
}

/* Types of values that descriptors may have; ELEMENTS: not this one. */
static inline enum element value_of(cudaDataType type) {
    return type == CUDA_C_16F ? CH : type == CUDA_C_16BF ? CB : element_of(type);
}
static inline bool is_value_type(cudaDataType type) { return value_of(type) != ELEMENTS; }
enum {
    MOST_BITS = 56
}; /* of the sizes that descriptors take: memory ends long before, and sums of sizes do not overflow */
static inline bool is_size(int64_t size) { return size >= 0 && size >> MOST_BITS == 0; }
/* Bytes of the buffers that callers are asked for: nobody uses them, but where a buffer is expected, NULL is refused. */
enum { BUFFER_BYTES = 256 };

#define SPARSE_ENTRY(name) MATH_ENTRY(cupola_cusparse_table, name)

#endif
