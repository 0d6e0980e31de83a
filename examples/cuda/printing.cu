// printf and assert on the device.
#include <cassert>

#include "check.h"

__global__ void say(const char *name, int n) {
    assert(n == 3);
    if (threadIdx.x < n)
        printf("thread %u of block %d: %s, %5.2f %c %lld\n", threadIdx.x, blockIdx.x, name, 2.5 * threadIdx.x,
               'a' + threadIdx.x, 1ll << 40);
}

int main() {
    char *name;
    CHECK(cudaMallocManaged(&name, 16));
    std::snprintf(name, 16, "hello");
    say<<<1, 32>>>(name, 3);
    CHECK(cudaDeviceSynchronize());
    std::printf("printed\n");
}
