"""Shares of the worker threads: what runs at the same time in a green context, and who takes turns."""

from __future__ import annotations

import os

import numpy as np
import pytest

from cupola import ContextOptions, Device, LaunchConfig, PinnedMemoryResource, Program, SMResourceOptions, launch
from tests import processes

pytestmark = pytest.mark.cpu_only

SOURCE = r"""
// counts[0]: blocks that are inside now, counts[1]: the most there were, counts[2]: all
extern "C" __global__ void visit(unsigned* counts, int rounds, float* x) {
    unsigned inside = atomicAdd(&counts[0], 1) + 1;
    atomicMax(&counts[1], inside);
    float value = blockIdx.x;
    for (int i = 0; i < rounds; i++) value = value * 0.5f + 1.0f;
    if (value < 0) *x = value; // never
    atomicAdd(&counts[2], 1);
    atomicSub(&counts[0], 1);
}
extern "C" __global__ void take_turns(volatile unsigned* turn, unsigned mine, unsigned all, unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        while (*turn % all != mine) ;
        *turn = *turn + 1;
    }
}
"""


@pytest.fixture(scope="module")
def kernels():
    Device(0).set_current()
    code = Program(SOURCE, "c++").compile("cubin")
    return {name: code.get_kernel(name) for name in ("visit", "take_turns")}


@pytest.fixture
def device():
    device = Device(0)
    device.set_current()
    return device


def threads_of(count, whole):
    """How many threads a part has, as docs/tenants.md says."""
    threads = int(os.environ.get("CUPOLA_CPU_THREADS") or len(os.sched_getaffinity(0)))
    return max(1, threads * count // whole)


def numbers(device, stream, count):
    buffer = PinnedMemoryResource().allocate(4 * count, stream=stream)
    view = np.from_dlpack(buffer).view(np.uint32)
    view[:] = 0
    return buffer, view


@pytest.mark.parametrize("count", [8, 64])
def test_streams_of_a_part_share_its_threads(device, kernels, count):
    whole = device.resources.sm
    groups, _rest = whole.split(SMResourceOptions(count=count))
    context = device.create_context(ContextOptions(groups))
    streams = [context.create_stream() for _ in range(6)]
    buffer, counts = numbers(device, streams[0], 4)
    for stream in streams:
        launch(stream, LaunchConfig(grid=200, block=1), kernels["visit"], buffer, 20_000, int(buffer.handle) + 12)
    for stream in streams:
        stream.sync()
    assert counts[0] == 0 and counts[2] == 6 * 200
    assert 1 <= counts[1] <= threads_of(count, whole.sm_count)


def test_more_kernels_than_threads_that_wait_for_each_other(device, kernels):
    """Each gives its place to the others while it waits."""
    groups, _rest = device.resources.sm.split(SMResourceOptions(count=8))
    context = device.create_context(ContextOptions(groups))
    streams = [context.create_stream() for _ in range(5)]
    buffer, counts = numbers(device, streams[0], 1)
    for mine, stream in enumerate(streams):
        launch(stream, LaunchConfig(grid=1, block=1), kernels["take_turns"], buffer, mine, len(streams), 20)
    for stream in streams:
        stream.sync()
    assert counts[0] == 20 * len(streams)


def test_a_fault_gives_the_place_back():
    """In a process of its own: the context is spoiled."""
    import sys

    program = """
from cupola import *
dev = Device(0); dev.set_current()
groups, _ = dev.resources.sm.split(SMResourceOptions(count=8))
context = dev.create_context(ContextOptions(groups))
code = Program('extern "C" __global__ void bad(int* x) { x[1 << 20] = 1; }', "c++").compile("cubin")
first, second = context.create_stream(), context.create_stream()
x = dev.allocate(4, stream=first)
for stream in (first, second):
    try:
        launch(stream, LaunchConfig(grid=4, block=32), code.get_kernel("bad"), x)
        stream.sync()
    except CUDAError as error:
        print(error.name)
"""
    done = processes.run([sys.executable, "-c", program])
    assert done.stdout.split() == ["CUDA_ERROR_ILLEGAL_ADDRESS"] * 2, done.stderr
