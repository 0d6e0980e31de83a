"""A histogram of bytes: atomics in shared memory, then in global memory. `histogram.py [FILE.png]`"""

import sys

import numpy as np
from arrays import build
from pictures import bars, save

from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void histogram(const unsigned char* x, unsigned* bins, int n) {
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[x[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
"""


def main(path: str = "histogram.png", *, n: int = 500_009) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = build(dev, SOURCE).get_kernel("histogram")
    x = np.random.default_rng(4).normal(128, 30, n).clip(0, 255).astype(np.uint8)
    x_device = dev.array(x, stream=stream)
    bins_device = dev.zeros(256, np.uint32, stream=stream)
    launch(stream, LaunchConfig(grid=32, block=256), kernel, x_device, bins_device, np.int32(n))
    bins = bins_device.to_numpy(stream=stream)
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=256))
    save(path, bars(bins))
    for resource in (x_device, bins_device, stream):
        resource.close()
    print(f"histogram: {n} bytes, the commonest is {bins.argmax()}, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
