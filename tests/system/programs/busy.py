"""A kernel that runs until a line comes on stdin."""

import sys

import numpy as np

from cupola import Device, LaunchConfig, PinnedMemoryResource, Program, ProgramOptions, launch

device = Device(0)
device.set_current()
stream = device.create_stream()
source = 'extern "C" __global__ void spin(volatile int* x) { while (!*x) { } }'
kernel = Program(source, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("spin")


flag = PinnedMemoryResource().allocate(4, stream=stream)
host = np.from_dlpack(flag).view(np.int32)
host[:] = 0
launch(stream, LaunchConfig(grid=1, block=1), kernel, flag)
print("ready", flush=True)
sys.stdin.readline()
host[:] = 1
stream.sync()
