// Running sums: each block scans its part, then the parts' sums are scanned and added.
#include <vector>

#include "check.h"

const int BLOCK = 256;

__global__ void scan_blocks(const int *in, int *out, int *sums, int n) {
    __shared__ int buffer[2][BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x, from = 0;
    buffer[0][threadIdx.x] = i < n ? in[i] : 0;
    for (int step = 1; step < BLOCK; step *= 2) {
        __syncthreads();
        int value = buffer[from][threadIdx.x];
        if (threadIdx.x >= step) value += buffer[from][threadIdx.x - step];
        buffer[1 - from][threadIdx.x] = value;
        from = 1 - from;
    }
    if (i < n) out[i] = buffer[from][threadIdx.x];
    if (sums && threadIdx.x == BLOCK - 1) sums[blockIdx.x] = buffer[from][threadIdx.x];
}

__global__ void add_sums(int *out, const int *sums, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (blockIdx.x > 0 && i < n) out[i] += sums[blockIdx.x - 1];
}

int main() {
    const int n = 60'000, blocks = (n + BLOCK - 1) / BLOCK;
    static_assert(blocks <= BLOCK, "one block scans the sums");
    std::vector<int> values(n), result(n);
    for (int i = 0; i < n; i++) values[i] = (i * 7919) % 101 - 50;

    int *in, *out, *sums;
    CHECK(cudaMalloc(&in, n * sizeof(int)));
    CHECK(cudaMalloc(&out, n * sizeof(int)));
    CHECK(cudaMalloc(&sums, blocks * sizeof(int)));
    CHECK(cudaMemcpy(in, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    scan_blocks<<<blocks, BLOCK>>>(in, out, sums, n);
    scan_blocks<<<1, BLOCK>>>(sums, sums, nullptr, blocks);
    add_sums<<<blocks, BLOCK>>>(out, sums, n);
    CHECK(cudaMemcpy(result.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));

    int expected = 0;
    for (int i = 0; i < n; i++) EXPECT(result[i] == (expected += values[i]));
    std::printf("%d running sums, the last one is %d\n", n, expected);
}
