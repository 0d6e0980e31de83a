/* Factorizations without pivots, which LAPACK does not have: of halves, with products of BLAS (Golub, Van Loan, Matrix
 * Computations, 3.2 and 4.1). */
#include "solver.h"

enum { NARROW = 8 }; /* columns; not worth a product of BLAS */

static const number ONE = 1, MINUS = -1;

/* A constant as BLAS wants it, in `place`. */
static const void *constant(enum element type, number value, number *place) {
    element_store(type, place, 0, value);
    return place;
}

static int64_t lu_narrow(enum element type, int64_t m, int64_t n, void *a, int64_t lda) {
    int64_t info = 0;
    for (int64_t k = 0; k < smaller(m, n); k++) {
        number pivot = element_load(type, a, k * lda + k);
        if (pivot == 0) {
            if (!info) info = k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < m; i++)
            element_store(type, a, k * lda + i, element_load(type, a, k * lda + i) / pivot);
        for (int64_t j = k + 1; j < n; j++) {
            number factor = element_load(type, a, j * lda + k);
            for (int64_t i = k + 1; i < m; i++)
                element_store(type, a, j * lda + i,
                              element_load(type, a, j * lda + i) - element_load(type, a, k * lda + i) * factor);
        }
    }
    return info;
}

int64_t plain_lu(enum element type, int64_t m, int64_t n, void *a, int64_t lda) {
    if (smaller(m, n) <= NARROW) return lu_narrow(type, m, n, a, lda);
    int64_t left = smaller(m, n) / 2, right = n - left, below = m - left;
    void *a12 = element_at(a, type, left * lda), *a21 = element_at(a, type, left), *a22 = element_at(a12, type, left);
    number one, minus;
    int64_t info = plain_lu(type, m, left, a, lda);
    openblas.trsm[type]("L", "L", "N", "U", &left, &right, constant(type, ONE, &one), a, &lda, a12, &lda, (size_t)1,
                        (size_t)1, (size_t)1, (size_t)1);
    openblas.gemm[type]("N", "N", &below, &right, &left, constant(type, MINUS, &minus), a21, &lda, a12, &lda,
                        constant(type, ONE, &one), a22, &lda, (size_t)1, (size_t)1);
    int64_t rest = plain_lu(type, below, right, a22, lda);
    return info ? info : rest ? rest + left : 0;
}

/* ---- A = L D Lᵀ, or Uᵀ D U, of a symmetric matrix ------------------------------------------------------------------ */

/* Columns of L, or rows of U, from the first on: cuSOLVER's U is Lᵀ, where LAPACK begins with the last column and has
 * U D Uᵀ. What is left becomes smaller by l d lᵀ. */
int64_t plain_ldl(enum element type, char fill, int64_t n, void *a, int64_t lda) {
    bool upper = fill == 'U';
    const blas_int step = upper ? lda : 1;
    int64_t info = 0;
    for (int64_t k = 0; k < n; k++) {
        number pivot = element_load(type, a, k * lda + k);
        if (pivot == 0) {
            if (!info) info = k + 1;
            continue;
        }
        const blas_int count = n - k - 1;
        if (!count) break;
        void *line = element_at(a, type, k * lda + k + step), *rest = element_at(a, type, (k + 1) * lda + k + 1);
        number factor;
        openblas.syr[type](upper ? "U" : "L", &count, constant(type, -1 / pivot, &factor), line, &step, rest, &lda,
                           (size_t)1);
        openblas.scal[type](&count, constant(type, 1 / pivot, &factor), line, &step);
    }
    return info;
}

void plain_ldl_solve(enum element type, char fill, int64_t n, int64_t columns, const void *a, int64_t lda, void *b,
                     int64_t ldb) {
    number one;
    const char letter[] = {fill, 0}, *first = fill == 'U' ? "T" : "N", *last = fill == 'U' ? "N" : "T";
    constant(type, ONE, &one);
    openblas.trsm[type]("L", letter, first, "U", &n, &columns, &one, a, &lda, b, &ldb, (size_t)1, (size_t)1, (size_t)1,
                        (size_t)1);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < n; i++)
            element_store(type, b, j * ldb + i,
                          element_load(type, b, j * ldb + i) / element_load(type, a, i * lda + i));
    openblas.trsm[type]("L", letter, last, "U", &n, &columns, &one, a, &lda, b, &ldb, (size_t)1, (size_t)1, (size_t)1,
                        (size_t)1);
}
