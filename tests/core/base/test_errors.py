"""The texts of errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from cupola import CUDAError
from cupola.bindings import driver
from cupola.core.base import _errors

PAGE = Path(__file__).resolve().parents[3] / "docs" / "errors.md"


@pytest.mark.parametrize("name", sorted(_errors.HINTS))
def test_hints_are_of_real_errors_and_on_the_page(name):
    assert isinstance(getattr(driver.CUresult, name), driver.CUresult)
    assert f"| `{name}` | {_errors.HINTS[name]} |\n" in PAGE.read_text()


def test_the_twenty_most_common_errors_have_a_hint():
    assert len(_errors.HINTS) >= 20


DETAILS = ["the address belongs to nothing"]


@pytest.mark.parametrize("arguments, text", [
    ((2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory", "cuMemAlloc", [], False),
     "CUDA_ERROR_OUT_OF_MEMORY: out of memory (cuMemAlloc)\nClose buffers that are no longer needed"),
    ((700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access", "cuCtxSynchronize", DETAILS, False),
     "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access (cuCtxSynchronize)\nthe address belongs to nothing"),
    ((3, "CUDA_ERROR_NOT_INITIALIZED", "", "cuInit", [], True),
     "CUDA_ERROR_NOT_INITIALIZED (cuInit)\nthis process was forked"),
    ((12345, "", "", "cuInit", [], False), "UNEXPECTED ERROR CODE: 12345 (cuInit)"),
])  # fmt: skip
def test_text(arguments, text):
    error = _errors.driver_error(*arguments)
    assert isinstance(error, CUDAError) and str(error).startswith(text)
    assert (error.status, error.name, error.call) == (arguments[0], arguments[1], arguments[3])
    # Where the driver has said something more precise, the hint would only distract.
    assert str(error).count("\n") <= 1
