"""Statuses: their texts, the last error of a thread, errors that stay."""

from __future__ import annotations

import ctypes
import threading

import pytest

from cupola.bindings import driver, runtime
from tests.bindings.libcudart import installed
from tests.cpu.cudart.calls import ok, status

E = runtime.cudaError_t


def test_names_and_texts_are_those_of_libcudart():
    library = ctypes.CDLL(str(installed(13)))
    library.cudaGetErrorName.restype = library.cudaGetErrorString.restype = ctypes.c_char_p
    for error in [*E, 12345]:
        value = int(error)
        if library.cudaGetErrorName(value) == b"unrecognized error code" and value != 12345:
            continue  # an error that is newer than the library
        assert runtime.cudaGetErrorName(value)[1] == library.cudaGetErrorName(value), error
        assert runtime.cudaGetErrorString(value)[1] == library.cudaGetErrorString(value), error


def test_what_needs_no_device(run_python):
    source = """
from cupola.bindings import runtime as r
assert r.cudaGetErrorName(1)[1] == b"cudaErrorInvalidValue"
assert r.cudaGetErrorString(2)[1] == b"out of memory"
assert r.cudaRuntimeGetVersion()[1] >= 12000 and r.cudaDriverGetVersion()[1] >= 12000
assert r.cudaPeekAtLastError()[0] == r.cudaGetLastError()[0] == 0
assert r.cudaCreateChannelDesc(8, 8, 0, 0, r.cudaChannelFormatKind.cudaChannelFormatKindUnsigned)[1].y == 8
"""
    done = run_python(source)
    assert done.returncode == 0, done.stderr


def test_the_last_error_is_of_the_thread():
    assert runtime.cudaSetDevice(999)[0] == E.cudaErrorInvalidDevice
    seen = []
    thread = threading.Thread(target=lambda: seen.append(runtime.cudaPeekAtLastError()[0]))
    thread.start()
    thread.join()
    assert seen == [E.cudaSuccess]
    ok(runtime.cudaDeviceSynchronize())  # success does not clear it
    assert [runtime.cudaPeekAtLastError()[0] for _ in range(2)] == [E.cudaErrorInvalidDevice] * 2
    assert [runtime.cudaGetLastError()[0] for _ in range(2)] == [E.cudaErrorInvalidDevice, E.cudaSuccess]


def test_the_drivers_failures_are_not_the_runtimes():
    assert driver.cuMemFree(0xDEAD)[0] != 0
    assert runtime.cudaGetLastError()[0] == E.cudaSuccess


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: runtime.cudaSetDevice(-1), "cudaErrorInvalidDevice"),
        (lambda: runtime.cudaGetDeviceProperties(999), "cudaErrorInvalidDevice"),
        (lambda: runtime.cudaFree(0x1234), "cudaErrorInvalidValue"),
        (lambda: runtime.cudaMemcpy(0, 0, 4, 77), "cudaErrorInvalidMemcpyDirection"),
        (lambda: runtime.cudaMalloc(1 << 50), "cudaErrorMemoryAllocation"),
        (lambda: runtime.cudaDeviceGetAttribute(100000, 0), "cudaErrorInvalidValue"),
        (lambda: runtime.cudaGetSymbolAddress(0x1000), "cudaErrorInvalidSymbol"),
        (lambda: runtime.cudaGetSymbolSize(0x1000), "cudaErrorInvalidSymbol"),
        (lambda: runtime.cudaMemcpyToSymbol(0x1000, bytearray(4), 4, 0, 1), "cudaErrorInvalidSymbol"),
        (lambda: runtime.cudaMemcpyFromSymbol(bytearray(4), 0x1000, 4, 0, 2), "cudaErrorInvalidSymbol"),
        (lambda: runtime.cudaStreamCreateWithFlags(64), "cudaErrorInvalidValue"),
        (lambda: runtime.cudaDeviceDisablePeerAccess(999), "cudaErrorInvalidDevice"),
    ],
)
def test_statuses(call, expected):
    assert status(call()) == expected


FAULT = """
from cupola.bindings import nvrtc, runtime as r
import ctypes
p = r.cudaGetDeviceProperties(0)[1]
program = nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void bad(int *x) { *x = 1; }', b"bad.cu", 0, [], [])[1]
assert nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_%d%d" % (p.major, p.minor)])[0] == 0
cubin = bytearray(nvrtc.nvrtcGetCUBINSize(program)[1])
nvrtc.nvrtcGetCUBIN(program, cubin)
library = r.cudaLibraryLoadData(cubin, None, None, 0, None, None, 0)[1]
kernel = r.cudaLibraryGetKernel(library, b"bad")[1]
assert r.cudaLaunchKernel(kernel, r.dim3(), r.dim3(), ((16,), (ctypes.c_void_p,)), 0, None)[0] == 0
print(*(r.cudaError_t(call()[0]).name for call in (
    r.cudaDeviceSynchronize, r.cudaGetLastError, lambda: r.cudaMalloc(16), r.cudaDeviceSynchronize)))
"""
RECOVER = """
print(r.cudaGetLastError()[0].name, r.cudaDeviceReset()[0].name, r.cudaGetLastError()[0].name,
      r.cudaGetLastError()[0].name, r.cudaMalloc(16)[0].name)
"""


def test_an_asynchronous_error_stays(run_python):
    done = run_python(FAULT)
    assert done.stdout.split() == ["cudaErrorIllegalAddress"] * 4, done.stderr


@pytest.mark.cpu_only
def test_a_reset_clears_it(run_python):
    """The fault was still the last error of the thread, once."""
    done = run_python(FAULT + RECOVER)
    names = done.stdout.splitlines()[1].split()
    assert names == ["cudaErrorIllegalAddress", "cudaSuccess", "cudaSuccess", "cudaSuccess", "cudaSuccess"], done.stderr
