"""What a function that runs in a stream may call: hardly anything, and nothing that waits for the stream itself."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import compiled, ok, status

REFUSED = "CUDA_ERROR_NOT_PERMITTED"
DEVICE = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE


class Things:
    """One of each thing that can be destroyed; `close` does so, with those that a call left."""

    def __init__(self, context: Any, stream: Any) -> None:
        self._close: list[Any] = []
        self.context, self.stream = context, stream
        self.memory = self._made(driver.cuMemAlloc(4096), driver.cuMemFree)
        self.managed = self._made(driver.cuMemAllocManaged(4096, 1), driver.cuMemFree)
        self.pinned = self._made(driver.cuMemAllocHost(4096), driver.cuMemFreeHost)
        self._pages = mmap.mmap(-1, 8192)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        ok(driver.cuMemHostRegister(self.address, 8192, 0))
        self._close.append(lambda: driver.cuMemHostUnregister(self.address))
        form = driver.CUDA_ARRAY3D_DESCRIPTOR()
        form.Width, form.Height, form.Format, form.NumChannels = 16, 16, driver.CUarray_format.CU_AD_FORMAT_FLOAT, 1
        self.array = self._made(driver.cuArray3DCreate(form), driver.cuArrayDestroy)
        self.mipmapped = self._made(driver.cuMipmappedArrayCreate(form, 2), driver.cuMipmappedArrayDestroy)
        self.event = self._made(driver.cuEventCreate(0), driver.cuEventDestroy)
        self.graph = self._made(driver.cuGraphCreate(0), driver.cuGraphDestroy)
        self.executable = self._made(driver.cuGraphInstantiate(self.graph, 0), driver.cuGraphExecDestroy)
        image = compiled('extern "C" __global__ void nothing() {}')
        self.image = image
        self.module = self._made(driver.cuModuleLoadData(image), driver.cuModuleUnload)
        self.library = self._made(driver.cuLibraryLoadData(image, [], [], 0, [], [], 0), driver.cuLibraryUnload)
        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = DEVICE
        self.pool = self._made(driver.cuMemPoolCreate(properties), driver.cuMemPoolDestroy)
        self.pooled = self._made(driver.cuMemAllocFromPoolAsync(4096, self.pool, 0), driver.cuMemFree)
        ok(driver.cuCtxSynchronize())

    def _made(self, result: Any, destroy: Any) -> Any:
        thing = ok(result)
        self._close.append(lambda: destroy(thing))
        return thing

    def close(self) -> None:
        for close in reversed(self._close):
            ok(close())
        self._pages.close()


# What an H200 with driver 580 refuses in a host function. The two that hang there are refused here, too.
CALLS: dict[str, Any] = {
    "cuMemFree": lambda t: driver.cuMemFree(t.memory),
    "cuMemFree, managed": lambda t: driver.cuMemFree(t.managed),
    "cuMemFree, from a pool": lambda t: driver.cuMemFree(t.pooled),
    "cuMemFreeHost": lambda t: driver.cuMemFreeHost(t.pinned),
    "cuMemHostUnregister": lambda t: driver.cuMemHostUnregister(t.address),
    "cuCtxSynchronize": lambda _: driver.cuCtxSynchronize(),
    "cuCtxGetCurrent": lambda _: driver.cuCtxGetCurrent(),
    "cuCtxSetCurrent": lambda t: driver.cuCtxSetCurrent(t.context),
    "cuDevicePrimaryCtxReset": lambda _: driver.cuDevicePrimaryCtxReset(0),
    "cuDevicePrimaryCtxRelease": lambda _: driver.cuDevicePrimaryCtxRelease(0),
    "cuDeviceGetCount": lambda _: driver.cuDeviceGetCount(),
    "cuModuleLoadData": lambda t: driver.cuModuleLoadData(t.image),
    "cuModuleUnload": lambda t: driver.cuModuleUnload(t.module),
    "cuLibraryUnload": lambda t: driver.cuLibraryUnload(t.library),
    "cuMemPoolDestroy": lambda t: driver.cuMemPoolDestroy(t.pool),
    "cuMemPoolTrimTo": lambda t: driver.cuMemPoolTrimTo(t.pool, 0),
    "cuMemAlloc": lambda _: driver.cuMemAlloc(64),
    "cuMemAllocAsync": lambda _: driver.cuMemAllocAsync(64, 0),
    "cuMemcpyDtoH": lambda t: driver.cuMemcpyDtoH(t.pinned, t.memory, 64),
    "cuMemsetD8": lambda t: driver.cuMemsetD8(t.memory, 0, 64),
    "cuMemGetInfo": lambda _: driver.cuMemGetInfo(),
    "cuMemGetAddressRange": lambda t: driver.cuMemGetAddressRange(t.memory),
    "cuIpcGetMemHandle": lambda t: driver.cuIpcGetMemHandle(t.memory),
    "cuGraphDestroy": lambda t: driver.cuGraphDestroy(t.graph),
    "cuGraphExecDestroy": lambda t: driver.cuGraphExecDestroy(t.executable),
    "cuGraphInstantiate": lambda t: driver.cuGraphInstantiate(t.graph, 0),
    "cuEventCreate": lambda _: driver.cuEventCreate(0),
    "cuStreamCreate": lambda _: driver.cuStreamCreate(0),
}
HANG_ON_A_GPU: dict[str, Any] = {
    "cuArrayDestroy": lambda t: driver.cuArrayDestroy(t.array),
    "cuMipmappedArrayDestroy": lambda t: driver.cuMipmappedArrayDestroy(t.mipmapped),
    "cuStreamSynchronize": lambda t: driver.cuStreamSynchronize(t.stream),
}


def outcome(call: Any, context: Any, make_stream: Any, host: Any) -> list[str]:
    things = Things(context, make_stream())
    seen: list[str] = []
    host.call(things.stream, lambda: seen.append(status(call(things))))
    ok(driver.cuStreamSynchronize(things.stream))
    things.close()
    return seen


@pytest.mark.parametrize("name", CALLS)
def test_refused_in_host_functions(name: str, context: Any, make_stream: Any, host: Any) -> None:
    assert outcome(CALLS[name], context, make_stream, host) == [REFUSED]


@pytest.mark.cpu_only  # a GPU's driver waits forever
@pytest.mark.parametrize("name", HANG_ON_A_GPU)
def test_what_waits_is_refused_in_host_functions(name: str, context: Any, make_stream: Any, host: Any) -> None:
    assert outcome(HANG_ON_A_GPU[name], context, make_stream, host) == [REFUSED]


def test_events_and_streams_may_be_destroyed_in_host_functions(context: Any, make_stream: Any, host: Any) -> None:
    event, other, seen = ok(driver.cuEventCreate(0)), ok(driver.cuStreamCreate(1)), []
    stream = make_stream()
    host.call(stream, lambda: seen.append(status(driver.cuEventDestroy(event))))
    host.call(stream, lambda: seen.append(status(driver.cuStreamDestroy(other))))
    ok(driver.cuStreamSynchronize(stream))
    assert seen == ["CUDA_SUCCESS", "CUDA_SUCCESS"]
