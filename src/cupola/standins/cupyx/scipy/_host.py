"""SciPy's functions for arrays of the device: arguments go to the host, and results come back."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any

import numpy

import cupola.numpy as _np
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
        raise AttributeError(f"cupola's stand-in for CuPy has no cupyx.scipy.{module}.{name}")
    if importlib.util.find_spec("scipy") is None:
        raise ImportError(
            f"cupyx.scipy.{module} in cupola's stand-in for CuPy computes with SciPy on the host: pip install scipy"
        )
    theirs = getattr(importlib.import_module(f"scipy.{module}"), name, None)
    if theirs is None:
        raise AttributeError(f"cupyx.scipy.{module}.{name} is not in the SciPy that is installed, which computes it")

    @functools.wraps(theirs)
    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        outs = {key: value for key, value in keywords.items() if isinstance(value, ndarray)}
        given = {key: to_host(value) for key, value in keywords.items()}
        found = theirs(*map(to_host, arguments), **given)
        for key in ("out", "output"):
            if key in outs:
                outs[key][...] = _np.asarray(given[key])
                return outs[key]
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
    if isinstance(value, numpy.generic) or (isinstance(value, numpy.ndarray) and value.dtype.kind in "biufc"):
        return _np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(map(to_device, value))
    return value
