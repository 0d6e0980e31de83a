// A product of matrices with tiles in shared memory; the size of a tile is a parameter of the template.
#include <cmath>
#include <vector>

#include "check.h"

template <int TILE> __global__ void multiply(const float *a, const float *b, float *c, int n) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < n; start += TILE) {
        int k = start + threadIdx.x, l = start + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < n && k < n ? a[row * n + k] : 0;
        tile_b[threadIdx.y][threadIdx.x] = l < n && column < n ? b[l * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

template <int TILE> void try_tile(int n, const float *a, const float *b, float *c, const std::vector<float> &expected) {
    std::vector<float> result(n * n);
    dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    CHECK(cudaMemset(c, 0xff, n * n * sizeof(float)));
    multiply<TILE><<<grid, block>>>(a, b, c, n);
    CHECK(cudaMemcpy(result.data(), c, n * n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n * n; i++) EXPECT(std::fabs(result[i] - expected[i]) <= 1e-4f * n);
}

int main() {
    const int n = 150;
    std::vector<float> a(n * n), b(n * n), expected(n * n);
    for (int i = 0; i < n * n; i++) a[i] = i % 17 / 17.0f, b[i] = i % 13 / 13.0f;
    for (int row = 0; row < n; row++)
        for (int k = 0; k < n; k++)
            for (int column = 0; column < n; column++) expected[row * n + column] += a[row * n + k] * b[k * n + column];

    float *device_a, *device_b, *device_c;
    for (float **matrix : {&device_a, &device_b, &device_c}) CHECK(cudaMalloc(matrix, n * n * sizeof(float)));
    CHECK(cudaMemcpy(device_a, a.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
    try_tile<8>(n, device_a, device_b, device_c, expected);
    try_tile<16>(n, device_a, device_b, device_c, expected);
    try_tile<32>(n, device_a, device_b, device_c, expected);
    std::printf("products of %d x %d matrices with three sizes of tiles\n", n, n);
}
