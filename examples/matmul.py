"""A matrix product from tiles in shared memory: with a tile size that the program chooses. `matmul.py [FILE.png]`"""

import sys

import numpy as np
from arrays import build
from pictures import colors, save

from cupola import Device, LaunchConfig, launch

SOURCE = r"""
template <int T>
__global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float a_tile[T][T], b_tile[T][T];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * T + y, column = blockIdx.x * T + x;
    float total = 0;
    for (int k0 = 0; k0 < n; k0 += T) {
        a_tile[y][x] = row < n && k0 + x < n ? a[row * n + k0 + x] : 0;
        b_tile[y][x] = k0 + y < n && column < n ? b[(k0 + y) * n + column] : 0;
        __syncthreads();
        for (int k = 0; k < T; ++k) total += a_tile[y][k] * b_tile[k][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = total;
}
"""


def main(path: str = "matmul.png", *, n: int = 200, tile: int = 16) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = build(dev, SOURCE, f"matmul<{tile}>").get_kernel(f"matmul<{tile}>")
    i, j = np.arange(n), np.arange(n)[:, None]
    a = np.exp(-((i - j) ** 2) / 50).astype(np.float32)  # a product with it blurs the columns of the other matrix
    b = (np.hypot(i - n / 2, j - n / 2) % 20 < 10).astype(np.float32)
    a_device, b_device = dev.array(a, stream=stream), dev.array(b, stream=stream)
    c_device = dev.empty((n, n), np.float32, stream=stream)
    tiles = (n + tile - 1) // tile
    config = LaunchConfig(grid=(tiles, tiles), block=(tile, tile))
    launch(stream, config, kernel, a_device, b_device, c_device, np.int32(n))
    c = c_device.to_numpy(stream=stream)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-3)
    for resource in (a_device, b_device, c_device, stream):
        resource.close()
    save(path, np.hstack([colors((m - m.min()) / np.ptp(m)) for m in (a, b, c)]))
    print(f"matmul: {n} x {n} in tiles of {tile} as NumPy has it, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
