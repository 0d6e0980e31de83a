"""C functions that tell the dynamic shared memory of a block, as `max_potential_block_size` takes them."""

from __future__ import annotations

import ctypes
import gc
import mmap

import pytest

from cupola.bindings import driver

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)


@pytest.fixture
def occupancy(device, module):
    return module.get_kernel("dynamic").occupancy


def as_value(function):
    return driver.CUoccupancyB2DSize(ctypes.cast(function, ctypes.c_void_p).value)


def as_place(function):
    return driver.CUoccupancyB2DSize(_ptr=ctypes.addressof(function))


@pytest.mark.parametrize("make", [as_value, as_place])
def test_functions(occupancy, make):
    asked: list[int] = []
    function = FUNCTION(lambda threads: asked.append(threads) or 16 * threads)
    found = occupancy.max_potential_block_size(make(function), 256)
    assert found.max_block_size <= 256 and asked and max(asked) <= 256
    assert found == occupancy.max_potential_block_size(make(function), 256)


def test_none(occupancy):
    none = occupancy.max_potential_block_size(driver.CUoccupancyB2DSize(0), 0)
    assert none == occupancy.max_potential_block_size(0, 0)


def unmapped() -> int:
    page = mmap.mmap(-1, 1 << 24)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    gc.collect()
    page.close()
    return address


@pytest.mark.parametrize("place", ["code", "data", "nothing", "a number"])
def test_what_is_no_function(occupancy, place):
    function = FUNCTION(lambda threads: 0)
    data = (ctypes.c_uint64 * 2)(12345, 67890)
    callback = {
        # The address of the code, where that of a place with the address is meant: a slip that used to crash.
        "code": lambda: driver.CUoccupancyB2DSize(_ptr=ctypes.cast(function, ctypes.c_void_p).value),
        "data": lambda: driver.CUoccupancyB2DSize(ctypes.addressof(data)),
        "nothing": lambda: driver.CUoccupancyB2DSize(_ptr=unmapped()),
        "a number": lambda: driver.CUoccupancyB2DSize(4096),
    }[place]()
    with pytest.raises(ValueError, match=r"_ptr.*ctypes\.addressof\(function\)"):
        occupancy.max_potential_block_size(callback, 0)
