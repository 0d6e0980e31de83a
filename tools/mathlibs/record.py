"""Record what NVIDIA's math libraries answer to calls, on a GPU.

``python tools/mathlibs/record.py cublas tests/cpu/math/recorded/cublas.txt TARGET`` makes the calls of the lines of the
first file, which are ``calls -> answer`` or calls alone, and writes the same lines with the answers of the GPU. A call
that ends the context or the process does so in a process of its own, and one that does not end is ended.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.mathlibs.bench import Bench, Driver

HANDLES = {
    "cublas": "cublasCreate_v2",
    "cublasLt": "cublasLtCreate",
    "cusolver": "cusolverDnCreate",
    "cusparse": "cusparseCreate",
}

LONGEST = 30  # seconds of a line


def library(name: str) -> ctypes.CDLL:
    """NVIDIA's library, from the loader's path or from packages of pip."""
    names = [f"lib{name}.so.{major}" for major in (13, 12, 11, 10)]
    for candidate in names:
        for folder in [*sys.path, "/usr/local/cuda/lib64"]:
            found = sorted(glob.glob(f"{folder}/nvidia/*/lib/{candidate}")) + glob.glob(f"{folder}/{candidate}")
            for path in found:
                for helper in ("libcublasLt", "libcublas", "libcusparse", "libnvJitLink"):
                    for beside in glob.glob(f"{os.path.dirname(path)}/{helper}.so.*"):
                        if name != "cublas" or helper == "libcublasLt":
                            ctypes.CDLL(beside, mode=ctypes.RTLD_GLOBAL)
                print("#", path, file=sys.stderr)
                return ctypes.CDLL(path)
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise OSError(f"no {' or '.join(names)}")


def bench_of(name: str, emulated: bool) -> Bench:
    """A bench with a handle of the library."""
    find: Callable[[str], Any]
    if emulated:
        from tools.mathlibs.emulated import function, provide_driver

        provide_driver(name)
        driver, find = Driver(), function
    else:
        driver = Driver()
        loaded = library(name)
        find = loaded.__getattr__
    bench = Bench(driver, find)
    if name in HANDLES:
        handle = ctypes.c_void_p()
        status = bench.function(HANDLES[name])(ctypes.byref(handle))
        if status:
            raise RuntimeError(f"{HANDLES[name]} returned {status}")
        bench.names["h"] = handle.value
    if name == "cublasLt":
        from tools.mathlibs import cublaslt

        bench.names.update(cublaslt.names(bench.function, bench.names))
    if name == "cusolver":
        from tools.mathlibs.solvers import prepare

        prepare(bench, driver)
    if name == "cusparse":
        from tools.mathlibs.sparse import Sparse

        Sparse(bench, driver)
    return bench


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--from", dest="start", type=int)
    options = parser.parse_args()
    lines = [line.partition(" -> ")[0] for line in options.source.read_text().splitlines()]
    if options.start is not None:  # a process of its own, until the end or the first fault
        bench = bench_of(options.library, options.emulated)
        with options.target.open("a") as target:
            for i in range(options.start, len(lines)):
                print(f"{lines[i]} -> ", end="", file=target, flush=True)
                signal.alarm(LONGEST)
                answer = bench.answer(lines[i])
                print(answer, file=target, flush=True)
                if " fault " in answer:
                    return 3
        return 0
    options.target.write_text("")
    start = 0
    while start < len(lines):
        command = [sys.executable, __file__, options.library, str(options.source), str(options.target)]
        command += ["--from", str(start)]
        status = subprocess.run(command + ["--emulated"] * options.emulated).returncode
        text = options.target.read_text()
        if not text.endswith("\n") and text.endswith("-> "):
            with options.target.open("a") as target:
                target.write(f"crash {status}\n")
        done = options.target.read_text().count("\n")
        if done == start:
            print("no progress at", lines[start], status)
            return 1
        start = done
    print(f"{options.library}: {start} of {len(lines)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
