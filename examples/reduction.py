"""The sum of an array: a grid-stride loop, shared memory down to one warp, then shuffles, then one atomic a block."""

import numpy as np
from arrays import build

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


def main(n: int = 300_007) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = build(dev, SOURCE).get_kernel("sum")
    x = np.random.default_rng(2).random(n, dtype=np.float32)
    x_device = dev.array(x, stream=stream)
    out = dev.zeros(1, np.float32, stream=stream)
    launch(stream, LaunchConfig(grid=64, block=256), kernel, x_device, out, np.int32(n))
    result = out.to_numpy(stream=stream)[0]
    np.testing.assert_allclose(result, x.sum(dtype=np.float64), rtol=1e-5)
    for resource in (x_device, out, stream):
        resource.close()
    print(f"reduction: the sum of {n} numbers is {result:.1f}, on {dev.name}")


if __name__ == "__main__":
    main()
