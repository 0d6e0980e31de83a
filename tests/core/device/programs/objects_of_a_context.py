"""What the programs about faults begin with: what belongs to a context, and a check that work is done."""

import ctypes

from cupola import CUDAError, Device, LaunchConfig, LegacyPinnedMemoryResource, Program, launch  # noqa: F401
from cupola.bindings import driver  # noqa: F401

SOURCE = """
extern "C" __global__ void store(int* x, long long at) { x[at] = 7; }
extern "C" __global__ void check(int* x, int n) { assert(n < 3); }
extern "C" __global__ void stop() { asm("trap;"); }
extern "C" __global__ void count(int* x, int n) { atomicAdd(x, n); }
"""
ONE = LaunchConfig(grid=1, block=1)
device = Device(0)
device.set_current()
stream = device.create_stream()
code = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")
count = code.get_kernel("count")


def make():
    """One of each object that belongs to a context."""
    stream = device.create_stream()
    builder = stream.create_graph_builder().begin_building()
    launch(builder, LaunchConfig(grid=4, block=32), count, 0, 0)
    graph = builder.end_building().complete()
    buffers = [device.allocate(256, stream=stream) for _ in range(3)]
    buffers += [device.allocate(256, stream=device.default_stream), LegacyPinnedMemoryResource().allocate(256)]
    other = device.create_stream()
    other.wait(stream)
    return stream, stream.record(), builder, graph, buffers


def computes():
    """Whether a new stream, new memory and the kernel from before work."""
    stream = device.create_stream()
    other = device.create_stream()
    memory = device.allocate(4, stream=stream)
    host = LegacyPinnedMemoryResource().allocate(4)
    memory.fill(0, stream=stream)
    other.wait(stream)
    launch(other, LaunchConfig(grid=4, block=32), count, memory, 3)
    stream.wait(other)
    memory.copy_to(host, stream=stream)
    stream.sync()
    return ctypes.c_int.from_address(host.handle).value == 4 * 32 * 3


assert computes()
