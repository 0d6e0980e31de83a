"""Kernels that launch, linked with the device runtime, and the log in which kernels say what they did."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from cupola import (
    Device,
    LaunchConfig,
    Linker,
    LinkerOptions,
    ObjectCode,
    PinnedMemoryResource,
    Program,
    ProgramOptions,
)
from cupola import launch as launch_kernel
from cupola.pathfinder import StaticLibNotFoundError, find_static_lib

HELPERS = r"""
typedef unsigned long long u64;
__device__ void nap(int milliseconds) {
    u64 begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < milliseconds * 1000000ull);
}
// The log is one number, how many follow, and those.
__device__ void tell(int* log, int what) {
    __threadfence_system();
    int at = atomicAdd(log, 1);
    ((volatile int*)log)[at + 1] = what;
    __threadfence_system();
}
"""

ONE = LaunchConfig(grid=1, block=1)
ROOM = 4000


@functools.cache
def linked(source: str) -> ObjectCode:
    """CUDA C++, behind `HELPERS`, as code with the device runtime."""
    device = Device(0)
    device.set_current()
    try:
        library = ObjectCode.from_library(find_static_lib("cudadevrt"))
    except StaticLibNotFoundError as error:
        pytest.skip(f"needs libcudadevrt.a: {error}")
    arch = f"sm_{device.arch}"
    options = ProgramOptions(arch=arch, relocatable_device_code=True, name="launching.cu", lineinfo=True)
    compiled = Program(HELPERS + source, "c++", options).compile("ptx")
    return Linker(compiled, library, options=LinkerOptions(arch=arch)).link("cubin")


class Log:
    """Numbers that kernels leave, in their order."""

    def __init__(self, stream) -> None:
        self.stream = stream
        self.buffer = PinnedMemoryResource().allocate(4 * (ROOM + 1), stream=stream)
        self.numbers = np.from_dlpack(self.buffer).view(np.int32)
        stream.sync()
        self.numbers[:] = 0

    def read(self) -> list[int]:
        """What was said, when the stream is done; the log is empty afterwards."""
        self.stream.sync()
        said = self.numbers[1 : 1 + min(self.numbers[0], ROOM)].tolist()
        self.numbers[:] = 0
        return said

    def run(self, kernel, *arguments, config: LaunchConfig = ONE) -> list[int]:
        """What a launch says; the log is the first argument."""
        launch_kernel(self.stream, config, kernel, self.buffer, *arguments)
        return self.read()


def pairs(said: list[int]) -> dict[int, int]:
    """A log of numbers and codes, taken in turn."""
    return dict(zip(said[::2], said[1::2], strict=True))
