"""NumPy programs on the device: ``import cupola.numpy as np``.

What is not there yet raises an AttributeError that names it. Importing the package loads nothing else; the first use of
a name loads all names (_namespace.py), but fft, lib, linalg and random, which are loaded when they are named.
"""

from __future__ import annotations

from importlib import import_module as _import_module

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.numpy import fft as fft
    from cupola.numpy import lib as lib
    from cupola.numpy import linalg as linalg
    from cupola.numpy import random as random
    from cupola.numpy._ndarray import ndarray as ndarray
    from cupola.numpy._report import report as report
    from cupola.numpy._ufunc import ufunc as ufunc
    from cupola.numpy.functions._types import __array_namespace_info__ as __array_namespace_info__

_PARTS = ("fft", "lib", "linalg", "random")
_DUNDERS = ("__all__", "__array_api_version__", "__array_namespace_info__")


def _load() -> None:
    if "__all__" in globals():
        return
    names = _import_module("cupola.numpy._namespace")
    globals().update({name: getattr(names, name) for name in (*names.__all__, "__all__") if name not in _PARTS})


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return _import_module(f"cupola.numpy.{name}")
    # Modules of this package are not among the names.
    if name in _DUNDERS or not name.startswith("_"):
        _load()
        if name in globals():
            return globals()[name]
        raise AttributeError(_import_module("cupola.numpy._namespace").missing(name))
    raise AttributeError(f"module 'cupola.numpy' has no attribute {name!r}")


def __dir__() -> list[str]:
    _load()
    return sorted({*globals(), *_PARTS})
