/* From sums to results: D = epilogue(alpha sums + beta C), line by line (cuBLAS Library, 3.4.7, cublasLtEpilogue_t).
 *
 * Lines are columns of D, or rows, when D lies in rows. Vectors (bias, the gradient of the bias) have a number for
 * each row; the auxiliary matrix always lies in columns. So both go along with the elements of a line that is a column,
 * and with the lines otherwise. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "lt.h"

bool lt_is_epilogue(uint32_t epilogue) {
    switch (epilogue) {
        case CUBLASLT_EPILOGUE_DEFAULT:
        case CUBLASLT_EPILOGUE_RELU:
        case CUBLASLT_EPILOGUE_RELU_AUX:
        case CUBLASLT_EPILOGUE_BIAS:
        case CUBLASLT_EPILOGUE_RELU_BIAS:
        case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
        case CUBLASLT_EPILOGUE_DRELU:
        case CUBLASLT_EPILOGUE_DRELU_BGRAD:
        case CUBLASLT_EPILOGUE_GELU:
        case CUBLASLT_EPILOGUE_GELU_AUX:
        case CUBLASLT_EPILOGUE_GELU_BIAS:
        case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
        case CUBLASLT_EPILOGUE_DGELU:
        case CUBLASLT_EPILOGUE_DGELU_BGRAD:
        case CUBLASLT_EPILOGUE_BGRADA:
        case CUBLASLT_EPILOGUE_BGRADB: return true;
        default: return false;
    }
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

/* A vector with a number for each row, as it goes along with a line: `step` is 0 where the line is a row. */
struct along {
    const void *data; /* NULL: there is none */
    enum element type;
    int64_t first, step;
};

static struct along along_line(const struct lt_call *call, const void *vector, enum element type, int64_t line) {
    return (struct along){vector, type, call->d.by_rows ? line : 0, call->d.by_rows ? 0 : 1};
}

/* ---- the auxiliary matrix ---------------------------------------------------------------------------------------- */

/* Where element i of a line is, in elements or bits. */
static int64_t aux_at(const struct lt_call *call, int64_t index, int64_t line, int64_t i) {
    int64_t row = call->d.by_rows ? line : i, column = call->d.by_rows ? i : line;
    return (int64_t)((uint64_t)times(index, call->operation.aux_stride) +
                     (uint64_t)times(column, call->operation.aux_ld) + (uint64_t)row);
}

static bool bit_at(const void *bits, int64_t place) { return ((const uint8_t *)bits)[place >> 3] >> (place & 7) & 1; }

static void set_bit(void *bits, int64_t place, bool value) {
    uint8_t *byte = (uint8_t *)bits + (place >> 3), bit = (uint8_t)(1 << (place & 7));
    *byte = value ? *byte | bit : *byte & (uint8_t)~bit;
}

/* ---- GELU, by the hyperbolic tangent ------------------------------------------------------------------------------ */

#define ROOT 0.79788456 /* of 2 / pi, with the digits that an H200 has */
static double gelu(double x) { return 0.5 * x * (1 + tanh(ROOT * (x + 0.044715 * x * x * x))); }

static double gelu_slope(double x) {
    double t = tanh(ROOT * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 3 * 0.044715 * x * x);
}

/* ---- scales of numbers of eight bits ------------------------------------------------------------------------------- */

/* The largest magnitude so far; once it is NaN, with the bits that a GPU has, it stays so. */
static void grow(float *largest, double value) {
    float magnitude = (float)fabs(value);
    if (isnan(magnitude)) *largest = float_of(0x7fffffff);
    else if (magnitude > *largest) *largest = magnitude;
}

static void scale_line(const struct lt_lines *lines, float *x) {
    for (int64_t i = 0; i < lines->length; i++) grow(&lines->largest->d, x[i]);
    for (int64_t i = 0; i < lines->length; i++) x[i] = x[i] * lines->d_scale + 0.0f; /* no zero is negative */
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* What follows the sum of products, alpha and beta, in the type R. x is the line, which this changes. */
#define FINISH(R)                                                                                                      \
    static void finish_##R(const struct lt_call *call, const struct lt_lines *lines, int64_t line, R *x) {             \
        const struct lt_operation *operation = &call->operation;                                                       \
        uint32_t epilogue = operation->epilogue;                                                                       \
        int64_t length = lines->length;                                                                                \
        if (epilogue & LT_BIAS) {                                                                                      \
            struct along bias = along_line(call, operation->bias, call->bias_type, line);                              \
            bias.first += times(lines->index, operation->bias_stride);                                                       \
            for (int64_t i = 0; i < length; i++)                                                                       \
                x[i] += (R)creal(element_load(bias.type, bias.data, bias.first + i * bias.step));                      \
        }                                                                                                              \
        if ((epilogue & (LT_RELU | LT_AUX)) == (LT_RELU | LT_AUX))                                                     \
            for (int64_t i = 0; i < length; i++)                                                                       \
                set_bit(operation->aux, aux_at(call, lines->index, line, i), x[i] >= 0);                                \
        if ((epilogue & (LT_GELU | LT_AUX)) == (LT_GELU | LT_AUX)) {                                                   \
            for (int64_t i = 0; i < length; i++) grow(&lines->largest->aux, x[i]);                                     \
            for (int64_t i = 0; i < length; i++)                                                                       \
                element_store(call->aux_type, operation->aux, aux_at(call, lines->index, line, i),                     \
                              x[i] * lines->aux_scale);                                                                \
        }                                                                                                              \
        if (epilogue & LT_RELU)                                                                                        \
            for (int64_t i = 0; i < length; i++) x[i] = x[i] > 0 ? x[i] : x[i] == x[i] ? 0 : x[i];                     \
        if (epilogue & LT_GELU)                                                                                        \
            for (int64_t i = 0; i < length; i++) x[i] = (R)gelu(x[i]);                                                 \
        if (epilogue & LT_DRELU)                                                                                       \
            for (int64_t i = 0; i < length; i++)                                                                       \
                if (!bit_at(operation->aux, aux_at(call, lines->index, line, i))) x[i] = 0;                            \
        if (epilogue & LT_DGELU)                                                                                       \
            for (int64_t i = 0; i < length; i++) {                                                                     \
                number input = element_load(call->aux_type, operation->aux, aux_at(call, lines->index, line, i));      \
                x[i] *= (R)gelu_slope(creal(input));                                                                   \
            }                                                                                                          \
        if (epilogue & LT_BGRAD) {                                                                                     \
            double *sums = lines->gradients;                                                                           \
            for (int64_t i = 0; i < length; i++) sums[call->d.by_rows ? line : i] += x[i];                             \
        }                                                                                                              \
    }
