"""The older functions of ``numpy.random``, which share one generator."""

from __future__ import annotations

from typing import Any

from cupola.numpy._ndarray import ndarray
from cupola.numpy.random._generator import Generator, default_rng

_shared: list[Generator] = []


def _generator() -> Generator:
    if not _shared:
        _shared.append(default_rng())
    return _shared[0]


def seed(seed: Any = None) -> None:
    """Begin a new sequence."""
    _shared[:] = [default_rng(seed)]


def rand(*shape: int) -> ndarray:
    """Uniform numbers from 0 to 1."""
    return _generator().random(shape)


def randn(*shape: int) -> ndarray:
    """Numbers of the standard normal distribution."""
    return _generator().standard_normal(shape)


def random(size: Any = None) -> ndarray:
    """Uniform numbers from 0 to 1."""
    return _generator().random(size)


random_sample = ranf = sample = random


def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = int) -> ndarray:
    """Integers from `low` to below `high`."""
    return _generator().integers(low, high, size, dtype)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> ndarray:
    """Uniform numbers."""
    return _generator().uniform(low, high, size)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> ndarray:
    """Numbers of a normal distribution."""
    return _generator().normal(loc, scale, size)


def standard_normal(size: Any = None) -> ndarray:
    """Numbers of the standard normal distribution."""
    return _generator().standard_normal(size)


def exponential(scale: Any = 1.0, size: Any = None) -> ndarray:
    """Numbers of an exponential distribution."""
    return _generator().exponential(scale, size)


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> ndarray:
    """Elements chosen at random."""
    return _generator().choice(a, size, replace, p)


def permutation(x: Any) -> ndarray:
    """Elements in a random order."""
    return _generator().permutation(x)


def shuffle(x: ndarray) -> None:
    """Bring elements into a random order in place."""
    _generator().shuffle(x)


def bytes(length: int) -> Any:
    """Random bytes."""
    return _generator().bytes(length)


def _distribution(name: str) -> Any:
    def function(*arguments: Any, **keywords: Any) -> Any:
        return getattr(_generator(), name)(*arguments, **keywords)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As ``Generator.{name}``, of the shared generator."
    return function


(
    beta, binomial, chisquare, dirichlet, gamma, geometric, gumbel, laplace, logistic, lognormal,
    multivariate_normal, negative_binomial, pareto, poisson, power, rayleigh, standard_cauchy,
    standard_exponential, standard_gamma, standard_t, triangular, weibull,
) = map(
    _distribution,
    [
        "beta", "binomial", "chisquare", "dirichlet", "gamma", "geometric", "gumbel", "laplace", "logistic",
        "lognormal", "multivariate_normal", "negative_binomial", "pareto", "poisson", "power", "rayleigh",
        "standard_cauchy", "standard_exponential", "standard_gamma", "standard_t", "triangular", "weibull",
    ],
)  # fmt: skip
