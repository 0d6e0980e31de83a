"""Callbacks of cuFFT are linked with the kernel that calls them, whether they are functions of C or of C++."""

from __future__ import annotations

import pytest

from cupola import Program, ProgramOptions
from cupola.cpu import callbacks

SIGNATURES = {
    0: "float2 NAME(void *data, unsigned long long at, void *, void *) { return ((float2 *)data)[at]; }",
    3: "double NAME(void *data, unsigned long long at, void *, void *) { return ((double *)data)[at]; }",
    4: "void NAME(void *data, unsigned long long at, float2 x, void *, void *) { ((float2 *)data)[at] = x; }",
}


@pytest.mark.parametrize("kind", SIGNATURES)
@pytest.mark.parametrize("linkage", ["", 'extern "C" '])
def test_the_callback_is_found(kind: int, linkage: str) -> None:
    source = f"{linkage}__device__ {SIGNATURES[kind].replace('NAME', 'mine')}"
    options = ProgramOptions(arch="sm_90", link_time_optimization=True)
    code = Program(source, "c++", options).compile("ltoir").code
    assert isinstance(code, bytes)
    ptx = callbacks.link("mine", code, kind, 90)
    assert b"cupola_callback" in ptx and not callbacks.missing(ptx)
    assert callbacks.missing(callbacks.link("other", code, kind, 90))
