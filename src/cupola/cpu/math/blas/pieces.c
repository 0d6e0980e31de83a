/* Products of a matrix and a vector in pieces, for the threads that kernels have. OpenBLAS has threads of its own, which
 * spin for long after each call: a kernel that follows finds the processors taken by them, and the next call of OpenBLAS
 * those that it waits for without a processor. */
#include <stdlib.h>

#include "blas.h"
#include "engine/engine.h"

/* OpenBLAS uses one thread for a piece (9216 is the first number of elements for which it uses more). */
enum { PIECE = 8192, LONG_SUM = 1024, SHORT_RESULT = 64, LEAST_ROWS = 64 };

struct product {
    enum element type;
    bool is_turned, is_sum; /* the transposed matrix; pieces are parts of the sums, not of the result */
    int64_t rows, columns, step, results;
    const void *alpha, *a, *x;
    void *y, *sums;
    blas_int lda, incx, incy;
};

static void run_piece(void *data, uint64_t index) {
    const struct product *p = data;
    const enum element type = p->type;
    const bool by_columns = p->is_turned != p->is_sum;
    const int64_t first = (int64_t)index * p->step, all = by_columns ? p->columns : p->rows;
    blas_int size = all - first < p->step ? all - first : p->step, close = 1;
    blas_int rows = by_columns ? p->rows : size, columns = by_columns ? size : p->columns;
    char one[16];
    element_store(type, one, 0, 1);
    const void *a = element_at(p->a, type, by_columns ? first * p->lda : first);
    const void *x = p->is_sum ? element_at(p->x, type, first * p->incx) : p->x;
    void *y =
        p->is_sum ? element_at(p->sums, type, (int64_t)index * p->results) : element_at(p->y, type, first * p->incy);
    openblas.gemv[type](p->is_turned ? "T" : "N", &rows, &columns, p->alpha, a, &p->lda, x, &p->incx, one, y,
                        p->is_sum ? &close : &p->incy, (size_t)1);
}

bool multiply_in_pieces(enum element type, bool is_turned, int64_t rows, int64_t columns, const void *alpha,
                        const void *a, blas_int lda, const void *x, blas_int incx, void *y, blas_int incy) {
    struct product p = {.type = type,
                        .is_turned = is_turned,
                        .rows = rows,
                        .columns = columns,
                        .alpha = alpha,
                        .a = a,
                        .lda = lda,
                        .x = x,
                        .incx = incx,
                        .y = y,
                        .incy = incy};
    const int64_t length = is_turned ? rows : columns;
    p.results = is_turned ? columns : rows;
    if ((type != S && type != D) || incx <= 0 || incy <= 0 || length > INT64_MAX / p.results) return false;
    if (length * p.results <= PIECE) return false; /* one thread is enough */
    if (length <= LONG_SUM) {
        p.step = PIECE / length;
        if (!is_turned && p.step < LEAST_ROWS) return false;
        cpu_pool_run(run_piece, &p, (uint64_t)((p.results + p.step - 1) / p.step));
        return true;
    }
    if (p.results > SHORT_RESULT) return false;
    p.is_sum = true;
    p.step = PIECE / p.results;
    const int64_t count = (length + p.step - 1) / p.step;
    if (!(p.sums = calloc((size_t)(count * p.results), element_size(type)))) return false;
    cpu_pool_run(run_piece, &p, (uint64_t)count);
    /* In the order of the pieces, so the result is the same for any number of threads. */
    for (int64_t i = 0; i < p.results; i++) {
        double sum = 0;
        for (int64_t piece = 0; piece < count; piece++)
            sum += type == S ? (double)((float *)p.sums)[piece * p.results + i]
                             : ((double *)p.sums)[piece * p.results + i];
        if (type == S) ((float *)y)[i * incy] += (float)sum;
        else ((double *)y)[i * incy] += sum;
    }
    free(p.sums);
    return true;
}
