"""Allocation, copies, fills, pools, what an address is."""

from __future__ import annotations

import ctypes
import os
import sys

import numpy as np
import pytest

from cupola.bindings import runtime
from tests import processes
from tests.cpu.cudart.calls import ok, read, status

KIND = runtime.cudaMemcpyKind
TYPE = runtime.cudaMemoryType


def test_nothing_is_not_an_error(device, memory):
    assert ok(runtime.cudaMalloc(0)) == 0
    assert ok(runtime.cudaMallocPitch(0, 5))[0] == 0
    ok(runtime.cudaFree(0))
    ok(runtime.cudaFreeHost(0))
    ok(runtime.cudaMemcpy(memory, memory, 0, KIND.cudaMemcpyDeviceToDevice))
    ok(runtime.cudaMemset(memory, 1, 0))
    assert status(runtime.cudaMallocManaged(0, runtime.cudaMemAttachGlobal)) == "cudaSuccess"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_copies_of_each_kind(memory, stream, asynchronous):
    data, back = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    steps = [
        (memory, data, KIND.cudaMemcpyHostToDevice),
        (memory + 256, memory, KIND.cudaMemcpyDeviceToDevice),
        (memory + 512, memory + 256, KIND.cudaMemcpyDefault),
        (back, memory + 512, KIND.cudaMemcpyDeviceToHost),
    ]
    for target, source, kind in steps:
        if asynchronous:
            ok(runtime.cudaMemcpyAsync(target, source, 256, kind, stream))
        else:
            ok(runtime.cudaMemcpy(target, source, 256, kind))
    ok(runtime.cudaStreamSynchronize(stream))
    assert (back == data).all()
    copy = np.zeros_like(data)
    ok(runtime.cudaMemcpy(copy, data, 256, KIND.cudaMemcpyHostToHost))
    assert (copy == data).all()


def test_a_pitch_that_is_too_small(memory):
    for target_pitch, source_pitch in ((4, 8), (8, 4)):
        copy = runtime.cudaMemcpy2D(memory, target_pitch, memory + 512, source_pitch, 8, 2, KIND.cudaMemcpyDefault)
        assert status(copy) == "cudaErrorInvalidPitchValue"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_boxes(stream, asynchronous):
    """A box from the middle of the host's array into the middle of the device's."""
    device_box = ok(runtime.cudaMalloc3D(runtime.make_cudaExtent(32, 6, 4)))
    whole = runtime.make_cudaExtent(32, 6, 4)
    if asynchronous:
        ok(runtime.cudaMemset3DAsync(device_box, 5, whole, stream))
        ok(runtime.cudaMemset2DAsync(device_box.ptr, device_box.pitch, 6, 2, 1, stream))
        ok(runtime.cudaMemset3DAsync(device_box, 7, runtime.make_cudaExtent(1, 2, 2), stream))
    else:
        ok(runtime.cudaMemset3D(device_box, 5, whole))
        ok(runtime.cudaMemset2D(device_box.ptr, device_box.pitch, 6, 2, 1))
        ok(runtime.cudaMemset3D(device_box, 7, runtime.make_cudaExtent(1, 2, 2)))
    host = np.arange(3 * 5 * 20, dtype=np.uint8).reshape(3, 5, 20)
    copy = runtime.cudaMemcpy3DParms(extent=runtime.make_cudaExtent(8, 3, 2), kind=KIND.cudaMemcpyHostToDevice)
    copy.srcPtr, copy.srcPos = runtime.make_cudaPitchedPtr(host.ctypes.data, 20, 20, 5), runtime.make_cudaPos(4, 1, 1)
    copy.dstPtr, copy.dstPos = device_box, runtime.make_cudaPos(16, 2, 1)
    back = np.zeros((4, 6, 32), np.uint8)
    out = runtime.cudaMemcpy3DParms(extent=whole, kind=KIND.cudaMemcpyDeviceToHost)
    out.srcPtr, out.dstPtr = device_box, runtime.make_cudaPitchedPtr(back.ctypes.data, 32, 32, 6)
    if asynchronous:
        ok(runtime.cudaMemcpy3DAsync(copy, stream))
        ok(runtime.cudaMemcpy3DAsync(out, stream))
        ok(runtime.cudaStreamSynchronize(stream))
    else:
        ok(runtime.cudaMemcpy3D(copy))
        ok(runtime.cudaMemcpy3D(out))
    expected = np.full((4, 6, 32), 5, np.uint8)
    expected[0, 0, :2] = 6
    expected[:2, :2, 0] = 7
    expected[1:3, 2:5, 16:24] = host[1:3, 1:4, 4:12]
    assert (back == expected).all()
    ok(runtime.cudaFree(device_box.ptr))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_rows(memory, stream, asynchronous):
    data, back = np.arange(64, dtype=np.uint8).reshape(4, 16), np.zeros((4, 8), np.uint8)
    into = (memory, 32, data.ctypes.data, 16, 8, 4, KIND.cudaMemcpyHostToDevice)
    out = (back.ctypes.data, 8, memory, 32, 8, 4, KIND.cudaMemcpyDeviceToHost)
    for copy in (into, out):
        if asynchronous:
            ok(runtime.cudaMemcpy2DAsync(*copy, stream))
        else:
            ok(runtime.cudaMemcpy2D(*copy))
    ok(runtime.cudaStreamSynchronize(stream))
    assert (back == data[:, :8]).all()


