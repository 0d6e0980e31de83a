"""The texts of errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cupola import CUDAError, OutOfMemoryError
from cupola.bindings import driver
from cupola.core.base import _errors
from cupola.cpu.reports import faults
from cupola.cpu.reports.kinds import CHECKS
from cupola.pathfinder import _errors as _finder_errors

PAGE = Path(__file__).resolve().parents[3] / "docs" / "troubleshooting.md"


@pytest.mark.parametrize("name", sorted(_errors.HINTS))
def test_hints_are_of_real_errors_and_on_the_page(name):
    assert isinstance(getattr(driver.CUresult, name), driver.CUresult)
    row = re.search(rf"^\| `{name}` \| .+? \| (.*) \|$", PAGE.read_text(), re.M)
    assert row is not None and row[1] == _errors.HINTS[name]


def test_the_page_has_every_status_fault_and_check():
    page = PAGE.read_text()
    names = re.findall(r"^\| `(CUDA_ERROR_\w+)` \|", page, re.M)
    assert names == sorted(status.name for status in driver.CUresult if status)
    for summary in faults._SUMMARIES.values():
        assert f"| {summary} |" in page
    findings = page.partition("## Findings of checks")[2].partition("\n## ")[0]
    assert set(CHECKS) == set(re.findall(r"^\| `(\w+)` \| .* \| .* \|$", findings, re.M))
    errors = [name for name in vars(_finder_errors) if name.endswith("Error")]
    assert errors and not [name for name in errors if f"`{name}`" not in page]


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
    assert isinstance(error, MemoryError) == isinstance(error, OutOfMemoryError) == (arguments[0] == 2)
    assert isinstance(error, CUDAError) and str(error).startswith(text)
    assert (error.status, error.name, error.call) == (arguments[0], arguments[1], arguments[3])
    # Where the driver has said something more precise, the hint would only distract.
    assert str(error).count("\n") <= 1
