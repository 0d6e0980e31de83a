// Kernels that launch kernels: a quicksort whose parts are sorted by kernels of their own (nvcc -rdc=true).
#include <algorithm>
#include <vector>

#include "check.h"

const int SMALL = 64, DEEPEST = 12;

__device__ void sort_small(int *values, int n) {
    for (int i = 1; i < n; i++) {
        int value = values[i], at = i;
        for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
        values[at] = value;
    }
}

__global__ void sort(int *values, int n, int depth) {
    if (n <= SMALL || depth == DEEPEST) {
        sort_small(values, n);
        return;
    }
    int pivot = values[n / 2], left = 0, right = n - 1;
    while (left <= right) {
        while (values[left] < pivot) left++;
        while (values[right] > pivot) right--;
        if (left <= right) {
            int other = values[left];
            values[left++] = values[right], values[right--] = other;
        }
    }
    cudaStream_t stream; // the two parts need not wait for each other
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (right > 0) sort<<<1, 1>>>(values, right + 1, depth + 1);
    if (left < n - 1) sort<<<1, 1, 0, stream>>>(values + left, n - left, depth + 1);
    cudaStreamDestroy(stream);
}

int main() {
    const int n = 5000;
    std::vector<int> values(n), result(n);
    unsigned state = 42;
    for (int &value : values) value = (state = state * 1664525 + 1013904223) >> 12;
    int *device;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    CHECK(cudaMemcpy(device, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    sort<<<1, 1>>>(device, n, 0);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(result.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
    std::sort(values.begin(), values.end());
    EXPECT(result == values);
    std::printf("%d numbers sorted by kernels that launch kernels\n", n);
}
