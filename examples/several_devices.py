"""Heat in a rod that lies on all devices: each computes a piece, and neighbors exchange its ends after every step.

On a machine without GPUs: ``CUPOLA_CPU_DEVICES=2 python examples/several_devices.py``.
"""

from typing import Any

import numpy as np
from arrays import build

from cupola import Device, LaunchConfig, launch

SOURCE = r"""
// left, right: what lies beside the piece. first, last: its own ends, for the neighbors.
extern "C" __global__ void step(const float* x, float* y, int n, const float* left, const float* right,
                                float* first, float* last) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float before = i > 0 ? x[i - 1] : *left, after = i < n - 1 ? x[i + 1] : *right;
    y[i] = x[i] + 0.25f * (before - 2 * x[i] + after);
    if (i == 0) *first = y[i];
    if (i == n - 1) *last = y[i];
}
"""


class Piece:
    """The part of the rod on one device."""

    def __init__(self, dev: Device, values: np.ndarray[Any, Any]) -> None:
        dev.set_current()  # from here on, what is made is made on this device
        self.stream = dev.create_stream()
        self.kernel = build(dev, SOURCE).get_kernel("step")
        self.config = LaunchConfig(grid=(len(values) + 127) // 128, block=128)
        self.n = len(values)
        self.x, self.y = (dev.array(values, stream=self.stream) for _ in range(2))
        self.first, self.last = (dev.array(values[[end]], stream=self.stream) for end in (0, -1))
        # What the neighbors send, twice: they write the next values while these are still read.
        self.left, self.right = ([dev.zeros(1, np.float32, stream=self.stream) for _ in range(2)] for _ in range(2))

    def step(self, turn: int) -> None:
        left, right = self.left[turn % 2], self.right[turn % 2]
        launch(self.stream, self.config, self.kernel, self.x, self.y, self.n, left, right, self.first, self.last)
        self.x, self.y = self.y, self.x


def exchange(pieces: list[Piece], turn: int) -> None:
    """Send the ends of each piece to its neighbors, which wait for them before their next step."""
    for a, b in zip(pieces, pieces[1:], strict=False):
        a.last.copy_to(b.left[turn % 2], stream=a.stream)  # from one device to the other
        b.first.copy_to(a.right[turn % 2], stream=b.stream)
    done = [piece.stream.record() for piece in pieces]
    for i, piece in enumerate(pieces):
        for event in done[max(i - 1, 0) : i + 2]:
            piece.stream.wait(event)


def main(n: int = 10_007, steps: int = 50) -> None:
    devices = Device.get_all_devices()
    rod = np.random.default_rng(1).random(n, np.float32)
    pieces = [Piece(dev, part) for dev, part in zip(devices, np.array_split(rod, len(devices)), strict=True)]
    for piece in pieces:
        piece.stream.sync()  # neighbors write to its memory from now on
    exchange(pieces, 0)
    for turn in range(steps):
        for piece in pieces:
            piece.step(turn)
        exchange(pieces, turn + 1)
    result = np.concatenate([piece.x.to_numpy(stream=piece.stream) for piece in pieces])

    for _ in range(steps):
        around = np.pad(rod, 1)
        rod = rod + np.float32(0.25) * (around[:-2] - 2 * rod + around[2:])
    np.testing.assert_allclose(result, rod, rtol=1e-4, atol=1e-6)
    print(f"heat: {steps} steps of {n} points on {len(devices)} x {devices[0].name}")


if __name__ == "__main__":
    main()
