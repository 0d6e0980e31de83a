"""Handles of the bindings: numbers, comparisons, views of memory, and handles of other libraries."""

from __future__ import annotations

import ctypes

import pytest

from cupola.bindings import driver, nvrtc, runtime

S, P, D = driver.CUstream, driver.CUdeviceptr, driver.CUdevice


class Foreign:
    """A handle of another package: it converts to int and does nothing else."""

    def __int__(self):
        return 9


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda: repr(S(5)), "<CUstream 0x5>"),
        (lambda: repr(P(10)), "<CUdeviceptr 10>"),
        (lambda: repr(D(-1)), "<CUdevice -1>"),
        (lambda: repr(driver.CUhostFn(3)), "<CUhostFn 0x3>"),
        (lambda: (int(S()), int(S(5)), S(5).__index__(), hex(P(255))), (0, 5, 5, "0xff")),
        (lambda: (S(5) == S(5), S(5) == S(6), S(5) == 5, S(5) == driver.CUevent(5)), (True, False, False, False)),
        (lambda: (P(10) == P(10), P(10) == driver.CUdeviceptr_v2(10)), (True, True)),
        (lambda: (hash(S(5)), hash(D(-1)), len({P(3), P(3), P(4)})), (5, -2, 2)),
        (lambda: bool(S(0)), True),
        (lambda: int(S(driver.CUevent(3))), 3),
        (lambda: int(S(Foreign())), 9),
        (lambda: S(5).__cuda_stream__(), (0, 5)),
        (lambda: hasattr(driver.CUevent(5), "__cuda_stream__"), False),
        (lambda: issubclass(driver.CUdevice, driver.CUdevice_v1), True),
        (lambda: [driver.sizeof(c) for c in (S, P, D, driver.cuuint32_t)], [8, 8, 4, 4]),
        (lambda: (S.__module__, S.__name__), ("cupola.bindings.driver", "CUstream")),
        (lambda: repr(nvrtc.nvrtcProgram(2)), "<nvrtcProgram 0x2>"),
    ],
)
def test_behaviour(value, expected):
    assert value() == expected


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (lambda: S(None), TypeError),
        (lambda: S("a"), TypeError),
        (lambda: S(1.5), TypeError),
        (lambda: S(-1), OverflowError),
        (lambda: P(1 << 64), OverflowError),
        (lambda: driver.cuuint32_t(1 << 32), OverflowError),
        (lambda: D(1 << 31), OverflowError),
        (lambda: S(5) < S(6), TypeError),
        (lambda: P(5) + 1, TypeError),
        (lambda: S(1, 2, 3), TypeError),
        (lambda: driver.sizeof(driver.CUresult), TypeError),
        (lambda: driver.sizeof(nvrtc.nvrtcProgram), TypeError),
    ],
)
def test_errors(value, error):
    with pytest.raises(error):
        value()


def test_the_address_of_a_handle():
    handle = P(77)
    assert ctypes.c_uint64.from_address(handle.getPtr()).value == 77


def test_a_view_of_foreign_memory():
    memory = ctypes.c_uint64(7)
    with pytest.raises(ValueError, match=r"\(_ptr=5\): nothing can be at this address"):
        S(_ptr=5)
    handle = S(_ptr=ctypes.addressof(memory))
    assert int(handle) == 7
    memory.value = 8
    assert int(handle) == 8
    assert handle.getPtr() == ctypes.addressof(memory)
    assert S(9, ctypes.addressof(memory)) == S(9) and memory.value == 9


def test_callbacks_take_ctypes_functions():
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: None)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    record = driver.CUDA_HOST_NODE_PARAMS(fn=callback)
    assert int(record.fn) == address
    assert int(driver.CUhostFn(_ptr=ctypes.addressof(callback))) == address
    with pytest.raises(TypeError, match="an integer is required, got function"):
        record.fn = lambda data: None


def test_subclasses_are_handles():
    class Mine(driver.CUstream):
        pass

    assert Mine(5) == S(5) and repr(Mine(5)) == "<Mine 0x5>"


def test_memory_of_handles_is_used_again():
    """By all classes alike: of both modules, derived in Python, and more of them than are kept."""

    class Mine(driver.CUstream):
        pass

    for kind in (driver.CUstream, runtime.cudaStream_t, Mine, driver.CUdevice, driver.cuuint64_t, runtime.cudaArray_t):
        for _ in range(3):
            several = [kind(i) for i in range(200)]
            assert [int(handle) for handle in several] == list(range(200))
            assert all(type(handle) is kind for handle in several)
            del several
    for _ in range(200):
        assert driver.cuDriverGetVersion()[1] == driver.cuDriverGetVersion()[1]


def test_results_stay_what_they_were():
    driver.cuInit(0)
    first, second = driver.cuDeviceGet(0), driver.cuDeviceGet(0)
    assert first is not second and int(first[1]) == int(second[1]) == 0
    (status, _), third = driver.cuDeviceGet(0), driver.cuDeviceGet(0)
    assert status == 0 and len(first) == len(third) == 2
