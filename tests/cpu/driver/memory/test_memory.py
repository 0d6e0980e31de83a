"""Allocation of device, pinned and managed memory, and what an address is said to be."""

from __future__ import annotations

import ctypes
import threading
import time

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok, status

ATTRIBUTE = driver.CUpointer_attribute
HOST, DEVICE = 1, 2  # CUmemorytype


def attribute(name: str, address: int):
    return ok(driver.cuPointerGetAttribute(ATTRIBUTE[f"CU_POINTER_ATTRIBUTE_{name}"], address))


@pytest.mark.parametrize("size", [1, 255, 256, 1024, 100_000, 262_144, 3 << 20, 33 << 20])
def test_allocations_are_aligned_writable_to_the_end_and_apart(context, size):
    first, second = int(ok(driver.cuMemAlloc(size))), int(ok(driver.cuMemAlloc(size)))
    assert first % 256 == second % 256 == 0
    assert first + size <= second or second + size <= first
    ok(driver.cuMemsetD8(first, 1, size))
    ok(driver.cuMemsetD8(second + size - 1, 2, 1))
    last = ctypes.c_uint8()
    ok(driver.cuMemcpyDtoH(ctypes.addressof(last), first + size - 1, 1))
    assert last.value == 1
    assert [int(x) for x in ok(driver.cuMemGetAddressRange(first + size - 1))] == [first, size]
    ok(driver.cuMemFree(first))
    ok(driver.cuMemFree(second))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: driver.cuMemAlloc(0), "CUDA_ERROR_INVALID_VALUE"),
        (lambda: driver.cuMemAlloc(1 << 60), "CUDA_ERROR_OUT_OF_MEMORY"),
        (lambda: driver.cuMemAlloc((1 << 64) - 1), "CUDA_ERROR_OUT_OF_MEMORY"),
        (lambda: driver.cuMemAllocPitch(100, 10, 3), "CUDA_ERROR_INVALID_VALUE"),
        (lambda: driver.cuMemAllocPitch(1 << 40, 1 << 40, 4), "CUDA_ERROR_INVALID_VALUE"),
        (lambda: driver.cuMemAllocManaged(64, 4), "CUDA_ERROR_INVALID_VALUE"),
        (lambda: driver.cuMemHostAlloc(64, 64), "CUDA_ERROR_INVALID_VALUE"),
        (lambda: driver.cuMemFree(12345), "CUDA_ERROR_INVALID_VALUE"),
        (lambda: driver.cuMemFreeHost(12345), "CUDA_ERROR_INVALID_VALUE"),
        (lambda: driver.cuMemGetAddressRange(12345), "CUDA_ERROR_NOT_FOUND"),
        (lambda: driver.cuMemHostGetFlags(12345), "CUDA_ERROR_INVALID_VALUE"),
        (lambda: driver.cuMemHostUnregister(4096), "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
        (lambda: driver.cuMemHostRegister(4096, 4096, 0), "CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_bad_requests_are_refused(context, call, expected):
    assert status(call()) == expected


@pytest.mark.cpu_only
def test_refusals_say_what_is_wrong(context):
    address = int(ok(driver.cuMemAlloc(1000)))
    assert "100 bytes into the allocation" in explanation(driver.cuMemFree(address + 100))
    assert "use cuMemFree)" in explanation(driver.cuMemFreeHost(address))
    ok(driver.cuMemFree(address))
    assert "freed already" in explanation(driver.cuMemFree(address))
    pinned = int(ok(driver.cuMemHostAlloc(64, 0)))
    assert "use cuMemFreeHost" in explanation(driver.cuMemFree(pinned))
    ok(driver.cuMemFreeHost(pinned))
    assert "modeled device 0 has" in explanation(driver.cuMemAlloc(1 << 40))
    assert "modeled device 0 has" in explanation(driver.cuMemAlloc(1 << 50))
    assert "memory in this computer's" in explanation(driver.cuMemHostAlloc(1 << 50, 0))


@pytest.mark.cpu_only
def test_the_host_is_not_asked_for_more_than_it_has(run_python):
    program = """
from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok
ok(driver.cuInit(0)); ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
free, total = ok(driver.cuMemGetInfo())
assert free <= 1 << 26 < total, (free, total)
kept = ok(driver.cuMemAlloc(1 << 25))
refused = driver.cuMemAlloc(3 << 24)
assert refused[0].name == "CUDA_ERROR_OUT_OF_MEMORY"
assert "CUPOLA_CPU_MEMORY" in explanation(refused)
ok(driver.cuMemFree(kept))
ok(driver.cuMemFree(ok(driver.cuMemAlloc(3 << 24))))
"""
    done = run_python(program, CUPOLA_CPU_MEMORY=str(1 << 26))
    assert done.returncode == 0, done.stderr


@pytest.mark.cpu_only  # other processes use a GPU, too, and their memory comes and goes
def test_free_memory_falls_and_rises(context):
    before, total = ok(driver.cuMemGetInfo())
    address = ok(driver.cuMemAlloc(64 << 20))
    during, _ = ok(driver.cuMemGetInfo())
    ok(driver.cuMemFree(address))
    after, _ = ok(driver.cuMemGetInfo())
    assert total >= before >= during + (64 << 20)
    assert after >= during + (64 << 20)


def test_pinned_memory_of_no_bytes_is_null(context):
    assert int(ok(driver.cuMemHostAlloc(0, 0))) == 0


def test_freeing_null_does_nothing(context):
    ok(driver.cuMemFree(0))
    ok(driver.cuMemFreeHost(0))


def test_pitch_holds_the_rows(context):
    address, pitch = ok(driver.cuMemAllocPitch(1000, 7, 4))
    assert pitch >= 1000 and pitch % 256 == 0
    ok(driver.cuMemsetD2D8(address, pitch, 5, 1000, 7))
    ok(driver.cuMemFree(address))


def test_free_waits_for_work_that_uses_the_memory(make_stream, host):
    stream, address = make_stream(), int(ok(driver.cuMemAlloc(4096)))
    host.call(stream, lambda: time.sleep(0.05))
    ok(driver.cuMemsetD8Async(address, 1, 4096, stream))
    host.note(stream, "filled")
    ok(driver.cuMemFree(address))
    ok(driver.cuStreamSynchronize(stream))
    assert host.notes == ["filled"]


def test_pinned_memory(context):
    address = int(ok(driver.cuMemHostAlloc(1000, driver.CU_MEMHOSTALLOC_PORTABLE)))
    assert int(ok(driver.cuMemHostGetDevicePointer(address, 0))) == address
    assert int(ok(driver.cuMemHostGetFlags(address))) & driver.CU_MEMHOSTALLOC_DEVICEMAP  # whatever was asked for
    assert status(driver.cuMemHostGetDevicePointer(address, 1)) == "CUDA_ERROR_INVALID_VALUE"
    ok(driver.cuMemsetD8(address, 7, 1000))
    assert bytes((ctypes.c_uint8 * 1000).from_address(address)) == b"\7" * 1000
    ok(driver.cuMemFreeHost(address))
    plain = ok(driver.cuMemAllocHost(64))
    ok(driver.cuMemFreeHost(plain))


def test_registered_host_memory(context):
    memory = ctypes.create_string_buffer(1 << 16)
    address = ctypes.addressof(memory)
    ok(driver.cuMemHostRegister(address, 1 << 16, 0))
    assert int(attribute("MEMORY_TYPE", address + 5)) == HOST
    again = driver.cuMemHostRegister(address + 4096, 4096, 0)
    assert status(again) == "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"
    ok(driver.cuMemsetD8(address, 3, 1 << 16))
    ok(driver.cuCtxSynchronize())
    assert memory.raw == b"\3" * (1 << 16)
    ok(driver.cuMemHostUnregister(address))
    assert status(driver.cuMemHostUnregister(address)) == "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"
    assert status(driver.cuPointerGetAttribute(ATTRIBUTE.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)) == (
        "CUDA_ERROR_INVALID_VALUE"
    )


@pytest.mark.parametrize("kind", ["device", "pinned", "managed"])
def test_pointer_attributes(context, kind):
    if kind == "device":
        address, free = int(ok(driver.cuMemAlloc(5000))), driver.cuMemFree
    elif kind == "pinned":
        address, free = int(ok(driver.cuMemHostAlloc(5000, 0))), driver.cuMemFreeHost
    else:
        address, free = int(ok(driver.cuMemAllocManaged(5000, 1))), driver.cuMemFree
    inside = address + 123
    assert int(attribute("MEMORY_TYPE", inside)) == (HOST if kind == "pinned" else DEVICE)
    assert bool(attribute("IS_MANAGED", inside)) is (kind == "managed")
    assert int(attribute("DEVICE_POINTER", inside)) == inside
    assert int(attribute("DEVICE_ORDINAL", inside)) == 0
    assert int(attribute("RANGE_START_ADDR", inside)) == address
    assert int(attribute("RANGE_SIZE", inside)) == 5000
    assert int(attribute("CONTEXT", inside)) == int(context)
    assert bool(attribute("MAPPED", inside))
    assert int(attribute("BUFFER_ID", inside)) == int(attribute("BUFFER_ID", address))
    if kind == "device":
        refused = driver.cuPointerGetAttribute(ATTRIBUTE.CU_POINTER_ATTRIBUTE_HOST_POINTER, inside)
        assert status(refused) == "CUDA_ERROR_INVALID_VALUE"
    else:
        assert int(attribute("HOST_POINTER", inside)) == inside
    identity = int(attribute("BUFFER_ID", address))
    ok(free(address))
    other = int(ok(driver.cuMemAlloc(5000)))
    assert int(attribute("BUFFER_ID", other)) != identity
    ok(driver.cuMemFree(other))


def test_all_attributes_of_a_host_address_at_once(context):
    memory = ctypes.create_string_buffer(64)
    names = ["MEMORY_TYPE", "IS_MANAGED", "DEVICE_ORDINAL", "RANGE_SIZE"]
    attributes = [ATTRIBUTE[f"CU_POINTER_ATTRIBUTE_{name}"] for name in names]
    values = ok(driver.cuPointerGetAttributes(len(names), attributes, ctypes.addressof(memory)))
    assert [int(v) for v in values] == [0, 0, -2, 0]


def test_settable_attribute(context):
    address = int(ok(driver.cuMemAlloc(64)))
    ok(driver.cuPointerSetAttribute(True, ATTRIBUTE.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address))
    assert int(attribute("SYNC_MEMOPS", address)) == 1
    ok(driver.cuMemFree(address))


def test_a_destroyed_context_takes_its_memory_with_it(context):
    other = ok(driver.cuCtxCreate(None, 0, 0))
    address = int(ok(driver.cuMemAlloc(1 << 20)))
    ok(driver.cuCtxDestroy(other))
    ok(driver.cuCtxSetCurrent(context))
    assert status(driver.cuMemGetAddressRange(address)) != "CUDA_SUCCESS"


def test_threads_allocate_without_meeting(context):
    wrong: list[str] = []

    def work(seed: int) -> None:
        ok(driver.cuCtxSetCurrent(context))
        live: list[tuple[int, int]] = []
        try:
            for turn in range(1500):
                size = 1 + (turn * 7919 * (seed + 1)) % 20_000 + (3 << 20) * (turn % 97 == 0)
                address = int(ok(driver.cuMemAlloc(size)))
                ctypes_range = ok(driver.cuMemGetAddressRange(address + size - 1))
                assert [int(x) for x in ctypes_range] == [address, size]
                live.append((address, size))
                if len(live) > 20:
                    ok(driver.cuMemFree(live.pop((turn * 31) % len(live))[0]))
        except AssertionError as error:
            wrong.append(str(error))
        finally:
            spans.extend(live)

    spans: list[tuple[int, int]] = []
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    spans.sort()
    assert all(a + n <= b for (a, n), (b, _) in zip(spans, spans[1:], strict=False))
    for address, _ in spans:
        ok(driver.cuMemFree(address))
