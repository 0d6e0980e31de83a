"""Comparisons of arrays, and arrays to compare: what tests of programs use of ``cupy.testing``."""

from __future__ import annotations

from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupy.cuda import runtime


def _host(value: Any) -> Any:
    if isinstance(value, ndarray):
        return value.get()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_host, value))
    return value


def _comparison(name: str) -> Any:
    ours = getattr(numpy.testing, name)

    def function(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        return ours(_host(x), _host(y), *args, **kwargs)

    function.__name__, function.__doc__ = name, f"As ``numpy.testing.{name}``, for arrays of either."
    return function


assert_allclose = _comparison("assert_allclose")
assert_array_almost_equal = _comparison("assert_array_almost_equal")
assert_array_almost_equal_nulp = _comparison("assert_array_almost_equal_nulp")
assert_array_equal = _comparison("assert_array_equal")
assert_array_less = _comparison("assert_array_less")
assert_array_max_ulp = _comparison("assert_array_max_ulp")


def assert_array_list_equal(xlist: Any, ylist: Any, err_msg: str = "", verbose: bool = True) -> None:
    """Compare lists of arrays."""
    if len(xlist) != len(ylist):
        raise AssertionError(f"the lists have {len(xlist)} and {len(ylist)} arrays")
    for x, y in zip(xlist, ylist, strict=True):
        assert_array_equal(x, y, err_msg=err_msg, verbose=verbose)


def shaped_arange(shape: Any, xp: Any = _np, dtype: Any = numpy.float32, order: Any = "C") -> Any:
    """The numbers from 1 in a shape."""
    kind = numpy.dtype(dtype)
    size = int(numpy.prod(shape))
    numbers = numpy.arange(1, size + 1)
    if kind == "?":
        numbers = numbers % 2 == 0
    elif kind.kind == "c":
        numbers = numbers + numbers * 1j
    return xp.array(numbers.astype(kind).reshape(shape), order=order)


def shaped_reverse_arange(shape: Any, xp: Any = _np, dtype: Any = numpy.float32) -> Any:
    """The numbers down to 1 in a shape."""
    kind = numpy.dtype(dtype)
    numbers = numpy.arange(int(numpy.prod(shape)), 0, -1)
    if kind == "?":
        numbers = numbers % 2 == 0
    elif kind.kind == "c":
        numbers = numbers + numbers * 1j
    return xp.array(numbers.astype(kind).reshape(shape))


def shaped_linspace(start: Any, stop: Any, shape: Any, xp: Any = _np, dtype: Any = numpy.float32) -> Any:
    """Evenly spaced numbers in a shape."""
    return xp.asarray(numpy.linspace(start, stop, int(numpy.prod(shape))).astype(dtype).reshape(shape))


def shaped_random(
    shape: Any, xp: Any = _np, dtype: Any = numpy.float32, scale: Any = 10, seed: int = 0, order: Any = "C"
) -> Any:
    """Random numbers in a shape."""
    generator = numpy.random.RandomState(seed)
    kind = numpy.dtype(dtype)
    if kind == "?":
        numbers = generator.randint(2, size=shape)
    elif kind.kind == "c":
        numbers = generator.rand(*shape) + 1j * generator.rand(*shape)
        numbers = numbers * scale
    else:
        numbers = generator.rand(*shape) * scale
    return xp.asarray(numpy.asarray(numbers).astype(kind), order=order)


def multi_gpu(gpu_num: int) -> Any:
    """A mark of pytest: the test is skipped where there are fewer devices."""
    import pytest

    return pytest.mark.skipif(runtime.getDeviceCount() < gpu_num, reason=f"{gpu_num} GPUs required")


# What tests of CuPy itself are written with.
_INSTEAD = {
    **dict.fromkeys(["parameterize", "product"], "pytest.mark.parametrize does it"),
    **dict.fromkeys(["gpu", "slow", "with_requires", "installed"], "marks of pytest do it"),
}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'cupy.testing' has no attribute {name!r}")
    there = "assert_allclose(ours, theirs) and assert_array_equal compare arrays of NumPy with those of the device"
    raise AttributeError(
        f"cupola's stand-in for CuPy has no cupy.testing.{name}: {_INSTEAD.get(name, there)} (docs/coming-from-cupy.md)"
    )
