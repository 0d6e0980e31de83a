"""An allocation that has to wait for memory behind two host functions, the second of them in Python."""

import ctypes

from cupola import CUDAError, Device, DeviceMemoryResource
from cupola.bindings import driver

dev = Device(0)
dev.set_current()
stream, other = dev.create_stream(), dev.create_stream()
pool = DeviceMemoryResource(dev, {"max_size": 64 << 20})
first = pool.allocate(48 << 20, stream=stream)
stream.sync()


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


python = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
for function, argument in (ctypes.CDLL(None).usleep, 300_000), (python, 0):
    assert int(driver.cuLaunchHostFunc(int(stream.handle), address(function), argument)[0]) == 0
first.close()
try:
    pool.allocate(48 << 20, stream=other).close()
except CUDAError as error:  # a GPU's driver need not wait
    assert error.name == "CUDA_ERROR_OUT_OF_MEMORY"
stream.sync()
print("done")
