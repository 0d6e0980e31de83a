"""The ten-minute tour: a device, a kernel, memory, streams, events, a graph, views. Runs on any device.

python examples/tour.py                       # whichever device there is
CUPOLA_DEVICE=cpu python examples/tour.py     # the CPU device
"""

from typing import Any

import numpy as np

from cupola import Device, LaunchConfig, PinnedMemoryResource, Program, ProgramOptions, launch
from cupola.utils import StridedMemoryView, args_viewable_as_strided_memory

SOURCE = r"""
extern "C" __global__ void axpb(float* x, float a, float b, size_t n) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = a * x[i] + b;
}
template <typename T> __global__ void fill(T* x, T value, size_t n) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = value;
}
"""

steps = iter(range(1, 100))


def step(title: str) -> None:
    print(f"\n{next(steps)}. {title}")


def show(text: object) -> None:
    print(f"   {text}")


step("A device")
dev = Device()
dev.set_current()
assert Device(0) is dev
show(f"{dev.name}: sm_{dev.arch}, {dev.properties.multiprocessor_count} SMs")

step("A kernel, compiled in this process from CUDA C++")
options = ProgramOptions(std="c++17", arch=f"sm_{dev.arch}")
module = Program(SOURCE, code_type="c++", options=options).compile("cubin", name_expressions=("fill<double>",))
axpb, fill = module.get_kernel("axpb"), module.get_kernel("fill<double>")
show(
    f"axpb uses {axpb.attributes.num_regs} registers a thread, at most {axpb.attributes.max_threads_per_block} threads"
)
try:
    Program('extern "C" __global__ void k() { no_such_name; }', code_type="c++", options=options).compile("cubin")
except Exception as error:
    assert 'identifier "no_such_name" is undefined' in str(error)
    show("a mistake in the source is reported by line: " + next(s for s in str(error).split("\n") if "error:" in s))
else:
    raise AssertionError("a program with an error compiled")

step("Memory: pinned on the host, stream-ordered on the device")
n = 1 << 16
nbytes = n * 4
stream = dev.create_stream()
host = PinnedMemoryResource().allocate(nbytes, stream=stream)
device = dev.allocate(nbytes, stream=stream)
numbers = np.from_dlpack(host).view(np.float32)
numbers[:] = np.arange(n)
show(f"{host}")
show(f"{device}")

step("A launch: x = 3 x + 1 for 65,536 numbers")
config = LaunchConfig(grid=(n + 255) // 256, block=256)
device.copy_from(host, stream=stream)
launch(stream, config, axpb, device, np.float32(3), np.float32(1), np.uint64(n))
device.copy_to(host, stream=stream)
stream.sync()
assert np.array_equal(numbers, np.arange(n, dtype=np.float32) * 3 + 1)
show(f"the first numbers are {numbers[:5]}, as NumPy has them")

step("An instance of a template: fill<double>")
doubles = dev.allocate(n * 8, stream=stream)
doubles_host = PinnedMemoryResource().allocate(n * 8, stream=stream)
launch(stream, config, fill, doubles, np.float64(2.5), np.uint64(n))
doubles.copy_to(doubles_host, stream=stream)
stream.sync()
assert (np.from_dlpack(doubles_host).view(np.float64) == 2.5).all()
show("65,536 doubles hold 2.5")

step("Events measure time on the device")
begin, end = dev.create_event({"timing_enabled": True}), dev.create_event({"timing_enabled": True})
stream.record(begin)
for _ in range(100):
    launch(stream, config, axpb, device, np.float32(1), np.float32(0), np.uint64(n))
stream.record(end)
end.sync()
show(f"100 launches: {end - begin:.3f} ms")

step("Two streams, one waiting for the other")
s1, s2 = dev.create_stream(), dev.create_stream()
b1, b2 = dev.allocate(nbytes, stream=s1), dev.allocate(nbytes, stream=s2)
numbers[:] = np.arange(n)
b1.copy_from(host, stream=s1)
launch(s1, config, axpb, b1, np.float32(2), np.float32(0), np.uint64(n))
s2.wait(s1)
b2.copy_from(b1, stream=s2)
b2.copy_to(host, stream=s2)
s2.sync()
assert np.array_equal(numbers, np.arange(n, dtype=np.float32) * 2)
show("the second stream saw what the first one had computed")

step("A graph: three launches captured once, replayed twice")
numbers[:] = 1
device.copy_from(host, stream=stream)
builder = stream.create_graph_builder()
builder.begin_building()
for _ in range(3):
    launch(builder, config, axpb, device, np.float32(2), np.float32(0), np.uint64(n))
graph = builder.end_building().complete()
graph.upload(stream)
for _ in range(2):
    graph.launch(stream)
device.copy_to(host, stream=stream)
stream.sync()
assert (numbers == 64).all()
show("1 doubled six times is 64")

step("Views of anybody's arrays, without copying")


@args_viewable_as_strided_memory((0,))
def describe(array: Any, work_stream: Any) -> tuple[Any, str, bool]:
    view = array.view(work_stream.handle)
    assert isinstance(view, StridedMemoryView)
    return view.shape, str(view.dtype), view.is_device_accessible


assert describe(np.zeros((3, 5), np.float32), stream) == ((3, 5), "float32", False)
show(f"a NumPy array: {describe(np.zeros((3, 5), np.float32), stream)}")

step("Cleaning up")
with dev.allocate(1024, stream=stream) as scratch:
    scratch.fill(0, stream=stream)
for resource in (graph, builder, doubles, doubles_host, b1, b2, device, host, s1, s2, stream):
    resource.close()
show("closed, in this order: graph, builder, buffers, streams")

print(f"\nThe tour is complete. It ran on: {dev.name}")
