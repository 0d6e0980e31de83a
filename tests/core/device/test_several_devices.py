"""What works while device 0 is current and everything else is of device 1.

Skipped in a process that has fewer devices: `test_two_devices.py` runs this file in one that has them.
"""

from __future__ import annotations

import multiprocessing
import re
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import numpy as np
import pytest

import cupola
import cupola.texture
from cupola import Buffer, CUDAError, Device, LaunchConfig, Program, launch
from cupola.core.memory._unpooled import SynchronousMemoryResource
from cupola.graph import GraphDefinition
from cupola.utils import CopyOptions, StridedMemoryView, args_viewable_as_strided_memory, copy_batch

pytestmark = pytest.mark.filterwarnings("error")

TOO_FEW = "needs a process with two devices"
N = 4096
CONFIG = LaunchConfig(grid=N // 128, block=128)
SOURCE = r"""
extern "C" __global__ void store(unsigned char* x, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}
"""

TEXELS = r"""
extern "C" __global__ void read(cudaTextureObject_t texels, unsigned char* out) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    out[64 * y + x] = tex2D<unsigned char>(texels, x, y);
}
extern "C" __global__ void write(cudaSurfaceObject_t texels) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    surf2Dwrite((unsigned char)(surf2Dread<unsigned char>(texels, x, y) + 1), texels, x, y);
}
extern "C" __global__ void fetch(cudaTextureObject_t texels, unsigned char* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1Dfetch<unsigned char>(texels, i) + 7;
}
"""

in_each_order = pytest.mark.parametrize("order", ["stream", "during_api_call", "any"])


# --- the two devices and what is of each --------------------------------------------------------------------


@pytest.fixture(scope="module")
def devices() -> list[Device]:
    found = Device.get_all_devices()
    if len(found) < 2:
        pytest.skip(f"{TOO_FEW}: test_two_devices.py runs it in one")
    return found[:2]


@pytest.fixture(scope="module")
def d0(devices) -> Device:
    return devices[0]


@pytest.fixture(scope="module")
def d1(devices) -> Device:
    devices[1].set_current()
    devices[0].set_current()
    return devices[1]


@pytest.fixture
def s0(d0) -> Iterator[cupola.Stream]:
    stream = d0.create_stream()
    yield stream
    stream.close()


@pytest.fixture
def s1(d1) -> Iterator[cupola.Stream]:
    stream = d1.create_stream()
    yield stream
    stream.close()


@pytest.fixture(params=["stream of device 1", "stream of device 0"])
def stream(request, s0, s1) -> cupola.Stream:
    return s1 if request.param.endswith("1") else s0


@pytest.fixture(autouse=True)
def device_0_is_current(d0, s0, s1) -> Iterator[None]:
    """Before the test; behind it what is queued is waited for, so that its faults are told here."""
    d0.set_current()
    yield
    d0.set_current()
    s0.sync()
    s1.sync()


# Pools of their own, which nobody else has given access to.
@pytest.fixture(scope="module")
def pool0(d0) -> cupola.DeviceMemoryResource:
    return cupola.DeviceMemoryResource(d0, {})


@pytest.fixture(scope="module")
def pool1(d1) -> cupola.DeviceMemoryResource:
    return cupola.DeviceMemoryResource(d1, {})


@pytest.fixture
def b0(pool0, s0) -> Iterator[Buffer]:
    with pool0.allocate(N, stream=s0) as buffer:
        s0.sync()
        yield buffer


@pytest.fixture
def b1(pool1, s1) -> Iterator[Buffer]:
    """It holds ones."""
    with pool1.allocate(N, stream=s1) as buffer:
        buffer.fill(1, stream=s1)
        s1.sync()
        yield buffer


@pytest.fixture(scope="module")
def kernel(d1) -> cupola.Kernel:
    return Program(SOURCE, "c++", {"arch": f"sm_{d1.arch}"}).compile("cubin").get_kernel("store")


@pytest.fixture(scope="module")
def texels(d1) -> cupola.ObjectCode:
    return Program(TEXELS, "c++", {"arch": f"sm_{d1.arch}"}).compile("cubin")


@pytest.fixture
def sync(s0, s1) -> Callable[[], None]:
    def wait() -> None:
        s0.sync()
        s1.sync()

    return wait


@pytest.fixture
def check(sync, s0, s1) -> Callable[[Buffer, int], None]:
    """What a buffer holds, fetched on a stream of its device that the others are waited for."""

    def check(buffer: Buffer, value: int) -> None:
        sync()
        stream = s1 if buffer.device_id == 1 else s0
        found = buffer.copy_to(np.empty(buffer.size, np.uint8), stream=stream)
        stream.sync()
        assert (found == value).all(), (value, found)
        assert Device().device_id == 0

    return check


@contextmanager
def refused(text: str) -> Iterator[None]:
    with pytest.raises(CUDAError, match=re.escape(text)) as caught:
        yield
    assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"


def values(value: int, count: int = N) -> np.ndarray:
    return np.full(count, value, np.uint8)


# --- copies and fills ---------------------------------------------------------------------------------------


def test_host_arrays(stream, b1):
    b1.copy_from(values(10), stream=stream)
    stream.sync()
    found = b1.copy_to(np.empty(N, np.uint8), stream=stream)
    stream.sync()
    assert (found == 10).all()


@pytest.mark.parametrize("resource", [cupola.PinnedMemoryResource, cupola.LegacyPinnedMemoryResource])
def test_pinned_memory(resource, stream, b1):
    with resource().allocate(N, stream=stream) as there, resource().allocate(N, stream=stream) as back:
        stream.sync()
        array = np.from_dlpack(there).view(np.uint8)
        array[:] = 20
        b1.copy_from(there, stream=stream)
        b1.copy_to(back, stream=stream)
        stream.sync()
        assert (np.from_dlpack(back).view(np.uint8) == 20).all()
        del array


def test_managed_memory(s0, s1, b1, sync, check):
    with cupola.ManagedMemoryResource().allocate(N, stream=s1) as managed:
        managed.fill(25, stream=s1)
        b1.copy_from(managed, stream=s1)
        sync()
        b1.copy_to(managed, stream=s0)
        check(b1, 25)


def test_within_device_1(stream, s1, pool1, b1, sync, check):
    with pool1.allocate(N, stream=s1) as other:
        sync()
        other.fill(30, stream=s1)
        sync()
        b1.copy_from(other, stream=stream)
        check(b1, 30)


def test_the_copy_of_a_buffer_is_beside_it(s1, b1, check):
    copy = b1.copy_to(stream=s1)
    assert copy.device_id == 1
    check(copy, 1)
    copy.close(s1)


def test_between_devices(stream, s0, s1, b0, b1, sync, check):
    b1.fill(40, stream=s1)
    sync()
    b0.copy_from(b1, stream=stream)
    check(b0, 40)
    b0.fill(140, stream=s0)
    sync()
    b0.copy_to(b1, stream=stream)
    check(b1, 140)


def test_copies_wait_for_their_stream(s0, s1, pool0, pool1):
    """A copy done in another way still is one of the stream: it comes behind what is queued there."""
    with pool1.allocate(1 << 24, stream=s1) as large, pool0.allocate(1 << 24, stream=s0) as other:
        s0.sync()  # the other one was allocated there
        for value in range(5):
            large.fill(value, stream=s1)
            other.copy_from(large, stream=s1)
            large.fill(99, stream=s1)
            found = other.copy_to(np.empty(other.size, np.uint8), stream=s1)
            s1.sync()
            assert (found == value).all()


def test_arrays_of_dlpack(s0, s1, b0, b1, sync, check):
    class Array:
        def __init__(self, buffer: Buffer) -> None:
            self.buffer = buffer

        def __dlpack__(self, *, stream: int | None = None, **others: object) -> object:
            return self.buffer.__dlpack__(max_version=(1, 0))

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.buffer.__dlpack_device__()

    b1.fill(45, stream=s1)
    sync()
    b0.copy_from(Array(b1), stream=s0)
    check(b0, 45)


def test_default_streams(d0, d1, s1, b0, b1, sync, check):
    b1.fill(46, stream=s1)
    sync()
    b0.copy_from(b1, stream=d0.default_stream)
    d0.default_stream.sync()  # which the other streams are not ordered with
    check(b0, 46)
    with refused("Device(1).set_current() first"):
        b1.copy_to(np.empty(N, np.uint8), stream=d1.default_stream)
    with refused("Device(1).set_current() first"):
        b1.fill(1, stream=d1.default_stream)


@in_each_order
def test_copies_with_options(stream, order, b0, b1, check):
    options = CopyOptions(src_access_order=order, overlap_mode="prefer_overlap_with_compute")
    source = values(50)
    b1.copy_from(source, stream=stream, options=options)
    if order == "during_api_call":
        source[:] = 0  # it has been read
    stream.sync()
    b0.copy_from(b1, stream=stream, options=options)
    check(b0, 50)
    check(b1, 50)


@in_each_order
def test_batches(stream, order, s0, s1, pool0, pool1, b0, b1, sync, check):
    with pool0.allocate(64, stream=s0) as a0, pool1.allocate(64, stream=s1) as a1:
        b1.fill(80, stream=s1)
        a0.fill(90, stream=s0)
        sync()
        copy_batch(stream, [b1, a0], [b0, a1], options=CopyOptions(src_access_order=order))
        check(b0, 80)
        check(a1, 90)
        copy_batch(stream, [a1], [a1], options=CopyOptions(src_access_order=order))
        check(a1, 90)


@pytest.mark.parametrize("pattern", [7, b"\x07\x07", b"\x07\x07\x07\x07"], ids=["1 byte", "2 bytes", "4 bytes"])
def test_fills(pattern, s0, s1, b1, check):
    b1.fill(0, stream=s1)
    b1.fill(pattern, stream=s1)
    check(b1, 7)
    with refused("use a stream of device 1, or give device 0 access"):
        b1.fill(pattern, stream=s0)


def test_access_for_device_0(s0, b0, b1, kernel, check):
    pool = cupola.DeviceMemoryResource(1, {})
    pool.peer_accessible_by = [0]
    with pool.allocate(N, stream=s0) as buffer:
        buffer.fill(90, stream=s0)
        b1.copy_from(buffer, stream=s0)
        check(b1, 90)
        copy_batch(s0, [buffer], [b0])
        check(b0, 90)
        launch(s0, CONFIG, kernel, buffer, 91, N)
        check(buffer, 91)


def test_virtual_memory(stream, d1, s0, s1, b0, sync, check):
    with cupola.VirtualMemoryResource(d1).allocate(N) as buffer:
        buffer.fill(92, stream=s1)
        sync()
        found = buffer.copy_to(np.empty(buffer.size, np.uint8), stream=stream)
        stream.sync()
        assert (found == 92).all()
        part = Buffer.from_handle(buffer.handle, N, owner=buffer)
        b0.copy_from(part, stream=stream)
        check(b0, 92)
        part.copy_from(b0, stream=stream)
        sync()
        with refused("use a stream of device 1"):
            buffer.fill(1, stream=s0)


def test_plain_memory(stream, s1, b0, check):
    """What cuMemAlloc gives needs no access."""
    with SynchronousMemoryResource(1).allocate(N) as buffer:
        assert buffer.device_id == 1
        buffer.copy_from(values(95), stream=stream)
        stream.sync()
        b0.copy_from(buffer, stream=stream)
        check(b0, 95)
        buffer.fill(97, stream=s1)
        check(buffer, 97)


@pytest.mark.cpu_only  # a GPU's driver may find out later, or not at all
def test_other_errors_stay(stream, s0, s1, b0, b1, check):
    """What is wrong for another reason fails as it always did."""
    large = [Buffer.from_handle(b.handle, 1 << 20) for b in (b0, b1)]
    with refused("past the end"):
        large[0].copy_from(large[1], stream=stream)
    with refused("past the end"):
        large[1].copy_to(np.empty(1 << 20, np.uint8), stream=stream)
    with refused("past the end"):
        copy_batch(stream, large, large[::-1])
    with refused("past the end"):
        large[1].copy_to(large[0], stream=stream, options=CopyOptions())
    with refused("past the end"):
        large[1].fill(1, stream=s1)
    b0.fill(104, stream=s0)
    check(b0, 104)


# --- devices, streams, events, kernels ----------------------------------------------------------------------


def test_devices(d0, d1):
    """Things are made on the device that is asked, not on the current one."""
    assert d1.create_stream().device is d1.create_event().device is d1
    assert d1.create_graph_builder().stream.device is d1
    d1.sync()
    assert Device() is d0
    with pytest.raises(RuntimeError, match="belongs to device 1"):
        d0.set_current(d1.context)


def test_launches(s1, b1, kernel, check):
    launch(s1, CONFIG, kernel, b1, 100, N)
    check(b1, 100)
    kernel.prepare(CONFIG)(s1, b1, 101, N)
    check(b1, 101)
    together = LaunchConfig(grid=N // 128, block=128, is_cooperative=True)
    launch(s1, together, kernel, b1, 102, N)
    check(b1, 102)


def test_tenants(d0, d1, b1, kernel, check):
    groups, rest = d1.resources.sm.split(cupola.SMResourceOptions(count=16))
    contexts = [d1.create_context(cupola.ContextOptions(groups)), d1.create_context(cupola.ContextOptions([rest]))]
    counts = [context.resources.sm.sm_count for context in contexts]
    assert counts == [16, d1.resources.sm.sm_count - 16] and d0.resources.sm.sm_count == d1.resources.sm.sm_count
    for value, (context, count) in enumerate(zip(contexts, counts, strict=True), 60):
        with cleared(context.create_stream()) as stream:
            assert context.device is stream.device is d1 and stream.resources.sm.sm_count == count
            launch(stream, CONFIG, kernel, b1, value, N)
            event = stream.record()
            assert event.device is d1 and event.context == context
            event.sync()
        check(b1, value)
    for context in contexts:
        context.close()


@pytest.mark.cpu_only  # what a GPU's driver says to that was not recorded
def test_a_context_of_parts_is_of_one_device(d0, d1):
    groups, _ = d1.resources.sm.split(cupola.SMResourceOptions(count=16))
    with pytest.raises(CUDAError, match="the resources are of device 1, not of 0"):
        d0.create_context(cupola.ContextOptions(groups))


def test_textures_and_surfaces(d1, s1, b1, texels, check):
    """The array, what reads it and what writes it are of device 1, as the kernels are."""
    options = cupola.texture.OpaqueArrayOptions((64, 64), "uint8", 1, is_surface_load_store=True)
    with d1.create_opaque_array(options) as array:
        array.copy_from(values(5), stream=s1)
        resource = cupola.texture.ResourceDescriptor.from_opaque_array(array)
        block = LaunchConfig(grid=(4, 4), block=(16, 16))
        with (
            d1.create_texture_object(resource=resource) as texture,
            d1.create_surface_object(resource=resource) as surface,
        ):
            assert texture.device is surface.device is array.device is d1
            launch(s1, block, texels.get_kernel("read"), texture, b1)
            check(b1, 5)
            launch(s1, block, texels.get_kernel("write"), surface)
            found = array.copy_to(np.empty(N, np.uint8), stream=s1)
            s1.sync()
            assert (found == 6).all()
    linear = cupola.texture.ResourceDescriptor.from_linear(b1, format="uint8", num_channels=1)
    with d1.create_texture_object(resource=linear) as texture:
        launch(s1, CONFIG, texels.get_kernel("fetch"), texture, b1)
        check(b1, 12)


@contextmanager
def cleared(stream: cupola.Stream) -> Iterator[cupola.Stream]:
    yield stream
    stream.sync()
    stream.close()


def test_events(d1, s0, s1):
    event = s1.record(timing_enabled=True)
    assert event.device.device_id == 1 and event.context == s1.context
    s1.record(event)
    s0.wait(event)
    s1.wait(s0)
    s0.wait(s1)
    end = s1.record(timing_enabled=True)
    end.sync()
    assert end.is_done and end - event >= 0
    assert s1.device.device_id == s1.context.device.device_id == 1
    assert s1.priority == 0 and s1.is_nonblocking
    own = d1.create_event()
    s1.record(own)
    own.sync()


def test_order_between_streams(s0, s1, pool0, pool1, check):
    with pool0.allocate(1 << 24, stream=s0) as here, pool1.allocate(1 << 24, stream=s1) as there:
        for value in range(5):
            there.fill(value, stream=s1)
            s0.wait(s1)
            here.copy_from(there, stream=s0)
            s1.wait(s0)
        check(here, 4)


def test_views(s0, s1, b0, b1, check):
    class Array:
        """An array that the stream of device 1 writes."""

        def __init__(self) -> None:
            self.__cuda_array_interface__ = {
                "shape": (N,),
                "typestr": "|u1",
                "data": (int(b1.handle), False),
                "version": 3,
                "stream": int(s1.handle),
            }

    @args_viewable_as_strided_memory((0,))
    def view_of(array: object, stream: object) -> StridedMemoryView:
        return array.view(int(stream.handle))  # type: ignore[attr-defined]

    for value in range(3):
        b1.fill(value, stream=s1)
        for view in (
            StridedMemoryView.from_any_interface(Array(), stream_ptr=int(s0.handle)),
            view_of(Array(), s0),
        ):
            assert (view.ptr, view.device_id, view.is_device_accessible) == (b1.handle, 1, True)
        b0.copy_from(Array(), stream=s0)
        check(b0, value)


def test_host_callbacks(s1, sync):
    builder = s1.create_graph_builder().begin_building()
    seen: list[int] = []
    builder.callback(lambda: seen.append(1))
    builder.end_building().complete().launch(s1)
    sync()
    assert seen == [1]


# --- memory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["own", "new", "of the device"])
def test_allocations(stream, pool, d1, pool1):
    resource = {"own": pool1, "new": cupola.DeviceMemoryResource(1), "of the device": d1.memory_resource}[pool]
    buffer = resource.allocate(1 << 20, stream=stream)
    assert buffer.device_id == Buffer.from_handle(buffer.handle, 1).device_id == 1
    assert buffer.__dlpack_device__() == (2, 1)
    assert buffer.is_device_accessible and not buffer.is_host_accessible
    buffer.close()


def test_the_device_allocates(d1, s1, check):
    with d1.allocate(N, stream=s1) as buffer:
        buffer.fill(102, stream=s1)
        check(buffer, 102)


@pytest.mark.parametrize("close", ["plain", "other stream", "collected", "default"])
def test_releases(close, d0, s0, s1, pool1, sync):
    before = pool1.attributes.used_mem_current
    buffer = pool1.allocate(1 << 20, stream=s1)
    if close == "plain":
        buffer.close()
    elif close == "other stream":
        s0.wait(s1)
        buffer.close(s0)
    elif close == "default":
        s1.sync()
        buffer.close(d0.default_stream)
    del buffer
    sync()
    d0.sync()
    assert pool1.attributes.used_mem_current == before


def test_prefetches(d0, d1, s1):
    if not d1.properties.concurrent_managed_access:
        pytest.skip("the device has no concurrent managed access: there is nothing to prefetch")
    with cupola.ManagedMemoryResource().allocate(1 << 20, stream=s1) as buffer:
        buffer.prefetch(d1, stream=s1)
        buffer.fill(103, stream=s1)
        buffer.prefetch(d0, stream=s1)
        s1.sync()


def add_one(buffer: Buffer, written: cupola.Event, answer: Connection) -> None:
    """What another process does with memory and an event of device 1, with device 0 current."""
    try:
        d0, d1 = Device.get_all_devices()[:2]
        d1.set_current()
        d0.set_current()
        s1 = d1.create_stream()
        s1.wait(written)
        found = buffer.copy_to(np.empty(N, np.uint8), stream=s1)
        s1.sync()
        buffer.copy_from(found + 1, stream=s1)
        s1.sync()
        buffer.close(s1)
        s1.sync()
        answer.send("ok")
    except Exception:
        answer.send(traceback.format_exc())


def test_two_processes(s1, check):
    spawn = multiprocessing.get_context("spawn")
    resource = cupola.DeviceMemoryResource(1, {"ipc_enabled": True})
    with resource.allocate(N, stream=s1) as buffer:
        assert buffer.ipc_descriptor.size == N
        buffer.fill(60, stream=s1)
        written = s1.record(ipc_enabled=True)
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=add_one, args=(buffer, written, theirs))
        process.start()
        theirs.close()
        assert (answer := ours.recv()) == "ok", answer
        process.join()
        check(buffer, 61)


# --- graphs -------------------------------------------------------------------------------------------------


def test_captured_graphs(s1, pool1, b1, kernel, sync, check):
    with pool1.allocate(N, stream=s1) as other:
        sync()
        builder = s1.create_graph_builder().begin_building()
        launch(builder, CONFIG, kernel, b1, 110, N)
        other.copy_from(b1, stream=builder)
        b1.fill(111, stream=builder)
        left, right = builder.split(2)
        launch(right, CONFIG, kernel, b1, 112, N)
        builder.join(left, right)
        graph = builder.end_building().complete()
        graph.upload(s1)
        graph.launch(s1)
        check(other, 110)
        check(b1, 112)


def test_defined_graphs(stream, d0, d1, s1, pool1, b1, kernel, check):
    """Nodes are of the context that is current when they are made; a graph runs in any stream."""
    d1.set_current()
    definition = GraphDefinition()
    node = definition.launch(CONFIG, kernel, b1, 120, N)
    with pool1.allocate(N, stream=s1) as other:
        node = node.memcpy(other, b1, N).memset(b1, 121, N)
        graph = definition.instantiate()
        d0.set_current()
        s1.sync()
        graph.launch(stream)
        check(other, 120)
        check(b1, 121)


def test_nodes_of_copies(s1, pool1, b1, sync, check):
    """Nodes that need the access of device 1 become nodes of it."""
    with pool1.allocate(N, stream=s1) as other:
        b1.fill(122, stream=s1)
        sync()
        definition = GraphDefinition()
        copy = definition.memcpy(other, b1, N)
        copy.memset(b1, 123, N)
        graph = definition.instantiate()
        graph.launch(s1)
        check(other, 122)
        check(b1, 123)
        copy.update(dst=b1, src=other)
        graph[copy].update(dst=b1, src=other, size=N)


def test_a_node_that_copies_between_devices_works_or_says_what_to_do(b0, b1):
    try:
        GraphDefinition().memcpy(b0, b1, N)
    except CUDAError as error:
        assert "give device 0 access" in str(error)


def test_a_capture_goes_on_behind_a_copy_between_devices(s1, b0, b1, check):
    builder = s1.create_graph_builder().begin_building()
    with refused("give device 1 access"):
        b0.copy_from(b1, stream=builder)
    b1.fill(125, stream=builder)
    builder.end_building().complete().launch(s1)
    check(b1, 125)


def test_a_capture_of_a_fill_on_the_other_device(s0, b1):
    builder = s0.create_graph_builder().begin_building()
    b1.fill(126, stream=builder)
    with refused("give device 0 access"):
        builder.end_building().complete()


# --- no context current -------------------------------------------------------------------------------------


def test_threads_without_a_context(d0, s0, s1, pool1, b0, b1, kernel, sync, check):
    """What names its stream does its work, or says which call the thread needs; copies, fills and releases work."""
    errors: list[str] = []
    array = np.empty(N, np.uint8)
    together = LaunchConfig(grid=N // 128, block=128, is_cooperative=True)
    other = pool1.allocate(N, stream=s1)

    must: dict[str, Callable[[], object]] = {
        "fill": lambda: b1.fill(130, stream=s1),
        "copy": lambda: other.copy_from(b1, stream=s1),
        "between": lambda: b0.copy_from(other, stream=s1),
        "to host": lambda: other.copy_to(array, stream=s1),
    }
    may: dict[str, Callable[[], object]] = {
        "sync": s1.sync,
        "batch": lambda: copy_batch(s1, [other], [b0]),
        "options": lambda: other.copy_to(array, stream=s1, options=CopyOptions()),
        "launch": lambda: launch(s1, CONFIG, kernel, other, 131, N),
        "cooperative launch": lambda: launch(s1, together, kernel, other, 132, N),
        "events": lambda: s0.wait(s1.record()),
        "event query": lambda: s1.record().sync(),
        "streams": lambda: s1.wait(s0),
        "allocate": lambda: pool1.allocate(N, stream=s1).close(),
    }

    def work() -> None:
        for name, function in {**must, **may, "close": other.close}.items():
            try:
                function()
            except Exception as error:
                cpu = d0.name.startswith("cupola")
                if name not in may or cpu or "set_current()" not in str(error):
                    errors.append(f"{name}: {type(error).__name__}: {error}")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    sync()
    assert not errors, "\n".join(errors)
    assert (array == 130).all()
    check(b0, 130)


@pytest.mark.parametrize("stream", ["none", "its own", "in force", "of device 0 in force"])
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda d, s: d.array([1.0, 2.0, 3.0], stream=s), [1, 2, 3]),
        (lambda d, s: d.array(np.arange(3)[::-1], stream=s), [2, 1, 0]),
        (lambda d, s: d.array(d.array([4.0, 5.0], stream=s), stream=s), [4, 5]),
        (lambda d, s: d.zeros(3, stream=s), [0, 0, 0]),
        (lambda d, s: d.full((2, 2), 7, np.uint8, stream=s), [[7, 7], [7, 7]]),
        (lambda d, s: d.full(2, 2.5, stream=s), [2.5, 2.5]),
        (lambda d, s: d.empty((2, 0), stream=s), np.empty((2, 0))),
        (lambda d, s: d.empty(3, stream=s), None),
    ],
    ids=["list", "reversed", "array", "zeros", "bytes", "full", "nothing", "empty"],
)
def test_arrays_of_a_device_that_is_not_current(d0, d1, s0, s1, stream, make, expected):
    if stream.endswith("in force"):
        with (d1 if stream == "in force" else d0).stream():
            made = make(d1, None)
    else:
        made = make(d1, s1 if stream == "its own" else None)
    assert Device().device_id == d0.device_id
    assert made.buffer.device_id == d1.device_id
    if expected is not None:
        assert made.to_numpy(stream=s1).tolist() == np.asarray(expected).tolist()
