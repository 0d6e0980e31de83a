/* Matrices of any format, element by element, and copied into one form. */
#include <complex.h>
#undef I
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sparse.h"

int64_t major_count(const struct matrix *matrix) {
    switch ((int)matrix->format) {
        case CUSPARSE_FORMAT_CSC: return matrix->columns;
        case CUSPARSE_FORMAT_COO: return matrix->count;
        case CUSPARSE_FORMAT_BSR:
        case CUSPARSE_FORMAT_BLOCKED_ELL: return matrix->rows / matrix->block_rows;
        default: return matrix->rows;
    }
}

int64_t element_count(const struct matrix *matrix) {
    return matrix->count * larger(matrix->block_rows * matrix->block_columns, 1);
}

static void each_of_block(const struct matrix *matrix, int64_t block, int64_t row, int64_t column, visitor *visit,
                          void *data) {
    int64_t rows = matrix->block_rows, columns = matrix->block_columns, first = block * rows * columns;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            visit(data, row * rows + i, column * columns + j,
                  first + (matrix->blocks_by_column ? j * rows + i : i * columns + j));
}

/* The values of Blocked ELL are a matrix in rows of `width` elements, in which blocks stand beside each other. A block
 * that is none is in the first columns, as on an H200: its values have to be zeros. */
static void each_of_ell(struct sparse *sparse, const struct matrix *matrix, const char *name, int64_t first,
                        int64_t last, visitor *visit, void *data) {
    int64_t size = matrix->block_rows, blocks = matrix->width / size, minor = matrix->columns / size;
    for (int64_t major = first; major < last; major++)
        for (int64_t b = 0; b < blocks; b++) {
            int64_t at = major * blocks + b, column = 0;
            if (!is_no_block(matrix, at)) column = index_from(matrix->base, matrix->index_type, matrix->indices, at);
            if (unlikely((uint64_t)column >= (uint64_t)minor))
                return note_bad(sparse, "indices", name, at, column, minor);
            for (int64_t i = 0; i < size; i++)
                for (int64_t j = 0; j < size; j++)
                    visit(data, major * size + i, column * size + j, (major * size + i) * matrix->width + b * size + j);
        }
}

void each_element(struct sparse *sparse, const struct matrix *matrix, const char *name, int64_t first, int64_t last,
                  visitor *visit, void *data) {
    bool by_column = matrix->format == CUSPARSE_FORMAT_CSC, blocks = matrix->format == CUSPARSE_FORMAT_BSR;
    if (matrix->format == CUSPARSE_FORMAT_BLOCKED_ELL)
        return each_of_ell(sparse, matrix, name, first, last, visit, data);
    int64_t minor = by_column ? matrix->rows : blocks ? matrix->columns / matrix->block_columns : matrix->columns;
    if (matrix->format == CUSPARSE_FORMAT_COO) {
        for (int64_t e = first; e < last; e++) {
            int64_t row = index_from(matrix->base, matrix->offset_type, matrix->offsets, e);
            int64_t column = index_from(matrix->base, matrix->index_type, matrix->indices, e);
            if (unlikely((uint64_t)row >= (uint64_t)matrix->rows))
                return note_bad(sparse, "offsets", name, e, row, matrix->rows);
            if (unlikely((uint64_t)column >= (uint64_t)minor))
                return note_bad(sparse, "indices", name, e, column, minor);
            visit(data, row, column, e);
        }
        return;
    }
    for (int64_t major = first; major < last; major++) {
        int64_t begin = index_from(matrix->base, matrix->offset_type, matrix->offsets, major);
        int64_t end = index_from(matrix->base, matrix->offset_type, matrix->offsets, major + 1);
        if (unlikely((uint64_t)begin > (uint64_t)matrix->count))
            return note_bad(sparse, "offsets", name, major, begin, matrix->count + 1);
        if (unlikely((uint64_t)end > (uint64_t)matrix->count))
            return note_bad(sparse, "offsets", name, major + 1, end, matrix->count + 1);
        for (int64_t e = begin; e < end; e++) {
            int64_t index = index_from(matrix->base, matrix->index_type, matrix->indices, e);
            if (unlikely((uint64_t)index >= (uint64_t)minor)) return note_bad(sparse, "indices", name, e, index, minor);
            if (blocks) each_of_block(matrix, e, major, index, visit, data);
            else if (by_column) visit(data, index, major, e);
            else visit(data, major, index, e);
        }
    }
}

