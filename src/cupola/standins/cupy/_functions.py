"""Functions of CuPy's namespace that cupola.numpy has not."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupy.cuda import memory, pinned_memory, runtime
from cupola.standins.cupy.cuda.device import get_device_id

__all__ = [
    "allclose", "apply_along_axis", "array2string", "array_equal", "array_equiv", "array_repr", "array_str",
    "base_repr", "binary_repr", "c_", "clear_memo", "common_type", "diag_indices", "diag_indices_from", "diagonal",
    "fromfile", "fromiter", "fromstring", "fuse", "genfromtxt", "get_array_module", "get_default_memory_pool",
    "get_default_pinned_memory_pool", "i0", "is_available", "isfortran", "iterable", "load", "loadtxt",
    "mask_indices", "memoize", "mgrid", "ndindex", "ogrid", "packbits", "poly", "polyadd", "polymul", "polysub", "r_",
    "roots", "row_stack", "save", "savetxt", "savez", "savez_compressed", "show_config", "tril_indices",
    "tril_indices_from", "triu_indices", "triu_indices_from", "unpackbits", "vectorize",
]  # fmt: skip

NAMESPACE: list[Any] = []  # the module cupy, once it is imported
ndindex = numpy.ndindex
base_repr, binary_repr = numpy.base_repr, numpy.binary_repr
iterable = numpy.iterable


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


# --- indices --------------------------------------------------------------------------------------------------------


def _indices(name: str) -> Any:
    ours = getattr(numpy, name)

    def function(*args: Any, **kwargs: Any) -> tuple[ndarray, ...]:
        return tuple(map(_np.asarray, ours(*args, **kwargs)))

    function.__name__, function.__doc__ = name, f"As ``numpy.{name}``."
    return function


diag_indices, tril_indices, triu_indices = map(_indices, ("diag_indices", "tril_indices", "triu_indices"))


def diag_indices_from(arr: ndarray) -> Any:
    """The indices of the diagonal of an array."""
    if arr.ndim < 2 or len({*arr.shape}) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(arr.shape[0], arr.ndim)


def tril_indices_from(arr: ndarray, k: int = 0) -> Any:
    """The indices of the lower triangle of an array."""
    return tril_indices(arr.shape[0], k, arr.shape[1])


def triu_indices_from(arr: ndarray, k: int = 0) -> Any:
    """The indices of the upper triangle of an array."""
    return triu_indices(arr.shape[0], k, arr.shape[1])


def mask_indices(n: int, mask_func: Any, k: Any = 0) -> Any:
    """The indices that a function leaves of a matrix of ones."""
    return _np.nonzero(mask_func(_np.ones((n, n)), k))


class _Grid:
    """As NumPy's object of that name, whose arrays are copied to the device."""

    def __init__(self, name: str) -> None:
        self._ours = getattr(numpy, name)

    def __getitem__(self, key: Any) -> Any:
        found = self._ours[_on_host(key)]
        return tuple(map(_np.asarray, found)) if isinstance(found, tuple) else _np.asarray(found)


mgrid, ogrid, r_, c_ = _Grid("mgrid"), _Grid("ogrid"), _Grid("r_"), _Grid("c_")


# --- as NumPy -------------------------------------------------------------------------------------------------------


