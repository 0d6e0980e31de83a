// A filter whose weights are in constant memory, set by symbol; and a table that the source itself fills.
#include <vector>

#include "check.h"

const int RADIUS = 3;

__constant__ float weights[2 * RADIUS + 1];
__constant__ char letters[] = "cupola";
__device__ int edges = 0;

__global__ void filter(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; k++) {
        if (i + k < 0 || i + k >= n) atomicAdd(&edges, 1);
        else sum += weights[k + RADIUS] * in[i + k];
    }
    out[i] = sum;
}

__global__ void spell(char *out) { out[threadIdx.x] = letters[threadIdx.x]; }

int main() {
    const int n = 1000;
    float host_weights[2 * RADIUS + 1] = {1, 2, 4, 8, 4, 2, 1}, back[2];
    std::vector<float> values(n), result(n);
    for (int i = 0; i < n; i++) values[i] = i % 10;
    CHECK(cudaMemcpyToSymbol(weights, host_weights, sizeof host_weights));
    host_weights[0] = -1;
    CHECK(cudaMemcpyToSymbol(weights, host_weights, sizeof(float), 0));
    CHECK(cudaMemcpyFromSymbol(back, weights, sizeof back, 2 * sizeof(float)));
    EXPECT(back[0] == 4 && back[1] == 8);

    float *in, *out;
    CHECK(cudaMalloc(&in, n * sizeof(float)));
    CHECK(cudaMalloc(&out, n * sizeof(float)));
    CHECK(cudaMemcpy(in, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    filter<<<(n + 127) / 128, 128>>>(in, out, n);
    CHECK(cudaMemcpy(result.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int k = -RADIUS; k <= RADIUS; k++)
            if (i + k >= 0 && i + k < n) sum += host_weights[k + RADIUS] * values[i + k];
        EXPECT(result[i] == sum);
    }
    int counted;
    size_t size;
    void *address;
    CHECK(cudaMemcpyFromSymbol(&counted, edges, sizeof counted));
    CHECK(cudaGetSymbolSize(&size, weights));
    CHECK(cudaGetSymbolAddress(&address, edges));
    CHECK(cudaMemset(address, 0, sizeof(int)));
    EXPECT(counted == RADIUS * (RADIUS + 1) && size == sizeof host_weights);

    char text[sizeof letters];
    spell<<<1, sizeof letters>>>(reinterpret_cast<char *>(out));
    CHECK(cudaMemcpy(text, out, sizeof text, cudaMemcpyDeviceToHost));
    std::printf("filtered by %s\n", text);
}
