"""NumPy programs on the device: ``import cupola.numpy as np``.

The first part of it: arrays, elementwise functions, reductions, basic indices. What is not there yet raises an
AttributeError that names it.
"""

from __future__ import annotations

import sys as _sys
from typing import Any

import numpy as _numpy

from cupola.numpy import _functions
from cupola.numpy._known import NAMESPACE as _NAMESPACE
from cupola.numpy._known import UFUNCS as _UFUNCS
from cupola.numpy._ndarray import array as array
from cupola.numpy._ndarray import empty as empty
from cupola.numpy._ndarray import mean as mean
from cupola.numpy._ndarray import ndarray as ndarray
from cupola.numpy._operations import ALIASES as _ALIASES
from cupola.numpy._ufunc import ufunc as ufunc

# NumPy's own types and constants, and what only looks at types.
_TYPES = [
    "bool_", "can_cast", "complex128", "complex64", "dtype", "e", "finfo", "float16", "float32", "float64", "iinfo",
    "inf", "int16", "int32", "int64", "int8", "nan", "newaxis", "pi", "result_type", "uint16", "uint32", "uint64",
    "uint8",
]  # fmt: skip

_FUNCTIONS = [
    "all", "any", "arange", "asarray", "asnumpy", "broadcast_to", "clip", "copy", "empty_like", "expand_dims", "eye",
    "flip", "full", "full_like", "linspace", "max", "min", "moveaxis", "ones", "ones_like", "prod", "ravel", "reshape",
    "squeeze", "sum", "swapaxes", "transpose", "where", "zeros", "zeros_like",
]  # fmt: skip

globals().update({name: getattr(_numpy, name) for name in _TYPES})
globals().update({name: getattr(_functions, name) for name in _FUNCTIONS})
globals().update(_UFUNCS)
globals().update({alias: _UFUNCS[name] for alias, name in _ALIASES.items()})
bool = _numpy.bool_

__all__ = sorted(["array", "bool", "empty", "mean", "ndarray", "ufunc", *_TYPES, *_FUNCTIONS, *_UFUNCS, *_ALIASES])

_NAMESPACE.append(_sys.modules[__name__])


def __getattr__(name: str) -> Any:
    if hasattr(_numpy, name) and not name.startswith("_"):
        raise AttributeError(
            f"cupola.numpy has no {name!r} yet; x.to_numpy() gives NumPy the elements, array() takes them back"
        )
    raise AttributeError(f"module 'cupola.numpy' has no attribute {name!r}")
