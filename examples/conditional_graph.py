"""A graph that decides on the device: Newton's method iterates until all roots are good, with no host in the loop."""

import numpy as np
from arrays import build

from cupola import Device, LaunchConfig
from cupola.graph import GraphDefinition

# NVRTC does not know the function of the device runtime by itself, so it is declared.
SOURCE = r"""
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long condition, unsigned int value);

extern "C" __global__ void start(const double* a, double* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = a[i];
}
extern "C" __global__ void step(const double* a, double* x, unsigned int* open, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    x[i] = 0.5 * (x[i] + a[i] / x[i]);
    if (fabs(x[i] * x[i] - a[i]) > 1e-12 * a[i]) atomicAdd(open, 1u);
}
extern "C" __global__ void decide(unsigned int* open, unsigned int* rounds, unsigned long long again) {
    *rounds += 1;
    cudaGraphSetConditional(again, *open != 0 && *rounds < 100);
}
"""


def main(n: int = 1_000) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    module = build(dev, SOURCE)
    a, x = dev.array(np.linspace(1, 1e6, n), stream=stream), dev.empty(n, np.float64, stream=stream)
    still_open, rounds = (dev.empty(1, np.uint32, stream=stream) for _ in range(2))

    config, one = LaunchConfig(grid=(n + 255) // 256, block=256), LaunchConfig(grid=1, block=1)
    definition = GraphDefinition()
    again = definition.create_condition(default_value=1)
    begin = definition.launch(config, module.get_kernel("start"), a, x, np.int32(n))
    count = definition.memset(rounds.buffer, 0, 4)
    loop = definition.join(begin, count).while_loop(again)
    nothing_open = loop.body.memset(still_open.buffer, 0, 4)
    step = nothing_open.launch(config, module.get_kernel("step"), a, x, still_open, np.int32(n))
    step.launch(one, module.get_kernel("decide"), still_open, rounds, again)
    graph = definition.instantiate()

    graph.launch(stream)
    np.testing.assert_allclose(x.to_numpy(stream=stream), np.sqrt(np.linspace(1, 1e6, n)), rtol=1e-11)
    (needed,) = rounds.to_numpy(stream=stream)
    for resource in (graph, a, x, still_open, rounds, stream):
        resource.close()
    print(f"conditional graph: {n} square roots in {needed} rounds of one launch, on {dev.name}")


if __name__ == "__main__":
    main()
