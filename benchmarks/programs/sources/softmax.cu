#ifdef __CUDACC__
KERNEL void softmax(const float *x, float *out, int columns) {
    __shared__ float s[8], t[8];
    const float *row = x + blockIdx.x * columns;
    float most = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < columns; i += 256) most = fmaxf(most, row[i]);
    for (int k = 16; k; k >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, k));
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = most;
    __syncthreads();
    for (int k = 0; k < 8; ++k) most = fmaxf(most, s[k]);
    for (int i = threadIdx.x; i < columns; i += 256) sum += expf(row[i] - most);
    for (int k = 16; k; k >>= 1) sum += __shfl_xor_sync(~0u, sum, k);
    if (threadIdx.x % 32 == 0) t[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < 8; ++k) sum += t[k];
    for (int i = threadIdx.x; i < columns; i += 256) out[blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}
#else
void program(const float *restrict x, float *restrict out, int rows, int columns) {
#pragma omp parallel for
    for (int r = 0; r < rows; ++r) {
        const float *row = x + r * columns;
        float *to = out + r * columns, most = -1e30f, sum = 0;
#pragma omp simd reduction(max : most)
        for (int i = 0; i < columns; ++i) most = row[i] > most ? row[i] : most;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < columns; ++i) sum += to[i] = expf(row[i] - most);
#pragma omp simd
        for (int i = 0; i < columns; ++i) to[i] /= sum;
    }
}
#endif