def diagonal(a: ndarray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal as a view."""
    return a.diagonal(offset, axis1, axis2)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as an array without dimensions."""
    return _np.isclose(a, b, rtol, atol, equal_nan).all()


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and elements are equal, as an array without dimensions."""
    return _np.asarray(_np.array_equal(a1, a2, equal_nan))


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether elements are equal once shapes are broadcast, as an array without dimensions."""
    return _np.asarray(_np.array_equiv(a1, a2))


def row_stack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """As ``vstack``."""
    made: ndarray = _np.vstack(tup)
    return made if dtype is None else made.astype(dtype)


def isfortran(a: ndarray) -> bool:
    """Whether the array is column-major and not row-major."""
    return bool(a.flags.fnc)


def common_type(*arrays: Any) -> Any:
    """The floating-point type for arrays."""
    return numpy.common_type(*[numpy.empty(0, one.dtype) for one in arrays])


def apply_along_axis(func1d: Any, axis: int, arr: ndarray, *args: Any, **kwargs: Any) -> Any:
    """Apply a function to each row along an axis."""
    rows = _np.moveaxis(arr, axis, -1)
    outer = rows.shape[:-1]
    parts = [_np.asarray(func1d(row, *args, **kwargs)) for row in rows.reshape(-1, rows.shape[-1])]
    made = _np.stack(parts).reshape(*outer, *parts[0].shape)
    return _np.moveaxis(made, -1, axis) if parts[0].ndim else made


def i0(x: ndarray) -> Any:
    """The modified Bessel function of order 0."""
    from cupola.standins.cupyx.scipy import special

    return special.elementwise("i0")(x)


def packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Any:
    """Bits of bytes; computed by the host."""
    return _np.asarray(numpy.packbits(a.get(), axis, bitorder))


def unpackbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Any:
    """Bytes of bits; computed by the host."""
    return _np.asarray(numpy.unpackbits(a.get(), axis, None, bitorder))


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


# --- printing, files ----------------------------------------------------------------------------------------------


def _on_host(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_on_host, value))
    return value.get() if isinstance(value, ndarray) else value


def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """As ``repr``."""
    return numpy.array_repr(_on_host(arr), max_line_width, precision, suppress_small)


def array_str(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """As ``str``."""
    return numpy.array_str(_on_host(arr), max_line_width, precision, suppress_small)


def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """As ``numpy.array2string``."""
    return numpy.array2string(_on_host(a), *args, **kwargs)


def save(file: Any, arr: Any, allow_pickle: Any = None) -> None:
    """Write an array to a file of NumPy's."""
    numpy.save(file, _on_host(arr))


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """Write arrays to an archive of NumPy's."""
    numpy.savez(file, *map(_on_host, args), **{name: _on_host(one) for name, one in kwds.items()})


def savez_compressed(file: Any, *args: Any, **kwds: Any) -> None:
    """Write arrays to a compressed archive of NumPy's."""
    numpy.savez_compressed(file, *map(_on_host, args), **{name: _on_host(one) for name, one in kwds.items()})


def savetxt(fname: Any, X: Any, *args: Any, **kwargs: Any) -> None:
    """Write an array as text."""
    numpy.savetxt(fname, _on_host(X), *args, **kwargs)


class _Archive:
    """An archive of arrays, each of which is copied to the device when it is asked for."""

    def __init__(self, opened: Any) -> None:
        self.npz_file = opened

    @property
    def files(self) -> list[str]:
        """list of str: the names."""
        return list(self.npz_file.files)

    def __getitem__(self, key: str) -> Any:
        return _np.asarray(self.npz_file[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self.npz_file.files)

    def __contains__(self, key: object) -> bool:
        return key in self.npz_file.files

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.npz_file.close()


def load(file: Any, mmap_mode: Any = None, allow_pickle: Any = None) -> Any:
    """Read an array, or an archive of arrays, of NumPy's."""
    found = numpy.load(file, mmap_mode, bool(allow_pickle))
    return _np.asarray(found) if isinstance(found, numpy.ndarray) else _Archive(found)


def _read(name: str) -> Any:
    ours = getattr(numpy, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        return _np.asarray(ours(*args, **kwargs))

    function.__name__, function.__doc__ = name, f"As ``numpy.{name}``, copied to the device."
    return function


fromfile, fromiter, fromstring = map(_read, ("fromfile", "fromiter", "fromstring"))
loadtxt, genfromtxt = map(_read, ("loadtxt", "genfromtxt"))


def _by_host(name: str) -> Any:
    ours = getattr(numpy, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        found = ours(*map(_on_host, args), **{key: _on_host(value) for key, value in kwargs.items()})
        return tuple(map(_np.asarray, found)) if isinstance(found, tuple) else _np.asarray(found)

    function.__name__, function.__doc__ = name, f"As ``numpy.{name}``; computed by the host."
    return function


roots, poly, polyadd, polymul, polysub = map(_by_host, ("roots", "poly", "polyadd", "polymul", "polysub"))
