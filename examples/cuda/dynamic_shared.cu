// Shared memory whose size the launch gives: more than 48 KiB has to be asked for; several arrays share it.
#include <algorithm>
#include <vector>

#include "check.h"

__global__ void sort_rows(int *values, int width) {
    extern __shared__ int row[];
    int *mine = values + blockIdx.x * width;
    for (int i = threadIdx.x; i < width; i += blockDim.x) row[i] = mine[i];
    for (int size = 2; size <= width; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < width; i += blockDim.x) {
                int partner = i ^ stride;
                if (partner > i && (row[i] > row[partner]) == ((i & size) == 0)) {
                    int other = row[i];
                    row[i] = row[partner], row[partner] = other;
                }
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < width; i += blockDim.x) mine[i] = row[i];
}

int main() {
    const int width = 16384, rows = 3;
    const size_t bytes = width * sizeof(int); // 64 KiB
    std::vector<int> values(rows * width), result(rows * width);
    unsigned state = 7;
    for (int &value : values) value = (state = state * 1103515245 + 12345) >> 8;
    int *device;
    CHECK(cudaMalloc(&device, rows * bytes));
    CHECK(cudaMemcpy(device, values.data(), rows * bytes, cudaMemcpyHostToDevice));

    sort_rows<<<rows, 512, bytes>>>(device, width);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue); // not without asking
    CHECK(cudaFuncSetAttribute(sort_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    sort_rows<<<rows, 512, bytes>>>(device, width);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(result.data(), device, rows * bytes, cudaMemcpyDeviceToHost));
    for (int r = 0; r < rows; r++) std::sort(values.begin() + r * width, values.begin() + (r + 1) * width);
    EXPECT(result == values);
    std::printf("%d rows of %d numbers, sorted in %zu bytes of shared memory\n", rows, width, bytes);
}
