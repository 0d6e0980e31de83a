#ifdef __CUDACC__
KERNEL void gemv(const double *a, const double *x, double *y, int columns) {
    const double *row = a + (size_t)(blockIdx.x * 4 + threadIdx.y) * columns;
    double sum = 0;
    for (int i = threadIdx.x; i < columns; i += 32) sum += row[i] * x[i];
    for (int k = 16; k; k >>= 1) sum += __shfl_down_sync(~0u, sum, k);
    if (!threadIdx.x) y[blockIdx.x * 4 + threadIdx.y] = sum;
}
#else
void program(const double *restrict a, const double *restrict x, double *restrict y, int rows, int columns) {
#pragma omp parallel for
    for (int r = 0; r < rows; ++r) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < columns; ++i) sum += a[(size_t)r * columns + i] * x[i];
        y[r] = sum;
    }
}
#endif
