"""numba on the CPU device: its errors say why a call failed, which names the kernel, the thread and the line.

numba-cuda and numba-cuda-mlir raise an error of their own with the number of CUDA's status only.

`install` is called by ``cupola run`` and the pytest plugin. It imports nothing of numba.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from cupola._after_import import after_import

MODULES = ("numba.cuda.cudadrv.driver", "numba_cuda_mlir.numba_cuda.cudadrv.driver")


def install() -> None:
    """Have the errors of numba's driver calls give the CPU device's explanation, too."""
    for name in MODULES:
        after_import(name, _change)


def _change(module: ModuleType) -> None:
    error = getattr(module, "CudaAPIError", None)
    if error is None:
        return
    from cupola.bindings.utils import explain

    plain = error.__init__

    def init(self: Any, code: Any, msg: str) -> None:
        reason = explain(int(code))
        plain(self, code, f"{msg}\n{reason}" if reason else msg)

    error.__init__ = init
