"""Memory pools and stream-ordered allocation."""

from __future__ import annotations

import ctypes
import threading

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import explanation, ok, status

POOL = driver.CUmemPool_attribute
LOCATION = driver.CUmemLocationType
TYPE = driver.CUmemAllocationType
ACCESS = driver.CUmemAccess_flags


def location(kind: str, number: int = 0):
    where = driver.CUmemLocation()
    where.type = LOCATION[f"CU_MEM_LOCATION_TYPE_{kind}"]
    where.id = number
    return where


def properties(kind: str = "DEVICE", number: int = 0, *, managed: bool = False, max_size: int = 0, handles: int = 0):
    props = driver.CUmemPoolProps()
    props.allocType = TYPE.CU_MEM_ALLOCATION_TYPE_MANAGED if managed else TYPE.CU_MEM_ALLOCATION_TYPE_PINNED
    props.handleTypes = driver.CUmemAllocationHandleType(handles)
    props.location = location(kind, number)
    props.maxSize = max_size
    return props


def set_access(pool, device: int, flags: str):
    entry = driver.CUmemAccessDesc()
    entry.location = location("DEVICE", device)
    entry.flags = ACCESS[f"CU_MEM_ACCESS_FLAGS_PROT_{flags}"]
    return driver.cuMemPoolSetAccess(pool, [entry], 1)


def let_in(pool) -> None:
    ok(set_access(pool, 0, "READWRITE"))


def attribute(pool, name: str) -> int:
    return int(ok(driver.cuMemPoolGetAttribute(pool, POOL[f"CU_MEMPOOL_ATTR_{name}"])))


def set_attribute(pool, name: str, value: int):
    return driver.cuMemPoolSetAttribute(pool, POOL[f"CU_MEMPOOL_ATTR_{name}"], driver.cuuint64_t(value))


@pytest.fixture
def make_pool(context):
    made = []

    def make(*args, **kwargs):
        made.append(ok(driver.cuMemPoolCreate(properties(*args, **kwargs))))
        return made[-1]

    yield make
    for pool in made:
        driver.cuMemPoolDestroy(pool)


