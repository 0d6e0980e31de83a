"""Calls of cuSOLVER for the matrices of a stack, one after the other, and what they report.

cuSOLVER reads columns first. A stack is therefore copied with its matrices transposed, `columns_first`; what is written
there is read as the transposed matrix.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from cupola.bindings import cusolver_dn as cusolver
from cupola.numpy._handles import handle
from cupola.numpy._ndarray import empty, ndarray, on_device

LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


def given(x: Any, square: bool = False) -> tuple[ndarray, numpy.dtype]:
    """The matrices, and the type in which they are computed."""
    values = on_device(x)
    if values.ndim < 2:
        raise numpy.linalg.LinAlgError(f"{values.ndim}-dimensional array given. Array must be at least two-dimensional")
    if square and values.shape[-1] != values.shape[-2]:
        raise numpy.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return values, computed(values.dtype)


def computed(*dtypes: numpy.dtype) -> numpy.dtype:
    """The type in which matrices of these types are computed."""
    for one in dtypes:
        if one.char == "e":
            raise TypeError("array type float16 is unsupported in linalg")
    return numpy.result_type(*[one if one.kind in "fc" else numpy.dtype(float) for one in dtypes])


def real_of(dtype: numpy.dtype) -> numpy.dtype:
    """The type of the real parts."""
    return numpy.dtype(dtype.char.lower())


def columns_first(x: ndarray, dtype: numpy.dtype) -> ndarray:
    """A copy of matrices with columns in one piece: an array of the transposed matrices."""
    turned = x.mT
    made = empty((math.prod(x.shape[:-2]), *turned.shape[-2:]), dtype)
    made._part(slice(None))[...] = turned.reshape(made.shape)
    return made


def function(name: str, dtype: numpy.dtype) -> Any:
    """A function of cuSOLVER for a type: ``getrf`` is ``dgetrf`` for float64; for complex types names may differ."""
    if dtype.kind == "c":
        plain = name.removesuffix("_buffer_size")
        name = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd"}.get(plain, plain) + name[len(plain) :]
    return getattr(cusolver, LETTERS[dtype.char] + name)


def solver() -> int:
    """The handle of cuSOLVER in the current stream."""
    return handle(cusolver)


def address(x: ndarray, k: int = 0) -> int:
    """The address of matrix, vector or number `k` of a stack in one piece."""
    plain = x._plain()
    return int(plain.handle) + k * (plain.strides[0] if plain.ndim else 0)


def check(info: ndarray, message: str, *numbers: ndarray) -> None:
    """Raise a LinAlgError if a call has failed, or has given what is no number. Waits for them."""
    if info.to_numpy().any() or any([numpy.isnan(one.to_numpy()).any() for one in numbers]):
        raise numpy.linalg.LinAlgError(message)
