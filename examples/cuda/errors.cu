// Errors as programs meet them: of calls, of launches, of kernels, and going on after a reset.
#include <cstring>

#include "check.h"

__global__ void store(int *p, int i) { p[i] = i; }
__global__ void big(int *p) {
    __shared__ int memory[1024];
    memory[threadIdx.x] = threadIdx.x;
    __syncthreads();
    *p = memory[blockDim.x - 1 - threadIdx.x];
}

// Before CUDA 13 the first, since then the second.
static bool is_bad_shape(cudaError_t status) {
    return status == cudaErrorInvalidConfiguration || status == cudaErrorInvalidValue;
}

int main() {
    int *p;
    EXPECT(cudaMalloc(&p, size_t(1) << 60) == cudaErrorMemoryAllocation);
    EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(cudaSetDevice(99) == cudaErrorInvalidDevice);
    EXPECT(!std::strcmp(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice"));
    EXPECT(!std::strcmp(cudaGetErrorString(cudaErrorInvalidDevice), "invalid device ordinal"));
    EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);

    CHECK(cudaMalloc(&p, 100 * sizeof(int)));
    store<<<1, 1025>>>(p, 0);
    EXPECT(is_bad_shape(cudaGetLastError()));
    store<<<0, 1>>>(p, 0);
    EXPECT(is_bad_shape(cudaGetLastError()));
    big<<<1, 32, 1 << 20>>>(p);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, big));
    EXPECT(attributes.sharedSizeBytes == 4096 && attributes.maxThreadsPerBlock == 1024);
    EXPECT(cudaMemcpy(p, p + 50, 8, static_cast<cudaMemcpyKind>(9)) == cudaErrorInvalidMemcpyDirection);
    EXPECT(cudaGetLastError() == cudaErrorInvalidMemcpyDirection);

    store<<<1, 1>>>(nullptr, 0);                  // no memory
    const cudaError_t early = cudaGetLastError(); // it may have failed already
    EXPECT(early == cudaSuccess || early == cudaErrorIllegalAddress);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    EXPECT(cudaMalloc(&p, 4) == cudaErrorIllegalAddress); // the context is lost
    std::printf("all errors are as expected\n");
}
