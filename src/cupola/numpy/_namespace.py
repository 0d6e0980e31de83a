"""What ``cupola.numpy`` has.

Imported when a name of it is first used, or the first array is made.
"""

from __future__ import annotations

import difflib as _difflib
import sys as _sys

import numpy as _numpy

from cupola.numpy import _lazy, _methods, _user_kernels
from cupola.numpy._known import NAMESPACE as _NAMESPACE
from cupola.numpy._known import UFUNCS as _UFUNCS
from cupola.numpy._ndarray import ndarray as ndarray
from cupola.numpy._operations import ALIASES as _ALIASES
from cupola.numpy._report import report as report
from cupola.numpy._ufunc import ufunc as ufunc
from cupola.numpy.functions import (
    _choosing,
    _creation,
    _einsum,
    _numeric,
    _polynomials,
    _products,
    _reductions,
    _sets,
    _shapes,
    _sorting,
    _types,
)
from cupola.numpy.functions._types import __array_namespace_info__ as __array_namespace_info__

# NumPy's own types and constants, and what only looks at types or sets how arrays are printed.
_TYPES = [
    "bool_", "complex128", "complex64", "complexfloating", "dtype", "e", "euler_gamma", "exceptions", "float16",
    "float32", "float64", "floating", "format_float_positional", "generic", "get_printoptions", "index_exp", "inexact",
    "inf", "int16", "int32", "int64", "int8", "int_", "integer", "intp", "nan", "newaxis", "number", "pi",
    "printoptions",
    "s_", "set_printoptions", "signedinteger", "uint", "uint16", "uint32", "uint64", "uint8", "uintp",
    "unsignedinteger",
]  # fmt: skip

_ROOMS = (
    _creation,
    _shapes,
    _choosing,
    _reductions,
    _sorting,
    _sets,
    _types,
    _user_kernels,
    _numeric,
    _products,
    _einsum,
    _polynomials,
)
_FUNCTIONS = [name for room in _ROOMS for name in room.__all__]

assert _methods.METHODS  # which are set behind the class
globals().update({name: getattr(_numpy, name) for name in _TYPES})
globals().update({name: getattr(room, name) for room in _ROOMS for name in room.__all__})
globals().update(_UFUNCS)
globals().update({alias: _UFUNCS[name] for alias, name in _ALIASES.items()})
bool = _numpy.bool_
__array_api_version__ = "2024.12"

__all__ = sorted(
    {"__array_api_version__", "__array_namespace_info__", "bool", "fft", "linalg", "ndarray", "random", "report",
     "ufunc", *_TYPES, *_FUNCTIONS, *_UFUNCS, *_ALIASES}
)  # fmt: skip

_NAMESPACE.append(_sys.modules[__package__])


def complete_arrays() -> None:
    """Arrays have all that is set behind their class, since this module is imported."""
    _lazy.use(complete=True)


complete_arrays()


def missing(name: str) -> str:
    """What an AttributeError about a name says, with the name of the nearest function."""
    if hasattr(_numpy, name) and not name.startswith("_"):
        return f"cupola.numpy has no {name!r} yet; x.to_numpy() gives NumPy the elements, asarray() takes them back"
    near = _difflib.get_close_matches(name, __all__, 1)
    return f"module 'cupola.numpy' has no attribute {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
