"""What the other process does in the tests of IPC: it is asked through a pipe, and answers what it found."""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
from multiprocessing.connection import Connection
from typing import Any

from cupola import (
    Buffer,
    Device,
    DeviceMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    MemoryResource,
    ObjectCode,
    launch,
)
from cupola.bindings import driver

# A kernel without NVRTC: adds `n` to 64 ints.
ADD = rb"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 x, .param .u32 n)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [n];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r3, [%rd4];
    add.s32 %r3, %r3, %r1;
    st.global.u32 [%rd4], %r3;
    ret;
}
"""
SIZE = 256

kept: dict[str, Any] = {}


def add(buffer: Buffer, number: int, stream: Any) -> None:
    kernel = kept.setdefault("kernel", ObjectCode.from_ptx(ADD).get_kernel("add"))
    launch(stream, LaunchConfig(grid=1, block=64), kernel, buffer, number)


def bytes_of(buffer: Buffer, stream: Any) -> bytes:
    host = bytearray(buffer.size)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    return bytes(host)


def a_stream() -> Any:
    device = Device(0)
    device.set_current()
    if "stream" not in kept:
        kept["stream"] = device.create_stream()
    return kept["stream"]


class Gate:
    """A stream does nothing beyond the place where it is told to wait, until the gate is opened."""

    def __init__(self, stream: Any) -> None:
        self.flag = LegacyPinnedMemoryResource().allocate(4, stream=stream)
        self.word = ctypes.c_uint32.from_address(self.flag.handle)
        self.word.value = 0
        (status,) = driver.cuStreamWaitValue32(
            stream.handle, self.flag.handle, 1, driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
        )
        assert status == 0, status

    def open(self) -> None:
        self.word.value = 1


# ---- what the parent asks for ---------------------------------------------------------------------------


def see(buffer: Buffer) -> tuple[Any, ...]:
    """Facts of an imported buffer, and what is in it."""
    resource = buffer.memory_resource
    return (
        buffer.is_mapped,
        buffer.size,
        resource.is_mapped,
        resource.is_ipc_enabled,
        str(resource.uuid),
        resource.device_id,
        bytes_of(buffer, a_stream()),
    )


def add_to(buffer: Buffer, number: int) -> None:
    stream = a_stream()
    add(buffer, number, stream)
    stream.sync()
    buffer.close()


class Unified(MemoryResource):
    """Managed memory that the driver takes back at once, when the work that uses it is done."""

    is_device_accessible = is_host_accessible = is_managed = True
    device_id = 0

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        error, address = driver.cuMemAllocManaged(size, 1)
        assert error == 0, error
        return Buffer.from_handle(int(address), size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
        assert driver.cuMemFree(ptr)[0] == 0


def through_scratch(data: bytes, number: int) -> bytes:
    """Read an imported buffer into scratch, change it there, write it back; let go of all before the work is done."""
    device = Device(0)
    device.set_current()
    buffer, stream = pickle.loads(data), device.create_stream()
    gate = Gate(stream)
    scratch = [Unified().allocate(buffer.size, stream=stream) for _ in range(2)]
    words = (ctypes.c_int32 * (buffer.size // 4)).from_address(scratch[1].handle)
    words[:] = [number] * len(words)
    scratch[0].copy_from(buffer, stream=stream)
    buffer.copy_from(scratch[1], stream=stream)
    buffer.close()  # in the order of the default stream
    gate.open()
    scratch.pop().close()
    device.sync()
    found = ctypes.string_at(scratch[0].handle, scratch[0].size)
    scratch.pop().close()
    return found


def keep(name: str, thing: Any) -> None:
    kept[name] = thing


def drop(name: str) -> None:
    thing = kept.pop(name)
    thing.close()
    a_stream().sync()


def unpickle(data: bytes) -> tuple[Any, ...]:
    return see(pickle.loads(data))


def allocate_from(resource: Any) -> None:
    resource.allocate(16, stream=a_stream())


def by_descriptor(resource: Any, *descriptors: Any) -> list[bytes]:
    stream = a_stream()
    buffers = [Buffer.from_ipc_descriptor(resource, d, stream=stream) for d in descriptors]
    return [bytes_of(b, stream) for b in buffers]


def twice(resource: Any, descriptor: Any) -> tuple[bool, bool, bytes]:
    stream = a_stream()
    one, two = (Buffer.from_ipc_descriptor(resource, descriptor, stream=stream) for _ in range(2))
    same = one.handle == two.handle and one == two
    own = two.ipc_descriptor is not None
    one.close()
    return same, own, bytes_of(two, stream)


def through_file(handle: Any, descriptor: Any) -> tuple[Any, ...]:
    """Import with the plain number of the file descriptor."""
    a_stream()
    resource = DeviceMemoryResource.from_allocation_handle(0, int(handle))
    before = resource.uuid
    resource.register(handle.uuid)
    found = DeviceMemoryResource.from_registry(handle.uuid) is resource
    again = DeviceMemoryResource.from_allocation_handle(0, handle) is resource
    return before, found, again, by_descriptor(resource, descriptor)[0]


def state_of(event: Any) -> tuple[bool, bool, bool, bool]:
    return event.is_done, event.is_ipc_enabled, event.is_timing_enabled, event.is_blocking_sync


def wait_and_copy(event: Any, buffer: Buffer) -> None:
    """Queue a copy behind the event; the parent lets the event happen later."""
    stream = kept["other"] = Device(0).create_stream()
    stream.wait(event)
    kept["copy"] = Device(0).allocate(buffer.size, stream=stream)
    kept["copy"].copy_from(buffer, stream=stream)
    kept["event"], kept["source"] = event, buffer


def finish_copy() -> tuple[bool, bytes]:
    kept["event"].sync()
    answer = kept["event"].is_done, bytes_of(kept["copy"], kept["other"])
    for name in ("source", "copy", "event", "other"):
        kept.pop(name).close()
    return answer


def made_here() -> tuple[Buffer, Any]:
    """A buffer and an event of this process, for the parent."""
    stream = a_stream()
    resource = kept["own pool"] = DeviceMemoryResource(0, {"ipc_enabled": True})
    buffer = kept["own buffer"] = resource.allocate(SIZE, stream=stream)
    buffer.fill(3, stream=stream)
    event = kept["own event"] = stream.record(ipc_enabled=True)
    return buffer, event


def never_reached() -> Any:
    a_stream()
    stream = Device(0).create_stream()
    kept["gate"] = Gate(stream)
    kept["stuck"] = stream.record(ipc_enabled=True)
    return kept["stuck"]


def open_gate() -> None:
    kept["gate"].open()


def die() -> None:
    os._exit(3)


# ---- processes ------------------------------------------------------------------------------------------


def serve(connection: Connection) -> None:
    while True:
        try:
            name, arguments = connection.recv()
        except EOFError:
            return
        except Exception as error:  # a thing that could not be imported
            connection.send((type(error).__name__, str(error)))
            continue
        try:
            connection.send(("", globals()[name](*arguments)))
        except Exception as error:
            connection.send((type(error).__name__, str(error)))


def as_arguments(resource: Any, buffer: Buffer, event: Any, queue: Any) -> None:
    """The things came as arguments of a process: nothing was made current before."""
    stream = a_stream()
    stream.wait(event)
    assert buffer.memory_resource is resource and resource.is_mapped
    add(buffer, 1, stream)
    stream.sync()
    queue.put(sys.version_info[0])
