"""How much of the memory bandwidth fused expressions reach, beside a kernel of one's own that does the same.

    python -m benchmarks.arrays.bandwidth [--json FILE] [--repeats N] [--elements N]

Each expression has 1, 4 or 8 operations on two large float32 arrays and is stored in a third. It is run as a statement
of cupola.numpy, as an ElementwiseKernel of cupola.numpy and, where CuPy is installed and there is a GPU, as CuPy's
ElementwiseKernel and as CuPy's statement. Gigabytes per second are the three arrays once over the time of a call, of
many that are queued and waited for together. The contenders take turns; each figure is the best of the repeats.
"""

from __future__ import annotations

import argparse
import json
import sys
import timeit
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from benchmarks.arrays.__main__ import contenders, on_host


class Expression(NamedTuple):
    """The same elements as a statement of the namespace xp, and as C++."""

    operations: int
    statement: str
    operation: str


EXPRESSIONS = [
    Expression(1, "xp.add(x, y, out=z)", "z = x + y"),
    Expression(4, "xp.sqrt(x * x + y * y, out=z)", "z = sqrtf(x * x + y * y)"),
    Expression(
        8,
        "xp.add(xp.sqrt(x * x + y * y) * 0.5, xp.abs(x - y), out=z)",
        "z = sqrtf(x * x + y * y) * 0.5f + fabsf(x - y)",
    ),
]


def ways(expression: Expression, size: int) -> dict[str, tuple[Callable[[], Any], Callable[[], None]]]:
    """What is measured, and how to wait for it, by the names of the columns. The results are checked here."""
    random = numpy.random.default_rng(1)
    given = [random.random(size, dtype=numpy.float32) for _ in range(2)]
    right = numpy.zeros(1000, dtype=numpy.float32)
    exec(expression.statement, {"xp": numpy, "x": given[0][:1000], "y": given[1][:1000], "z": right})
    found: dict[str, tuple[Callable[[], Any], Callable[[], None]]] = {}
    for name, (xp, wait) in contenders().items():
        if name == "NumPy":
            continue
        x, y = (xp.asarray(one) for one in given)
        z = xp.zeros(size, dtype=xp.float32)
        names = {"xp": xp, "x": x, "y": y, "z": z}
        kernel = xp.ElementwiseKernel("float32 x, float32 y", "float32 z", expression.operation, "measured")
        code = compile(expression.statement, "statement", "exec")
        for way, call in {
            f"{name}, statement": lambda code=code, names=names: exec(code, names),
            f"{name}, ElementwiseKernel": lambda kernel=kernel, x=x, y=y, z=z: kernel(x, y, z),
        }.items():
            z[:] = -1
            call()
            numpy.testing.assert_allclose(on_host(z[:1000]), right, rtol=1e-5, atol=1e-6, err_msg=way)
            found[way] = (call, wait)
    return found


def measure(expression: Expression, size: int, repeats: int, calls: int) -> dict[str, float]:
    """Gigabytes per second of each way."""
    best: dict[str, float] = {}
    sides = ways(expression, size)
    for _ in range(repeats):
        for name, (call, wait) in sides.items():
            wait()

            def run(call: Callable[[], Any] = call, wait: Callable[[], None] = wait) -> None:
                for _ in range(calls):
                    call()
                wait()

            best[name] = min(best.get(name, float("inf")), timeit.timeit(run, number=1) / calls)
    return {name: 3 * 4 * size / seconds / 1e9 for name, seconds in best.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arrays.bandwidth", description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--calls", type=int, default=20, help="of a repeat")
    parser.add_argument("--elements", type=int, default=1 << 26)
    options = parser.parse_args()
    print(f"GB/s, {options.elements} elements")
    results: dict[int, dict[str, float]] = {}
    for expression in EXPRESSIONS:
        found = measure(expression, options.elements, options.repeats, options.calls)
        results[expression.operations] = found
        own = found["cupola.numpy, statement"]
        for name, bandwidth in found.items():
            print(f"{expression.operations} operations  {name:34}{bandwidth:10.0f}{own / bandwidth:8.2f}", flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
