"""Ranges of other libraries. NVTX is played by tables made here, as its headers make them at their first call."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

import pytest

from cupola.profile import _nvtx

CORE, CORE2 = 1, 5
TABLES = {CORE: 16, CORE2: 16}  # module -> entries


class Attributes(Structure):
    _fields_ = [
        ("version", ctypes.c_uint16), ("size", ctypes.c_uint16), ("category", c_uint32), ("color_type", c_int),
        ("color", c_uint32), ("payload_type", c_int), ("reserved", c_int), ("payload", c_uint64),
        ("message_type", c_int), ("message", c_void_p),
    ]  # fmt: skip


GET_TABLE = CFUNCTYPE(c_int, c_int, POINTER(c_void_p), POINTER(c_uint))
GET_EXPORT = CFUNCTYPE(c_void_p, c_uint32)


class Callbacks(Structure):
    _fields_ = [("size", c_size_t), ("table", GET_TABLE)]


@pytest.fixture(scope="module")
def nvtx():
    """Call what the library has put in the tables: nvtx(module, number, result, types, *arguments)."""
    slots = {module: (c_void_p * size)() for module, size in TABLES.items()}
    pointers = {
        module: (c_void_p * size)(*(ctypes.addressof(slots[module]) + 8 * i for i in range(size)))
        for module, size in TABLES.items()
    }

    def table(module, out, size):
        if module not in pointers:
            return 0
        out[0], size[0] = ctypes.addressof(pointers[module]), TABLES[module]
        return 1

    callbacks = Callbacks(ctypes.sizeof(Callbacks), GET_TABLE(table))
    export = GET_EXPORT(lambda which: ctypes.addressof(callbacks) if which == 1 else None)
    assert ctypes.CDLL(_nvtx.__file__).InitializeInjectionNvtx2(export) == 1

    def call(module, number, result, types, *arguments):
        return CFUNCTYPE(result, *types)(slots[module][number])(*arguments)

    return call


def names():
    taken, lost = _nvtx.take()
    assert lost == 0
    assert all(begin <= end for _, begin, end, _ in taken)
    return [name for name, *_ in taken]


def test_core(nvtx):
    _nvtx.begin()
    assert nvtx(CORE, 9, c_int, [c_char_p], b"outer") == 0
    assert nvtx(CORE, 10, c_int, [ctypes.c_wchar_p], "inner é \U0001f600") == 1
    nvtx(CORE, 2, None, [c_char_p], b"mark")
    assert nvtx(CORE, 11, c_int, []) == 1
    assert nvtx(CORE, 11, c_int, []) == 0
    one = nvtx(CORE, 5, c_uint64, [c_char_p], b"one")
    other = nvtx(CORE, 6, c_uint64, [ctypes.c_wchar_p], "other")
    nvtx(CORE, 7, None, [c_uint64], one)
    nvtx(CORE, 7, None, [c_uint64], one)  # ended already
    nvtx(CORE, 7, None, [c_uint64], other)
    assert names() == ["mark", "inner é \U0001f600", "outer", "one", "other"]


def test_domains(nvtx):
    _nvtx.begin()
    domain = nvtx(CORE2, 12, c_void_p, [c_char_p], b"domain")
    text = nvtx(CORE2, 10, c_void_p, [c_void_p, c_char_p], domain, b"registered")
    a = Attributes(3, ctypes.sizeof(Attributes), message_type=3, message=text)
    assert nvtx(CORE2, 4, c_int, [c_void_p, c_void_p], domain, byref(a)) == 0
    assert nvtx(CORE2, 5, c_int, [c_void_p], domain) == 0
    plain = ctypes.create_string_buffer(b"plain")
    b = Attributes(3, ctypes.sizeof(Attributes), message_type=1, message=ctypes.addressof(plain))
    started = nvtx(CORE2, 2, c_uint64, [c_void_p, c_void_p], domain, byref(b))
    nvtx(CORE2, 3, None, [c_void_p, c_uint64], domain, started)
    nvtx(CORE2, 1, None, [c_void_p, c_void_p], domain, byref(Attributes()))
    assert names() == ["registered", "plain", ""]


def test_a_range_may_begin_before(nvtx):
    nvtx(CORE, 9, c_int, [c_char_p], b"before")
    nvtx(CORE, 9, c_int, [c_char_p], b"not in it")
    nvtx(CORE, 11, c_int, [])
    _nvtx.begin()
    nvtx(CORE, 11, c_int, [])
    assert names() == ["before"]
    assert nvtx(CORE, 11, c_int, []) < 0  # nothing is open


def test_deep_ranges_are_not_recorded_but_counted_right(nvtx):
    _nvtx.begin()
    for depth in range(100):
        assert nvtx(CORE, 9, c_int, [c_char_p], b"deep") == depth
    for depth in reversed(range(100)):
        assert nvtx(CORE, 11, c_int, []) == depth
    assert names() == ["deep"] * 64


def test_without_tables():
    library = ctypes.CDLL(_nvtx.__file__)
    assert library.InitializeInjectionNvtx2(GET_EXPORT(lambda which: None)) == 0
