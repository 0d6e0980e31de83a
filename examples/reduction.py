"""The sum of an array: shared memory down to one warp, shuffles, one atomic a block. `reduction.py [FILE.png]`"""

import sys

import numpy as np
from arrays import build
from pictures import curves, save

from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void sum(const float* x, float* out, int n) {
    __shared__ float part[256];
    const int t = threadIdx.x;
    float total = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) total += x[i];
    part[t] = total;
    __syncthreads();
    for (int k = 128; k >= 32; k >>= 1) {
        if (t < k) part[t] += part[t + k];
        __syncthreads();
    }
    if (t < 32) {
        float v = part[t];
        for (int k = 16; k; k >>= 1) v += __shfl_down_sync(0xffffffffu, v, k);
        if (t == 0) atomicAdd(out, v);
    }
}
"""


def main(path: str = "reduction.png", *, n: int = 300_007) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = build(dev, SOURCE).get_kernel("sum")
    x = np.random.default_rng(2).random(n, dtype=np.float32)
    x_device = dev.array(x, stream=stream)
    sizes = np.geomspace(10, n, 40).astype(int)  # sums of more and more numbers, whose mean settles
    out = dev.zeros(len(sizes), np.float32, stream=stream)
    for k, size in enumerate(sizes):
        launch(stream, LaunchConfig(grid=64, block=256), kernel, x_device, out[k:], np.int32(size))
    sums = out.to_numpy(stream=stream)
    np.testing.assert_allclose(sums, [x[:size].sum(dtype=np.float64) for size in sizes], rtol=1e-5)
    save(path, curves(sums / sizes, np.full(len(sizes), 0.5)))
    for resource in (x_device, out, stream):
        resource.close()
    print(f"reduction: the sum of {n} numbers is {sums[-1]:.1f}, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
