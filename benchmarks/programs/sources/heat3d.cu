#ifdef __CUDACC__
KERNEL void step(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= n - 1 || j >= n - 1) return;
    int plane = n * n, at = plane + j * n + i;
    float below = x[at - plane], here = x[at];
    for (int k = 1; k < n - 1; ++k, at += plane) {
        float above = x[at + plane];
        out[at] = here + 0.1f * (x[at - 1] + x[at + 1] + x[at - n] + x[at + n] + below + above - 6.0f * here);
        below = here, here = above;
    }
}
#else
static void step(const float *restrict x, float *restrict out, int n) {
    int plane = n * n;
#pragma omp parallel for collapse(2)
    for (int k = 1; k < n - 1; ++k)
        for (int j = 1; j < n - 1; ++j)
#pragma omp simd
            for (int i = 1; i < n - 1; ++i) {
                int at = k * plane + j * n + i;
                out[at] = x[at] + 0.1f * (x[at - 1] + x[at + 1] + x[at - n] + x[at + n] + x[at - plane] + x[at + plane] -
                                          6.0f * x[at]);
            }
}
void program(float *x, float *out, int n) {
    for (int k = 0; k < 3; ++k) step(x, out, n), step(out, x, n);
}
#endif
