"""A picture blurred, and its edges, from a tile with a margin in shared memory. `image_filter.py [FILE.png]`"""

import sys

import numpy as np
from pictures import save

import cupola
from cupola import Device, LaunchConfig, launch

SOURCE = r"""
const int T = 16, R = 2, W = T + 2 * R;  // a tile, its margin, and both

extern "C" __global__ void filter(const float* in, const float* weights, float* out, int width, int height) {
    __shared__ float tile[W][W];
    const int left = blockIdx.x * T - R, top = blockIdx.y * T - R;
    for (int k = threadIdx.y * T + threadIdx.x; k < W * W; k += T * T) {
        const int x = min(max(left + k % W, 0), width - 1), y = min(max(top + k / W, 0), height - 1);
        tile[k / W][k % W] = in[y * width + x];
    }
    __syncthreads();
    const int i = blockIdx.x * T + threadIdx.x, j = blockIdx.y * T + threadIdx.y;
    if (i >= width || j >= height) return;
    float total = 0;
    for (int y = 0; y <= 2 * R; ++y)
        for (int x = 0; x <= 2 * R; ++x)
            total += weights[y * (2 * R + 1) + x] * tile[threadIdx.y + y][threadIdx.x + x];
    out[j * width + i] = total;
}
"""


def main(path: str = "image_filter.png", *, width: int = 240, height: int = 200) -> None:
    dev = Device()
    dev.set_current()
    kernel = cupola.compile(SOURCE).get_kernel("filter")
    x, y = np.meshgrid(np.linspace(-2, 2, width), np.linspace(-2, 2, height))
    rings = (np.sin(9 * np.hypot(x, y)) * (1.6 - np.maximum(abs(x), abs(y))) > 0).astype(np.float32)
    line = np.array([1, 4, 6, 4, 1])
    blur = (np.outer(line, line) / 256).astype(np.float32)
    edges = np.full((5, 5), -1 / 24, np.float32)
    edges[2, 2] = 1
    shown = [rings]
    with dev.stream() as stream:
        picture, out = dev.array(rings), dev.empty(rings.shape, np.float32)
        config = LaunchConfig(grid=(-(-width // 16), -(-height // 16)), block=(16, 16))
        for weights in (blur, edges):
            launch(stream, config, kernel, picture, dev.array(weights), out, width, height)
            shown.append(out.to_numpy())
            wide = np.pad(rings, 2, mode="edge")
            terms = [weights[j, i] * wide[j : j + height, i : i + width] for j in range(5) for i in range(5)]
            np.testing.assert_allclose(shown[-1], sum(terms), atol=1e-5)
    beside = np.hstack([shown[0], shown[1], abs(shown[2])])
    save(path, (255 * np.clip(beside, 0, 1)).astype(np.uint8))
    print(f"image filter: {width} x {height} pixels blurred, and their edges, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
