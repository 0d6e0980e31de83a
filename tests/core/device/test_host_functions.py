"""What is let go of in a host function, where the driver may not be called, is destroyed soon after."""

from __future__ import annotations

import ctypes
import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from cupola import (
    Buffer,
    CUDAWarning,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    MemoryResource,
    ObjectCode,
    Program,
)
from cupola.bindings import driver
from cupola.core.memory._unpooled import SynchronousMemoryResource
from cupola.graph import GraphDefinition
from tests.conftest import on_cpu_device

HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def by_graph(stream: Any, function: Callable[[], object]) -> None:
    builder = stream.create_graph_builder().begin_building()
    builder.callback(function)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()


def by_bindings(stream: Any, function: Callable[[], object]) -> None:
    """As any C library would: nothing tells the package that this is a host function."""
    called = HOST_FUNCTION(lambda _: function() and None)
    (status,) = driver.cuLaunchHostFunc(int(stream.handle), ctypes.cast(called, ctypes.c_void_p).value, 0)
    assert not status
    stream.sync()


@pytest.fixture(params=[by_graph, by_bindings])
def in_host_function(request, stream):
    def run(function: Callable[[], object]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            request.param(stream, function)
            settle()

    return run


def settle() -> None:
    """Let Python do what is pending, as it does at the end of any loop's body."""
    for _ in range(1000):
        pass


def is_freed(pointer: int) -> bool:
    status, kind = driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer)
    return bool(status) or int(kind) == 0


# What is let go of: made by (device, stream), with a function that tells whether the native object is gone. A GPU's
# driver may crash on being asked for a handle that is gone.
def pool_memory(device, stream):
    resource = DeviceMemoryResource(device, {"max_size": 0})
    buffer = resource.allocate(4096, stream=stream)

    def gone() -> bool:
        stream.sync()
        return resource.attributes.used_mem_current == 0

    return buffer, gone


def pinned_memory(device, stream):
    buffer = LegacyPinnedMemoryResource().allocate(4096)
    return buffer, lambda pointer=buffer.handle: is_freed(pointer)


def plain_memory(device, stream):
    buffer = SynchronousMemoryResource(0).allocate(4096, stream=stream)
    return buffer, lambda pointer=buffer.handle: is_freed(pointer)


def stream_of_its_own(device, stream):
    made = device.create_stream()
    return made, lambda address=int(made.handle): refused(driver.cuStreamQuery(address))


def event(device, stream):
    made = stream.record()
    return made, lambda address=int(made.handle): refused(driver.cuEventQuery(address))


def pool(device, stream):
    made = DeviceMemoryResource(device, {"max_size": 0})
    return made, lambda address=int(made.handle): refused(driver.cuMemPoolTrimTo(address, 0))


def code(device, stream):
    source = 'extern "C" __global__ void nothing() {}'
    found = Program(source, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")
    kernel = ObjectCode.from_cubin(found.code).get_kernel("nothing")
    library = driver.cuKernelGetLibrary(int(kernel.handle))[1]
    return kernel, lambda address=int(library): refused(driver.cuLibraryGetKernelCount(address))


def definition(device, stream):
    made = GraphDefinition()
    made.callback(print)
    return made, lambda address=int(made.handle): refused(driver.cuGraphGetNodes(address))


def executable(device, stream):
    made = GraphDefinition()
    made.callback(print)
    graph = made.instantiate()
    return graph, lambda address=int(graph.handle): refused(driver.cuGraphExecGetFlags(address))


def recording(device, stream):
    other = device.create_stream()
    builder = other.create_graph_builder().begin_building()

    def gone() -> bool:
        other.sync()  # refused while it is being captured
        return True

    return builder, gone


def refused(result: Any) -> bool:
    return int(result[0]) in (1, 400)  # CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE


MEMORY = [pool_memory, pinned_memory, plain_memory, recording]
HANDLES = [stream_of_its_own, event, pool, code, definition, executable]


@pytest.mark.parametrize("make", MEMORY + HANDLES)
def test_let_go(device, stream, in_host_function, make):
    if make in HANDLES and not on_cpu_device():
        pytest.skip("a GPU's driver crashes on handles that are gone")
    thing, gone = make(device, stream)
    stream.sync()
    gc.collect()
    box = [thing]
    del thing
    in_host_function(box.clear)
    assert gone()


@pytest.mark.parametrize("make", [pool_memory, pinned_memory])
def test_closed(device, stream, in_host_function, make):
    thing, gone = make(device, stream)
    stream.sync()
    errors: list[BaseException] = []

    def close() -> None:
        try:
            thing.close()
        except BaseException as error:
            errors.append(error)

    in_host_function(close)
    assert not errors and thing.is_closed and gone()


def test_collected(device, stream, in_host_function):
    class Cycle:
        pass

    cycle = Cycle()
    cycle.itself = cycle
    cycle.buffer, gone = pool_memory(device, stream)
    gc.collect()
    del cycle
    in_host_function(gc.collect)
    assert gone()


def test_the_next_allocation_frees_what_waits(device, stream):
    """Python runs what is pending on the main thread only, which may be busy."""
    import threading

    resource = DeviceMemoryResource(device, {"max_size": 0})
    used: list[int] = []

    def work() -> None:
        device.set_current()
        box = [resource.allocate(4096, stream=stream)]  # here: without a GIL, its own thread destroys it
        by_graph(stream, box.clear)
        resource.allocate(64, stream=stream).close()
        stream.sync()
        used.append(resource.attributes.used_mem_current)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()  # a wait in C, in which the main thread runs nothing
    assert used == [0]


def test_a_resource_written_in_python_is_asked_once_and_later(stream, in_host_function):
    class Counting(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def __init__(self) -> None:
            self.freed: list[bool] = []

        def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
            self.freed.append(inside)

    inside = False
    resource = Counting()
    box = [Buffer.from_handle(0x1000, 16, mr=resource, stream=stream)]

    def let_go() -> None:
        nonlocal inside
        inside = True
        box.clear()
        inside = False

    in_host_function(let_go)
    assert resource.freed == [False]


def test_what_fails_later_is_told(device, stream):
    class Failing(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
            raise ValueError("not mine")

    box = [Buffer.from_handle(0x1000, 16, mr=Failing(), stream=stream)]
    with pytest.warns(CUDAWarning, match="Failing failed to free 16 bytes at 0x1000: ValueError: not mine"):
        by_graph(stream, box.clear)
        settle()
