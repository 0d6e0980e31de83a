"""A table of small races: eight threads use, and most of them at last close, one object at the same moment.

usage: python tests/stress/races.py SECONDS

Each race makes an object anew, again and again, and its threads do one thing each with it. What may come of that is a
result or an error of the kind that the race names, and after it everything that was made is gone. Prints as JSON how
many rounds each race had, what went wrong, and whether there is a GIL.
"""

from __future__ import annotations

import contextlib
import gc
import json
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from cupola import (
    CUDAError,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    Program,
    launch,
)
from cupola.graph import GraphDefinition
from cupola.texture import ResourceDescriptor
from cupola.utils import InMemoryProgramCache, StridedMemoryView

THREADS = 8
ELEMENTS = 256

SOURCE = """
extern "C" __global__ void add(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += a;
}
extern "C" __global__ void nothing() {}
"""

Work = Callable[[], object]
CLOSED = (RuntimeError,)  # "... has been closed"


class Bench:
    """What the races share: made once, and never closed. Each race makes what its threads do, in turn."""

    def __init__(self, device: Device) -> None:
        device.set_current()
        self.device = device
        self.stream = device.create_stream()
        self.config = LaunchConfig(grid=2, block=128)
        self.cubin = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin").code
        self.code = ObjectCode.from_cubin(self.cubin)
        self.add, self.nothing = self.code.get_kernel("add"), self.code.get_kernel("nothing")
        self.room = device.allocate(4 * ELEMENTS, stream=self.stream)
        self.stream.sync()

    def run(self, kernel: Any, stream: Any, buffer: Any) -> None:
        launch(stream, self.config, kernel, buffer, np.float32(1), np.int32(ELEMENTS))

    # --- one object of the device ---------------------------------------------------------------------

    def streams_that_close(self) -> list[Work]:
        stream = self.device.create_stream()
        return [
            stream.close, stream.sync, lambda: self.run(self.add, stream, self.room), stream.record, stream.close,
            lambda: stream.wait(self.stream), lambda: (stream.device, stream.context, stream.priority, repr(stream)),
            lambda: self.stream.wait(stream),
        ]  # fmt: skip

    def streams_that_work(self) -> list[Work]:
        stream = self.device.create_stream()
        return [
            lambda: self.run(self.add, stream, self.room), stream.sync, stream.record,
            lambda: stream.wait(self.stream), lambda: self.room.fill(0, stream=stream),
            lambda: self.device.allocate(64, stream=stream).close(),
        ]  # fmt: skip

    def events_that_close(self) -> list[Work]:
        event = self.stream.record(timing_enabled=True)
        later = self.stream.record(timing_enabled=True)
        later.sync()
        return [
            event.close, event.sync, lambda: event.is_done, lambda: self.stream.wait(event), event.close,
            lambda: self.stream.record(event), lambda: (event.device, event.context, repr(event), event == later),
            lambda: event.is_timing_enabled,
        ]  # fmt: skip

    def events_in_graphs(self) -> list[Work]:
        event = self.device.create_event()
        definitions = [GraphDefinition() for _ in range(3)]
        return [*(lambda each=each: each.record(event) for each in definitions), event.close, lambda: event.is_done]

    def contexts_that_close(self) -> list[Work]:
        context = self.stream.context
        return [context.close, lambda: context.handle, lambda: context.device, lambda: repr(context), context.close]

    def devices(self) -> list[Work]:
        """One Device object for all threads, although each has its own."""
        device = Device(0)
        return [
            device.set_current, lambda: device.name, lambda: device.uuid, lambda: device.properties.warp_size,
            lambda: device.compute_capability, lambda: device.context, device.sync,
            lambda: device.allocate(64, stream=self.stream).close(),
            lambda: setattr(device, "memory_resource", DeviceMemoryResource(device)),
        ]  # fmt: skip

    # --- memory ---------------------------------------------------------------------------------------

    def buffers_that_close(self) -> list[Work]:
        buffer = self.device.allocate(4 * ELEMENTS, stream=self.stream)
        other = self.device.create_stream()
        return [
            buffer.close, lambda: (buffer.handle, buffer.size, repr(buffer)), lambda: buffer.memory_resource,
            lambda: buffer.set_deallocation_stream(other), lambda: buffer.close(self.stream),
            lambda: buffer.is_device_accessible, lambda: buffer.__dlpack_device__(), buffer.close,
        ]  # fmt: skip

    def buffers_that_work(self) -> list[Work]:
        buffer = self.device.allocate(4 * ELEMENTS, stream=self.stream)
        return [
            lambda: buffer.fill(0, stream=self.stream), lambda: buffer.copy_to(self.room, stream=self.stream),
            lambda: self.run(self.add, self.stream, buffer), lambda: buffer.copy_from(self.room, stream=self.stream),
            lambda: StridedMemoryView.from_dlpack(buffer, stream_ptr=-1).dtype,
        ]  # fmt: skip

    def textures_that_close(self) -> list[Work]:
        array = self.device.create_opaque_array({"shape": (8, 8), "format": "float32", "num_channels": 1})
        resource = ResourceDescriptor.from_opaque_array(array)
        texture = self.device.create_texture_object(resource=resource)
        texels = np.zeros((8, 8), np.float32)

        def make() -> None:
            self.device.create_texture_object(resource=resource, options={"filter_mode": "linear"}).close()

        return [
            texture.close, lambda: (texture.handle, repr(texture), texture.options), lambda: texture.resource, make,
            lambda: array.copy_from(texels, stream=self.stream), array.close, make, texture.close,
        ]  # fmt: skip

    def tensor_maps(self) -> list[Work]:
        buffer = self.device.allocate(4096, stream=self.stream)
        view = StridedMemoryView.from_buffer(buffer, (32, 32), dtype=np.dtype(np.float32))
        made = view.as_tensor_map((8, 16))
        return [lambda: repr(view.as_tensor_map((8, 16))), lambda: repr(made), lambda: made.device, buffer.close]

    def pools_that_close(self) -> list[Work]:
        pool = DeviceMemoryResource(self.device, DeviceMemoryResourceOptions(max_size=1 << 21))
        return [
            pool.close, lambda: pool.allocate(64, stream=self.stream).close(), lambda: pool.attributes.used_mem_current,
            lambda: (pool.handle, pool.is_handle_owned, repr(pool)), pool.close,
            lambda: pool.allocate(64, stream=self.stream),
        ]  # fmt: skip

    def pools_while_capturing(self) -> list[Work]:
        """What is let go of during a capture waits until that is over, whoever allocates meanwhile."""
        stream = self.device.create_stream()
        buffers = [self.device.allocate(64, stream=stream) for _ in range(THREADS)]
        builder = stream.create_graph_builder().begin_building()

        def free(number: int) -> None:
            buffers[number].close()
            self.device.allocate(64, stream=self.stream).close()

        return [*(lambda number=number: free(number) for number in range(THREADS - 1)), builder.close]

    def pinned_memory(self) -> list[Work]:
        buffer = LegacyPinnedMemoryResource().allocate(64)
        return [buffer.close, lambda: buffer.handle, lambda: buffer.is_host_accessible, buffer.close]

    def views(self) -> list[Work]:
        view = StridedMemoryView.from_dlpack(np.zeros((4, 4), "f4,i4")["f0"], stream_ptr=-1)
        return [
            lambda: view.dtype, lambda: view.shape, lambda: view.__dlpack__(), lambda: repr(view),
            lambda: StridedMemoryView.from_any_interface(np.zeros(3), stream_ptr=-1).dtype,
        ]  # fmt: skip

    # --- code -----------------------------------------------------------------------------------------

    def code_that_loads(self) -> list[Work]:
        """Nothing is loaded yet when eight threads ask for a kernel, and the kernel's parameters are not known."""
        code = ObjectCode.from_cubin(self.cubin)
        return [
            lambda: self.run(code.get_kernel("add"), self.stream, self.room), lambda: repr(code), lambda: code.handle,
            lambda: code.get_kernel("nothing").num_arguments,
        ]  # fmt: skip

    def kernels(self) -> list[Work]:
        kernel = ObjectCode.from_cubin(self.cubin).get_kernel("add")
        return [
            lambda: self.run(kernel, self.stream, self.room), lambda: kernel.num_arguments,
            lambda: kernel.attributes.num_regs, lambda: kernel.occupancy, lambda: repr(kernel),
            lambda: type(kernel).from_handle(int(kernel.handle)).num_arguments,
        ]  # fmt: skip

    def kernels_by_address(self) -> list[Work]:
        """Kernels that are wrapped again while their code goes: a wrapper keeps it, or did not find it any more."""
        codes = [ObjectCode.from_cubin(self.cubin) for _ in range(4)]
        kernels = [code.get_kernel("nothing") for code in codes]
        kind, addresses = type(kernels[0]), [int(kernel.handle) for kernel in kernels]
        codes.clear()

        def let_go() -> None:
            with contextlib.suppress(IndexError):
                kernels.pop()

        return [
            let_go, let_go, let_go, let_go,
            *(lambda address=address: kind.from_handle(address) for address in addresses),
        ]  # fmt: skip

    def arguments(self) -> list[Work]:
        """Scalar types that no launch has seen yet."""
        kind = type("Number", (np.float32,), {})
        config = LaunchConfig(grid=1, block=32)
        return [
            lambda: launch(self.stream, config, self.add, self.room, kind(1), np.int32(1)),
            lambda: launch(self.stream, config, self.add, self.room, 1.0, 1),
        ]  # fmt: skip

    def configurations(self) -> list[Work]:
        config = LaunchConfig(grid=1, block=32)
        return [
            lambda: setattr(config, "priority", 0), lambda: setattr(config, "priority", None), lambda: repr(config),
            lambda: config.priority, lambda: launch(self.stream, config, self.nothing), lambda: hash(config),
        ]  # fmt: skip

    def caches(self) -> list[Work]:
        cache = InMemoryProgramCache()

        def compile_again() -> None:
            program = Program('extern "C" __global__ void f() {}', "c++", {"arch": f"sm_{self.device.arch}"})
            program.compile("ptx", cache=cache)
            program.close()

        return [compile_again, lambda: len(cache), compile_again, cache.clear]

    def programs_that_close(self) -> list[Work]:
        program = Program('extern "C" __global__ void f() {}', "c++", {"arch": f"sm_{self.device.arch}"})
        return [program.close, lambda: program.handle, lambda: repr(program), program.close]

    # --- graphs ---------------------------------------------------------------------------------------

    def definitions(self) -> list[Work]:
        definition = GraphDefinition()
        root = definition.empty()
        return [
            lambda: definition.launch(self.config, self.nothing), definition.nodes, definition.edges,
            lambda: root.memset(self.room, 0, self.room.size), definition.instantiate, lambda: len(root.succ),
            lambda: definition.empty().destroy(), lambda: definition.callback(int),
        ]  # fmt: skip

    def executables_that_close(self) -> list[Work]:
        definition = GraphDefinition()
        arguments = (self.room, np.float32(1), np.int32(ELEMENTS))
        node = definition.launch(self.config, self.add, *arguments)
        graph = definition.instantiate()
        return [
            lambda: graph.launch(self.stream), graph.close, lambda: graph.upload(self.stream), lambda: repr(graph),
            lambda: graph[node].update(config=self.config, kernel=self.add, args=arguments), graph.close,
            lambda: graph.update(definition), lambda: graph.launch(self.stream),
        ]  # fmt: skip

    def executables_that_work(self) -> list[Work]:
        definition = GraphDefinition()
        arguments = (self.room, np.float32(1), np.int32(ELEMENTS))
        node = definition.launch(self.config, self.add, *arguments)
        graph = definition.instantiate()
        return [
            lambda: graph.launch(self.stream), lambda: graph.upload(self.stream), lambda: graph.update(definition),
            lambda: graph[node].update(config=self.config, kernel=self.add, args=arguments),
        ]  # fmt: skip

    def builders_that_close(self) -> list[Work]:
        builder = self.device.create_stream().create_graph_builder().begin_building()
        return [
            lambda: launch(builder, self.config, self.nothing), builder.close, lambda: builder.is_building,
            lambda: builder.end_building().complete(), lambda: builder.callback(int), lambda: repr(builder),
            lambda: builder.stream, builder.close,
        ]  # fmt: skip

    def host_functions(self) -> list[Work]:
        """Functions written in Python run on the driver's threads while others let go of what they hold."""
        calls: list[int] = []
        definition = GraphDefinition()
        definition.callback(lambda: calls.append(len(calls)))
        graphs = [definition.instantiate() for _ in range(THREADS)]
        return [
            lambda graph=graph: (graph.launch(self.stream), self.stream.sync(), graph.close()) for graph in graphs
        ]  # fmt: skip

    # --- the collector --------------------------------------------------------------------------------

    def cycles(self) -> list[Work]:
        class Cycle:
            pass

        def leave() -> None:
            cycle = Cycle()
            cycle.held = (cycle, self.device.create_stream(), self.device.allocate(64, stream=self.stream),
                          self.stream.record(), GraphDefinition())  # fmt: skip

        return [leave, leave, gc.collect]


