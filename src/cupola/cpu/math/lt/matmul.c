/* Products of matrices with epilogues: cublasLtMatmul (cuBLAS Library, 3.4.17).
 *
 * D lies in columns, or in rows, which is to say that its transpose lies in columns. Then the operands change places and
 * are transposed, so that what is added up always lies as D does. A few lines of D are done at a time: the sums by
 * OpenBLAS, in a type that is wide enough, then the epilogue, while they are in the cache. Where nothing but sums is
 * wanted, in a type of OpenBLAS's, it writes into D itself. */
#include <stdlib.h>
#include <string.h>

#include "lt.h"

/* ---- what is in memory ------------------------------------------------------------------------------------------- */

static int64_t line_count(const struct matrix *matrix) { return matrix->by_rows ? matrix->rows : matrix->columns; }
static int64_t line_length(const struct matrix *matrix) { return matrix->by_rows ? matrix->columns : matrix->rows; }

CUresult lt_touch(const char *function, const char *what, const struct matrix *matrix, int64_t index) {
    int64_t lines = line_count(matrix), length = line_length(matrix);
    if (lines <= 0 || length <= 0) return CUDA_SUCCESS;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)lines - 1, (size_t)matrix->ld, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)length, &bytes) ||
        __builtin_mul_overflow(bytes, element_size(matrix->type), &bytes))
        bytes = SIZE_MAX;
    return math_touch(function, what, element_at(matrix->data, matrix->type, matrix_at(matrix, index)), bytes);
}

/* ---- while it runs: sums ----------------------------------------------------------------------------------------- */

/* An operand of the product of two matrices in columns: op(X), where X has lines of `length`. */
struct operand {
    const void *data;
    enum element type;
    int64_t lines, length, ld;
    bool transposed, conjugated;
};

static struct operand operand_of(const struct matrix *matrix, int64_t index, int op, bool flipped) {
    return (struct operand){
        .data = element_at(matrix->data, matrix->type, matrix_at(matrix, index)),
        .type = matrix->type,
        .lines = line_count(matrix),
        .length = line_length(matrix),
        .ld = matrix->ld,
        .transposed = ((op != CUBLAS_OP_N) != matrix->by_rows) != flipped,
        .conjugated = op == CUBLAS_OP_C && is_complex(matrix->type),
    };
}

/* The part of an operand that makes lines `first` ... of the product. */
static struct operand part_of(struct operand whole, int64_t first, int64_t count) {
    int64_t offset = whole.transposed ? first : first * whole.ld;
    whole.data = element_at(whole.data, whole.type, offset);
    *(whole.transposed ? &whole.length : &whole.lines) = count;
    return whole;
}

/* The scales of an operand of numbers of eight bits, whose lines lie along k: of each line, of parts of lines, or of
 * blocks (cuBLAS Library, 3.1.5: scaling factors and how they lie in memory). */
enum {
    BLOCK = 128,
    OUTER = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
    LINES = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
    BLOCKS = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F
};

static int64_t blocks_of(int64_t size) { return (size + BLOCK - 1) / BLOCK; }

/* Scales of a matrix of so many lines; those of blocks are columns along k, of a multiple of four. */
static int64_t scale_count(int mode, int64_t lines, int64_t k) {
    switch (mode) {
        case OUTER: return lines;
        case LINES: return lines * blocks_of(k);
        case BLOCKS: return blocks_of(lines) * ((blocks_of(k) + 3) & ~INT64_C(3));
        default: return 1;
    }
}

struct scaling {
    int mode; /* 0: one for the whole matrix, which is part of alpha */
    const float *scales;
    int64_t lines;
};

static struct scaling scaling_of(int mode, const float *scales, int64_t lines) {
    return (struct scaling){mode, scales, lines};
}

static CUresult touch_scales(const struct scaling *scaling, const char *what, int64_t k) {
    if (!scaling->mode) return CUDA_SUCCESS;
    size_t count = (size_t)scale_count(scaling->mode, scaling->lines, k);
    return math_touch(LT_NAME, what, scaling->scales, count * sizeof *scaling->scales);
}

