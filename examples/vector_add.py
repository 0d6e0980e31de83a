"""The sum of two vectors: a thread for each element, arrays there and back."""

import numpy as np

import cupola
from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""


def main(n: int = 100_003) -> None:
    dev = Device()
    dev.set_current()
    add = cupola.compile(SOURCE).get_kernel("add")
    rng = np.random.default_rng(1)
    a, b = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    with dev.stream() as stream:
        c = dev.empty(n, np.float32)
        launch(stream, LaunchConfig.for_elements(n), add, dev.array(a), dev.array(b), c, n)
        np.testing.assert_array_equal(c.to_numpy(), a + b)
    print(f"vector add: {n} sums as NumPy has them, on {dev.name}")


if __name__ == "__main__":
    main()
