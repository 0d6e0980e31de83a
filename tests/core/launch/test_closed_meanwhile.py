"""Operands whose own code closes the stream, or another operand, in the middle of the call that they are given to.

What is closed must neither be used nor taken for something else: the handle of a closed stream is 0, as that of the
default stream. So the default stream is out of use here: a capture of a blocking stream forbids it.
"""

from __future__ import annotations

import numpy as np
import pytest

from cupola import EventOptions, GraphMemoryResource, LaunchConfig, launch

ONE = LaunchConfig(grid=1, block=1)


@pytest.fixture(autouse=True)
def no_default_stream(device):
    blocking = device.create_stream(nonblocking=False)
    builder = blocking.create_graph_builder().begin_building()
    yield
    builder.close()
    blocking.close()


@pytest.fixture
def mine(device):
    """A stream that is there to be closed."""
    made = device.create_stream()
    yield made
    made.close()


class Array:
    """An array on the device whose interface runs code."""

    def __init__(self, buffer, run):
        self.buffer, self.run = buffer, run

    @property
    def __cuda_array_interface__(self):
        self.run()
        shape = (self.buffer.size,)
        return {"data": (self.buffer.handle, False), "shape": shape, "typestr": "|u1", "version": 3, "stream": None}


class Number(int):
    """An integer that runs code when somebody looks at it."""

    def __new__(cls, value, run):
        self = int.__new__(cls, value)
        self.run = run
        return self

    def __ge__(self, other):
        self.run()
        return int.__ge__(self, other)


class Size:
    """A number that is none before somebody asks for it, which runs code."""

    def __init__(self, value, run):
        self.value, self.run = value, run

    def __index__(self):
        self.run()
        return self.value

    __int__ = __index__


def launch_it(stream, kernel, *arguments):
    launch(stream, ONE, kernel, *arguments)


def launch_prepared(stream, kernel, *arguments):
    kernel.prepare(ONE)(stream, *arguments)


def launch_cooperatively(stream, kernel, *arguments):
    launch(stream, LaunchConfig(grid=1, block=1, is_cooperative=True), kernel, *arguments)


@pytest.mark.parametrize("run", [launch_it, launch_prepared, launch_cooperatively])
class TestLaunches:
    def test_the_stream(self, module, mine, out, run):
        with pytest.raises(RuntimeError, match="Stream has been closed"):
            run(mine, module.get_kernel("add"), Array(out, mine.close), 5)

    def test_an_earlier_argument(self, device, module, stream, out, run):
        buffer = device.memory_resource.allocate(64, stream=stream)
        with pytest.raises(RuntimeError, match="Buffer has been closed"):
            run(stream, module.get_kernel("keep<char*>"), buffer, Array(out, buffer.close))

    def test_a_builder(self, device, module, mine, out, run):
        builder = mine.create_graph_builder().begin_building()
        with pytest.raises(RuntimeError, match="GraphBuilder has been closed"):
            run(builder, module.get_kernel("add"), Array(out, builder.close), 5)
        mine.sync()
        assert np.from_dlpack(out).view(np.int32)[0] == 0


class TestBuffers:
    def test_a_copy_goes_on_in_the_stream(self, device, mine, stream, out):
        buffer = device.memory_resource.allocate(out.size, stream=mine)
        buffer.fill(7, stream=mine)
        mine.sync()
        other = device.memory_resource.allocate(out.size, stream=stream)
        stream.sync()
        same = device.create_stream(mine)
        other.copy_from(Array(buffer, mine.close), stream=mine)
        assert mine.is_closed
        same.sync()
        other.copy_to(out, stream=stream)
        stream.sync()
        assert set(np.from_dlpack(out).view(np.uint8)) == {7}

    def test_a_fill(self, device, mine, stream):
        buffer = device.memory_resource.allocate(64, stream=stream)
        with pytest.raises(RuntimeError, match="Stream has been closed"):
            buffer.fill(Number(3, mine.close), stream=mine)
        with pytest.raises(RuntimeError, match="Buffer has been closed"):
            buffer.fill(Number(3, buffer.close), stream=stream)

    def test_an_allocation(self, device, mine):
        with pytest.raises(RuntimeError, match="Stream has been closed"):
            device.memory_resource.allocate(Size(64, mine.close), stream=mine)

    def test_an_allocation_of_a_graph(self, mine):
        builder = mine.create_graph_builder().begin_building()
        resource = GraphMemoryResource(0)
        with pytest.raises(RuntimeError, match="has been closed"):
            resource.deallocate(Size(64, builder.close), 64, stream=builder)

    def test_the_stream_of_a_release(self, device, mine, stream):
        with pytest.raises(RuntimeError, match="Stream has been closed"):
            device.memory_resource.deallocate(Size(0, mine.close), 0, stream=mine)


class TestStreams:
    def test_what_is_waited_for(self, mine, stream):
        class Foreign:
            def __cuda_stream__(self):
                mine.close()
                return 0, int(stream.handle)

        with pytest.raises(RuntimeError, match="Stream has been closed"):
            mine.wait(Foreign())

    def test_the_event_that_is_recorded(self, device, mine):
        class Options(EventOptions):
            def _check(self):
                mine.close()

        with pytest.raises(RuntimeError, match="Stream has been closed"):
            mine.record(options=Options())
