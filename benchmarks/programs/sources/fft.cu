#ifdef __CUDACC__
KERNEL void fft(const float2 *x, const float2 *roots, float2 *out) { /* 1024 points for each block, Stockham */
    __shared__ float2 s[2][1024];
    int t = threadIdx.x, from = 0;
    for (int i = t; i < 1024; i += 256) s[0][i] = x[blockIdx.x * 1024 + i];
    for (int half = 512, width = 1; half; half /= 2, width *= 2, from ^= 1) {
        __syncthreads();
        for (int i = t; i < 512; i += 256) {
            int p = i / width, q = i % width;
            float2 a = s[from][i], b = s[from][i + 512], w = roots[p * width];
            float2 d = make_float2(a.x - b.x, a.y - b.y);
            s[from ^ 1][q + width * 2 * p] = make_float2(a.x + b.x, a.y + b.y);
            s[from ^ 1][q + width * (2 * p + 1)] = make_float2(d.x * w.x - d.y * w.y, d.x * w.y + d.y * w.x);
        }
    }
    __syncthreads();
    for (int i = t; i < 1024; i += 256) out[blockIdx.x * 1024 + i] = s[from][i];
}
#else
void program(const float *restrict x, const float *restrict roots, float *restrict out, int batches) {
#pragma omp parallel for
    for (int batch = 0; batch < batches; ++batch) {
        float s[2][2048];
        int from = 0;
        memcpy(s[0], x + batch * 2048, sizeof s[0]);
        for (int half = 512, width = 1; half; half /= 2, width *= 2, from ^= 1)
            for (int p = 0; p < half; ++p) {
                float wx = roots[2 * p * width], wy = roots[2 * p * width + 1];
                float *restrict to = s[from ^ 1] + 4 * width * p;
                const float *restrict source = s[from] + 2 * p * width;
                for (int q = 0; q < width; ++q) {
                    float ax = source[2 * q], ay = source[2 * q + 1];
                    float bx = source[2 * q + 1024], by = source[2 * q + 1025], dx = ax - bx, dy = ay - by;
                    to[2 * q] = ax + bx, to[2 * q + 1] = ay + by;
                    to[2 * (q + width)] = dx * wx - dy * wy, to[2 * (q + width) + 1] = dx * wy + dy * wx;
                }
            }
        memcpy(out + batch * 2048, s[from], sizeof s[0]);
    }
}
#endif
