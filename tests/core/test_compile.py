"""The short ways from a source to its kernels: cupola.compile and Program.kernel."""

from __future__ import annotations

import numpy as np
import pytest

import cupola
from cupola import CUDAError, NVRTCError, Program, ProgramOptions
from cupola.pathfinder import find_nvidia_header_directory
from cupola.utils import InMemoryProgramCache

SOURCE = """
extern "C" __global__ void plain(int* x) { *x = 1; }
__global__ void mangled(int* x) { *x = 2; }
template <typename T> __global__ void scale(T* x, T by) { *x *= by; }
"""


def run(device, kernel, *arguments, dtype=np.int32):
    x = device.full(1, 3, dtype)
    kernel[1, 1](x, *arguments)
    return x.to_numpy()[0]


@pytest.fixture
def cache():
    return InMemoryProgramCache()


@pytest.mark.unchecked(reason="checked programs are compiled anew")
def test_compile(device, cache):
    for _ in range(2):  # compiled, and from the cache
        code = cupola.compile(SOURCE, "scale<float>", "mangled", cache=cache)
        assert run(device, code.get_kernel("plain")) == 1
        assert run(device, code.get_kernel("mangled")) == 2
        assert run(device, code.get_kernel("scale<float>"), 2, dtype=np.float32) == 6
        with pytest.raises(TypeError, match="is a float"):  # the types of the parameters are known, too
            code.get_kernel("scale<float>")[1, 1](device.zeros(1, np.float32), np.int32(1))
        assert len(cache) == 2


@pytest.mark.unchecked(reason="checked programs are compiled anew")
def test_compile_twice_without_compiling(device, cache, monkeypatch):
    cupola.compile(SOURCE, cache=cache)
    monkeypatch.setattr(Program, "compile", None)
    assert run(device, cupola.compile(SOURCE, cache=cache).get_kernel("plain")) == 1


@pytest.mark.unchecked(reason="checked programs are compiled anew")
def test_compile_on_disk(device, tmp_path, monkeypatch):
    from cupola.core import _compile

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_compile, "_default_cache", _compile._default_cache.__wrapped__)
    cupola.compile(SOURCE)
    assert list((tmp_path / "cupola" / "program-cache" / "entries").glob("*/*"))


def test_compile_with_options(device, cache):
    source = 'extern "C" __global__ void k(int* x) { *x = V; }'
    assert run(device, cupola.compile(source, options={"define_macro": ("V", "7")}, cache=cache).get_kernel("k")) == 7
    options = ProgramOptions(define_macro=("V", "8"))
    assert run(device, cupola.compile(source, options=options, cache=cache).get_kernel("k")) == 8
    assert run(device, cupola.compile(source, options=options, cache=False).get_kernel("k")) == 8


def test_compile_what_no_key_covers(device, cache, tmp_path):
    (tmp_path / "mine.h").write_text("#define V 9")
    source = '#include "mine.h"\nextern "C" __global__ void k(int* x) { *x = V; }'
    code = cupola.compile(source, options={"include_path": str(tmp_path)}, cache=cache)
    assert run(device, code.get_kernel("k")) == 9
    assert not len(cache)


def test_compile_finds_headers(device, cache):
    if find_nvidia_header_directory("cudart") is None:
        pytest.skip("the headers of CUDA are not installed")
    source = '#include <cuda_fp16.h>\nextern "C" __global__ void k(__half* x) { *x = __float2half(1.5f); }'
    assert run(device, cupola.compile(source, cache=cache).get_kernel("k"), dtype=np.float16) == 1.5


def test_compile_refuses(device):
    with pytest.raises(TypeError, match="bool or a ProgramCacheResource"):
        cupola.compile(SOURCE, cache="folder")
    with pytest.raises(NVRTCError):
        cupola.compile("no")
    with pytest.raises(TypeError):
        cupola.compile(SOURCE, options={"arhc": "sm_90"})


def test_program_kernel(device):
    program = Program(SOURCE, "c++")
    assert run(device, program.kernel("plain")) == 1
    assert run(device, program.kernel("mangled")) == 2
    assert run(device, program.kernel("scale<int>"), 5) == 15
    assert program.kernel("plain") is program.kernel("plain")
    assert program.compile("cubin", name_expressions=("scale<double>",)).get_kernel("scale<double>")
    with pytest.raises(CUDAError, match="there is no kernel 'other'"):
        program.kernel("other")
    with pytest.raises(NVRTCError):
        program.kernel("scale<other>")
    program.close()
    with pytest.raises(RuntimeError, match="closed"):
        program.kernel("plain")


def test_kernel_of_ptx(device):
    ptx = Program(SOURCE, "c++").compile("ptx").code.decode()
    program = Program(ptx, "ptx")
    assert run(device, program.kernel("plain")) == 1
    with pytest.raises(CUDAError, match="there is no kernel"):
        program.kernel("other")
