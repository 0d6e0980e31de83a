"""What checks of kernels cost: the kernels of this folder with each check, over the time without.

    python -m benchmarks.cpu_device.checks [--seconds S] [--threads N] [--checks race,init,sync] [NAME ...]

The figures are those of the best of a few runs; the last line has the geometric means.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os

from .__main__ import best_time, processor


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu_device.checks", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each figure, at least two runs")
    parser.add_argument("--checks", default="race,init,sync")
    parser.add_argument("names", nargs="*", help="parts of the names of the kernels to run")
    options = parser.parse_args()
    os.environ["CUPOLA_DEVICE"] = "cpu"
    os.environ["CUPOLA_CPU_THREADS"] = str(options.threads)

    from cupola import cpu

    from .contenders import cupola
    from .field_kernels import FIELD_BENCHMARKS
    from .kernels import BENCHMARKS
    from .matrix_kernels import MATRIX_BENCHMARKS

    names = options.checks.split(",")
    print(f"{processor()}, {options.threads} thread(s); time with a check over the time without")
    print(f"{'kernel':28}{'without':>14}" + "".join(f"{name:>10}" for name in names))
    logs = dict.fromkeys(names, 0.0)
    count = 0
    for benchmark in BENCHMARKS + FIELD_BENCHMARKS + MATRIX_BENCHMARKS:
        if options.names and not any(name in benchmark.name for name in options.names):
            continue
        with cpu.checks(init=True) if "init" in names else contextlib.nullcontext():
            run, _ = cupola(benchmark)  # its memory is followed from the beginning
        run()
        without = best_time(run, options.seconds, 2)
        line = f"{benchmark.name:28}{without * 1e3:11.3f} ms"
        for name in names:
            with cpu.checks(**{name: True}):
                run()
                ratio = best_time(run, options.seconds, 2) / without
            line += f"{ratio:9.2f}x"
            logs[name] += math.log(ratio)
        count += 1
        print(line, flush=True)
    print(f"{'geometric mean':42}" + "".join(f"{math.exp(logs[name] / count):9.2f}x" for name in names))


if __name__ == "__main__":
    main()