FINISH(float)
FINISH(double)

/* alpha x + beta C for a line. */
#define COMBINE(R, part)                                                                                               \
    static void combine_##R(const struct lt_lines *lines, R *x, const R *old) {                                        \
        R alpha = (R)part(lines->alpha), beta = (R)part(lines->beta);                                                  \
        for (int64_t i = 0; i < lines->length; i++) x[i] = old ? alpha * x[i] + beta * old[i] : alpha * x[i];          \
    }
#define ALL(value) (value)
COMBINE(float, creal)
COMBINE(double, creal)
COMBINE(number, ALL)

/* The addresses that vectors and the auxiliary matrix have in this product of the batch. */
static CUresult touch_vectors(const struct lt_call *call, const struct lt_lines *lines) {
    const struct lt_operation *operation = &call->operation;
    size_t rows = (size_t)call->m;
    if (operation->epilogue & LT_BIAS) {
        const void *bias = element_at(operation->bias, call->bias_type, times(lines->index, operation->bias_stride));
        RETURN_IF(math_touch(LT_NAME, "the bias", bias, rows * element_size(call->bias_type)));
    }
    if (operation->epilogue & LT_AUX) {
        int64_t before = times(lines->index, operation->aux_stride);
        bool bits = operation->epilogue & (LT_RELU | LT_DRELU);
        size_t size = element_size(call->aux_type), bytes;
        const char *aux = (const char *)operation->aux + (bits ? before >> 3 : times(before, (int64_t)size));
        if (__builtin_mul_overflow((size_t)call->n - 1, (size_t)operation->aux_ld, &bytes) ||
            __builtin_add_overflow(bytes, rows, &bytes) || __builtin_mul_overflow(bytes, bits ? 1 : size, &bytes))
            bytes = SIZE_MAX;
        else if (bits) bytes = (bytes + (size_t)(before & 7) + 7) / 8;
        RETURN_IF(math_touch(LT_NAME, "the auxiliary matrix", aux, bytes));
    }
    return CUDA_SUCCESS;
}

CUresult lt_finish(const struct lt_call *call, const struct lt_lines *lines) {
    const struct matrix *c = &call->c, *d = &call->d;
    RETURN_IF(touch_vectors(call, lines));
    bool adds = lines->beta != 0;
    /* In which type: that of the scalars, where it can be. */
    enum element type = is_complex(call->sums) ? Z : call->scale == S || call->scale == H ? S : D;
    size_t size = type == Z ? sizeof(number) : type == D ? sizeof(double) : sizeof(float);
    void *room = malloc(2 * (size_t)larger(lines->length, 1) * size);
    if (!room) return no_memory("a product of matrices");
    void *x = room, *old = adds ? (char *)room + (size_t)lines->length * size : NULL;
    for (int64_t i = 0; i < lines->count; i++) {
        int64_t line = lines->first + i, length = lines->length, sums = i * length;
        int64_t to = matrix_at(d, lines->index) + line * d->ld;
        bool alike = c->by_rows == d->by_rows;
        int64_t from = matrix_at(c, lines->index) + line * (alike ? c->ld : 1), step = alike ? 1 : c->ld;
        if (type == S) {
            load_floats(call->sums, lines->sums, sums, 1, length, x);
            if (old) load_floats(c->type, c->data, from, step, length, old);
            combine_float(lines, x, old);
            finish_float(call, lines, line, x);
            if (is_fp8(d->type)) scale_line(lines, x);
            store_floats(d->type, d->data, to, 1, length, x);
        } else if (type == D) {
            load_doubles(call->sums, lines->sums, sums, 1, length, x);
            if (old) load_doubles(c->type, c->data, from, step, length, old);
            combine_double(lines, x, old);
            finish_double(call, lines, line, x);
            store_doubles(d->type, d->data, to, 1, length, x);
        } else {
            load_numbers(call->sums, lines->sums, sums, 1, length, x);
            if (old) load_numbers(c->type, c->data, from, step, length, old);
            combine_number(lines, x, old);
            store_numbers(d->type, d->data, to, 1, length, x);
        }
    }
    free(room);
    return CUDA_SUCCESS;
}
