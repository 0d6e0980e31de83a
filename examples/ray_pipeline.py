"""A pipeline of three actors of Ray, each with a device: numbers, a kernel on them, a sum; one actor dies on the way.

Arrays stay on the device from actor to actor. When the second actor is killed, or any other, Ray starts it again, and
the pipeline goes on with the pieces that were lost. Fewer than three devices are shared. Run it with several CPU
devices: CUPOLA_DEVICE=cpu CUPOLA_CPU_DEVICES=3 python examples/ray_pipeline.py
"""

import math
import os
import time
from typing import Any

import ray

import cupola.numpy as np
import cupola.ray

PIECES, SIZE = 8, 20_000

SOURCE = """
extern "C" __global__ void square(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}"""


@ray.remote(num_cpus=0, max_restarts=-1)
class Numbers:
    def __init__(self) -> None:
        cupola.ray.device()

    def piece(self, k: int) -> cupola.ray.Shared:
        return cupola.ray.share(np.arange(k * SIZE, (k + 1) * SIZE, dtype="f8"))


@ray.remote(num_cpus=0, max_restarts=-1)
class Squares:
    def __init__(self) -> None:
        self.device = cupola.ray.device()
        self.square = cupola.compile(SOURCE).get_kernel("square")

    def squares(self, piece: cupola.ray.Shared, fatal: bool = False) -> cupola.ray.Shared:
        if fatal:
            os._exit(1)
        x = piece.open()  # the memory of the other actor
        y = np.empty_like(x)
        config = cupola.LaunchConfig.for_elements(x.size)
        cupola.launch(self.device.default_stream, config, self.square, x, y, x.size)
        return cupola.ray.share(y)


@ray.remote(num_cpus=0, max_restarts=-1)
class Sum:
    def __init__(self) -> None:
        cupola.ray.device()

    def add(self, piece: cupola.ray.Shared) -> float:
        return float(piece.open().sum())


def main() -> None:
    cupola.ray.init(num_cpus=3, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    devices = int(ray.cluster_resources()["GPU"])
    share = 1 / math.ceil(3 / devices)  # of a device, for each actor
    actors: tuple[Any, ...] = (Numbers, Squares, Sum)
    numbers, squares, total = (actor.options(num_gpus=share).remote() for actor in actors)
    parts: dict[int, float] = {}
    tried = 0
    while len(parts) < PIECES:
        tried += 1
        work = {}
        for k in sorted(set(range(PIECES)) - set(parts)):
            squared = squares.squares.remote(numbers.piece.remote(k), fatal=tried == 1 and k == 3)
            work[k] = total.add.remote(squared)
        for k, part in work.items():
            try:
                parts[k] = ray.get(part, timeout=60)
            except (ray.exceptions.RayError, ConnectionError) as error:
                print(f"piece {k} was lost ({type(error).__name__})")
        time.sleep(0.2)  # until the actor is back, if it was lost
    n = PIECES * SIZE
    assert sum(parts.values()) == (n - 1) * n * (2 * n - 1) // 6
    print(f"the sum of {n} squares is right, after {tried} attempts")
    ray.shutdown()


if __name__ == "__main__":
    main()
