"""How long programs wait at the first use of something, with empty caches.

    python -m benchmarks.arrays.first_use [--json FILE] [--repeats N]

Each statement is run once in a new process, whose caches on disk (cupola's, and that of NVIDIA's driver) are new
folders: with the kernels that come with the package; without them, so that NVRTC compiles each; and again, with the
caches that this left behind. Milliseconds from the call until the device is done, the median of the repeats. What
belongs to starting (the device, the first array) has rows of its own.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

STATEMENTS = {
    "import": "import cupola.numpy as np",
    "the first array": "x = np.asarray(numpy.random.default_rng(1).random(10_000))",
    "zeros": "y = np.zeros(10_000)",
    "x + y": "x + y",
    "x * 2": "x * 2",
    "x[1:] - x[:-1]": "x[1:] - x[:-1]",
    "m - row": "x.reshape(100, 100) - x[:100]",
    "x.reshape(100, 100).T.copy()": "x.reshape(100, 100).T.copy()",
    "x.astype(float32)": "x.astype(np.float32)",
    "x > 0.5": "x > 0.5",
    "where(x > 0.5, x, 0)": "np.where(x > 0.5, x, 0)",
    "sqrt(x * x + y * y)": "np.sqrt(x * x + y * y)",
    "exp(x)": "np.exp(x)",
    "sin(x)": "np.sin(x)",
    "x ** 2": "x ** 2",
    "x.sum()": "x.sum()",
    "m.mean(axis=0)": "x.reshape(100, 100).mean(axis=0)",
    "x.max()": "x.max()",
    "x.std()": "x.std()",
    "argmax(x)": "np.argmax(x)",
    "cumsum(x)": "np.cumsum(x)",
    "sort(x)": "np.sort(x)",
    "argsort, a million": "np.argsort(np.zeros(1_000_000))",
    "x[places]": "x[np.arange(10)]",
    "x[x > 0.5]": "x[x > 0.5]",
    "rng.random(n)": "np.random.default_rng(1).random(10_000)",
    "rng.normal(size=n)": "np.random.default_rng(1).normal(size=10_000)",
    "m @ m": "x.reshape(100, 100) @ x.reshape(100, 100)",
    "fft.fft(x)": "np.fft.fft(x)",
    "linalg.solve(m, row)": "np.linalg.solve(x.reshape(100, 100), x[:100])",
    "what is not among them": "(x + 3) * (y - x) / (2 + y)",
}


def measure(compiled: bool) -> dict[str, float]:
    """Milliseconds of each statement, run here."""
    import numpy

    names: dict[str, Any] = {"numpy": numpy}
    found: dict[str, float] = {}
    for label, text in STATEMENTS.items():
        code = compile(f"made = {text}" if " = " not in text and "import" not in text else text, "first use", "exec")
        begin = time.perf_counter()
        exec(code, names)
        made = names.pop("made", None)
        for one in (made, names.get("y")):
            if hasattr(one, "_compute_now"):
                one._compute_now()
        if label != "import":
            from cupola import Device

            Device().sync()
        found[label] = 1e3 * (time.perf_counter() - begin)
        if label == "import" and compiled:
            from cupola.numpy import _ahead

            nothing = _ahead.Known(_ahead.MAGIC + _ahead.HEAD.pack(0, 0))
            _ahead.known = functools.partial(lambda one: one, nothing)  # type: ignore[assignment]
    return found


def child(folder: str, compiled: bool) -> dict[str, float]:
    """The same in a process of its own, with caches in a folder."""
    environment = {
        **os.environ, "XDG_CACHE_HOME": os.path.join(folder, "cache"), "CUDA_CACHE_PATH": os.path.join(folder, "driver")
    }  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.arrays.first_use", "--child", *(["--compiled"] if compiled else [])]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="where to write the figures")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(measure(chosen.compiled)))
        return
    rounds: dict[str, list[dict[str, float]]] = {"compiled": [], "from the package": [], "again": []}
    for _ in range(chosen.repeats):
        with tempfile.TemporaryDirectory() as folder:
            rounds["compiled"].append(child(folder, True))
            rounds["again"].append(child(folder, True))
        with tempfile.TemporaryDirectory() as folder:
            rounds["from the package"].append(child(folder, False))
    figures = {
        label: {name: statistics.median(one[label] for one in found) for name, found in rounds.items()}
        for label in STATEMENTS
    }
    print("| first use | compiled | from the package | again, from the disk |")
    print("|---|---|---|---|")
    for label, row in figures.items():
        print(f"| {label} | {' | '.join(f'{row[name]:.0f}' for name in rounds)} |")
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
