"""Nodes that allocate memory of and for another device."""

import numpy as np

from cupola import Device
from cupola.graph import GraphDefinition

first, second = Device.get_all_devices()[:2]
first.set_current()
stream = first.create_stream()
definition = GraphDefinition()
node = definition.allocate(64, device=second, peer_access=[first])
print(node.device_id, node.peer_access, definition.allocate(64, peer_access=[1]).peer_access)
host = np.zeros(64, np.uint8)
definition = GraphDefinition()
node = definition.allocate(64, device=first, peer_access=[second])
node.memset(node.dptr, 7, 64).deallocate(node.dptr)
graph = definition.instantiate()
graph.launch(stream)
stream.sync()
