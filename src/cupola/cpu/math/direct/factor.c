/* Sparse LU factors with partial pivoting.
 *
 * Columns are taken in an order that keeps the elements near the diagonal (reverse Cuthill-McKee, over the structure of
 * A + A'). Each is solved with the columns of L so far, at the places only that can become other than zero, which a
 * depth-first search through L finds (J. R. Gilbert, T. Peierls, Sparse partial pivoting in time proportional to
 * arithmetic operations, 1988); its largest element becomes the pivot, or that on the diagonal if it is large enough. */
#include <complex.h>
#undef I
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "direct.h"

static const double DIAGONAL_THRESHOLD = 0.1, TINY = 1e-13;
/* Of pivots that stay on the diagonal: an eigenvalue moves by that much of the largest element, and what is divided by it
 * loses as many digits, so signs are right of all that are not smaller. */
static const double TINY_ON_THE_DIAGONAL = 1e-8;

void factors_free(struct factors *factors) {
    free(factors->order), free(factors->place), free(factors->lower), free(factors->upper);
    free(factors->lower_offsets), free(factors->lower_rows), free(factors->upper_offsets), free(factors->upper_rows);
    *factors = (struct factors){0};
}

/* ---- the order of columns ---------------------------------------------------------------------------------------- */

/* The structure of A + A', without the diagonal. */
static bool neighbours(const struct rows *columns, int64_t **offsets, int64_t **list) {
    int64_t n = columns->rows, *count = calloc((size_t)n + 2, sizeof *count);
    int64_t *found = malloc((2 * (size_t)columns->count + 1) * sizeof *found);
    *offsets = count, *list = found;
    if (!count || !found) return false;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t e = columns->offsets[j]; e < columns->offsets[j + 1]; e++) {
                int64_t i = columns->indices[e];
                if (i == j) continue;
                if (!pass) count[i + 2]++, count[j + 2]++;
                else found[count[i + 1]++] = j, found[count[j + 1]++] = i;
            }
        for (int64_t i = 0; !pass && i <= n; i++) count[i + 1] += count[i];
    }
    return true;
}

/* Breadth first from a node of few neighbours in each component; then backwards. */
bool factors_order(const struct rows *columns, int64_t *order) {
    int64_t n = columns->rows, *offsets = NULL, *list = NULL, done = 0;
    bool *seen = calloc((size_t)n + 1, sizeof *seen), good = neighbours(columns, &offsets, &list) && seen;
    for (int64_t start = 0; good && start < n; start++) {
        if (seen[start]) continue;
        int64_t first = done;
        order[done++] = start;
        seen[start] = true;
        for (int round = 0; round < 2; round++) { /* the second begins at the far end of the first */
            for (int64_t at = first; at < done; at++)
                for (int64_t e = offsets[order[at]]; e < offsets[order[at] + 1]; e++)
                    if (!seen[list[e]]) seen[list[e]] = true, order[done++] = list[e];
            if (round) break;
            int64_t far = order[done - 1];
            for (int64_t at = first; at < done; at++) seen[order[at]] = false;
            done = first;
            order[done++] = far;
            seen[far] = true;
        }
    }
    for (int64_t i = 0; good && i < n / 2; i++) {
        int64_t other = order[n - 1 - i];
        order[n - 1 - i] = order[i];
        order[i] = other;
    }
    free(offsets), free(list), free(seen);
    return good;
}

/* ---- factors ----------------------------------------------------------------------------------------------------- */

struct work {
    number *x;                            /* the column that is being made */
    int64_t *reach, *stack, *next, *mark; /* rows that it may have, in topological order from `top` on */
    double least;                         /* smaller pivots are replaced by it */
    bool on_the_diagonal;                 /* are all pivots */
};

static bool room_for(int64_t **rows, number **values, int64_t *room, int64_t needed) {
    if (needed <= *room) return true;
    int64_t size = needed * 2;
    int64_t *more_rows = realloc(*rows, (size_t)size * sizeof **rows);
    if (more_rows) *rows = more_rows;
    number *more_values = realloc(*values, (size_t)size * sizeof **values);
    if (more_values) *values = more_values;
    if (!more_rows || !more_values) return false;
    *room = size;
    return true;
}

