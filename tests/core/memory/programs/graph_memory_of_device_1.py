"""Memory of a graph of device 1 while others look at device 0."""

from cupola import Buffer, Device, GraphMemoryResource

d0, d1 = Device.get_all_devices()[:2]
d1.set_current()
stream = d1.create_stream()
resource = GraphMemoryResource(1)
builder = d1.create_graph_builder().begin_building()
buffer = resource.allocate(4096, stream=builder)
buffer.fill(3, stream=builder)
graph = builder.end_building().complete()
graph.launch(stream)
stream.sync()
assert resource.attributes.used_mem_current >= 4096 and GraphMemoryResource(0).attributes.used_mem_current == 0
assert Buffer.from_handle(buffer.handle, 4096).device_id == buffer.device_id == 1
buffer.close(stream)
stream.sync()
resource.trim()  # a GPU counts what is free as used until then
assert resource.attributes.used_mem_current == 0
