"""The two sides of a program: each is a function that runs it once, to the end, and one that gives its arrays."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from .table import Array, Program

Side = tuple[Callable[[], None], Callable[[], dict[str, Array]]]

_SOURCES = Path(__file__).parent / "sources"
_FOR_CUDA = """#define KERNEL extern "C" __global__
#define SHARED static __device__ inline
#define SHARED_BOTH static __device__ inline
"""
_FOR_C = """#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#define SHARED_BOTH static inline
"""


def source_of(program: Program) -> str:
    return (_SOURCES / f"{program.name}.cu").read_text()


def arrays_of(program: Program) -> dict[str, Array]:
    """Its arrays; numbers of NumPy's calculations may have become doubles."""
    types = {np.dtype(np.float64): np.float32} if "double" not in source_of(program) else {}
    return {
        name: np.ascontiguousarray(array, types.get(array.dtype, array.dtype))
        for name, array in program.arrays().items()
    }


FLAGS = ("-O3", "-march=native", "-fopenmp", "-fno-math-errno")
"""Of the functions of C: without the last one, no loop with a square root becomes vector code."""


def build(programs: Iterable[Program], folder: str) -> None:
    """Compile the functions of C of all programs."""

    def build_one(program: Program) -> None:
        path = os.path.join(folder, program.name)
        with open(f"{path}.c", "w") as file:
            file.write(_FOR_C + source_of(program))
        command = [
            os.environ.get("CC", "gcc"),
            *FLAGS,
            "-w",
            "-shared",
            "-fPIC",
            f"{path}.c",
            "-o",
            f"{path}.so",
            "-lm",
        ]
        subprocess.run(command, check=True)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(build_one, programs))


def openmp(program: Program, arrays: dict[str, Array], folder: str) -> Side:
    """The function of C, which `build` has compiled into the folder."""
    function = ctypes.CDLL(os.path.join(folder, f"{program.name}.so")).program
    arrays = {name: array.copy() for name, array in arrays.items()}
    arguments: list[Any] = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays.values()]
    for scalar in program.scalars.values():
        kinds: dict[type, Any] = {np.float32: ctypes.c_float, np.float64: ctypes.c_double}
        arguments.append(kinds.get(type(scalar), ctypes.c_int)(scalar))

    def run() -> None:
        function(*arguments)

    return run, lambda: arrays


def cupola(program: Program, arrays: dict[str, Array]) -> Side:
    """The kernels, on the CPU device: all launches and the wait for their end."""
    from cupola import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, ProgramOptions, launch
    from cupola import Program as Source

    device = Device()
    device.set_current()
    stream = device.create_stream()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    code: ObjectCode = Source(_FOR_CUDA + source_of(program), "c++", options).compile("cubin")
    named: dict[str, Any] = {
        name: np.int32(scalar) if isinstance(scalar, int) else scalar for name, scalar in program.scalars.items()
    }
    for name, array in arrays.items():
        host = LegacyPinnedMemoryResource().allocate(array.nbytes)
        np.from_dlpack(host).view(array.dtype)[:] = array.ravel()
        named[name] = device.allocate(array.nbytes, stream=stream)
        named[name].copy_from(host, stream=stream)
        stream.sync()
    kernels = {launch.kernel: code.get_kernel(launch.kernel) for launch in program.launches}
    calls = [
        (
            LaunchConfig(grid=one.grid, block=one.block),
            kernels[one.kernel],
            [np.int32(word) if word.isdecimal() else named[word] for word in one.arguments.split()],
        )
        for one in program.launches
    ]

    def run() -> None:
        for config, kernel, arguments in calls:
            launch(stream, config, kernel, *arguments)
        stream.sync()

    def results() -> dict[str, Array]:
        found = {}
        for name in program.results:
            array = arrays[name]
            host = LegacyPinnedMemoryResource().allocate(array.nbytes)
            named[name].copy_to(host, stream=stream)
            stream.sync()
            found[name] = np.from_dlpack(host).view(array.dtype).reshape(array.shape).copy()
        return found

    return run, results


def difference(program: Program, got: Array, expected: Array) -> float:
    """How far a result is off, in units of what is allowed."""
    if np.issubdtype(expected.dtype, np.integer):
        return float(np.mean(got != expected)) / program.tolerance
    off = np.abs(got.astype(np.float64) - expected).max() / np.abs(expected).max()
    return float(off) / program.tolerance if np.isfinite(off) else float("inf")
