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

/* Factors of the square matrix whose columns are given, as rows. */
CUresult factors_make(struct factors *factors, const struct rows *columns);
void factors_free(struct factors *factors);
/* x = A^-1 b; both of n numbers, not the same memory. */
void factors_solve(const struct factors *factors, const number *b, number *x);

#endif
