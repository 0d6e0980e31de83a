"""Linking the fat binaries of a program of nvcc."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.images.containers import open_image
from cupola.cpu.compiler.images.linking import link_fat_binaries

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
CALLS = """
.extern .func (.param .b32 result) {name};
.visible .entry kernel() {{
    .reg .b32 %r<2>;
    {{
        .param .b32 given;
        call.uni (given), {name};
        ld.param.b32 %r1, [given];
    }}
    ret;
}}
"""
DEFINES = (
    ".visible .func (.param .b32 result) other { .reg .b32 %r<2>; mov.b32 %r1, 7; st.param.b32 [result], %r1; ret; }"
)


def program(*texts: str) -> list[bytes]:
    return [(HEAD + text).encode() for text in texts]


def test_files_are_one_module():
    text = open_image(link_fat_binaries(program(CALLS.format(name="other"), DEFINES), 90)).ptx
    assert "kernel" in text and "other" in text and ".extern" not in text


@pytest.mark.parametrize(
    ("files", "status", "message"),
    [
        (program(CALLS.format(name="other")), "CUDA_ERROR_INVALID_PTX", "undefined reference to 'other'"),
        (
            program(CALLS.format(name="__cudaCDP2NoSuchFunction")),
            "CUDA_ERROR_CDP_NOT_SUPPORTED",
            r"kernels that launch kernels \(dynamic parallelism\) need .* '__cudaCDP2NoSuchFunction'",
        ),
        ([b"\x7fELF" + bytes(60)], "CUDA_ERROR_NO_BINARY_FOR_GPU", "'1': the cubin holds machine code"),
    ],
)
def test_what_does_not_fit(files, status, message):
    with pytest.raises(ImageError, match=message) as caught:
        link_fat_binaries(files, 90)
    assert caught.value.status == status
