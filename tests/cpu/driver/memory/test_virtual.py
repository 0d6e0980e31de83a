"""Virtual memory management: addresses, memory and access."""

from __future__ import annotations

import ctypes
import os

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import ok, status

BAD = "CUDA_ERROR_INVALID_VALUE"
FILE = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


def properties(handle_types=0):
    prop = driver.CUmemAllocationProp()
    prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = 0
    prop.requestedHandleTypes = driver.CUmemAllocationHandleType(handle_types)
    return prop


@pytest.fixture
def step(context) -> int:
    option = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    return int(ok(driver.cuMemGetAllocationGranularity(properties(), option)))


def access(flags: str = "READWRITE"):
    entry = driver.CUmemAccessDesc()
    entry.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    entry.location.id = 0
    entry.flags = driver.CUmemAccess_flags[f"CU_MEM_ACCESS_FLAGS_PROT_{flags}"]
    return [entry]


def read_byte(address: int) -> int:
    value = ctypes.c_uint8()
    ok(driver.cuMemcpyDtoH(ctypes.addressof(value), address, 1))
    return value.value


def test_mapping_and_growing(step):
    base = int(ok(driver.cuMemAddressReserve(2 * step, 0, 0, 0)))
    first, second = (ok(driver.cuMemCreate(step, properties(), 0)) for _ in range(2))
    ok(driver.cuMemMap(base, step, 0, first, 0))
    assert status(driver.cuMemsetD8(base, 1, step)) != "CUDA_SUCCESS"  # no access was given yet
    ok(driver.cuMemSetAccess(base, step, access(), 1))
    ok(driver.cuMemsetD8(base, 1, step))
    ok(driver.cuMemMap(base + step, step, 0, second, 0))
    ok(driver.cuMemSetAccess(base + step, step, access(), 1))
    ok(driver.cuMemsetD8(base, 7, 2 * step))  # across both
    assert read_byte(base) == read_byte(base + 2 * step - 1) == 7
    location = access()[0].location
    assert int(ok(driver.cuMemGetAccess(location, base))) == 3
    ok(driver.cuMemRelease(first))
    ok(driver.cuMemRelease(second))
    assert read_byte(base) == 7  # the mapping keeps the memory
    ok(driver.cuMemUnmap(base, 2 * step))
    assert status(driver.cuMemsetD8(base, 1, 1)) != "CUDA_SUCCESS"
    ok(driver.cuMemAddressFree(base, 2 * step))


def test_one_memory_at_two_addresses(step):
    base = int(ok(driver.cuMemAddressReserve(2 * step, 0, 0, 0)))
    handle = ok(driver.cuMemCreate(step, properties(), 0))
    for address in (base, base + step):
        ok(driver.cuMemMap(address, step, 0, handle, 0))
    ok(driver.cuMemSetAccess(base, 2 * step, access(), 1))
    ok(driver.cuMemsetD8(base, 5, step))
    assert read_byte(base + step) == 5
    again = ok(driver.cuMemRetainAllocationHandle(base + 10))
    assert int(again) == int(handle)
    for _ in range(2):
        ok(driver.cuMemRelease(handle))
    ok(driver.cuMemUnmap(base, 2 * step))
    ok(driver.cuMemAddressFree(base, 2 * step))


def test_exported_memory_is_the_same_memory(step):
    handle = ok(driver.cuMemCreate(step, properties(int(FILE)), 0))
    exported = int(ok(driver.cuMemExportToShareableHandle(handle, FILE, 0)))
    imported = ok(driver.cuMemImportFromShareableHandle(exported, FILE))
    os.close(exported)
    base = int(ok(driver.cuMemAddressReserve(2 * step, 0, 0, 0)))
    ok(driver.cuMemMap(base, step, 0, handle, 0))
    ok(driver.cuMemMap(base + step, step, 0, imported, 0))
    ok(driver.cuMemSetAccess(base, 2 * step, access(), 1))
    ok(driver.cuMemsetD8(base, 9, step))
    assert read_byte(base + step) == 9
    ok(driver.cuMemUnmap(base, 2 * step))
    ok(driver.cuMemAddressFree(base, 2 * step))
    ok(driver.cuMemRelease(handle))
    ok(driver.cuMemRelease(imported))


def test_addresses_may_adjoin(step):
    base = int(ok(driver.cuMemAddressReserve(4 * step, 0, 0, 0)))
    ok(driver.cuMemAddressFree(base, 4 * step))
    low = int(ok(driver.cuMemAddressReserve(step, 0, base, 0)))
    high = int(ok(driver.cuMemAddressReserve(step, 0, base + step, 0)))
    if on_cpu_device():  # a GPU's driver is free to give another range, and sometimes does
        assert (low, high) == (base, base + step)
    assert abs(high - low) >= step
    ok(driver.cuMemAddressFree(low, step))
    ok(driver.cuMemAddressFree(high, step))
    aligned = int(ok(driver.cuMemAddressReserve(step, 64 * step, 0, 0)))
    assert aligned % (64 * step) == 0
    ok(driver.cuMemAddressFree(aligned, step))


