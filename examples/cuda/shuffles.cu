// What lanes of a warp can do together: shuffles, votes, matches, reductions.
#include "check.h"

__global__ void warp(unsigned *out) {
    unsigned lane = threadIdx.x % 32, all = 0xffffffff, ok = 1;
    ok &= __shfl_sync(all, lane * 3, 5) == 15;
    ok &= __shfl_up_sync(all, lane, 4) == (lane < 4 ? lane : lane - 4);
    ok &= __shfl_down_sync(all, lane, 7, 16) == (lane % 16 + 7 < 16 ? lane + 7 : lane);
    ok &= __shfl_xor_sync(all, lane, 9) == (lane ^ 9);
    ok &= __shfl_sync(all, 1.5 * lane, 31 - lane) == 1.5 * (31 - lane);
    ok &= __ballot_sync(all, lane % 3 == 0) == 0x49249249;
    ok &= __any_sync(all, lane == 17) && !__all_sync(all, lane == 17) && __all_sync(all, lane < 32);
    ok &= __popc(__match_any_sync(all, lane / 8)) == 8;
    int same;
    __match_all_sync(all, 42, &same);
    ok &= same;
    ok &= __reduce_add_sync(all, lane) == 496 && __reduce_max_sync(all, lane) == 31;
    if (lane % 2) {
        unsigned active = __activemask();
        ok &= __shfl_sync(0xaaaaaaaa, lane, 7) == 7 && (active & 1u << lane);
    }
    __syncwarp();
    out[blockIdx.x * blockDim.x + threadIdx.x] = ok;
}

int main() {
    const int n = 256;
    unsigned *device, host[n];
    CHECK(cudaMalloc(&device, sizeof host));
    warp<<<2, n / 2>>>(device);
    CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(host[i] == 1);
    std::printf("%d lanes agree\n", n);
}
