"""The other process of test_ipc.py: it imports what it is given, and says what it found."""

from __future__ import annotations

import itertools
import os
import threading
from multiprocessing.connection import Connection
from typing import Any

from cupola.bindings import driver

FILE = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
ACCESS = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE


def ok(result: tuple[Any, ...]) -> Any:
    assert result[0] == 0, result[0]
    return result[1] if len(result) == 2 else result[1:]


def opaque(kind: type, data: bytes) -> Any:
    """A record without fields, such as CUipcEventHandle, with these bytes."""
    import ctypes

    made = kind()
    ctypes.memmove(made.getPtr(), data, len(data))
    return made


def start() -> None:
    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))


def read(address: int, size: int) -> bytes:
    host = bytearray(size)
    ok(driver.cuMemcpyDtoH(host, address, size))
    return bytes(host)


def pool(file: Any, data: bytes, size: int) -> tuple[Any, ...]:
    number = file.detach()
    mine = ok(driver.cuMemPoolImportFromShareableHandle(number, FILE, 0))
    os.close(number)
    exported = opaque(driver.CUmemPoolPtrExportData, data)
    address = ok(driver.cuMemPoolImportPointer(mine, exported))
    stream = ok(driver.cuStreamCreate(1))
    refused = driver.cuMemAllocFromPoolAsync(16, mine, stream)[0].name
    again = driver.cuMemPoolExportToShareableHandle(mine, FILE, 0)[0].name
    wrong = driver.cuMemPoolImportPointer(mine, opaque(driver.CUmemPoolPtrExportData, bytes(64)))[0].name
    ok(driver.cuMemPoolDestroy(mine))  # what is imported from it stays
    found = read(address, size)
    extent = int(ok(driver.cuMemGetAddressRange(address))[1])
    ok(driver.cuMemsetD8(address, 9, size))
    ok(driver.cuMemFreeAsync(address, stream))
    ok(driver.cuStreamSynchronize(stream))
    return found, extent, refused, again, wrong, driver.cuMemcpyDtoH(bytearray(1), address, 1)[0].name


def freed_early(file: Any, size: int, rows: list[tuple[str, str, bytes]]) -> list[tuple[str, str]]:
    """Queue work with imported memory in one stream, and free the memory meanwhile in another way."""
    from tests.cpu.driver.calls import HostWork

    number = file.detach()
    pool = ok(driver.cuMemPoolImportFromShareableHandle(number, FILE, 0))
    os.close(number)
    stream, other = (ok(driver.cuStreamCreate(1)) for _ in range(2))
    source = ok(driver.cuMemAlloc(size))
    ok(driver.cuMemsetD8(source, 5, size))
    ok(driver.cuCtxSynchronize())
    hosts, found = [], []
    for work, free, data in rows:
        address = ok(driver.cuMemPoolImportPointer(pool, opaque(driver.CUmemPoolPtrExportData, data)))
        hosts.append(HostWork())
        hosts[-1].block(stream)
        if work == "fill":
            ok(driver.cuMemsetD8Async(address, 9, size, stream))
        else:
            ok(driver.cuMemcpyDtoDAsync(address, source, size, stream))
        if free == "cuMemFree":
            ok(driver.cuMemFree(address))
        else:
            ok(driver.cuMemFreeAsync(address, 0 if free == "in the default stream" else other))
        again = driver.cuMemFreeAsync(address, other)[0].name
        hosts[-1].release()
        ok(driver.cuStreamSynchronize(stream))
        found.append((again, driver.cuMemcpyDtoH(bytearray(1), address, 1)[0].name))
    for host in hosts:
        host.close()
    ok(driver.cuMemPoolDestroy(pool))
    return found


