"""How heat spreads in a plate with two hot spots, in a graph of twenty steps. `heat_equation.py [FILE.png]`"""

import sys

import numpy as np
from pictures import colors, save

import cupola
from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void step(const float* u, float* next, int width, int height, float r) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height) return;
    const int k = j * width + i;
    const bool inside = i > 0 && j > 0 && i < width - 1 && j < height - 1;  // the border stays cold
    next[k] = inside ? u[k] + r * (u[k - 1] + u[k + 1] + u[k - width] + u[k + width] - 4 * u[k]) : 0;
}
"""


def main(path: str = "heat_equation.png", *, width: int = 240, height: int = 160, steps: int = 400) -> None:
    dev = Device()
    dev.set_current()
    kernel = cupola.compile(SOURCE).get_kernel("step")
    plate = np.zeros((height, width), np.float32)
    plate[30:60, 40:90] = plate[90:130, 140:180] = 1
    r = np.float32(0.2)
    frames = [plate]
    with dev.stream() as stream:
        u, v = dev.array(plate), dev.empty(plate.shape, plate.dtype)
        config = LaunchConfig.for_elements((width, height), block=(32, 8))
        builder = stream.create_graph_builder().begin_building()
        for _ in range(steps // 20):  # an even number
            launch(builder, config, kernel, u, v, width, height, r)
            u, v = v, u
        graph = builder.end_building().complete()
        for _ in range(20):
            graph.launch(stream)
            frames.append(u.to_numpy())
    for _ in range(steps):
        inner = plate[1:-1, 1:-1]
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        plate = np.pad(inner + r * (around - 4 * inner), 1)
    np.testing.assert_allclose(frames[-1], plate, atol=1e-5)
    save(path, *map(colors, frames))
    print(f"heat: {frames[-1].max():.0%} of the heat is left in the warmest place, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
