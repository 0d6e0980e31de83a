"""What a graph keeps goes although its kernel fails."""

import gc
import time
import weakref

import numpy as np

from cupola import Device, LaunchConfig, PinnedMemoryResource, Program
from cupola.graph import GraphDefinition

device = Device(0)
device.set_current()
stream = device.create_stream()


class Callback:
    def __call__(self):
        print("called", flush=True)


source = 'extern "C" __global__ void fail(volatile int *go) { while (!*go); __trap(); }'
kernel = Program(source, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin").get_kernel("fail")
go = PinnedMemoryResource().allocate(4, stream=stream)
numbers = np.from_dlpack(go).view(np.int32)
numbers[0] = 0
callback = Callback()
gone = weakref.ref(callback)
definition = GraphDefinition()
definition.launch(LaunchConfig(grid=1, block=1), kernel, int(go.handle)).callback(callback)
graph, later = definition.instantiate(), definition.instantiate()
graph.launch(stream)
graph.close()
del definition, callback
later.launch(stream)
gc.collect()
print(gone() is None)
numbers[0] = 1
try:
    stream.sync()
except Exception as error:
    print(error.name)
later.close()
while gone() is not None:  # released on an ordinary thread, some time later
    time.sleep(0.01)
print(gone() is None)
