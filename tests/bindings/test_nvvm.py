"""libNVVM: a module in NVVM IR to PTX."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cupola.bindings import nvvm
from cupola.bindings._provider import FunctionNotFoundError

MODULE = """
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64\
-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"

define void @store(i32* %p) {
  store i32 42, i32* %p
  ret void
}

!nvvm.annotations = !{!0}
!0 = !{void (i32*)* @store, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 MAJOR, i32 MINOR, i32 DEBUG_MAJOR, i32 DEBUG_MINOR}
"""


def text() -> bytes:
    module = MODULE
    for name, number in zip(
        ("DEBUG_MAJOR", "DEBUG_MINOR", "MAJOR", "MINOR"), _reordered(nvvm.ir_version()), strict=True
    ):
        module = module.replace(name, str(number))
    return module.encode()


def _reordered(version: tuple[int, int, int, int]) -> tuple[int, ...]:
    return (*version[2:], *version[:2])


@pytest.fixture
def program() -> Iterator[int]:
    handle = nvvm.create_program()
    yield handle
    assert nvvm.destroy_program(handle) is None


def test_versions():
    major, minor = nvvm.version()
    assert (major, minor) >= (2, 0) and len(nvvm.ir_version()) == 4
    try:
        assert nvvm.llvm_version("compute_90") >= 7
    except FunctionNotFoundError as error:  # new in the libNVVM of CUDA 13
        assert "nvvmLLVMVersion" in str(error)
    assert nvvm.get_error_string(nvvm.Result.ERROR_COMPILATION) == "NVVM_ERROR_COMPILATION"


def test_compile(program):
    module = text()
    nvvm.add_module_to_program(program, module, len(module), "store.ll")
    nvvm.verify_program(program, 0, None)
    nvvm.compile_program(program, 2, ["-arch=compute_90", "-opt=3"])
    ptx = bytearray(nvvm.get_compiled_result_size(program))
    nvvm.get_compiled_result(program, ptx)
    assert b".target sm_90" in ptx and b".entry store(" in ptx and b", 42;" in ptx
    log = bytearray(nvvm.get_program_log_size(program))
    nvvm.get_program_log(program, log)
    assert log == b"\0"


def test_bad_ir_shows_the_log(program):
    bad = text().replace(b"store i32 42", b"store i32 %missing")
    with pytest.raises(nvvm.nvvmError) as caught:
        nvvm.add_module_to_program(program, bad, len(bad), "bad.ll")
        nvvm.compile_program(program, 0, [])
    assert caught.value.status == nvvm.Result.ERROR_COMPILATION
    assert str(caught.value) == "ERROR_COMPILATION (9)"
    assert "missing" in "".join(caught.value.__notes__)


def test_errors(program):
    with pytest.raises(nvvm.nvvmError, match=r"ERROR_NO_MODULE_IN_PROGRAM \(8\)"):
        nvvm.compile_program(program, 0, [])
    with pytest.raises(nvvm.nvvmError, match=r"ERROR_INVALID_PROGRAM \(5\)"):
        nvvm.get_compiled_result_size(0)
    with pytest.raises(nvvm.nvvmError, match=r"ERROR_INVALID_PROGRAM \(5\)"):
        nvvm.get_compiled_result(0, bytearray(4))
