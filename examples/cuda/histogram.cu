// How often each byte occurs: atomics in dynamic shared memory, then in global memory.
#include <vector>

#include "check.h"

__global__ void count(const unsigned char *text, int n, unsigned *bins, int bin_count) {
    extern __shared__ unsigned mine[];
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x) mine[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[text[i]], 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < bin_count; bin += blockDim.x) atomicAdd(&bins[bin], mine[bin]);
}

int main() {
    const int n = 300'000, bin_count = 256;
    std::vector<unsigned char> text(n);
    std::vector<unsigned> expected(bin_count), result(bin_count);
    unsigned state = 1;
    for (auto &byte : text) {
        state = state * 1664525 + 1013904223;
        byte = state >> 24 & state >> 16;
        expected[byte]++;
    }

    unsigned char *device;
    unsigned *bins;
    CHECK(cudaMalloc(&device, n));
    CHECK(cudaMalloc(&bins, bin_count * sizeof(unsigned)));
    CHECK(cudaMemset(bins, 0, bin_count * sizeof(unsigned)));
    CHECK(cudaMemcpy(device, text.data(), n, cudaMemcpyHostToDevice));
    count<<<20, 512, bin_count * sizeof(unsigned)>>>(device, n, bins, bin_count);
    CHECK(cudaMemcpy(result.data(), bins, bin_count * sizeof(unsigned), cudaMemcpyDeviceToHost));
    EXPECT(result == expected);
    std::printf("%u zeros among %d bytes\n", result[0], n);
}
