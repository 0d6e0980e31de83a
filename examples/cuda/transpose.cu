// Transposing a matrix in pitched memory by tiles; the padding of the tile keeps its columns in different banks.
#include <vector>

#include "check.h"

const int TILE = 32, ROWS = 8;

__global__ void transpose(const int *in, size_t in_pitch, int *out, size_t out_pitch, int width, int height) {
    __shared__ int tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS)
        if (x < width && y + i < height) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * in_pitch + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS)
        if (x < height && y + i < width) out[(y + i) * out_pitch + x] = tile[threadIdx.x][threadIdx.y + i];
}

int main() {
    const int width = 123, height = 301;
    std::vector<int> matrix(width * height), result(width * height);
    for (int i = 0; i < width * height; i++) matrix[i] = i;

    int *in, *out;
    size_t in_pitch, out_pitch;
    CHECK(cudaMallocPitch(&in, &in_pitch, width * sizeof(int), height));
    CHECK(cudaMallocPitch(&out, &out_pitch, height * sizeof(int), width));
    CHECK(cudaMemcpy2D(in, in_pitch, matrix.data(), width * sizeof(int), width * sizeof(int), height,
                       cudaMemcpyHostToDevice));
    dim3 grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE), block(TILE, ROWS);
    transpose<<<grid, block>>>(in, in_pitch / sizeof(int), out, out_pitch / sizeof(int), width, height);
    CHECK(cudaMemcpy2D(result.data(), height * sizeof(int), out, out_pitch, height * sizeof(int), width,
                       cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) EXPECT(result[x * height + y] == matrix[y * width + x]);
    std::printf("%d x %d transposed, rows %zu bytes apart\n", width, height, in_pitch);
}
