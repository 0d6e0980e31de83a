"""The Mandelbrot set as a picture: each thread iterates z = z^2 + c for one pixel. `mandelbrot.py [FILE.png]`"""

import sys

import numpy as np
from pictures import colors, save

import cupola
from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void mandelbrot(float* out, int width, int height, int most) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height) return;
    const double cx = -2.2 + 3.0 * i / width, cy = -1.0 + 2.0 * j / height;
    double x = 0, y = 0;
    int n = 0;
    for (; n < most && x * x + y * y < 256; ++n) {
        const double old = x;
        x = x * x - y * y + cx;
        y = 2 * old * y + cy;
    }
    // Between the steps, so that the colors have no bands.
    out[j * width + i] = n == most ? 0 : n + 1 - log2f(0.5f * log2f(x * x + y * y));
}
"""


def main(path: str = "mandelbrot.png", *, width: int = 480, height: int = 320, most: int = 200) -> None:
    dev = Device()
    dev.set_current()
    kernel = cupola.compile(SOURCE).get_kernel("mandelbrot")
    with dev.stream() as stream:
        out = dev.empty((height, width), np.float32)
        launch(stream, LaunchConfig.for_elements((width, height), block=(32, 8)), kernel, out, width, height, most)
        steps = out.to_numpy()
    c = -2.2 + 3.0 * np.arange(width) / width + 1j * (-1.0 + 2.0 * np.arange(height) / height)[:, None]
    z, inside = np.zeros_like(c), np.ones(c.shape, bool)
    for _ in range(most):
        z[inside] = z[inside] ** 2 + c[inside]
        inside &= z.real**2 + z.imag**2 < 256
    assert (inside == (steps == 0)).mean() > 0.999, "NumPy finds another set"
    save(path, colors(np.log1p(steps) / np.log1p(60)))
    print(f"Mandelbrot: {inside.mean():.1%} of {width} x {height} pixels are inside, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
