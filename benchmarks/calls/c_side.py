"""Build calls.c and call it: the cost of each operation from C, on handles that cupola made and graphs of its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupola
from cupola import pathfinder


def build() -> ctypes.CDLL:
    """Compile calls.c against cupola's header, and open the driver in it."""
    include = Path(cupola.__file__).parent / "bindings" / "include"
    target = Path(tempfile.mkdtemp()) / "calls.so"
    subprocess.run(
        [os.environ.get("CC", "gcc"), "-O2", "-shared", "-fPIC", f"-I{include}"]
        + [str(Path(__file__).with_name("calls.c")), "-o", str(target), "-ldl"],
        check=True,
    )
    library = ctypes.CDLL(str(target))
    driver = pathfinder.load_nvidia_dynamic_lib("cuda").abs_path
    assert driver is not None
    if library.bench_open(driver.encode()):
        raise RuntimeError(f"{driver} cannot be opened")
    return library


def measurer(library: ctypes.CDLL, name: str, *arguments: Any) -> Callable[[int], float]:
    """Return a function of n that gives nanoseconds per repetition of ``bench_<name>``."""
    function = getattr(library, f"bench_{name}")
    function.restype = ctypes.c_double
    converted = [ctypes.c_size_t(int(a)) if not isinstance(a, ctypes.Array) else a for a in arguments]

    def measure(n: int) -> float:
        return float(function(ctypes.c_int(n), *converted))

    return measure


def capture(library: ctypes.CDLL, kernels: int, callbacks: int, kernel: int, arguments: ctypes.Array[Any]) -> int:
    """The address of an executable graph that C has captured."""
    library.bench_capture.restype = ctypes.c_void_p
    found = library.bench_capture(kernels, callbacks, ctypes.c_void_p(kernel), arguments)
    if not found:
        raise RuntimeError("C could not capture its graph")
    return int(found)


def argument_pointers(values: list[ctypes._SimpleCData[Any]]) -> ctypes.Array[ctypes.c_void_p]:
    """The ``void**`` that cuLaunchKernel takes; the values must be kept alive by the caller."""
    pointers = [ctypes.addressof(value) for value in values]
    return (ctypes.c_void_p * len(pointers))(*pointers)