/* Multiply copied lines, of which `first` is the first. */
static void scale_lines(const struct scaling *scaling, int64_t first, const struct operand *operand) {
    float *values = (float *)operand->data;
    int64_t k = operand->length;
    for (int64_t i = 0; i < operand->lines; i++)
        for (int64_t from = 0; from < k; from += BLOCK) {
            int64_t line = first + i, block = from / BLOCK, to = from + BLOCK < k ? from + BLOCK : k, at;
            if (scaling->mode == OUTER) at = line;
            else if (scaling->mode == LINES) at = block * scaling->lines + line;
            else at = line / BLOCK * ((blocks_of(k) + 3) & ~INT64_C(3)) + block;
            float scale = scaling->scales[at];
            for (int64_t j = from; j < to; j++) values[i * operand->ld + j] *= scale;
        }
}

/* As OpenBLAS can take it. `room` is for the copy that this may need, of that many bytes; NULL: no memory. */
static bool make_ready(struct operand *operand, enum element type, void **room, size_t *size) {
    if (operand->type == type) return true;
    size_t bytes = (size_t)larger(operand->lines * operand->length, 1) * element_size(type);
    if (bytes > *size) {
        free(*room);
        *room = malloc(bytes);
        *size = *room ? bytes : 0;
        if (!*room) return false;
    }
    convert_matrix(operand->type, operand->data, operand->length, operand->lines, operand->ld, type, *room);
    operand->data = *room;
    operand->type = type;
    operand->ld = larger(operand->length, 1);
    return true;
}

static void add_products(const struct operand *left, const struct operand *right, int64_t rows, int64_t columns,
                         int64_t k, number alpha, number beta, void *sums, int64_t ld) {
    char factor[16], keep[16];
    enum element type = left->type;
    element_store(type, factor, 0, alpha);
    element_store(type, keep, 0, beta);
    blas_int lda = left->ld, ldb = right->ld;
    openblas.gemm[type](left->transposed ? left->conjugated ? "C" : "T" : "N",
                        right->transposed ? right->conjugated ? "C" : "T" : "N", &rows, &columns, &k, factor,
                        left->data, &lda, right->data, &ldb, keep, sums, &ld, (size_t)1, (size_t)1);
}

/* ---- while it runs: sums and scalars only ------------------------------------------------------------------------ */

/* A product with 0 is calculated: it is no number where A or B are none. */
static bool is_plain(const struct lt_call *call, number alpha) {
    return call->operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT && alpha != 0 && call->a.type == call->sums &&
           call->d.type == call->sums && call->c.by_rows == call->d.by_rows;
}

