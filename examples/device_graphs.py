"""Kernels that launch graphs: a dispatcher on the device takes jobs from a queue, with no host in the loop."""

from typing import Any

import numpy as np

from cupola import Device, LaunchConfig, ObjectCode, Program, ProgramOptions
from cupola.graph import Graph, GraphCompleteOptions, GraphDefinition, KernelNode

# The dispatcher launches the graph of the next job, and then itself, as tails: they run in that order.
SOURCE = r"""
extern "C" __global__ void square(double* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= x[i];
}
extern "C" __global__ void halve(double* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] /= 2;
}
struct Queue { int next, count; };
extern "C" __global__ void dispatch(Queue* queue, const int* jobs, const cudaGraphExec_t* graphs) {
    if (queue->next == queue->count) return;
    cudaGraphLaunch(graphs[jobs[queue->next++]], cudaStreamGraphTailLaunch);
    cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
"""
JOBS = [0, 1, 1, 0, 1, 0]  # 0: square, 1: halve and halve again


def main(n: int = 1_000) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    options = ProgramOptions(arch=f"sm_{dev.arch}", relocatable_device_code=True, lineinfo=True)
    code: ObjectCode = Program(SOURCE, "c++", options).compile("cubin")
    one, many = LaunchConfig(grid=1, block=1), LaunchConfig(grid=(n + 255) // 256, block=256)

    def graph_of(config: LaunchConfig, *kernels: tuple[Any, ...]) -> Graph:
        """An executable graph of kernels in their order, which kernels may launch."""
        definition = GraphDefinition()
        place: GraphDefinition | KernelNode = definition
        for name, *arguments in kernels:
            place = place.launch(config, code.get_kernel(name), *arguments)
        return definition.instantiate(GraphCompleteOptions(device_launch=True, upload_stream=stream))

    numbers = np.linspace(0.5, 1.5, n)
    x = dev.array(numbers, stream=stream)
    half = ("halve", x, np.int32(n))
    graphs = [graph_of(many, ("square", x, np.int32(n))), graph_of(many, half, half)]
    handles = dev.array([int(graph.handle) for graph in graphs], np.uint64, stream=stream)
    jobs = dev.array(JOBS, np.int32, stream=stream)
    queue = dev.array([0, len(JOBS)], np.int32, stream=stream)
    dispatcher = graph_of(one, ("dispatch", queue, jobs, handles))

    dispatcher.launch(stream)
    for job in JOBS:
        numbers = numbers / 4 if job else numbers**2
    np.testing.assert_allclose(x.to_numpy(stream=stream), numbers)
    taken, _ = queue.to_numpy(stream=stream)
    for graph in (dispatcher, *graphs):
        graph.close()
    for resource in (x, handles, jobs, queue, stream):
        resource.close()
    print(f"device graphs: {taken} jobs of one launch, on {dev.name}")


if __name__ == "__main__":
    main()
