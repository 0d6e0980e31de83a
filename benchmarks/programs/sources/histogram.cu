#ifdef __CUDACC__
KERNEL void histogram(const unsigned char *x, unsigned *bins, int n) {
    __shared__ unsigned s[256];
    s[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
        unsigned four = ((const unsigned *)x)[i];
        for (int k = 0; k < 4; ++k) atomicAdd(&s[four >> 8 * k & 255], 1u);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
KERNEL void clear(unsigned *bins) { bins[threadIdx.x] = 0; }
#else
void program(const unsigned char *restrict x, unsigned *restrict bins, int n) {
    memset(bins, 0, 1024);
#pragma omp parallel
    {
        unsigned own[4][256] = {{0}};
#pragma omp for
        for (int i = 0; i < n / 4; ++i)
            for (int k = 0; k < 4; ++k) own[k][x[4 * i + k]]++;
#pragma omp critical
        for (int b = 0; b < 256; ++b) bins[b] += own[0][b] + own[1][b] + own[2][b] + own[3][b];
    }
}
#endif
