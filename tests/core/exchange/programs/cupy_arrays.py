"""Views of arrays of a class that says it is cupy.ndarray."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np

from cupola import Device
from cupola.utils import StridedMemoryView as View

device = Device(0)
device.set_current()
stream = device.create_stream()
buffer = device.allocate(96, stream=stream)
asked = []


class ndarray:  # what a cupy.ndarray has
    def __init__(self, address, shape, strides, dtype):
        self.data, self.shape, self.strides = SimpleNamespace(ptr=address), shape, strides
        self.dtype = np.dtype(dtype)

    def __dlpack_device__(self):
        asked.append(self)
        return buffer.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return buffer.__dlpack__(max_version=keywords.get("max_version"))


sys.modules["cupy"] = ModuleType("cupy")
sys.modules["cupy"].ndarray = ndarray


def seen(array, stream_ptr=-1):
    asked.clear()
    view = View.from_any_interface(array, stream_ptr)
    assert view.exporting_obj is array
    return view.ptr - buffer.handle, view.shape, view.strides, str(view.dtype), view.device_id, len(asked)


address = buffer.handle
for array, expected in [
    (ndarray(address, (2, 3), (12, 4), "f4"), (0, (2, 3), (3, 1), "float32", 0, 0)),
    (ndarray(address + 8, (4,), (-8,), "c8"), (8, (4,), (-1,), "complex64", 0, 0)),
    (ndarray(address, (), (), "u1"), (0, (), None, "uint8", 0, 0)),
    # What the shortcut does not know is asked for.
    (ndarray(address, (3,), (6,), "f4"), (0, (96,), (1,), "int8", 0, 1)),
    (ndarray(address, (3,), (4,), ">f4"), (0, (96,), (1,), "int8", 0, 1)),
    (ndarray(0, (0,), (4,), "f4"), (0, (96,), (1,), "int8", 0, 1)),
]:
    for _ in range(2):
        assert seen(array) == expected, (seen(array), expected)
assert seen(ndarray(address, (2,), (4,), "f4"), int(stream.handle))[-1] == 1
print("seen")
