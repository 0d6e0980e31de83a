"""Operations of streams that nothing orders, and their sound counterparts: pairs, as in the table of kernels."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cupola import Device, EventOptions, LaunchConfig, PinnedMemoryResource, StreamOptions, cpu, launch
from cupola.bindings import driver
from cupola.cpu import _checks
from cupola.graph import GraphBuilder
from tests import processes
from tests.cpu.engine.checks.cases import Cases, World

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="it switches checks on itself, and runs faulty programs to see what they find"),
]

WORDS = 256
SOURCE = r"""
#define K extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
K put(int* x) { x[I] = I; }
K get(const int* x, int* y) { y[I] = x[I]; }
K add(int* x) { atomicAdd(x, 1); }
K tell(int* x, volatile int* flag) { x[0] = 1; __threadfence(); *flag = 1; }
K hear(int* x, volatile int* flag) { while (!*flag); __threadfence(); x[0]++; }
"""
case = Cases()
"""Each with ``race`` or ``none``."""


class StreamsWorld(World):
    """Two streams, and two arrays that both of them know."""

    def __init__(self, dev: Device) -> None:
        super().__init__(dev, "streams.cu", SOURCE)
        self.a, self.b = dev.create_stream(), dev.create_stream()
        self.x, self.y = (dev.allocate(4 * WORDS, stream=self.a) for _ in range(2))
        dev.sync()

    def run(self, stream: Any, name: str, *arguments: Any) -> None:
        grid, block = (1, 1) if name in ("tell", "hear") else (8, WORDS // 8)
        launch(stream, LaunchConfig(grid=grid, block=block), self.kernel(name), *arguments)


# ---- kernels and kernels ---------------------------------------------------------------------------------------------


@case("race")
def two_streams(w):
    w.run(w.a, "put", w.x)
    w.run(w.b, "get", w.x, w.y)


@case("none")
def two_streams_event(w):
    w.run(w.a, "put", w.x)
    w.b.wait(w.a.record())
    w.run(w.b, "get", w.x, w.y)


@case("race")
def event_too_early(w):
    event = w.a.record()
    w.run(w.a, "put", w.x)
    w.b.wait(event)
    w.run(w.b, "get", w.x, w.y)


@case("none")
def event_synchronized(w):
    w.run(w.a, "put", w.x)
    w.a.record().sync()
    w.run(w.b, "get", w.x, w.y)


@case("race")
def event_synchronized_too_early(w):
    event = w.a.record()
    w.run(w.a, "put", w.x)
    event.sync()
    w.run(w.b, "get", w.x, w.y)


@case("none")
def event_asked(w):
    w.run(w.a, "put", w.x)
    event = w.a.record(options=EventOptions(timing_enabled=True))
    while not event.is_done:
        pass
    w.run(w.b, "get", w.x, w.y)


@case("none")
def stream_synchronized(w):
    w.run(w.a, "put", w.x)
    w.a.sync()
    w.run(w.b, "get", w.x, w.y)


@case("race")
def other_stream_synchronized(w):
    w.run(w.a, "put", w.x)
    w.b.sync()
    w.run(w.b, "get", w.x, w.y)


@case("none")
def over_a_third_stream(w):
    third = w.dev.create_stream()
    w.run(w.a, "put", w.x)
    third.wait(w.a.record())
    w.b.wait(third.record())
    w.run(w.b, "get", w.x, w.y)
    third.close()


@case("race")
def write_after_read(w):
    w.run(w.a, "get", w.x, w.y)
    w.run(w.b, "put", w.x)


@case("none")
def only_reads(w):
    z = w.dev.allocate(4 * WORDS, stream=w.b)
    w.run(w.a, "get", w.x, w.y)
    w.run(w.b, "get", w.x, z)
    z.close(w.b)


@case("none")
def one_stream(w):
    w.run(w.a, "put", w.x)
    w.run(w.a, "get", w.x, w.y)


@case("none")
def atomics_on_both(w):
    w.run(w.a, "add", w.x)
    w.run(w.b, "add", w.x)


@case("race")
def atomics_beside_writes(w):
    w.run(w.a, "add", w.x)
    w.run(w.b, "put", w.x)


@case("none")
def told_by_a_flag(w):
    w.y.fill(b"\0", stream=w.a)
    w.a.sync()
    w.run(w.b, "hear", w.x, w.y)
    w.run(w.a, "tell", w.x, w.y)


@case("none")
def told_by_a_value(w):
    w.y.fill(b"\0", stream=w.a)
    w.a.sync()
    w.run(w.a, "put", w.x)
    driver.cuStreamWriteValue32(w.a.handle, int(w.y.handle), 1, 0)
    driver.cuStreamWaitValue32(w.b.handle, int(w.y.handle), 1, 0)
    w.run(w.b, "put", w.x)


# ---- the legacy default stream ---------------------------------------------------------------------------------------


@case("none")
def legacy_and_blocking(w):
    blocking = w.dev.create_stream(options=StreamOptions(nonblocking=False))
    w.run(blocking, "put", w.x)
    w.run(w.dev.default_stream, "get", w.x, w.y)
    w.run(blocking, "put", w.x)
    blocking.sync()
    blocking.close()


@case("race")
def legacy_and_nonblocking(w):
    w.run(w.a, "put", w.x)
    w.run(w.dev.default_stream, "get", w.x, w.y)


# ---- copies and fills ------------------------------------------------------------------------------------------------


@case("race")
def copy_beside_kernel(w):
    w.run(w.a, "put", w.x)
    w.y.copy_from(w.x, stream=w.b)


@case("none")
def copy_behind_event(w):
    w.run(w.a, "put", w.x)
    w.b.wait(w.a.record())
    w.y.copy_from(w.x, stream=w.b)


@case("race")
def kernel_beside_copy(w):
    w.y.copy_from(w.x, stream=w.a)
    w.run(w.b, "put", w.x)


@case("none")
def two_copies_from(w):
    z = w.dev.allocate(4 * WORDS, stream=w.b)
    w.y.copy_from(w.x, stream=w.a)
    z.copy_from(w.x, stream=w.b)
    z.close(w.b)


@case("race")
def fills_beside_each_other(w):
    w.x.fill(b"\1", stream=w.a)
    w.x.fill(b"\2", stream=w.b)


@case("none")
def fills_of_halves(w):
    driver.cuMemsetD8Async(int(w.x.handle), 1, 2 * WORDS, w.a.handle)
    driver.cuMemsetD8Async(int(w.x.handle) + 2 * WORDS, 2, 2 * WORDS, w.b.handle)


@case("race")
def fills_that_overlap(w):
    driver.cuMemsetD8Async(int(w.x.handle), 1, 2 * WORDS + 1, w.a.handle)
    driver.cuMemsetD8Async(int(w.x.handle) + 2 * WORDS, 2, 2 * WORDS, w.b.handle)


@case("none")
def fills_of_bytes_of_a_word(w):
    driver.cuMemsetD8Async(int(w.x.handle), 1, 1, w.a.handle)
    driver.cuMemsetD8Async(int(w.x.handle) + 1, 2, 1, w.b.handle)


@case("race")
def pinned_memory_is_filled_by_two(w):
    host = PinnedMemoryResource().allocate(4 * WORDS, stream=w.a)
    w.a.sync()
    host.copy_from(w.x, stream=w.a)
    w.run(w.b, "put", host)
    w.dev.sync()
    host.close()


@case("none")
def pinned_memory_in_turn(w):
    host = PinnedMemoryResource().allocate(4 * WORDS, stream=w.a)
    w.a.sync()
    host.copy_from(w.x, stream=w.a)
    w.a.sync()
    w.run(w.b, "put", host)
    w.dev.sync()
    host.close()


# ---- memory in stream order ------------------------------------------------------------------------------------------


@case("race")
def used_before_allocated(w):
    z = w.dev.allocate(4 * WORDS, stream=w.a)
    w.run(w.b, "put", z)
    w.b.sync()
    z.close(w.a)


@case("none")
def used_behind_allocation(w):
    z = w.dev.allocate(4 * WORDS, stream=w.a)
    w.b.wait(w.a.record())
    w.run(w.b, "put", z)
    w.b.sync()
    z.close(w.a)


@case("race")
def freed_beside_its_use(w):
    z = w.dev.allocate(4 * WORDS, stream=w.b)
    w.run(w.b, "put", z)
    z.close(w.a)


@case("none")
def freed_behind_its_use(w):
    z = w.dev.allocate(4 * WORDS, stream=w.b)
    w.run(w.b, "put", z)
    w.a.wait(w.b.record())
    z.close(w.a)


@case("none")
def memory_goes_to_another_stream(w):
    for stream in (w.a, w.b, w.a):
        z = w.dev.allocate(4 * WORDS, stream=stream)
        w.run(stream, "put", z)
        z.close(stream)


# ---- graphs ----------------------------------------------------------------------------------------------------------


def launch_branches(w, other):
    """Two branches of a graph; one writes x, the other one writes what is given."""
    left, right = w.dev.create_graph_builder().begin_building().split(2)
    w.run(left, "put", w.x)
    w.run(right, "put", other)
    GraphBuilder.join(left, right).end_building().complete().launch(w.a)


@case("race")
def branches_write_one_array(w):
    launch_branches(w, w.x)


@case("none")
def branches_write_two_arrays(w):
    launch_branches(w, w.y)


@case("none")
def behind_both_branches(w):
    left, right = w.dev.create_graph_builder().begin_building().split(2)
    w.run(left, "put", w.x)
    w.run(right, "put", w.y)
    both = GraphBuilder.join(left, right)
    w.run(both, "get", w.x, w.y)
    both.end_building().complete().launch(w.a)


@case("race")
def behind_one_branch(w):
    left, right = w.dev.create_graph_builder().begin_building().split(2)
    w.run(left, "put", w.x)
    w.run(right, "put", w.y)
    w.run(right, "get", w.x, w.y)
    GraphBuilder.join(left, right).end_building().complete().launch(w.a)


@case("none")
def nodes_in_a_row(w):
    builder = w.dev.create_graph_builder()
    builder.begin_building()
    w.run(builder, "put", w.x)
    w.run(builder, "get", w.x, w.y)
    graph = builder.end_building().complete()
    graph.launch(w.a)
    graph.launch(w.a)


@case("race")
def graph_beside_kernel(w):
    builder = w.dev.create_graph_builder()
    builder.begin_building()
    w.run(builder, "put", w.x)
    graph = builder.end_building().complete()
    graph.launch(w.a)
    w.run(w.b, "get", w.x, w.y)
    w.dev.sync()  # before the graph goes, which asks whether the launch is over


@case("none")
def graph_in_two_streams(w):
    builder = w.dev.create_graph_builder()
    builder.begin_building()
    w.run(builder, "put", w.x)
    graph = builder.end_building().complete()
    graph.launch(w.a)
    graph.launch(w.b)  # behind the launch before, whatever the stream


# ---- the tests -------------------------------------------------------------------------------------------------------


@pytest.fixture
def world(device: Device) -> Iterator[StreamsWorld]:
    _checks.take()  # else a finding of another test is told again, with that one's streams
    made = StreamsWorld(device)
    yield made
    device.sync()
    for each in (made.x, made.y, made.a, made.b):
        each.close()


@pytest.mark.parametrize("name", case)
def test_case(world: StreamsWorld, name: str) -> None:
    expected, function = case[name]
    with cpu.checks(race=True) as checks:
        function(world)
        world.dev.sync()
    found = checks.findings
    assert {finding.kind for finding in found} == {expected} - {"none"}, "\n".join(map(str, found))


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.strip() == text)


def test_a_finding_names_both(world: StreamsWorld) -> None:
    with cpu.expect_finding("race") as found:
        world.run(world.a, "put", world.x)
        world.run(world.b, "get", world.x, world.y)
    (race,) = found
    here, there = race.places
    assert {race.kernel, there.kernel} == {"put", "get"} and not here.kernel  # whichever ran first
    lines = {"put": 4, "get": 5}
    assert (here.line, there.line) == (lines[race.kernel], lines[there.kernel])
    assert here.stream != there.stream and race.count == WORDS
    assert re.search(r"test_streams.py:\d+$", there.launched) and re.search(r"test_streams.py:\d+$", race.launched)
    assert "Stream.wait" in race.advice and f"{there}" in f"{race}"


def test_freed_memory_has_three_lines(world: StreamsWorld) -> None:
    with cpu.expect_finding("race") as found:
        memory = world.dev.allocate(4 * WORDS, stream=world.b)
        world.run(world.b, "put", memory)
        memory.close(world.a)
    (race,) = found
    first = line_of("memory = world.dev.allocate(4 * WORDS, stream=world.b)")
    assert f"allocated at {__file__}:{first}" in str(race) and f"freed at {__file__}:{first + 2}" in str(race)
    assert race.places[1].kernel == "put"


def test_a_fault_tells_who_freed(device: Device) -> None:
    """In a process of its own: the context is spoiled."""
    program = f"""
