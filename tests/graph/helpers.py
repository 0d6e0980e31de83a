"""What the tests of graphs share."""

from __future__ import annotations

import gc
from collections.abc import Callable

from cupola import Buffer, LaunchConfig, MemoryResource
from tests.limits import eventually

# Additions are atomic: tests have them in nodes that no edge orders.
SOURCE = r"""
extern "C" __global__ void add(int* x, int value) { atomicAdd(x, value); }
extern "C" __global__ void times(int* x, int value) { *x *= value; }
"""

# Apart, since the driver links the device runtime to it.
SETTERS = r"""
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
extern "C" __global__ void below(const int* x, int limit, unsigned long long condition) {
    if (threadIdx.x == 0) cudaGraphSetConditional(condition, *x < limit);
}
extern "C" __global__ void choose(const int* x, int divisor, unsigned long long condition) {
    cudaGraphSetConditional(condition, *x % divisor);
}
"""

ONE = LaunchConfig(grid=1, block=1)


def run(graph, stream):
    """Launch and wait."""
    graph.launch(stream)
    stream.sync()


def wait_until(condition: Callable[[], bool]) -> bool:
    """Whether it comes true soon: what graphs let go of is dropped on an ordinary thread, some time later."""
    gc.collect()
    return eventually(condition)


class Resource(MemoryResource):
    """Notes what it gets back."""

    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def __init__(self) -> None:
        self.freed: list[int] = []

    def deallocate(self, ptr, size, *, stream):
        self.freed.append(ptr)

    def parts(self, whole: Buffer, count: int, size: int, stream) -> list[Buffer]:
        """Pieces of another buffer that are freed here."""
        return [Buffer.from_handle(whole.handle + i * size, size, mr=self, stream=stream) for i in range(count)]
