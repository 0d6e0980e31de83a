"""Groups of points by k-means: threads find the nearest center, atomics add up its points. `k_means.py [FILE.png]`"""

import sys

import numpy as np
from pictures import colors, save

import cupola
from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void assign(const float2* points, const float2* centers, int* nearest, float* sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float2 p = points[i];
    int best = 0;
    float least = 3e38f;
    for (int c = 0; c < K; ++c) {
        const float dx = p.x - centers[c].x, dy = p.y - centers[c].y, d = dx * dx + dy * dy;
        if (d < least) least = d, best = c;
    }
    nearest[i] = best;
    atomicAdd(&sums[3 * best], p.x);
    atomicAdd(&sums[3 * best + 1], p.y);
    atomicAdd(&sums[3 * best + 2], 1.0f);
}

extern "C" __global__ void move(float2* centers, float* sums) {
    float* sum = sums + 3 * threadIdx.x;
    if (sum[2]) centers[threadIdx.x] = make_float2(sum[0] / sum[2], sum[1] / sum[2]);
    sum[0] = sum[1] = sum[2] = 0;
}
"""


def main(path: str = "k_means.png", *, n: int = 6000, k: int = 5, rounds: int = 12) -> None:
    dev = Device()
    dev.set_current()
    code = cupola.compile(SOURCE, options={"define_macro": ("K", str(k))})
    assign, move = code.get_kernel("assign"), code.get_kernel("move")
    rng = np.random.default_rng(3)
    middles = np.array([(0.2, 0.3), (0.75, 0.2), (0.5, 0.55), (0.2, 0.8), (0.8, 0.8)])
    points = (middles[rng.integers(0, 5, n)] + rng.normal(0, 0.06, (n, 2))).astype(np.float32)
    with dev.stream() as stream:
        data, nearest = dev.array(points), dev.empty(n, np.int32)
        centers, sums = dev.array(points[:k]), dev.zeros((k, 3), np.float32)
        for _ in range(rounds):
            launch(stream, LaunchConfig.for_elements(n), assign, data, centers, nearest, sums, n)
            launch(stream, LaunchConfig(grid=1, block=k), move, centers, sums)
        found, group = centers.to_numpy(), nearest.to_numpy()
    np.testing.assert_allclose(found, [points[group == c].mean(axis=0) for c in range(k)], atol=1e-3)
    picture = np.full((400, 400, 3), 255, np.uint8)
    column, row = np.clip(400 * points, 0, 399).astype(int).T
    picture[row, column] = colors((group + 1) / (k + 2))
    save(path, picture)
    print(f"k-means: {np.bincount(group, minlength=k).tolist()} points in {k} groups, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
