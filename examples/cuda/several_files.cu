// Device functions and variables of another file (several_files_device.cu): nvcc -rdc=true.
#include <vector>

#include "check.h"

extern __device__ float polynomial(float x);
extern __device__ int calls;
extern __constant__ float coefficients[4];
typedef float (*Function)(float);
extern __device__ Function table[2];

__global__ void evaluate(float *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = polynomial(values[i]) + table[i % 2](values[i]);
}

int main() {
    const int n = 1000;
    const float host[4] = {1, -2, 0.5f, 3};
    std::vector<float> values(n), result(n);
    for (int i = 0; i < n; i++) values[i] = i % 8;
    float *device;
    CHECK(cudaMalloc(&device, n * sizeof(float)));
    CHECK(cudaMemcpy(device, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(coefficients, host, sizeof host));
    evaluate<<<(n + 255) / 256, 256>>>(device, n);
    CHECK(cudaMemcpy(result.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float x = values[i], other = i % 2 ? -x : x + 1;
        EXPECT(result[i] == ((host[3] * x + host[2]) * x + host[1]) * x + host[0] + other);
    }
    int counted;
    CHECK(cudaMemcpyFromSymbol(&counted, calls, sizeof counted));
    EXPECT(counted == n);
    std::printf("%d calls of another file's function\n", counted);
}
