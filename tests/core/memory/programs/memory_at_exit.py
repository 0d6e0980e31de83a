"""Memory of every kind that lives when the process ends; each test adds an ending."""

import sys  # noqa: F401  # for the endings

import numpy as np

from cupola import (
    Buffer,
    Device,
    DeviceMemoryResource,
    GraphMemoryResource,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    VirtualMemoryResource,
)
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
    DeviceMemoryResource(0),
    DeviceMemoryResource(0, {}),
    PinnedMemoryResource({}),
    ManagedMemoryResource({}),
    LegacyPinnedMemoryResource(),
    SynchronousMemoryResource(0),
    VirtualMemoryResource(0),
    Own(),
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