/* Rows that are reached from `row` in L, put before `top`, those first that others need. */
static int64_t search(const struct factors *f, struct work *w, int64_t row, int64_t column, int64_t top) {
    int64_t depth = 0;
    w->stack[0] = row;
    while (depth >= 0) {
        int64_t i = w->stack[depth], k = f->place[i];
        if (w->mark[i] != column + 1) {
            w->mark[i] = column + 1;
            w->next[depth] = k < 0 ? 0 : f->lower_offsets[k];
        }
        int64_t end = k < 0 ? 0 : f->lower_offsets[k + 1];
        bool deeper = false;
        while (w->next[depth] < end && !deeper) {
            int64_t below = f->lower_rows[w->next[depth]++];
            if (w->mark[below] == column + 1) continue;
            w->stack[++depth] = below;
            deeper = true;
        }
        if (!deeper) w->reach[--top] = i, depth--;
    }
    return top;
}

static bool make_column(struct factors *f, struct work *w, const struct rows *a, int64_t k) {
    int64_t n = f->n, column = f->order[k], top = n, lower = f->lower_offsets[k], upper = f->upper_offsets[k];
    if (!room_for(&f->lower_rows, &f->lower, &f->lower_room, lower + n) ||
        !room_for(&f->upper_rows, &f->upper, &f->upper_room, upper + n))
        return false;
    for (int64_t e = a->offsets[column]; e < a->offsets[column + 1]; e++)
        if (w->mark[a->indices[e]] != k + 1) top = search(f, w, a->indices[e], k, top);
    for (int64_t at = top; at < n; at++) w->x[w->reach[at]] = 0;
    for (int64_t e = a->offsets[column]; e < a->offsets[column + 1]; e++)
        w->x[a->indices[e]] += a->type == D ? ((const double *)a->values)[e] : ((const number *)a->values)[e];
    int64_t pivot = -1;
    double largest = -1;
    for (int64_t at = top; at < n; at++) {
        int64_t i = w->reach[at], j = f->place[i];
        if (j < 0) {
            double size = cabs(w->x[i]);
            if (pivot < 0 || size > largest) pivot = i, largest = size;
            continue;
        }
        number x = w->x[i];
        f->upper_rows[upper] = j, f->upper[upper++] = x;
        for (int64_t e = f->lower_offsets[j]; e < f->lower_offsets[j + 1]; e++)
            w->x[f->lower_rows[e]] -= times(f->lower[e], x);
    }
    /* On the diagonal if that will do, and somewhere if the column is empty. */
    bool diagonal = f->place[column] < 0 && w->mark[column] == k + 1;
    if (diagonal && (w->on_the_diagonal || cabs(w->x[column]) >= DIAGONAL_THRESHOLD * largest)) pivot = column;
    if (!diagonal && w->on_the_diagonal) pivot = column, w->x[column] = 0;
    for (int64_t i = 0; pivot < 0; i++)
        if (f->place[i] < 0) pivot = i, w->x[i] = 0;
    number value = w->x[pivot];
    if (!(cabs(value) >= w->least) && !isnan(creal(value)) && !isnan(cimag(value))) {
        value = creal(value) < 0 ? -w->least : w->least;
        f->pivots++;
    }
    f->place[pivot] = k;
    f->upper_rows[upper] = k, f->upper[upper++] = value;
    for (int64_t at = top; at < n; at++) {
        int64_t i = w->reach[at];
        if (f->place[i] >= 0) continue;
        f->lower_rows[lower] = i, f->lower[lower++] = w->x[i] / value;
    }
    f->lower_offsets[k + 1] = lower, f->upper_offsets[k + 1] = upper;
    return true;
}

static double largest_element(const struct rows *columns) {
    double scale = 0;
    for (int64_t e = 0; e < columns->count; e++) {
        double one = columns->type == D ? fabs(((const double *)columns->values)[e])
                                        : cabs(((const number *)columns->values)[e]);
        if (one > scale) scale = one;
    }
    return scale > 0 ? scale : 1;
}

static CUresult make(struct factors *factors, const struct rows *columns, const int64_t *order, bool on_the_diagonal) {
    int64_t n = columns->rows;
    size_t size = (size_t)n + 2;
    struct factors f = {.n = n};
    struct work w = {malloc(size * sizeof *w.x),
                     malloc(size * sizeof(int64_t)),
                     malloc(size * sizeof(int64_t)),
                     malloc(size * sizeof(int64_t)),
                     calloc(size, sizeof(int64_t)),
                     0,
                     on_the_diagonal};
    w.least = (on_the_diagonal ? TINY_ON_THE_DIAGONAL : TINY) * largest_element(columns);
    f.order = malloc(size * sizeof *f.order), f.place = malloc(size * sizeof *f.place);
    f.lower_offsets = calloc(size, sizeof(int64_t)), f.upper_offsets = calloc(size, sizeof(int64_t));
    bool good =
        w.x && w.reach && w.stack && w.next && w.mark && f.order && f.place && f.lower_offsets && f.upper_offsets;
    if (good) memcpy(f.order, order, (size_t)n * sizeof *order);
    for (int64_t i = 0; good && i < n; i++) f.place[i] = -1;
    for (int64_t k = 0; good && k < n; k++) good = make_column(&f, &w, columns, k);
    for (int64_t e = 0; good && e < f.lower_offsets[n]; e++) f.lower_rows[e] = f.place[f.lower_rows[e]];
    free(w.x), free(w.reach), free(w.stack), free(w.next), free(w.mark);
    if (!good) {
        factors_free(&f);
        return no_memory("the factors of a sparse matrix");
    }
    *factors = f;
    return CUDA_SUCCESS;
}

