"""Memory of every kind is given back at the right time: in any order of collection, at exit, on the right device."""

from __future__ import annotations

import gc
import itertools
import warnings

import numpy as np
import pytest

from cupola import (
    Buffer,
    CUDAWarning,
    DeviceMemoryResource,
    GraphMemoryResource,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    VirtualMemoryResource,
)
from cupola.core.memory import _mapping
from cupola.core.memory._unpooled import SynchronousMemoryResource

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


AT_EXIT = """
import sys
import numpy as np, cupola
from cupola import *
from cupola.core.memory._unpooled import SynchronousMemoryResource
from cupola.utils import StridedMemoryView, copy_batch
device = Device(0)
device.set_current()
stream = device.create_stream()
class Own(MemoryResource):
    is_device_accessible, is_host_accessible, device_id = True, False, 0
    def allocate(self, size, *, stream):
        return Buffer.from_handle(0x1000, size, mr=self, stream=stream)
    def deallocate(self, ptr, size, *, stream):
        pass
resources = [
    DeviceMemoryResource(0), DeviceMemoryResource(0, {}), PinnedMemoryResource({}), ManagedMemoryResource({}),
    LegacyPinnedMemoryResource(), SynchronousMemoryResource(0), VirtualMemoryResource(0), Own(),
]
buffers = [resource.allocate(1 << 20, stream=stream) for resource in resources]
grown = resources[6].modify_allocation(buffers[6], 1 << 23)
builder = device.create_graph_builder().begin_building()
scratch = GraphMemoryResource(0).allocate(4096, stream=builder)
kept = np.from_dlpack(buffers[2])
views = [StridedMemoryView.from_buffer(buffer, (16,), itemsize=4) for buffer in buffers[:4]]
proxies = [buffers[3].accessed_by, resources[0].peer_accessible_by, resources[1].attributes, GraphMemoryResource(0)]
pending = np.from_dlpack(LegacyPinnedMemoryResource().allocate(1 << 20))
buffers[0].copy_from(pending, stream=stream)
copy_batch(stream, buffers[:1], buffers[1:2])
cycle = [buffers, resources, stream]
cycle.append(cycle)
print("made")
"""


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "raise SystemExit(0)", "del buffers, resources, stream"])
def test_exit_with_live_objects(run_python, ending, cuda_13):
    done = run_python(AT_EXIT + ending)
    assert (done.returncode, done.stdout, done.stderr) == (0, "made\n", "")


def test_memory_of_device_1_stays_there(run_on_devices):
    program = """
import warnings
from cupola import *
from cupola.bindings import driver
from cupola.core.memory._unpooled import SynchronousMemoryResource
warnings.simplefilter("error")
d0, d1 = Device.get_all_devices()[:2]
d1.set_current()
stream = d1.create_stream()
d0.set_current()
makers = {
    "pool": (DeviceMemoryResource(1, {}), stream), "current pool": (DeviceMemoryResource(1), stream),
    "synchronous": (SynchronousMemoryResource(1), None), "virtual": (VirtualMemoryResource(d1), None),
    "pool, stream of device 0": (DeviceMemoryResource(1, {}), d0.create_stream()),
}
for name, (resource, queue) in makers.items():
    d0.set_current()
    buffer = resource.allocate(1 << 21, stream=queue)
    address = buffer.handle
    assert buffer.device_id == Buffer.from_handle(buffer.handle, 1).device_id == 1, name
    assert buffer.__dlpack_device__() == (2, 1), name
    if name == "virtual":
        buffer = resource.modify_allocation(buffer, 1 << 22)
        assert Buffer.from_handle(buffer.handle + (1 << 21), 1).device_id == 1
    if queue is not None:
        copy = buffer.copy_to(stream=queue)
        assert copy.device_id == Buffer.from_handle(copy.handle, 1).device_id == 1
        copy.close(queue)
    d0.set_current()
    del buffer
    for device in (d0, d1):
        device.set_current()
        device.sync()
    if hasattr(resource, "attributes"):
        assert resource.attributes.used_mem_current == 0, name
    else:
        assert Buffer.from_handle(address, 1).device_id == -1, name
managed = ManagedMemoryResource({"preferred_location": 1})
assert managed.device_id == 1
with managed.allocate(1 << 20, stream=stream) as buffer:
    buffer.prefetch(d0, stream=stream)
status, address = driver.cuMemAllocManaged(64, 1)
buffer = ManagedBuffer.from_handle(address, 64)
buffer.preferred_location = d0
buffer.accessed_by = {d0, d1}
assert buffer.preferred_location == d0 and buffer.accessed_by == {d0, d1}
driver.cuMemFree(address)
print("ok")
"""
    done = run_on_devices(2, program)
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
