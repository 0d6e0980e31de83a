"""Who may read and write virtual memory: the environment has the options and the calls, as (device, kernel)."""

import ast
import os

from cupola import (
    CUDAError,
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    VirtualMemoryResource,
    launch,
)

devices = Device.get_all_devices()
source = """
extern "C" __global__ void r(int* x, int* y) { *y = *x; }
extern "C" __global__ void w(int* x) { *x = 1; }
"""
devices[0].set_current()
code = Program(source, "c++", {"arch": "sm_" + devices[0].arch}).compile("cubin")
resource = VirtualMemoryResource(0, ast.literal_eval(os.environ["OPTIONS"]))
x = resource.allocate(4)
for number, kernel in ast.literal_eval(os.environ["CALLS"]):
    devices[number].set_current()
    stream = devices[number].create_stream()
    y = LegacyPinnedMemoryResource().allocate(4)
    try:
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel(kernel), *([x, y] if kernel == "r" else [x]))
        stream.sync()
        print("ok", end=" ")
    except CUDAError as error:
        print(error.name, end=" ")
