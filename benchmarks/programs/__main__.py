"""CUDA programs on the CPU device beside the same programs for the CPU, in C with OpenMP, on all cores.

    python -m benchmarks.programs [--threads N] [--seconds S] [--json FILE] [NAME ...]
    python -m benchmarks.programs --scaling 1,2,4,8,16 [--seconds S] [--json FILE] [NAME ...]

Both sides have the same threads, take turns, and are checked against each other after one run. A figure is the best of
many runs one after the other: of all launches and the wait for their end, or of one call of the function. The ratio is
the CPU device's time over that of C, so lower is better. With --scaling each number of threads is a process of its own,
and the table has the speed over one thread of both sides; `triad` is STREAM's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.cpu_device.__main__ import processor

from .sides import FLAGS, arrays_of, build, cupola, difference, openmp
from .table import PROGRAMS, Program

Rows = dict[str, dict[str, float]]


TURNS, QUIET_SECONDS = 2, 0.025


def best_times(runs: list[Callable[[], None]], seconds: float) -> list[float]:
    """The shortest of each, of as many runs as fit into the time (at least six).

    They take turns of several runs. All is quiet before each turn: the threads of OpenMP look out for more work for
    many milliseconds after the last, on the processors that the other side needs.
    """
    best = [math.inf] * len(runs)
    for _ in range(TURNS):
        for index, run in enumerate(runs):
            time.sleep(QUIET_SECONDS)
            rounds, end = 0, time.perf_counter() + seconds / TURNS
            while rounds < 3 or time.perf_counter() < end:
                start = time.perf_counter()
                run()
                best[index] = min(best[index], time.perf_counter() - start)
                rounds += 1
    return best


def geometric_mean(numbers: list[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def chosen(names: list[str]) -> list[Program]:
    """The programs that have one of these in their names; all, without names."""
    return [program for program in PROGRAMS if not names or any(name in program.name for name in names)]


def compare(programs: list[Program], seconds: float, folder: str, *, quiet: bool = False) -> tuple[Rows, int]:
    """The times of both sides of each program, and how many are wrong."""
    rows: Rows = {}
    wrong = 0
    for program in programs:
        arrays = arrays_of(program)
        sides = cupola(program, arrays), openmp(program, arrays, folder)
        for run, _ in sides:
            run()
        results, expected = sides[0][1](), sides[1][1]()
        off = max(difference(program, results[name], expected[name]) for name in program.results)
        ours, c = best_times([run for run, _ in sides], seconds)
        rows[program.name] = {"cupola": ours, "openmp": c}
        wrong += off > 1
        if not quiet:
            text = f"{program.name:18}{program.bound:10}{c * 1e3:10.2f} ms{ours * 1e3:10.2f} ms{ours / c:9.2f}"
            print(text + ("   WRONG" if off > 1 else ""), flush=True)
    return rows, wrong


def scale(options: argparse.Namespace, folder: str) -> int:
    """Run with each number of threads, and print the speed over the first."""
    counts = [int(word) for word in options.scaling.split(",")]
    all_rows: dict[int, Rows] = {}
    for count in counts:
        command = [sys.executable, "-m", "benchmarks.programs", "--threads", str(count), "--built", folder]
        command += ["--seconds", str(options.seconds), *options.names]
        all_rows[count] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        if options.json:
            with open(options.json, "w") as file:
                json.dump({"processor": processor(), "threads": all_rows}, file, indent=1)
    counts.sort()
    first = all_rows[counts[0]]
    print(f"{processor()}; speed over {counts[0]} thread(s): cupola / OpenMP")
    print(f"{'program':18}{'bound':10}" + "".join(f"{count:>15}" for count in counts))
    for program in PROGRAMS:
        if program.name in first:
            cells = ""
            for count in counts:
                ours, c = (first[program.name][s] / all_rows[count][program.name][s] for s in ("cupola", "openmp"))
                cells += f"{ours:8.2f} /{c:5.2f}"
            print(f"{program.name:18}{program.bound:10}{cells}")
    if "triad" in first:
        rates = [3 * 8 * 4 * 1.048576e-3 / all_rows[count]["triad"]["openmp"] for count in counts]
        print(f"{'STREAM triad, GB/s':28}" + "".join(f"{rate:15.1f}" for rate in rates))
    ratios = [geometric_mean([row["cupola"] / row["openmp"] for row in all_rows[count].values()]) for count in counts]
    print(f"{'cupola over OpenMP':28}" + "".join(f"{ratio:15.2f}" for ratio in ratios))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads (default: all)")
    parser.add_argument("--scaling", help="numbers of threads, such as 1,2,4")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each figure")
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("--built", help=argparse.SUPPRESS)  # the folder of a run with --scaling
    parser.add_argument("names", nargs="*", help="parts of the names of the programs to run")
    options = parser.parse_args()
    if options.built:
        return report(options, options.built)
    with tempfile.TemporaryDirectory() as folder:
        build(chosen(options.names), folder)
        return scale(options, folder) if options.scaling else report(options, folder)


def report(options: argparse.Namespace, folder: str) -> int:
    """Compare, and print the table, or JSON for `scale`."""
    # Before anything loads the libraries that read these.
    os.environ["CUPOLA_DEVICE"] = "cpu"
    os.environ["CUPOLA_CPU_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(options.threads)
    if not options.built:
        print(f"{processor()}, {options.threads} threads; gcc {' '.join(FLAGS)}; lower is better")
        print(f"{'program':18}{'bound':10}{'OpenMP':>13}{'cupola':>13}{'ratio':>9}")
    rows, wrong = compare(chosen(options.names), options.seconds, folder, quiet=bool(options.built))
    ratios: dict[str, float] = {name: row["cupola"] / row["openmp"] for name, row in rows.items()}
    if options.built:
        print(json.dumps(rows))
    elif ratios:
        worst = max(ratios, key=ratios.__getitem__)
        print(f"geometric mean {geometric_mean([*ratios.values()]):.2f}, worst {ratios[worst]:.2f} ({worst})")
    if options.json:
        result: dict[str, Any] = {"processor": processor(), "threads": options.threads, "seconds": rows}
        with open(options.json, "w") as file:
            json.dump(result, file, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
