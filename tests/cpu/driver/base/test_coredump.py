"""Settings of core dumps: kept for the process and for contexts, and refused as on an H200 with driver 580."""

from __future__ import annotations

import ctypes
import os
import socket

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import ok

# On a GPU the answers depend on what the process did before, and kernels of tests after these had no parameters.
pytestmark = pytest.mark.cpu_only

BAD, GOOD = "INVALID_VALUE", "SUCCESS"
ON_EXCEPTION, TRIGGER_HOST, LIGHTWEIGHT, USER_TRIGGER, FILE, PIPE, GENERATION, PAST = range(1, 9)


class Settings:
    """Of the process or of the current context."""

    def __init__(self, scope: str) -> None:
        self._get, self._set = (self._entry(f"cuCoredump{what}Attribute{scope}") for what in ("Get", "Set"))

    @staticmethod
    def _entry(name: str):
        address, _ = ok(driver.cuGetProcAddress(name.encode(), 12010, 0))
        return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(int(address))

    @staticmethod
    def _status(number: int) -> str:
        return driver.CUresult(number).name.removeprefix("CUDA_").removeprefix("ERROR_")

    def get(self, setting: int, size: int) -> str | bytes:
        buffer, room = ctypes.create_string_buffer(b"\xa5" * 1100, 1100), ctypes.c_size_t(size)
        result = self._status(self._get(setting, buffer, ctypes.byref(room)))
        assert room.value == size
        return buffer.raw[:size] if result == GOOD else result

    def size(self, setting: int) -> int | str:
        room = ctypes.c_size_t(0)
        result = self._status(self._get(setting, None, ctypes.byref(room)))
        return room.value if result == GOOD else result

    def set(self, setting: int, value: bytes) -> str:
        return self._status(self._set(setting, value, ctypes.byref(ctypes.c_size_t(len(value)))))


@pytest.fixture
def own(context):
    made = ok(driver.cuCtxCreate(None, 0, 0))
    yield Settings("")
    ok(driver.cuCtxDestroy(made))


@pytest.fixture
def process(context):
    made = Settings("Global")
    yield made
    for setting, value in ((ON_EXCEPTION, b"\0"), (LIGHTWEIGHT, b"\0"), (FILE, b""), (GENERATION, bytes(4))):
        assert made.set(setting, value) == GOOD


def test_of_a_context(own):
    assert [own.size(setting) for setting in range(9)] == [BAD, 1, 1, 1, BAD, 1024, BAD, 4, BAD]
    for setting in (ON_EXCEPTION, TRIGGER_HOST, LIGHTWEIGHT):
        for value, kept in ((b"\1", b"\1"), (b"\0", b"\0"), (b"\2", b"\1")):
            assert own.set(setting, value) == GOOD and own.get(setting, 1) == kept
        assert own.set(setting, bytes(4)) == own.get(setting, 4) == own.get(setting, 0) == BAD
    for value in (b"/tmp/a", b"/tmp/a\0", b"", b"x" * 1023, b"x" * 1024, b"core_%h_%p"):
        assert own.set(FILE, value) == GOOD and own.get(FILE, 1024) == value.ljust(1024, b"\0")
    assert own.set(FILE, b"x" * 2000) == BAD and own.get(FILE, 4) == b"core"
    for value in (b"\1\0\0\0", b"\xff\xff\xff\xff", bytes(4)):
        assert own.set(GENERATION, value) == GOOD and own.get(GENERATION, 4) == value
    assert own.set(GENERATION, b"\1") == own.set(GENERATION, bytes(8)) == own.get(GENERATION, 8) == BAD
    for setting in (0, USER_TRIGGER, PIPE, PAST, 99):
        assert own.set(setting, b"\1") == own.get(setting, 1) == BAD


def test_of_the_process(process):
    assert [process.size(setting) for setting in range(9)] == [BAD, 1, 1, 1, 1, 1024, 1024, 4, BAD]
    assert process.set(USER_TRIGGER, b"\1") == process.set(USER_TRIGGER, b"\0") == GOOD
    assert process.set(PIPE, b"/tmp/a") == "NOT_SUPPORTED"
    assert process.set(FILE, b"core_%h_%p") == GOOD
    name = f"core_{socket.gethostname()}_{os.getpid()}".encode()
    assert process.get(FILE, 1024) == name.ljust(1024, b"\0")
    for setting in (0, PAST, 99):
        assert process.set(setting, b"\1") == process.get(setting, 1) == BAD


def test_a_context_begins_with_those_of_the_process(process, context):
    before = Settings("")
    kept = before.get(LIGHTWEIGHT, 1)
    assert process.set(LIGHTWEIGHT, b"\1") == process.set(FILE, b"%p.core") == GOOD
    assert before.get(LIGHTWEIGHT, 1) == kept
    made = ok(driver.cuCtxCreate(None, 0, 0))
    own = Settings("")
    assert own.get(LIGHTWEIGHT, 1) == b"\1" and own.get(ON_EXCEPTION, 1) == b"\0"
    assert own.get(FILE, 1024) == f"{os.getpid()}.core".encode().ljust(1024, b"\0")
    ok(driver.cuCtxDestroy(made))


def test_without_a_context(process, context):
    ok(driver.cuCtxSetCurrent(0))
    own = Settings("")
    assert own.get(ON_EXCEPTION, 1) == own.set(ON_EXCEPTION, b"\0") == "INVALID_CONTEXT"
    assert process.get(ON_EXCEPTION, 1) == b"\0"
    ok(driver.cuCtxSetCurrent(context))
