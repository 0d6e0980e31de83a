"""Where to go from names that other libraries have: what ``stream.synchronize`` or ``cupola.zeros`` is called here.

Names are looked up as always. Only where nothing is found, or where a sign is, somebody asks here.
"""

from __future__ import annotations

SIGNS = {
    "": {
        "synchronize": "stream.sync() waits for a stream, Device().sync() for all of a device",
        "empty": "Device().empty(shape, dtype) makes an array of the device",
        "zeros": "Device().zeros(shape, dtype) makes an array of the device",
        "ones": "Device().full(shape, 1) makes an array of the device",
        "array": "Device().array(data) makes an array of the device",
        "asarray": "Device().array(data) makes an array of the device",
        "to_device": "Device().array(data) makes an array of the device",
        "malloc": "Device().allocate(size, stream=stream) makes a Buffer",
        "mem_alloc": "Device().allocate(size, stream=stream) makes a Buffer",
        "memcpy": "buffer.copy_from(source, stream=stream) and array.copy_from(source) copy",
        "Module": "Program(source, 'c++').compile('cubin') is an ObjectCode, whose get_kernel(name) gives kernels",
        "SourceModule": "cupola.compile(source) is an ObjectCode, whose get_kernel(name) gives kernels",
        "RawModule": "cupola.compile(source) is an ObjectCode, whose get_kernel(name) gives kernels",
        "RawKernel": "cupola.compile(source).get_kernel(name) is a Kernel",
        "ElementwiseKernel": "write the kernel in CUDA C++ for cupola.compile(source), or use cupola.numpy",
        "jit": "numba compiles kernels in Python (docs/kernels-in-python.md); CUDA C++ is for cupola.compile(source)",
        "grid": "LaunchConfig(grid=..., block=...) is the shape of a launch",
        "Graph": "it is in cupola.graph; Device().create_graph_builder() begins one",
        "GraphBuilder": "it is in cupola.graph; Device().create_graph_builder() makes one",
        "get_device_count": "len(Device.get_all_devices())",
        "device_count": "len(Device.get_all_devices())",
    },
    "Device": {
        "synchronize": "it is sync()",
        "use": "it is set_current()",
        "malloc": "it is allocate(size, stream=stream)",
        "alloc": "it is allocate(size, stream=stream)",
        "to_device": "it is array(data)",
        "compute_cap": "it is compute_capability",
        "stream_create": "it is create_stream()",
    },
    "Stream": {
        "synchronize": "it is sync()",
        "query": "is_done tells of events: stream.record().is_done",
        "wait_event": "it is wait(event)",
        "wait_stream": "it is wait(stream)",
        "record_event": "it is record()",
        "launch": "launch(stream, config, kernel, ...) launches kernels, and graph.launch(stream) graphs",
    },
    "Event": {
        "synchronize": "it is sync()",
        "query": "it is is_done",
        "elapsed_time": "later - earlier is the time between two events in milliseconds",
        "wait": "stream.wait(event) lets a stream wait, event.sync() the host",
    },
    "Buffer": {
        "free": "it is close()",
        "ptr": "it is handle",
        "nbytes": "it is size",
        "get": "copy_to(array, stream=stream) copies to the host",
        "set": "copy_from(array, stream=stream) copies from the host",
        "memset": "it is fill(value, stream=stream)",
        "copy_to_host": "copy_to(array, stream=stream) copies to the host",
        "copy_to_device": "copy_from(array, stream=stream) copies from the host",
    },
    "Array": {
        "get": "it is to_numpy()",
        "cpu": "it is to_numpy()",
        "numpy": "it is to_numpy()",
        "copy_to_host": "it is to_numpy()",
        "set": "it is copy_from(data)",
        "ptr": "it is handle",
        "fill": "it is copy_from(value)",
        "free": "it is close()",
    },
    "Kernel": {
        "launch": "launch(stream, config, kernel, ...), or kernel[grid, block](...)",
        "num_regs": "it is attributes.num_regs",
        "max_threads_per_block": "it is attributes.max_threads_per_block",
    },
}


def advice(whose: str, name: str) -> str:
    """What to write instead, as the end of a message; empty where nothing is known."""
    text = SIGNS.get(whose, {}).get(name)
    return f": {text}" if text else ""


class Sign:
    """Stands in a class for a name that it does not have: an AttributeError says which one it has."""

    def __init__(self, whose: str, name: str) -> None:
        self.whose, self.name = whose, name

    def __get__(self, instance: object, owner: type) -> object:
        error = AttributeError(
            f"{self.whose!r} object has no attribute {self.name!r}{advice(self.whose, self.name)}",
            name=self.name,
            obj=instance,
        )
        raise error
