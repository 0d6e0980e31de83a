// A sum in two steps: warps add with shuffles, blocks with shared memory, and the blocks' sums with an atomic.
#include <vector>

#include "check.h"

__inline__ __device__ double sum_of_warp(double value) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

__global__ void reduce(const double *values, int n, double *total) {
    __shared__ double sums[32];
    double mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += values[i];
    mine = sum_of_warp(mine);
    int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    if (lane == 0) sums[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        mine = sum_of_warp(lane < blockDim.x / warpSize ? sums[lane] : 0.0);
        if (lane == 0) atomicAdd(total, mine);
    }
}

int main() {
    const int n = 1'000'003;
    std::vector<double> values(n);
    double expected = 0;
    for (int i = 0; i < n; i++) expected += values[i] = i % 1000;

    double *device, *total, result;
    CHECK(cudaMalloc(&device, n * sizeof(double)));
    CHECK(cudaMalloc(&total, sizeof(double)));
    CHECK(cudaMemset(total, 0, sizeof(double)));
    CHECK(cudaMemcpy(device, values.data(), n * sizeof(double), cudaMemcpyHostToDevice));
    reduce<<<64, 256>>>(device, n, total);
    CHECK(cudaMemcpy(&result, total, sizeof result, cudaMemcpyDeviceToHost));
    EXPECT(result == expected); // whole numbers: any order of adding gives the same
    std::printf("the sum is %.0f\n", result);
}
