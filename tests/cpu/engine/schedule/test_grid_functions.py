"""The barrier of a grid as functions of the device runtime, which compilers such as numba's call."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from cupola.bindings import nvjitlink
from cupola.pathfinder import StaticLibNotFoundError, find_static_lib
from tests.cpu.engine.kernels import copy_to_host

# NVRTC declares the functions itself.
SOURCE = """
extern "C" __global__ void rounds(int *values, int *bad) {
    unsigned long long grid = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
    int n = gridDim.x * gridDim.y * blockDim.x * blockDim.y;
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    int i = block * blockDim.x * blockDim.y + threadIdx.y * blockDim.x + threadIdx.x, wrong = 0;
    for (int round = 0; round < 5; round++) {
        values[i] = round * 1000 + i;
        wrong |= cudaCGSynchronize(grid, 0);
        wrong |= values[(i + 77) % n] != round * 1000 + (i + 77) % n;
        wrong |= cudaCGSynchronize(grid, 0);
    }
    bad[i] = wrong;
}
"""


def code(kind: str) -> ObjectCode:
    """The source as PTX, or as LTO-IR that nvJitLink has linked with libcudadevrt.a."""
    device = Device(0)
    device.set_current()
    options = ProgramOptions(
        arch=f"sm_{device.arch}", relocatable_device_code=True, link_time_optimization=kind == "ltoir"
    )
    compiled = Program(SOURCE, code_type="c++", options=options).compile(kind)
    if kind == "ptx":
        return compiled
    try:
        library = find_static_lib("cudadevrt")
    except StaticLibNotFoundError as error:
        pytest.skip(f"needs libcudadevrt.a: {error}")
    link = nvjitlink.create(2, [f"-arch=sm_{device.arch}", "-lto"])
    try:
        nvjitlink.add_data(link, nvjitlink.InputType.LTOIR, compiled.code, len(compiled.code), "rounds")
        nvjitlink.add_file(link, nvjitlink.InputType.LIBRARY, library)
        nvjitlink.complete(link)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(link))
        nvjitlink.get_linked_cubin(link, cubin)
    finally:
        nvjitlink.destroy(link)
    return ObjectCode.from_cubin(bytes(cubin))


def run(kind: str, grid: int | tuple[int, ...], block: int | tuple[int, ...], *, cooperative: bool) -> np.ndarray:
    """What each thread found wrong."""
    kernel = code(kind).get_kernel("rounds")
    device = Device(0)
    stream = device.create_stream()
    count = int(np.prod(grid) * np.prod(block))
    values, bad = (device.allocate(4 * count, stream=stream) for _ in range(2))
    result = np.full(count, 7, np.int32)
    launch(stream, LaunchConfig(grid=grid, block=block, is_cooperative=cooperative), kernel, values, bad)
    copy_to_host(result, bad, stream)
    stream.sync()
    return result


@pytest.mark.parametrize("kind", [pytest.param("ptx", marks=pytest.mark.cpu_only), "ltoir"])
@pytest.mark.parametrize("grid, block", [(1, 1), (6, 64), ((3, 4), (8, 5))])
def test_a_grid_meets(kind, grid, block):
    assert not run(kind, grid, block, cooperative=True).any()


@pytest.mark.unchecked(reason="the barrier of the grid is none, so its blocks race")
@pytest.mark.cpu_only
def test_without_a_cooperative_launch_the_functions_fail():
    assert run("ptx", 2, 32, cooperative=False).all()
