"""Random numbers with CuPy's interface, by cupola's Philox: sequences differ from CuPy's and NumPy's."""

from __future__ import annotations

from typing import Any

import numpy

from cupola.numpy._known import nearest
from cupola.numpy._ndarray import ndarray
from cupola.numpy.random import Generator as Generator
from cupola.numpy.random import Philox as _Philox
from cupola.numpy.random import default_rng as default_rng
from cupola.standins.cupy.cuda.device import get_device_id

__all__ = ["Generator", "Philox4x3210", "RandomState", "default_rng", "get_random_state", "reset_states", "seed",
           "set_random_state"]  # fmt: skip


class Philox4x3210(_Philox):
    """The bit generator Philox."""


class XORWOW(_Philox):
    """A bit generator of that name; its numbers are those of Philox."""


class MRG32k3a(_Philox):
    """A bit generator of that name; its numbers are those of Philox."""


BitGenerator = _Philox

# Distributions with parameters, and with `size` and `dtype` behind them.
_WITH_TYPE = [
    "beta", "binomial", "chisquare", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel", "hypergeometric",
    "laplace", "logistic", "lognormal", "logseries", "multinomial", "multivariate_normal", "negative_binomial",
    "noncentral_chisquare", "noncentral_f", "normal", "pareto", "poisson", "power", "rayleigh", "standard_cauchy",
    "standard_exponential", "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform", "vonmises",
    "wald", "weibull", "zipf",
]  # fmt: skip
_OTHERS = [
    "choice", "permutation", "rand", "randint", "randn", "random_integers", "random_sample", "shuffle", "tomaxint",
]  # fmt: skip


class RandomState:
    """Random numbers with the older functions as methods.

    Parameters
    ----------
    seed : int or sequence of int, optional
        What they begin with.
    method : int, optional
        Makes no difference.
    """

    def __init__(self, seed: Any = None, method: Any = None) -> None:
        self.seed(seed)

    def seed(self, seed: Any = None) -> None:
        """Begin a new sequence."""
        self._generator = default_rng(None if seed is None else numpy.asarray(seed).astype(numpy.int64).tolist())

    def rand(self, *size: int, dtype: Any = float) -> ndarray:
        """Uniform numbers from 0 to 1."""
        return self.random_sample(size, dtype)

    def randn(self, *size: int, dtype: Any = float) -> ndarray:
        """Numbers of the standard normal distribution."""
        return self._generator.standard_normal(size, dtype)

    def random_sample(self, size: Any = None, dtype: Any = float) -> ndarray:
        """Uniform numbers from 0 to 1."""
        return self._generator.random(size, dtype)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> ndarray:
        """Integers from `low` to below `high`."""
        return self._generator.integers(low, high, size, dtype)

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> ndarray:
        """Integers from `low` to `high`, or from 1 to `low`."""
        low, high = (1, low) if high is None else (low, high)
        return self.randint(low, high + 1, size)

    def tomaxint(self, size: Any = None) -> ndarray:
        """Integers from 0 to the largest."""
        return self._generator.integers(0, numpy.iinfo(numpy.int32).max, size, endpoint=True)

    def interval(self, mx: int, size: Any = None) -> ndarray:
        """Integers from 0 to `mx`, in the smallest type of 32 or 64 bits that has them, with a sign if it may have one.

        Parameters
        ----------
        mx : int
            The greatest integer.
        size : int or tuple of int, optional
            The shape; None: a single integer.
        """
        if not 0 <= mx < 1 << 64:
            raise ValueError(f"mx must be from 0 to 2**64 - 1, got {mx}")
        to = next(one for one in ("int32", "uint32", "int64", "uint64") if mx <= numpy.iinfo(one).max)
        return self._generator.integers(0, mx, size, to, endpoint=True)

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> ndarray:
        """Elements chosen at random."""
        return self._generator.choice(a, size, replace, p)

    def permutation(self, a: Any) -> ndarray:
        """Elements in a random order."""
        return self._generator.permutation(a)

    def shuffle(self, a: ndarray) -> None:
        """Bring elements into a random order in place."""
        self._generator.shuffle(a)


def _distribution(name: str) -> Any:
    def method(self: RandomState, *arguments: Any, dtype: Any = None, **keywords: Any) -> ndarray:
        made: ndarray = getattr(self._generator, name)(*arguments, **keywords)
        return made if dtype is None else made.astype(dtype, copy=False)

    method.__name__, method.__qualname__ = name, f"RandomState.{name}"
    method.__doc__ = f"Numbers of the distribution ``{name}``, as ``numpy.random.RandomState.{name}``."
    return method


for _name in _WITH_TYPE:
    setattr(RandomState, _name, _distribution(_name))

_states: dict[int, RandomState] = {}  # by device


def get_random_state() -> RandomState:
    """What the functions of this module use on the current device."""
    return _states.setdefault(get_device_id(), RandomState())


def set_random_state(rs: RandomState) -> None:
    """Choose what the functions of this module use on the current device."""
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _states[get_device_id()] = rs


def reset_states() -> None:
    """Forget all states."""
    _states.clear()


def seed(seed: Any = None) -> None:
    """Begin a new sequence."""
    get_random_state().seed(seed)


def bytes(length: int) -> Any:
    """Random bytes."""
    return get_random_state()._generator.bytes(length)


def _function(name: str) -> Any:
    def function(*arguments: Any, **keywords: Any) -> Any:
        return getattr(get_random_state(), name)(*arguments, **keywords)

    function.__name__ = name
    function.__doc__ = getattr(RandomState, name).__doc__
    return function


globals().update({name: _function(name) for name in [*_WITH_TYPE, *_OTHERS] if name != "tomaxint"})
random = ranf = sample = _function("random_sample")
__all__ += [*_WITH_TYPE, *[name for name in _OTHERS if name != "tomaxint"], "random", "ranf", "sample"]


def __getattr__(name: str) -> Any:
    near = "" if name.startswith("_") else nearest(name, __all__)
    if hasattr(numpy.random, name):
        raise AttributeError(
            f"cupola's stand-in for CuPy has no cupy.random.{name}: NumPy's computes it on the host, "
            f"and cupy.asarray copies it{near}"
        )
    raise AttributeError(f"module 'cupy.random' has no attribute {name!r}{near}")
