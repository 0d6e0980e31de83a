"""Memory that graphs allocate and free when they run."""

from __future__ import annotations

import gc
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from cupola import Buffer, CUDAWarning, GraphMemoryResource, LaunchConfig, Program, launch
from cupola.bindings import driver
from cupola.graph import GraphCompleteOptions
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import ok

PROGRAMS = Path(__file__).with_name("programs")

SIZE = 1 << 12
SOURCE = """
extern "C" __global__ void put(int* x, int value) { x[threadIdx.x] = value; }
extern "C" __global__ void sum(int* to, const int* a, const int* b) {
    to[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
"""
CONFIG = LaunchConfig(grid=1, block=SIZE // 4 // 4)


@pytest.fixture(scope="module")
def code():
    from cupola import Device

    Device(0).set_current()
    return Program(SOURCE, "c++", {"arch": f"sm_{Device(0).arch}"}).compile("cubin")


@pytest.fixture
def resource(device):
    return GraphMemoryResource(device)


@pytest.fixture
def builder(device):
    made = device.create_graph_builder().begin_building()
    yield made
    made.close()


@pytest.fixture
def out(device, stream):
    buffer = device.allocate(SIZE, stream=stream)
    buffer.fill(0, stream=stream)
    stream.sync()
    yield buffer
    buffer.close(stream)


def first_of(buffer, stream) -> int:
    back = np.empty(1, np.int32)
    Buffer.from_handle(buffer.handle, back.nbytes).copy_to(back, stream=stream)
    stream.sync()
    return int(back[0])


def check_used(resource, before: int, more: int = 0) -> None:
    """What graphs use. A GPU counts by large blocks, and keeps those that are free again for other launches."""
    used = resource.attributes.used_mem_current
    assert used == before + more if on_cpu_device() else used >= more


def test_one_object_for_each_device(device):
    one = GraphMemoryResource(0)
    assert one is GraphMemoryResource(device) is GraphMemoryResource(np.int64(0)) is not GraphMemoryResource(1)
    assert (one.device_id, one.is_device_accessible, one.is_host_accessible, one.is_managed) == (0, True, False, False)
    assert GraphMemoryResource(1000).device_id == 1000, "nothing is checked"
    assert repr(one) == "<GraphMemoryResource device=0>" and not hasattr(one, "is_closed")
    assert pickle.loads(pickle.dumps(one)) is one
    one.close()
    assert GraphMemoryResource(0) is one
    for wrong in ("zero", None, 0.0):
        with pytest.raises(TypeError):
            GraphMemoryResource(wrong)


def test_scratch_memory_of_a_graph(resource, builder, stream, code, out):
    put, total = code.get_kernel("put"), code.get_kernel("sum")
    before = resource.attributes.used_mem_current
    with resource.allocate(SIZE, stream=builder) as a:
        assert a.size == SIZE and a.memory_resource is resource and a.device_id == 0
        launch(builder, CONFIG, put, a, 40)
        with resource.allocate(SIZE, stream=builder) as b:
            assert b.handle != a.handle
            b.fill(0, stream=builder)
            launch(builder, CONFIG, put, b, 2)
            launch(builder, CONFIG, total, out, a, b)
    assert a.is_closed and b.is_closed
    graph = builder.end_building().complete()
    for _ in range(3):  # which would fail if a launch left its memory behind
        out.fill(0, stream=stream)
        graph.launch(stream)
        assert first_of(out, stream) == 42
    check_used(resource, before)


def test_memory_that_outlives_the_launch(resource, builder, stream, code):
    kept = resource.allocate(SIZE, stream=builder)
    launch(builder, CONFIG, code.get_kernel("put"), kept, 7)
    graph = builder.end_building().complete()
    before = resource.attributes.used_mem_current
    graph.launch(stream)
    assert first_of(kept, stream) == 7
    check_used(resource, before, SIZE)
    address = kept.handle
    kept.close(stream)
    stream.sync()
    check_used(resource, before)
    graph.launch(stream)  # which would fail if the memory of the first launch was still there
    ok(driver.cuMemFreeAsync(address, stream.handle))
    stream.sync()
    check_used(resource, before)


def test_a_buffer_that_is_collected_after_its_capture_frees_nothing(resource, builder, stream, code):
    address = None
    with warnings.catch_warnings():
        warnings.simplefilter("error", CUDAWarning)
        scratch = resource.allocate(SIZE, stream=builder)
        address = scratch.handle
        launch(builder, CONFIG, code.get_kernel("put"), scratch, 5)
        graph = builder.end_building().complete(GraphCompleteOptions(auto_free_on_launch=True))
        del scratch
        gc.collect()
        for _ in range(2):
            graph.launch(stream)
            assert first_of(Buffer.from_handle(address, SIZE), stream) == 5
    ok(driver.cuMemFreeAsync(address, stream.handle))
    stream.sync()


def test_collecting_during_the_capture_frees_in_the_graph(resource, builder, stream, code, out):
    before = resource.attributes.used_mem_current
    launch(builder, CONFIG, code.get_kernel("put"), resource.allocate(SIZE, stream=builder), 1)
    gc.collect()
    with resource.allocate(SIZE, stream=builder) as later:
        launch(builder, CONFIG, code.get_kernel("put"), later, 3)
        out.copy_from(later, stream=builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    graph.launch(stream)
    assert first_of(out, stream) == 3
    check_used(resource, before)


def test_buffers_of_an_earlier_capture_leave_the_next_alone(resource, stream, code, out):
    first = stream.create_graph_builder().begin_building()
    old = resource.allocate(SIZE, stream=first)
    first.end_building()
    second = stream.create_graph_builder().begin_building()
    launch(second, CONFIG, code.get_kernel("put"), out, 9)
    old.close()
    assert second.is_building
    graph = second.end_building().complete()
    graph.launch(stream)
    assert first_of(out, stream) == 9
    first.close()


def test_branches(resource, builder, stream, code, out):
    put, total = code.get_kernel("put"), code.get_kernel("sum")
    root, branch = builder.split(2)
    a, b = resource.allocate(SIZE, stream=root), resource.allocate(SIZE, stream=branch)
    launch(root, CONFIG, put, a, 1)
    launch(branch, CONFIG, put, b, 2)
    root = root.join(root, branch)
    launch(root, CONFIG, total, out, a, b)
    a.close()
    b.close(root)  # its own branch is closed
    graph = root.end_building().complete()
    graph.launch(stream)
    graph.launch(stream)
    assert first_of(out, stream) == 3


def test_explicit_deallocation(resource, builder, stream):
    buffer = resource.allocate(SIZE, stream=builder)
    resource.deallocate(buffer.handle, SIZE, stream=builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    graph.launch(stream)
    stream.sync()
    buffer.close()


def test_streams_that_are_not_captured(device, resource, stream):
    waiting = device.create_graph_builder()
    ended = device.create_graph_builder().begin_building().end_building()
    for where in (stream, waiting, ended, device.default_stream):
        with pytest.raises(RuntimeError, match="non-capturing stream"):
            resource.allocate(SIZE, stream=where)
        with pytest.raises(RuntimeError, match="non-capturing stream"):
            resource.deallocate(0x1000, SIZE, stream=where)
    for wrong in (None, 5):
        with pytest.raises(TypeError, match="[Ss]tream"):
            resource.allocate(SIZE, stream=wrong)
    ended.close()


def test_sizes(resource, builder):
    assert resource.allocate(0, stream=builder).handle == 0
    with pytest.raises(OverflowError):
        resource.allocate(-1, stream=builder)
    builder.end_building()


def test_attributes(resource, builder, stream):
    with resource.allocate(SIZE, stream=builder) as buffer:
        buffer.fill(1, stream=builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    attributes = resource.attributes
    assert attributes is not resource.attributes
    assert attributes.used_mem_high >= SIZE and attributes.reserved_mem_high >= attributes.reserved_mem_current >= 0
    attributes.used_mem_high = attributes.reserved_mem_high = 0
    assert attributes.used_mem_high == attributes.used_mem_current
    assert attributes.reserved_mem_high == attributes.reserved_mem_current
    for name in ("used_mem_high", "reserved_mem_high"):
        with pytest.raises(AttributeError, match="only be set to 0"):
            setattr(attributes, name, 1)
    for name in ("used_mem_current", "reserved_mem_current", "anything"):
        with pytest.raises(AttributeError):
            setattr(attributes, name, 0)
    assert repr(attributes).startswith("GraphMemoryAttributes(reserved_mem_current=")
    with pytest.raises(RuntimeError, match="attributes"):
        type(attributes)()
    graph.close()
    resource.trim()


def test_other_devices(run_on_devices):
    done = run_on_devices(2, PROGRAMS / "graph_memory_of_device_1.py")
    assert done.returncode == 0, done.stderr
