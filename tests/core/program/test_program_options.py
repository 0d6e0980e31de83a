"""Options and the compiler flags they become. No device is needed."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import fields
from pathlib import Path

import pytest

from cupola import CUDAError, LinkerOptions, Program, ProgramOptions
from cupola.core.program import _option_flags


def flags(backend="nvrtc", target=None, **options):
    return [flag.decode() for flag in ProgramOptions(arch="sm_90", **options).as_bytes(backend, target)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, []),
        ({"debug": False, "lineinfo": None}, []),
        ({"debug": True, "lineinfo": 1}, ["--device-debug", "--generate-line-info"]),
        ({"ftz": False, "fma": True}, ["--ftz=false", "--fmad=true"]),
        ({"relocatable_device_code": False}, ["--relocatable-device-code=false"]),
        ({"device_code_optimize": True}, ["--dopt=on"]),
        ({"device_code_optimize": False}, []),
        ({"max_register_count": 32}, ["--maxrregcount=32"]),
        ({"std": "c++20"}, ["--std=c++20"]),
        ({"define_macro": "A"}, ["--define-macro=A"]),
        ({"define_macro": ("A", "1")}, ["--define-macro=A=1"]),
        ({"define_macro": ["A", ("B", "2")]}, ["--define-macro=A", "--define-macro=B=2"]),
        ({"include_path": "/x"}, ["--include-path=/x"]),
        ({"include_path": Path("/x")}, ["--include-path=/x"]),
        ({"include_path": ("/x", Path("/y"))}, ["--include-path=/x", "--include-path=/y"]),
        ({"ptxas_options": ["-v", "-O2"]}, ["--ptxas-options=-v", "--ptxas-options=-O2"]),
        ({"diag_error": 1, "diag_warn": (2, 3)}, ["--diag-error=1", "--diag-warn=2", "--diag-warn=3"]),
        ({"device_float128": True, "device_int128": True}, ["--device-int128", "--device-float128"]),
        ({"use_fast_math": True}, ["--use_fast_math"]),
        ({"ofast_compile": "min"}, ["--Ofast-compile=min"]),
        ({"split_compile": 0}, ["--split-compile=0"]),
        ({"create_pch": "a.pch", "pch_messages": False}, ["--create-pch=a.pch", "--pch-messages=false"]),
        ({"extra_sources": [("a", "b")], "use_libdevice": True}, []),
    ],
    ids=repr,
)
def test_nvrtc_flags(options, expected):
    assert flags(**options) == ["-arch=sm_90", *expected]


def test_every_option_has_a_flag():
    without = {"name", "extra_sources", "use_libdevice", "cuda_headers"}
    assert {field.name for field in fields(ProgramOptions)} - without == {row[0] for row in _option_flags.NVRTC}


@pytest.mark.parametrize("option", ["ptxas_options", "include_path", "pre_include", "undefine_macro", "diag_error"])
@pytest.mark.parametrize("value", [{"a": 1}, b"x", 1.5, {"a"}])
def test_lists_are_never_dropped_silently(option, value):
    with pytest.raises(TypeError, match=option):
        flags(**{option: value})


@pytest.mark.parametrize("value", [("A", "1", "2"), ("A", 1), [("A",)], 5, {"A": "1"}, (("A", "1"), ("B", "2"))])
def test_bad_macros(value):
    with pytest.raises(RuntimeError, match="define_macro"):
        flags(define_macro=value)


def test_bundled_headers_go_to_the_user_cache(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert flags(use_bundled_headers=True)[1] == "--use-bundled-headers=/cache/cupola/nvrtc-bundled-headers"


def test_nvvm_flags():
    options = dict(debug=True, numba_debug=True, device_code_optimize=False, ftz=True, fma=False, pch=True)
    expected = ["-arch=compute_90", "-g", "-numba-debug", "-opt=0", "-ftz=1", "-fma=0"]
    assert flags("NVVM", **options) == expected
    assert flags("nvvm", "ltoir", **options) == [*expected, "-gen-lto"]
    assert flags("nvvm", device_code_optimize=True) == ["-arch=compute_90", "-opt=3"]
    with pytest.raises(CUDAError, match="lineinfo, std"):
        flags("nvvm", lineinfo=True, std="c++17", minimal=False)


def test_unknown_backend():
    with pytest.raises(ValueError, match="nvrtc"):
        flags("gcc")


def test_value_semantics():
    options = ProgramOptions(name=None, arch="sm_80")
    assert options.name == "default_program"
    assert repr(options) == "ProgramOptions(name='default_program', arch='sm_80')"
    assert options == ProgramOptions(arch="sm_80") and options != ProgramOptions(arch="sm_90")
    assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(TypeError):
        hash(options)
    with pytest.raises(TypeError, match="name"):
        ProgramOptions(name=5, arch="sm_80")


@pytest.mark.parametrize(
    ("sources", "error"),
    [
        (5, TypeError),
        ("text", TypeError),
        ([["a", "b"]], TypeError),
        ([("a", "b", "c")], TypeError),
        ([(1, "b")], TypeError),
        ([("a", 1)], TypeError),
        ([("a", "")], ValueError),
    ],
)
def test_bad_extra_sources(sources, error):
    with pytest.raises(error, match="extra_sources"):
        ProgramOptions(arch="sm_80", extra_sources=sources)


def test_debug_information_with_lines_is_no_conflict(device):
    options = ProgramOptions(arch=f"sm_{device.arch}", debug=True, lineinfo=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Program('extern "C" __global__ void nothing() {}', "c++", options).compile("cubin").get_kernel("nothing")


@pytest.mark.parametrize("options", [ProgramOptions, LinkerOptions])
def test_options_that_are_meant(options):
    with pytest.raises(TypeError, match="has no option 'optimize'; did you mean .*optimiz") as caught:
        options(optimize=3)
    assert "'time'" not in str(caught.value)
