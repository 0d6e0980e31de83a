#ifdef __CUDACC__
KERNEL void spmv(const int *starts, const int *columns, const float *values, const float *x, float *y, int n) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32; /* a warp for each row */
    if (row >= n) return;
    float sum = 0;
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) sum += values[k] * x[columns[k]];
    for (int k = 16; k; k >>= 1) sum += __shfl_down_sync(~0u, sum, k);
    if (!lane) y[row] = sum;
}
#else
void program(const int *restrict starts, const int *restrict columns, const float *restrict values,
             const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for schedule(static, 256)
    for (int row = 0; row < n; ++row) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
        y[row] = sum;
    }
}
#endif