static void run_plain(const struct lt_call *call, int64_t index, struct operand left, struct operand right,
                      number alpha, number beta) {
    const struct matrix *c = &call->c, *d = &call->d;
    int64_t rows = line_length(d), columns = line_count(d);
    size_t size = element_size(d->type);
    char *to = element_at(d->data, d->type, matrix_at(d, index));
    const char *from = element_at(c->data, c->type, matrix_at(c, index));
    if (beta != 0 && from != to)
        for (int64_t j = 0; j < columns; j++)
            memmove(to + (size_t)(j * d->ld) * size, from + (size_t)(j * c->ld) * size, (size_t)rows * size);
    add_products(&left, &right, rows, columns, call->k, alpha, beta, to, d->ld);
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

/* A vector with a number for each row of D. */
static CUresult touch_rows(const struct lt_call *call, const char *what, const void *vector, enum element type) {
    return math_touch(LT_NAME, what, vector, (size_t)call->m * element_size(type));
}

/* Sums over k of a matrix's rows (of A), or columns (of B). */
static CUresult gradient_of(const struct lt_call *call, const struct matrix *matrix, int64_t index, int op,
                            bool of_rows) {
    int64_t count = of_rows ? call->m : call->n;
    const struct lt_operation *operation = &call->operation;
    void *to = element_at(operation->bias, call->bias_type, times(index, operation->bias_stride));
    RETURN_IF(math_touch(LT_NAME, "the bias gradient", to, (size_t)count * element_size(call->bias_type)));
    /* Neighbors along k are one apart, or a line. */
    bool lines_are_k = of_rows == ((op != CUBLAS_OP_N) == matrix->by_rows);
    int64_t step = lines_are_k ? matrix->ld : 1, next = lines_are_k ? 1 : matrix->ld;
    const void *from = element_at(matrix->data, matrix->type, matrix_at(matrix, index));
    for (int64_t i = 0; i < count; i++) {
        number sum = 0;
        for (int64_t j = 0; j < call->k; j++) sum += element_load(matrix->type, from, i * next + j * step);
        element_store(call->bias_type, to, i, sum);
    }
    return CUDA_SUCCESS;
}

/* What scales say, and what a call finds out about its results. */
struct scales {
    number alpha, beta;
    float d, aux;
    struct lt_largest largest;
};

static CUresult run_one(const struct lt_call *call, int64_t index, struct scales *scales) {
    const struct lt_operation *operation = &call->operation;
    const struct matrix *d = &call->d;
    number alpha = scales->alpha, beta = scales->beta;
    bool adds = beta != 0;
    RETURN_IF(lt_touch(LT_NAME, "the matrix A", &call->a, index));
    RETURN_IF(lt_touch(LT_NAME, "the matrix B", &call->b, index));
    if (adds) RETURN_IF(lt_touch(LT_NAME, "the matrix C", &call->c, index));
    RETURN_IF(lt_touch(LT_NAME, "the matrix D", d, index));
    bool flipped = d->by_rows;
    struct operand a = operand_of(&call->a, index, operation->op_a, flipped);
    struct operand b = operand_of(&call->b, index, operation->op_b, flipped);
    struct operand left = flipped ? b : a, right = flipped ? a : b;
    int64_t length = line_length(d), count = line_count(d);

    void *rooms[2] = {NULL, NULL}, *sums = NULL, *gradients = NULL;
    size_t sizes[2] = {0, 0};
    struct scaling scaling_a = scaling_of(operation->a_mode, operation->a_scale, call->m);
    struct scaling scaling_b = scaling_of(operation->b_mode, operation->b_scale, call->n);
    RETURN_IF(touch_scales(&scaling_a, "the scales of A", call->k));
    RETURN_IF(touch_scales(&scaling_b, "the scales of B", call->k));
    const struct scaling *of_left = flipped ? &scaling_b : &scaling_a, *of_right = flipped ? &scaling_a : &scaling_b;
    CUresult status = CUDA_SUCCESS;
    if (is_plain(call, alpha)) {
        bool fits =
            make_ready(&left, call->sums, &rooms[0], &sizes[0]) && make_ready(&right, call->sums, &rooms[1], &sizes[1]);
        if (fits) run_plain(call, index, left, right, alpha, beta);
        else status = no_memory("a product of matrices");
    } else {
        int64_t block = larger(256, (1 << 20) / larger(length, 1));
        if (block > count) block = count;
        struct lt_lines lines = {.length = length,
                                 .index = index,
                                 .alpha = alpha,
                                 .beta = beta,
                                 .d_scale = scales->d,
                                 .aux_scale = scales->aux,
                                 .largest = &scales->largest};
        sums = malloc((size_t)larger(block * length, 1) * element_size(call->sums));
        gradients = has_epilogue(call, LT_BGRAD) ? calloc((size_t)call->m, element_size(D)) : NULL;
        bool fits =
            sums && (gradients || !has_epilogue(call, LT_BGRAD)) && make_ready(&left, call->sums, &rooms[0], &sizes[0]);
        lines.sums = sums, lines.gradients = gradients;
        if (fits && of_left->mode) scale_lines(of_left, 0, &left);
        for (int64_t first = 0; fits && !status && first < count; first += block) {
            lines.first = first, lines.count = count - first < block ? count - first : block;
            struct operand part = part_of(right, first, lines.count);
            fits = make_ready(&part, call->sums, &rooms[1], &sizes[1]);
            if (!fits) break;
            if (of_right->mode) scale_lines(of_right, first, &part);
            add_products(&left, &part, length, lines.count, call->k, 1, 0, sums, length);
            status = lt_finish(call, &lines);
        }
        if (!fits) status = no_memory("a product of matrices");
        if (!status && gradients) {
            void *to = element_at(operation->bias, call->bias_type, times(index, operation->bias_stride));
            status = touch_rows(call, "the bias gradient", to, call->bias_type);
            if (!status) store_doubles(call->bias_type, to, 0, 1, call->m, gradients);
        }
    }
    free(rooms[0]), free(rooms[1]), free(sums), free(gradients);
    if (!status && has_epilogue(call, LT_BGRADA)) status = gradient_of(call, &call->a, index, operation->op_a, true);
    if (!status && has_epilogue(call, LT_BGRADB)) status = gradient_of(call, &call->b, index, operation->op_b, false);
    return status;
}

static CUresult scalar_of(const struct scalar *scalar, number *value) {
    if (scalar->device) RETURN_IF(math_touch(LT_NAME, "a scalar", scalar->device, element_size(scalar->type)));
    *value = element_load(scalar->type, scalar->device ? scalar->device : scalar->value, 0);
    return CUDA_SUCCESS;
}

/* The scale of a matrix of numbers of eight bits, in device memory; NULL: 1. */
static CUresult scale_of(const char *what, const float *pointer, float *value) {
    *value = 1;
    if (!pointer) return CUDA_SUCCESS;
    RETURN_IF(math_touch(LT_NAME, what, pointer, sizeof *pointer));
    *value = *pointer;
    return CUDA_SUCCESS;
}

static CUresult read_scales(const struct lt_call *call, struct scales *scales) {
    const struct lt_operation *operation = &call->operation;
    float a, b, c;
    RETURN_IF(scale_of("the scale of A", operation->a_mode ? NULL : operation->a_scale, &a));
    RETURN_IF(scale_of("the scale of B", operation->b_mode ? NULL : operation->b_scale, &b));
    RETURN_IF(scale_of("the scale of C", operation->c_scale, &c));
    RETURN_IF(scale_of("the scale of D", operation->d_scale, &scales->d));
    RETURN_IF(scale_of("the scale of the auxiliary matrix", operation->aux_scale, &scales->aux));
    scales->alpha *= a * b;
    scales->beta *= c;
    return CUDA_SUCCESS;
}

static CUresult write_largest(const char *what, float *pointer, float value) {
    if (!pointer) return CUDA_SUCCESS;
    RETURN_IF(math_touch(LT_NAME, what, pointer, sizeof *pointer));
    *pointer = value;
    return CUDA_SUCCESS;
}

static CUresult run_matmul(struct call *head) {
    const struct lt_call *call = (const struct lt_call *)head;
    struct scales scales = {.d = 1, .aux = 1};
    RETURN_IF(scalar_of(&call->alpha, &scales.alpha));
    RETURN_IF(scalar_of(&call->beta, &scales.beta));
    if (call->is_fp8) RETURN_IF(read_scales(call, &scales));
    for (int64_t i = 0; i < call->batch; i++) RETURN_IF(run_one(call, i, &scales));
    if (!call->is_fp8) return CUDA_SUCCESS;
    RETURN_IF(write_largest("the largest magnitude of D", call->operation.amax, scales.largest.d));
    return write_largest("the largest magnitude of the auxiliary matrix", call->operation.aux_amax, scales.largest.aux);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static cublasStatus_t matrix_of(const char *function, const char *name, const struct lt_layout *layout, int op,
                                int64_t rows, int64_t columns, struct matrix *matrix) {
    bool by_rows = layout->order == CUBLASLT_ORDER_ROW;
    if (layout->order != CUBLASLT_ORDER_COL && !by_rows)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: %s has order %d; only columns and rows are emulated",
                         function, name, (int)layout->order);
    if (layout->plane || layout->batch_mode)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED,
                         "%s: %s has planes, or comes as an array of pointers, which is not emulated", function, name);
    BLAS_CHECK(layout->rows <= INT32_MAX && layout->columns <= INT32_MAX, "%s: %s has too many rows or columns",
               function, name);
    int64_t own_rows = op == CUBLAS_OP_N ? rows : columns, own_columns = op == CUBLAS_OP_N ? columns : rows;
    BLAS_CHECK((int64_t)layout->rows == own_rows && (int64_t)layout->columns == own_columns,
               "%s: %s is %lld by %lld, but has to be %lld by %lld", function, name, (long long)layout->rows,
               (long long)layout->columns, (long long)own_rows, (long long)own_columns);
    BLAS_CHECK(layout->ld >= (by_rows ? own_columns : own_rows),
               "%s: %s has a leading dimension of %lld, but lines of %lld", function, name, (long long)layout->ld,
               (long long)(by_rows ? own_columns : own_rows));
    *matrix = (struct matrix){
        .type = lt_element_of((int)layout->type),
        .rows = own_rows,
        .columns = own_columns,
        .ld = layout->ld,
        .stride = layout->stride,
        .by_rows = by_rows,
    };
    return CUBLAS_STATUS_SUCCESS;
}