GRAPHS = (RuntimeError, ValueError, CUDAError)

# Methods of Bench, and the errors that may come of what their threads do.
RACES: dict[str, tuple[type[BaseException], ...]] = {
    "streams_that_close": (*CLOSED, CUDAError),  # a wait for a stream that was closed in between
    "streams_that_work": (),
    "events_that_close": CLOSED,
    "events_in_graphs": CLOSED,
    "contexts_that_close": CLOSED,
    "devices": (),
    "buffers_that_close": CLOSED,
    "buffers_that_work": (),
    "textures_that_close": CLOSED,
    "tensor_maps": CLOSED,
    "pools_that_close": CLOSED,
    "pools_while_capturing": (),
    "pinned_memory": CLOSED,
    "views": (),
    "code_that_loads": (),
    "kernels": (),
    "kernels_by_address": (),
    "arguments": (),
    "configurations": (),
    "caches": (),
    "programs_that_close": CLOSED,
    "definitions": GRAPHS,
    "executables_that_close": GRAPHS,
    "executables_that_work": (),
    "builders_that_close": GRAPHS,
    "host_functions": CLOSED,
    "cycles": (),
}


def run(make: Callable[[], list[Work]], errors: tuple[type[BaseException], ...], until: float, device: Device) -> int:
    """Rounds of one race until the time is up."""
    barrier = threading.Barrier(THREADS + 1)
    works: list[Work] = []
    failures: list[BaseException] = []
    stop = False

    def thread(number: int) -> None:
        device.set_current()
        while True:
            barrier.wait()
            if stop:
                return
            for turn in range(3):
                try:
                    works[(number + turn) % len(works)]()
                except errors:
                    pass
                except BaseException as error:
                    failures.append(error)
            barrier.wait()

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(THREADS)]
    for each in threads:
        each.start()
    rounds = 0
    while not failures and (rounds == 0 or time.monotonic() < until):
        works[:] = make()
        barrier.wait()
        barrier.wait()
        rounds += 1
    works.clear()
    stop = True
    barrier.wait()
    for each in threads:
        each.join()
    if failures:
        raise failures[0]
    return rounds


def main(seconds: float, names: list[str]) -> dict[str, Any]:
    device = Device()
    bench = Bench(device)
    rounds: dict[str, int] = {}
    failures: dict[str, str] = {}
    for name in names or RACES:
        try:
            rounds[name] = run(getattr(bench, name), RACES[name], time.monotonic() + seconds / len(RACES), device)
        except BaseException:
            failures[name] = traceback.format_exc()
        with contextlib.suppress(Exception):
            bench.stream.sync()
    kept = weakref.ref(bench.stream)
    del bench
    gc.collect()
    return {
        "rounds": rounds,
        "failures": failures,
        "left": kept() is not None,
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
    }


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]), sys.argv[2:]), indent=2))
