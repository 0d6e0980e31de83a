"""SciPy's functions for arrays of the device: arguments go to the host, and results come back."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._known import nearest
from cupola.numpy._ndarray import ndarray

MODULES = ("fft", "linalg", "ndimage", "signal", "special", "stats")


def function(module: str, name: str, known: list[str]) -> Any:
    """The function `name` of a module of SciPy, for arrays of the device.

    Raises
    ------
    AttributeError
        When CuPy does not have it, or the installed SciPy.
    ImportError
        When SciPy is not installed.
    """
    if name.startswith("__"):
        raise AttributeError(f"module 'cupyx.scipy.{module}' has no attribute {name!r}")
    if name not in known:
        raise AttributeError(
            f"cupola's stand-in for CuPy has no cupyx.scipy.{module}.{name}: scipy.{module} may have it for x.get()"
            + nearest(name, known)
        )
    if importlib.util.find_spec("scipy") is None:
        raise ImportError(
            f"cupyx.scipy.{module} in cupola's stand-in for CuPy computes with SciPy on the host: pip install scipy"
        )
    theirs = getattr(importlib.import_module(f"scipy.{module}"), name, None)
    if theirs is None:
        raise AttributeError(f"cupyx.scipy.{module}.{name} is not in the SciPy that is installed, which computes it")

    @functools.wraps(theirs)
    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        host = list(map(to_host, arguments))
        named = {key: to_host(value) for key, value in keywords.items()}
        found = theirs(*host, **named)
        for ours, copied in zip([*arguments, *keywords.values()], [*host, *named.values()], strict=True):
            if found is copied and isinstance(ours, ndarray):  # an array for the result
                ours[...] = _np.asarray(found)
                return ours
        return to_device(found)

    return wrapped


def to_host(value: Any) -> Any:
    """Arrays of the device as arrays of NumPy, in sequences, too."""
    if isinstance(value, ndarray):
        return value.to_numpy()
    if isinstance(value, (list, tuple)) and any(isinstance(one, (ndarray, list, tuple)) for one in value):
        return type(value)(map(to_host, value))
    return value


def to_device(value: Any) -> Any:
    """Arrays of NumPy, and numbers that were made of arrays, as arrays of the device."""
    if isinstance(value, (numpy.generic, numpy.ndarray)) and value.dtype.kind in "biufc":
        return _np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(map(to_device, value))
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(to_device, value))
    if type(value) is dict:
        return {key: to_device(one) for key, one in value.items()}
    return value
