"""Memory of every kind made on device 1 while device 0 is current."""

import warnings

from cupola import (
    Buffer,
    Device,
    DeviceMemoryResource,
    ManagedBuffer,
    ManagedMemoryResource,
    VirtualMemoryResource,
)
from cupola.bindings import driver
from cupola.core.memory._unpooled import SynchronousMemoryResource

warnings.simplefilter("error")
d0, d1 = Device.get_all_devices()[:2]
d1.set_current()
stream = d1.create_stream()
d0.set_current()
makers = {
    "pool": (DeviceMemoryResource(1, {}), stream),
    "current pool": (DeviceMemoryResource(1), stream),
    "synchronous": (SynchronousMemoryResource(1), None),
    "virtual": (VirtualMemoryResource(d1), None),
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
