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


def said(address: int, count: int) -> list:
    """READ_MOSTLY, PREFERRED_LOCATION, ACCESSED_BY and LAST_PREFETCH_LOCATION of a range."""

    def of(name: str, size: int = 4):
        return ok(driver.cuMemRangeGetAttribute(size, RANGE[f"CU_MEM_RANGE_ATTRIBUTE_{name}"], address, count))

    by = [int(x) for x in of("ACCESSED_BY", 8)]
    return [int(of("READ_MOSTLY")), int(of("PREFERRED_LOCATION")), by, int(of("LAST_PREFETCH_LOCATION"))]


NOTHING, ALL = [0, -2, [-2, -2], -2], [1, 0, [0, -2], 0]
ADVISED = [*ALL[:3], -2]


def advise_all(address: int, count: int) -> None:
    for advice in ("SET_READ_MOSTLY", "SET_PREFERRED_LOCATION", "SET_ACCESSED_BY"):
        ok(driver.cuMemAdvise(address, count, ADVISE[f"CU_MEM_ADVISE_{advice}"], location("DEVICE")))


def test_advice_and_prefetches_hold_for_their_range(managed):
    """What an H200 answers for one half of an allocation."""
    half = SIZE // 2
    assert said(managed, SIZE) == NOTHING
    advise_all(managed, half)
    ok(driver.cuMemPrefetchAsync(managed, half, location("DEVICE"), 0, 0))
    ok(driver.cuCtxSynchronize())
    assert said(managed, half) == said(managed + 12345, 1) == ALL
    assert said(managed + half, half) == said(managed, SIZE) == said(managed, half + 1) == NOTHING


# An offset, and whether an H200 has there what was advised for the byte at 70000.
NEAR = {70000: 1, 70001: 1, 69632: 1, 69631: 0, 73727: 1, 73728: 0, 65536: 0, 65535: 0, 131072: 0, 0: 0, SIZE - 1: 0}


def test_advice_holds_for_whole_pages(managed):
    advise_all(managed + 70000, 1)
    assert {at: said(managed + at, 1) == ADVISED for at in NEAR} == {at: bool(there) for at, there in NEAR.items()}
    ok(driver.cuMemPrefetchAsync(managed + 70000, 1, location("DEVICE"), 0, 0))
    ok(driver.cuCtxSynchronize())
    assert said(managed + 69632, 4096) == ALL
    assert said(managed + 69632, 4097) == said(managed, SIZE) == NOTHING


# In a process of their own an H200 gave these answers, and others after other tests; what decides is not known.
@pytest.mark.cpu_only
def test_ranges_that_overlap(managed):
    """A model by pages: each step is an advice for a range, and all ranges are asked about behind it."""
    pages = 8
    preferred, by, last = [-2] * pages, [set() for _ in range(pages)], [-2] * pages
    steps = [(0, 8, 0), (2, 3, -1), (4, 4, -1), (1, 2, 0), (0, 1, -2), (3, 5, 0), (0, 8, -1), (5, 1, -2), (7, 1, 0)]
    for begin, count, where in steps:
        address, size = managed + begin * 4096 + 5, count * 4096 - 10
        place = location("HOST") if where == -1 else location("DEVICE")
        kind = "UNSET" if where == -2 else "SET"
        ok(driver.cuMemAdvise(address, size, ADVISE[f"CU_MEM_ADVISE_{kind}_PREFERRED_LOCATION"], place))
        ok(driver.cuMemAdvise(address, size, ADVISE[f"CU_MEM_ADVISE_{kind}_ACCESSED_BY"], place))
        ok(driver.cuMemPrefetchBatchAsync([address], [size], 1, [place], [0], 1, 0, 2))
        for page in range(begin, begin + count):
            preferred[page], last[page] = where, (0 if where == -2 else where)
            by[page] = by[page] | {where} if where != -2 else by[page] - {0}
        for first in range(pages):
            for end in range(first + 1, pages + 1):
                read, location_of, accessed, prefetched = said(managed + first * 4096, (end - first) * 4096)
                assert read == 0
                assert location_of == (preferred[first] if len(set(preferred[first:end])) == 1 else -2)
                assert prefetched == (last[first] if len(set(last[first:end])) == 1 else -2)
                assert set(accessed) - {-2} == set.intersection(*by[first:end])


def test_the_numbers_of_places(managed):
    """A type and a number say where, on an H200: -2 is nowhere, and -1 the host."""

    def where(what: str) -> tuple[int, int]:
        names = (f"CU_MEM_RANGE_ATTRIBUTE_{what}_LOCATION_{part}" for part in ("TYPE", "ID"))
        kind, number = (int(ok(driver.cuMemRangeGetAttribute(4, RANGE[name], managed, SIZE))) for name in names)
        return kind, number

    assert where("PREFERRED") == where("LAST_PREFETCH") == (0, -2)
    assert advise(managed, "SET_PREFERRED_LOCATION", location("HOST", 5)) == "CUDA_SUCCESS"
    ok(driver.cuMemPrefetchAsync(managed, SIZE, location("HOST", 5), 0, 0))
    assert where("PREFERRED") == where("LAST_PREFETCH") == (2, -1)
    ok(driver.cuMemPrefetchAsync(managed, SIZE, location("HOST_NUMA_CURRENT", 7), 0, 0))
    assert where("LAST_PREFETCH") in ((4, 0), (4, 7))  # the number means nothing there: H200s have given both back
    ok(driver.cuMemPrefetchAsync(managed, SIZE, location("DEVICE"), 0, 0))
    assert where("LAST_PREFETCH") == (1, 0)
    ok(driver.cuCtxSynchronize())


BAD = "CUDA_ERROR_INVALID_VALUE"
# An advice, and what it says of places: a device that there is not, none, and NUMA nodes.
PLACES = [
    ("SET_READ_MOSTLY", "CUDA_SUCCESS", BAD, "CUDA_SUCCESS"),
    ("UNSET_READ_MOSTLY", "CUDA_SUCCESS", BAD, "CUDA_SUCCESS"),
    ("SET_PREFERRED_LOCATION", BAD, BAD, "CUDA_SUCCESS"),
    ("UNSET_PREFERRED_LOCATION", "CUDA_SUCCESS", BAD, "CUDA_SUCCESS"),
    ("SET_ACCESSED_BY", BAD, BAD, BAD),
    ("UNSET_ACCESSED_BY", BAD, BAD, BAD),
]


@pytest.mark.parametrize(("advice", "no_device", "no_place", "node"), PLACES)
def test_places_that_advice_takes(managed, advice, no_device, no_place, node):
    for number in (99, -1, -2):
        assert advise(managed, advice, location("DEVICE", number)) == no_device
    assert advise(managed, advice, location("INVALID")) == no_place
    assert advise(managed, advice, location("HOST_NUMA")) == node
    assert advise(managed, advice, location("HOST_NUMA_CURRENT")) == node


def test_places_that_prefetches_take(managed):
    def prefetch(kind: str, number: int) -> str:
        return status(driver.cuMemPrefetchAsync(managed, SIZE, location(kind, number), 0, 0))

    assert prefetch("DEVICE", 99) == prefetch("DEVICE", -1) == "CUDA_ERROR_INVALID_DEVICE"
    assert prefetch("INVALID", 0) == prefetch("HOST_NUMA", 77) == BAD
    ok(driver.cuCtxSynchronize())
