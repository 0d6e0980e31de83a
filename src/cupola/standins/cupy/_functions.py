"""Functions of CuPy's namespace that cupola.numpy has not."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupy.cuda import memory, pinned_memory, runtime
from cupola.standins.cupy.cuda.device import get_device_id

__all__ = [
    "allclose", "array_equal", "array_equiv", "clear_memo", "fuse", "get_array_module", "get_default_memory_pool",
    "get_default_pinned_memory_pool", "is_available", "isclose", "memoize", "min_scalar_type", "row_stack",
    "show_config", "vectorize",
]  # fmt: skip

NAMESPACE: list[Any] = []  # the module cupy, once it is imported


def get_array_module(*args: Any) -> Any:
    """``cupy`` if there is an array of the device among the arguments, else ``numpy``."""
    return NAMESPACE[0] if any(isinstance(one, ndarray) for one in args) else numpy


def get_default_memory_pool() -> memory.MemoryPool:
    """The pool that arrays get their memory from."""
    return memory.default_pool


def get_default_pinned_memory_pool() -> pinned_memory.PinnedMemoryPool:
    """The pool of pinned memory."""
    return pinned_memory.default_pool


def is_available() -> bool:
    """Whether there is a device."""
    return bool(runtime.getDeviceCount() > 0)


def show_config(*, _full: bool = False) -> None:
    """Print what runs."""
    import cupola

    print(f"cupola's stand-in for CuPy, cupola {cupola.__version__}, on {cupola.Device().name}")


def fuse(*args: Any, **kwargs: Any) -> Any:
    """The function as it is: expressions are fused without it."""
    if len(args) == 1 and callable(args[0]):
        return args[0]
    return lambda function: function


# --- results that are kept ---------------------------------------------------------------------------------------

_kept: list[dict[Any, Any]] = []
_lock = threading.RLock()


def memoize(for_each_device: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Keep the results of a function, for each device if that is asked for."""

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        known: dict[Any, Any] = {}
        _kept.append(known)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            key = (get_device_id() if for_each_device else -1, args, frozenset(kwargs.items()))
            with _lock:
                if key not in known:
                    known[key] = function(*args, **kwargs)
                return known[key]

        return wrapped

    return decorator


def clear_memo() -> None:
    """Forget the results of all functions of `memoize`."""
    for known in _kept:
        known.clear()


# --- as NumPy -------------------------------------------------------------------------------------------------------


def _here(x: Any) -> Any:
    """An array of NumPy as one of the device; anything else as it is."""
    return _np.asarray(x) if isinstance(x, numpy.ndarray) else x


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether elements are close; arrays of NumPy are copied to the device."""
    return _np.isclose(_here(a), _here(b), rtol, atol, equal_nan)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as an array without dimensions; arrays of NumPy are copied to the device."""
    return isclose(a, b, rtol, atol, equal_nan).all()


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and elements are equal, as an array without dimensions; of two arrays of NumPy as one of its."""
    if isinstance(a1, numpy.ndarray) and isinstance(a2, numpy.ndarray):
        return numpy.bool_(numpy.array_equal(a1, a2, equal_nan))
    return _np.asarray(_np.array_equal(a1, a2, equal_nan))


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether elements are equal once shapes are broadcast, as an array without dimensions; as array_equal."""
    if isinstance(a1, numpy.ndarray) and isinstance(a2, numpy.ndarray):
        return numpy.bool_(numpy.array_equiv(a1, a2))
    return _np.asarray(_np.array_equiv(a1, a2))


def min_scalar_type(a: Any) -> numpy.dtype:
    """The type of an array, or the least one that has a number."""
    return a.dtype if isinstance(a, ndarray) else _np.min_scalar_type(a)


# CuPy calls the method of what it is given, which may be an array of NumPy: so is the result then.
OF_THEIR_OWN = ("amax", "amin", "dot", "max", "mean", "min", "prod", "ravel", "sort", "std", "sum", "var")
# It makes arrays of the device of what these are given.
OF_THE_DEVICE = ("average", "diff", "round", "around", "unique")


def _of_either(name: str) -> Any:
    """A function that takes an array of NumPy, too."""
    ours, theirs = getattr(_np, name), getattr(numpy, name)

    @functools.wraps(ours)
    def function(a: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(a, numpy.ndarray) and name in OF_THEIR_OWN:
            return theirs(a, *args, **kwargs)
        return ours(_here(a), *args, **kwargs)

    return function


OF_EITHER = {name: _of_either(name) for name in OF_THEIR_OWN + OF_THE_DEVICE}


def row_stack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """As ``vstack``."""
    return _np.vstack(tup, dtype=dtype, casting=casting)


class vectorize:
    """A function of numbers as a function of arrays, computed by the host.

    Parameters
    ----------
    pyfunc : callable
        Is called for each element.
    **keywords
        As ``numpy.vectorize``.
    """

    def __init__(self, pyfunc: Any, **keywords: Any) -> None:
        self.pyfunc = pyfunc
        self._host = numpy.vectorize(pyfunc, **keywords)

    def __call__(self, *args: Any) -> Any:
        return _np.asarray(self._host(*[one.get() if isinstance(one, ndarray) else one for one in args]))