from cupola import CUDAError, Device, LaunchConfig, Program, cpu, launch
cpu.use()
dev = Device()
dev.set_current()
stream = dev.create_stream()
put = Program({SOURCE!r}, "c++").compile("cubin").get_kernel("put")
with cpu.checks(race=True):
    memory = dev.allocate(1024, stream=stream)
    address = int(memory.handle)
    memory.close()
    stream.sync()
    launch(stream, LaunchConfig(grid=1, block=32), put, address)
    try:
        stream.sync()
    except CUDAError as error:
        print(error)
"""
    done = processes.run([sys.executable, "-c", program])
    assert "that was freed" in done.stdout, done.stdout + done.stderr
    assert "allocated at <string>:9" in done.stdout and "freed at <string>:11" in done.stdout


def test_the_hosts_own_memory_is_not_followed(world: StreamsWorld) -> None:
    with cpu.checks(race=True) as checks:
        values = np.zeros(4)
        driver.cuMemcpyHtoDAsync(int(world.x.handle), values.ctypes.data, values.nbytes, world.a.handle)
        world.a.sync()
        values[:] = 1
        driver.cuMemcpyHtoDAsync(int(world.x.handle), values.ctypes.data, values.nbytes, world.b.handle)
        world.b.sync()
    assert not checks.findings


def test_graphs_that_kernels_launch_run_in_turn() -> None:
    example = Path(__file__).parents[4] / "examples" / "device_graphs.py"
    command = [sys.executable, "-m", "cupola", "run", "--check", "race", str(example)]
    done = processes.run(command, env={**os.environ, "CUPOLA_DEVICE": "cpu"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_more_streams_than_are_told_apart(device: Device) -> None:
    """Order goes through streams that have no clock of their own, and who gets one later knows of all before."""
    with cpu.checks(race=True) as checks:
        streams = [device.create_stream() for _ in range(140)]
        memory = [device.allocate(256, stream=stream) for stream in streams]
        first, second, third, *_, without, late = streams
        memory[0].fill(1, stream=first)
        late.wait(first.record())
        memory[1].fill(1, stream=second)
        without.wait(second.record())
        third.wait(without.record())
        memory[1].fill(2, stream=third)
        memory[5].close(streams[5])
        streams[5].close()
        memory[0].fill(2, stream=late)
        for stream in (third, late):
            stream.sync()
    assert checks.findings == []
    for buffer, stream in zip(memory, streams, strict=True):
        if buffer is not memory[5]:
            device.sync()
            buffer.close()
            stream.close()
