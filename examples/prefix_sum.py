"""Prefix sums in three launches: each block scans its part with shuffles, one block scans the totals, all add."""

import numpy as np
from arrays import build

from cupola import Device, LaunchConfig, launch

SOURCE = r"""
__device__ int warp_scan(int v, int lane) {
    for (int k = 1; k < 32; k <<= 1) {
        const int before = __shfl_up_sync(0xffffffffu, v, k);
        if (lane >= k) v += before;
    }
    return v;
}

extern "C" __global__ void scan_blocks(const int* x, int* out, int* totals, int n) {
    __shared__ int warps[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int v = warp_scan(i < n ? x[i] : 0, lane);
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    if (warp == 0) warps[lane] = warp_scan(lane < blockDim.x / 32 ? warps[lane] : 0, lane);
    __syncthreads();
    if (warp > 0) v += warps[warp - 1];
    if (i < n) out[i] = v;
    if (totals != nullptr && threadIdx.x == blockDim.x - 1) totals[blockIdx.x] = v;
}

extern "C" __global__ void add_totals(int* out, const int* totals, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x > 0 && i < n) out[i] += totals[blockIdx.x - 1];
}
"""

BLOCK = 256


def main(n: int = 50_021) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    module = build(dev, SOURCE)
    scan, add = module.get_kernel("scan_blocks"), module.get_kernel("add_totals")
    x = np.random.default_rng(7).integers(-100, 100, n, dtype=np.int32)
    blocks = (n + BLOCK - 1) // BLOCK
    assert blocks <= 1024, "one block scans the totals"
    x_device = dev.array(x, stream=stream)
    out, totals = dev.empty(x.shape, x.dtype, stream=stream), dev.empty(blocks, np.int32, stream=stream)
    launch(stream, LaunchConfig(grid=blocks, block=BLOCK), scan, x_device, out, totals, np.int32(n))
    launch(stream, LaunchConfig(grid=1, block=1024), scan, totals, totals, np.uintp(0), np.int32(blocks))
    launch(stream, LaunchConfig(grid=blocks, block=BLOCK), add, out, totals, np.int32(n))
    np.testing.assert_array_equal(out.to_numpy(stream=stream), np.cumsum(x))
    for resource in (x_device, out, totals, stream):
        resource.close()
    print(f"prefix sum: {n} numbers as NumPy has them, on {dev.name}")


if __name__ == "__main__":
    main()