CUresult rows_new(struct rows *rows, int64_t count_rows, int64_t columns, int64_t count, enum element type) {
    *rows = (struct rows){.rows = count_rows, .columns = columns, .count = count, .type = type};
    rows->offsets = calloc((size_t)count_rows + 2, sizeof *rows->offsets);
    rows->indices = malloc(((size_t)count + 1) * sizeof *rows->indices);
    rows->values = malloc(((size_t)count + 1) * element_size(type));
    if (rows->offsets && rows->indices && rows->values) return CUDA_SUCCESS;
    rows_free(rows);
    return no_memory("a sparse matrix");
}

void rows_free(struct rows *rows) {
    free(rows->offsets), free(rows->indices), free(rows->places), free(rows->values);
    *rows = (struct rows){0};
}

/* Elements are counted, then put where they belong. Device code may change the arrays meanwhile; what has no room then is
 * noted as a bad index. */
struct copying {
    struct sparse *sparse;
    const struct matrix *from;
    struct rows *to;
    int64_t *next; /* place for the next element of each row */
    bool turned, conjugated;
    const char *name;
};

static void count_element(void *data, int64_t row, int64_t column, int64_t place) {
    (void)place;
    struct copying *copying = data;
    copying->to->offsets[(copying->turned ? column : row) + 1]++;
}

static void copy_element(void *data, int64_t row, int64_t column, int64_t place) {
    struct copying *copying = data;
    struct rows *to = copying->to;
    int64_t line = copying->turned ? column : row, at = copying->next[line];
    if (unlikely(at >= to->offsets[line + 1]))
        return note_bad(copying->sparse, "indices", copying->name, place, line, line);
    copying->next[line]++;
    to->indices[at] = copying->turned ? row : column;
    if (to->places) to->places[at] = place;
    if (!copying->from->values) return; /* only the structure is wanted */
    number value = element_load(copying->from->type, copying->from->values, place);
    if (to->type == D) ((double *)to->values)[at] = creal(value);
    else ((number *)to->values)[at] = copying->conjugated ? conj(value) : value;
}

CUresult rows_of(struct sparse *sparse, const struct matrix *matrix, const char *name, cusparseOperation_t op,
                 bool with_places, struct rows *rows) {
    bool turned = op != CUSPARSE_OPERATION_NON_TRANSPOSE;
    int64_t lines = turned ? matrix->columns : matrix->rows, count = element_count(matrix), major = major_count(matrix);
    RETURN_IF(rows_new(rows, lines, turned ? matrix->rows : matrix->columns, count, wide_of(matrix->type)));
    struct copying copying = {sparse, matrix,
                              rows,   malloc(((size_t)lines + 1) * sizeof(int64_t)),
                              turned, op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE,
                              name};
    if (with_places) rows->places = malloc(((size_t)count + 1) * sizeof *rows->places);
    if (!copying.next || (with_places && !rows->places)) {
        free(copying.next);
        rows_free(rows);
        return no_memory("a sparse matrix");
    }
    each_element(sparse, matrix, name, 0, major, count_element, &copying);
    for (int64_t i = 0; i < lines; i++) rows->offsets[i + 1] += rows->offsets[i];
    if (rows->offsets[lines] > count) /* offsets that go back count elements more than once */
        note_bad(sparse, "offsets", name, lines, rows->offsets[lines], count + 1);
    CUresult status = bad_index(sparse);
    memcpy(copying.next, rows->offsets, (size_t)lines * sizeof(int64_t));
    if (!status) each_element(sparse, matrix, name, 0, major, copy_element, &copying);
    if (!status) status = bad_index(sparse);
    for (int64_t i = 0; !status && i < lines; i++)
        if (copying.next[i] != rows->offsets[i + 1])
            note_bad(sparse, "indices", name, i, copying.next[i], rows->offsets[i + 1]);
    if (!status) status = bad_index(sparse);
    free(copying.next);
    rows->count = status ? 0 : rows->offsets[lines];
    if (status) rows_free(rows);
    return status;
}
