"""The Game of Life as an animation: two grids that swap roles. `game_of_life.py [FILE.png]`"""

import sys

import numpy as np
from pictures import save

import cupola
from cupola import Device, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void generation(const unsigned char* old, unsigned char* next, int width, int height) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height) return;
    int neighbors = 0;
    for (int dj = -1; dj <= 1; ++dj)
        for (int di = -1; di <= 1; ++di)
            neighbors += old[(j + dj + height) % height * width + (i + di + width) % width];
    const int here = j * width + i;
    neighbors -= old[here];
    next[here] = neighbors == 3 || (neighbors == 2 && old[here]);
}
"""


def main(path: str = "game_of_life.png", *, width: int = 160, height: int = 100, generations: int = 60) -> None:
    dev = Device()
    dev.set_current()
    kernel = cupola.compile(SOURCE).get_kernel("generation")
    grid = (np.random.default_rng(9).random((height, width)) < 0.3).astype(np.uint8)
    frames = [grid]
    with dev.stream() as stream:
        old, new = dev.array(grid), dev.empty(grid.shape, grid.dtype)
        config = LaunchConfig.for_elements((width, height), block=(32, 8))
        for _ in range(generations):
            launch(stream, config, kernel, old, new, width, height)
            old, new = new, old
            frames.append(old.to_numpy())
    for _ in range(generations):
        around = sum(np.roll(grid, (j, i), (0, 1)) for j in (-1, 0, 1) for i in (-1, 0, 1)) - grid
        grid = ((around == 3) | ((around == 2) & (grid == 1))).astype(np.uint8)
    np.testing.assert_array_equal(frames[-1], grid)
    save(path, *(np.kron(255 * frame, np.ones((3, 3), np.uint8)) for frame in frames))
    print(f"Game of Life: {grid.sum()} cells live after {generations} generations, see {path}, on {dev.name}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
