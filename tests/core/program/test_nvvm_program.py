"""NVVM IR programs: text and bitcode, several modules, libdevice, options. libNVVM is needed."""

from __future__ import annotations

import io
import math

import pytest

from cupola import CUDAError, LaunchConfig, Linker, PinnedMemoryResource, Program, ProgramOptions, launch
from cupola.bindings import nvvm
from cupola.core.program import _nvvm_compiler

try:
    VERSION = nvvm.ir_version()
except RuntimeError as error:
    pytest.skip(f"libNVVM cannot be loaded: {error}", allow_module_level=True)

HEAD = """
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-\
v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
"""
TAIL = f"""
!nvvmir.version = !{{!1}}
!1 = !{{i32 {VERSION[0]}, i32 {VERSION[1]}, i32 {VERSION[2]}, i32 {VERSION[3]}}}
"""


def kernel(function: str) -> str:
    """A kernel in IR that stores function(2.0f) at its argument; in LTO-IR it only stays if it is "used"."""
    return f"""{HEAD}
@llvm.used = appending global [1 x i8*] [i8* bitcast (void (float*)* @k to i8*)], section "llvm.metadata"
declare float @{function}(float)
define void @k(float* %p) {{
  %s = call float @{function}(float 2.0)
  store float %s, float* %p
  ret void
}}
!nvvm.annotations = !{{!0}}
!0 = !{{void (float*)* @k, !"kernel", i32 1}}
{TAIL}"""


SQUARE = f"""{HEAD}
define float @square(float %v) {{
  %s = fmul float %v, %v
  ret float %s
}}
{TAIL}"""


def run(code, stream):
    import numpy as np

    with PinnedMemoryResource().allocate(4, stream=stream) as buffer:
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("k"), buffer)
        stream.sync()
        return float(np.from_dlpack(buffer).view(np.float32)[0])


@pytest.mark.parametrize("form", [str, str.encode, lambda text: bytearray(text.encode())])
def test_several_modules(device, stream, form):
    options = ProgramOptions(name="mine", extra_sources=[("square", form(SQUARE))])
    program = Program(form(kernel("square")), "NVVM", options)
    assert program.backend == "NVVM" and isinstance(program.handle, int) and program.handle
    for _ in range(2):
        code = program.compile("ptx")
        assert (code.name, code.code_type) == ("mine", "ptx")
        assert run(code, stream) == 4.0
    program.close()
    assert program.handle == 0 and program.backend == "NVVM"
    with pytest.raises(RuntimeError, match="Program has been closed"):
        program.compile("ptx")


def test_libdevice(device, stream):
    code = Program(kernel("__nv_sinf"), "nvvm", {"use_libdevice": True}).compile("ptx")
    assert run(code, stream) == pytest.approx(math.sin(2.0), abs=1e-6)


@pytest.mark.skipif(Linker.which_backend() != "nvJitLink", reason="only nvJitLink links LTO-IR")
def test_ltoir_is_linked(device, stream):
    code = Program(kernel("square"), "nvvm", {"extra_sources": [("square", SQUARE)]}).compile("ltoir")
    assert code.code_type == "ltoir"
    assert run(Linker(code, options={"link_time_optimization": True}).link("cubin"), stream) == 4.0


@pytest.mark.parametrize(
    ("options", "expected", "forbidden"),
    [
        ({"ftz": True}, ".ftz", None),
        ({"ftz": False}, "", ".ftz"),
        ({"prec_div": True, "fma": False, "prec_sqrt": True}, "mul", None),
        ({"debug": True, "numba_debug": True}, "mul", None),  # what they do needs debug information in the IR
        ({"device_code_optimize": False}, "call", None),
        ({"device_code_optimize": True}, "mul", None),
        ({"arch": "sm_80"}, ".target sm_80", None),
        ({"arch": "compute_90"}, ".target sm_90", None),
    ],
    ids=repr,
)
def test_options_are_passed_on(options, expected, forbidden):
    settings = {"arch": "sm_90", "extra_sources": [("square", SQUARE)], **options}
    try:
        text = Program(kernel("square"), "nvvm", settings).compile("ptx").code.decode()
    except nvvm.nvvmError as error:
        if "-numba-debug is an unsupported option" not in str(error):
            raise
        pytest.skip("this libNVVM is too old for -numba-debug")
    assert expected in text
    assert forbidden is None or forbidden not in text


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        ("no IR at all", {}, r"ERROR_INVALID_IR \(6\)\nNVVM program log: .*parse"),
        (kernel("square"), {"arch": "sm_1"}, r"ERROR_INVALID_OPTION \(7\)\nNVVM program log: "),
    ],
)
def test_errors_carry_the_log(code, options, text):
    with pytest.raises(nvvm.nvvmError, match=text):
        Program(code, "nvvm", {"arch": "sm_90", **options}).compile("ptx")


def test_what_libnvvm_does_not_have():
    with pytest.raises(CUDAError, match="lineinfo, std"):
        Program(SQUARE, "nvvm", {"arch": "sm_90", "lineinfo": True, "std": "c++17"}).compile("ptx")
    with pytest.raises(ValueError, match="ptx, ltoir"):
        Program(SQUARE, "nvvm", {"arch": "sm_90"}).compile("cubin")


def test_logs_of_a_success():
    log = io.StringIO()
    Program(SQUARE, "nvvm", {"arch": "sm_90"}).compile("ptx", logs=log)
    assert "error" not in log.getvalue()


def test_without_libnvvm(monkeypatch):
    monkeypatch.setattr(_nvvm_compiler, "_unusable", "there is none")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="libNVVM, which cannot be loaded: there is none"):
            Program(SQUARE, "nvvm", {"arch": "sm_90"})
