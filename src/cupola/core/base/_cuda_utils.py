"""What packages take from the private module ``cuda.core._utils.cuda_utils``: the exceptions, and `handle_return`."""

from __future__ import annotations

from typing import Any

from ._errors import HINTS, CUDAError, NVRTCError, OutOfMemoryError

__all__ = ["CUDAError", "NVRTCError", "handle_return"]


def handle_return(result: tuple[Any, ...], handle: object = None) -> Any:
    """What a function of the bindings has returned, without its status.

    Parameters
    ----------
    result
        The status, and what comes after it.
    handle
        The program of NVRTC whose log an error should have.

    Returns
    -------
    object
        None, the only value, or the tuple of the values.

    Raises
    ------
    CUDAError
        When the status is one of an error.
    """
    status, *values = result
    if error := _error(status, handle):
        raise error
    return tuple(values) if len(values) > 1 else values[0] if values else None


def _error(status: Any, handle: Any) -> CUDAError | None:
    from cupola.bindings import driver, nvrtc, runtime

    if not isinstance(status, (driver.CUresult, runtime.cudaError_t, nvrtc.nvrtcResult)):
        raise RuntimeError(f"{status!r} is not a status of the driver, the runtime or NVRTC")
    if int(status) == 0:
        return None
    kind: type[CUDAError] = CUDAError
    lines = [status.name]
    if isinstance(status, driver.CUresult):
        lines = [_described(status.name, driver.cuGetErrorString(status))]
        lines += filter(None, [HINTS.get(status.name)])
        kind = OutOfMemoryError if status.name == "CUDA_ERROR_OUT_OF_MEMORY" else CUDAError
    elif isinstance(status, runtime.cudaError_t):
        lines = [_described(status.name, runtime.cudaGetErrorString(status))]
    else:
        kind = NVRTCError
        if handle is not None:
            log = bytearray(nvrtc.nvrtcGetProgramLogSize(handle)[1] or 0)
            nvrtc.nvrtcGetProgramLog(handle, log)
            lines.append(bytes(log).rstrip(b"\0\n").decode(errors="replace"))
    return kind("\n".join(lines), name=status.name, status=int(status))


def _described(name: str, description: tuple[Any, bytes | None]) -> str:
    return f"{name}: {description[1].decode()}" if description[1] else name
