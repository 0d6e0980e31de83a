"""Every call of the driver that the object layer makes is made to fail once: the error is that of the call, nothing
hangs, nothing is left behind, and the same program works afterwards."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from cupola import CUDAError, CUDAWarning, Device, LaunchConfig, Program, cpu, launch
from cupola.cpu import _driver
from cupola.graph import GraphDefinition
from cupola.texture import OpaqueArrayOptions, ResourceDescriptor

pytestmark = pytest.mark.cpu_only

ERROR = "CUDA_ERROR_DEVICE_NOT_LICENSED"  # nothing else returns it
SOURCE = """
extern "C" __global__ void add(float* x, float y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += y;
}
"""
KERNEL = None


@pytest.fixture(autouse=True)
def collected():
    """Spare the collector, which each step calls, what the tests before have left in memory: that took minutes."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as it was (conftest.py)


def kernel():
    global KERNEL
    if KERNEL is None:
        KERNEL = Program(SOURCE, "c++").compile("cubin")
    return KERNEL.get_kernel("add")


def streams_and_events(dev: Device) -> None:
    one, two = dev.create_stream(), dev.create_stream()
    begin, end = (one.record(options={"timing_enabled": True}) for _ in range(2))
    two.wait(end)
    two.sync()
    assert (end - begin) >= 0
    for thing in (begin, end, one, two):
        thing.close()


def buffers(dev: Device) -> None:
    stream = dev.create_stream()
    host = np.arange(64, dtype=np.float32)
    result = np.zeros_like(host)
    source, target = (dev.allocate(host.nbytes, stream=stream) for _ in range(2))
    source.copy_from(host, stream=stream)
    target.fill(0, stream=stream)
    source.copy_to(target, stream=stream)
    target.copy_to(result, stream=stream)
    stream.sync()
    assert np.array_equal(host, result)
    source.close(stream)
    target.close(stream)
    stream.close()


def pools(dev: Device) -> None:
    from cupola import DeviceMemoryResource, PinnedMemoryResource

    stream = dev.create_stream()
    for pool in (DeviceMemoryResource(dev, {"max_size": 1 << 20}), PinnedMemoryResource()):
        buffer = pool.allocate(1024, stream=stream)
        buffer.fill(1, stream=stream)
        buffer.close(stream)
        stream.sync()
        pool.close()
    stream.close()


def launches(dev: Device) -> None:
    stream = dev.create_stream()
    x = dev.allocate(400, stream=stream)
    x.fill(0, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=128), kernel(), x, 2.0, 100)
    result = np.empty(100, np.float32)
    x.copy_to(result, stream=stream)
    stream.sync()
    assert (result == 2).all()
    x.close(stream)
    stream.close()


def modules(dev: Device) -> None:
    code = Program(SOURCE + "__device__ int there;", "c++").compile("cubin")
    add = code.get_kernel("add")
    assert add.attributes.num_regs >= 0
    assert add.occupancy.max_active_blocks_per_multiprocessor(128, 0) > 0
    assert len(add.arguments_info) == 3
    del add, code


def captures(dev: Device) -> None:
    stream = dev.create_stream()
    x = dev.allocate(400, stream=stream)
    builder = stream.create_graph_builder().begin_building()
    x.fill(0, stream=builder)
    launch(builder, LaunchConfig(grid=1, block=128), kernel(), x, 1.0, 100)
    graph = builder.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    result = np.empty(100, np.float32)
    x.copy_to(result, stream=stream)
    stream.sync()
    assert (result == 1).all()
    graph.close()
    builder.close()
    x.close(stream)
    stream.close()


def definitions(dev: Device) -> None:
    stream = dev.create_stream()
    x = dev.allocate(400, stream=stream)
    definition = GraphDefinition()
    filled = definition.memset(x, 0, 100)
    filled.launch(LaunchConfig(grid=1, block=128), kernel(), x, 3.0, 100)
    graph = definition.instantiate()
    graph.upload(stream)
    graph.launch(stream)
    stream.sync()
    graph.close()
    del filled, definition
    x.close(stream)
    stream.close()


