"""Sorting with a bitonic network: blocks sort what fits into shared memory."""

import numpy as np
from pictures import colors, save

import cupola
from cupola import Device, LaunchConfig, launch

SOURCE = r"""
const int PART = 1024;  // elements of a block, of twice as many as threads

__device__ void order(unsigned& a, unsigned& b, bool up) {
    if ((a > b) == up) { const unsigned c = a; a = b, b = c; }
}
// Steps of the network between elements that are `reach` apart, in sequences of `size`.
extern "C" __global__ void far(unsigned* x, int size, int reach) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x, i = t / reach * 2 * reach + t % reach;
    order(x[i], x[i + reach], (i & size) == 0);
}

// All steps within the part of a block, for sequences of `first` to `last`.
extern "C" __global__ void near(unsigned* x, int first, int last) {
    __shared__ unsigned part[PART];
    const int t = threadIdx.x, start = blockIdx.x * PART;
    part[t] = x[start + t], part[t + PART / 2] = x[start + t + PART / 2];
    for (int size = first; size <= last; size *= 2)
        for (int reach = min(size, PART) / 2; reach > 0; reach /= 2) {
            __syncthreads();
            const int i = t / reach * 2 * reach + t % reach;
            order(part[i], part[i + reach], ((start + i) & size) == 0);
        }
    __syncthreads();
    x[start + t] = part[t], x[start + t + PART / 2] = part[t + PART / 2];
}
"""


def main(path: str = "sort.png", *, n: int = 20_000, part: int = 1024) -> None:
    dev = Device()
    dev.set_current()
    far, near = map(cupola.compile(SOURCE).get_kernel, ("far", "near"))
    x = np.random.default_rng(8).integers(0, 2**32, n, dtype=np.uint32)
    whole = max(part, 1 << (n - 1).bit_length())  # a power of two; what is added goes to the end
    with dev.stream() as stream:
        data = dev.array(np.pad(x, (0, whole - n), constant_values=2**32 - 1))
        stages = [data.to_numpy()]
        config = LaunchConfig(grid=whole // part, block=part // 2)
        launch(stream, config, near, data, 2, part)
        for size in (2**k for k in range(part.bit_length(), whole.bit_length())):
            for reach in (2**k for k in reversed(range(part.bit_length() - 1, size.bit_length() - 1))):
                launch(stream, config, far, data, size, reach)
            launch(stream, config, near, data, size, size)
            stages.append(data.to_numpy())
    np.testing.assert_array_equal(stages[-1][:n], np.sort(x))
    save(path, colors(np.kron([stage[:: whole // 512] for stage in stages], np.ones((30, 1))) / 2**32))
    print(f"sort: {n} numbers as NumPy sorts them, see {path}, on {dev.name}")


if __name__ == "__main__":
    main()