static bool is_operation(int op) { return (unsigned)op <= CUBLAS_OP_C; }

static cublasStatus_t check_aux_ld(const char *function, const struct lt_operation *operation,
                                   const struct lt_call *call) {
    uint32_t epilogue = operation->epilogue;
    if (epilogue & LT_AUX) {
        bool bits = epilogue & (LT_RELU | LT_DRELU);
        int64_t unit = bits ? 128 : 8;
        BLAS_CHECK(
            operation->aux_ld >= call->m && operation->aux_ld % unit == 0,
            "%s: the auxiliary matrix has a leading dimension of %lld; it must be a multiple of %lld and at least "
            "%lld",
            function, (long long)operation->aux_ld, (long long)unit, (long long)call->m);
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* GELU with an auxiliary matrix, where A and B have scales of lines or of blocks, as an H200 has it. */
static bool has_gelu_aux(const struct lt_operation *operation, const struct lt_call *call) {
    int a = operation->a_mode, b = operation->b_mode;
    if (!(a | b)) return true;
    if (operation->epilogue & LT_BIAS) return false;
    return (a == OUTER && call->d.type == S) || (a == BLOCKS && b == LINES);
}

/* Epilogues of products of numbers of eight bits. An auxiliary matrix of eight bits goes with halves as C. */
static cublasStatus_t check_fp8_epilogue(const char *function, const struct lt_operation *operation,
                                         struct lt_call *call, enum element usual_bias, enum element usual_aux) {
    uint32_t epilogue = operation->epilogue;
    bool narrow = call->d.type == E4M3 && call->c.type == H && call->aux_type == E4M3;
    bool of_gelu = (epilogue & (LT_GELU | LT_DGELU)) && (epilogue & LT_AUX);
    bool has_type =
        operation->aux_type < 0 || !(epilogue & LT_AUX) || (of_gelu && (call->aux_type == usual_aux || narrow));
    BLAS_CHECK(has_type, "%s: for these types there is no auxiliary matrix of type %d", function, operation->aux_type);
    BLAS_CHECK((of_gelu && is_fp8(call->aux_type)) || (!operation->aux_scale && !operation->aux_amax),
               "%s: only auxiliary matrices of eight bits have a scale and a largest magnitude", function);
    const char *why = NULL;
    if (call->bias_type != usual_bias) why = "for these types there is no bias of that type";
    else if (epilogue & (LT_BGRAD | LT_BGRADA | LT_BGRADB)) why = "numbers of eight bits have no gradients of a bias";
    else if (is_fp8(call->d.type) && (epilogue & (LT_DRELU | LT_DGELU)))
        why = "results of eight bits have no gradients";
    else if (call->d.by_rows && (epilogue & (LT_BIAS | LT_AUX))) why = "D has to lie in columns for this epilogue";
    else if (call->d.type == S && (epilogue & LT_GELU) && (epilogue & LT_AUX) && (epilogue & LT_BIAS))
        why = "results of type float have no GELU with both a bias and an auxiliary matrix";
    else if ((epilogue & LT_GELU) && (epilogue & LT_AUX) && !has_gelu_aux(operation, call))
        why = "with these scales there is no such GELU with an auxiliary matrix";
    if (why) return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: %s", function, why);
    return check_aux_ld(function, operation, call);
}

static cublasStatus_t check_epilogue(const char *function, const struct lt_operation *operation, struct lt_call *call) {
    uint32_t epilogue = operation->epilogue;
    BLAS_CHECK(lt_is_epilogue(epilogue), "%s: there is no epilogue %u", function, epilogue);
    uint32_t of_vector = LT_BIAS | LT_BGRAD | LT_BGRADA | LT_BGRADB;
    BLAS_CHECK(!operation->bias || (epilogue & of_vector),
               "%s: there is a bias pointer, but the epilogue %u has no bias", function, epilogue);
    enum element usual = call->d.type == I8 ? S : call->d.type;
    if (call->is_fp8) usual = call->c.type == S ? B : call->c.type;
    call->bias_type = operation->bias_type < 0 ? usual : element_of((cudaDataType)operation->bias_type);
    enum element usual_aux = is_fp8(call->d.type) ? call->c.type : call->d.type;
    call->aux_type = operation->aux_type < 0 ? usual_aux : lt_element_of(operation->aux_type);
    if (call->is_fp8) return check_fp8_epilogue(function, operation, call, usual, usual_aux);
    BLAS_CHECK(call->bias_type == usual && call->aux_type == call->d.type,
               "%s: the bias or the auxiliary matrix has another type than D", function);
    if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
    const char *why = NULL;
    if (is_complex(call->d.type)) why = "complex numbers have no epilogues";
    else if (call->scale == I32) why = "sums of whole numbers have no epilogues";
    else if (call->d.type == I8 && (epilogue & (LT_BGRAD | LT_BGRADA | LT_BGRADB)))
        why = "whole numbers have no gradients";
    else if (call->d.by_rows && (epilogue & (of_vector | LT_AUX))) why = "D has to lie in columns for this epilogue";
    else if ((epilogue & LT_BGRADA) && (call->a.by_rows || operation->op_a != CUBLAS_OP_N))
        why = "A has to lie in columns, and not to be transposed, for its gradient";
    else if ((epilogue & LT_BGRADB) && (call->b.by_rows || operation->op_b == CUBLAS_OP_N))
        why = "B has to lie in columns, and to be transposed, for its gradient";
    if (why) return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: %s", function, why);
    BLAS_CHECK(!(epilogue & LT_BGRAD) || call->k > 1, "%s: with one product a sum there is no gradient of the bias",
               function);
    return check_aux_ld(function, operation, call);
}

/* In the order of D an operand is conjugated but not transposed, which no kernel does. */
static bool only_conjugates(int op, const struct matrix *operand, const struct matrix *d) {
    return op == CUBLAS_OP_C && operand->by_rows != d->by_rows;
}

/* Scales of lines and of blocks, which compute capability 9.0 has, with the conditions of an H200: first what is wrong in
 * itself, then what it does not have. */
static cublasStatus_t check_modes(const char *function, const struct lt_call *call) {
    const struct lt_operation *operation = &call->operation;
    int a = operation->a_mode, b = operation->b_mode;
    bool other = operation->c_mode | operation->d_mode | operation->aux_mode | operation->d_out_mode;
    bool of_floats = a >= OUTER && a <= BLOCKS && b >= OUTER && b <= BLOCKS;
    bool of_eights = a == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 && b == a;
    BLAS_CHECK((!(a | b) || of_floats || of_eights) && !other, "%s: there are no such modes of scales on this device",
               function);
    BLAS_CHECK(
        !(a | b) || (operation->a_scale && operation->b_scale && !operation->c_scale && !is_fp8(call->d.type)),
        "%s: scales of lines or of blocks need a pointer for A and for B, none for C, and a D of more than eight "
        "bits",
        function);
    BLAS_CHECK(is_fp8(call->d.type) || (!operation->d_scale && !operation->amax),
               "%s: only results of eight bits have a scale and a largest magnitude", function);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t find_modes(const char *function, const struct lt_call *call, const struct model *model) {
    const struct lt_operation *operation = &call->operation;
    int a = operation->a_mode, b = operation->b_mode;
    bool outer = a == OUTER && b == OUTER;
    const char *why = NULL;
    if (model->major != 9) why = "they need compute capability 9.0";
    else if (a < OUTER) why = "blocks of 32 need compute capability 10.0";
    else if (!outer && (a == OUTER || b == OUTER)) why = "A and B both have scales of whole lines, or neither has";
    else if (a == BLOCKS && b == BLOCKS) why = "only one of A and B can have blocks of 128 by 128";
    else if (call->batch > 1) why = "there are no batches of such products";
    else if (!outer && operation->fast) why = "only those of whole lines go with fast accumulation";
    else if (b == LINES && call->n % 4) why = "with scales for parts of the lines of B, D must have columns in fours";
    else if (!outer && call->m % 4 && (call->m > 1 || b == LINES)) why = "D must have rows in fours";
    if (why) return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: scales of lines or of blocks: %s", function, why);
    return CUBLAS_STATUS_SUCCESS;
}

/* What products of numbers of eight bits need: lines of 16 bytes, and, but on compute capability 10, A transposed. */
static cublasStatus_t check_fp8(const char *function, struct lt_call *call) {
    const struct lt_operation *operation = &call->operation;
    const struct model *model = current_context()->device->model;
    if (model->major * 10 + model->minor < 89)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED,
                         "%s: numbers of eight bits need compute capability 8.9, and the device has %d.%d", function,
                         model->major, model->minor);
    bool a_lies_along_k = (operation->op_a == CUBLAS_OP_N) == call->a.by_rows;
    bool b_lies_along_k = (operation->op_b == CUBLAS_OP_N) != call->b.by_rows;
    if (model->major != 10 && !(a_lies_along_k && b_lies_along_k))
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED,
                         "%s: the lines of A and B have to lie along k: columns, of which A is transposed and B is not",
                         function);
    call->is_known = true;
    BLAS_RETURN_IF(check_modes(function, call));
    const struct matrix *matrices[] = {&call->a, &call->b, &call->c, &call->d};
    bool is_row = call->m == 1 && call->d.type == S; /* for which there is an algorithm without this condition */
    for (size_t i = 0; i < (is_row ? 2 : sizeof matrices / sizeof *matrices); i++)
        if (matrices[i]->ld * (int64_t)element_size(matrices[i]->type) % 16)
            return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED,
                             "%s: the leading dimension of %c, %lld, is no multiple of 16 bytes", function, "ABCD"[i],
                             (long long)matrices[i]->ld);
    for (size_t i = 0; call->batch > 1 && i < sizeof matrices / sizeof *matrices; i++)
        if (matrices[i]->stride * (int64_t)element_size(matrices[i]->type) % 16)
            return blas_fail(
                CUBLAS_STATUS_NOT_SUPPORTED,
                "%s: the matrices %c of the batch are %lld elements apart, which is no multiple of 16 bytes", function,
                "ABCD"[i], (long long)matrices[i]->stride);
    if (operation->a_mode | operation->b_mode) BLAS_RETURN_IF(find_modes(function, call, model));
    if (call->n <= 0)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: there are no products of no columns", function);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t lt_describe(const char *function, const struct lt_operation *operation, const struct lt_layout *a,
                           const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *d,
                           struct lt_call *call) {
    BLAS_CHECK(lt_is(operation, LT_OPERATION), "%s: %p is no operation's descriptor", function,
               (const void *)operation);
    BLAS_CHECK(lt_is(a, LT_LAYOUT) && lt_is(b, LT_LAYOUT) && lt_is(c, LT_LAYOUT) && lt_is(d, LT_LAYOUT),
               "%s: a layout is missing, or is no layout's descriptor", function);
    BLAS_CHECK(is_operation(operation->op_a) && is_operation(operation->op_b), "%s: there is no operation %d or %d",
               function, operation->op_a, operation->op_b);
    BLAS_RETURN_IF(lt_types(function, operation->compute, operation->scale, (int)a->type, (int)b->type, (int)c->type,
                            (int)d->type, call));
    if (operation->op_c != CUBLAS_OP_N || operation->fill != CUBLAS_FILL_MODE_FULL)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: C cannot be transposed, and D cannot be a triangle",
                         function);
    call->operation = *operation;
    call->m = (int64_t)d->rows, call->n = (int64_t)d->columns;
    call->k = (int64_t)(operation->op_a == CUBLAS_OP_N ? a->columns : a->rows);
    BLAS_RETURN_IF(matrix_of(function, "A", a, operation->op_a, call->m, call->k, &call->a));
    BLAS_RETURN_IF(matrix_of(function, "B", b, operation->op_b, call->k, call->n, &call->b));
    BLAS_RETURN_IF(matrix_of(function, "C", c, CUBLAS_OP_N, call->m, call->n, &call->c));
    BLAS_RETURN_IF(matrix_of(function, "D", d, CUBLAS_OP_N, call->m, call->n, &call->d));
    BLAS_CHECK(a->batch == d->batch && b->batch == d->batch && c->batch == d->batch && d->batch > 0,
               "%s: the batches have %d, %d, %d and %d matrices", function, a->batch, b->batch, c->batch, d->batch);
    call->batch = d->batch;
    BLAS_CHECK(call->c.by_rows == call->d.by_rows, "%s: C and D have different orders", function);
    BLAS_CHECK(!operation->fast || call->is_fp8, "%s: these types have no fast accumulation", function);
    if (call->d.type == I8 && call->m % 4)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: results of 8 bits have to have rows in fours", function);
    BLAS_CHECK((unsigned)operation->pointer_mode <= CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST,
               "%s: there is no pointer mode %d", function, operation->pointer_mode);
    if (operation->pointer_mode > CUBLASLT_POINTER_MODE_DEVICE)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: there are no vectors of scalars in these orders", function);
    if (is_complex(call->sums) &&
        (only_conjugates(operation->op_a, &call->a, &call->d) || only_conjugates(operation->op_b, &call->b, &call->d)))
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, "%s: in these orders a conjugated matrix would not be transposed",
                         function);
    if (call->is_fp8) BLAS_RETURN_IF(check_fp8(function, call));
    else
        BLAS_CHECK(!operation->a_scale && !operation->b_scale && !operation->c_scale && !operation->d_scale &&
                       !operation->amax && !operation->aux_scale && !operation->aux_amax && !operation->d_out_scale &&
                       !(operation->a_mode | operation->b_mode | operation->c_mode | operation->d_mode),
                   "%s: these types have no scales", function);
    return check_epilogue(function, operation, call);
}

