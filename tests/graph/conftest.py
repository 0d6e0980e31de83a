"""Fixtures of the tests of graphs."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import PinnedMemoryResource, Program
from tests.graph.helpers import SETTERS, SOURCE


@pytest.fixture(scope="module")
def code():
    from cupola import Device

    device = Device(0)
    device.set_current()
    return Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")


@pytest.fixture(scope="module")
def setters():
    """Kernels that set a condition: below(x, limit, condition) and choose(x, divisor, condition)."""
    from cupola import Device

    device = Device(0)
    device.set_current()
    code = Program(SETTERS, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")
    return code.get_kernel("below"), code.get_kernel("choose")


@pytest.fixture(scope="module")
def kernels(code):
    return code.get_kernel("add"), code.get_kernel("times")


@pytest.fixture
def memory(device, stream):
    """A pinned int32 that kernels and the host share, as (buffer, array)."""
    with PinnedMemoryResource().allocate(4, stream=stream) as buffer:
        array = np.from_dlpack(buffer).view(np.int32)
        stream.sync()
        array[:] = 0
        yield buffer, array
