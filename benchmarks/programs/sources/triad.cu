#ifdef __CUDACC__
KERNEL void triad(const double *b, const double *c, double *a, double q, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a[i] = b[i] + q * c[i];
}
#else
void program(const double *restrict b, const double *restrict c, double *restrict a, double q, int n) {
#pragma omp parallel for simd
    for (int i = 0; i < n; ++i) a[i] = b[i] + q * c[i];
}
#endif
