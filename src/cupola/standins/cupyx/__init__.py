"""``cupyx`` on cupola's arrays, as far as programs often use it."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import numpy

from cupola.numpy._known import UFUNCS
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupy._kernels import ElementwiseKernel
from cupola.standins.cupy.cuda._state import DeviceSynchronized as DeviceSynchronized
from cupola.standins.cupy.cuda._state import allow_waits
from cupola.standins.cupy.cuda.pinned_memory import alloc_pinned_memory
from cupola.standins.cupyx import profiler as profiler
from cupola.standins.cupyx import scipy as scipy

_rsqrt = ElementwiseKernel("T x", "T y", "y = rsqrt(x)", "cupyx_rsqrt")
_errors: dict[str, Any] = {"divide": None, "over": None, "under": None, "invalid": None, "linalg": "raise",
                           "fallback_mode": "ignore"}  # fmt: skip


def rsqrt(x: ndarray) -> ndarray:
    """The reciprocal of the square root."""
    made: ndarray = _rsqrt(x)
    return made


def scatter_add(a: ndarray, slices: Any, value: Any) -> None:
    """Add values at indices; each counts where an index appears more than once."""
    UFUNCS["add"].at(a, slices, value)


def scatter_max(a: ndarray, slices: Any, value: Any) -> None:
    """Take the greater of elements and values at indices."""
    UFUNCS["maximum"].at(a, slices, value)


def scatter_min(a: ndarray, slices: Any, value: Any) -> None:
    """Take the lesser of elements and values at indices."""
    UFUNCS["minimum"].at(a, slices, value)


def empty_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> numpy.ndarray:
    """An array of NumPy in pinned memory."""
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    kind = numpy.dtype(dtype)
    count = int(numpy.prod(extents))
    memory = alloc_pinned_memory(count * kind.itemsize)
    return numpy.ndarray(extents, kind, buffer=memory, order=order)


def zeros_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> numpy.ndarray:
    """Zeros in pinned memory."""
    made = empty_pinned(shape, dtype, order)
    made[...] = 0
    return made


def empty_like_pinned(
    a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None
) -> numpy.ndarray:
    """An array in pinned memory of the shape and type of another one."""
    extents = a.shape if shape is None else shape
    return empty_pinned(extents, a.dtype if dtype is None else dtype, "C" if order in ("K", "A") else order)


def zeros_like_pinned(
    a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None
) -> numpy.ndarray:
    """Zeros in pinned memory of the shape and type of an array."""
    made = empty_like_pinned(a, dtype, order, subok, shape)
    made[...] = 0
    return made


def geterr() -> dict[str, Any]:
    """What happens on errors of arithmetic: nothing."""
    return dict(_errors)


def seterr(**changes: Any) -> dict[str, Any]:
    """Set what happens on errors. Only ``linalg='raise'`` is done; the others are only kept."""
    before = geterr()
    unknown = set(changes) - set(_errors)
    if unknown:
        raise TypeError(f"seterr has no argument {sorted(unknown)[0]!r}")
    _errors.update({name: value for name, value in changes.items() if value is not None})
    return before


@contextlib.contextmanager
def errstate(**changes: Any) -> Iterator[None]:
    """Set what happens on errors within a ``with`` block."""
    before = seterr(**changes)
    try:
        yield
    finally:
        _errors.update(before)


@contextlib.contextmanager
def allow_synchronize(allow: bool) -> Iterator[None]:
    """Raise a ``DeviceSynchronized`` where the host would wait for the device in the ``with`` block, unless it may.

    Parameters
    ----------
    allow : bool
        Whether it may wait.
    """
    before = allow_waits(allow)
    try:
        yield
    finally:
        allow_waits(before)


def get_runtime_info(*, full: bool = False) -> str:
    """What runs."""
    import cupola

    return f"cupola's stand-in for CuPy, cupola {cupola.__version__}, on {cupola.Device().name}"


__name__ = "cupyx"


def __getattr__(name: str) -> Any:
    there = {
        "time": "it is cupyx.profiler now",
        "GeneralizedUFunc": "cupy.einsum and broadcasting do most of it",
        "cusparse": "cupola.bindings.cusparse has cuSPARSE",
        "linalg": "cupy.linalg.solve and inv take stacks of matrices",
        "optimizing": "RawKernel(...).attributes tells what a kernel needs, cupola profile how long it takes",
        "distributed": "cupola.bindings.nccl has NCCL, cupola.mpi messages, cupola.dask arrays on several devices",
    }  # fmt: skip
    if name == "jit":
        return importlib.import_module(f"{__spec__.name}.jit")
    if name in there:
        raise AttributeError(f"CuPy has cupyx.{name}, and cupola's stand-in has not: {there[name]}")
    raise AttributeError(f"module 'cupyx' has no attribute {name!r}")
