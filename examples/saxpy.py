"""saxpy as a template, instantiated for two types: y = a x + y.

The simplest use of cupola: compile, copy in, launch, copy out.
"""

from typing import Any

import numpy as np
from arrays import build

from cupola import Device, LaunchConfig, launch

SOURCE = r"""
template <typename T>
__global__ void saxpy(T a, const T* x, T* y, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


def main(n: int = 100_003) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    module = build(dev, SOURCE, "saxpy<float>", "saxpy<double>")
    rng = np.random.default_rng(1)
    dtypes: dict[str, Any] = {"saxpy<float>": np.float32, "saxpy<double>": np.float64}
    for name, dtype in dtypes.items():
        a, x, y = dtype(1.5), rng.random(n).astype(dtype), rng.random(n).astype(dtype)
        x_device, y_device = dev.array(x, stream=stream), dev.array(y, stream=stream)
        config = LaunchConfig.for_elements(n)
        launch(stream, config, module.get_kernel(name), a, x_device, y_device, np.uint64(n))
        np.testing.assert_allclose(y_device.to_numpy(stream=stream), a * x + y, rtol=4 * np.finfo(dtype).eps)
        x_device.close()
        y_device.close()
    stream.close()
    print(f"saxpy: {n} floats and doubles as NumPy has them, on {dev.name}")


if __name__ == "__main__":
    main()
