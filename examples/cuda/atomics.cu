// Atomic operations of all kinds: a lock-free list, a maximum of floats by compare-and-swap, and counters.
#include <vector>

#include "check.h"

struct Cell {
    int value, next;
};

__device__ int head = -1;
__device__ unsigned wrapping;
__device__ unsigned long long largest;
__device__ int smallest = 1 << 30;

__device__ float atomic_max(float *address, float value) {
    int *bits = reinterpret_cast<int *>(address);
    int old = *(volatile int *)bits, seen;  // others change it meanwhile
    do {
        seen = old;
        if (__int_as_float(seen) >= value) break;
        old = atomicCAS(bits, seen, __float_as_int(value));
    } while (old != seen);
    return __int_as_float(old);
}

__global__ void all(Cell *cells, float *maximum, unsigned *flags, double *sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cells[i].value = i;
    cells[i].next = atomicExch(&head, i);
    atomic_max(maximum, 0.5f * ((i * 37) % 1000));
    atomicOr(&flags[i / 32], 1u << i % 32);
    atomicAnd(&flags[i / 32], ~(i % 3 ? 0u : 1u << i % 32));
    atomicAdd(sum, 0.25);
    atomicInc(&wrapping, 9);
    atomicMax(&largest, (unsigned long long)i << 33);
    atomicMin(&smallest, i + 5);
}

int main() {
    const int n = 4096;
    Cell *cells;
    float *maximum;
    unsigned *flags;
    double *sum;
    CHECK(cudaMallocManaged(&cells, n * sizeof(Cell)));
    CHECK(cudaMallocManaged(&maximum, sizeof(float)));
    CHECK(cudaMallocManaged(&flags, n / 8));
    CHECK(cudaMallocManaged(&sum, sizeof(double)));
    *maximum = -1;
    *sum = 0;
    CHECK(cudaMemset(flags, 0, n / 8));
    all<<<n / 256, 256>>>(cells, maximum, flags, sum);
    CHECK(cudaDeviceSynchronize());

    int at, least;
    unsigned counter;
    unsigned long long most;
    CHECK(cudaMemcpyFromSymbol(&at, head, sizeof at));
    CHECK(cudaMemcpyFromSymbol(&counter, wrapping, sizeof counter));
    CHECK(cudaMemcpyFromSymbol(&most, largest, sizeof most));
    CHECK(cudaMemcpyFromSymbol(&least, smallest, sizeof least));
    std::vector<bool> seen(n);
    int length = 0;
    for (; at >= 0; at = cells[at].next, length++) {
        EXPECT(!seen[cells[at].value]);
        seen[cells[at].value] = true;
    }
    EXPECT(length == n && *maximum == 499.5f && *sum == 0.25 * n);
    EXPECT(counter == n % 10 && most == (n - 1ull) << 33 && least == 5);
    for (int i = 0; i < n; i++) EXPECT((flags[i / 32] >> i % 32 & 1) == (i % 3 != 0));
    std::printf("a list of %d cells\n", length);
}
