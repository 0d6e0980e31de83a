"""What frees wait for: work in the streams of which contexts. An H200 with CUDA 13 gave the answers."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import threading

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import ok, status

SIZE = 1 << 20
PTX = b".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .b8 x[4096];\n"


class Contexts:
    """The primary context, another one, and a stream of each."""

    def __init__(self, primary) -> None:
        self.by_name = {"primary": primary, "other": ok(driver.cuCtxCreate(None, 0, 0))}
        self.streams = {}
        for name in self.by_name:
            self.use(name)
            self.streams[name] = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))

    def use(self, name: str) -> None:
        ok(driver.cuCtxSetCurrent(self.by_name[name]))

    def close(self) -> None:
        for name, stream in self.streams.items():
            self.use(name)
            ok(driver.cuStreamDestroy(stream))
        ok(driver.cuCtxDestroy(self.by_name["other"]))
        self.use("primary")


@pytest.fixture
def contexts(context, host):
    host.prepare()
    made = Contexts(context)
    yield made
    host.release()
    made.close()


def from_pool(stream):
    address = ok(driver.cuMemAllocAsync(SIZE, stream))
    ok(driver.cuStreamSynchronize(stream))
    return address


def registered(_stream):
    pages = mmap.mmap(-1, SIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    ok(driver.cuMemHostRegister(address, SIZE, 0))
    return address, pages


def descriptor(kind):
    made = kind()
    made.Width = made.Height = 64
    made.Format, made.NumChannels = driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8, 1
    return made


def mipmapped(_stream):
    return ok(driver.cuMipmappedArrayCreate(descriptor(driver.CUDA_ARRAY3D_DESCRIPTOR), 3))


KINDS = {
    "cuMemAlloc": (lambda _: ok(driver.cuMemAlloc(SIZE)), driver.cuMemFree),
    "cuMemAllocManaged": (lambda _: ok(driver.cuMemAllocManaged(SIZE, 1)), driver.cuMemFree),
    "cuMemHostAlloc": (lambda _: ok(driver.cuMemHostAlloc(SIZE, 0)), driver.cuMemFreeHost),
    "portable": (lambda _: ok(driver.cuMemHostAlloc(SIZE, driver.CU_MEMHOSTALLOC_PORTABLE)), driver.cuMemFreeHost),
    "cuMemHostRegister": (registered, lambda made: driver.cuMemHostUnregister(made[0])),
    "array": (lambda _: ok(driver.cuArrayCreate(descriptor(driver.CUDA_ARRAY_DESCRIPTOR))), driver.cuArrayDestroy),
    "mipmapped array": (mipmapped, driver.cuMipmappedArrayDestroy),
    "module": (lambda _: ok(driver.cuModuleLoadData(PTX)), driver.cuModuleUnload),
}
NAMES = ("primary", "other")


@pytest.mark.parametrize(("owner", "busy", "current"), list(itertools.product(NAMES, NAMES, NAMES)))
@pytest.mark.parametrize("kind", KINDS)
def test_a_free_waits_for_the_context_of_the_memory(contexts, host, kind, owner, busy, current):
    """For all its streams, whether they use the memory or not, and for no other context's; whichever is current."""
    make, free = KINDS[kind]
    contexts.use(owner)
    made = make(contexts.streams[owner])
    waits = owner == busy
    contexts.use(busy)
    host.block(contexts.streams[busy])
    contexts.use(current)
    if waits:
        threading.Timer(0.02, host.release).start()
    ok(free(made))
    contexts.use(busy)
    assert status(driver.cuStreamQuery(contexts.streams[busy])) == ("CUDA_SUCCESS" if waits else "CUDA_ERROR_NOT_READY")
