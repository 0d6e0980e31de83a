"""Functions of the CUDA driver, with CuPy's names: ``cuCtxGetCurrent`` is ``ctxGetCurrent``."""

from __future__ import annotations

from typing import Any

from cupola.bindings import driver as _native
from cupola.standins.cupy._errors import CUDADriverError as CUDADriverError
from cupola.standins.cupy.cuda.runtime import _plain

_FUNCTIONS = [
    "ctxGetCurrent", "ctxGetDevice", "ctxSetCurrent", "devicePrimaryCtxRelease", "moduleUnload", "streamGetCtx",
]  # fmt: skip


def get_build_version() -> int:
    """The version of CUDA whose interface it is."""
    return int(_native.CUDA_VERSION)


def check_status(status: int) -> None:
    """Raise CUDADriverError for a status that is not success."""
    if int(status):
        raise CUDADriverError(status)


def _function(name: str) -> Any:
    native = getattr(_native, "cu" + name[0].upper() + name[1:])

    def call(*arguments: Any) -> Any:
        status, *results = native(*arguments)
        check_status(status)
        return None if not results else _plain(results[0] if len(results) == 1 else tuple(results))

    call.__name__ = call.__qualname__ = name
    return call


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        found = _function(name)
    elif name.startswith("CU_") and hasattr(_native.CUfunction_attribute, name):
        found = int(getattr(_native.CUfunction_attribute, name))
    else:
        raise AttributeError(
            f"cupola's stand-in for CuPy has no cupy.cuda.driver.{name}; cupola.bindings.driver has all of CUDA's"
        )
    globals()[name] = found
    return found
