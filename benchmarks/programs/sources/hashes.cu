SHARED_BOTH unsigned mix(unsigned h) { /* the finalizer of MurmurHash3, eight rounds */
    for (int k = 0; k < 8; ++k) {
        h ^= h >> 16, h *= 0x85ebca6bu;
        h ^= h >> 13, h *= 0xc2b2ae35u;
        h ^= h >> 16, h += (unsigned)k;
    }
    return h;
}
#ifdef __CUDACC__
KERNEL void hashes(const unsigned *x, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = mix(x[i]);
}
#else
void program(const unsigned *restrict x, unsigned *restrict out, int n) {
#pragma omp parallel for simd
    for (int i = 0; i < n; ++i) out[i] = mix(x[i]);
}
#endif
