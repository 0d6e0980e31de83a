"""What ``cupola.numpy`` has.

Imported when a name of it is first used, or the first array is made.
"""

from __future__ import annotations

import sys as _sys

import numpy as _numpy

from cupola.numpy import _lazy, _methods, _user_kernels
from cupola.numpy._known import NAMESPACE as _NAMESPACE
from cupola.numpy._known import UFUNCS as _UFUNCS
from cupola.numpy._known import nearest as _nearest
from cupola.numpy._ndarray import ndarray as ndarray
from cupola.numpy._operations import ALIASES as _ALIASES
from cupola.numpy._report import report as report
from cupola.numpy._ufunc import ufunc as ufunc
from cupola.numpy.functions import (
    _applied,
    _choosing,
    _creation,
    _einsum,
    _files,
    _grids,
    _numeric,
    _pairs,
    _poly1d,
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
    "base_repr", "binary_repr", "bool_", "byte", "cdouble", "complex128", "complex64", "complexfloating", "csingle",
    "double", "dtype", "e", "errstate", "euler_gamma", "exceptions", "float16", "float32", "float64", "floating",
    "format_float_positional", "format_float_scientific", "generic", "get_printoptions", "geterr", "half", "index_exp",
    "inexact", "inf", "int16", "int32", "int64", "int8", "int_", "intc", "integer", "intp", "iterable", "long",
    "longlong", "mintypecode", "nan", "newaxis", "number", "pi", "printoptions", "s_", "set_printoptions", "seterr",
    "short", "signedinteger", "single", "typecodes", "typename", "ubyte", "uint", "uint16", "uint32", "uint64", "uint8",
    "uintc", "uintp", "ulong", "ulonglong", "unsignedinteger", "ushort",
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
    _pairs,
    _products,
    _einsum,
    _polynomials,
    _poly1d,
    _applied,
    _files,
    _grids,
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
    {"__array_api_version__", "__array_namespace_info__", "bool", "fft", "lib", "linalg", "ndarray", "random",
     "report", "ufunc", *_TYPES, *_FUNCTIONS, *_UFUNCS, *_ALIASES}
)  # fmt: skip

_NAMESPACE.append(_sys.modules[__package__])


def complete_arrays() -> None:
    """Arrays have all that is set behind their class, since this module is imported."""
    _lazy.use(complete=True)


complete_arrays()


# Of NumPy's names that are not here: what does the same.
INSTEAD = {
    "asarray_chkfinite": "asarray and isfinite are there",
    "asmatrix": "arrays of two dimensions and @ are there",
    "broadcast": "broadcast_arrays and broadcast_shapes are there",
    "bmat": "block is there",
    "char": "text stays on the host",
    "complex256": "complex128 is the widest type",
    "datetime64": "times are numbers on a device: x.astype('datetime64[s]').view('int64') before asarray",
    "emath": "give the functions complex numbers: x.astype(complex)",
    "flatiter": "x.flat is there",
    "float128": "float64 is the widest type",
    "fromregex": "asarray(numpy.fromregex(...)) copies what it reads",
    "frompyfunc": "vectorize is there",
    "longdouble": "float64 is the widest type",
    "ma": "where=, the functions that leave out NaN, and x[mask] are there",
    "matrix": "arrays of two dimensions and @ are there",
    "memmap": "asarray(numpy.memmap(...)) copies a file to the device",
    "nditer": "ndenumerate and ndindex are there",
    "nested_iters": "ndindex is there",
    "object_": "objects of Python stay on the host",
    "polynomial": "poly1d, polyfit, polyval, roots, polyadd and the like are there",
    "rec": "structured dtypes are there",
    "recarray": "structured dtypes are there",
    "strings": "text stays on the host",
    "timedelta64": "times are numbers on a device: x.view('int64') before asarray",
}


def missing(name: str) -> str:
    """What an AttributeError about a name says, with the name of the nearest function."""
    if hasattr(_numpy, name) and not name.startswith("_"):
        near = _nearest(name, __all__, INSTEAD.get(name))
        back = "x.to_numpy() gives NumPy the elements, asarray() takes them back"
        return f"cupola.numpy has no {name!r} yet{near}; {back}".replace("?;", "?")
    return f"module 'cupola.numpy' has no attribute {name!r}" + _nearest(name, __all__)
