"""What works while device 0 is current and everything else is of device 1; run by the test beside it, or by hand."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np

import cupola
from cupola import Buffer, CUDAError, Device, LaunchConfig, Program, launch
from cupola.graph import GraphDefinition
from cupola.utils import CopyOptions, StridedMemoryView, args_viewable_as_strided_memory, copy_batch

N = 4096
ORDERS = ["stream", "during_api_call", "any"]
SOURCE = r"""
extern "C" __global__ void store(unsigned char* x, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}
"""

CASES: dict[str, Callable[[Setting], None]] = {}


def case(function: Callable[[Setting], None]) -> Callable[[Setting], None]:
    CASES[function.__name__] = function
    return function


class Setting:
    """Two devices with a stream and a buffer each, and device 0 current."""

    def __init__(self) -> None:
        self.d0, self.d1 = Device.get_all_devices()[:2]
        self.d1.set_current()
        self.d0.set_current()
        self.s0, self.s1 = self.d0.create_stream(), self.d1.create_stream()
        # Pools of their own, which nobody else has given access to.
        self.pool0, self.pool1 = (cupola.DeviceMemoryResource(d, {}) for d in (self.d0, self.d1))
        self.b0, self.b1 = self.pool0.allocate(N, stream=self.s0), self.pool1.allocate(N, stream=self.s1)
        self.b1.fill(1, stream=self.s1)
        self.sync()
        self.kernel = Program(SOURCE, "c++", {"arch": f"sm_{self.d1.arch}"}).compile("cubin").get_kernel("store")
        self.config = LaunchConfig(grid=N // 128, block=128)

    def sync(self) -> None:
        self.s0.sync()
        self.s1.sync()

    def check(self, buffer: Buffer, value: int) -> None:
        """What a buffer holds, fetched on a stream of its device that the others are waited for."""
        self.sync()
        stream = self.s1 if buffer.device_id == 1 else self.s0
        found = buffer.copy_to(np.empty(buffer.size, np.uint8), stream=stream)
        stream.sync()
        assert (found == value).all(), (value, found)
        assert Device().device_id == 0


def fails(text: str, function: Callable[..., object], *arguments: object, **keywords: object) -> None:
    try:
        function(*arguments, **keywords)
    except CUDAError as error:
        assert text in str(error), error
        assert error.name == "CUDA_ERROR_INVALID_VALUE", error
    else:
        raise AssertionError(f"no error with {text!r}")


def values(value: int, count: int = N) -> np.ndarray:
    return np.full(count, value, np.uint8)


# --- copies and fills -------------------------------------------------------------------------------------


@case
def host_arrays(s: Setting) -> None:
    for value, stream in enumerate((s.s1, s.s0), start=10):
        s.b1.copy_from(values(value), stream=stream)
        stream.sync()
        found = s.b1.copy_to(np.empty(N, np.uint8), stream=stream)
        stream.sync()
        assert (found == value).all()


@case
def pinned_memory(s: Setting) -> None:
    for resource in (cupola.PinnedMemoryResource(), cupola.LegacyPinnedMemoryResource()):
        for value, stream in enumerate((s.s1, s.s0), start=20):
            with resource.allocate(N, stream=stream) as there, resource.allocate(N, stream=stream) as back:
                stream.sync()
                array = np.from_dlpack(there).view(np.uint8)
                array[:] = value
                s.b1.copy_from(there, stream=stream)
                s.b1.copy_to(back, stream=stream)
                stream.sync()
                assert (np.from_dlpack(back).view(np.uint8) == value).all()
                del array


@case
def managed_memory(s: Setting) -> None:
    with cupola.ManagedMemoryResource().allocate(N, stream=s.s1) as managed:
        managed.fill(25, stream=s.s1)
        s.b1.copy_from(managed, stream=s.s1)
        s.sync()
        s.b1.copy_to(managed, stream=s.s0)
        s.check(s.b1, 25)


@case
def within_device_1(s: Setting) -> None:
    with s.pool1.allocate(N, stream=s.s1) as other:
        s.sync()
        for value, stream in enumerate((s.s1, s.s0), start=30):
            other.fill(value, stream=s.s1)
            s.sync()
            s.b1.copy_from(other, stream=stream)
            s.check(s.b1, value)
    copy = s.b1.copy_to(stream=s.s1)
    assert copy.device_id == 1
    s.check(copy, 31)
    copy.close(s.s1)


@case
def between_devices(s: Setting) -> None:
    for value, stream in enumerate((s.s1, s.s0), start=40):
        s.b1.fill(value, stream=s.s1)
        s.sync()
        s.b0.copy_from(s.b1, stream=stream)
        s.check(s.b0, value)
        s.b0.fill(value + 100, stream=s.s0)
        s.sync()
        s.b0.copy_to(s.b1, stream=stream)
        s.check(s.b1, value + 100)


@case
def copies_wait_for_their_stream(s: Setting) -> None:
    """A copy done in another way still is one of the stream: it comes behind what is queued there."""
    with s.pool1.allocate(1 << 24, stream=s.s1) as large, s.pool0.allocate(1 << 24, stream=s.s0) as other:
        for value in range(5):
            large.fill(value, stream=s.s1)
            other.copy_from(large, stream=s.s1)
            large.fill(99, stream=s.s1)
            found = other.copy_to(np.empty(other.size, np.uint8), stream=s.s1)
            s.s1.sync()
            assert (found == value).all()


@case
def arrays_of_dlpack(s: Setting) -> None:
    class Array:
        def __init__(self, buffer: Buffer) -> None:
            self.buffer = buffer

        def __dlpack__(self, *, stream: int | None = None, **others: object) -> object:
            return self.buffer.__dlpack__(max_version=(1, 0))

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.buffer.__dlpack_device__()

    s.b1.fill(45, stream=s.s1)
    s.sync()
    s.b0.copy_from(Array(s.b1), stream=s.s0)
    s.check(s.b0, 45)


@case
def default_streams(s: Setting) -> None:
    s.b1.fill(46, stream=s.s1)
    s.sync()
    s.b0.copy_from(s.b1, stream=s.d0.default_stream)
    s.d0.default_stream.sync()  # which the other streams are not ordered with
    s.check(s.b0, 46)
    fails("Device(1).set_current() first", s.b1.copy_to, np.empty(N, np.uint8), stream=s.d1.default_stream)
    fails("Device(1).set_current() first", s.b1.fill, 1, stream=s.d1.default_stream)


@case
def copies_with_options(s: Setting) -> None:
    for number, order in enumerate(ORDERS):
        options = CopyOptions(src_access_order=order, overlap_mode="prefer_overlap_with_compute")
        for value, stream in enumerate((s.s1, s.s0), start=50 + 10 * number):
            source = values(value)
            s.b1.copy_from(source, stream=stream, options=options)
            if order == "during_api_call":
                source[:] = 0  # it has been read
            stream.sync()
            s.b0.copy_from(s.b1, stream=stream, options=options)
            s.check(s.b0, value)
            s.check(s.b1, value)


@case
def batches(s: Setting) -> None:
    with s.pool0.allocate(64, stream=s.s0) as a0, s.pool1.allocate(64, stream=s.s1) as a1:
        for value, stream in enumerate((s.s1, s.s0), start=80):
            for order in ORDERS:
                s.b1.fill(value, stream=s.s1)
                a0.fill(value + 10, stream=s.s0)
                s.sync()
                copy_batch(stream, [s.b1, a0], [s.b0, a1], options=CopyOptions(src_access_order=order))
                s.check(s.b0, value)
                s.check(a1, value + 10)
                copy_batch(stream, [a1], [a1], options=CopyOptions(src_access_order=order))
                s.check(a1, value + 10)


@case
def fills(s: Setting) -> None:
    for pattern in (7, b"\x07\x07", b"\x07\x07\x07\x07"):
        s.b1.fill(0, stream=s.s1)
        s.b1.fill(pattern, stream=s.s1)
        s.check(s.b1, 7)
        fails("use a stream of device 1, or give device 0 access", s.b1.fill, pattern, stream=s.s0)


@case
def access_for_device_0(s: Setting) -> None:
    pool = cupola.DeviceMemoryResource(1, {})
    pool.peer_accessible_by = [0]
    with pool.allocate(N, stream=s.s0) as buffer:
        buffer.fill(90, stream=s.s0)
        s.b1.copy_from(buffer, stream=s.s0)
        s.check(s.b1, 90)
        copy_batch(s.s0, [buffer], [s.b0])
        s.check(s.b0, 90)
        launch(s.s0, s.config, s.kernel, buffer, 91, N)
        s.check(buffer, 91)


@case
def virtual_memory(s: Setting) -> None:
    resource = cupola.VirtualMemoryResource(s.d1)
    with resource.allocate(N) as buffer:
        for value, stream in enumerate((s.s1, s.s0), start=92):
            buffer.fill(value, stream=s.s1)
            s.sync()
            found = buffer.copy_to(np.empty(buffer.size, np.uint8), stream=stream)
            stream.sync()
            assert (found == value).all()
            part = Buffer.from_handle(buffer.handle, N, owner=buffer)
            s.b0.copy_from(part, stream=stream)
            s.check(s.b0, value)
            part.copy_from(s.b0, stream=stream)
            s.sync()
        fails("use a stream of device 1", buffer.fill, 1, stream=s.s0)


@case
def plain_memory(s: Setting) -> None:
    """What cuMemAlloc gives needs no access."""
    from cupola.core.memory._unpooled import SynchronousMemoryResource

    with SynchronousMemoryResource(1).allocate(N) as buffer:
        assert buffer.device_id == 1
        for value, stream in enumerate((s.s1, s.s0), start=95):
            buffer.copy_from(values(value), stream=stream)
            stream.sync()
            s.b0.copy_from(buffer, stream=stream)
            s.check(s.b0, value)
        buffer.fill(97, stream=s.s1)
        s.check(buffer, 97)


@case
def other_errors_stay(s: Setting) -> None:
    """What is wrong for another reason fails as it always did."""
    if not s.d0.name.startswith("cupola"):
        return  # a GPU's driver may find out later, or not at all
    large = [Buffer.from_handle(b.handle, 1 << 20) for b in (s.b0, s.b1)]
    for stream in (s.s0, s.s1):
        fails("past the end", large[0].copy_from, large[1], stream=stream)
        fails("past the end", large[1].copy_to, np.empty(1 << 20, np.uint8), stream=stream)
        fails("past the end", copy_batch, stream, large, large[::-1])
        fails("past the end", large[1].copy_to, large[0], stream=stream, options=CopyOptions())
    fails("past the end", large[1].fill, 1, stream=s.s1)
    s.b0.fill(104, stream=s.s0)
    s.check(s.b0, 104)


# --- devices, streams, events, kernels -----------------------------------------------------------------------------


@case
def devices(s: Setting) -> None:
    """Things are made on the device that is asked, not on the current one."""
    assert s.d1.create_stream().device is s.d1.create_event().device is s.d1
    assert s.d1.create_graph_builder().stream.device is s.d1
    s.d1.sync()
    assert Device() is s.d0
    try:
        s.d0.set_current(s.d1.context)
    except RuntimeError as error:
        assert "belongs to device 1" in str(error)
    else:
        raise AssertionError("a context of device 1 was made current through device 0")


@case
def launches(s: Setting) -> None:
    launch(s.s1, s.config, s.kernel, s.b1, 100, N)
    s.check(s.b1, 100)
    s.kernel.prepare(s.config)(s.s1, s.b1, 101, N)
    s.check(s.b1, 101)
    together = LaunchConfig(grid=N // 128, block=128, is_cooperative=True)
    launch(s.s1, together, s.kernel, s.b1, 102, N)
    s.check(s.b1, 102)


@case
def events(s: Setting) -> None:
    event = s.s1.record(timing_enabled=True)
    assert event.device.device_id == 1 and event.context == s.s1.context
    s.s1.record(event)
    s.s0.wait(event)
    s.s1.wait(s.s0)
    s.s0.wait(s.s1)
    end = s.s1.record(timing_enabled=True)
    end.sync()
    assert end.is_done and end - event >= 0
    assert s.s1.device.device_id == s.s1.context.device.device_id == 1
    assert s.s1.priority == 0 and s.s1.is_nonblocking
    own = s.d1.create_event()
    s.s1.record(own)
    own.sync()


@case
def order_between_streams(s: Setting) -> None:
    large = [p.allocate(1 << 24, stream=t) for p, t in ((s.pool0, s.s0), (s.pool1, s.s1))]
    for value in range(5):
        large[1].fill(value, stream=s.s1)
        s.s0.wait(s.s1)
        large[0].copy_from(large[1], stream=s.s0)
        s.s1.wait(s.s0)
    s.check(large[0], 4)
    for buffer, stream in zip(large, (s.s0, s.s1), strict=True):
        buffer.close(stream)


@case
def views(s: Setting) -> None:
    class Array:
        """An array that the stream of device 1 writes."""

        def __init__(self) -> None:
            self.__cuda_array_interface__ = {
                "shape": (N,),
                "typestr": "|u1",
                "data": (int(s.b1.handle), False),
                "version": 3,
                "stream": int(s.s1.handle),
            }

    @args_viewable_as_strided_memory((0,))
    def view_of(array: object, stream: object) -> StridedMemoryView:
        return array.view(int(stream.handle))  # type: ignore[attr-defined]

    for value in range(3):
        s.b1.fill(value, stream=s.s1)
        for view in (
            StridedMemoryView.from_any_interface(Array(), stream_ptr=int(s.s0.handle)),
            view_of(Array(), s.s0),
        ):
            assert (view.ptr, view.device_id, view.is_device_accessible) == (s.b1.handle, 1, True)
        s.b0.copy_from(Array(), stream=s.s0)
        s.check(s.b0, value)


@case
def host_callbacks(s: Setting) -> None:
    builder = s.s1.create_graph_builder().begin_building()
    seen: list[int] = []
    builder.callback(lambda: seen.append(1))
    builder.end_building().complete().launch(s.s1)
    s.sync()
    assert seen == [1]


# --- memory -----------------------------------------------------------------------------------------------


@case
def allocations(s: Setting) -> None:
    for stream in (s.s1, s.s0):
        for resource in (s.pool1, cupola.DeviceMemoryResource(1), s.d1.memory_resource):
            buffer = resource.allocate(1 << 20, stream=stream)
            assert buffer.device_id == Buffer.from_handle(buffer.handle, 1).device_id == 1
            assert buffer.__dlpack_device__() == (2, 1)
            assert buffer.is_device_accessible and not buffer.is_host_accessible
            buffer.close()
    s.sync()
    with s.d1.allocate(N, stream=s.s1) as buffer:
        buffer.fill(102, stream=s.s1)
        s.check(buffer, 102)


@case
def releases(s: Setting) -> None:
    before = s.pool1.attributes.used_mem_current
    for close in ("plain", "other stream", "collected", "default"):
        buffer = s.pool1.allocate(1 << 20, stream=s.s1)
        if close == "plain":
            buffer.close()
        elif close == "other stream":
            s.s0.wait(s.s1)
            buffer.close(s.s0)
        elif close == "default":
            s.s1.sync()
            buffer.close(s.d0.default_stream)
        del buffer
        s.sync()
        s.d0.sync()
        assert s.pool1.attributes.used_mem_current == before, close


@case
def prefetches(s: Setting) -> None:
    if not s.d1.properties.concurrent_managed_access:
        return
    with cupola.ManagedMemoryResource().allocate(1 << 20, stream=s.s1) as buffer:
        buffer.prefetch(s.d1, stream=s.s1)
        buffer.fill(103, stream=s.s1)
        buffer.prefetch(s.d0, stream=s.s1)
        s.s1.sync()


def add_one(buffer: Buffer, written: cupola.Event, answer: Connection) -> None:
    """What another process does with memory and an event of device 1, with device 0 current."""
    try:
        s = Setting()
        s.s1.wait(written)
        found = buffer.copy_to(np.empty(N, np.uint8), stream=s.s1)
        s.s1.sync()
        buffer.copy_from(found + 1, stream=s.s1)
        s.s1.sync()
        buffer.close(s.s1)
        s.s1.sync()
        answer.send("ok")
    except Exception:
        answer.send(traceback.format_exc())


@case
def two_processes(s: Setting) -> None:
    spawn = multiprocessing.get_context("spawn")
    resource = cupola.DeviceMemoryResource(1, {"ipc_enabled": True})
    with resource.allocate(N, stream=s.s1) as buffer:
        assert buffer.ipc_descriptor.size == N
        buffer.fill(60, stream=s.s1)
        written = s.s1.record(ipc_enabled=True)
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=add_one, args=(buffer, written, theirs))
        process.start()
        theirs.close()
        assert (answer := ours.recv()) == "ok", answer
        process.join()
        s.check(buffer, 61)


# --- graphs -----------------------------------------------------------------------------------------------


@case
def captured_graphs(s: Setting) -> None:
    with s.pool1.allocate(N, stream=s.s1) as other:
        s.sync()
        builder = s.s1.create_graph_builder().begin_building()
        launch(builder, s.config, s.kernel, s.b1, 110, N)
        other.copy_from(s.b1, stream=builder)
        s.b1.fill(111, stream=builder)
        left, right = builder.split(2)
        launch(right, s.config, s.kernel, s.b1, 112, N)
        builder.join(left, right)
        graph = builder.end_building().complete()
        graph.upload(s.s1)
        graph.launch(s.s1)
        s.check(other, 110)
        s.check(s.b1, 112)


@case
def defined_graphs(s: Setting) -> None:
    """Nodes are of the context that is current when they are made; a graph runs in any stream."""
    s.d1.set_current()
    definition = GraphDefinition()
    node = definition.launch(s.config, s.kernel, s.b1, 120, N)
    with s.pool1.allocate(N, stream=s.s1) as other:
        node = node.memcpy(other, s.b1, N).memset(s.b1, 121, N)
        graph = definition.instantiate()
        s.d0.set_current()
        for stream in (s.s1, s.s0):
            graph.launch(stream)
            s.sync()
            s.check(other, 120)
            s.check(s.b1, 121)


@case
def nodes_of_copies(s: Setting) -> None:
    """Nodes that need the access of device 1 become nodes of it."""
    with s.pool1.allocate(N, stream=s.s1) as other:
        s.b1.fill(122, stream=s.s1)
        s.sync()
        definition = GraphDefinition()
        copy = definition.memcpy(other, s.b1, N)
        copy.memset(s.b1, 123, N)
        graph = definition.instantiate()
        graph.launch(s.s1)
        s.check(other, 122)
        s.check(s.b1, 123)
        copy.update(dst=s.b1, src=other)
        graph[copy].update(dst=s.b1, src=other, size=N)


@case
def graphs_between_devices(s: Setting) -> None:
    """It works, or the error says what to do."""
    s.b1.fill(124, stream=s.s1)
    s.sync()
    try:
        GraphDefinition().memcpy(s.b0, s.b1, N)
    except CUDAError as error:
        assert "give device 0 access" in str(error)
    builder = s.s1.create_graph_builder().begin_building()
    fails("give device 1 access", s.b0.copy_from, s.b1, stream=builder)
    s.b1.fill(125, stream=builder)  # the capture goes on
    builder.end_building().complete().launch(s.s1)
    s.check(s.b1, 125)
    builder = s.s0.create_graph_builder().begin_building()
    s.b1.fill(126, stream=builder)
    fails("give device 0 access", builder.end_building().complete)


# --- no context current -----------------------------------------------------------------------------------


@case
def threads_without_a_context(s: Setting) -> None:
    """What names its stream does its work, or says which call the thread needs; copies, fills and releases work."""
    errors: list[str] = []
    array = np.empty(N, np.uint8)
    together = LaunchConfig(grid=N // 128, block=128, is_cooperative=True)
    other = s.pool1.allocate(N, stream=s.s1)

    must: dict[str, Callable[[], object]] = {
        "fill": lambda: s.b1.fill(130, stream=s.s1),
        "copy": lambda: other.copy_from(s.b1, stream=s.s1),
        "between": lambda: s.b0.copy_from(other, stream=s.s1),
        "to host": lambda: other.copy_to(array, stream=s.s1),
    }
    may: dict[str, Callable[[], object]] = {
        "sync": s.s1.sync,
        "batch": lambda: copy_batch(s.s1, [other], [s.b0]),
        "options": lambda: other.copy_to(array, stream=s.s1, options=CopyOptions()),
        "launch": lambda: launch(s.s1, s.config, s.kernel, other, 131, N),
        "cooperative launch": lambda: launch(s.s1, together, s.kernel, other, 132, N),
        "events": lambda: s.s0.wait(s.s1.record()),
        "event query": lambda: s.s1.record().sync(),
        "streams": lambda: s.s1.wait(s.s0),
        "allocate": lambda: s.pool1.allocate(N, stream=s.s1).close(),
    }

    def work() -> None:
        for name, function in {**must, **may, "close": other.close}.items():
            try:
                function()
            except Exception as error:
                cpu = s.d0.name.startswith("cupola")
                if name not in may or cpu or "set_current()" not in str(error):
                    errors.append(f"{name}: {type(error).__name__}: {error}")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    s.sync()
    assert not errors, "\n".join(errors)
    assert (array == 130).all()
    s.check(s.b0, 130)


def main() -> None:
    """Print for each case ``name ok``, or what went wrong."""
    warnings.simplefilter("error")
    setting = Setting()
    for name in sys.argv[1:] or CASES:
        try:
            CASES[name](setting)
            setting.sync()
            text = "ok"
        except Exception:
            text = repr(traceback.format_exc())
        setting.d0.set_current()
        print(name, text, flush=True)


if __name__ == "__main__":
    main()
