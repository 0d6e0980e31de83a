#ifdef __CUDACC__
KERNEL void convolve(const float *x, const float *weights, float *out, int n) {
    __shared__ float s[22][38], w[49];
    int t = threadIdx.y * 32 + threadIdx.x, column = blockIdx.x * 32, row = blockIdx.y * 16;
    if (t < 49) w[t] = weights[t];
    for (int i = t; i < 22 * 38; i += 512) {
        int r = row + i / 38 - 3, c = column + i % 38 - 3;
        s[i / 38][i % 38] = r >= 0 && c >= 0 && r < n && c < n ? x[r * n + c] : 0.0f;
    }
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 7; ++i)
        for (int j = 0; j < 7; ++j) sum += w[i * 7 + j] * s[threadIdx.y + i][threadIdx.x + j];
    out[(row + threadIdx.y) * n + column + threadIdx.x] = sum;
}
#else
void program(const float *restrict x, const float *restrict weights, float *restrict out, int n) {
#pragma omp parallel for
    for (int r = 0; r < n; ++r) {
        memset(out + r * n, 0, 4 * (size_t)n);
        for (int i = 0; i < 7; ++i)
            for (int j = 0; j < 7; ++j) {
                if (r + i < 3 || r + i - 3 >= n) continue;
                const float *from = x + (r + i - 3) * n + j - 3;
                float w = weights[i * 7 + j];
                int first = j < 3 ? 3 - j : 0, last = j > 3 ? n + 3 - j : n;
#pragma omp simd
                for (int c = first; c < last; ++c) out[r * n + c] += w * from[c];
            }
    }
}
#endif
