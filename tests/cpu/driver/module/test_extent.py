"""Images at the end of what can be read: nothing behind them is looked at."""

from __future__ import annotations

import ctypes
import mmap

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import status

pytestmark = pytest.mark.cpu_only

PTX = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (b"\x7f", "INVALID"),
        (b"\x7fEL", "INVALID"),
        (b"\x7fELF", "INVALID_IMAGE"),
        (b"\x50\xed\x55", "INVALID"),
        (b"\x50\xed\x55\xba", "INVALID_IMAGE"),
        (b"\xb1\x43\x62\x46", "INVALID"),
        (b"//", "INVALID"),
        (b"\0", "INVALID_IMAGE"),
        (PTX, "SUCCESS"),
        (PTX * 100, "INVALID_PTX"),
        (b"", "INVALID_IMAGE"),
    ],
    ids=lambda value: repr(value[:6]) + str(len(value)) if isinstance(value, bytes) else value,
)
def test_images_at_the_end_of_memory(context, image, expected):
    pages = 8 * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    end = start + pages - mmap.PAGESIZE
    ctypes.memmove(end - len(image), image, len(image))
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert libc.mprotect(end, mmap.PAGESIZE, 0) == 0
    try:
        assert expected in status(driver.cuModuleLoadData(end - len(image)))
    finally:
        libc.mprotect(end, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)
