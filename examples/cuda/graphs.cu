// A graph captured from two streams, launched many times, and one made node by node, whose kernel gets other arguments.
#include "check.h"

__global__ void add(int *value, int more) { *value += more; }
__global__ void multiply(int *value, int factor) { *value *= factor; }

__device__ int result;

int main() {
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
    int *values;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&side));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaMallocManaged(&values, 2 * sizeof(int)));
    values[0] = values[1] = 0;

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<1, 1, 0, stream>>>(values, 1);
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(side, fork));
    multiply<<<1, 1, 0, stream>>>(values, 2);
    add<<<1, 1, 0, side>>>(values + 1, 5);
    CHECK(cudaEventRecord(join, side));
    CHECK(cudaStreamWaitEvent(stream, join));
    CHECK(cudaMemcpyToSymbolAsync(result, values, sizeof(int), 0, cudaMemcpyDefault, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    size_t count;
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    EXPECT(count == 4);
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 10; i++) CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    int copied;
    CHECK(cudaMemcpyFromSymbol(&copied, result, sizeof copied));
    EXPECT(values[0] == 2046 && values[1] == 50 && copied == 2046);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));

    int more = 7;
    void *arguments[] = {&values, &more};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void *>(add);
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    cudaGraphNode_t kernel, copy;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &params));
    CHECK(cudaGraphAddMemcpyNodeFromSymbol(&copy, graph, &kernel, 1, values + 1, result, sizeof(int), 0,
                                           cudaMemcpyDefault));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    more = 100;
    params.func = reinterpret_cast<void *>(multiply);
    CHECK(cudaGraphExecKernelNodeSetParams(executable, kernel, &params));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(values[0] == 2053 * 100 && values[1] == 2046);
    std::printf("a graph of %zu nodes, launched ten times\n", count);
}
