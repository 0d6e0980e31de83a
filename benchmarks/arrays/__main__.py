"""What array programs cost: the same statements with cupola.numpy, CuPy and NumPy, in one run on one machine.

    python -m benchmarks.arrays [--json FILE] [--repeats N] [NAME ...]

Small arrays: microseconds per call, as the program sees it; the device is waited for between repeats. Large ones:
microseconds per call until the device is done. Import: what a new interpreter takes longer for it. Statements store
their results in arrays that exist already where all three can, so that cupola.numpy, whose expressions are lazy,
computes each of them. CuPy takes part where it is installed and there is a GPU. NumPy's results are what the others are
checked against.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

os.environ.setdefault("CUPOLA_NUMPY_AHEAD", "0")  # on the CPU device, good code from the first launch on


class Case(NamedTuple):
    """A statement of the namespace xp, and arrays that it uses."""

    size: int
    statement: str
    result: str  # what is compared afterwards
    calls: int  # how many make a repeat


SMALL, LARGE = 10, 1 << 24
MODULES = {"cupola.numpy": "cupola.numpy", "CuPy": "cupy", "NumPy": "numpy"}

CASES = {
    "add": Case(SMALL, "xp.add(x, y, out=z)", "z", 300),
    "two operations": Case(SMALL, "xp.add(x * y, x, out=z)", "z", 300),
    "four operations": Case(SMALL, "xp.sqrt(x * x + y * y, out=z)", "z", 300),
    "eight operations": Case(SMALL, "xp.add(xp.sqrt(x * x + y * y) * 0.5, xp.abs(x - y), out=z)", "z", 300),
    "sum": Case(SMALL, "r = x.sum()", "x.sum()", 300),
    "mean along an axis": Case(SMALL * 10, "r = m.mean(axis=1)", "m.mean(axis=1)", 300),
    "a slice": Case(SMALL, "r = x[2:8]", "x[2:8]", 300),
    "indices": Case(SMALL, "xp.add(x[i], y, out=z)", "z", 300),
    "matmul": Case(SMALL * 10, "r = xp.matmul(m, m)", "xp.matmul(m, m)", 300),
    "zeros": Case(SMALL, "r = xp.zeros(10)", "xp.zeros(10)", 300),
    "a copy": Case(SMALL, "r = x.copy()", "x.copy()", 300),
    "arange": Case(SMALL, "r = xp.arange(10)", "xp.arange(10)", 300),
    "a list": Case(SMALL, "r = xp.asarray([1, 2, 3])", "xp.asarray([1, 2, 3])", 300),
    "add, large": Case(LARGE, "xp.add(x, y, out=z)", "z", 20),
    "four operations, large": Case(LARGE, "xp.sqrt(x * x + y * y, out=z)", "z", 20),
    "sum, large": Case(LARGE, "r = x.sum()", "x.sum()", 20),
    "sum along an axis, large": Case(LARGE, "r = m.sum(axis=0)", "m.sum(axis=0)", 20),
    "cumsum, large": Case(LARGE, "r = xp.cumsum(x)", "xp.cumsum(x)[:1000]", 10),
    "sort, large": Case(LARGE >> 2, "r = xp.sort(x)", "xp.sort(x)", 3),
    "indices, large": Case(LARGE, "xp.add(x[i], y, out=z)", "z", 10),
    "fft, large": Case(LARGE >> 2, "r = xp.fft.fft(x)", "xp.fft.fft(x)[:1000]", 10),
    "matmul, large": Case(LARGE >> 2, "r = xp.matmul(m, m)", "xp.matmul(m, m)", 10),
}


def arrays(xp: Any, size: int) -> dict[str, Any]:
    """The arrays of a case."""
    random = numpy.random.default_rng(1)
    side = int(size**0.5)
    x, y = (random.random(size, dtype=numpy.float32) for _ in range(2))
    return {
        "xp": xp, "x": xp.asarray(x), "y": xp.asarray(y), "z": xp.zeros(size, dtype=xp.float32),
        "i": xp.asarray(random.permutation(size)), "m": xp.asarray(x[: side * side].reshape(side, side)),
    }  # fmt: skip


def contenders() -> dict[str, tuple[Any, Callable[[], None]]]:
    """The namespaces that are here, and how to wait for each."""
    import cupola.numpy
    from cupola import Device

    device = Device()
    device.set_current()
    found: dict[str, tuple[Any, Callable[[], None]]] = {"cupola.numpy": (cupola.numpy, device.sync)}
    if not device.name.startswith("cupola"):
        try:
            import cupy  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            pass
        else:
            found["CuPy"] = (cupy, cupy.cuda.Device().synchronize)
    found["NumPy"] = (numpy, lambda: None)
    return found


def on_host(value: Any) -> numpy.ndarray:
    """The elements of an array of any contender."""
    return value.get() if hasattr(value, "get") else numpy.asarray(value)


def measure(case: Case, repeats: int) -> dict[str, float]:
    """Microseconds per call for each contender, the best of the repeats, taken in turns."""
    best: dict[str, float] = {}
    sides = {}
    right = None
    for name, (xp, wait) in reversed(contenders().items()):
        names = arrays(xp, case.size)
        timer = timeit.Timer(case.statement, globals=names)
        timer.timeit(2)
        found = on_host(eval(case.result, names))
        right = found if right is None else right
        numpy.testing.assert_allclose(found, right, rtol=2e-3, atol=1e-3 * max(1, float(abs(right).max()) ** 0.5))
        sides[name] = (timer, wait)
    for _ in range(repeats):
        for name, (timer, wait) in sides.items():
            wait()
            # NumPy need not be asked often about what takes it long.
            calls = 1 if name == "NumPy" and case.size >= LARGE >> 2 else case.calls

            def run(timer: timeit.Timer = timer, wait: Callable[[], None] = wait, calls: int = calls) -> float:
                if case.size < 10_000:
                    return timer.timeit(calls)
                return timeit.timeit(lambda: (timer.timeit(calls), wait()), number=1)

            best[name] = min(best.get(name, float("inf")), run() / calls * 1e6)
    return best


def import_times(modules: dict[str, str], repeats: int) -> dict[str, float]:
    """Microseconds that a new interpreter takes longer with each import than without, the best of the repeats."""
    best: dict[str, float] = {}
    for _ in range(repeats):
        for name, statement in {"": "pass", **{name: f"import {module}" for name, module in modules.items()}}.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best[name] = min(best.get(name, float("inf")), time.perf_counter() - start)
    return {name: (best[name] - best[""]) * 1e6 for name in modules}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arrays", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases whose names contain this; all without")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    columns = list(contenders())
    other = "CuPy" if "CuPy" in columns else "NumPy"
    print(f"{'microseconds per call':28}" + "".join([f"{name:>16}" for name in columns]) + f"{'to ' + other:>10}")
    results = {}
    for name in [*CASES, "import"]:
        if options.names and not any(part in name for part in options.names):
            continue
        if name == "import":
            found = import_times({column: MODULES[column] for column in columns}, options.repeats)
        else:
            found = measure(CASES[name], options.repeats)
        results[name] = found
        ratio = f"{found['cupola.numpy'] / found[other]:10.3f}"
        print(f"{name:28}" + "".join([f"{found[column]:16.1f}" for column in columns]) + ratio, flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
