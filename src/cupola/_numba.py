"""numba on the CPU device: its errors say why a call failed, and its kernels have lines while somebody looks at them.

numba-cuda and numba-cuda-mlir raise an error of their own with the number of CUDA's status only. The line tables of
their kernels are left out unless ``jit`` is called with ``lineinfo=True``; with them the code is the same.

`install` is called by ``cupola run`` and the pytest plugin. It imports nothing of numba.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from cupola._after_import import after_import
from cupola.bindings import _provider

MODULES = ("numba.cuda.cudadrv.driver", "numba_cuda_mlir.numba_cuda.cudadrv.driver")
DECORATORS = ("numba.cuda.decorators", "numba_cuda_mlir.numba_cuda.decorators")


def install() -> None:
    """Have numba's errors give the CPU device's explanation, and its kernels lines where these are asked for."""
    for name in MODULES:
        after_import(name, _explain)
    for name in DECORATORS:
        after_import(name, _add_lines)


def _add_lines(module: ModuleType) -> None:
    plain = getattr(module, "jit", None)
    if plain is None:
        return

    @functools.wraps(plain)
    def jit(*arguments: Any, **options: Any) -> Any:
        debug = options.get("debug")
        if debug is None:
            debug = getattr(getattr(module, "config", None), "CUDA_DEBUGINFO_DEFAULT", False)
        if _provider.is_observed() and not debug and len(arguments) < 2:  # numba knows either lines or debug=True
            options.setdefault("lineinfo", True)
        return plain(*arguments, **options)

    module.jit = jit  # type: ignore[attr-defined]


def _explain(module: ModuleType) -> None:
    error = getattr(module, "CudaAPIError", None)
    if error is None:
        return
    from cupola.bindings.utils import explain

    plain = error.__init__

    def init(self: Any, code: Any, msg: str) -> None:
        reason = explain(int(code))
        plain(self, code, f"{msg}\n{reason}" if reason else msg)

    error.__init__ = init
