"""The sum of two vectors: a thread for each element, arrays there and back. `vector_add.py [FILE.png]`"""

import sys

import numpy as np
from pictures import curves, save

import cupola
from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""


def main(path: str = "vector_add.png", *, n: int = 100_003) -> None:
    dev = Device()
    dev.set_current()
    add = cupola.compile(SOURCE).get_kernel("add")
    rng = np.random.default_rng(1)
    a = np.sin(np.linspace(0, 20, n, dtype=np.float32))
    b = rng.random(n, dtype=np.float32) - 2
    with dev.stream() as stream:
        c = dev.empty(n, np.float32)
        launch(stream, LaunchConfig.for_elements(n), add, dev.array(a), dev.array(b), c, n)
        result = c.to_numpy()
    np.testing.assert_array_equal(result, a + b)
    save(path, curves(a, b, result))
    print(f"vector add: {n} sums as NumPy has them, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