@pytest.mark.parametrize("size", [1, 1000, 1 << 20, 40 << 20])
def test_memory_can_be_used_in_stream_order(make_stream, size):
    stream = make_stream()
    address = ok(driver.cuMemAllocAsync(size, stream))
    ok(driver.cuMemsetD8Async(address, 9, size, stream))
    last = ctypes.c_uint8()
    ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(last), int(address) + size - 1, 1, stream))
    ok(driver.cuMemFreeAsync(address, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert last.value == 9


def test_statistics(make_pool, make_stream):
    pool, stream = make_pool(), make_stream()
    assert [attribute(pool, n) for n in ("USED_MEM_CURRENT", "RESERVED_MEM_CURRENT", "RELEASE_THRESHOLD")] == [0, 0, 0]
    a = ok(driver.cuMemAllocFromPoolAsync(5 << 20, pool, stream))
    b = ok(driver.cuMemAllocFromPoolAsync(1000, pool, stream))
    used, reserved = attribute(pool, "USED_MEM_CURRENT"), attribute(pool, "RESERVED_MEM_CURRENT")
    assert (5 << 20) + 1000 <= used <= reserved
    assert attribute(pool, "USED_MEM_HIGH") == used and attribute(pool, "RESERVED_MEM_HIGH") == reserved
    ok(driver.cuMemFreeAsync(a, stream))
    ok(driver.cuMemFreeAsync(b, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert attribute(pool, "USED_MEM_CURRENT") == 0
    assert attribute(pool, "RESERVED_MEM_CURRENT") == 0  # the release threshold is 0
    assert attribute(pool, "USED_MEM_HIGH") == used
    ok(set_attribute(pool, "USED_MEM_HIGH", 0))
    assert attribute(pool, "USED_MEM_HIGH") == 0
    assert status(set_attribute(pool, "USED_MEM_HIGH", 5)) == "CUDA_ERROR_INVALID_VALUE"


def test_release_threshold_and_trim(make_pool, make_stream):
    pool, stream = make_pool(), make_stream()
    ok(set_attribute(pool, "RELEASE_THRESHOLD", (1 << 64) - 1))
    assert attribute(pool, "RELEASE_THRESHOLD") == (1 << 64) - 1
    for _ in range(3):
        address = ok(driver.cuMemAllocFromPoolAsync(8 << 20, pool, stream))
        ok(driver.cuMemFreeAsync(address, stream))
        ok(driver.cuStreamSynchronize(stream))
    kept = attribute(pool, "RESERVED_MEM_CURRENT")
    assert kept >= 8 << 20
    assert kept == attribute(pool, "RESERVED_MEM_HIGH")  # the same memory served each time
    ok(driver.cuMemPoolTrimTo(pool, kept))
    assert attribute(pool, "RESERVED_MEM_CURRENT") == kept
    ok(driver.cuMemPoolTrimTo(pool, 0))
    assert attribute(pool, "RESERVED_MEM_CURRENT") == 0


@pytest.mark.unchecked(reason="memory that a stream uses is not lent while kernels are checked")
@pytest.mark.cpu_only
def test_a_queued_free_lends_its_memory_to_the_same_stream(make_stream, host):
    stream, other = make_stream(), make_stream()
    host.block(stream)
    first = int(ok(driver.cuMemAllocAsync(3 << 20, stream)))
    ok(driver.cuMemFreeAsync(first, stream))
    elsewhere = int(ok(driver.cuMemAllocAsync(3 << 20, other)))
    assert elsewhere != first
    ok(driver.cuMemFreeAsync(elsewhere, other))
    again = int(ok(driver.cuMemAllocAsync(3 << 20, stream)))
    assert again == first
    host.release()
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuMemsetD8(again, 1, 3 << 20))  # the queued free has left it alone
    ok(driver.cuMemFreeAsync(again, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert status(driver.cuMemsetD8(again, 1, 1)) == "CUDA_ERROR_INVALID_VALUE"


@pytest.mark.cpu_only
def test_a_free_comes_after_the_work_before_it(make_stream, host):
    stream = make_stream()
    address = int(ok(driver.cuMemAllocAsync(1 << 20, stream)))
    host.block(stream)
    ok(driver.cuMemsetD8Async(address, 1, 1 << 20, stream))
    ok(driver.cuMemFreeAsync(address, stream))
    assert status(driver.cuMemsetD8Async(address, 1, 1, stream)) == "CUDA_ERROR_INVALID_VALUE"
    assert "was freed" in explanation(driver.cuMemsetD8Async(address, 1, 1, stream))
    host.release()
    ok(driver.cuStreamSynchronize(stream))


@pytest.mark.parametrize("waits", [True, False], ids=["a blocking stream", "a stream that does not block"])
def test_a_free_in_the_legacy_stream_comes_after_blocking_streams(make_stream, host, waits):
    stream, other = make_stream(0 if waits else 1), make_stream()
    ok(driver.cuMemsetD8(copied := int(ok(driver.cuMemAlloc(4096))), 0, 4096))
    address = int(ok(driver.cuMemAllocAsync(3 << 20, stream)))
    ok(driver.cuMemsetD8Async(address, 1, 4096, stream))
    ok(driver.cuStreamSynchronize(stream))
    host.block(stream)
    if waits:
        ok(driver.cuMemcpyDtoDAsync(copied, address, 4096, stream))
    ok(driver.cuMemFreeAsync(address, 0))
    # Another stream's next allocation of that size takes what is free: now, or when the blocking stream has come there.
    next_one = int(ok(driver.cuMemAllocAsync(3 << 20, other)))
    if on_cpu_device():
        assert (address == next_one) == (not waits)
    ok(driver.cuMemsetD8Async(next_one, 2, 3 << 20, other))
    ok(driver.cuStreamSynchronize(other))
    host.release()
    ok(driver.cuStreamSynchronize(stream))
    found = (ctypes.c_ubyte * 4096)()
    ok(driver.cuMemcpyDtoH(ctypes.addressof(found), copied, 4096))
    assert set(found) == {1 if waits else 0}
    ok(driver.cuMemFreeAsync(next_one, other))
    ok(driver.cuMemFree(copied))


@pytest.mark.cpu_only
def test_a_free_in_the_legacy_stream_while_a_blocking_stream_is_captured(make_stream):
    """It is refused, and the memory stays."""
    stream = make_stream(0)
    address = int(ok(driver.cuMemAllocAsync(4096, 0)))
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    assert status(driver.cuMemFreeAsync(address, 0)) == "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"
    assert status(driver.cuStreamEndCapture(stream)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    ok(driver.cuMemsetD8(address, 1, 4096))
    ok(driver.cuMemFreeAsync(address, 0))


def test_double_free_is_refused(make_stream):
    stream = make_stream()
    address = ok(driver.cuMemAllocAsync(64, stream))
    ok(driver.cuMemFreeAsync(address, stream))
    assert status(driver.cuMemFreeAsync(address, stream)) == "CUDA_ERROR_INVALID_VALUE"


def test_both_kinds_of_free_take_both_kinds_of_memory(make_stream):
    stream = make_stream()
    address = ok(driver.cuMemAllocAsync(4096, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuMemFree(address))
    address = ok(driver.cuMemAlloc(4096))
    ok(driver.cuMemFreeAsync(address, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert status(driver.cuMemGetAddressRange(address)) != "CUDA_SUCCESS"


@pytest.mark.cpu_only
def test_a_full_pool_waits_for_its_queued_frees(make_pool, make_stream, host):
    pool, stream, other = make_pool(max_size=16 << 20), make_stream(), make_stream()
    first = ok(driver.cuMemAllocFromPoolAsync(12 << 20, pool, stream))
    refused = driver.cuMemAllocFromPoolAsync(12 << 20, pool, other)
    assert status(refused) == "CUDA_ERROR_OUT_OF_MEMORY"
    assert "the pool may hold" in explanation(refused)
    host.call(stream, lambda: host.notes.append("before"))
    ok(driver.cuMemFreeAsync(first, stream))
    second = ok(driver.cuMemAllocFromPoolAsync(12 << 20, pool, other))
    assert host.notes == ["before"]
    ok(driver.cuMemFreeAsync(second, other))


@pytest.mark.cpu_only
def test_other_allocations_may_take_what_pools_keep(run_python):
    program = """
from cupola.bindings import driver
from tests.cpu.driver.calls import ok
ok(driver.cuInit(0)); ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
stream = ok(driver.cuStreamCreate(1))
pool = ok(driver.cuDeviceGetDefaultMemPool(0))
threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
ok(driver.cuMemPoolSetAttribute(pool, threshold, driver.cuuint64_t(1 << 60)))
address = ok(driver.cuMemAllocAsync(40 << 20, stream))
ok(driver.cuMemFreeAsync(address, stream))
ok(driver.cuStreamSynchronize(stream))
ok(driver.cuMemFree(ok(driver.cuMemAlloc(60 << 20))))
"""
    done = run_python(program, CUPOLA_CPU_MEMORY=str(64 << 20))
    assert done.returncode == 0, done.stderr


def test_no_bytes(make_stream):
    stream = make_stream()
    result = driver.cuMemAllocAsync(0, stream)
    if status(result) == "CUDA_SUCCESS":
        assert int(result[1]) == 0


@pytest.mark.parametrize(("kind", "managed"), [("HOST", False), ("HOST_NUMA", False), ("DEVICE", True), ("HOST", True)])
def test_pools_of_host_and_managed_memory(make_pool, make_stream, kind, managed):
    pool, stream = make_pool(kind, managed=managed), make_stream()
    address = int(ok(driver.cuMemAllocFromPoolAsync(4096, pool, stream)))
    if not managed:
        assert status(driver.cuMemsetD8Async(address, 6, 4096, stream)) == "CUDA_ERROR_INVALID_VALUE"
        let_in(pool)
    ok(driver.cuMemsetD8Async(address, 6, 4096, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert bytes((ctypes.c_uint8 * 4096).from_address(address)) == b"\6" * 4096
    handle = ok(driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address))
    assert int(handle) == int(pool)
    ok(driver.cuMemFreeAsync(address, stream))
    ok(driver.cuStreamSynchronize(stream))


def test_current_and_default_pools(make_pool):
    default = ok(driver.cuDeviceGetDefaultMemPool(0))
    assert ok(driver.cuDeviceGetMemPool(0)) == default
    pinned = TYPE.CU_MEM_ALLOCATION_TYPE_PINNED
    assert ok(driver.cuMemGetDefaultMemPool(location("DEVICE"), pinned)) == default
    host = ok(driver.cuMemGetDefaultMemPool(location("HOST"), pinned))
    assert host != default and ok(driver.cuMemGetMemPool(location("HOST"), pinned)) == host
    pool = make_pool()
    ok(driver.cuDeviceSetMemPool(0, pool))
    try:
        assert ok(driver.cuDeviceGetMemPool(0)) == pool
        assert ok(driver.cuMemGetMemPool(location("DEVICE"), pinned)) == pool
        assert ok(driver.cuDeviceGetDefaultMemPool(0)) == default
        stream = ok(driver.cuStreamCreate(1))
        address = ok(driver.cuMemAllocAsync(4096, stream))
        assert attribute(pool, "USED_MEM_CURRENT") >= 4096
        ok(driver.cuMemFreeAsync(address, stream))
        ok(driver.cuStreamSynchronize(stream))
        ok(driver.cuStreamDestroy(stream))
        ok(driver.cuMemPoolDestroy(pool))
        assert ok(driver.cuDeviceGetMemPool(0)) == default
    finally:
        ok(driver.cuDeviceSetMemPool(0, default))


def test_a_destroyed_pool_goes_with_its_last_allocation(make_stream):
    pool, stream = ok(driver.cuMemPoolCreate(properties())), make_stream()
    address = ok(driver.cuMemAllocFromPoolAsync(4 << 20, pool, stream))
    ok(driver.cuMemPoolDestroy(pool))
    ok(driver.cuMemsetD8Async(address, 1, 4 << 20, stream))
    ok(driver.cuMemFreeAsync(address, stream))
    ok(driver.cuStreamSynchronize(stream))


@pytest.mark.cpu_only
def test_bad_pools(make_pool):
    pool = ok(driver.cuMemPoolCreate(properties()))
    ok(driver.cuMemPoolDestroy(pool))
    for call in (
        lambda: driver.cuMemPoolDestroy(pool),
        lambda: driver.cuMemPoolDestroy(ok(driver.cuDeviceGetDefaultMemPool(0))),
        lambda: driver.cuMemPoolTrimTo(pool, 0),
        lambda: driver.cuMemPoolCreate(properties("HOST_NUMA", 7)),
        lambda: driver.cuMemPoolCreate(properties("NONE")),
        lambda: driver.cuMemPoolCreate(properties(managed=True, max_size=1 << 20)),
        lambda: driver.cuDeviceSetMemPool(0, make_pool("HOST")),
        lambda: set_attribute(make_pool(), "RESERVED_MEM_CURRENT", 0),
    ):
        assert status(call()) == "CUDA_ERROR_INVALID_VALUE"
    assert status(driver.cuMemPoolCreate(properties("DEVICE", 99))) == "CUDA_ERROR_INVALID_DEVICE"


def test_access(make_pool):
    pool = make_pool()
    assert ok(driver.cuMemPoolGetAccess(pool, location("DEVICE"))) == ACCESS.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    let_in(pool)
    assert status(set_access(pool, 0, "NONE")) != "CUDA_SUCCESS"
    host = make_pool("HOST")
    assert ok(driver.cuMemPoolGetAccess(host, location("DEVICE"))) == ACCESS.CU_MEM_ACCESS_FLAGS_PROT_NONE
    assert ok(driver.cuMemPoolGetAccess(host, location("HOST"))) == ACCESS.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    let_in(host)
    assert ok(driver.cuMemPoolGetAccess(host, location("DEVICE"))) == ACCESS.CU_MEM_ACCESS_FLAGS_PROT_READWRITE


STORE = r"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry store(.param .u64 where) {
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [where];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], 7;
    ret;
}
"""

# Prints the status behind a kernel on device 0 that writes to the memory at `address`. {SETUP} makes the memory.
WRITE = """
import ctypes
from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok, status
from tests.cpu.driver.memory.test_pool import STORE, properties, set_access
ok(driver.cuInit(0))
contexts = [ok(driver.cuDevicePrimaryCtxRetain(i)) for i in range(ok(driver.cuDeviceGetCount()))]
ok(driver.cuCtxSetCurrent(contexts[0]))
{SETUP}
ok(driver.cuCtxSetCurrent(contexts[0]))
module = ok(driver.cuModuleLoadData(STORE.encode()))
function = ok(driver.cuModuleGetFunction(module, b"store"))
ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, ((int(address),), (ctypes.c_void_p,)), 0))
result = driver.cuCtxSynchronize()
print(status(result))
print(explanation(result) if CPU else "")
"""

HOST_POOL = """
pool = ok(driver.cuMemPoolCreate(properties("HOST")))
address = ok(driver.cuMemAllocFromPoolAsync(64, pool, 0))
ok(driver.cuCtxSynchronize())
"""
POOL_OF_1 = HOST_POOL.replace('"HOST"', '"DEVICE", 1')
ALLOCATED_ON_1 = """
ok(driver.cuCtxSetCurrent(contexts[1]))
address = ok(driver.cuMemAlloc(64))
"""
IN_CONTEXT_0 = "ok(driver.cuCtxSetCurrent(contexts[0]))\n"


@pytest.mark.parametrize(
    ("setup", "devices", "expected"),
    [
        (HOST_POOL, 1, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        pytest.param(
            HOST_POOL + "ok(set_access(pool, 0, 'READ'))",
            1,
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            marks=pytest.mark.cpu_only,  # a driver may refuse access for reading alone
        ),
        (HOST_POOL + "ok(set_access(pool, 0, 'READWRITE'))", 1, "CUDA_SUCCESS"),
        (POOL_OF_1, 2, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (POOL_OF_1 + "ok(set_access(pool, 0, 'READWRITE'))", 2, "CUDA_SUCCESS"),
        (ALLOCATED_ON_1, 2, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (ALLOCATED_ON_1 + IN_CONTEXT_0 + "ok(driver.cuCtxEnablePeerAccess(contexts[1], 0))", 2, "CUDA_SUCCESS"),
    ],
)
def test_kernels_need_access(run_on_devices, setup, devices, expected):
    cpu = on_cpu_device()
    program = f"CPU = {cpu}\n" + WRITE.replace("{SETUP}", setup)
    done = run_on_devices(devices, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == expected
    if cpu and expected != "CUDA_SUCCESS":
        assert "forbidden write of 4 bytes in global memory" in done.stdout
        assert "cuMemPoolSetAccess" in done.stdout


def test_threads_and_streams_share_a_pool(context):
    """Each thread fills what it gets and finds it unchanged when its stream comes to it, whoever frees beside it."""
    wrong: list[str] = []

    def work(seed: int) -> None:
        try:
            ok(driver.cuCtxSetCurrent(context))
            stream = ok(driver.cuStreamCreate(1))
            host = int(ok(driver.cuMemHostAlloc(400 * 4, 0)))
            seen = (ctypes.c_uint32 * 400).from_address(host)
            for turn in range(400):
                size = 4 * (1 + (turn * 37 * (seed + 1)) % 3000 + (200_000 if turn % 9 == 0 else 0))
                address = int(ok(driver.cuMemAllocAsync(size, stream)))
                ok(driver.cuMemsetD32Async(address, seed * 1000 + turn, size // 4, stream))
                ok(driver.cuMemcpyAsync(host + 4 * turn, address + size - 4, 4, stream))
                ok(driver.cuMemFreeAsync(address, stream))
            ok(driver.cuStreamSynchronize(stream))
            assert list(seen) == [seed * 1000 + turn for turn in range(400)]
            ok(driver.cuMemFreeHost(host))
            ok(driver.cuStreamDestroy(stream))
        except AssertionError as error:
            wrong.append(str(error))

    used_before = attribute(ok(driver.cuDeviceGetDefaultMemPool(0)), "USED_MEM_CURRENT")
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert attribute(ok(driver.cuDeviceGetDefaultMemPool(0)), "USED_MEM_CURRENT") == used_before
