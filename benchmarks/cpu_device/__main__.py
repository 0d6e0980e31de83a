"""Compare the CPU device with a plain C loop, NumPy and PoCL, in one run.

    python -m benchmarks.cpu_device [--threads N] [--json FILE] [--seconds S] [NAME ...]

Each figure is the best of many runs, over the time of the plain C loop on one thread: lower is better. PoCL takes part
when it and pyopencl are installed (Debian: pocl-opencl-icd; pip: pyopencl). Every result is compared with the C loop's
after one run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any


def best_time(run: Callable[[], None], seconds: float, least: int = 5) -> float:
    """The shortest run, in seconds, of as many as fit into the time (at least five, or so many)."""
    best, runs, end = float("inf"), 0, time.perf_counter() + seconds
    while runs < least or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        runs += 1
    return best


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu_device", description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="threads for cupola and PoCL")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each figure")
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("names", nargs="*", help="parts of the names of the kernels to run")
    options = parser.parse_args()

    # Before anything loads the libraries that read these.
    os.environ["CUPOLA_DEVICE"] = "cpu"
    os.environ["CUPOLA_CPU_THREADS"] = str(options.threads)
    os.environ["POCL_MAX_PTHREAD_COUNT"] = os.environ["POCL_CPU_MAX_CU_COUNT"] = str(options.threads)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(options.threads)

    import numpy as np

    from .contenders import CONTENDERS
    from .field_kernels import FIELD_BENCHMARKS
    from .kernels import BENCHMARKS
    from .matrix_kernels import MATRIX_BENCHMARKS

    print(
        f"{processor()}, {options.threads} thread(s); time over a plain C loop (gcc -O3 -march=native), lower is better"
    )
    print(f"{'kernel':28}{'gcc':>14}" + "".join(f"{name:>12}" for name in list(CONTENDERS)[1:]))
    rows: list[dict[str, Any]] = []
    wrong = 0
    for benchmark in BENCHMARKS + FIELD_BENCHMARKS + MATRIX_BENCHMARKS:
        if options.names and not any(name in benchmark.name for name in options.names):
            continue
        row: dict[str, Any] = {"kernel": benchmark.name}
        expected = None
        for name, make in CONTENDERS.items():
            made = make(benchmark)
            if made is None:
                continue
            run, result = made
            run()
            got = result().astype(np.float64)
            if expected is None:
                expected = got.copy()
            elif not np.allclose(got, expected, rtol=benchmark.tolerance, atol=benchmark.tolerance) and not (
                np.issubdtype(result().dtype, np.integer) and np.mean(got != expected) < benchmark.tolerance
            ):
                print(f"{benchmark.name}: {name} computes something else", file=sys.stderr)
                wrong += 1
            row[name] = best_time(run, options.seconds)
        rows.append(row)
        line = f"{benchmark.name:28}{row['gcc'] * 1e3:11.3f} ms"
        for name in list(CONTENDERS)[1:]:
            line += f"{row[name] / row['gcc']:11.2f}x" if name in row else f"{'-':>12}"
        print(line, flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"processor": processor(), "threads": options.threads, "seconds": rows}, file, indent=1)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
