#ifdef __CUDACC__
KERNEL void partial(const float *x, float *parts, int n) {
    __shared__ float s[8];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int k = 16; k; k >>= 1) sum += __shfl_down_sync(~0u, sum, k);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < 8 ? s[threadIdx.x] : 0;
        for (int k = 4; k; k >>= 1) sum += __shfl_down_sync(~0u, sum, k);
        if (!threadIdx.x) parts[blockIdx.x] = sum;
    }
}
KERNEL void total(const float *parts, float *out, int count) {
    float sum = 0;
    for (int i = threadIdx.x; i < count; i += 32) sum += parts[i];
    for (int k = 16; k; k >>= 1) sum += __shfl_down_sync(~0u, sum, k);
    if (!threadIdx.x) *out = sum;
}
#else
void program(const float *restrict x, float *restrict parts, float *restrict out, int n, int count) {
    float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    for (int i = 0; i < n; ++i) sum += x[i];
    *out = sum;
}
#endif
