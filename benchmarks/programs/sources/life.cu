#ifdef __CUDACC__
KERNEL void generation(const unsigned char *x, unsigned char *out, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= n - 1 || j >= n - 1) return;
    const unsigned char *at = x + i * n + j;
    int around = at[-n - 1] + at[-n] + at[-n + 1] + at[-1] + at[1] + at[n - 1] + at[n] + at[n + 1];
    out[i * n + j] = around == 3 || (around == 2 && at[0]);
}
#else
static void generation(const unsigned char *restrict x, unsigned char *restrict out, int n) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; ++i)
#pragma omp simd
        for (int j = 1; j < n - 1; ++j) {
            const unsigned char *at = x + i * n + j;
            unsigned char around = at[-n - 1] + at[-n] + at[-n + 1] + at[-1] + at[1] + at[n - 1] + at[n] + at[n + 1];
            out[i * n + j] = (around == 3) | ((around == 2) & at[0]);
        }
}
void program(unsigned char *x, unsigned char *out, int n) {
    for (int k = 0; k < 5; ++k) generation(x, out, n), generation(out, x, n);
}
#endif
