"""The older interface of ``numpy.random``: RandomState, with the bits and the distributions of Generator.

Parameters that are on the host are checked by NumPy, so the errors are NumPy's. Parameters in arrays of the device are
not looked at: that would wait.
"""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any

import numpy

from cupola.numpy._known import nearest
from cupola.numpy._ndarray import ndarray
from cupola.numpy.functions._products import matmul
from cupola.numpy.random._checks import DISTRIBUTIONS, VECTORS, check, fits
from cupola.numpy.random._generator import Generator, Philox, center_and_spread, default_rng, root_of, shape_of

_checker = numpy.random.RandomState(0)
_LARGEST = numpy.iinfo(numpy.int64).max
_NAME = "Philox"


class RandomState:
    """RandomState(seed=None)\n--\n\nRandom numbers on the device with the interface of ``numpy.random.RandomState``.

    The distributions are NumPy's, and their numbers are others: bits come from Philox, as those of :class:`Generator`.

    Parameters
    ----------
    seed : None, int, sequence of int, Philox or Generator
        What the sequence begins with: whole numbers from 0 to below 2**32.

    Notes
    -----
    Without `size`, results are arrays without dimensions.
    """

    _generator: Generator

    def __init__(self, seed: Any = None) -> None:
        self.seed(seed)

    def seed(self, seed: Any = None) -> None:
        """Begin a new sequence."""
        if isinstance(seed, (Philox, Generator)):
            self._generator = default_rng(seed)
            return
        if seed is not None:
            _checker.seed(seed)  # which knows what a seed may be
        self._generator = default_rng(seed)

    def get_state(self, legacy: bool = True) -> Any:
        """Where the sequence is: ``("Philox", key, counter, 0, 0.0)``, or a dict if not `legacy`."""
        state = self._generator.bit_generator.state
        if not legacy:
            return {"bit_generator": _NAME, "state": state, "has_gauss": 0, "gauss": 0.0}
        return _NAME, numpy.array([state["key"]], numpy.uint64), state["counter"], 0, 0.0

    def set_state(self, state: Any) -> None:
        """Go on from where ``get_state`` was called."""
        if not isinstance(state, (dict, tuple, list)):
            raise TypeError("state must be a dict or a tuple.")
        name = state.get("bit_generator") if isinstance(state, dict) else state[0] if state else None
        if name != _NAME:
            raise ValueError(f"the state must be of a {_NAME}, as get_state() gives it, and not of {name!r}")
        if isinstance(state, dict):
            found = dict(state["state"])
        else:
            (key,), found = state[1], {"counter": int(state[2])}
            found["key"] = int(key)
        self._generator.bit_generator.state = found

    def __reduce__(self) -> Any:
        return RandomState, (self._generator.bit_generator,)

    def __repr__(self) -> str:
        return f"RandomState({_NAME}) at {self._generator.bit_generator.state['counter']}"

    def __getattr__(self, name: str) -> Any:
        near = "" if name.startswith("_") else nearest(name, dir(RandomState))
        raise AttributeError(f"'RandomState' object has no attribute {name!r}{near}")

    # --- uniform ----------------------------------------------------------------------------------------------------

    def random_sample(self, size: Any = None) -> ndarray:
        """Uniform numbers from 0 to below 1."""
        return self._generator.random(size)

    def random(self, size: Any = None) -> ndarray:
        """Uniform numbers from 0 to below 1."""
        return self._generator.random(size)

    def rand(self, *args: int) -> ndarray:
        """Uniform numbers from 0 to below 1 in an array of these extents."""
        return self._generator.random(args or None)

    def randn(self, *args: int) -> ndarray:
        """Numbers of the standard normal distribution in an array of these extents."""
        return self._generator.standard_normal(args or None)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> ndarray:
        """Integers from `low` to below `high`, or from 0 to below `low`."""
        check(_checker, "randint", (low, high), size, dtype=dtype)
        return self._generator.integers(low, high, size, dtype)

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> ndarray:
        """Integers from `low` to `high`, or from 1 to `low`: ``randint`` has taken its place."""
        if high is None:
            low, high = 1, low
        warnings.warn(
            f"This function is deprecated. Please call randint({low}, {high} + 1) instead", DeprecationWarning, 2
        )
        return self.randint(low, high + 1, size)

    def tomaxint(self, size: Any = None) -> ndarray:
        """Integers from 0 to the largest of int64."""
        return self._generator.integers(0, _LARGEST, size, endpoint=True)

    def bytes(self, length: int) -> Any:
        """Random bytes. Waits for them."""
        return self._generator.bytes(length)

    # --- orders -----------------------------------------------------------------------------------------------------

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> ndarray:
        """Elements of an array of one dimension chosen at random, or numbers below an integer."""
        if not isinstance(a, ndarray) and not isinstance(p, ndarray):
            _checker.choice(a, 0 if size is not None and not math.prod(shape_of(size)) else 1, True, p)
        if getattr(a, "ndim", 1) not in (0, 1):
            raise ValueError("a must be 1-dimensional")
        count = operator.index(a) if not hasattr(a, "__len__") else len(a)
        if not replace and math.prod(shape_of(size)) > count:
            raise ValueError("Cannot take a larger sample than population when 'replace=False'")
        return self._generator.choice(a, size, replace, p)

    def permutation(self, x: Any) -> ndarray:
        """Elements, or the numbers below an integer, in a random order."""
        return self._generator.permutation(x)

    def shuffle(self, x: ndarray) -> None:
        """Bring elements into a random order in place."""
        if not isinstance(x, ndarray):
            raise TypeError(f"shuffle works in place on an array of cupola.numpy, not on {type(x).__name__}")
        self._generator.shuffle(x)

    # --- of several numbers -----------------------------------------------------------------------------------------

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8
    ) -> ndarray:
        """Vectors of a normal distribution, whose covariances may be singular.

        The check waits for the device; ``check_valid="ignore"`` is none.
        """
        center, spread = center_and_spread(mean, cov)
        factor = root_of(spread, check_valid, tol)
        return matmul(self._generator.standard_normal((*shape_of(size), center.size)), factor.T) + center


def _distribution(name: str, count: int) -> Any:
    def method(self: RandomState, *arguments: Any, **keywords: Any) -> ndarray:
        if len(arguments) > count:
            size, parameters = arguments[count], arguments[:count]
            if len(arguments) > count + 1 or "size" in keywords:
                raise TypeError(f"{name}() takes at most {count + 1} arguments")
            others = keywords
        else:
            size, parameters = keywords.get("size"), arguments
            others = {key: value for key, value in keywords.items() if key != "size"}
        if parameters or others or count > 0:
            check(_checker, name, parameters, size, **others)
        if size is not None and name not in VECTORS:
            given = (*parameters, *others.values())
            fits(shape_of(size), *[one.shape if isinstance(one, ndarray) else numpy.shape(one) for one in given])
        draw = getattr(Generator, name).__wrapped__  # the parameters have been checked
        made: ndarray = draw(self._generator, *parameters, **others, size=size)
        return made

    method.__name__, method.__qualname__ = name, f"RandomState.{name}"
    method.__doc__ = f"As ``numpy.random.RandomState.{name}``; the numbers are those of ``Generator.{name}``."
    return method


for _name, _count in DISTRIBUTIONS.items():
    setattr(RandomState, _name, _distribution(_name, _count))
