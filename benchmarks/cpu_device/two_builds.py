"""Two builds of cupola side by side: what the driver's calls and small kernels take on the CPU device.

    python -m benchmarks.cpu_device.two_builds FOLDER FOLDER [--rounds N]

Each folder has a package `cupola`, as PYTHONPATH wants it. Processes of both take turns, and each figure is the best
of all rounds: what differs by less than a few percent is the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import timeit
from pathlib import Path

SOURCE = r"""
extern "C" __global__ void nothing(int* x) {}
extern "C" __global__ void meet(int* x) {
    __shared__ int s[256];
    for (int i = 0; i < 64; i++) { s[threadIdx.x] = i; __syncthreads(); }
    x[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
extern "C" __global__ void add(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += i;
}
"""
BLOCKS, WORDS = 64, 1 << 18
REPEATS = 15


def measure() -> dict[str, float]:
    """Nanoseconds of each thing, in this process."""
    import numpy as np

    from cupola import Device, LaunchConfig, PinnedMemoryResource, Program, ProgramOptions, launch

    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    code = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{dev.arch}")).compile("cubin")
    nothing, meet, add = (code.get_kernel(name) for name in ("nothing", "meet", "add"))
    x = dev.allocate(4 * WORDS, stream=stream)
    host = PinnedMemoryResource().allocate(4096, stream=stream)
    small = dev.allocate(4096, stream=stream)
    np.from_dlpack(host).view(np.int32)[:] = 1
    one, many = LaunchConfig(grid=1, block=32), LaunchConfig(grid=BLOCKS, block=256)
    wide = LaunchConfig(grid=WORDS // 256, block=256)
    builder = stream.create_graph_builder().begin_building()
    for _ in range(10):
        launch(builder, one, nothing, x)
    graph = builder.end_building().complete()
    stream.sync()

    def wait() -> None:
        launch(stream, one, nothing, x)
        stream.sync()

    def copy() -> None:
        small.copy_from(host, stream=stream)

    def replay() -> None:
        graph.launch(stream)
        stream.sync()

    things = {
        "a launch": (lambda: launch(stream, one, nothing, x), 300),
        "a launch, and wait": (wait, 300),
        "a copy of 4 KiB": (copy, 300),
        "an event": (lambda: stream.record(), 300),
        "a graph of 10 launches, and wait": (replay, 100),
        "4,096 barriers of 256 threads": (lambda: (launch(stream, many, meet, x), stream.sync()), 5),
        "a kernel on 1 MiB": (lambda: (launch(stream, wide, add, x, WORDS), stream.sync()), 20),
    }
    figures: dict[str, float] = {}
    for name, (function, number) in things.items():
        best = float("inf")
        for _ in range(REPEATS):
            stream.sync()
            best = min(best, timeit.timeit(function, number=number) / number)
            stream.sync()
        figures[name] = best * 1e9
    return figures


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu_device.two_builds", description=__doc__)
    parser.add_argument("folders", nargs=2)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure()))
        return
    best: list[dict[str, float]] = [{}, {}]
    for _ in range(options.rounds):
        for folder, figures in zip(options.folders, best, strict=True):
            environment = {**os.environ, "PYTHONPATH": folder, "CUPOLA_DEVICE": "cpu", "CUPOLA_CPU_THREADS": "1"}
            command = [sys.executable, str(Path(__file__).resolve()), "--child", *options.folders]
            said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            for name, figure in json.loads(said).items():
                figures[name] = min(figure, figures.get(name, figure))
    print(f"{'':36}{'first':>12}{'second':>12}{'ratio':>8}")
    for name, figure in best[0].items():
        print(f"{name:36}{figure:9.0f} ns{best[1][name]:9.0f} ns{figure / best[1][name]:8.3f}")


if __name__ == "__main__":
    main()
