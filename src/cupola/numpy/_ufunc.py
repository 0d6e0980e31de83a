"""Elementwise functions with NumPy's calling conventions.

Which types an operation computes in is asked of NumPy's ufunc of the same name (``resolve_dtypes``: NEP 50), and
remembered for each combination of types.
"""

from __future__ import annotations

from typing import Any

import numpy

from cupola.numpy import _ndarray
from cupola.numpy._known import UFUNCS
from cupola.numpy._operations import MEMORY, OPERATIONS, expression


class ufunc:
    """An elementwise function of arrays on the device, called as NumPy's function of that name.

    Its result is an expression, which is computed when its elements are needed, together with other such functions.

    Attributes
    ----------
    __name__ : str
        The name.
    nin, nout, nargs : int
        How many arrays it takes and returns, and their sum.
    identity : number or None
        What leaves the other operand as it is.

    Notes
    -----
    Threads may share it.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._numpy: numpy.ufunc = getattr(numpy, name)
        self.nin, self.nout = self._numpy.nin, 1
        self.nargs = self.nin + 1
        self.identity = self._numpy.identity
        self.__doc__ = f"{name}: as numpy.{name}, of arrays on the device."
        self._loops: dict[tuple[Any, ...], tuple[numpy.dtype, ...]] = {}

    def __call__(
        self, *operands: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind", **more: Any
    ) -> Any:
        """Apply the function.

        Parameters
        ----------
        *operands : array_like
            Arrays of the device, NumPy scalars, Python numbers and lists of them; no arrays of NumPy.
        out : ndarray, optional
            Gets the result, converted. It is computed at once.
        dtype : optional
            The type to compute in.
        casting : str
            Which conversions of the operands and of the result are fine, as in NumPy.
        **more
            What NumPy has besides; none of it is there yet.

        Returns
        -------
        ndarray
        """
        unknown = [name for name, value in more.items() if not (name == "where" and value is True)]
        if unknown:
            raise NotImplementedError(f"{self.__name__}({unknown[0]}=) is not in cupola.numpy yet")
        if len(operands) == self.nin + 1 and out is None:
            operands, out = operands[:-1], operands[-1]
        if len(operands) != self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} arrays, {len(operands)} were given")
        if isinstance(out, tuple):
            (out,) = out
        return _ndarray.elementwise(self, operands, out, None if dtype is None else numpy.dtype(dtype), casting)

    def loop(self, kinds: tuple[Any, ...], dtype: numpy.dtype | None, casting: Any) -> tuple[numpy.dtype, ...]:
        """The types that operands and result have in the computation.

        Parameters
        ----------
        kinds : tuple
            For each operand its dtype, or ``int``, ``float`` or ``complex`` for a Python number.
        dtype : numpy.dtype or None
            That the caller asks for.
        casting : str
            As for the call.
        """
        key = (*kinds, dtype, casting)
        found = self._loops.get(key)
        if found is None:
            more: Any = {} if dtype is None else {"signature": (*[None] * self.nin, dtype)}
            found = self._numpy.resolve_dtypes((*kinds, None), casting=casting, **more)
            for one in found:
                if one.char not in MEMORY:
                    raise TypeError(f"cupola.numpy has no elements of {one}, which {self.__name__} would give here")
            if expression(self.__name__, found[0].kind) is None:
                raise TypeError(f"{self.__name__} of {found[0]} is not in cupola.numpy yet")
            self._loops[key] = found
        return found

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Combine the elements along axes: what ``sum``, ``prod``, ``max``, ``min``, ``any`` and ``all`` do.

        Parameters
        ----------
        array : array_like
            The elements.
        axis : int, tuple of int or None
            Which dimensions go; None: all.
        dtype : optional
            The type to compute in.
        out : ndarray, optional
            Gets the result.
        keepdims : bool
            Whether the dimensions stay, with one element.

        Returns
        -------
        ndarray
        """
        how = {
            "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any",
            "logical_and": "all",
        }.get(self.__name__)  # fmt: skip
        if how is None:
            raise NotImplementedError(f"{self.__name__}.reduce is not in cupola.numpy yet")
        return _ndarray.reduce(how, array, axis, dtype, out, keepdims)

    def __getattr__(self, name: str) -> Any:
        if name in ("accumulate", "at", "outer", "reduceat", "signature", "types", "ntypes"):
            raise NotImplementedError(f"{self.__name__}.{name} is not in cupola.numpy yet")
        raise AttributeError(f"{self.__name__!r} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __reduce__(self) -> Any:
        return _by_name, (self.__name__,)


UFUNCS.update({name: ufunc(name) for name in OPERATIONS})


def _by_name(name: str) -> ufunc:
    found: ufunc = UFUNCS[name]
    return found