def test_fills_of_a_stream(memory, stream):
    ok(runtime.cudaMemsetAsync(memory, 0x01, 512, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    assert (read(memory)[:128] == 0x01010101).all() and (read(memory)[128:] == 0).all()


def test_memory_of_the_host(device):
    data = np.zeros(4096, np.uint8)
    ok(runtime.cudaHostRegister(data.ctypes.data, data.nbytes, runtime.cudaHostRegisterMapped))
    assert ok(runtime.cudaPointerGetAttributes(data.ctypes.data)).type == TYPE.cudaMemoryTypeHost
    assert ok(runtime.cudaHostGetDevicePointer(data.ctypes.data, 0))
    ok(runtime.cudaHostUnregister(data.ctypes.data))
    assert status(runtime.cudaHostUnregister(data.ctypes.data)) == "cudaErrorHostMemoryNotRegistered"
    pinned = ok(runtime.cudaMallocHost(64))
    ctypes.memset(pinned, 1, 64)
    ok(runtime.cudaFreeHost(pinned))


@pytest.mark.parametrize("size", [4096, 4096.0])
def test_an_integral_float_is_a_size(device, size):
    """cuda.bindings takes any float; one that is no integer is a mistake here."""
    data = np.zeros(4096, np.uint8)
    ok(runtime.cudaHostRegister(data.ctypes.data, size, 0))
    ok(runtime.cudaHostUnregister(data.ctypes.data))
    with pytest.raises(TypeError, match="an integer is required"):
        runtime.cudaHostRegister(data.ctypes.data, size + 0.5, 0)


def allocate(kind: str, stream: runtime.cudaStream_t) -> int:
    if kind == "managed":
        return ok(runtime.cudaMallocManaged(256, runtime.cudaMemAttachGlobal))
    if kind == "pool":
        return ok(runtime.cudaMallocAsync(256, stream))
    return ok(runtime.cudaHostAlloc(256, 0)) if kind == "host" else ok(runtime.cudaMalloc(256))


@pytest.mark.parametrize(
    ("kind", "memory_type", "on_host"),
    [
        ("device", TYPE.cudaMemoryTypeDevice, False),
        ("pool", TYPE.cudaMemoryTypeDevice, False),
        ("host", TYPE.cudaMemoryTypeHost, True),
        ("managed", TYPE.cudaMemoryTypeManaged, True),
    ],
)
def test_what_an_address_is(stream, kind, memory_type, on_host):
    address = allocate(kind, stream)
    found = ok(runtime.cudaPointerGetAttributes(address + 16))
    assert found.type == memory_type and found.device == 0 and found.devicePointer == address + 16
    assert found.hostPointer == (address + 16 if on_host else 0)
    ok(runtime.cudaStreamSynchronize(stream))
    ok(runtime.cudaFreeHost(address) if kind == "host" else runtime.cudaFree(address))


def test_memory_that_cuda_does_not_know(device):
    data = np.zeros(16, np.uint8)
    found = ok(runtime.cudaPointerGetAttributes(data.ctypes.data))
    assert found.type == TYPE.cudaMemoryTypeUnregistered and not found.devicePointer


def test_managed_memory(stream):
    size = 1 << 20
    address = ok(runtime.cudaMallocManaged(size, runtime.cudaMemAttachGlobal))
    here = runtime.cudaMemLocation(type=runtime.cudaMemLocationType.cudaMemLocationTypeDevice, id=0)
    ok(runtime.cudaMemAdvise(address, size, runtime.cudaMemoryAdvise.cudaMemAdviseSetReadMostly, here))
    wanted = runtime.cudaMemRangeAttribute
    assert ok(runtime.cudaMemRangeGetAttribute(4, wanted.cudaMemRangeAttributeReadMostly, address, size)) == 1
    both = [wanted.cudaMemRangeAttributeReadMostly, wanted.cudaMemRangeAttributePreferredLocation]
    assert ok(runtime.cudaMemRangeGetAttributes([4, 4], both, 2, address, size))[0] == 1
    ok(runtime.cudaMemPrefetchAsync(address, size, here, 0, stream))
    ok(runtime.cudaStreamAttachMemAsync(stream, address, 0, 4))  # cudaMemAttachSingle
    ok(runtime.cudaStreamSynchronize(stream))
    last = wanted.cudaMemRangeAttributeLastPrefetchLocation
    assert ok(runtime.cudaMemRangeGetAttribute(4, last, address, size)) == 0
    ok(runtime.cudaFree(address))


def test_pools(stream):
    location = runtime.cudaMemLocation(type=runtime.cudaMemLocationType.cudaMemLocationTypeDevice, id=0)
    pinned = runtime.cudaMemAllocationType.cudaMemAllocationTypePinned
    pool = ok(runtime.cudaMemPoolCreate(runtime.cudaMemPoolProps(allocType=pinned, location=location)))
    both = runtime.cudaMemAccessFlags.cudaMemAccessFlagsProtReadWrite
    ok(runtime.cudaMemPoolSetAccess(pool, [runtime.cudaMemAccessDesc(location=location, flags=both)], 1))
    assert ok(runtime.cudaMemPoolGetAccess(pool, location)) == both
    address = ok(runtime.cudaMallocFromPoolAsync(1024, pool, stream))
    used = runtime.cudaMemPoolAttr.cudaMemPoolAttrUsedMemCurrent
    assert ok(runtime.cudaMemPoolGetAttribute(pool, used)) >= 1024
    ok(runtime.cudaFreeAsync(address, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    ok(runtime.cudaMemPoolTrimTo(pool, 0))
    assert ok(runtime.cudaMemPoolGetAttribute(pool, used)) == 0
    before = ok(runtime.cudaDeviceGetMemPool(0))
    ok(runtime.cudaDeviceSetMemPool(0, pool))
    assert ok(runtime.cudaDeviceGetMemPool(0)) == pool
    ok(runtime.cudaDeviceSetMemPool(0, before))
    assert before == ok(runtime.cudaDeviceGetDefaultMemPool(0))
    ok(runtime.cudaMemPoolDestroy(pool))
    in_graphs = runtime.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemCurrent
    assert int(ok(runtime.cudaDeviceGetGraphMemAttribute(0, in_graphs))) >= 0
    ok(runtime.cudaDeviceGraphMemTrim(0))


@pytest.mark.cpu_only
def test_the_default_stream_of_a_thread(run_python):
    """With the per-thread default stream, a thread's work does not wait for that of another in its stream 0."""
    source = """
import ctypes, threading
from cupola.bindings import driver, runtime as r
ok = lambda result: (result[1] if len(result) == 2 else result[1:]) if result[0] == 0 else 1 / 0
ok(r.cudaSetDevice(0))
gate, started = threading.Event(), threading.Event()
held = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: (started.set(), gate.wait()))
ok(r.cudaLaunchHostFunc(0, held, 0))
started.wait()
done = []
def other():
    address = ok(r.cudaMalloc(64))
    ok(r.cudaMemsetAsync(address, 3, 64, 0))
    back = bytearray(64)
    ok(r.cudaMemcpy(back, address, 64, 4))
    ok(r.cudaStreamSynchronize(0))
    done.append(back == b"\\3" * 64)
thread = threading.Thread(target=other)
thread.start(), thread.join()
print(done, r.cudaStreamQuery(0)[0].name)
gate.set()
ok(r.cudaStreamSynchronize(0))
"""
    done = run_python(source, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")
    assert done.stdout.strip() == "[True] cudaErrorNotReady", done.stderr


OTHER_PROCESS = """
import ctypes, sys
from cupola.bindings import runtime as r
handle = r.cudaIpcMemHandle_t()
ctypes.memmove(handle.getPtr(), bytes.fromhex(sys.argv[1]), 64)
status, address = r.cudaIpcOpenMemHandle(handle, r.cudaIpcMemLazyEnablePeerAccess)
found = bytearray(64)
outcomes = [
    status,
    r.cudaMemcpy(found, address, 64, r.cudaMemcpyKind.cudaMemcpyDeviceToHost)[0],
    r.cudaMemset(address, 9, 64)[0],
    r.cudaDeviceSynchronize()[0],
    r.cudaIpcCloseMemHandle(address)[0],
    r.cudaIpcCloseMemHandle(address)[0],
]
print(found.hex(), *(outcome.name for outcome in outcomes))
"""


@pytest.mark.cpu_only
def test_memory_of_another_process(device):
    """What one process writes the other reads; a handle is of no use to the one that made it."""
    size = 1 << 20  # small allocations share pages with others, and cannot be shared
    address = ok(runtime.cudaMalloc(size))
    ok(runtime.cudaMemset(address, 5, size))
    handle = ok(runtime.cudaIpcGetMemHandle(address))
    lazy = runtime.cudaIpcMemLazyEnablePeerAccess
    assert status(runtime.cudaIpcOpenMemHandle(handle, lazy)) == "cudaErrorDeviceUninitialized"
    raw = ctypes.string_at(handle.getPtr(), runtime.sizeof(runtime.cudaIpcMemHandle_t))
    done = processes.run(
        [sys.executable, "-c", OTHER_PROCESS, raw.hex()],
        env={**os.environ, "CUPOLA_DEVICE": "cpu"},
    )
    assert done.stdout.split() == ["05" * 64, *["cudaSuccess"] * 5, "cudaErrorInvalidValue"], done.stderr
    assert (read(address, 64, np.uint8) == 9).all() and (read(address + 64, 64, np.uint8) == 5).all()
    assert status(runtime.cudaIpcCloseMemHandle(address)) == "cudaErrorInvalidValue"
    ok(runtime.cudaFree(address))
    assert status(runtime.cudaIpcGetMemHandle(address)) == "cudaErrorInvalidValue"


@pytest.mark.cpu_only
def test_doubles_are_doubles(device):
    """Of CUDA 12: there is nothing to convert."""
    assert ok(runtime.cudaSetDoubleForDevice(1.5)) == ok(runtime.cudaSetDoubleForHost(1.5)) == 1.5
