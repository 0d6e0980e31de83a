"""A definition whose context has been reset, and one made afterwards."""

from cupola import CUDAError, Device
from cupola.bindings import driver
from cupola.graph import GraphDefinition

device = Device(0)
device.set_current()
stream = device.create_stream()
buffer = device.allocate(16, stream=stream)
definition = GraphDefinition()
node = definition.memset(buffer, 0, 16)
graph = definition.instantiate()
driver.cuDevicePrimaryCtxReset(0)
device.set_current()
for use in (definition.nodes, definition.instantiate, node.join, lambda: node.dptr, lambda: graph.update(definition)):
    try:
        use()
    except CUDAError as error:
        print(error.name)
print(node.is_valid, definition.is_valid, node)
definition = GraphDefinition()
stream = device.create_stream()
buffer = device.allocate(16, stream=stream)
definition.memset(buffer, 0, 16)
definition.instantiate().launch(stream)
stream.sync()
