"""Pools, memory and events that processes share, through the driver itself."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import threading
from multiprocessing.reduction import DupFd
from typing import Any

import pytest

from cupola.bindings import driver
from tests import limits
from tests.cpu.driver.calls import ok, status
from tests.cpu.driver.ipc import child as ipc_child
from tests.cpu.driver.memory.test_pool import properties

FILE = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
SHARED = driver.CUevent_flags.CU_EVENT_INTERPROCESS | driver.CUevent_flags.CU_EVENT_DISABLE_TIMING


class OtherProcess:
    """Runs a function of child.py; `file` becomes its first argument."""

    def __init__(self, name: str, *arguments: Any, file: int = -1) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.file = file
        target = _Call(name, file, arguments)
        self.process = context.Process(target=target, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def answer(self) -> Any:
        try:
            assert self.connection.poll(limits.seconds()), "the other process gives no answer"
            error, found = self.connection.recv()
            assert not error, error
            self.process.join(limits.seconds())
            return found
        finally:
            self.process.kill()
            self.process.join()


class _Call:
    def __init__(self, name: str, file: int, arguments: tuple[Any, ...]) -> None:
        self.name, self.file, self.arguments = name, file, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        file = () if self.file < 0 else (DupFd(self.file),)
        return _rebuild, (self.name, *file, *self.arguments)


def _rebuild(name: str, *arguments: Any) -> Any:
    import functools

    return functools.partial(_run, name, arguments)


def _run(name: str, arguments: tuple[Any, ...], connection: Any) -> None:
    ipc_child.run(connection, name, *arguments)


def raw(record: Any) -> bytes:
    return ctypes.string_at(record.getPtr(), 64)


def device_attribute(name: str) -> int:
    return int(ok(driver.cuDeviceGetAttribute(driver.CUdevice_attribute[f"CU_DEVICE_ATTRIBUTE_{name}"], 0)))


def test_attributes(context):
    assert device_attribute("HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED") == 1
    assert device_attribute("MEMPOOL_SUPPORTED_HANDLE_TYPES") & 1
    assert device_attribute("IPC_EVENT_SUPPORTED") == 1


@pytest.mark.cpu_only
@pytest.mark.parametrize("size", [100, 5 << 20])
def test_pool(context, make_stream, size):
    stream = make_stream()
    pool = ok(driver.cuMemPoolCreate(properties(handles=1)))
    address = ok(driver.cuMemAllocFromPoolAsync(size, pool, stream))
    ok(driver.cuMemsetD8Async(address, 7, size, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert status(driver.cuMemPoolExportPointer(address)) == "CUDA_ERROR_INVALID_VALUE"  # the pool first
    file = int(ok(driver.cuMemPoolExportToShareableHandle(pool, FILE, 0)))
    data = raw(ok(driver.cuMemPoolExportPointer(address)))
    other = OtherProcess("pool", data, size, file=file)
    refused = "CUDA_ERROR_INVALID_VALUE"
    assert other.answer() == (b"\7" * size, size, refused, refused, refused, refused)
    os.close(file)
    host = bytearray(size)
    ok(driver.cuMemcpyDtoH(host, address, size))
    assert bytes(host) == b"\x09" * size
    ok(driver.cuMemFreeAsync(address, stream))
    ok(driver.cuMemPoolDestroy(pool))


@pytest.mark.parametrize("size", [1024, 4 << 20])
def test_imported_memory_stays_for_the_work_that_is_queued(context, make_stream, size):
    """Until the program synchronizes, whatever stream the free was ordered in. An H200 gave the answers."""
    stream, rows = make_stream(), []
    pool = ok(driver.cuMemPoolCreate(properties(handles=1)))
    file = int(ok(driver.cuMemPoolExportToShareableHandle(pool, FILE, 0)))
    for work in ("fill", "copy"):
        for free in ("in another stream", "in the default stream", "cuMemFree"):
            address = ok(driver.cuMemAllocFromPoolAsync(size, pool, stream))
            ok(driver.cuMemsetD8Async(address, 7, size, stream))
            rows.append((work, free, address))
    ok(driver.cuStreamSynchronize(stream))
    told = [(work, free, raw(ok(driver.cuMemPoolExportPointer(address)))) for work, free, address in rows]
    refused = "CUDA_ERROR_INVALID_VALUE"
    assert OtherProcess("freed_early", size, told, file=file).answer() == [(refused, refused)] * len(rows)
    os.close(file)
    for work, free, address in rows:
        host = bytearray(size)
        ok(driver.cuMemcpyDtoH(host, address, size))
        assert bytes(host) == (b"\x09" if work == "fill" else b"\x05") * size, (work, free)
        ok(driver.cuMemFreeAsync(address, stream))
    ok(driver.cuMemPoolDestroy(pool))


def test_what_cannot_be_exported(context, make_stream):
    refused = "CUDA_ERROR_INVALID_VALUE"
    pool = ok(driver.cuMemPoolCreate(properties()))
    assert status(driver.cuMemPoolExportToShareableHandle(pool, FILE, 0)) == refused
    address = ok(driver.cuMemAllocFromPoolAsync(64, pool, make_stream()))
    assert status(driver.cuMemPoolExportPointer(address)) == refused
    ok(driver.cuMemFree(address))
    ok(driver.cuMemPoolDestroy(pool))


@pytest.mark.cpu_only
def test_bad_arguments(context):
    refused = "CUDA_ERROR_INVALID_VALUE"
    pool = ok(driver.cuMemPoolCreate(properties(handles=1)))
    fabric = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC
    assert status(driver.cuMemPoolExportToShareableHandle(pool, fabric, 0)) == refused
    assert status(driver.cuMemPoolExportToShareableHandle(pool, FILE, 1)) == refused
    assert status(driver.cuMemPoolExportPointer(64)) == refused
    assert status(driver.cuMemPoolImportFromShareableHandle(12345, FILE, 0)) == refused
    assert status(driver.cuMemPoolImportPointer(pool, driver.CUmemPoolPtrExportData())) == refused
    ok(driver.cuMemPoolDestroy(pool))
    assert status(driver.cuMemPoolCreate(properties("HOST", handles=1))) == refused
    assert status(driver.cuMemPoolCreate(properties(managed=True, handles=1))) == refused
    assert status(driver.cuMemPoolCreate(properties(handles=2))) == "CUDA_ERROR_NOT_SUPPORTED"
    assert status(driver.cuIpcOpenEventHandle(driver.CUipcEventHandle())) == refused
    plain = ok(driver.cuEventCreate(0))
    assert status(driver.cuIpcGetEventHandle(plain)) == refused
    ok(driver.cuEventDestroy(plain))
    assert status(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_INTERPROCESS)) == refused


@pytest.mark.cpu_only
def test_import_where_it_was_made(context):
    pool = ok(driver.cuMemPoolCreate(properties(handles=1)))
    address = ok(driver.cuMemAllocFromPoolAsync(64, pool, 0))
    file = int(ok(driver.cuMemPoolExportToShareableHandle(pool, FILE, 0)))
    data = ok(driver.cuMemPoolExportPointer(address))
    same = ok(driver.cuMemPoolImportFromShareableHandle(file, FILE, 0))
    os.close(file)
    assert status(driver.cuMemPoolImportPointer(same, data)) == "CUDA_ERROR_INVALID_VALUE"
    ok(driver.cuMemPoolDestroy(same))
    ok(driver.cuMemFree(address))
    ok(driver.cuMemPoolDestroy(pool))


def test_virtual_memory(context):
    prop = driver.CUmemAllocationProp()
    prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.requestedHandleTypes = FILE
    prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    minimum = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    size = int(ok(driver.cuMemGetAllocationGranularity(prop, minimum)))
    handle = ok(driver.cuMemCreate(size, prop, 0))
    address = ok(driver.cuMemAddressReserve(size, 0, 0, 0))
    ok(driver.cuMemMap(address, size, 0, handle, 0))
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    ok(driver.cuMemSetAccess(address, size, [access], 1))
    ok(driver.cuMemsetD8(address, 4, 64))
    ok(driver.cuCtxSynchronize())
    file = int(ok(driver.cuMemExportToShareableHandle(handle, FILE, 0)))
    assert OtherProcess("virtual", size, file=file).answer() == b"\4" * 64
    os.close(file)
    host = bytearray(64)
    ok(driver.cuMemcpyDtoH(host, address, 64))
    assert bytes(host) == b"\x08" * 64
    ok(driver.cuMemUnmap(address, size))
    ok(driver.cuMemRelease(handle))
    ok(driver.cuMemAddressFree(address, size))


@pytest.mark.cpu_only
def test_event(context, make_stream, host):
    stream = make_stream()
    event = ok(driver.cuEventCreate(SHARED))
    assert status(driver.cuEventQuery(event)) == "CUDA_SUCCESS"  # never recorded
    host.block(stream)
    ok(driver.cuEventRecord(event, stream))
    assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_NOT_READY"
    other = OtherProcess("event", raw(ok(driver.cuIpcGetEventHandle(event))))
    timer = threading.Timer(0.3, host.release)
    timer.start()
    before, own, after = other.answer()
    assert (own, after) == ("CUDA_ERROR_INVALID_VALUE", "CUDA_SUCCESS")
    assert before in ("CUDA_SUCCESS", "CUDA_ERROR_NOT_READY")
    timer.join()
    ok(driver.cuEventSynchronize(event))
    ok(driver.cuStreamWaitEvent(stream, event, 0))  # recorded by the other process last
    ok(driver.cuStreamSynchronize(stream))
    same = ok(driver.cuIpcGetEventHandle(event))
    assert status(driver.cuIpcOpenEventHandle(same)) == "CUDA_ERROR_INVALID_CONTEXT"
    ok(driver.cuEventDestroy(event))


@pytest.mark.cpu_only
def test_closing_memory_waits_for_its_context_and_the_current_one(context):
    """As an H200 with CUDA 13 does, unlike other frees (memory/test_who_waits.py)."""
    address = ok(driver.cuMemAlloc(1 << 20))
    found = OtherProcess("closing", raw(ok(driver.cuIpcGetMemHandle(address)))).answer()
    assert found == {case: case[1] in (case[0], case[2]) for case in found} and len(found) == 8
    ok(driver.cuMemFree(address))


@pytest.mark.cpu_only
def test_memory_of_cu_mem_alloc(context):
    size = 1 << 20
    address = ok(driver.cuMemAlloc(size))
    ok(driver.cuMemsetD8(address, 2, size))
    handle = ok(driver.cuIpcGetMemHandle(address))
    assert raw(handle) == raw(ok(driver.cuIpcGetMemHandle(address)))
    lazy = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
    assert status(driver.cuIpcOpenMemHandle(handle, lazy)) == "CUDA_ERROR_INVALID_CONTEXT"
    found, same, closed = OtherProcess("legacy", raw(handle), size).answer()
    assert found == b"\2" * size and same and closed == "CUDA_ERROR_INVALID_VALUE"
    data = bytearray(size)
    ok(driver.cuMemcpyDtoH(data, address, size))
    assert bytes(data) == b"\6" * size
    assert status(driver.cuIpcCloseMemHandle(address)) == "CUDA_ERROR_INVALID_VALUE"
    before = len(os.listdir("/proc/self/fd"))
    ok(driver.cuMemFree(address))
    assert len(os.listdir("/proc/self/fd")) == before - 1


@pytest.mark.cpu_only
@pytest.mark.parametrize("size", [1, 80, 1024, 5000, 8192 - 256, 16000, 50000, (1 << 18) - 256])
def test_small_memory_of_cu_mem_alloc(context, size):
    """Small allocations share pages: the other process gets its own and sees no neighbor."""
    addresses = [ok(driver.cuMemAlloc(size)) for _ in range(3)]
    for value, address in enumerate(addresses):
        ok(driver.cuMemsetD8(address, value + 2, size))
    ipc_capable = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
    assert ok(driver.cuPointerGetAttribute(ipc_capable, addresses[1]))
    handle = ok(driver.cuIpcGetMemHandle(addresses[1]))
    assert raw(handle) == raw(ok(driver.cuIpcGetMemHandle(addresses[1])))
    assert raw(handle) != raw(ok(driver.cuIpcGetMemHandle(addresses[2])))
    assert status(driver.cuIpcOpenMemHandle(handle, 1)) == "CUDA_ERROR_INVALID_CONTEXT"
    found, same, closed = OtherProcess("legacy", raw(handle), size).answer()
    assert found == b"\3" * size and same and closed == "CUDA_ERROR_INVALID_VALUE"
    for value, address in zip([2, 6, 4], addresses, strict=True):
        data = bytearray(size)
        ok(driver.cuMemcpyDtoH(data, address, size))
        assert bytes(data) == bytes([value]) * size
        ok(driver.cuMemFree(address))


@pytest.mark.cpu_only
def test_a_neighbour_in_a_shared_slab(context):
    address = ok(driver.cuMemAlloc(80))
    ok(driver.cuMemAlloc(80))
    handle = ok(driver.cuIpcGetMemHandle(address))
    beyond, inside = OtherProcess("beyond", raw(handle)).answer()
    assert (beyond, inside) == ("CUDA_ERROR_INVALID_VALUE", 80)


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("at", "damage", "expected"),
    [
        (40, b"\xff" * 8, "CUDA_ERROR_INVALID_VALUE"),  # the size, which must not wrap around
        (56, b"\x41", "CUDA_ERROR_INVALID_HANDLE"),  # the chunk of the file
        (59, b"\x41", "CUDA_ERROR_INVALID_HANDLE"),
        (60, b"\x41", "CUDA_ERROR_INVALID_VALUE"),  # the size of the chunk's slots
        (61, b"\x41", "CUDA_ERROR_INVALID_VALUE"),
        (62, b"\x41", "CUDA_SUCCESS"),  # the number of the slot: another one of that size
        (63, b"\x41", "CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_damaged_handles_of_small_memory(context, at, damage, expected):
    handle = bytearray(raw(ok(driver.cuIpcGetMemHandle(ok(driver.cuMemAlloc(3000))))))
    handle[at : at + len(damage)] = damage
    assert OtherProcess("damaged", bytes(handle)).answer() == expected
