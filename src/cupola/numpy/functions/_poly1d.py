"""Polynomials: as objects, and what is made of their coefficients, which are few and are computed by the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from cupola.numpy._ndarray import array, ndarray
from cupola.numpy.functions._polynomials import polyval

__all__ = ["poly", "poly1d", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "roots"]


def _on_host(value: Any) -> Any:
    if isinstance(value, poly1d):
        return value._host
    return value.to_numpy() if isinstance(value, ndarray) else value


class poly1d:
    """A polynomial. Its few coefficients are kept by the host; it is computed on the device.

    Parameters
    ----------
    c_or_r : array_like or poly1d
        Coefficients, the highest power first; or roots.
    r : bool
        Whether they are roots.
    variable : str, optional
        The letter that it is printed with.
    """

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # arrays leave arithmetic to the polynomial

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        self._host = numpy.poly1d(_on_host(c_or_r), r, variable)

    @property
    def coeffs(self) -> ndarray:
        """ndarray: the coefficients, the highest power first."""
        return array(self._host.coeffs)

    c = coef = coefficients = coeffs

    @property
    def order(self) -> int:
        """int: the highest power."""
        return int(self._host.order)

    o = order

    @property
    def roots(self) -> ndarray:
        """ndarray: where it is zero."""
        return array(self._host.roots)

    r = roots

    @property
    def variable(self) -> str:
        """str: the letter that it is printed with."""
        return str(self._host.variable)

    def __call__(self, val: Any) -> Any:
        if isinstance(val, poly1d):
            return poly1d(self._host(val._host))
        return polyval(self._host.coeffs.tolist(), val)

    def deriv(self, m: int = 1) -> poly1d:
        """The derivative."""
        return poly1d(self._host.deriv(m))

    def integ(self, m: int = 1, k: Any = 0) -> poly1d:
        """The integral."""
        return poly1d(self._host.integ(m, _on_host(k)))

    def get(self, stream: Any = None, out: numpy.poly1d | None = None) -> numpy.poly1d:
        """The polynomial of NumPy."""
        made = numpy.poly1d(self._host) if out is None else out
        made.coeffs = self._host.coeffs
        return made

    def set(self, polyin: numpy.poly1d, stream: Any = None) -> None:
        """Be equal to a polynomial of NumPy."""
        if not isinstance(polyin, numpy.poly1d):
            raise TypeError(f"poly1d.set takes a numpy.poly1d, not {type(polyin).__name__}")
        self._host = numpy.poly1d(polyin)

    def __getitem__(self, power: int) -> Any:
        return array(self._host[power])

    def __setitem__(self, power: int, value: Any) -> None:
        self._host[power] = _on_host(value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.coeffs)

    def __len__(self) -> int:
        return self.order

    def __str__(self) -> str:
        return str(self._host)

    def __repr__(self) -> str:
        return repr(self._host)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (poly1d, numpy.poly1d)):
            return NotImplemented
        return bool(self._host == _on_host(other))

    def __neg__(self) -> poly1d:
        return poly1d(-self._host)

    def __pos__(self) -> poly1d:
        return self

    def __pow__(self, power: int) -> poly1d:
        return poly1d(self._host**power)

    def __truediv__(self, other: Any) -> Any:
        found = self._host / _on_host(other)
        return tuple(map(poly1d, found)) if isinstance(found, tuple) else poly1d(found)


def _operation(name: str) -> Any:
    theirs = getattr(numpy.poly1d, name)

    def method(self: poly1d, other: Any) -> poly1d:
        return poly1d(theirs(self._host, _on_host(other)))

    method.__name__, method.__qualname__ = name, f"poly1d.{name}"
    return method


for _name in ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__"):
    setattr(poly1d, _name, _operation(_name))


def _by_host(name: str) -> Any:
    theirs = getattr(numpy, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        found = theirs(*map(_on_host, args), **{key: _on_host(value) for key, value in kwargs.items()})
        objects = any(isinstance(one, poly1d) for one in given)
        change = poly1d if objects else array
        return tuple(map(change, found)) if isinstance(found, tuple) else change(found)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As ``numpy.{name}``; the coefficients are computed by the host."
    return function


polyadd, polysub, polymul, polydiv, polyder, polyint = map(
    _by_host, ("polyadd", "polysub", "polymul", "polydiv", "polyder", "polyint")
)


def poly(seq_of_zeros: Any) -> ndarray:
    """The coefficients of the polynomial of these roots, as ``numpy.poly``."""
    return array(numpy.poly(_on_host(seq_of_zeros)))


def roots(p: Any) -> ndarray:
    """Where a polynomial is zero, as ``numpy.roots``; computed by the host."""
    return array(numpy.roots(_on_host(p)))
