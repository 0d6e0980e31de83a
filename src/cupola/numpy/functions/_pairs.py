"""Ufuncs with two results: quotient and remainder, fraction and integer part, mantissa and exponent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy

from cupola.numpy import _ndarray
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import write
from cupola.numpy._ndarray import ndarray, on_device
from cupola.numpy._order import in_order
from cupola.numpy._ufunc import ufunc
from cupola.numpy.functions._choosing import where as _where

__all__ = ["divmod", "frexp", "modf"]

_NOT_RETURNING_ONE = "{} only supported for functions returning a single value"


class PairUfunc(ufunc):
    """An elementwise function with two results, called as NumPy's function of that name.

    Attributes
    ----------
    __name__ : str
        The name.
    nin, nout, nargs : int
        How many arrays it takes and returns, and their sum.

    Notes
    -----
    Threads may share it.
    """

    def __init__(self, compute: Callable[..., tuple[ndarray, ndarray]]) -> None:
        super().__init__(compute.__name__)
        self.__qualname__, self.__doc__, self.__module__ = compute.__name__, compute.__doc__, __name__
        self._compute = compute
        self.nout, self.nargs = 2, self.nin + 2

    def __call__(
        self, *operands: Any, out: Any = (None, None), where: Any = True, dtype: Any = None, signature: Any = None,
        casting: Any = "same_kind", order: Any = "K", subok: bool = True,
    ) -> tuple[ndarray, ndarray]:  # fmt: skip
        """Apply the function.

        Parameters
        ----------
        *operands : array_like
            Arrays of the device, NumPy scalars, Python numbers and lists of them; and the arrays of `out`.
        out : tuple of ndarray or None
            Get the results, converted.
        where : ndarray of bool
            Where results are stored in `out`; without `out`, the function is applied everywhere.
        dtype, signature : optional
            The type of the results, or the types to compute in.
        casting : str
            Which conversions of the operands and of the results are fine, as in NumPy.
        order : str
            How new arrays for the results lie.
        subok : bool
            Means nothing here.

        Returns
        -------
        tuple of ndarray
        """
        if not self.nin <= len(operands) <= self.nargs:
            raise TypeError(
                f"{self.__name__}() takes from {self.nin} to {self.nargs} positional arguments but {len(operands)} "
                "were given"
            )
        given, outs = operands[: self.nin], operands[self.nin :]
        if outs and out not in ((None, None), None):
            raise TypeError("cannot specify 'out' as both a positional and keyword argument")
        outs = (*outs, *[None] * (2 - len(outs))) if outs or out is None else out
        if not isinstance(outs, tuple):
            raise TypeError("'out' must be a tuple of arrays")
        if len(outs) != 2:
            raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
        values = [_ndarray._operand(one) for one in given]
        if signature is None and dtype is not None:
            signature = (*[None] * self.nin, dtype, dtype)
        kinds = (*[_ndarray._kind(one) for one in values], None, None)
        loop = self.resolve_dtypes(kinds, signature=signature, casting=casting)
        shape = numpy.broadcast_shapes(*[getattr(one, "shape", ()) for one in values])
        if where is not True:
            where = _ndarray.mask_of(where)
            shape = numpy.broadcast_shapes(shape, where.shape)
        for place, (to, one) in enumerate(zip(outs, loop[self.nin :], strict=True)):
            if to is not None:
                _ndarray.check_out(self, place, to, one, shape, casting)
        made = self._compute(*[
            one.astype(to, copy=False) if isinstance(one, ndarray) else on_device(to.type(one))
            for one, to in zip(values, loop, strict=False)
        ])  # fmt: skip
        return self._stored([in_order(_ndarray.broadcast(one, shape), order) for one in made], outs, where)

    @staticmethod
    def _stored(made: list[ndarray], outs: Any, where: Any) -> tuple[ndarray, ndarray]:
        """The results, stored where they are wanted. Both are computed before an operand may be overwritten."""
        new = []
        for value, to in zip(made, outs, strict=True):
            one = value if to is None else value.astype(to.dtype, copy=False)
            if to is not None and where is not True:
                one = _where(where, one, to)
            new.append(one)
        if outs[0] is not None or outs[1] is not None:
            for one in new:
                one._compute_now()
        for one, to in zip(new, outs, strict=True):
            if to is not None:
                write(to, one)
        first, second = (one if to is None else to for one, to in zip(new, outs, strict=True))
        return first, second

    def outer(self, a: Any, b: Any, /, **more: Any) -> tuple[ndarray, ndarray]:
        """Apply the function to all pairs of elements, as ``numpy.ufunc.outer``."""
        if self.nin != 2:
            raise ValueError("outer product only supported for binary functions")
        one, other = on_device(a), on_device(b)
        return self(one._part((..., *[None] * other.ndim)), other, **more)

    def reduce(self, *arguments: Any, **keywords: Any) -> NoReturn:
        """A ValueError: there are two results."""
        raise ValueError(_NOT_RETURNING_ONE.format("reduce"))

    def accumulate(self, *arguments: Any, **keywords: Any) -> NoReturn:
        """A ValueError: there are two results."""
        raise ValueError(_NOT_RETURNING_ONE.format("accumulate"))

    def reduceat(self, *arguments: Any, **keywords: Any) -> NoReturn:
        """A ValueError: there are two results."""
        raise ValueError(_NOT_RETURNING_ONE.format("reduceat"))

    def at(self, *arguments: Any, **keywords: Any) -> NoReturn:
        """A ValueError: there are two results."""
        raise ValueError("Only single output ufuncs supported at this time")

    def __reduce__(self) -> str:
        return self.__name__


@PairUfunc
def divmod(x1: ndarray, x2: ndarray) -> tuple[ndarray, ndarray]:
    """Quotient and remainder, as ``numpy.divmod``."""
    return UFUNCS["floor_divide"](x1, x2), UFUNCS["remainder"](x1, x2)


@PairUfunc
def modf(x: ndarray) -> tuple[ndarray, ndarray]:
    """Fraction and integer part, as ``numpy.modf``."""
    whole = UFUNCS["trunc"](x)
    part = _where(UFUNCS["isinf"](x), x.dtype.type(0), x - whole)
    return UFUNCS["copysign"](part, x), whole


@PairUfunc
def frexp(x: ndarray) -> tuple[ndarray, ndarray]:
    """Mantissa and exponent to the base 2, as ``numpy.frexp``."""
    odd = (x == 0) | ~UFUNCS["isfinite"](x)
    size = _where(odd, x.dtype.type(1), UFUNCS["absolute"](x))
    exponent = UFUNCS["floor"](UFUNCS["log2"](size)).astype(numpy.int32) + numpy.int32(1)
    mantissa = UFUNCS["ldexp"](UFUNCS["ldexp"](x, -(exponent // 2)), -(exponent - exponent // 2))
    # The logarithm may have been rounded up or down to a whole number.
    low, high = UFUNCS["absolute"](mantissa) < 0.5, UFUNCS["absolute"](mantissa) >= 1
    mantissa = _where(low, mantissa * 2, _where(high, mantissa / 2, mantissa))
    exponent = exponent - low.astype(numpy.int32) + high.astype(numpy.int32)
    return _where(odd, x, mantissa), _where(odd, numpy.int32(0), exponent)
