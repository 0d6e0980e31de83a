#ifdef __CUDACC__
KERNEL void transpose(const float *x, float *out, int n) {
    __shared__ float s[32][33];
    int column = blockIdx.x * 32, row = blockIdx.y * 32;
    for (int i = threadIdx.y; i < 32; i += 8) s[i][threadIdx.x] = x[(row + i) * n + column + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8) out[(column + i) * n + row + threadIdx.x] = s[threadIdx.x][i];
}
#else
void program(const float *restrict x, float *restrict out, int n) {
#pragma omp parallel for collapse(2)
    for (int row = 0; row < n; row += 32)
        for (int column = 0; column < n; column += 32)
            for (int i = 0; i < 32; ++i)
                for (int j = 0; j < 32; ++j) out[(column + i) * n + row + j] = x[(row + j) * n + column + i];
}
#endif
