"""CuPy's interface on cupola's arrays: what ``import cupy`` gives where :mod:`cupola.standins` says so.

Arrays are those of :mod:`cupola.numpy`, whose class gets the attributes that CuPy's has. Names that CuPy does not have
are not here either, so that what runs here also runs with CuPy. A name of CuPy that is missing raises an AttributeError
that says so.
"""

from __future__ import annotations

import sys as _sys
from typing import Any

import numpy as _numpy

import cupola.numpy as _np
from cupola.numpy._known import nearest as _nearest
from cupola.standins import VERSION as _VERSION
from cupola.standins import announce as _announce
from cupola.standins.cupy import _array, _creation, _functions
from cupola.standins.cupy import cuda as cuda
from cupola.standins.cupy import exceptions as exceptions
from cupola.standins.cupy import fft as fft
from cupola.standins.cupy import lib as lib
from cupola.standins.cupy import linalg as linalg
from cupola.standins.cupy import random as random
from cupola.standins.cupy import testing as testing
from cupola.standins.cupy import typing as typing
from cupola.standins.cupy._kernels import ElementwiseKernel as ElementwiseKernel
from cupola.standins.cupy._kernels import ReductionKernel as ReductionKernel
from cupola.standins.cupy._names import MISSING as _MISSING
from cupola.standins.cupy._names import NOT_IN_CUPY as _NOT_IN_CUPY
from cupola.standins.cupy._raw import RawKernel as RawKernel
from cupola.standins.cupy._raw import RawModule as RawModule

_announce()

# Types that are NumPy's own.
_TYPES = [
    "byte", "cdouble", "csingle", "double", "half", "intc", "long", "longlong", "mintypecode", "short", "single",
    "typename", "ubyte", "uintc", "ulong", "ulonglong", "ushort",
]  # fmt: skip

ndarray = _np.ndarray
assert ndarray.__module__ == _array.CUPY  # which has changed the class
globals().update({name: getattr(_numpy, name) for name in _TYPES if hasattr(_numpy, name)})
globals().update(
    {name: getattr(_np, name) for name in _np.__all__ if name not in _NOT_IN_CUPY and name not in globals()}
)
globals().update({name: getattr(_creation, name) for name in _creation.__all__})
globals().update({name: getattr(_functions, name) for name in _functions.__all__})
globals().update(_functions.OF_EITHER)

__version__ = _VERSION
# Programs ask the module for its name to tell it from NumPy. The module keeps its own __spec__.
__name__ = "cupy"
_functions.NAMESPACE.append(_sys.modules[__spec__.name])


def __getattr__(name: str) -> Any:
    if name in _MISSING:
        raise AttributeError(
            f"CuPy has cupy.{name}, and cupola's stand-in has not: {_MISSING[name]} (docs/coming-from-cupy.md)"
        )
    near = "" if name.startswith("_") else _nearest(name, globals())
    raise AttributeError(f"module 'cupy' has no attribute {name!r}{near}")
