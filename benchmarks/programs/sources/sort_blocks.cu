#ifdef __CUDACC__
KERNEL void sort_blocks(const int *x, int *out) { /* a bitonic network for each 512 numbers */
    __shared__ int s[512];
    int t = threadIdx.x, at = blockIdx.x * 512;
    s[t] = x[at + t], s[t + 256] = x[at + t + 256];
    for (int size = 2; size <= 512; size *= 2)
        for (int stride = size / 2; stride; stride /= 2) {
            __syncthreads();
            int i = 2 * t - (t & (stride - 1)), up = (i & size) == 0;
            int a = s[i], b = s[i + stride];
            if ((a > b) == up) s[i] = b, s[i + stride] = a;
        }
    __syncthreads();
    out[at + t] = s[t], out[at + t + 256] = s[t + 256];
}
#else
void program(const int *restrict x, int *restrict out, int n) {
#pragma omp parallel for
    for (int block = 0; block < n / 512; ++block) {
        int *s = out + block * 512;
        memcpy(s, x + block * 512, 2048);
        for (int size = 2; size <= 512; size *= 2)
            for (int stride = size / 2; stride; stride /= 2)
                for (int start = 0; start < 512; start += 2 * stride) {
                    int up = (start & size) == 0;
                    for (int i = start; i < start + stride; ++i) {
                        int a = s[i], b = s[i + stride], low = a < b ? a : b, high = a < b ? b : a;
                        s[i] = up ? low : high, s[i + stride] = up ? high : low;
                    }
                }
    }
}
#endif
