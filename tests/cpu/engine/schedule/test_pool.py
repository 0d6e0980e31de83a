"""Helper threads: each block runs once, whoever runs it and however many launches there are at a time.

In processes of their own, with more threads than the computer may have processors.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.cpu_only

BEGIN = r'''
import threading
import numpy as np
from cupola import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, launch

device = Device()
device.set_current()
code = Program(r"""
extern "C" __global__ void visit(unsigned* visits, unsigned work) {
    unsigned n = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z), x = n;
    for (unsigned i = 0; i < work; i++) x = x * 1664525u + 1013904223u;
    if (threadIdx.x == 0) atomicAdd(&visits[n], x == 12345u ? 2 : 1);
}
extern "C" __global__ void pass_on(volatile unsigned* done) { // each block waits for the one before it
    if (blockIdx.x) while (done[blockIdx.x - 1] == 0) ;
    done[blockIdx.x] = 1;
}
""", "c++").compile("cubin")
visit, pass_on = code.get_kernel("visit"), code.get_kernel("pass_on")

def numbers(count):
    buffer = LegacyPinnedMemoryResource().allocate(4 * count)
    view = np.from_dlpack(buffer).view(np.uint32)
    view[:] = 0
    return buffer, view

def check(stream, buffer, view, grid, work, times):
    view[:] = 0
    for _ in range(times):
        launch(stream, LaunchConfig(grid=grid, block=32), visit, buffer, np.uint32(work))
    stream.sync()
    count = int(np.prod(grid))
    assert (view[:count] == times).all() and not view[count:].any(), (grid, work, times)
'''

PROGRAMS = {
    # Launches of all lengths, so that helpers come never, late and at once, from sleep and while they still watch.
    "grids": r"""
stream = device.create_stream()
buffer, view = numbers(70_000)
for grid in [(1,), (2,), (3,), (4,), (5,), (7,), (64,), (331,), (13, 7), (5, 3, 11), (65_537,)]:
    for work, times in [(1, 3), (300, 3), (3000 if np.prod(grid) < 1000 else 1, 4)]:
        check(stream, buffer, view, grid, work, times)
""",
    "many launches at a time": r"""
def use(times=4):
    device.set_current()
    stream = device.create_stream()
    buffer, view = numbers(200)
    for _ in range(times):
        check(stream, buffer, view, (200,), 2000, 2)
    done.append(True)

done = []
threads = [threading.Thread(target=use) for _ in range(24)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(done) == 24
""",
    "a block waits for the one before it": r"""
stream = device.create_stream()
buffer, view = numbers(500)
for _ in range(3):
    view[:] = 0
    launch(stream, LaunchConfig(grid=500, block=1), pass_on, buffer)
    stream.sync()
    assert view.all()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [2, 5])
def test_pool(name, threads, run_python):
    done = run_python(BEGIN + PROGRAMS[name], CUPOLA_DEVICE="cpu", CUPOLA_CPU_THREADS=str(threads))
    assert done.returncode == 0, done.stderr
