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
KERNEL = b".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n"
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


def library(_stream):
    """Loaded in the current context."""
    made = ok(driver.cuLibraryLoadData(KERNEL, [], [], 0, [], [], 0))
    ok(driver.cuKernelGetFunction(ok(driver.cuLibraryGetKernel(made, b"nothing"))))
    return made


KINDS["library"] = (library, driver.cuLibraryUnload)


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


def of_pool(location, kind="PINNED"):
    def make(stream):
        made = driver.CUmemPoolProps()
        made.allocType = driver.CUmemAllocationType[f"CU_MEM_ALLOCATION_TYPE_{kind}"]
        made.location.type = driver.CUmemLocationType[f"CU_MEM_LOCATION_TYPE_{location}"]
        pool = ok(driver.cuMemPoolCreate(made))
        address = ok(driver.cuMemAllocFromPoolAsync(SIZE, pool, stream))
        ok(driver.cuStreamSynchronize(stream))
        ok(driver.cuMemPoolDestroy(pool))  # it goes with its last allocation
        return address

    return make


def of_graph(stream):
    graph = ok(driver.cuGraphCreate(0))
    parameters = driver.CUDA_MEM_ALLOC_NODE_PARAMS()
    parameters.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    parameters.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    parameters.bytesize = SIZE
    ok(driver.cuGraphAddMemAllocNode(graph, [], 0, parameters))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(graph))
    return parameters.dptr


POOLS = {
    "device": of_pool("DEVICE"),
    "host": of_pool("HOST"),
    "managed": of_pool("DEVICE", "MANAGED"),
    "graph": of_graph,
}


@pytest.mark.parametrize("kind", POOLS)
def test_nothing_waits_for_memory_of_pools(context, host, make_stream, kind):
    """Whoever frees it with cuMemFree says that it is used no more."""
    stream, busy = make_stream(), make_stream()
    address = POOLS[kind](stream)
    host.block(busy)
    refused = driver.cuMemFreeHost(address)
    assert status(refused) == "CUDA_ERROR_INVALID_VALUE"
    ok(driver.cuMemFree(address))
    assert status(driver.cuStreamQuery(busy)) == "CUDA_ERROR_NOT_READY"
