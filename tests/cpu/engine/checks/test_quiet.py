"""Accesses that are not told because nothing can be wrong with them: what is wrong is found all the same.

In a process of its own, since reads are passed over only where a program works with one stream."""

from __future__ import annotations

import sys

import pytest

from tests import processes

pytestmark = pytest.mark.cpu_only

PROGRAM = r'''
import numpy as np
from cupola import Device, LaunchConfig, Program, cpu, launch

SOURCE = r"""
#define K extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
struct Two { const int* x; int* y; };
K shift(const int* x, int* y) { y[I] = x[I + 1]; }
K shift_two(Two two) { two.y[I] = two.x[I + 1]; }
K choose(const int* x, const int* z, int* y, int which) { y[I] = (which ? x : z)[I + 1]; }
K far(int* const* table, int* y) { y[I] = table[0][I + 1]; }
K add(const int* x, int* y) { atomicAdd(y + I, x[I + 1]); }
K twice(int* y) { y[I % 64] = I; }
K neighbor(int* y) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    y[I] = s[threadIdx.x ^ 33];
    __syncthreads();
    s[threadIdx.x] = 0;
    y[I] += s[threadIdx.x];
}
K rounds(int* y) {
    __shared__ int s[64];
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        s[threadIdx.x] = i;
        __syncthreads();
        sum += s[threadIdx.x ^ 33];
    }
    y[I] = sum;
}
"""
cpu.use()
dev = Device()
dev.set_current()
code = Program(SOURCE, "c++").compile("cubin")
stream = dev.create_stream()
buffers = [dev.allocate(4 * 200, stream=stream) for _ in range(3)]
for buffer in buffers:
    buffer.fill(b"\0", stream=stream)
table = dev.array(np.array([int(buffers[0].handle)], np.int64), stream=stream)
stream.sync()
x, y, z = (int(buffer.handle) for buffer in buffers)

def two(x, y):
    return np.array((x, y), np.dtype([("x", np.uint64), ("y", np.uint64)]))[()]

def found(name, *arguments, **checks):
    with cpu.checks(**(checks or {"race": True})) as made:
        launch(stream, LaunchConfig(grid=2, block=64), code.get_kernel(name), *arguments)
        stream.sync()
    return bool(made.findings)

assert not found("shift", x, y)
assert found("shift", x, x)
assert found("shift", x, x + 4 * 32)
assert not found("shift_two", two(x, y))
assert found("shift_two", two(x, x))
assert not found("choose", x, z, y, 1)
assert found("choose", x, y, y, 0)
assert found("choose", y, x, y, 1)
assert not found("far", table.buffer, y)
assert found("far", table.buffer, x)
assert not found("add", x, y)
assert found("add", x, x)
assert found("twice", y)
assert not found("neighbor", y)
assert found("rounds", y)

with cpu.checks(init=True):  # all the time: what was written while it is off is not known
    new = dev.allocate(4 * 200, stream=stream)
    n = int(new.handle)
    assert found("shift", n, y, init=True)  # told, and written from here on
    assert not found("shift", x, n, init=True)
    half = dev.allocate(4 * 200, stream=stream)
    h = int(half.handle)
    assert not found("shift", x, h, init=True)  # the first 128
    assert found("shift", h, y, init=True)
print("fine")
'''


def test_what_is_wrong_is_found() -> None:
    done = processes.run([sys.executable, "-c", PROGRAM])
    assert done.stdout == "fine\n", done.stdout + done.stderr
