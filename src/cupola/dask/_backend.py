"""The back end "cupola" of Dask's arrays: what ``dask.array.ones`` and others make when it is chosen."""

from __future__ import annotations

import sys
from typing import Any

from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch

import cupola.numpy as device_numpy

# Dask finds the random numbers that belong to a bit generator in the module named by the first part of its class's
# module, which is numpy or cupy. "cupola" is not an array package, so cupola.numpy has a name of one part for that.
_ALIAS = "_cupola_numpy"
sys.modules[_ALIAS] = device_numpy


class _Philox(device_numpy.random.Philox):
    __module__ = _ALIAS

    def __reduce__(self) -> Any:
        return _restored, super().__reduce__()[1]


def _restored(seed: Any, state: Any) -> _Philox:
    made = _Philox(seed)
    made.state = state
    return made


_numpy_backend: Any = array_creation_dispatch.dispatch("numpy")


def _creation(name: str) -> Any:
    """Dask's function of NumPy's back end, with chunks like an array of the device."""

    def function(*arguments: Any, meta: Any = None, **keywords: Any) -> Any:
        if meta is None:
            meta = device_numpy.empty((0,), keywords.get("dtype") or "float64")
        return getattr(_numpy_backend, name)(*arguments, meta=meta, **keywords)

    function.__name__ = name
    function.__doc__ = f"As ``dask.array.{name}``, with chunks on the device."
    return staticmethod(function)


class Backend(ArrayBackendEntrypoint):
    """Dask's arrays with chunks on the device: ``dask.config.set({"array.backend": "cupola"})``."""

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """The function that makes a chunk one of this back end."""
        return device_numpy.asarray

    @classmethod
    def to_backend(cls, data: Any, **keywords: Any) -> Any:
        """An array of Dask with its chunks on the device: ``x.to_backend("cupola")``."""
        if isinstance(data._meta, device_numpy.ndarray):
            return data
        meta = device_numpy.asarray(data._meta)
        return data.map_blocks(cls.to_backend_dispatch(), meta=meta, **keywords)

    @property
    def RandomState(self) -> Any:
        """The class behind ``dask.array.random`` for NumPy's older interface."""
        return device_numpy.random.RandomState

    @property
    def default_bit_generator(self) -> Any:
        """The class of bit generators that ``dask.array.random.default_rng`` takes."""
        return _Philox

    ones, zeros, empty, full = map(_creation, ("ones", "zeros", "empty", "full"))

    @staticmethod
    def arange(*arguments: Any, like: Any = None, **keywords: Any) -> Any:
        """As ``dask.array.arange``, with chunks on the device."""
        if like is None:
            like = device_numpy.empty((0,), keywords.get("dtype") or "float64")
        return _numpy_backend.arange(*arguments, like=like, **keywords)


if "cupola" not in array_creation_dispatch._lookup:  # where the package's entry points are not installed
    array_creation_dispatch.register_backend("cupola", Backend())
