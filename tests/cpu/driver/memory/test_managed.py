"""Managed memory: what is advised can be asked for again, and what is prefetched is checked."""

from __future__ import annotations

import ctypes

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok, status

ADVISE = driver.CUmem_advise
RANGE = driver.CUmem_range_attribute
LOCATION = driver.CUmemLocationType
SIZE = 1 << 20


def location(kind: str, number: int = 0):
    where = driver.CUmemLocation()
    where.type = LOCATION[f"CU_MEM_LOCATION_TYPE_{kind}"]
    where.id = number
    return where


@pytest.fixture
def managed(context):
    address = int(ok(driver.cuMemAllocManaged(SIZE, 1)))
    yield address
    ok(driver.cuMemFree(address))


def advise(address: int, advice: str, where) -> str:
    return status(driver.cuMemAdvise(address, SIZE, ADVISE[f"CU_MEM_ADVISE_{advice}"], where))


def ask(address: int, name: str, size: int = 4):
    return ok(driver.cuMemRangeGetAttribute(size, RANGE[f"CU_MEM_RANGE_ATTRIBUTE_{name}"], address, SIZE))


def test_host_and_device_share_it(managed):
    ok(driver.cuMemsetD8(managed, 3, SIZE))
    ok(driver.cuCtxSynchronize())
    assert bytes((ctypes.c_uint8 * 16).from_address(managed)) == b"\3" * 16


def test_advice_can_be_asked_for(managed):
    assert int(ask(managed, "READ_MOSTLY")) == 0
    assert advise(managed, "SET_READ_MOSTLY", location("DEVICE")) == "CUDA_SUCCESS"
    assert int(ask(managed, "READ_MOSTLY")) == 1
    assert advise(managed, "UNSET_READ_MOSTLY", location("DEVICE")) == "CUDA_SUCCESS"
    assert int(ask(managed, "READ_MOSTLY")) == 0
    assert int(ask(managed, "PREFERRED_LOCATION")) == driver.CU_DEVICE_INVALID
    assert advise(managed, "SET_PREFERRED_LOCATION", location("HOST")) == "CUDA_SUCCESS"
    assert int(ask(managed, "PREFERRED_LOCATION")) == driver.CU_DEVICE_CPU
    assert advise(managed, "SET_PREFERRED_LOCATION", location("DEVICE")) == "CUDA_SUCCESS"
    assert int(ask(managed, "PREFERRED_LOCATION")) == 0
    assert advise(managed, "UNSET_PREFERRED_LOCATION", location("DEVICE")) == "CUDA_SUCCESS"
    assert int(ask(managed, "PREFERRED_LOCATION")) == driver.CU_DEVICE_INVALID


def test_accessed_by(managed):
    def by() -> list[int]:
        return [int(x) for x in ask(managed, "ACCESSED_BY", 12) if int(x) != driver.CU_DEVICE_INVALID]

    assert by() == []
    assert advise(managed, "SET_ACCESSED_BY", location("DEVICE")) == "CUDA_SUCCESS"
    assert advise(managed, "SET_ACCESSED_BY", location("HOST")) == "CUDA_SUCCESS"
    assert sorted(by()) == [driver.CU_DEVICE_CPU, 0]
    assert advise(managed, "UNSET_ACCESSED_BY", location("DEVICE")) == "CUDA_SUCCESS"
    assert by() == [driver.CU_DEVICE_CPU]


def test_prefetching(managed, make_stream):
    stream = make_stream()
    assert int(ask(managed, "LAST_PREFETCH_LOCATION")) == driver.CU_DEVICE_INVALID
    ok(driver.cuMemPrefetchAsync(managed, SIZE, location("DEVICE"), 0, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert int(ask(managed, "LAST_PREFETCH_LOCATION")) == 0
    ok(driver.cuMemPrefetchBatchAsync([managed], [SIZE], 1, [location("HOST")], [0], 1, 0, stream))
    assert int(ask(managed, "LAST_PREFETCH_LOCATION")) == driver.CU_DEVICE_CPU
    ok(driver.cuMemDiscardBatchAsync([managed], [SIZE], 1, 0, stream))
    ok(driver.cuMemDiscardAndPrefetchBatchAsync([managed], [SIZE], 1, [location("DEVICE")], [0], 1, 0, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert int(ask(managed, "LAST_PREFETCH_LOCATION")) == 0


def test_what_is_refused(managed, make_stream):
    stream, plain = make_stream(), ok(driver.cuMemAlloc(SIZE))
    device = location("DEVICE")
    bad = "CUDA_ERROR_INVALID_VALUE"
    assert advise(int(plain), "SET_READ_MOSTLY", device) == bad
    assert status(driver.cuMemPrefetchAsync(plain, SIZE, device, 0, stream)) == bad
    assert status(driver.cuMemPrefetchAsync(managed, 0, device, 0, stream)) == bad
    assert status(driver.cuMemPrefetchAsync(managed, 2 * SIZE, device, 0, stream)) == bad
    assert advise(managed, "SET_ACCESSED_BY", location("DEVICE", 99)) == bad
    ok(driver.cuMemFree(plain))


@pytest.mark.cpu_only
def test_batches_need_a_stream_of_their_own(managed):
    for legacy in (0, 1):
        for result in (
            driver.cuMemPrefetchBatchAsync([managed], [SIZE], 1, [location("DEVICE")], [0], 1, 0, legacy),
            driver.cuMemDiscardBatchAsync([managed], [SIZE], 1, 0, legacy),
            driver.cuMemDiscardAndPrefetchBatchAsync([managed], [SIZE], 1, [location("HOST")], [0], 1, 0, legacy),
        ):
            assert status(result) == "CUDA_ERROR_INVALID_VALUE"
            assert "legacy default stream" in explanation(result)
