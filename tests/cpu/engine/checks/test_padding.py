"""Padding of structures, which nobody writes and everybody copies, is no finding; what is used of a structure is."""

from __future__ import annotations

import pytest

from cupola import Device, LaunchConfig, Program, cpu, launch

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="it switches checks on itself, and runs faulty programs to see what they find"),
]

SOURCE = r"""
struct Tail { double values[2]; short tail; };
struct Middle { char c; double d; int i; };
__device__ Tail made(int i) { Tail t; t.values[0] = t.values[1] = i; t.tail = i; return t; }

// Passed by value to a function that is not inlined, and returned by it.
__device__ __noinline__ Tail turned(Tail t, int by, int depth) {
    Tail result;
    for (int i = 0; i < 2; i++) result.values[(i + by) % 2] = t.values[i];
    result.tail = t.tail + 1;
    return depth ? turned(result, by, depth - 1) : result;
}
extern "C" __global__ void by_value(Tail* x, int depth) {
    x[threadIdx.x].values[0] = x[threadIdx.x].values[1] = 1;
    x[threadIdx.x].tail = 2;
    x[threadIdx.x] = turned(x[threadIdx.x], threadIdx.x, depth);
}
extern "C" __global__ void tail_by_value(Tail* x, int depth) {
    x[threadIdx.x].values[0] = x[threadIdx.x].values[1] = 1;
    x[threadIdx.x] = turned(x[threadIdx.x], threadIdx.x, depth);
}
// Changed in part.
extern "C" __global__ void changed(Middle* x, int) {
    x[threadIdx.x].c = 1, x[threadIdx.x].d = 2, x[threadIdx.x].i = 3;
    Middle m = x[threadIdx.x];
    m.d += 1;
    x[threadIdx.x + 32] = m;
}
extern "C" __global__ void chosen(Middle* x, int n) {
    x[threadIdx.x].c = 1, x[threadIdx.x].d = 2, x[threadIdx.x].i = 3;
    x[threadIdx.x + 32].d = 3, x[threadIdx.x + 32].i = 4, x[threadIdx.x + 32].c = 0;
    Middle m = x[threadIdx.x];
    if (m.i > n) m = x[threadIdx.x + 32];
    x[threadIdx.x + 64] = m;
}
// A member is used.
extern "C" __global__ void asked(Middle* x, int) {
    x[threadIdx.x].d = 2, x[threadIdx.x].i = 3;
    Middle m = x[threadIdx.x];
    if (m.c) m.d += 1;
    x[threadIdx.x + 32] = m;
}
// A member goes elsewhere.
extern "C" __global__ void taken(Middle* x, int) {
    x[threadIdx.x].d = 2, x[threadIdx.x].i = 3;
    Middle m = x[threadIdx.x];
    m.d += 1;
    x[threadIdx.x + 32] = m;
    ((char*)x)[threadIdx.x + 3072] = m.c;
}
// Bytes of their own.
extern "C" __global__ void bytes(char* x, int) { x[threadIdx.x + 32] = x[threadIdx.x]; }
"""


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        ("by_value", False),
        ("tail_by_value", True),
        ("changed", False),
        ("chosen", False),
        ("asked", True),
        ("taken", True),
        ("bytes", True),
    ],
)
def test_padding(device: Device, kernel: str, found: bool) -> None:
    stream = device.create_stream()
    code = Program(SOURCE, "c++").compile("cubin").get_kernel(kernel)
    with cpu.checks(init=True) as checks:
        memory = device.allocate(4096, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=32), code, memory, 2)
        stream.sync()
    memory.close()
    stream.close()
    assert bool(checks.findings) is found, "\n".join(map(str, checks.findings))
