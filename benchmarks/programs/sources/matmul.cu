#ifdef __CUDACC__
KERNEL void matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float as[16][16], bs[16][16];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        as[y][x] = a[row * n + k + x];
        bs[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += as[y][i] * bs[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
#else
void program(const float *restrict a, const float *restrict b, float *restrict c, int n) {
#pragma omp parallel for
    for (int rows = 0; rows < n; rows += 4) {
        memset(c + rows * n, 0, 16 * (size_t)n);
        for (int k = 0; k < n; ++k)
#pragma omp simd
            for (int j = 0; j < n; ++j)
                for (int i = rows; i < rows + 4; ++i) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}
#endif
