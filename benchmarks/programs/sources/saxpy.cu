#ifdef __CUDACC__
KERNEL void saxpy(const float *x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
#else
void program(const float *restrict x, float *restrict y, float a, int n) {
#pragma omp parallel for simd
    for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
#endif
