"""What the tests of the emulated driver share. They call the driver through the bindings, so most run on a GPU too."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import HostWork, ok


@pytest.fixture
def context():
    """The primary context of device 0, current on this thread."""
    ok(driver.cuInit(0))
    device = ok(driver.cuDeviceGet(0))
    primary = ok(driver.cuDevicePrimaryCtxRetain(device))
    ok(driver.cuCtxSetCurrent(primary))
    yield primary
    ok(driver.cuCtxSynchronize())
    ok(driver.cuCtxSetCurrent(0))  # the release may destroy it, and a destroyed one must not stay current
    ok(driver.cuDevicePrimaryCtxRelease(device))


@pytest.fixture
def make_stream(context):
    """Make streams, destroyed behind the test: make_stream(flags=1, priority=0)."""
    made = []

    def make(flags: int = 1, priority: int = 0) -> Any:
        made.append(ok(driver.cuStreamCreateWithPriority(flags, priority)))
        return made[-1]

    yield make
    for stream in made:
        ok(driver.cuStreamDestroy(stream))


@pytest.fixture
def make_event(context):
    """Make events, destroyed behind the test: make_event(flags=0)."""
    made = []

    def make(flags: int = 0) -> Any:
        made.append(ok(driver.cuEventCreate(flags)))
        return made[-1]

    yield make
    for event in made:
        ok(driver.cuEventDestroy(event))


@pytest.fixture
def graph(context):
    made = ok(driver.cuGraphCreate(0))
    yield made
    driver.cuGraphDestroy(made)


@pytest.fixture
def host(context):
    work = HostWork()
    yield work
    work.close()


@pytest.fixture
def memory(context):
    """Pinned host memory that device and host can reach: 4096 zeroed bytes as a ctypes array of 1024 uint32."""
    address = ok(driver.cuMemHostAlloc(4096, 0))
    numbers = (ctypes.c_uint32 * 1024).from_address(int(address))
    ctypes.memset(numbers, 0, 4096)
    yield numbers
    ok(driver.cuMemFreeHost(address))