def virtual(file: Any, size: int) -> bytes:
    number = file.detach()
    handle = ok(driver.cuMemImportFromShareableHandle(number, FILE))
    os.close(number)
    address = ok(driver.cuMemAddressReserve(size, 0, 0, 0))
    ok(driver.cuMemMap(address, size, 0, handle, 0))
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.flags = ACCESS
    ok(driver.cuMemSetAccess(address, size, [access], 1))
    found = read(address, 64)
    ok(driver.cuMemsetD8(address, 8, 64))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuMemUnmap(address, size))
    ok(driver.cuMemRelease(handle))
    ok(driver.cuMemAddressFree(address, size))
    return found


def event(data: bytes) -> tuple[str, str, str]:
    handle = opaque(driver.CUipcEventHandle, data)
    opened = ok(driver.cuIpcOpenEventHandle(handle))
    before = driver.cuEventQuery(opened)[0].name
    own = driver.cuIpcGetEventHandle(opened)[0].name
    ok(driver.cuEventSynchronize(opened))
    after = driver.cuEventQuery(opened)[0].name
    # The importer may record it as well.
    stream = ok(driver.cuStreamCreate(1))
    ok(driver.cuEventRecord(opened, stream))
    ok(driver.cuEventSynchronize(opened))
    ok(driver.cuEventDestroy(opened))
    return before, own, after


def legacy(data: bytes, size: int) -> tuple[bytes, bool, str]:
    handle = opaque(driver.CUipcMemHandle, data)
    lazy = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
    address = ok(driver.cuIpcOpenMemHandle(handle, lazy))
    same = int(ok(driver.cuIpcOpenMemHandle(handle, lazy))) == int(address)
    found = read(address, size)
    ok(driver.cuIpcCloseMemHandle(address))
    ok(driver.cuMemsetD8(address, 6, size))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuIpcCloseMemHandle(address))
    return found, same, driver.cuIpcCloseMemHandle(address)[0].name


def beyond(data: bytes) -> tuple[str, int]:
    """What a copy from behind the memory says, and how large the memory is."""
    address = ok(driver.cuIpcOpenMemHandle(opaque(driver.CUipcMemHandle, data), 1))
    found = driver.cuMemcpyDtoH(bytearray(8), int(address) + 1024, 8)[0].name
    return found, int(ok(driver.cuMemGetAddressRange(address))[1])


def closing(data: bytes) -> dict[tuple[str, str, str], bool]:
    """Whether closing memory waits: of which context it is, which one is busy, and which one is current."""
    from tests.cpu.driver.calls import HostWork

    contexts = {"primary": ok(driver.cuCtxGetCurrent()), "other": ok(driver.cuCtxCreate(None, 0, 0))}
    found = {}
    for owner, busy, current in itertools.product(contexts, contexts, contexts):
        ok(driver.cuCtxSetCurrent(contexts[owner]))
        address = ok(driver.cuIpcOpenMemHandle(opaque(driver.CUipcMemHandle, data), 1))
        ok(driver.cuCtxSetCurrent(contexts[busy]))
        stream, host = ok(driver.cuStreamCreate(1)), HostWork()
        host.block(stream)
        waits = busy in (owner, current)
        if waits:
            threading.Timer(0.02, host.release).start()
        ok(driver.cuCtxSetCurrent(contexts[current]))
        ok(driver.cuIpcCloseMemHandle(address))
        ok(driver.cuCtxSetCurrent(contexts[busy]))
        found[owner, busy, current] = driver.cuStreamQuery(stream)[0] == 0
        host.close()
        ok(driver.cuStreamDestroy(stream))
    ok(driver.cuCtxDestroy(contexts["other"]))
    ok(driver.cuCtxSetCurrent(contexts["primary"]))
    return found


def damaged(data: bytes) -> str:
    error, address = driver.cuIpcOpenMemHandle(opaque(driver.CUipcMemHandle, data), 1)
    if error == driver.CUresult.CUDA_SUCCESS:
        ok(driver.cuIpcCloseMemHandle(address))
    return error.name


def run(connection: Connection, name: str, *arguments: Any) -> None:
    start()
    try:
        connection.send(("", globals()[name](*arguments)))
    except BaseException as error:
        connection.send((repr(error), None))
