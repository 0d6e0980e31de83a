"""Names and handles that are asked for and are none: the statuses and results of an H200 with driver 580."""

from __future__ import annotations

import ctypes

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import ok

PTX = b""".version 8.0
.target sm_75
.address_size 64
.visible .global .align 8 .u64 z[4];
.visible .entry k() { ret; }
\0"""
MARK = 77


@pytest.fixture
def loaded(context):
    """A module and a library by the letter that CASES has for them."""
    module, library = ok(driver.cuModuleLoadData(PTX)), ok(driver.cuLibraryLoadData(PTX, [], [], 0, [], [], 0))
    yield {"m": int(module), "l": int(library), "-": 0}
    ok(driver.cuModuleUnload(module))
    ok(driver.cuLibraryUnload(library))


def call(name: str, *arguments) -> str:
    address, _ = ok(driver.cuGetProcAddress(name.encode(), 12000, 0))
    types = [ctypes.c_char_p if isinstance(a, bytes) else ctypes.c_void_p for a in arguments]
    number = ctypes.CFUNCTYPE(ctypes.c_int, *types)(int(address))(*arguments)
    return driver.CUresult(number).name.removeprefix("CUDA_").removeprefix("ERROR_")


# A function, where it looks, the name, the status, and what is in its result then: as it was, or null.
CASES = [
    ("cuModuleGetFunction", "m", b"", "INVALID_VALUE", MARK),
    ("cuModuleGetFunction", "m", b"K", "NOT_FOUND", 0),
    ("cuModuleGetFunction", "m", b"z", "NOT_FOUND", 0),
    ("cuModuleGetFunction", "-", b"k", "INVALID_HANDLE", MARK),
    ("cuModuleGetTexRef", "m", b"", "INVALID_VALUE", MARK),
    ("cuModuleGetTexRef", "m", b"K", "NOT_FOUND", MARK),
    ("cuModuleGetSurfRef", "m", b"", "INVALID_VALUE", MARK),
    ("cuLibraryGetKernel", "l", b"K", "NOT_FOUND", MARK),
]


@pytest.mark.parametrize(("function", "where", "name", "status", "result"), CASES)
def test_functions_and_references(loaded, function, where, name, status, result):
    found = ctypes.c_uint64(MARK)
    assert call(function, ctypes.addressof(found), loaded[where], name) == status
    assert found.value == result


VARIABLES = [
    ("cuModuleGetGlobal", "m", b"", "INVALID_VALUE", 0),
    ("cuModuleGetGlobal", "m", b"K", "NOT_FOUND", 0),
    ("cuModuleGetGlobal", "-", b"z", "INVALID_HANDLE", 0),
    ("cuLibraryGetGlobal", "l", b"", "INVALID_VALUE", MARK),
    ("cuLibraryGetGlobal", "l", b"K", "NOT_FOUND", MARK),
    ("cuLibraryGetGlobal", "-", b"", "INVALID_VALUE", MARK),
    ("cuLibraryGetManaged", "l", b"", "INVALID_VALUE", MARK),
    ("cuLibraryGetManaged", "l", b"z", "NOT_FOUND", MARK),
]


@pytest.mark.parametrize(("function", "where", "name", "status", "result"), VARIABLES)
def test_variables(loaded, function, where, name, status, result):
    address, size = ctypes.c_uint64(MARK), ctypes.c_size_t(MARK)
    assert call(function, ctypes.addressof(address), ctypes.addressof(size), loaded[where], name) == status
    assert address.value == size.value == result


@pytest.mark.parametrize(("function", "where"), [("cuModuleGetGlobal", "m"), ("cuLibraryGetGlobal", "l")])
def test_a_variable_is_asked_for_its_address_or_its_size(loaded, function, where):
    size = ctypes.c_size_t(MARK)
    assert call(function, 0, ctypes.addressof(size), loaded[where], b"z") == "SUCCESS" and size.value == 32
    assert call(function, 0, 0, loaded[where], b"z") == "INVALID_VALUE"


@pytest.mark.cpu_only  # a GPU's driver may end the process
@pytest.mark.parametrize("function", ["cuFuncGetName", "cuKernelGetName", "cuFuncGetModule"])
def test_of_no_function(context, function):
    found = ctypes.c_uint64(0)
    assert call(function, ctypes.addressof(found), 0) == "INVALID_VALUE"
