"""Run a kernel on NumPy arrays, by the public API: the same tests hold on the CPU device and on a GPU."""

from __future__ import annotations

import functools
import os
import re
from typing import Any

import numpy as np
import pytest

from cupola import Device, Kernel, LaunchConfig, NVRTCError, ObjectCode, Program, ProgramOptions, Stream, launch
from cupola.bindings import driver
from cupola.pathfinder import find_nvidia_header_directory
from tests.cpu.driver.calls import ok

Dim = int | tuple[int, ...]


def skip_without_crt(text: str) -> None:
    """Skip the test when a message is about a header that only a package of its own has; never in CI."""
    missing = re.search(r'cannot open source file "(crt/[^"]+)"', text)
    if missing and os.environ.get("CI", "").lower() not in {"1", "true"}:
        pytest.skip(f"the header {missing[1]} is not installed (nvidia-cuda-crt)")


# What the fixture `engine` adds to a source (conftest.py).
_ENGINE = re.compile(r"// (?:chosen|scalar|narrow|independent|large)$")


@functools.cache
def compile_source(source: str) -> ObjectCode:
    """A CUDA source, compiled once. Each engine has a module of its own, of the same code: to NVRTC it is a comment."""
    plain = _ENGINE.sub("", source)
    return _compile(source) if plain == source else ObjectCode.from_cubin(compile_source(plain).code)


def _compile(source: str) -> ObjectCode:
    device = Device(0)
    device.set_current()
    include = [folder for name in ("cudart", "cccl", "curand") if (folder := find_nvidia_header_directory(name))]
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}", lineinfo=True, include_path=include)
    try:
        return Program(source, code_type="c++", options=options).compile("cubin")
    except NVRTCError as error:
        skip_without_crt(str(error))
        raise


@functools.cache
def compile_kernel(source: str, name: str) -> Kernel:
    """A kernel of a CUDA source."""
    return compile_source(source).get_kernel(name)


@functools.cache
def _stream() -> Stream:
    device = Device(0)
    device.set_current()
    return device.create_stream()


def run(source: str, name: str, grid: Dim, block: Dim, *arguments: Any, **launch: Any) -> None:
    """Compile a kernel and run it, as `run_kernel` does."""
    run_kernel(compile_kernel(source, name), grid, block, *arguments, **launch)


def run_kernel(
    kernel: Kernel,
    grid: Dim,
    block: Dim,
    *arguments: Any,
    shared: int = 0,
    cooperative: bool = False,
    cluster: Dim | None = None,
) -> None:
    """Launch a kernel and wait for it. Arrays go to the device and come back; the rest are NumPy scalars.

    With a cluster, the grid counts clusters.
    """
    stream = _stream()
    device = Device(0)
    buffers, values = [], []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            buffer = device.allocate(max(argument.nbytes, 1), stream=stream)
            host = np.ascontiguousarray(argument)
            copy_to_device(buffer, host, stream)
            buffers.append((buffer, argument))
            values.append(buffer)
        else:
            values.append(argument)
    config = LaunchConfig(grid=grid, block=block, cluster=cluster, shmem_size=shared, is_cooperative=cooperative)
    launch(stream, config, kernel, *values)
    stream.sync()
    for buffer, array in buffers:
        copy_to_host(array, buffer, stream)
        buffer.close(stream=stream)


def copy_to_device(buffer: Any, array: np.ndarray, stream: Stream) -> None:
    if array.nbytes:
        ok(driver.cuMemcpyHtoDAsync(int(buffer.handle), array.ctypes.data, array.nbytes, int(stream.handle)))
    stream.sync()


def copy_to_host(array: np.ndarray, buffer: Any, stream: Stream) -> None:
    if array.nbytes:
        ok(driver.cuMemcpyDtoHAsync(array.ctypes.data, int(buffer.handle), array.nbytes, int(stream.handle)))
    stream.sync()
