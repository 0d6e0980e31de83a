"""Outcomes of the runtime's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from cupola.bindings import runtime


def ok(result: tuple[Any, ...]) -> Any:
    """The outputs of a call, which must have succeeded."""
    assert result[0] == runtime.cudaError_t.cudaSuccess, result[0]
    return result[1] if len(result) == 2 else result[1:]


def status(result: tuple[Any, ...]) -> str:
    """The name of a status; a failure is also the thread's last error, and is forgotten."""
    error = runtime.cudaError_t
    if result[0] not in (error.cudaSuccess, error.cudaErrorNotReady):
        assert runtime.cudaGetLastError()[0] == result[0]
    return result[0].name


def read(address: Any, count: int = 256, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    """What is at an address, after all work is done."""
    data = np.zeros(count, dtype)
    ok(runtime.cudaDeviceSynchronize())
    ok(runtime.cudaMemcpy(data, address, data.nbytes, runtime.cudaMemcpyKind.cudaMemcpyDefault))
    return data


def shape(x: int = 1, y: int = 1, z: int = 1) -> runtime.dim3:
    return runtime.dim3(x=x, y=y, z=z)