@pytest.mark.cpu_only  # other processes use a GPU, too, and their memory comes and goes
def test_memory_counts(step):
    before, _ = ok(driver.cuMemGetInfo())
    handle = ok(driver.cuMemCreate(8 * step, properties(), 0))
    during, _ = ok(driver.cuMemGetInfo())
    assert before - during >= 8 * step
    ok(driver.cuMemRelease(handle))


@pytest.mark.cpu_only
def test_what_is_refused(step):
    base = int(ok(driver.cuMemAddressReserve(2 * step, 0, 0, 0)))
    handle = ok(driver.cuMemCreate(step, properties(), 0))
    for call in (
        lambda: driver.cuMemCreate(step + 1, properties(), 0),
        lambda: driver.cuMemCreate(0, properties(), 0),
        lambda: driver.cuMemAddressReserve(step // 2, 0, 0, 0),
        lambda: driver.cuMemAddressReserve(step, 3, 0, 0),
        lambda: driver.cuMemMap(base, 2 * step, 0, handle, 0),
        lambda: driver.cuMemMap(base + 512, step, 0, handle, 0),
        lambda: driver.cuMemMap(4 * step, step, 0, handle, 0),
        lambda: driver.cuMemMap(base, step, 0, 12345, 0),
        lambda: driver.cuMemSetAccess(base, step, access(), 1),
        lambda: driver.cuMemUnmap(base, step),
        lambda: driver.cuMemAddressFree(base, step),
        lambda: driver.cuMemRelease(12345),
        lambda: driver.cuMemExportToShareableHandle(handle, FILE, 0),
    ):
        assert status(call()) == BAD
    ok(driver.cuMemMap(base, step, 0, handle, 0))
    assert status(driver.cuMemMap(base, step, 0, handle, 0)) == BAD
    assert status(driver.cuMemAddressFree(base, 2 * step)) == BAD
    ok(driver.cuMemUnmap(base, step))
    ok(driver.cuMemRelease(handle))
    assert status(driver.cuMemRelease(handle)) == BAD
    ok(driver.cuMemAddressFree(base, 2 * step))


@pytest.mark.cpu_only
def test_where_memory_can_be_made(step):
    for kind, number, handles, fine in (
        ("HOST", 5, 0, True),
        ("HOST", 0, 1, False),
        ("HOST_NUMA", 0, 1, True),
        ("HOST_NUMA", 1, 0, False),
        ("HOST_NUMA_CURRENT", 0, 0, False),
        ("DEVICE", 99, 0, False),
    ):
        wanted = properties(handles)
        wanted.location.type = driver.CUmemLocationType[f"CU_MEM_LOCATION_TYPE_{kind}"]
        wanted.location.id = number
        made = driver.cuMemCreate(step, wanted, 0)
        assert (status(made) == "CUDA_SUCCESS") is fine, (kind, number, handles)
        if fine:
            ok(driver.cuMemRelease(made[1]))


# Twice, 4096 bytes further in front the second time, moves a number from `where` to 256 bytes behind it.
MOVE = r"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry move(.param .u64 where) {
    .reg .b64 %rd<3>;
    .reg .b32 %r<4>;
    .reg .pred %p;
    ld.param.u64 %rd1, [where];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r2, 0;
again:
    ld.global.u32 %r1, [%rd2];
    st.global.u32 [%rd2+256], %r1;
    sub.s64 %rd2, %rd2, 4096;
    add.s32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, 2;
    @%p bra again;
    ret;
}
"""

MOVING = """
import ctypes
from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok, status
from tests.cpu.driver.memory.test_virtual import MOVE, access, properties
ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
step = ok(driver.cuMemGetAllocationGranularity(properties(), driver.CUmemAllocationGranularity_flags(0)))
base = int(ok(driver.cuMemAddressReserve(2 * step, 0, 0, 0)))
for place in (base, base + step):
    ok(driver.cuMemMap(place, step, 0, ok(driver.cuMemCreate(step, properties(), 0)), 0))
ok(driver.cuMemSetAccess(base, step, access("READ"), 1))
ok(driver.cuMemSetAccess(base + step, step, access(), 1))
function = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(MOVE.encode())), b"move"))
ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, ((base + step - 128,), (ctypes.c_void_p,)), 0))
result = driver.cuCtxSynchronize()
print(status(result), explanation(result))
"""


@pytest.mark.cpu_only  # a driver may refuse access for reading alone
def test_stores_are_not_let_through_by_loads_beside_them(run_python):
    """The load and the store are checked together; what the load has found may be read only."""
    done = run_python(MOVING)
    assert done.returncode == 0, done.stderr
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout
    assert "forbidden write of 4 bytes in global memory" in done.stdout
