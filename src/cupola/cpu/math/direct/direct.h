/* cuDSS: what its files share (cuDSS, https://docs.nvidia.com/cuda/cudss). Matrices are copied as those of cuSPARSE are, with
 * every index checked, and factors are made of the copy (factor.c). */
#ifndef CUPOLA_CPU_MATH_DIRECT_H
#define CUPOLA_CPU_MATH_DIRECT_H

#include <cupola/cudss.h>

#include "math/sparse/sparse.h"

/* P A Q = L U, by columns, with the diagonal of ones of L left out. */
struct factors {
    int64_t n, pivots; /* pivots: how many were too small and have been replaced */
    int64_t *order;    /* of columns: Q */
    int64_t *place;    /* of rows: row i of A is row place[i] of P A */
    int64_t *lower_offsets, *lower_rows, *upper_offsets, *upper_rows;
    number *lower, *upper; /* the last element of a column of U is on the diagonal */
    int64_t lower_room, upper_room;
};

/* An order of columns that keeps factors sparse, of the structure of the square matrix whose columns are given, as rows.
 * `order` has room for them. Returns whether there was memory. */
bool factors_order(const struct rows *columns, int64_t *order);
/* Factors of this matrix, with its columns in that order. */
CUresult factors_make(struct factors *factors, const struct rows *columns, const int64_t *order);
void factors_free(struct factors *factors);
/* How many eigenvalues of this symmetric or Hermitian matrix, whose factors are given, are positive and negative. */
CUresult factors_inertia(const struct factors *factors, const struct rows *columns, int *positive, int *negative);
/* op(A) x = b, with vectors of n numbers, not the same memory. */
void factors_solve(const struct factors *factors, cudssSolveMode_t op, const number *b, number *x);

#endif
