// Four streams with copies and kernels at the same time, events between them, and a function of the host at the end.
#include <atomic>

#include "check.h"

__global__ void square(int *values, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) values[i] *= values[i];
}

__global__ void add(const int *more, int *values, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) values[i] += more[i];
}

static std::atomic<int> called{0};

int main() {
    const int streams = 4, n = 10'000;
    cudaStream_t stream[streams];
    cudaEvent_t ready[streams], start, stop;
    int *host, *device[streams];
    CHECK(cudaMallocHost(&host, streams * n * sizeof(int)));
    for (int i = 0; i < streams * n; i++) host[i] = i % 1000;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int s = 0; s < streams; s++) {
        CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&ready[s], cudaEventDisableTiming));
        CHECK(cudaMallocAsync(&device[s], n * sizeof(int), stream[s]));
        CHECK(cudaMemcpyAsync(device[s], host + s * n, n * sizeof(int), cudaMemcpyHostToDevice, stream[s]));
        square<<<8, 128, 0, stream[s]>>>(device[s], n);
        CHECK(cudaEventRecord(ready[s], stream[s]));
    }
    for (int s = 1; s < streams; s++) { // the first stream adds up what the others have
        CHECK(cudaStreamWaitEvent(stream[0], ready[s]));
        add<<<8, 128, 0, stream[0]>>>(device[s], device[0], n);
    }
    CHECK(cudaMemcpyAsync(host, device[0], n * sizeof(int), cudaMemcpyDeviceToHost, stream[0]));
    CHECK(cudaLaunchHostFunc(stream[0], [](void *data) { ++*static_cast<std::atomic<int> *>(data); }, &called));
    CHECK(cudaStreamSynchronize(stream[0]));
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));

    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    EXPECT(milliseconds > 0 && called == 1);
    for (int i = 0; i < n; i++) EXPECT(host[i] == streams * (i % 1000) * (i % 1000));
    for (int s = 0; s < streams; s++) {
        CHECK(cudaFreeAsync(device[s], stream[s]));
        CHECK(cudaEventDestroy(ready[s]));
        CHECK(cudaStreamDestroy(stream[s]));
    }
    CHECK(cudaFreeHost(host));
    std::printf("%d streams met\n", streams);
}