/* What numbers of eight bits need besides. */
static cublasStatus_t check_addresses(const struct lt_operation *operation, const void *const addresses[4]) {
    const void *scales[] = {operation->a_scale, operation->b_scale};
    for (size_t i = 0; i < 4; i++)
        if ((uintptr_t)addresses[i] % 16)
            return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, LT_NAME ": %c at %p is not aligned to 16 bytes", "ABCD"[i],
                             addresses[i]);
    if ((uintptr_t)operation->bias % 16)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, LT_NAME ": the bias at %p is not aligned to 16 bytes",
                         operation->bias);
    for (size_t i = 0; i < 2; i++)
        if ((uintptr_t)scales[i] % 16)
            return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, LT_NAME ": the scale of %c at %p is not aligned to 16 bytes",
                             "AB"[i], scales[i]);
    return CUBLAS_STATUS_SUCCESS;
}

static void take_scalar(struct scalar *scalar, enum element type, const void *pointer, bool on_device) {
    scalar->type = type;
    if (on_device) scalar->device = pointer;
    else memcpy(scalar->value, pointer, element_size(type));
}

static cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha,
                                     const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                                     cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                                     cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                                     const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_size,
                                     cudaStream_t stream) {
    (void)algorithm; /* there is one, which needs no workspace */
    BLAS_RETURN_IF(blas_check((cublasHandle_t)handle, LT_NAME));
    struct lt_call described = {0};
    BLAS_RETURN_IF(lt_describe(LT_NAME, (struct lt_operation *)operation, (struct lt_layout *)a_layout,
                               (struct lt_layout *)b_layout, (struct lt_layout *)c_layout, (struct lt_layout *)d_layout,
                               &described));
    if (!alpha || !beta) return blas_null(LT_NAME, alpha ? "beta" : "alpha");
    BLAS_CHECK(!workspace_size || (workspace && (uintptr_t)workspace % 256 == 0),
               LT_NAME ": the workspace %p of %zu bytes is not aligned to 256 bytes", workspace, workspace_size);
    BLAS_CHECK((uintptr_t)described.operation.bias % element_size(described.bias_type) == 0,
               LT_NAME ": the bias at %p is not aligned", described.operation.bias);
    if (!a || !b || !d) return blas_null(LT_NAME, !a ? "A" : !b ? "B" : "D");
    if ((described.operation.epilogue & (LT_BIAS | LT_BGRAD | LT_BGRADA | LT_BGRADB)) && !described.operation.bias)
        return blas_null(LT_NAME, "the bias pointer");
    if ((described.operation.epilogue & LT_AUX) && !described.operation.aux)
        return blas_fail(CUBLAS_STATUS_NOT_SUPPORTED, LT_NAME ": the pointer to the auxiliary matrix is null");
    if (described.is_fp8) BLAS_RETURN_IF(check_addresses(&described.operation, (const void *[]){a, b, c, d}));
    BLAS_CHECK(c != d || described.c.ld == described.d.ld, LT_NAME ": C is D, but has another leading dimension");
    struct lt_call *call = calloc(1, sizeof *call);
    if (!call) return blas_status(no_memory("a call of cuBLASLt"));
    *call = described;
    call->call.references = 1;
    call->call.run = run_matmul;
    call->a.data = (void *)a, call->b.data = (void *)b, call->c.data = (void *)c, call->d.data = d;
    bool on_device = described.operation.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
    take_scalar(&call->alpha, call->scale, alpha, on_device);
    take_scalar(&call->beta, call->scale, beta, on_device);
    if (!c && (call->beta.device || element_load(call->scale, call->beta.value, 0) != 0)) {
        call_release(&call->call);
        return blas_null(LT_NAME, "C");
    }
    CUstream queue;
    CUresult status = math_stream(stream, &queue);
    if (status) call_release(&call->call);
    return blas_status(status ? status : math_submit(queue, &call->call, false));
}

const struct entry lt_matmul_entries[] = {LT_ENTRY(cublasLtMatmul), {NULL, NULL, NULL}};
