"""Memory of every kind is given back at the right time: in any order of collection, at exit, on the right device."""

from __future__ import annotations

import ctypes
import gc
import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest

from cupola import (
    Buffer,
    ContextOptions,
    CUDAWarning,
    DeviceMemoryResource,
    GraphMemoryResource,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    SMResourceOptions,
    StreamOptions,
    VirtualMemoryResource,
)
from cupola.bindings import driver
from cupola.core.memory import _mapping
from cupola.core.memory._unpooled import SynchronousMemoryResource

PROGRAMS = Path(__file__).with_name("programs")

SIZE = 1 << 21


class Own(MemoryResource):
    """A resource written in Python, on top of another one."""

    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def __init__(self):
        self.source = DeviceMemoryResource(0, {})
        self.live = {}

    def allocate(self, size, *, stream):
        inner = self.source.allocate(size, stream=stream)
        self.live[inner.handle] = inner
        return Buffer.from_handle(inner.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        self.live.pop(ptr).close(stream)


RESOURCES = {
    "device pool": lambda: DeviceMemoryResource(0, {}),
    "current device pool": lambda: DeviceMemoryResource(0),
    "pinned pool": lambda: PinnedMemoryResource({}),
    "managed pool": lambda: ManagedMemoryResource({}),
    "page-locked": LegacyPinnedMemoryResource,
    "synchronous": lambda: SynchronousMemoryResource(0),
    "virtual": lambda: VirtualMemoryResource(0),
    "virtual host": lambda: VirtualMemoryResource(0, {"location_type": "host", "peers": [0]}),
    "in Python": Own,
}


def is_known(address: int) -> bool:
    """Whether CUDA has memory at an address."""
    return Buffer.from_handle(address, 1).is_device_accessible


@pytest.fixture(params=RESOURCES)
def make(request, device, cuda_13):
    return RESOURCES[request.param]


@pytest.mark.parametrize("order", list(itertools.permutations(("buffer", "resource", "stream"))), ids="-".join)
def test_orders_of_collection(device, make, order):
    things = {"resource": make(), "stream": device.create_stream()}
    stream = things["stream"]
    things["buffer"] = things["resource"].allocate(SIZE, stream=stream)
    address = things["buffer"].handle
    used = getattr(things["resource"], "attributes", None)
    with device.allocate(SIZE, stream=stream) as copy:
        copy.copy_from(things["buffer"], stream=stream)
    stream.sync()
    del stream, copy
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for name in order:
            del things[name]
        device.sync()
    assert [str(w.message) for w in said if issubclass(w.category, CUDAWarning)] == []
    if used is None:
        assert not is_known(address)


def test_cycles(device, stream, make):
    class Holder:
        pass

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        holder = Holder()
        holder.me, holder.resource = holder, make()
        holder.buffer = holder.resource.allocate(SIZE, stream=stream)
        holder.stream, address = stream, holder.buffer.handle
        pool = getattr(holder.resource, "attributes", None)
        before = pool.used_mem_current if pool else None
        del holder
        gc.collect()
        device.sync()
        assert pool.used_mem_current < before if pool else not is_known(address)
    assert [str(w.message) for w in said if issubclass(w.category, CUDAWarning)] == []


@pytest.mark.parametrize("failing", ["unmap", "free_addresses"])
def test_errors_of_destructors_are_warned_of(device, stream, monkeypatch, failing):
    resource = VirtualMemoryResource(device)
    buffer = resource.allocate(SIZE)
    real = getattr(_mapping, failing)
    with monkeypatch.context() as patch:
        calls = []

        def fail(*arguments):
            calls.append(arguments)
            raise OSError("no")

        patch.setattr(_mapping, failing, fail)
        with pytest.warns(CUDAWarning, match=rf"VirtualMemoryResource failed to free {SIZE} bytes at 0x.*OSError: no"):
            del buffer
    for arguments in calls:  # what was left behind
        real(*arguments)
        if failing == "unmap":
            _mapping.free_addresses(*arguments)


@pytest.mark.cpu_only  # where the next allocation gets what is free
def test_a_release_that_waits_for_a_recording_is_in_its_own_default_stream(device):
    """Each context has one: here that of the primary context is held back, and a green one is current later."""
    groups, _ = device.resources.sm.split(SMResourceOptions(count=device.resources.sm.min_partition_size))
    green = device.create_context(ContextOptions(groups))
    host = LegacyPinnedMemoryResource().allocate(8)
    flag, copied = (ctypes.c_uint32 * 2).from_address(int(host.handle)), int(host.handle) + 4
    flag[0] = flag[1] = 0
    buffer = device.allocate(SIZE, stream=device.default_stream)
    buffer.fill(b"\1", stream=device.default_stream)
    device.sync()
    driver.cuStreamWaitValue32(
        device.default_stream.handle, int(host.handle), 1, driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ
    )
    driver.cuMemcpyDtoHAsync(copied, int(buffer.handle), 4, device.default_stream.handle)
    blocking = device.create_stream(options=StreamOptions(nonblocking=False))
    with blocking.create_graph_builder() as builder:
        builder.begin_building()
        buffer.close()
        builder.end_building()
    device.set_current(green)
    try:
        device.allocate(64, stream=device.default_stream).close()  # releases what had to wait
        other = device.allocate(SIZE, stream=device.default_stream)
        other.fill(b"\2", stream=device.default_stream)
        device.default_stream.sync()
    finally:
        flag[0] = 1
        device.set_current()
    device.sync()
    assert flag[1] == 0x01010101
    other.close()
    blocking.close()


AT_EXIT = (PROGRAMS / "memory_at_exit.py").read_text()


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "raise SystemExit(0)", "del buffers, resources, stream"])
def test_exit_with_live_objects(run_python, ending, cuda_13):
    done = run_python(AT_EXIT + ending)
    assert (done.returncode, done.stdout, done.stderr) == (0, "made\n", "")


def test_memory_of_device_1_stays_there(run_on_devices):
    done = run_on_devices(2, PROGRAMS / "memory_of_device_1.py")
    assert done.stdout == "ok\n", done.stderr


def test_a_dropped_array_frees_its_buffer(device, stream):
    """DLPack in both directions: the consumer's end is the buffer's end."""
    pool = PinnedMemoryResource({})
    array = np.from_dlpack(pool.allocate(SIZE, stream=stream))
    part = array[100:200].view(np.int32)
    wrapped = Buffer.from_handle(part.ctypes.data, part.nbytes, owner=part)
    del array, part
    gc.collect()
    assert pool.attributes.used_mem_current == SIZE
    wrapped.close()
    gc.collect()
    stream.sync()
    assert pool.attributes.used_mem_current == 0


def test_graph_memory_after_everything_else(device, stream):
    builder = device.create_graph_builder().begin_building()
    buffer = GraphMemoryResource(0).allocate(SIZE, stream=builder)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        builder.close()
        del builder
        gc.collect()
        del buffer
        gc.collect()
    assert said == []
