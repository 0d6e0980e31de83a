"""Two tenants of one device: requests that must be answered at once, and batches that fill the device.

Both run side by side, first with all multiprocessors for everybody, then with a part for each (green contexts). For
each tenant the times of its requests are printed: half of them were at most p50, 99 of 100 at most p99.

    examples/tenants.py --seconds 5 --sms 16
"""

from __future__ import annotations

import argparse
import time
from collections import deque

import numpy as np
from arrays import build

from cupola import (
    Array,
    ContextOptions,
    Device,
    EventOptions,
    Kernel,
    LaunchConfig,
    SMResourceOptions,
    Stream,
    launch,
)

SOURCE = r"""
extern "C" __global__ void iterate(float* x, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i % 100;
    for (int r = 0; r < rounds; r++) value = value * 0.5f + 1.0f;
    x[i] = value;
}
"""
BLOCK = 256
REQUEST_BLOCKS, REQUEST_ROUNDS = 8, 2_000
WAVES = 16  # how often the blocks of a batch fill the device
BATCH_MILLISECONDS = 5.0
QUEUED = 4  # batches that wait behind the one that runs


class Batches:
    """Keeps a stream full of batches, and notes how long each took."""

    def __init__(self, stream: Stream, kernel: Kernel, config: LaunchConfig, x: Array, rounds: int) -> None:
        self.stream, self.arguments = stream, (config, kernel, x, np.int32(rounds))
        self.timing = EventOptions(timing_enabled=True)
        self.ends = deque([stream.record(options=self.timing)])
        self.milliseconds: list[float] = []

    def keep_full(self) -> None:
        while len(self.ends) > 1 and self.ends[1].is_done:
            self.milliseconds.append(self.ends[1] - self.ends[0])
            self.ends.popleft()
        while len(self.ends) <= QUEUED:
            self.submit()

    def submit(self) -> None:
        launch(self.stream, *self.arguments)
        self.ends.append(self.stream.record(options=self.timing))


def find_rounds(stream: Stream, kernel: Kernel, config: LaunchConfig, x: Array) -> int:
    """How many rounds make a batch long enough."""
    rounds = 1
    while True:
        batch = Batches(stream, kernel, config, x, rounds)
        batch.submit()
        batch.ends[1].sync()
        milliseconds = batch.ends[1] - batch.ends[0]
        if milliseconds >= BATCH_MILLISECONDS and rounds > 1:  # not the first, which loads the kernel
            return rounds
        rounds *= 2 if milliseconds * 4 > BATCH_MILLISECONDS else 4


def run(
    urgent: Stream,
    batch: Stream,
    kernel: Kernel,
    memory: dict[str, Array],
    rounds: int,
    blocks: int,
    seconds: float,
) -> tuple[list[float], list[float]]:
    """Milliseconds of requests and of batches."""
    batches = Batches(batch, kernel, LaunchConfig(grid=blocks, block=BLOCK), memory["batch"], rounds)
    config, arguments = LaunchConfig(grid=REQUEST_BLOCKS, block=BLOCK), (memory["request"], np.int32(REQUEST_ROUNDS))
    requests: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not (requests and batches.milliseconds):
        batches.keep_full()
        begin = time.perf_counter()
        launch(urgent, config, kernel, *arguments)
        urgent.sync()
        requests.append(1e3 * (time.perf_counter() - begin))
        time.sleep(1e-4)  # requests come one by one
    batch.sync()
    return requests, batches.milliseconds


def show(name: str, times: tuple[list[float], list[float]]) -> None:
    requests, batches = (
        f"{np.percentile(found, 50):9.3f} {np.percentile(found, 99):9.3f} ms of {len(found):6}" for found in times
    )
    print(f"{name:22} requests {requests}   batches {batches}")


def main(seconds: float = 0.5, sms: int = 16) -> None:
    dev = Device()
    dev.set_current()
    whole = dev.resources.sm
    kernel = build(dev, SOURCE).get_kernel("iterate")
    blocks = WAVES * whole.sm_count
    stream = dev.create_stream()
    sizes = {"request": REQUEST_BLOCKS * BLOCK, "batch": blocks * BLOCK}
    memory = {name: dev.empty(size, np.float32, stream=stream) for name, size in sizes.items()}
    stream.sync()
    rounds = find_rounds(stream, kernel, LaunchConfig(grid=blocks, block=BLOCK), memory["batch"])

    print(f"{dev.name}: p50 and p99")
    trial = (kernel, memory, rounds, blocks, seconds)
    show("one for all", run(dev.create_stream(), dev.create_stream(), *trial))
    show("urgent has priority", run(dev.create_stream(priority=-1), dev.create_stream(), *trial))

    groups, rest = whole.split(SMResourceOptions(count=sms))
    small, large = (dev.create_context(ContextOptions(part)) for part in (groups, [rest]))
    counts = [context.resources.sm.sm_count for context in (small, large)]
    assert sum(counts) == whole.sm_count
    show(f"split {counts[0]} + {counts[1]}", run(small.create_stream(), large.create_stream(), *trial))

    for name, size in sizes.items():
        expected = (np.arange(size) % 100).astype(np.float32)
        for _ in range(min(REQUEST_ROUNDS if name == "request" else rounds, 100)):
            expected = expected * np.float32(0.5) + np.float32(1)
        assert np.allclose(memory[name].to_numpy(stream=stream), expected, atol=1e-5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Two tenants of one device, with and without a split.")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each of the three ways (default 0.5)")
    parser.add_argument("--sms", type=int, default=16, help="multiprocessors of the urgent tenant (default 16)")
    main(**vars(parser.parse_args()))
