"""Elementwise functions with NumPy's calling conventions.

Which types an operation computes in is asked of NumPy's ufunc of the same name (``resolve_dtypes``: NEP 50), and
remembered for each combination of types.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from cupola.numpy import _index, _lazy, _ndarray, _rows
from cupola.numpy._known import UFUNCS, nearest
from cupola.numpy._lazy import Elementwise, quick_calls
from cupola.numpy._operations import COMPUTED, MEMORY, OPERATIONS, expression
from cupola.numpy.functions._reductions import running
from cupola.numpy.functions._shapes import concatenate

# The ufuncs whose results do not depend on the order, and the kernels for them.
HOW = {name: how for how, name in _ndarray.REDUCED_BY.items()}


def resolved(
    function: numpy.ufunc, dtypes: Any, signature: Any, casting: Any, reduction: bool
) -> tuple[numpy.dtype, ...]:
    """What a ufunc of NumPy says of types; TypeError if arrays of one of them do not exist here."""
    given = (("signature", signature), ("casting", casting))
    more: Any = {name: value for name, value in given if value is not None}
    found: tuple[numpy.dtype, ...] = function.resolve_dtypes(dtypes, reduction=reduction, **more)
    for one in found:
        if one is not None and one.char not in MEMORY:
            raise TypeError(f"cupola.numpy has no elements of {one}, which {function.__name__} would give here")
    return found


class ufunc(Elementwise):
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
        self._prepare(name, self._numpy.nin)
        self.nout, self.nargs = 1, self.nin + 1
        self.identity = self._numpy.identity
        self.__doc__ = f"{name}: as numpy.{name}, of arrays on the device."
        self._loops: dict[tuple[Any, ...], tuple[numpy.dtype, ...]] = {}

    def _call(
        self, *operands: Any, out: Any = None, where: Any = True, dtype: Any = None, casting: str = "same_kind",
        order: Any = "K", subok: bool = True, signature: Any = None,
    ) -> Any:  # fmt: skip
        """A call that is not of the usual form."""
        if len(operands) == self.nin + 1 and out is None:
            operands, out = operands[:-1], operands[-1]
        if len(operands) != self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} arrays, {len(operands)} were given")
        if isinstance(out, tuple) and len(out) == 1:
            (out,) = out
        to = None if dtype is None else numpy.dtype(dtype)
        if signature is not None:
            if to is not None:
                raise TypeError("cannot specify both 'signature' and 'dtype'")
            to = signature
        return _ndarray.elementwise(self, operands, out, to, casting, where, order)

    def resolve_dtypes(
        self, dtypes: Any, *, signature: Any = None, casting: Any = None, reduction: bool = False
    ) -> tuple[numpy.dtype, ...]:
        """The types that operands and result have in the computation, as ``numpy.ufunc.resolve_dtypes``.

        Parameters
        ----------
        dtypes : tuple of numpy.dtype, int, float or complex
            Of the operands, and of the result, or None.
        signature, casting : optional
            As for a call.
        reduction : bool
            Whether they are those of ``reduce``.

        Returns
        -------
        tuple of numpy.dtype
        """
        return resolved(self._numpy, dtypes, signature, casting, reduction)

    def loop(self, kinds: tuple[Any, ...], dtype: Any, casting: Any) -> tuple[numpy.dtype, ...]:
        """The types that operands and result have in the computation.

        Parameters
        ----------
        kinds : tuple
            For each operand its dtype, or ``int``, ``float`` or ``complex`` for a Python number.
        dtype : numpy.dtype, tuple, str or None
            That the caller asks for: of the result, or a signature, of operands and result.
        casting : str
            As for the call.
        """
        key = (*kinds, dtype, casting)
        found = self._loops.get(key)
        if found is None:
            signature = (*[None] * self.nin, dtype) if isinstance(dtype, numpy.dtype) else dtype
            found = resolved(self._numpy, (*kinds, None), signature, casting, False)
            if expression(self.__name__, found[0].kind) is None:
                raise TypeError(f"{self.__name__} of {found[0]} is not in cupola.numpy yet")
            self._loops[key] = found
        return found

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:  # fmt: skip
        """Combine the elements along axes.

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
        initial : number, optional
            What to begin with.
        where : ndarray of bool
            Which elements count.

        Returns
        -------
        ndarray
        """
        if isinstance(out, tuple):
            (out,) = out
        how = HOW.get(self.__name__)
        if how is not None:
            return _lazy.reduce(how, array, axis, dtype, out, keepdims, initial, where)
        values = self._operands(array, dtype, out)
        if initial is None and self.identity is not None:
            initial = numpy.asarray(self.identity).astype(values.dtype)[()]  # all bits of an unsigned integer are -1
        if where is not True:
            mask = _ndarray.broadcast(_ndarray.mask_for(values, where), values.shape)
            if initial is None:
                raise ValueError(
                    f"reduction operation {self.__name__!r} does not have an identity, so to use a where mask one has "
                    "to specify 'initial'"
                )
        axes = _ndarray._axes(_ndarray.axis_or_all(axis, values.ndim), values.ndim)
        if len(axes) > 1:  # NumPy knows whether the order matters, and says so
            self._numpy.reduce(numpy.ones((1, 1), values.dtype), axis=(0, 1))
        kept = [k for k in range(values.ndim) if k not in axes]
        left = tuple([values.shape[k] for k in kept])
        rows = (math.prod(left), math.prod([values.shape[k] for k in axes]))
        flat = values.transpose((*kept, *axes)).reshape(rows)
        chosen = None if where is True else _rows.ready(mask.transpose((*kept, *axes)).reshape(rows))
        if flat.shape[1] == 0 and initial is None:
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
        begin = None if initial is None else values.dtype.type(initial)
        made = _rows.fold(_rows.ready(flat), self.__name__, False, begin, chosen).reshape(left)
        if keepdims:
            made = made.reshape(tuple([1 if k in axes else extent for k, extent in enumerate(values.shape)]))
        return _ndarray.into(out, made)

    def _operands(self, array: Any, dtype: Any, out: Any) -> _ndarray.ndarray:
        """The elements in the type that this function computes and returns, which is that of `out` if none is given."""
        if self.nin != 2:
            raise ValueError("reduce only supported for binary functions")
        values = _ndarray.on_device(array)
        if dtype is None and isinstance(out, _ndarray.ndarray):
            dtype = out.dtype
        signature = None if dtype is None else (numpy.dtype(dtype), None, None)
        loop = resolved(self._numpy, (None, values.dtype, None), signature, "unsafe", True)
        if len(set(loop)) > 1 or expression(self.__name__, loop[0].kind) is None:
            raise NotImplementedError(f"{self.__name__} gives {loop[-1]}, which it cannot go on with, in cupola.numpy")
        return values.astype(loop[0], copy=False)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """All results of combining the elements along an axis, one after the other.

        Parameters
        ----------
        array : array_like
            The elements.
        axis : int
            The dimension.
        dtype : optional
            The type to compute in.
        out : ndarray, optional
            Gets the result.

        Returns
        -------
        ndarray
        """
        if isinstance(out, tuple):
            (out,) = out
        values = _ndarray.on_device(array)
        if values.ndim == 0:
            raise TypeError("cannot accumulate on a scalar")
        axes = _ndarray._axes(axis, values.ndim)
        if len(axes) != 1:
            raise ValueError("accumulate does not allow multiple axes")
        (axis,) = axes
        how = HOW.get(self.__name__)
        if how is not None:
            return running(how, values, axis, dtype, out)
        values = self._operands(values, dtype, out)
        rows, shape = _rows.as_rows(values, axis)
        made = _rows.back(_rows.fold(rows, self.__name__, True), shape, axis, values)
        return _ndarray.into(out, made)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Combine the elements of several slices along an axis, as ``numpy.ufunc.reduceat``; waits for the indices.

        Parameters
        ----------
        array : array_like
            The elements.
        indices : array_like
            Where slices begin.
        axis : int
            The dimension.
        dtype : optional
            The type to compute in.
        out : ndarray, optional
            Gets the result.

        Returns
        -------
        ndarray
        """
        values = _ndarray.on_device(array)
        if values.ndim == 0:
            raise TypeError("cannot reduceat on a scalar")
        host = indices.to_numpy() if isinstance(indices, _ndarray.ndarray) else numpy.asarray(indices)
        if host.ndim != 1:
            raise ValueError(f"the indices of reduceat are an array of one dimension, not of {host.ndim}")
        starts = host.astype(numpy.int64).tolist()
        axis = _ndarray.one_axis(axis, values.ndim)
        extent = values.shape[axis]
        for one in starts:
            if not 0 <= one < extent:
                raise IndexError(f"index {one} out-of-bounds in {self.__name__}.reduceat [0, {extent})")
        before = (slice(None),) * axis
        if not starts:
            return self.accumulate(values._part((*before, slice(0, 0))), axis, dtype, out)
        parts = []
        for start, end in zip(starts, [*starts[1:], extent], strict=True):
            part = values._part((*before, slice(start, max(end, start + 1))))
            parts.append(self.reduce(part, axis, dtype, keepdims=True))
        return concatenate(parts, axis, out)

    def outer(self, a: Any, b: Any, /, **more: Any) -> Any:
        """Apply the function to all pairs of elements.

        Parameters
        ----------
        a, b : array_like
            Operands.
        **more
            As for a call.

        Returns
        -------
        ndarray
        """
        if self.nin != 2:
            raise ValueError("outer product only supported for binary functions")
        one, other = _ndarray._operand(a), _ndarray._operand(b)
        if isinstance(one, _ndarray.ndarray) and isinstance(other, _ndarray.ndarray):
            one = one._part((..., *[None] * other.ndim))
        return self(one, other, **more)

    def at(self, x: _ndarray.ndarray, indices: Any, b: Any = None, /) -> None:
        """Apply the function to elements in place, once for each time that an index occurs.

        Parameters
        ----------
        x : ndarray
            The array that is changed.
        indices : optional
            What chooses elements, as ``x[indices]`` does.
        b : array_like, optional
            The second operand.
        """
        if not isinstance(x, _ndarray.ndarray):
            raise TypeError(f"{self.__name__}.at changes arrays of cupola.numpy, not {type(x).__name__}")
        if (b is None) != (self.nin == 1):
            raise ValueError(f"{self.__name__}.at takes {self.nin + 1} operands")
        value = x.dtype.type(0) if b is None else _ndarray._operand(b)
        _ndarray.check_power(self, x.dtype, value)
        kinds = (x.dtype,) if b is None else (x.dtype, _ndarray._kind(value))
        loop = self.loop(kinds, None, "same_kind")
        if not numpy.can_cast(loop[-1], x.dtype, "same_kind"):
            raise TypeError(f"Cannot cast ufunc '{self.__name__}' output from {loop[-1]!r} to {x.dtype!r}")
        if _ndarray.is_weak(value):
            value = loop[1].type(value)
        if isinstance(value, numpy.generic) or value.dtype != x.dtype:
            value = value.astype(x.dtype)
        if x.dtype.char == "D" and self.__name__ in ("add", "subtract"):
            self.at(x.real, indices, value.real)
            self.at(x.imag, indices, value.imag)
            return
        if x.dtype.itemsize == 1:
            # Threads compare and swap two bytes at least, and the second one may be behind the memory.
            wider = numpy.dtype(numpy.int16 if x.dtype.kind == "i" else numpy.uint16)
            flips = x.dtype.kind == "b" and self.__name__ == "invert"
            wide = x.astype(wider)
            (UFUNCS["logical_not"] if flips else self).at(wide, indices, None if b is None else value.astype(wider))
            _lazy.write(x, wide.astype(x.dtype))
            return
        text = expression(self.__name__, x.dtype.kind)
        if text is None:
            raise TypeError(f"{self.__name__} of {x.dtype} is not in cupola.numpy yet")
        kind = COMPUTED[x.dtype.char]
        combine = text.replace("T(", f"({kind})(").replace("<T>", f"<{kind}>").format("a", "b")
        keys = indices if isinstance(indices, tuple) else (indices,)
        if all([_index._is_basic(key) for key in keys]):
            _lazy.write(x._part(keys), value, (), combine)
        else:
            layout, at = _index.choose(x, keys)
            _lazy.write(layout, value, at, combine)

    @property
    def types(self) -> list[str]:
        """list of str: the types that NumPy's function of this name computes in, as far as they exist here."""
        return [one for one in self._numpy.types if all([char in MEMORY for char in one.replace("->", "")])]

    @property
    def ntypes(self) -> int:
        """int: how many these are."""
        return len(self.types)

    @property
    def signature(self) -> None:
        """None: it is elementwise."""
        return None

    def __getattr__(self, name: str) -> Any:
        near = "" if name.startswith("_") else nearest(name, dir(type(self)))
        raise AttributeError(f"the ufunc {self.__name__!r} has no attribute {name!r}{near}")

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __reduce__(self) -> Any:
        return _by_name, (self.__name__,)


quick_calls(ufunc)
UFUNCS.update({name: ufunc(name) for name in OPERATIONS})


def _by_name(name: str) -> ufunc:
    found: ufunc = UFUNCS[name]
    return found
