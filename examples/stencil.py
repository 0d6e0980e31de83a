"""A two-dimensional stencil: the mean of four neighbors, several sweeps, two buffers that swap roles."""

import numpy as np
from arrays import build

from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void sweep(const float* x, float* y, int width, int height) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height) return;
    const int k = j * width + i;
    const bool inside = i > 0 && j > 0 && i < width - 1 && j < height - 1;
    y[k] = inside ? 0.25f * (x[k - 1] + x[k + 1] + x[k - width] + x[k + width]) : x[k];
}
"""


def main(width: int = 301, height: int = 203, sweeps: int = 4) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = build(dev, SOURCE).get_kernel("sweep")
    grid = np.random.default_rng(6).random((height, width), dtype=np.float32)
    source, target = dev.array(grid, stream=stream), dev.array(grid, stream=stream)
    config = LaunchConfig.for_elements((width, height), block=(32, 8))
    for _ in range(sweeps):
        launch(stream, config, kernel, source, target, np.int32(width), np.int32(height))
        source, target = target, source
        inside = 0.25 * (grid[1:-1, :-2] + grid[1:-1, 2:] + grid[:-2, 1:-1] + grid[2:, 1:-1])
        grid[1:-1, 1:-1] = inside
    result = source.to_numpy(stream=stream)
    np.testing.assert_allclose(result, grid, rtol=1e-5)
    for resource in (source, target, stream):
        resource.close()
    print(f"stencil: {sweeps} sweeps over {height} x {width} as NumPy has them, on {dev.name}")


if __name__ == "__main__":
    main()
