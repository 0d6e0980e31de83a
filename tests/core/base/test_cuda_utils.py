"""`handle_return`, by which packages read what the bindings return."""

from __future__ import annotations

from typing import Any

import pytest

from cupola import CUDAError, OutOfMemoryError
from cupola.bindings import driver, nvrtc, runtime
from cupola.core.base import _errors
from cupola.core.base._cuda_utils import handle_return

R, T, N = driver.CUresult, runtime.cudaError_t, nvrtc.nvrtcResult


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ((R.CUDA_SUCCESS,), None),
        ((R.CUDA_SUCCESS, 5), 5),
        ((R.CUDA_SUCCESS, None), None),
        ((T.cudaSuccess, 1, 2), (1, 2)),
        ((N.NVRTC_SUCCESS, b"log"), b"log"),
    ],
)
def test_values(device: Any, result: tuple[Any, ...], value: object) -> None:
    assert handle_return(result) == value


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (R.CUDA_ERROR_INVALID_VALUE, CUDAError, r"CUDA_ERROR_INVALID_VALUE: invalid argument\n"),
        (R.CUDA_ERROR_OUT_OF_MEMORY, OutOfMemoryError, "CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
        (T.cudaErrorInvalidValue, CUDAError, "cudaErrorInvalidValue: invalid argument"),
        (N.NVRTC_ERROR_COMPILATION, _errors.NVRTCError, "NVRTC_ERROR_COMPILATION"),
        (1, RuntimeError, "1 is not a status"),
    ],
)
def test_errors(device: Any, status: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as raised:
        handle_return((status, 5))
    assert getattr(raised.value, "status", 1) == int(status)


def test_the_log_of_a_program(device: Any) -> None:
    program = nvrtc.nvrtcCreateProgram(b"nonsense", b"x.cu", 0, [], [])[1]
    with pytest.raises(_errors.NVRTCError, match="x.cu") as raised:
        handle_return(nvrtc.nvrtcCompileProgram(program, 0, []), handle=program)
    assert raised.value.name == "NVRTC_ERROR_COMPILATION"
