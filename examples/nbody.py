"""An n-body step by brute force: every body's pull on every other, in tiles of shared memory. `nbody.py [FILE.png]`"""

import sys

import numpy as np
from arrays import build
from pictures import points, save

from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void accelerations(const float4* bodies, float4* out, int n, float softening) {
    extern __shared__ float4 tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int first = 0; first < n; first += blockDim.x) {
        const int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < blockDim.x; ++k) {
            const float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            const float pull = tile[k].w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        __syncthreads();
    }
    if (i < n) out[i] = make_float4(ax, ay, az, 0);
}
"""


def main(path: str = "nbody.png", *, n: int = 1000, block: int = 128) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = build(dev, SOURCE).get_kernel("accelerations")
    bodies = np.random.default_rng(5).normal(0.5, 0.15, (n, 4)).clip(0, 1).astype(np.float32)
    softening = np.float32(1e-2)
    bodies_device = dev.array(bodies, stream=stream)
    out_device = dev.empty(bodies.shape, bodies.dtype, stream=stream)
    config = LaunchConfig(grid=(n + block - 1) // block, block=block, shmem_size=block * 16)
    launch(stream, config, kernel, bodies_device, out_device, np.int32(n), softening)
    result = out_device.to_numpy(stream=stream)[:, :3]
    position, mass = bodies[:, :3].astype(np.float64), bodies[:, 3].astype(np.float64)
    distance = position[None, :, :] - position[:, None, :]
    cubed = ((distance**2).sum(axis=2) + softening) ** -1.5
    expected = (distance * (cubed * mass)[:, :, None]).sum(axis=1)
    np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-2)
    pull = np.linalg.norm(result, axis=1)
    save(path, points(position[:, 0], position[:, 1], 0.8 * pull / pull.max()))
    print(f"n-body: {n} bodies pull on each other as NumPy has it, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
