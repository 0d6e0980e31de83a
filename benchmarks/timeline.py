"""What a launch costs while a timeline is recorded, beside before and after: ``python -m benchmarks.timeline``."""

from __future__ import annotations

import time

import numpy as np

import cupola
from cupola import Device, LaunchConfig, launch, profile

SOURCE = 'extern "C" __global__ void nothing(float* x) {}'
LAUNCHES = 500
REPEATS = 120


def main() -> None:
    """Measure and print."""
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = cupola.compile(SOURCE).get_kernel("nothing")
    x = dev.zeros(8, np.float32, stream=stream)
    config = LaunchConfig(grid=1, block=1)

    def cost() -> float:
        """Microseconds of a launch, the least of many."""
        least = float("inf")
        for _ in range(REPEATS):
            stream.sync()
            begin = time.perf_counter()
            for _ in range(LAUNCHES):
                launch(stream, config, kernel, x)
            least = min(least, (time.perf_counter() - begin) / LAUNCHES)
        stream.sync()
        return 1e6 * least

    print(f"{dev.name}: microseconds of a launch")
    before = cost()
    with profile.timeline() as timeline:
        during = cost()
    after = cost()
    print(f"before {before:.2f}, with a timeline {during:.2f}, after {after:.2f}; {len(timeline.records)} records")


if __name__ == "__main__":
    main()
