"""The contenders: each makes of a benchmark a function that runs it once, to the end, and the array to compare."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .kernels import Array, Benchmark

Run = Callable[[], None]
Contender = Callable[[Benchmark], "tuple[Run, Callable[[], Array]] | None"]


def gcc(benchmark: Benchmark) -> tuple[Run, Callable[[], Array]]:
    """A plain C loop, ``gcc -O3 -march=native``, one thread; with ``-ffast-math`` where the others may reorder, too."""
    folder = Path(tempfile.mkdtemp())
    (folder / "k.c").write_text(benchmark.c)
    subprocess.run(
        [
            os.environ.get("CC", "gcc"),
            "-O3",
            "-march=native",
            *benchmark.c_options,
            "-shared",
            "-fPIC",
            "k.c",
            "-o",
            "k.so",
            "-lm",
        ],
        cwd=folder,
        check=True,
    )
    function = ctypes.CDLL(str(folder / "k.so")).k
    arrays = benchmark.arrays()
    arguments: list[Any] = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    arguments += [(ctypes.c_float if isinstance(s, np.floating) else ctypes.c_int)(s.item()) for s in benchmark.scalars]
    result = arrays[benchmark.result]

    def run() -> None:
        function(*arguments)

    return run, lambda: result


def numpy(benchmark: Benchmark) -> tuple[Run, Callable[[], Array]] | None:
    """NumPy's way of saying the same, where there is one."""
    if benchmark.numpy is None:
        return None
    arrays = benchmark.arrays()
    function = benchmark.numpy

    def run() -> None:
        function(*arrays, *benchmark.scalars)

    return run, lambda: arrays[benchmark.result]


def pocl(benchmark: Benchmark) -> tuple[Run, Callable[[], Array]] | None:
    """PoCL, the CPU implementation of OpenCL, through pyopencl; None where either is not installed."""
    if not benchmark.opencl:
        return None
    try:
        import pyopencl as cl

        platform = next(p for p in cl.get_platforms() if "Portable" in p.name)
    except Exception:
        return None
    context = cl.Context(platform.get_devices()[:1])
    queue = cl.CommandQueue(context)
    kernel = cl.Program(context, benchmark.opencl).build(benchmark.opencl_options).k
    arrays = benchmark.arrays()
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=array) for array in arrays]
    kernel.set_args(*buffers, *benchmark.scalars)
    size = tuple(g * b for g, b in zip(benchmark.grid, benchmark.block, strict=True))

    def run() -> None:
        cl.enqueue_nd_range_kernel(queue, kernel, size, benchmark.block)
        queue.finish()

    def result() -> Array:
        array = np.empty_like(arrays[benchmark.result])
        cl.enqueue_copy(queue, array, buffers[benchmark.result])
        return array

    return run, result


def cupola(benchmark: Benchmark) -> tuple[Run, Callable[[], Array]]:
    """This package: launch and synchronize, bounds checks on."""
    from cupola import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    options = ProgramOptions(std="c++17", arch=benchmark.architecture or f"sm_{dev.arch}")
    kernel = Program(benchmark.cuda, code_type="c++", options=options).compile("cubin").get_kernel("k")
    buffers = []
    for array in benchmark.arrays():
        host = LegacyPinnedMemoryResource().allocate(array.nbytes)
        np.from_dlpack(host).view(array.dtype)[:] = array.ravel()
        buffers.append(dev.allocate(array.nbytes, stream=stream))
        buffers[-1].copy_from(host, stream=stream)
        stream.sync()
    config = LaunchConfig(grid=benchmark.grid, block=benchmark.block)

    def run() -> None:
        launch(stream, config, kernel, *buffers, *benchmark.scalars)
        stream.sync()

    def result() -> Array:
        template = benchmark.arrays()[benchmark.result]
        host = LegacyPinnedMemoryResource().allocate(template.nbytes)
        buffers[benchmark.result].copy_to(host, stream=stream)
        stream.sync()
        return np.from_dlpack(host).view(template.dtype).reshape(template.shape).copy()

    return run, result


CONTENDERS: dict[str, Contender] = {"gcc": gcc, "NumPy": numpy, "PoCL": pocl, "cupola": cupola}
