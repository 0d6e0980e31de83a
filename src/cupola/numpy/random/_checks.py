"""Parameters of distributions that are on the host are checked by NumPy, so the errors are NumPy's.

Arrays of the device are not looked at: that would wait. NumPy gets a number in their place that goes with all others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from cupola.core.array._array import Array

# Their parameters are no numbers for each result.
VECTORS = ("dirichlet", "multinomial", "multivariate_hypergeometric")
_MOST = 10**9 - 1  # of what a hypergeometric distribution draws from
_INFINITE = float("inf")
# The parameters of the distributions that come before `size`, and what stands for one that is on the device, such that
# nothing is refused for it: a number, or another parameter and what is taken where that is on the device, too.
PARAMETERS: dict[str, dict[str, Any]] = {
    "beta": {"a": 1.0, "b": 1.0}, "binomial": {"n": 1, "p": 0.5}, "chisquare": {"df": 1.0},
    "dirichlet": {"alpha": [1.0]}, "exponential": {"scale": 1.0}, "f": {"dfnum": 1.0, "dfden": 1.0},
    "gamma": {"shape": 1.0, "scale": 1.0},
    "geometric": {"p": 0.5}, "gumbel": {"loc": 0.0, "scale": 1.0},
    "hypergeometric": {"ngood": _MOST, "nbad": _MOST, "nsample": 0}, "laplace": {"loc": 0.0, "scale": 1.0},
    "logistic": {"loc": 0.0, "scale": 1.0}, "lognormal": {"mean": 0.0, "sigma": 1.0}, "logseries": {"p": 0.5},
    "multinomial": {"n": 0, "pvals": [1.0]}, "negative_binomial": {"n": 5e-324, "p": 1.0},
    "noncentral_chisquare": {"df": 1.0, "nonc": 1.0}, "noncentral_f": {"dfnum": 1.0, "dfden": 1.0, "nonc": 1.0},
    "normal": {"loc": 0.0, "scale": 1.0}, "pareto": {"a": 1.0}, "poisson": {"lam": 1.0}, "power": {"a": 1.0},
    "rayleigh": {"scale": 1.0}, "standard_cauchy": {}, "standard_exponential": {}, "standard_gamma": {"shape": 1.0},
    "standard_normal": {}, "standard_t": {"df": 1.0},
    "triangular": {"left": -_INFINITE, "mode": ("left", -_INFINITE), "right": _INFINITE},
    "uniform": {"low": ("high", 1.0), "high": ("low", 0.0)}, "vonmises": {"mu": 0.0, "kappa": 1.0},
    "wald": {"mean": 1.0, "scale": 1.0}, "weibull": {"a": 1.0}, "zipf": {"a": 2.0},
    "multivariate_hypergeometric": {"colors": [_MOST], "nsample": 0},
}  # fmt: skip
# How many there are of each; that of several colors is one of Generators only.
DISTRIBUTIONS = {name: len(found) for name, found in PARAMETERS.items() if name != "multivariate_hypergeometric"}
_OTHERS = ("size", "dtype", "out")


def check(checker: Any, name: str, parameters: tuple[Any, ...], size: Any, **keywords: Any) -> None:
    """Let NumPy check parameters that are on the host, with its method of this name."""
    names = list(PARAMETERS.get(name, ("low", "high")))
    known = {**dict(zip(names, parameters, strict=False)), **keywords}
    absent = {key for key in names if key in known and _is_on_device(known[key])}
    if absent:
        if absent == set(known) or name not in PARAMETERS:
            return
        for key in absent:
            known[key] = _in_place_of(checker, name, key, known, absent)
        with numpy.errstate(invalid="ignore"):  # which may come of these only
            check(checker, name, tuple([known[key] for key in names[: len(parameters)]]), size,
                  **{key: known[key] for key in keywords})  # fmt: skip
        return
    given = (*parameters, *keywords.values())
    if name == "multinomial":
        tries = keywords["n"] if "n" in keywords else parameters[0] if parameters else ()
        checker.multinomial(*parameters, **keywords, size=(0, *numpy.shape(tries)))
        return
    plain = all([value is None or isinstance(value, (bool, int, float, numpy.generic, type)) for value in given])
    getattr(checker, name)(*parameters, **keywords, size=0 if plain or name in VECTORS else None)


def _in_place_of(checker: Any, name: str, key: str, known: dict[str, Any], absent: set[str]) -> Any:
    """What NumPy looks at in place of a parameter that is on the device."""
    if key == "nsample" and isinstance(checker, numpy.random.RandomState):
        return 1  # it takes no empty sample
    found = PARAMETERS[name][key]
    if not isinstance(found, tuple):
        return found
    other, otherwise = found
    return known[other] if other in known and other not in absent else otherwise


def _is_on_device(value: Any) -> bool:
    """Whether it is an array of the device, of whatever library, or has some."""
    if isinstance(value, (list, tuple)):
        return any([_is_on_device(one) for one in value])
    return isinstance(value, Array) or hasattr(value, "__cuda_array_interface__")


def fits(size: Any, *shapes: tuple[int, ...]) -> None:
    """Refuse a size of the results that parameters of these shapes do not fit into."""
    size = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    if numpy.broadcast_shapes(size, *shapes) != size:
        raise ValueError(
            f"Output size {size} is not compatible with broadcast dimensions of inputs "
            f"{numpy.broadcast_shapes(*shapes)}."
        )


def checked(checker: Any, name: str, count: int, method: Callable[..., Any]) -> Any:
    """The method with a check of what it is given."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        parameters = arguments[:count]
        others = {key: value for key, value in keywords.items() if key not in _OTHERS}
        if parameters or others:
            check(checker, name, parameters, None, **others)
        return method(self, *arguments, **keywords)

    return call
