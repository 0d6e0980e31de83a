#ifdef __CUDACC__
KERNEL void solve(const float *b, const float *d, float *c, float *x, int systems, int n) { /* a thread, a system */
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= systems) return;
    float last = 0, value = 0;
    for (int i = 0; i < n; ++i) {
        float m = 1.0f / (b[i * systems + s] + last);
        value = (d[i * systems + s] + value) * m;
        c[i * systems + s] = last = -m;
        x[i * systems + s] = value;
    }
    for (int i = n - 2; i >= 0; --i) x[i * systems + s] = value = x[i * systems + s] - c[i * systems + s] * value;
}
#else
void program(const float *restrict b, const float *restrict d, float *restrict c, float *restrict x, int systems,
             int n) {
#pragma omp parallel for
    for (int first = 0; first < systems; first += 256)
        for (int i = 0; i < n; ++i)
#pragma omp simd
            for (int s = first; s < first + 256; ++s) {
                float last = i ? c[(i - 1) * systems + s] : 0, value = i ? x[(i - 1) * systems + s] : 0;
                float m = 1.0f / (b[i * systems + s] + last);
                c[i * systems + s] = -m;
                x[i * systems + s] = (d[i * systems + s] + value) * m;
            }
#pragma omp parallel for
    for (int first = 0; first < systems; first += 256)
        for (int i = n - 2; i >= 0; --i)
#pragma omp simd
            for (int s = first; s < first + 256; ++s)
                x[i * systems + s] -= c[i * systems + s] * x[(i + 1) * systems + s];
}
#endif
