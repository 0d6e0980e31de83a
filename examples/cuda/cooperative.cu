// Cooperative groups: tiles of a warp, and a grid whose blocks wait for each other between two steps.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void smooth(float *a, float *b, int n, int steps, float *sum) {
    cg::grid_group grid = cg::this_grid();
    for (int step = 0; step < steps; step++) {
        for (int i = grid.thread_rank(); i < n; i += grid.size())
            b[i] = i == 0 || i == n - 1 ? a[i] : 0.25f * a[i - 1] + 0.5f * a[i] + 0.25f * a[i + 1];
        grid.sync();
        float *other = a;
        a = b, b = other;
    }
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::this_thread_block());
    float mine = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) mine += a[i];
    mine = cg::reduce(tile, mine, cg::plus<float>());
    if (tile.thread_rank() == 0) atomicAdd(sum, mine);
}

int main() {
    int n = 4096, steps = 20, blocks, device, cooperative;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, smooth, 128, 0));
    EXPECT(cooperative && blocks > 0);

    std::vector<float> values(n), other(n);
    for (int i = 0; i < n; i++) values[i] = i % 64 == 0 ? 64.0f : 0.0f;
    float *a, *b, *sum, result;
    CHECK(cudaMalloc(&a, n * sizeof(float)));
    CHECK(cudaMalloc(&b, n * sizeof(float)));
    CHECK(cudaMalloc(&sum, sizeof(float)));
    CHECK(cudaMemset(sum, 0, sizeof(float)));
    CHECK(cudaMemcpy(a, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    void *arguments[] = {&a, &b, &n, &steps, &sum};
    CHECK(cudaLaunchCooperativeKernel(smooth, dim3(8), dim3(128), arguments, 0, nullptr));
    CHECK(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));

    double expected = 0;
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < n; i++)
            other[i] =
                i == 0 || i == n - 1 ? values[i] : 0.25f * values[i - 1] + 0.5f * values[i] + 0.25f * values[i + 1];
        values.swap(other);
    }
    for (float value : values) expected += value;
    EXPECT(result > expected - 0.5 && result < expected + 0.5);
    std::printf("%d steps on a grid that waits, sum %.1f\n", steps, result);
}
