"""A graph captured once and replayed with new data: only the input buffer's contents change between replays."""

import numpy as np
from arrays import build

from cupola import Device, LaunchConfig, LegacyPinnedMemoryResource, launch

SOURCE = r"""
extern "C" __global__ void scale(float* x, float factor, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
extern "C" __global__ void shift(float* x, float by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}
"""


def main(n: int = 10_007, replays: int = 3) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    module = build(dev, SOURCE)
    scale, shift = module.get_kernel("scale"), module.get_kernel("shift")
    host = LegacyPinnedMemoryResource().allocate(n * 4)
    numbers = np.from_dlpack(host).view(np.float32)
    x = dev.zeros(n, np.float32, stream=stream)

    config = LaunchConfig(grid=(n + 255) // 256, block=256)
    builder = stream.create_graph_builder()
    builder.begin_building()
    x.copy_from(numbers, stream=builder)
    launch(builder, config, scale, x, np.float32(3), np.int32(n))
    launch(builder, config, shift, x, np.float32(0.5), np.int32(n))
    graph = builder.end_building().complete()

    for replay in range(replays):
        numbers[:] = np.arange(n) + replay
        graph.launch(stream)
        result = x.to_numpy(stream=stream)
        np.testing.assert_array_equal(result, (np.arange(n, dtype=np.float32) + replay) * 3 + np.float32(0.5))
    for resource in (graph, builder, x, host, stream):
        resource.close()
    print(f"graph: {replays} replays, each with new data, on {dev.name}")


if __name__ == "__main__":
    main()
