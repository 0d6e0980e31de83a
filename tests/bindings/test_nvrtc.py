"""The bindings of NVRTC: compiling, logs, errors, and a missing library."""

from __future__ import annotations

import pytest

from cupola.bindings import nvrtc

SOURCE = (
    b'template<class T> __global__ void scale(T *x) { x[threadIdx.x] *= 2; }\nextern "C" __global__ void plain() {}\n'
)
OK = (nvrtc.nvrtcResult.NVRTC_SUCCESS,)


@pytest.fixture
def program():
    err, program = nvrtc.nvrtcCreateProgram(SOURCE, b"scale.cu", 0, [], [])
    assert err == 0
    yield program
    assert nvrtc.nvrtcDestroyProgram(program) == OK
    assert int(program) == 0, "NVRTC clears the handle through its address"


def test_version_and_architectures():
    err, major, minor = nvrtc.nvrtcVersion()
    assert err == 0 and major >= 12 and isinstance(minor, int)
    err, architectures = nvrtc.nvrtcGetSupportedArchs()
    assert err == 0 and 90 in architectures and architectures == sorted(architectures)


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_compile(program, kind):
    assert nvrtc.nvrtcAddNameExpression(program, b"scale<float>") == OK
    assert nvrtc.nvrtcCompileProgram(program, 1, (b"--gpu-architecture=compute_90",)) == OK
    err, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = kind(b" " * size)
    assert nvrtc.nvrtcGetPTX(program, ptx) == OK
    err, name = nvrtc.nvrtcGetLoweredName(program, b"scale<float>")
    assert err == 0 and name in bytes(ptx) and b".entry plain" in ptx


def test_headers_and_a_log():
    err, program = nvrtc.nvrtcCreateProgram(
        b'#include "two.h"\n__global__ void k() { int x = TWO; error }', None, 1, [b"#define TWO 2"], [b"two.h"]
    )
    err = nvrtc.nvrtcCompileProgram(program, 0, [])[0]
    assert err == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size)
    assert nvrtc.nvrtcGetProgramLog(program, log) == OK
    assert b'identifier "error" is undefined' in log
    nvrtc.nvrtcDestroyProgram(program)


def test_errors():
    assert nvrtc.nvrtcGetPTXSize(None) == (nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_PROGRAM, None)
    assert nvrtc.nvrtcGetErrorString(4) == (0, b"NVRTC_ERROR_INVALID_PROGRAM")
    with pytest.raises(RuntimeError, match="List is too small: 1 < 2"):
        nvrtc.nvrtcCompileProgram(1, 2, [b"-G"])
    with pytest.raises(TypeError, match="expected bytes, str found"):
        nvrtc.nvrtcCreateProgram("text", b"", 0, [], [])


def test_missing_library(run_python):
    source = """
import cupola.pathfinder as p
def load(name):
    raise p.DynamicLibNotFoundError(f'{name}: pip install "cupola[cu13]"')
p.load_nvidia_dynamic_lib = load
from cupola.bindings import nvrtc
try:
    nvrtc.nvrtcVersion()
except p.DynamicLibNotFoundError as error:
    print(error)
"""
    assert run_python(source).stdout.strip() == 'nvrtc: pip install "cupola[cu13]"'


def test_a_program_needs_a_valid_choice_of_device(run_python):
    """The CPU device keeps the source of a program for its errors, so the choice is looked at when it is made."""
    source = """
from cupola.bindings import nvrtc
for _ in range(2):
    try:
        nvrtc.nvrtcCreateProgram(b"", b"", 0, [], [])
    except ValueError as error:
        print(error)
print(nvrtc.nvrtcVersion()[0].name)
"""
    lines = run_python(source, CUPOLA_DEVICE="tpu").stdout.splitlines()
    assert lines == ["CUPOLA_DEVICE must be auto, gpu or cpu, got 'tpu'"] * 2 + ["NVRTC_SUCCESS"]
