"""A histogram with more bins than a block's shared memory holds: the blocks of a cluster keep a part each.

Every block reads its share of the data and counts in the memory of whichever block keeps the bin. Clusters need
compute capability 9.0.
"""

import numpy as np

from cupola import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void histogram(const unsigned short* x, unsigned* bins, int n, int bins_each) {
    extern __shared__ unsigned mine[];
    auto cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < bins_each; i += blockDim.x) mine[i] = 0;
    cluster.sync();  // all parts are zero
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned *theirs = cluster.map_shared_rank(mine, x[i] / bins_each);
        atomicAdd(&theirs[x[i] % bins_each], 1u);
    }
    cluster.sync();  // nobody counts any more
    unsigned *part = bins + cluster.block_rank() * bins_each;
    for (int i = threadIdx.x; i < bins_each; i += blockDim.x) atomicAdd(&part[i], mine[i]);
}
"""


def main(n: int = 300_007, bins: int = 32768, cluster: int = 4) -> None:
    dev = Device()
    dev.set_current()
    if dev.compute_capability < (9, 0):
        print(f"cluster histogram: clusters need compute capability 9.0; {dev.name} has none")
        return
    stream = dev.create_stream()
    # The folders with the headers of cooperative groups.
    options = ProgramOptions(std="c++17", arch=f"sm_{dev.arch}", lineinfo=True)
    kernel = Program(SOURCE, code_type="c++", options=options).compile("cubin").get_kernel("histogram")
    x = np.random.default_rng(6).normal(bins / 2, bins / 9, n).clip(0, bins - 1).astype(np.uint16)
    x_device = dev.array(x, stream=stream)
    bins_device = dev.zeros(bins, np.uint32, stream=stream)
    bins_each = bins // cluster
    config = LaunchConfig(grid=4, cluster=cluster, block=256, shmem_size=4 * bins_each)  # the grid is in clusters
    launch(stream, config, kernel, x_device, bins_device, np.int32(n), np.int32(bins_each))
    counts = bins_device.to_numpy(stream=stream)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=bins))
    for resource in (x_device, bins_device, stream):
        resource.close()
    print(f"cluster histogram: {n} values in {bins} bins, {bins_each} in each block of a cluster, on {dev.name}")


if __name__ == "__main__":
    main()
