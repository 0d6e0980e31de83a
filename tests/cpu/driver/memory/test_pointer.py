"""What addresses are, and host memory that is registered in odd ranges: what an H200 with driver 580 answers."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import ok, status

ATTRIBUTE = driver.CUpointer_attribute
BAD, REGISTERED = "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"
UNKNOWN, GOOD = "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "CUDA_SUCCESS"
FILL = 0xA5A5A5A5A5A5A5A5
SIZES = {"MEMORY_TYPE": 4, "SYNC_MEMOPS": 4, "IS_MANAGED": 4, "DEVICE_ORDINAL": 4, "MAPPED": 4, "ACCESS_FLAGS": 4}
NAMES = [
    "CONTEXT", "MEMORY_TYPE", "DEVICE_POINTER", "HOST_POINTER", "SYNC_MEMOPS", "IS_MANAGED", "DEVICE_ORDINAL",
    "RANGE_START_ADDR", "RANGE_SIZE", "MAPPED", "ACCESS_FLAGS", "MAPPING_SIZE", "MEMPOOL_HANDLE",
    "ALLOWED_HANDLE_TYPES",
]  # fmt: skip


def entry(name: str, *types):
    address, _ = ok(driver.cuGetProcAddress(name.encode(), 12000, 0))
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(int(address))


def ask(name: str, address: int, plural: bool) -> tuple[str, int]:
    """The status, and what is then in a buffer of `FILL`."""
    attribute, value = int(ATTRIBUTE[f"CU_POINTER_ATTRIBUTE_{name}"]), ctypes.c_uint64(FILL)
    if plural:
        call = entry("cuPointerGetAttributes", ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
        attributes, values = (ctypes.c_int * 1)(attribute), (ctypes.c_void_p * 1)(ctypes.addressof(value))
        result = call(1, attributes, values, address)
    else:
        call = entry("cuPointerGetAttribute", ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)
        result = call(ctypes.addressof(value), attribute, address)
    size = SIZES.get(name, 8)
    found = int.from_bytes(bytes(value)[:size], "little", signed=name == "DEVICE_ORDINAL")
    return driver.CUresult(result).name, found


@pytest.fixture
def places(context):
    """Memory of 1000 bytes by its kind, and what frees it."""
    made = {
        "device": (int(ok(driver.cuMemAlloc(1000))), driver.cuMemFree),
        "pinned": (int(ok(driver.cuMemAllocHost(1000))), driver.cuMemFreeHost),
        "managed": (int(ok(driver.cuMemAllocManaged(1000, 1))), driver.cuMemFree),
    }
    yield {kind: address for kind, (address, _) in made.items()}
    for address, free in made.values():
        ok(free(address))


@pytest.mark.parametrize(("kind", "by"), [("device", 1000), ("device", 1023), ("pinned", 1000), ("managed", 1000)])
def test_behind_the_end(places, kind, by):
    """One attribute is refused and nothing is written; of several those that have a meaning for any address are."""
    address = places[kind] + by
    assert {name: ask(name, address, False)[0] for name in NAMES} == dict.fromkeys(NAMES, BAD)
    filled = {
        name: int.from_bytes(b"\xa5" * SIZES.get(name, 8), "little", signed=name == "DEVICE_ORDINAL") for name in NAMES
    }
    assert {name: ask(name, address, False)[1] for name in NAMES} == filled
    several = {name: 0 for name in NAMES} | {"DEVICE_ORDINAL": -2, "HOST_POINTER": address}
    several |= {"RANGE_START_ADDR": FILL, "RANGE_SIZE": FILL}
    assert {name: ask(name, address, True) for name in NAMES} == {
        name: (GOOD, value) for name, value in several.items()
    }


def test_host_memory_is_like_any_other_address(context):
    buffer = ctypes.create_string_buffer(64)
    address = ctypes.addressof(buffer)
    assert ask("IS_MANAGED", address, False) == ask("MAPPED", address, False) == (BAD, 0xA5A5A5A5)
    assert ask("HOST_POINTER", address, True) == (GOOD, address)
    assert ask("DEVICE_ORDINAL", address, True) == (GOOD, -2)


@pytest.mark.parametrize(("kind", "type", "sync"), [("device", 2, 1), ("pinned", 1, 0), ("managed", 2, 1)])
def test_inside(places, context, kind, type, sync):
    address = places[kind] + 999
    for plural in (False, True):
        found = {name: ask(name, address, plural) for name in NAMES if name not in ("MAPPING_SIZE", "HOST_POINTER")}
        if kind == "device" and not on_cpu_device():  # 1 in a process of its own, 0 after other tests
            found["SYNC_MEMOPS"] = (GOOD, sync)
        assert found == {
            "CONTEXT": (GOOD, int(context)), "MEMORY_TYPE": (GOOD, type), "DEVICE_POINTER": (GOOD, address),
            "SYNC_MEMOPS": (GOOD, sync), "IS_MANAGED": (GOOD, int(kind == "managed")), "DEVICE_ORDINAL": (GOOD, 0),
            "RANGE_START_ADDR": (GOOD, places[kind]), "RANGE_SIZE": (GOOD, 1000), "MAPPED": (GOOD, 1),
            "ACCESS_FLAGS": (GOOD, 3), "MEMPOOL_HANDLE": (GOOD, 0), "ALLOWED_HANDLE_TYPES": (GOOD, 0),
        }  # fmt: skip
        host = (GOOD, address) if kind != "device" else (GOOD if plural else BAD, 0)
        assert ask("HOST_POINTER", address, plural) == host


@pytest.mark.parametrize("kind", ["device", "managed"])
def test_synchronous_operations_can_be_asked_for(places, kind):
    if kind == "managed" or on_cpu_device():
        assert ask("SYNC_MEMOPS", places[kind], False)[1] == 1
    for wanted in (0, 1):
        ok(driver.cuPointerSetAttribute(wanted, ATTRIBUTE.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, places[kind]))
        assert ask("SYNC_MEMOPS", places[kind], False)[1] == wanted
    assert (
        status(driver.cuPointerSetAttribute(1, ATTRIBUTE.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, places[kind] + 1000)) == BAD
    )


# ---- registering -----------------------------------------------------------------------------------------------


@pytest.fixture
def pages(context):
    """The address of 16 pages."""
    memory = mmap.mmap(-1, 16 * 4096)
    view = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(view)
    yield address
    with suppress(ValueError):
        driver.cuMemHostUnregister(address)
    del view


def register(address: int, size: int, flags: int = 0) -> str:
    return status(driver.cuMemHostRegister(address, size, flags))


def unregister(address: int) -> str:
    return status(driver.cuMemHostUnregister(address))


@pytest.mark.parametrize(("at", "size"), [(1, 1), (0, 1), (1, 4095), (1, 4096), (4095, 2), (100, 5000), (0, 65536)])
def test_any_range_can_be_registered(pages, at, size):
    assert register(pages + at, size) == GOOD
    pages_of = (at + size + 4095) // 4096 - at // 4096
    assert ask("RANGE_START_ADDR", pages + at, False) == (GOOD, pages + at)
    assert ask("RANGE_SIZE", pages + at, False) == (GOOD, size)
    assert ask("MAPPING_BASE_ADDR", pages + at, False) == (GOOD, pages + at // 4096 * 4096)
    assert ask("MAPPING_SIZE", pages + at, False) == (GOOD, pages_of * 4096)
    if at:
        assert ask("RANGE_SIZE", pages + at - 1, False)[0] == BAD
        assert unregister(pages + at - 1) == UNKNOWN
    if size > 1:
        assert unregister(pages + at + 1) == BAD
    assert unregister(pages + at) == GOOD
    assert unregister(pages + at) == UNKNOWN


FLAGS = {1: GOOD, 2: GOOD, 3: GOOD, 8: GOOD, 4: BAD, 7: BAD, 16: BAD, 32: BAD, 0x80000000: BAD}


def test_flags(pages):
    found = {}
    for flags in FLAGS:
        found[flags] = register(pages, 4096, flags)
        assert unregister(pages) == (GOOD if found[flags] == GOOD else UNKNOWN)
    assert found == FLAGS


def test_what_cannot_be_registered(places, pages):
    assert {kind: register(address, 100) for kind, address in places.items()} == dict.fromkeys(places, BAD)
    assert register(places["pinned"] + 1000, 100) == REGISTERED
    assert unregister(places["pinned"]) == unregister(places["device"]) == BAD
    assert register(pages, 0) == register(0, 4096) == BAD
    assert register(pages, 8192) == GOOD
    assert register(pages + 4096, 100) == register(pages + 8191, 2) == REGISTERED
    assert unregister(pages) == GOOD


def test_memory_that_cannot_be_written(context):
    libc = ctypes.CDLL(None)
    libc.mmap.restype, libc.mmap.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long],
    )
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    address = libc.mmap(None, 8192, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    assert register(address, 4096) == BAD
    assert register(address, 4096, 8) == GOOD
    assert unregister(address) == GOOD
    assert libc.munmap(address + 4096, 4096) == 0
    assert register(address, 8192, 8) == BAD
    assert libc.munmap(address, 4096) == 0


def test_device_pointers_and_flags(places, pages):
    get = entry("cuMemHostGetDevicePointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
    for address, found in (
        (places["pinned"], places["pinned"]),
        (places["device"], 0),
        (pages, 0),
        (places["pinned"] + 1000, 0),
    ):
        value = ctypes.c_uint64(77)
        assert driver.CUresult(get(ctypes.addressof(value), address, 0)).name == (GOOD if found else BAD)
        assert value.value == found
    assert ok(driver.cuMemHostGetFlags(places["managed"])) == 2
    assert status(driver.cuMemHostGetFlags(places["device"])) == BAD
