#ifdef __CUDACC__
KERNEL void step(const float *x, float *out, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
        out[i * n + j] = 0.25f * (x[(i - 1) * n + j] + x[(i + 1) * n + j] + x[i * n + j - 1] + x[i * n + j + 1]);
}
#else
static void step(const float *restrict x, float *restrict out, int n) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; ++i)
#pragma omp simd
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25f * (x[(i - 1) * n + j] + x[(i + 1) * n + j] + x[i * n + j - 1] + x[i * n + j + 1]);
}
void program(float *x, float *out, int n) {
    for (int k = 0; k < 5; ++k) step(x, out, n), step(out, x, n);
}
#endif
