"""The programs of examples/numpy_programs.py with arrays of a million elements, against NumPy.

    python -m benchmarks.arrays.programs [--devices gpu,cpu] [--elements N] [--json FILE] [NAME ...]

Each program runs with NumPy in this process, and with cupola.numpy in a process of its own for each device. A figure is
the least of up to five runs within two seconds, in milliseconds, behind a first run that compiles kernels; the results
are compared with NumPy's. The file gets each figure as soon as it is there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy

RUNS, SECONDS = 5, 2.0


def milliseconds(form: Callable[[], Any]) -> float:
    """The least time of some runs."""
    times: list[float] = []
    while len(times) < RUNS and sum(times) < SECONDS:
        start = time.perf_counter()
        form()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def child(names: list[str], elements: int) -> None:
    """Measure programs here with cupola.numpy; a line for each program, behind the result that it is checked by."""
    import cupola.numpy as np
    from examples import numpy_programs

    for name in names:
        program = getattr(numpy_programs, name)

        def run(program: Any = program) -> Any:
            return np.asnumpy(program(elements))

        begin = time.perf_counter()
        found = run()
        first = 1e3 * (time.perf_counter() - begin)
        print(json.dumps([name, first, milliseconds(run), summary(found)]), flush=True)


def summary(found: Any) -> list[float]:
    """Some numbers that a result is compared by: its size, its sum, and sums that depend on the order."""
    flat = numpy.asarray(found).reshape(-1).astype(numpy.complex128)
    at = numpy.arange(flat.size) % 97
    return [float(flat.size), *[float((part * weight).sum()) for part in (flat.real, flat.imag) for weight in (1, at)]]


def on_device(device: str, names: list[str], elements: int) -> Iterator[list[Any]]:
    """What a process on a device measures."""
    command = [sys.executable, "-m", "benchmarks.arrays.programs", "--child", "--elements", str(elements), *names]
    with subprocess.Popen(
        command, env={**os.environ, "CUPOLA_DEVICE": device}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise SystemExit(f"the process on the {device} ended with {process.returncode}")


def main() -> int:
    from examples.numpy_programs import PROGRAMS, with_numpy

    parser = argparse.ArgumentParser(prog="python -m benchmarks.arrays.programs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all without")
    parser.add_argument("--devices", default="gpu,cpu", help="with commas; those of CUPOLA_DEVICE")
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.names or [program.__name__ for program in PROGRAMS]
    if options.child:
        child(names, options.elements)
        return 0
    results: dict[str, dict[str, float]] = {name: {} for name in names}
    right: dict[str, list[float]] = {}

    def keep(name: str, column: str, figure: float) -> None:
        results[name][column] = figure
        print(f"{name:22}{column:>12}{figure:12.2f}", flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(results, file, indent=1)

    print(f"milliseconds, {options.elements} elements")
    forms = with_numpy()
    for name in names:
        right[name] = summary(forms[name](options.elements))
        keep(name, "NumPy", milliseconds(lambda name=name: forms[name](options.elements)))
    for device in options.devices.split(","):
        for name, first, figure, found in on_device(device, names, options.elements):
            numpy.testing.assert_allclose(found, right[name], rtol=1e-4, atol=1e-6 * max(map(abs, right[name])))
            keep(name, f"{device}, first", first)
            keep(name, device, figure)
    devices = options.devices.split(",")
    print("| program | NumPy | " + " | ".join(devices) + " |")
    print("|---|---|" + "---|" * len(devices))
    for name, row in results.items():
        print(f"| `{name}` | {row['NumPy']:.1f} | " + " | ".join(f"{row[one]:.1f}" for one in devices) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
