"""NVRTC through ctypes, for tests that need real PTX: no part of cupola but the parser is under test here."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import pathlib
import re

import pytest


def _cuda_root() -> pathlib.Path | None:
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for root in sorted(pathlib.Path(folder).glob("cu1?"), reverse=True):
            if any(root.glob("lib/libnvrtc.so.*")):
                return root
    return None


@functools.cache
def library() -> ctypes.CDLL | None:
    """The loaded NVRTC, or None where it is not installed."""
    root = _cuda_root()
    names = [str(path) for path in root.glob("lib/libnvrtc.so.*")] if root else []
    for name in [*names, "libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


@functools.cache
def compile_ptx(source: str, *options: str, arch: str = "compute_90") -> str:
    """The PTX that NVRTC makes of ``source``; without the headers that it needs, the test is skipped, but not in CI."""
    nvrtc = library()
    assert nvrtc is not None
    root = _cuda_root()
    includes = [f"-I{root}/include", f"-I{root}/include/cccl"] if root else []
    arguments = [f"-arch={arch}", "-std=c++17", *includes, *options]
    program = ctypes.c_void_p()
    status = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"test.cu", 0, None, None)
    assert status == 0, status
    array = (ctypes.c_char_p * len(arguments))(*(argument.encode() for argument in arguments))
    status = nvrtc.nvrtcCompileProgram(program, len(arguments), array)
    size = ctypes.c_size_t()
    if status != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        text = log.value.decode()
        missing = re.search(r'cannot open source file "([^"]+)"', text)
        if missing and os.environ.get("CI", "").lower() not in {"1", "true"}:
            pytest.skip(f"the header {missing[1]} is not installed (nvidia-cuda-crt, nvidia-cuda-cccl)")
        raise AssertionError(text)
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return text.value.decode()