def virtual_memory(dev: Device) -> None:
    from cupola import VirtualMemoryResource

    resource = VirtualMemoryResource(dev)
    buffer = resource.allocate(4 << 20)
    buffer = resource.modify_allocation(buffer, 8 << 20)
    buffer.close()


def textures(dev: Device) -> None:
    stream = dev.create_stream()
    pixels = np.arange(64, dtype=np.float32).reshape(8, 8)
    array = dev.create_opaque_array(OpaqueArrayOptions(pixels.shape, "float32", num_channels=1))
    array.copy_from(pixels, stream=stream)
    texture = dev.create_texture_object(resource=ResourceDescriptor.from_opaque_array(array))
    stream.sync()
    texture.close()
    array.close()
    stream.close()


def questions(dev: Device) -> None:
    stream = dev.create_stream()
    assert dev.properties.warp_size == 32
    assert dev.compute_capability >= (5, 0)
    assert dev.name
    assert dev.uuid
    assert dev.pci_bus_id
    assert dev.memory_resource is not None
    assert not stream.is_capturing if hasattr(stream, "is_capturing") else True
    assert stream.priority is not None
    assert stream.context is not None
    stream.close()


SCENARIOS: list[Callable[[Device], None]] = [
    streams_and_events, buffers, pools, launches, modules, captures, definitions, virtual_memory, textures, questions,
]  # fmt: skip

# Calls that give something back: when one of them fails, it has not done so.
ENDS = ("Destroy", "Free", "Unload", "Release", "Unmap", "Unregister", "EndCapture", "Pop")

# The way in which a closed graph learns that its launches are over. When that cannot be known, what they need stays.
WATCHES_LAUNCHES = {"cuCtxPushCurrent", "cuStreamCreate", "cuGraphUpload", "cuStreamAddCallback"}

# Calls that only ask, whose answer there is another way to do without. All others must be heard of.
ASKS = {
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDevicePrimaryCtxGetState",
    "cuKernelGetName",
    "cuMemPoolGetAccess",
    "cuPointerGetAttribute",
    "cuPointerGetAttributes",
    "cuStreamIsCapturing",
    "cuThreadExchangeStreamCaptureMode",
}


def run(scenario: Callable[[Device], None], dev: Device) -> list[str]:
    """Run it; returns what was warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", CUDAWarning)
        try:
            scenario(dev)
        finally:
            gc.collect()
    return [str(warning.message) for warning in seen]


def what_is_there(dev: Device) -> tuple[int, ...]:
    dev.sync()
    gc.collect()
    return _driver.live_handles()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_every_call(device, scenario):
    for _ in range(2):  # what is made once and stays
        assert run(scenario, device) == []
    with cpu.faults(call="cu*", probability=0.0) as faults:
        run(scenario, device)
    before = what_is_there(device)
    assert faults.applied
    for number in range(1, faults.applied + 1):
        where = f"call {number} of {faults.applied} of {scenario.__name__}"
        try:
            with cpu.faults(call="cu*", nth=number, error=ERROR) as fault:
                said = run(scenario, device)
        except CUDAError as error:
            assert error.name == ERROR, where
            assert fault.happened, where
            assert "cupola.cpu.faults" in str(error), where
            said = ["raised"]
        if not fault.happened:
            continue  # fewer calls this time
        name = fault.happened[0].what
        assert said or name in ASKS, f"{where}, {name}, is not heard of"
        assert run(scenario, device) == [], where  # what could not be destroyed then is destroyed now
        if any(end in name for end in ENDS) or (name in WATCHES_LAUNCHES and scenario in (captures, definitions)):
            before = what_is_there(device)
            continue
        assert what_is_there(device) == before, f"{where}, {name}, leaves something behind"
