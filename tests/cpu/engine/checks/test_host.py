"""What the host does with pinned and managed memory before it has waited: pairs, as in the table of kernels."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import numpy as np
import pytest

from cupola import Device, LaunchConfig, ManagedMemoryResource, PinnedMemoryResource, cpu, launch
from cupola.bindings import driver
from tests import processes
from tests.cpu.engine.checks.cases import Cases, World

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="it switches checks on itself, and runs faulty programs to see what they find"),
]

WORDS = 2048
SOURCE = r"""
#define K extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
K put(int* x, int n) { if (I < n) x[I] = I; }
K get(const int* x, int* y, int n) { if (I < n) y[I] = x[I]; }
K tell(int* x, int n, volatile int* flag) { if (I < n) x[I] = I; __threadfence_system(); if (!I) *flag = 1; }
"""
case = Cases()
"""Each with ``none``, or what the host does, what it races with, and the line of the kernel."""


class HostWorld(World):
    """Two arrays that the host sees, pinned ``x`` and managed ``m``, and one that it does not see."""

    def __init__(self, dev: Device) -> None:
        super().__init__(dev, "host.cu", SOURCE)
        self.s = dev.create_stream()
        self.pinned, self.x = self.new(PinnedMemoryResource())
        self.managed, self.m = self.new(ManagedMemoryResource())
        self.device = dev.allocate(4 * WORDS, stream=self.s)
        self.x[:] = self.m[:] = 1
        self.s.sync()

    def new(self, resource: Any, words: int = WORDS) -> tuple[Any, Any]:
        buffer = resource.allocate(4 * words, stream=self.s)
        return buffer, np.from_dlpack(buffer).view(np.int32)

    def run(self, name: str, *arguments: Any, stream: Any = None) -> None:
        config = LaunchConfig(grid=WORDS // 256, block=256)
        launch(self.s if stream is None else stream, config, self.kernel(name), *arguments)


@case("read, write at 4")
def result_read_at_once(w):
    w.run("put", w.pinned, WORDS)
    assert w.x[700] == 700


@case("none")
def result_read_after_the_stream(w):
    w.run("put", w.pinned, WORDS)
    w.s.sync()
    assert w.x[700] == 700


@case("none")
def result_read_after_asking(w):
    w.run("put", w.pinned, WORDS)
    event = w.s.record()
    while not event.is_done:
        pass
    assert w.x[700] == 700


@case("read, write at 4")
def result_read_after_an_earlier_event(w):
    event = w.s.record()
    w.run("put", w.pinned, WORDS)
    event.sync()
    assert w.x[700] == 700


@case("read, write at 4")
def managed_result_read_at_once(w):
    w.run("put", w.managed, WORDS)
    assert w.m.sum() > 0


@case("none")
def managed_result_after_the_device(w):
    w.run("put", w.managed, WORDS)
    w.dev.sync()
    assert w.m.sum() > 0


@case("none")
def result_of_a_stream_that_is_gone_after_the_device(w):
    w.s.sync()
    gone = w.dev.create_stream()
    w.run("put", w.pinned, WORDS, stream=gone)
    gone.close()
    w.dev.sync()
    assert w.x[700] == 700


@case("write, read at 5")
def input_changed(w):
    w.run("get", w.pinned, w.device, WORDS)
    w.x[9] = 3


@case("none")
def input_read(w):
    w.run("get", w.pinned, w.device, WORDS)
    assert w.x[9] == 1


@case("write, write at 4")
def result_overwritten(w):
    w.run("put", w.pinned, WORDS)
    w.x[9] = 3


@case("none")
def other_half_used(w):
    w.run("put", w.pinned, WORDS // 2)
    w.x[WORDS // 2 :] = 3


@case("none")
def other_half_used_by_the_system(w):
    w.run("put", w.pinned, WORDS // 2)
    reading, writing = os.pipe()
    os.write(writing, bytes(2 * WORDS))
    assert os.readv(reading, [memoryview(w.x).cast("B")[2 * WORDS :]]) == 2 * WORDS
    os.close(reading)
    os.close(writing)


@case("none")
def part_of_a_page_used_by_the_system(w):
    w.run("put", w.pinned, 100)
    reading, writing = os.pipe()
    os.write(writing, bytes(400))
    assert os.readv(reading, [memoryview(w.x).cast("B")[400:800]]) == 400
    os.close(reading)
    os.close(writing)


@case("read, write at 4")
def small_result(w):
    buffer, value = w.new(PinnedMemoryResource(), 1)
    w.run("put", buffer, 1)
    assert value[0] == 0
    w.s.sync()


@case("read, copy")
def copy_read_at_once(w):
    w.pinned.copy_from(w.device, stream=w.s)
    assert w.x[5] is not None


@case("none")
def copy_read_after_its_event(w):
    w.pinned.copy_from(w.device, stream=w.s)
    w.s.record().sync()
    assert w.x[5] is not None


@case("write, copy")
def source_changed(w):
    w.device.copy_from(w.pinned, stream=w.s)
    w.x[5] = 3


@case("none")
def source_read(w):
    w.device.copy_from(w.pinned, stream=w.s)
    assert w.x[5] == 1


@case("read, write at 4")
def graph_not_waited_for(w):
    builder = w.dev.create_graph_builder().begin_building()
    w.run("put", w.pinned, WORDS, stream=builder)
    graph = builder.end_building().complete()
    graph.launch(w.s)
    assert w.x[3] == 3
    w.s.sync()


@case("read, write at 4")
def another_thread_reads(w):
    w.run("put", w.pinned, WORDS)
    thread = threading.Thread(target=lambda: w.x.sum())
    thread.start()
    thread.join()


@case("none")
def a_flag_tells(w):
    flag, seen = w.new(PinnedMemoryResource(), 1)
    seen[0] = 0
    w.run("tell", w.pinned, WORDS, flag)
    while not seen[0]:
        pass
    assert w.x[0] == 0
    w.s.sync()


@case("none")
def a_value_tells(w):
    flag, seen = w.new(PinnedMemoryResource(), 1)
    seen[0] = 0
    w.run("put", w.pinned, WORDS)
    driver.cuStreamWriteValue32(w.s.handle, flag.handle, 1, 0)
    while not seen[0]:
        pass
    assert w.x[700] == 700
    w.s.sync()


@case("none")
def freed_and_used_again(w):
    buffer, _ = w.new(PinnedMemoryResource())
    w.run("put", buffer, WORDS)
    buffer.close(w.s)
    _, again = w.new(PinnedMemoryResource())
    again[:] = 1


@pytest.mark.parametrize("name", case)
def test_table(name, device):
    expected, function = case[name]
    with cpu.checks(race=True) as checks:
        world = HostWorld(device)
        function(world)
        device.sync()
    found = []
    for finding in checks.findings:
        here, there = finding.places
        assert here.launched.startswith(__file__) and finding.advice.startswith("wait for the operation")
        does = here.what.removesuffix(" by the host")
        if there.file is None:
            found.append(f"{does}, {there.what.split()[1].strip(',')}")
        else:
            found.append(f"{does}, {there.what.removesuffix(', earlier')} at {there.line}")
            assert finding.kernel and finding.launched.startswith(__file__)
    assert sorted(set(found)) == ([] if expected == "none" else [expected])


def test_handlers_of_others(tmp_path):
    """Faults of the program go to the handlers that were there, before and after some of ours."""
    program = """if True:
    import ctypes, faulthandler
    import numpy as np
    faulthandler.enable()
    from cupola import Device, PinnedMemoryResource, cpu
    dev = Device()
    dev.set_current()
    s = dev.create_stream()
    pinned = PinnedMemoryResource().allocate(8192, stream=s)
    x = np.from_dlpack(pinned)
    pinned.fill(1, stream=s)
    print(x[5], len(cpu.findings()), flush=True)
    s.sync()
    ctypes.string_at(8)
    """
    environment = {**os.environ, "CUPOLA_DEVICE": "cpu", "CUPOLA_CHECK": "race"}
    done = processes.run([sys.executable, "-c", program], env=environment)
    assert done.stdout == "1 1\n", done.stderr
    assert done.returncode == -11 and "Segmentation fault" in done.stderr