CUresult factors_make(struct factors *factors, const struct rows *columns, const int64_t *order) {
    return make(factors, columns, order, false);
}

/* Whether row k of U has a pivot that stands for a zero, with nothing below it that would make it matter. */
static bool is_zero_pivot(const struct factors *f, int64_t k, double least) {
    if (cabs(f->upper[f->upper_offsets[k + 1] - 1]) > least) return false;
    for (int64_t e = f->lower_offsets[k]; e < f->lower_offsets[k + 1]; e++)
        if (cabs(f->lower[e]) > 1) return false;
    return true;
}

/* With all pivots on the diagonal, U = D L', and the signs of D are those of the eigenvalues (Sylvester). */
CUresult factors_inertia(const struct factors *factors, const struct rows *columns, int *positive, int *negative) {
    const struct factors *f = factors;
    struct factors own = {0};
    double least = TINY * largest_element(columns);
    bool on_the_diagonal = true;
    for (int64_t k = 0; k < f->n; k++) on_the_diagonal &= f->place[f->order[k]] == k;
    if (!on_the_diagonal || f->pivots) {
        RETURN_IF(make(&own, columns, f->order, true));
        f = &own, least = TINY_ON_THE_DIAGONAL * largest_element(columns);
    }
    *positive = *negative = 0;
    for (int64_t k = 0; k < f->n; k++) {
        if (is_zero_pivot(f, k, least)) continue;
        if (creal(f->upper[f->upper_offsets[k + 1] - 1]) > 0) ++*positive;
        else ++*negative;
    }
    factors_free(&own);
    return CUDA_SUCCESS;
}

static number turned(number value, cudssSolveMode_t op) {
    return op == CUDSS_SOLVE_MODE_CONJUGATE_TRANSPOSE ? conj(value) : value;
}

/* The other way round: first U', then L'. */
static void solve_transposed(const struct factors *f, cudssSolveMode_t op, const number *b, number *y, number *x) {
    for (int64_t k = 0; k < f->n; k++) {
        int64_t last = f->upper_offsets[k + 1] - 1;
        y[k] = b[f->order[k]];
        for (int64_t e = f->upper_offsets[k]; e < last; e++)
            y[k] -= times(turned(f->upper[e], op), y[f->upper_rows[e]]);
        y[k] /= turned(f->upper[last], op);
    }
    for (int64_t k = f->n - 1; k >= 0; k--)
        for (int64_t e = f->lower_offsets[k]; e < f->lower_offsets[k + 1]; e++)
            y[k] -= times(turned(f->lower[e], op), y[f->lower_rows[e]]);
    for (int64_t i = 0; i < f->n; i++) x[i] = y[f->place[i]];
}

void factors_solve(const struct factors *f, cudssSolveMode_t op, const number *b, number *x) {
    int64_t n = f->n;
    number *y = malloc(((size_t)n + 1) * sizeof *y); /* in the order of the columns */
    if (!y) {
        memset(x, 0xff, (size_t)n * sizeof *x); /* NaN */
        return;
    }
    if (op != CUDSS_SOLVE_MODE_NORMAL) {
        solve_transposed(f, op, b, y, x);
        free(y);
        return;
    }
    for (int64_t i = 0; i < n; i++) y[f->place[i]] = b[i];
    for (int64_t k = 0; k < n; k++)
        for (int64_t e = f->lower_offsets[k]; e < f->lower_offsets[k + 1]; e++)
            y[f->lower_rows[e]] -= times(f->lower[e], y[k]);
    for (int64_t k = n - 1; k >= 0; k--) {
        int64_t last = f->upper_offsets[k + 1] - 1;
        y[k] /= f->upper[last];
        for (int64_t e = f->upper_offsets[k]; e < last; e++) y[f->upper_rows[e]] -= times(f->upper[e], y[k]);
    }
    for (int64_t k = 0; k < n; k++) x[f->order[k]] = y[k];
    free(y);
}
