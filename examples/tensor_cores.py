"""A matrix product on tensor cores, by the fragments of <mma.h>: products of halves, summed in single precision."""

import numpy as np

from cupola import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
#include <mma.h>
using namespace nvcuda;

// C = A B; each of the four warps of a block makes a tile of 16 by 16 of C.
extern "C" __global__ void product(const half* a, const half* b, float* c, int n) {
    const int warp = threadIdx.x / 32;
    const int row = (blockIdx.y * 2 + warp / 2) * 16, column = (blockIdx.x * 2 + warp % 2) * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_tile;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b_tile;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> total;
    wmma::fill_fragment(total, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(a_tile, a + row * n + k, n);
        wmma::load_matrix_sync(b_tile, b + k * n + column, n);
        wmma::mma_sync(total, a_tile, b_tile, total);
    }
    wmma::store_matrix_sync(c + row * n + column, total, n, wmma::mem_row_major);
}
"""


def main(n: int = 256) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    options = ProgramOptions(std="c++17", arch=f"sm_{dev.arch}")
    kernel = Program(SOURCE, code_type="c++", options=options).compile("cubin").get_kernel("product")
    rng = np.random.default_rng(5)
    a, b = (rng.random((n, n), dtype=np.float32).astype(np.float16) for _ in range(2))
    a_device, b_device = dev.array(a, stream=stream), dev.array(b, stream=stream)
    c_device = dev.empty((n, n), np.float32, stream=stream)
    launch(stream, LaunchConfig(grid=(n // 32, n // 32), block=128), kernel, a_device, b_device, c_device, np.int32(n))
    c = c_device.to_numpy(stream=stream)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4)
    for resource in (a_device, b_device, c_device, stream):
        resource.close()
    print(f"tensor cores: {n} x {n} halves as NumPy has it, on {dev.name}")


if __name__ == "__main__":
    main()
