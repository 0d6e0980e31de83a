"""How long programs wait at the first use of something, with empty caches.

    python -m benchmarks.arrays.first_use [--repeats N] [--columns NAME,...] [--json FILE] [STATEMENT ...]

Statements are run in a new process, whose caches on disk (cupola's, and that of NVIDIA's driver) are new folders, in
these columns: `compiled`: without the kernels that come with the package, so that NVRTC compiles each; `package`: with
them; `each`: with them, and each statement in a process of its own, behind an import and two arrays, so that what is
done in the background has not had the time of the statements before; `again`: with the caches that `package` left
behind. Milliseconds from the call until the device is done, the median of the repeats. What belongs to starting (the
device, the first array) has rows of its own. Below the table is what waits for more than 100 ms, which is too long.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
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


BEGINNING = ("import", "the first array", "zeros")
ASKED = 100  # milliseconds
COLUMNS = {
    "compiled": "compiled",
    "package": "from the package",
    "each": "in a process of its own",
    "again": "again, from the disk",
}


def measure(compiled: bool, labels: list[str]) -> dict[str, float]:
    """Milliseconds of statements, run here."""
    import numpy

    names: dict[str, Any] = {"numpy": numpy}
    found: dict[str, float] = {}
    for label in labels:
        text = STATEMENTS[label]
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
            from cupola._packed import HEAD, MAGIC, Packed
            from cupola.numpy import _ahead

            nothing = Packed(MAGIC + HEAD.pack(0, 0))
            _ahead.known = functools.partial(lambda one: one, nothing)  # type: ignore[assignment]
    return found


def child(folder: str, compiled: bool, labels: list[str]) -> dict[str, float]:
    """The same in a process of its own, with caches in a folder."""
    environment = {
        **os.environ, "XDG_CACHE_HOME": os.path.join(folder, "cache"), "CUDA_CACHE_PATH": os.path.join(folder, "driver")
    }  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.arrays.first_use", "--child", *(["--compiled"] if compiled else [])]
    done = subprocess.run([*command, *labels], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """A new folder. What still runs with it in the background is ended, or it would run beside the next measurement."""
    made = tempfile.mkdtemp()
    try:
        yield made
    finally:
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or is somebody else's
                if made.encode() in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
        shutil.rmtree(made, ignore_errors=True)


def round_of(columns: list[str], labels: list[str]) -> dict[str, dict[str, float]]:
    """One measurement of each column."""
    found: dict[str, dict[str, float]] = {}
    if "compiled" in columns:
        with folder() as new:
            found["compiled"] = child(new, True, labels)
    if "package" in columns or "again" in columns:
        with folder() as new:
            found["package"] = child(new, False, labels)
            if "again" in columns:
                found["again"] = child(new, False, labels)
    if "each" in columns:
        found["each"] = {}
        for label in labels:
            if label not in BEGINNING:
                with folder() as new:
                    found["each"][label] = child(new, False, [*BEGINNING, label])[label]
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="where to write the figures")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--columns", default="compiled,package,again", help="of compiled, package, each, again")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("statements", nargs="*", help="labels of the table; those of the beginning are always there")
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(measure(chosen.compiled, chosen.statements)))
        return
    columns = [name for name in COLUMNS if name in chosen.columns.split(",")]
    unknown = [label for label in chosen.statements if label not in STATEMENTS]
    if unknown or not columns:
        parser.error(f"no such statement: {unknown}" if unknown else f"no such columns: {chosen.columns}")
    labels = [label for label in STATEMENTS if label in (*BEGINNING, *(chosen.statements or STATEMENTS))]
    rounds = [round_of(columns, labels) for _ in range(chosen.repeats)]
    figures = {
        label: {
            name: statistics.median(one[name][label] for one in rounds) for name in columns if label in rounds[0][name]
        }
        for label in labels
    }
    print(f"| first use | {' | '.join(COLUMNS[name] for name in columns)} |")
    print("|---|" + "---|" * len(columns))
    for label, row in figures.items():
        cells = [f"{row[name]:.0f}" if name in row else "" for name in columns]
        print(f"| {label} | {' | '.join(cells)} |")
    for name in columns:
        slow = [f"{label} {row[name]:.0f}" for label, row in figures.items() if row.get(name, 0) > ASKED]
        print(f"{COLUMNS[name]}: above {ASKED} ms: {', '.join(slow) or 'nothing'}")
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
