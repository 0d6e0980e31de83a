"""SciPy's functions for arrays of the device: arguments go to the host, and results come back."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
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
        names = [*parameters[: len(arguments)], *[""] * (len(arguments) - len(parameters)), *keywords]
        written = None
        for key, ours, copied in zip(names, [*arguments, *keywords.values()], [*host, *named.values()], strict=True):
            if isinstance(ours, ndarray) and (found is copied or key in results):
                ours[...] = _np.asarray(copied)
                if found is copied:
                    return ours
                written = ours if written is None else written
        return written if found is None and name not in WRITE_ONLY else to_device(found)

    parameters = _positional(theirs)
    results = RESULTS if not name.startswith("distance_transform") else ("distances", "indices")
    return wrapped


# Parameters that get results: SciPy returns something else then, or nothing, where CuPy returns the array but for one.
RESULTS = ("output", "out")
WRITE_ONLY = ("binary_hit_or_miss",)


def _positional(function: Any) -> list[str]:
    """The names of the parameters that arguments without a name belong to, as far as they are known."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


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
