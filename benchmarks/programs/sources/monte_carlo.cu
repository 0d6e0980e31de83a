SHARED_BOTH int hits(unsigned seed, int count) { /* xorshift; points in the quarter of a circle */
    unsigned state = seed * 2654435761u + 12345u;
    int inside = 0;
    for (int k = 0; k < count; ++k) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        float x = (state >> 16) * (1.0f / 65536), y = (state & 65535) * (1.0f / 65536);
        inside += x * x + y * y < 1.0f;
    }
    return inside;
}
#ifdef __CUDACC__
KERNEL void points(int *out, int n, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = hits(i, count);
}
#else
void program(int *restrict out, int n, int count) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) out[i] = hits((unsigned)i, count);
}
#endif
