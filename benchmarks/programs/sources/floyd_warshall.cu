#ifdef __CUDACC__
KERNEL void relax(float *d, int k, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    d[i * n + j] = fminf(d[i * n + j], d[i * n + k] + d[k * n + j]);
}
#else
void program(float *d, int n) {
    for (int k = 0; k < n; ++k) {
        const float *through = d + k * n;
#pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            float first = d[i * n + k], *row = d + i * n;
#pragma omp simd
            for (int j = 0; j < n; ++j) row[j] = row[j] < first + through[j] ? row[j] : first + through[j];
        }
    }
}
#endif
