"""The Array API standard 2024.12 function by function, on drawn arguments: types, shapes, strides, axes and values.

NumPy is the judge where it follows the standard, and a formula where it does not. `--examples 200` draws more than the
five examples of each function that are drawn otherwise, and then from all types; the examples are always the same.
`test_special_cases.py` has infinities, NaN and signed zeros, `test_standard.py` names and parameters.
"""

from __future__ import annotations

import operator
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import pytest

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import strategies as st  # noqa: E402

import cupola.numpy as np  # noqa: E402

EVERY = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]
# Those of the other tests, since each has kernels of its own, which take long to compile; so has each layout.
FEW = ["f8", "i8"]
FROBENIUS = "fro"  # codespell:ignore
LAYOUTS = ["whole", "reversed", "steps", "turned"]


@dataclass
class Host:
    """An array of NumPy and how it lies on the device."""

    array: numpy.ndarray
    layout: str = "whole"

    def on_device(self) -> np.ndarray:
        a = self.array
        if a.ndim and self.layout == "reversed":
            return np.asarray(a[..., ::-1].copy())[..., ::-1]
        if a.ndim and self.layout == "steps":
            wide = numpy.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
            wide[..., ::2] = a
            return np.asarray(wide)[..., ::2]
        if a.ndim > 1 and self.layout == "turned":
            return np.asarray(a.T.copy()).T
        return np.asarray(a)


class Draw:
    """Draws arguments. `types` are the letters of types that there are."""

    def __init__(self, data: Any, types: list[str]) -> None:
        self.data, self.types = data, types
        self.layouts = LAYOUTS if types is EVERY else LAYOUTS[:1] * 15 + LAYOUTS[1:]

    def one(self, options: Any) -> Any:
        return self.data.draw(st.sampled_from(list(options)))

    def number(self, first: int, last: int) -> int:
        return int(self.data.draw(st.integers(first, last)))

    def dtype(self, kinds: str = "biufc") -> numpy.dtype:
        return self.one([one for one in map(numpy.dtype, self.types) if one.kind in kinds] or [numpy.dtype("c16")])

    def shape(self, least: int = 0, most: int = 3, side: int = 0) -> tuple[int, ...]:
        most = most if self.types is EVERY else max(least, min(most, 2))
        return tuple(self.number(side, 3) for _ in range(self.number(least, most)))

    def axis(self, a: Host) -> int:
        return self.number(-a.array.ndim, a.array.ndim - 1)

    def axes(self, a: Host, *, several: bool = True) -> int | tuple[int, ...] | None:
        """None, an axis, or some."""
        count = self.number(-2, a.array.ndim if several else 0)
        if count < 0 and a.array.ndim:
            return self.axis(a)
        chosen = self.data.draw(st.permutations(range(a.array.ndim)))[: max(count, 0)]
        return tuple(one - self.one((0, a.array.ndim)) for one in chosen) if count > 0 else None

    def values(self, shape: tuple[int, ...], dtype: numpy.dtype, span: int = 0) -> numpy.ndarray:
        """Numbers whose sums are exact in any order; with `span` whole numbers from -span to span."""
        random = numpy.random.default_rng(self.number(0, 2**31))
        low = -span if dtype.kind in "ifc" else 0
        if dtype.kind == "b":
            return random.integers(0, 2, shape).astype(dtype)
        if span:
            whole = random.integers(low, span, shape, endpoint=True)
            return (whole + (1j * random.integers(low, span, shape) if dtype.kind == "c" else 0)).astype(dtype)
        if dtype.kind in "iu":
            info = numpy.iinfo(dtype)
            small = random.integers(max(info.min, -9), 10, shape)
            return numpy.where(random.random(shape) < 0.1, info.max, small.astype(dtype)).astype(dtype)
        parts = random.integers(-64, 65, (2, *shape)) / 8
        return (parts[0] + 1j * parts[1] if dtype.kind == "c" else parts[0]).astype(dtype)

    def array(
        self, kinds: str = "biufc", shape: Any = None, *, dtype: Any = None, span: int = 0, **limits: int
    ) -> Host:
        shape = self.shape(**limits) if shape is None else shape
        dtype = numpy.dtype(dtype) if dtype is not None else self.dtype(kinds)
        return Host(numpy.asarray(self.values(shape, dtype, span)), self.one(self.layouts))

    def beside(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that goes with another one by broadcasting."""
        kept = shape[self.number(0, len(shape)) :] if shape else shape
        return tuple(1 if self.number(0, 3) == 0 else one for one in kept)

    def square(self, kinds: str = "fc", *, stack: bool = True) -> Host:
        """Matrices that are far from singular."""
        n = self.number(1, 3)
        shape = (*((self.number(1, 2),) if stack and self.number(0, 1) else ()), n, n)
        host = self.array(kinds, shape, span=2)
        host.array = host.array + (8 * numpy.eye(n)).astype(host.array.dtype)
        return host

    def positive(self) -> Host:
        host = self.square()
        host.array = host.array @ numpy.conj(host.array.mT)
        return host


Call = tuple[tuple[Any, ...], dict[str, Any]]
DRAWN: dict[str, Callable[[Draw], Call]] = {}
JUDGES: dict[str, Callable[..., Any]] = {}


def drawn(names: str, judge: Callable[..., Any] | None = None) -> Callable[[Callable[..., Call]], Callable[..., Call]]:
    """What is drawn for functions; `judge` says what is right where NumPy does not."""

    def keep(function: Callable[..., Call]) -> Callable[..., Call]:
        for name in names.split():
            DRAWN[name] = function
            if judge is not None:
                JUDGES[name] = judge
        return function

    return keep


def maybe(d: Draw, /, **options: Any) -> dict[str, Any]:
    """Some of the keywords."""
    return {name: value for name, value in options.items() if d.number(0, 1)}


# --- creation, types -----------------------------------------------------------------------------------------------


@drawn("arange")
def _(d: Draw) -> Call:
    start, stop, step = d.number(-5, 5), d.number(-9, 9), d.one([1, 2, -1, -3])
    if d.number(0, 1):
        start, stop, step = start / 2, stop / 4, step / 8
    kind = "iuf" if isinstance(start, int) else "f"
    kind = kind.replace("u", "") if min(start, stop, step) < 0 else kind
    return d.one([(start,), (start, stop), (start, stop, step)]), maybe(d, dtype=d.dtype(kind))


@drawn("asarray")
def _(d: Draw) -> Call:
    a = d.array()
    kind = d.number(0, 2)
    given = a if kind == 0 else a.array.tolist() if kind == 1 else a.array.dtype.type(1).item()
    return (given,), maybe(d, copy=True, dtype=d.dtype("c" if a.array.dtype.kind == "c" else "fc"))


@drawn("zeros ones")
def _(d: Draw) -> Call:
    return (d.one([d.shape(), d.number(0, 5)]),), maybe(d, dtype=d.dtype())


@drawn("empty", lambda shape, dtype=float: numpy.zeros(shape, dtype))
def _(d: Draw) -> Call:
    return (d.one([d.shape(), d.number(0, 5)]),), maybe(d, dtype=d.dtype())


@drawn("zeros_like ones_like")
def _(d: Draw) -> Call:
    return (d.array(),), maybe(d, dtype=d.dtype())


@drawn("empty_like", numpy.zeros_like)
def _(d: Draw) -> Call:
    return (d.array(),), maybe(d, dtype=d.dtype())


@drawn("full")
def _(d: Draw) -> Call:
    return (d.shape(), d.one([True, 3, -0.5, 2j])), {}


@drawn("full_like")
def _(d: Draw) -> Call:
    a = d.array()
    return (a, a.array.dtype.type(1).item()), {}


@drawn("eye")
def _(d: Draw) -> Call:
    return (d.number(0, 4), *d.one([(), (d.number(0, 4),)])), maybe(d, k=d.number(-3, 3), dtype=d.dtype())


@drawn("linspace")
def _(d: Draw) -> Call:
    return (d.number(-4, 4), d.number(-4, 4) / 2, d.number(0, 9)), maybe(d, endpoint=False, dtype=d.dtype("f"))


@drawn("meshgrid")
def _(d: Draw) -> Call:
    dtype = d.dtype()
    return tuple(d.array(shape=(d.number(0, 3),), dtype=dtype) for _ in range(d.number(1, 3))), maybe(d, indexing="ij")


@drawn("tril triu")
def _(d: Draw) -> Call:
    return (d.array(least=2),), maybe(d, k=d.number(-3, 3))


@drawn("astype", lambda x, dtype, copy=True: x.astype(dtype))
def _(d: Draw) -> Call:
    a = d.array(span=3)
    return (a, d.dtype("c" if a.array.dtype.kind == "c" else "bfc" if a.array.dtype.kind == "f" else "biufc")), {}


@drawn("can_cast")
def _(d: Draw) -> Call:
    return (d.one([d.array(), d.dtype()]), d.dtype()), {}


@drawn("result_type")
def _(d: Draw) -> Call:
    return (d.array(shape=(2,)), *(d.one([d.dtype(), d.array(), 1, 0.5, 1j]) for _ in range(d.number(0, 2)))), {}


@drawn("isdtype")
def _(d: Draw) -> Call:
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    return (d.dtype(), d.one([d.one(kinds), d.dtype(), (d.one(kinds), d.dtype())])), {}


# --- shapes --------------------------------------------------------------------------------------------------------


@drawn("broadcast_arrays")
def _(d: Draw) -> Call:
    shape = d.shape()
    return (d.array(shape=shape), *(d.array(shape=d.beside(shape)) for _ in range(d.number(0, 2)))), {}


@drawn("broadcast_to")
def _(d: Draw) -> Call:
    shape = d.shape()
    return (d.array(shape=d.beside(shape)), shape), {}


@drawn("concat")
def _(d: Draw) -> Call:
    shape, axis = d.shape(least=1), d.number(0, 0)
    arrays = [d.array(shape=(d.number(0, 3), *shape[1:]), span=3) for _ in range(d.number(1, 3))]
    return (arrays,), {"axis": d.one([axis, -len(shape), None])}


@drawn("stack")
def _(d: Draw) -> Call:
    shape = d.shape(most=2)
    return ([d.array(shape=shape, span=3) for _ in range(d.number(1, 3))],), maybe(d, axis=d.number(-len(shape) - 1, 0))


@drawn("unstack")
def _(d: Draw) -> Call:
    a = d.array(least=1)
    return (a,), maybe(d, axis=d.axis(a))


@drawn("expand_dims")
def _(d: Draw) -> Call:
    a = d.array()
    return (a, d.number(-a.array.ndim - 1, a.array.ndim)), {}


@drawn("squeeze")
def _(d: Draw) -> Call:
    shape = list(d.shape(least=1))
    axis = d.number(0, len(shape) - 1)
    shape[axis] = 1
    return (d.array(shape=tuple(shape)), d.one([axis, axis - len(shape), (axis,)])), {}


@drawn("flip")
def _(d: Draw) -> Call:
    a = d.array()
    return (a,), maybe(d, axis=d.axes(a))


@drawn("moveaxis")
def _(d: Draw) -> Call:
    a = d.array(least=1)
    if d.number(0, 1):
        return (a, d.axis(a), d.axis(a)), {}
    count = d.number(1, a.array.ndim)
    return (a, *(tuple(d.data.draw(st.permutations(range(a.array.ndim)))[:count]) for _ in range(2))), {}


@drawn("permute_dims")
def _(d: Draw) -> Call:
    a = d.array()
    return (a, tuple(d.data.draw(st.permutations(range(a.array.ndim))))), {}


@drawn("matrix_transpose linalg.matrix_transpose")
def _(d: Draw) -> Call:
    return (d.array(least=2),), {}


@drawn("repeat")
def _(d: Draw) -> Call:
    a = d.array(least=1)
    axis = d.axis(a)
    each = numpy.array([d.number(0, 3) for _ in range(a.array.shape[axis])], "i8")
    return (a, d.one([2, 0, Host(each)])), {"axis": axis}


@drawn("reshape")
def _(d: Draw) -> Call:
    a = d.array(side=1)
    shape = list(d.data.draw(st.permutations([*a.array.shape, 1])))
    if d.number(0, 1):
        shape[d.number(0, len(shape) - 1)] = -1
    return (a, tuple(shape)), maybe(d, copy=True)


@drawn("roll")
def _(d: Draw) -> Call:
    a = d.array(least=1)
    axes = d.axes(a)
    if isinstance(axes, tuple):
        return (a, tuple(d.number(-4, 4) for _ in axes)), {"axis": axes}
    return (a, d.number(-4, 4)), {"axis": axes}


@drawn("tile")
def _(d: Draw) -> Call:
    return (d.array(most=2), tuple(d.number(0, 2) for _ in range(d.number(0, 3)))), {}


# --- indices, searching, sets, sorting -----------------------------------------------------------------------------


@drawn("take")
def _(d: Draw) -> Call:
    a = d.array(least=1, side=1)
    axis = d.axis(a)
    size = a.array.shape[axis]
    return (a, Host(numpy.array([d.number(-size, size - 1) for _ in range(d.number(0, 4))], "i8"))), {"axis": axis}


@drawn("take_along_axis")
def _(d: Draw) -> Call:
    a = d.array(least=1, side=1)
    axis = d.axis(a)
    size, shape = a.array.shape[axis], list(a.array.shape)
    shape[axis] = d.number(0, 3)
    random = numpy.random.default_rng(d.number(0, 99))
    return (a, Host(random.integers(-size, size, shape))), {"axis": axis}


@drawn("argmax argmin")
def _(d: Draw) -> Call:
    a = d.array("iuf", side=1)
    return (a,), maybe(d, axis=d.axes(a, several=False), keepdims=True)


@drawn("count_nonzero")
def _(d: Draw) -> Call:
    a = d.array()
    return (a,), maybe(d, axis=d.axes(a), keepdims=True)


@drawn("nonzero")
def _(d: Draw) -> Call:
    return (d.array(least=1),), {}


@drawn("where")
def _(d: Draw) -> Call:
    shape = d.shape()
    x = d.array(shape=d.beside(shape))
    one = x.array.dtype.type(1).item()
    return (d.array(shape=shape, dtype="?"), *d.one([(x, d.array(shape=shape)), (x, one), (one, x)])), {}


@drawn("searchsorted")
def _(d: Draw) -> Call:
    dtype = d.dtype("iuf")
    a = d.array(shape=(d.number(0, 5),), dtype=dtype)
    given: dict[str, Any] = maybe(d, side=d.one(["left", "right"]))
    if d.number(0, 1):
        given["sorter"] = Host(numpy.argsort(a.array))
    else:
        a.array = numpy.sort(a.array)
    return (a, d.array(shape=d.shape(), dtype=dtype)), given


@drawn(
    "sort",
    lambda x, axis=-1, descending=False, stable=True: -numpy.sort(-x, axis) if descending else numpy.sort(x, axis),
)
def _(d: Draw) -> Call:
    a = d.array("if", least=1)
    return (a,), maybe(d, axis=d.axis(a), stable=False, descending=True)


def _argsort(x: numpy.ndarray, axis: int = -1, descending: bool = False) -> numpy.ndarray:
    return numpy.argsort(-x if descending else x, axis, kind="stable")


@drawn("argsort", _argsort)
def _(d: Draw) -> Call:
    a = d.array("if", least=1, span=2)
    return (a,), maybe(d, axis=d.axis(a), descending=True)


@drawn("unique_values", numpy.unique)
@drawn("unique_all unique_counts unique_inverse")
def _(d: Draw) -> Call:
    return (d.array("biuf", span=2),), {}


@drawn("isin")
def _(d: Draw) -> Call:
    dtype = d.dtype("iu")
    return (d.array(dtype=dtype, span=3), d.array(shape=(d.number(0, 3),), dtype=dtype, span=3)), maybe(d, invert=True)


# --- statistics, utility -------------------------------------------------------------------------------------------


@drawn("all any")
def _(d: Draw) -> Call:
    a = d.array()
    return (a,), maybe(d, axis=d.axes(a), keepdims=True)


@drawn("sum")
def _(d: Draw) -> Call:
    a = d.array("iufc", span=9)
    return (a,), maybe(d, axis=d.axes(a), keepdims=True, dtype=d.dtype("c"))


@drawn("prod")
def _(d: Draw) -> Call:
    a = d.array("iufc", span=2)
    return (a,), maybe(d, axis=d.axes(a), keepdims=True)


@drawn("max min")
def _(d: Draw) -> Call:
    a = d.array("iuf", side=1)
    return (a,), maybe(d, axis=d.axes(a), keepdims=True)


@drawn("mean")
def _(d: Draw) -> Call:
    a = d.array("fc", side=1)
    return (a,), maybe(d, axis=d.axes(a), keepdims=True)


@drawn("std var")
def _(d: Draw) -> Call:
    a = d.array("f", side=3, least=1)
    return (a,), maybe(d, axis=d.axis(a), keepdims=True, correction=d.one([0, 1, 1.5]))


@drawn("cumulative_sum cumulative_prod")
def _(d: Draw) -> Call:
    a = d.array("iufc", least=1, span=2)
    return (a,), {"axis": d.axis(a), **maybe(d, include_initial=True, dtype=d.dtype("c"))}


@drawn("diff")
def _(d: Draw) -> Call:
    a = d.array("iufc", least=1, side=1, span=9)
    axis = d.axis(a)
    edge = Host(a.array.take([0], axis))
    return (a,), {"axis": axis, **maybe(d, n=d.number(0, 3), prepend=edge, append=edge)}


# --- products, linear algebra, transforms --------------------------------------------------------------------------


@drawn("matmul linalg.matmul")
def _(d: Draw) -> Call:
    dtype, n, k, m = d.dtype("iufc"), *(d.number(0, 3) for _ in range(3))
    stack = d.one([(), (2,), (2, 1)])
    left = d.one([(k,), (n, k), (*stack, n, k)])
    right = d.one([(k,), (k, m), (*d.beside(stack), k, m)])
    return (d.array(shape=left, dtype=dtype, span=3), d.array(shape=right, dtype=dtype, span=3)), {}


@drawn("tensordot linalg.tensordot")
def _(d: Draw) -> Call:
    dtype, shared = d.dtype("iufc"), d.shape(most=2, side=1)
    a = d.array(shape=(d.number(1, 2), *shared), dtype=dtype, span=3)
    b = d.array(shape=(*shared, d.number(1, 2)), dtype=dtype, span=3)
    pairs = (tuple(range(1, len(shared) + 1)), tuple(range(len(shared))))
    return (a, b), {"axes": d.one([len(shared), pairs])}


@drawn("vecdot linalg.vecdot")
def _(d: Draw) -> Call:
    dtype, shape = d.dtype("iufc"), (*d.shape(most=2), d.number(0, 3))
    return (d.array(shape=shape, dtype=dtype, span=3), d.array(shape=shape[-1:], dtype=dtype, span=3)), {}


@drawn("linalg.outer")
def _(d: Draw) -> Call:
    return tuple(d.array("iufc", shape=(d.number(0, 4),), span=3) for _ in range(2)), {}


@drawn("linalg.cross")
def _(d: Draw) -> Call:
    dtype, shape = d.dtype("iufc"), (*d.shape(most=2), 3)
    return tuple(d.array(shape=shape, dtype=dtype, span=3) for _ in range(2)), {}


@drawn("linalg.diagonal")
def _(d: Draw) -> Call:
    return (d.array(least=2),), maybe(d, offset=d.number(-3, 3))


@drawn("linalg.trace")
def _(d: Draw) -> Call:
    return (d.array("iufc", least=2, span=9),), maybe(d, offset=d.number(-3, 3), dtype=d.dtype("c"))


@drawn("linalg.det linalg.inv linalg.slogdet")
def _(d: Draw) -> Call:
    return (d.square(),), {}


@drawn("linalg.matrix_power")
def _(d: Draw) -> Call:
    return (d.square(), d.number(-2, 4)), {}


@drawn("linalg.solve")
def _(d: Draw) -> Call:
    a = d.square(stack=False)
    n = a.array.shape[-1]
    return (a, d.array(shape=d.one([(n,), (n, 2)]), dtype=a.array.dtype, span=3)), {}


@drawn("linalg.cholesky")
def _(d: Draw) -> Call:
    return (d.positive(),), maybe(d, upper=True)


@drawn("linalg.eigvalsh")
def _(d: Draw) -> Call:
    return (d.positive(),), {}


@drawn("linalg.svdvals linalg.matrix_rank linalg.pinv")
def _(d: Draw) -> Call:
    return (d.square(),), {}


@drawn("linalg.matrix_norm")
def _(d: Draw) -> Call:
    return (d.square(),), maybe(d, keepdims=True, ord=d.one([1, -1, 2, -2, numpy.inf, -numpy.inf, "nuc", FROBENIUS]))


@drawn("linalg.vector_norm")
def _(d: Draw) -> Call:
    a = d.array("fc", least=1, side=1)
    return (a,), maybe(d, axis=d.axes(a), keepdims=True, ord=d.one([0, 1, 2, 3, 0.5, numpy.inf, -numpy.inf]))


def _product(x: Any, parts: Any, function: str) -> Any:
    """What the factors give, multiplied together."""
    n = x.__array_namespace__()
    if function == "linalg.qr":
        return n.matmul(*parts)
    if function == "linalg.eigh":
        return n.matmul(parts[1] * parts[0][..., None, :], n.conj(parts[1]).mT)
    k = parts[1].shape[-1]
    return n.matmul(parts[0][..., :k] * parts[1][..., None, :], parts[2][..., :k, :])


@drawn("linalg.qr")
def _(d: Draw) -> Call:
    return (d.array("fc", shape=(*d.shape(most=1, side=1), d.number(1, 3), d.number(1, 3))),), maybe(d, mode="complete")


@drawn("linalg.svd")
def _(d: Draw) -> Call:
    shape = (*d.shape(most=1, side=1), d.number(1, 3), d.number(1, 3))
    return (d.array("fc", shape=shape),), maybe(d, full_matrices=False)


@drawn("linalg.eigh")
def _(d: Draw) -> Call:
    return (d.positive(),), {}


@drawn("fft.fft fft.ifft")
def _(d: Draw) -> Call:
    a = d.array("c", least=1, side=1)
    return (a,), maybe(d, axis=d.axis(a), n=d.number(1, 5), norm=d.one(["backward", "ortho", "forward"]))


@drawn("fft.rfft fft.ihfft")
def _(d: Draw) -> Call:
    a = d.array("f", least=1, side=1)
    return (a,), maybe(d, axis=d.axis(a), n=d.number(1, 5), norm=d.one(["backward", "ortho", "forward"]))


@drawn("fft.irfft fft.hfft")
def _(d: Draw) -> Call:
    a = d.array("c", least=1, side=2)
    return (a,), maybe(d, axis=d.axis(a), n=d.number(2, 5), norm=d.one(["backward", "ortho", "forward"]))


@drawn("fft.fftn fft.ifftn")
def _(d: Draw) -> Call:
    a = d.array("c", least=1, side=1)
    some = tuple(d.data.draw(st.permutations(range(a.array.ndim)))[: d.number(1, a.array.ndim)])
    sizes = {"s": tuple(d.number(1, 4) for _ in some)} if d.number(0, 1) else {}
    return (a,), {"axes": some, **sizes, **maybe(d, norm=d.one(["backward", "ortho", "forward"]))}


@drawn("fft.rfftn")
def _(d: Draw) -> Call:
    a = d.array("f", least=1, side=1)
    return (a,), {"axes": tuple(range(a.array.ndim)), **maybe(d, norm=d.one(["backward", "ortho", "forward"]))}


@drawn("fft.irfftn", lambda x, **how: numpy.fft.irfftn(numpy.fft.rfftn(x, **how), x.shape, **how))
def _(d: Draw) -> Call:
    return (d.array("f", least=1, side=2),), {"axes": None}


@drawn("fft.fftfreq fft.rfftfreq")
def _(d: Draw) -> Call:
    return (d.number(1, 9),), maybe(d, d=d.one([0.5, 2.0]))


@drawn("fft.fftshift fft.ifftshift")
def _(d: Draw) -> Call:
    a = d.array("fc", least=1)
    return (a,), maybe(d, axes=d.axes(a))


# --- the comparison ------------------------------------------------------------------------------------------------


def find(namespace: Any, name: str) -> Any:
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def each(given: Any, change: Callable[[Host], Any]) -> Any:
    """Arguments with all arrays changed."""
    if isinstance(given, Host):
        return change(given)
    if isinstance(given, (list, tuple)):
        return type(given)(each(one, change) for one in given)
    return given


def same(ours: Any, right: Any, where: str) -> None:
    if isinstance(right, (tuple, list)):
        assert isinstance(ours, (tuple, list)) and len(ours) == len(right), where
        if hasattr(right, "_fields"):
            assert ours._fields == right._fields, where
        for one, other in zip(ours, right, strict=True):
            same(one, other, where)
    elif isinstance(right, (bool, numpy.dtype)):
        assert ours == right, where
    else:
        assert isinstance(ours, np.ndarray), where
        right = numpy.asarray(right)
        assert (ours.dtype, ours.shape) == (right.dtype, right.shape), where
        found = ours.to_numpy()
        if right.dtype.kind in "fc" and right.size:
            places = 100 * numpy.finfo(right.dtype).eps
            numpy.testing.assert_allclose(found, right, places, places * (1 + abs(right).max()), err_msg=where)
        else:
            numpy.testing.assert_array_equal(found, right, err_msg=where)


DECOMPOSED = ("linalg.qr", "linalg.svd", "linalg.eigh")


def check(name: str, d: Draw) -> None:
    given, options = DRAWN[name](d)
    where = f"{name} of {given} {options}"
    ours = each(given, Host.on_device), {key: each(value, Host.on_device) for key, value in options.items()}
    theirs = each(given, lambda h: h.array), {key: each(value, lambda h: h.array) for key, value in options.items()}
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        right = JUDGES.get(name) or find(numpy, name)
        expected = right(*theirs[0], **theirs[1])
    if name == "fft.irfftn":
        (x,) = ours[0]
        same(np.fft.irfftn(np.fft.rfftn(x, **ours[1]), x.shape, **ours[1]), expected, where)
        return
    found = find(np, name)(*ours[0], **ours[1])
    if name in ("empty", "empty_like"):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), where
    elif name in DECOMPOSED:
        assert [one.shape for one in found] == [one.shape for one in expected], where
        assert [one.dtype for one in found] == [one.dtype for one in expected], where
        assert found._fields == expected._fields
        same(_product(ours[0][0], found, name), theirs[0][0], where)
    else:
        same(found, expected, where)


def run(request: pytest.FixtureRequest, test: Callable[[Draw], None], salt: str, count: int = 0) -> None:
    """Draw arguments and test; the same ones in each run."""
    examples = count or request.config.getoption("--examples")
    types = EVERY if request.config.getoption("--examples") > 5 else FEW

    @hypothesis.seed(zlib.crc32(salt.encode()))
    @hypothesis.settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(st.data())
    def body(data: Any) -> None:
        test(Draw(data, types))

    body()


@pytest.mark.parametrize("name", DRAWN)
def test_function(device, request, name):
    run(request, lambda d: check(name, d), name)


# --- arrays ---------------------------------------------------------------------------------------------------------

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
IN_PLACE = {f: getattr(operator, f"__i{f.__name__.strip('_')}__") for f in (*ARITHMETIC, *BITS)}
SIGNS = [operator.neg, operator.pos, operator.abs]


def operands(d: Draw, function: Any) -> tuple[Host, Any]:
    """An array, and an array or a number beside it, for which the result is said by the standard."""
    kinds = "iu" if function in BITS else "iuf" if function in (operator.floordiv, operator.mod) else "iufc"
    kinds = kinds.replace("iu", "") if function is operator.truediv else kinds
    a = d.array(kinds, span=5)
    dtype = a.array.dtype
    b = d.array(shape=d.beside(a.array.shape), dtype=dtype, span=5)
    b.array = (abs(b.array) + 1).astype(dtype)  # no zero, no shift by less than nothing, no negative power
    return a, d.one([b, dtype.type(2).item()])


@pytest.mark.parametrize("function", [*ARITHMETIC, *BITS, *COMPARISONS], ids=lambda f: f.__name__)
def test_operator(device, request, function):
    """Array with array and with a number, from either side, and in place."""

    def test(d: Draw) -> None:
        a, b = operands(d, function)
        x, y = a.on_device(), each(b, Host.on_device)
        other = each(b, lambda h: h.array)
        where = f"{function.__name__} of {a} {b}"
        same(function(x, y), function(a.array, other), where)
        if not isinstance(b, Host) and function not in (operator.pow, operator.lshift):
            same(function(y, abs(x) + 1), function(other, abs(a.array) + 1), where)
        if function in IN_PLACE:
            right = a.array.copy()
            if not (function is operator.pow and right.dtype.kind == "c"):
                found = IN_PLACE[function](x, y)
                assert found is x
                same(found, IN_PLACE[function](right, other), where)

    run(request, test, function.__name__, (request.config.getoption("--examples") + 1) // 2)


@pytest.mark.parametrize("function", SIGNS, ids=lambda f: f.__name__)
def test_operator_of_one(device, request, function):
    def test(d: Draw) -> None:
        a = d.array("ifc", span=5)
        same(function(a.on_device()), function(a.array), f"{function.__name__} of {a}")

    run(request, test, function.__name__)


def a_key(d: Draw, shape: tuple[int, ...]) -> Any:
    """An index of the standard: integers, slices, None and an ellipsis; a mask; or integers beside arrays of them."""
    if not d.number(0, 4):
        return Host(d.values(shape, numpy.dtype("?")))
    parts: list[Any] = []
    for extent in shape:
        kind = d.number(0, 5)
        if kind == 0 and extent:
            parts.append(d.number(-extent, extent - 1))
        elif kind == 1:
            parts.append(slice(None))
        else:
            step = d.one([None, 1, 2, -1])
            low, high = sorted((d.number(0, extent), d.number(0, extent)))
            parts.append(slice(high - 1, None, -1) if step == -1 and high else slice(low, high, step and abs(step)))
    if shape and min(shape) and not d.number(0, 3):
        parts = [Host(numpy.asarray([d.number(-n, n - 1) for _ in range(2)], "i8")) for n in shape]
    elif d.number(0, 1):
        parts[d.number(0, len(parts)) :] = [...]
    if not d.number(0, 3):
        parts.insert(0, None)
    return tuple(parts)


def test_indices(device, request):
    """What an index reads, and what it writes."""

    def test(d: Draw) -> None:
        a = d.array()
        key = a_key(d, a.array.shape)
        ours, theirs = each(key, Host.on_device), each(key, lambda h: h.array)
        x, right = a.on_device(), a.array.copy()
        where = f"{a}[{key}]"
        same(x[ours], right[theirs], where)
        x[ours] = right[theirs] = right.dtype.type(1).item()
        same(x, right, where)

    run(request, test, "indices", 4 * request.config.getoption("--examples"))


def test_conversions(device, request):
    """Numbers of Python, DLPack both ways, and the attributes."""

    def test(d: Draw) -> None:
        a = d.array()
        x = a.on_device()
        assert (x.shape, x.ndim, x.size, x.dtype) == (a.array.shape, a.array.ndim, a.array.size, a.array.dtype)
        same(x.T, a.array.T, "T")
        if x.ndim > 1:
            same(x.mT, a.array.mT, "mT")
        same(np.from_dlpack(x), a.array, "from_dlpack")
        assert x.__dlpack_device__() == (2, device.device_id)
        same(np.from_dlpack(x, copy=True), a.array, "from_dlpack")
        number = d.array(shape=())
        one, right = number.on_device(), number.array[()]
        assert bool(one) == bool(right) and complex(one) == complex(right)
        for convert, kinds in ((int, "biuf"), (float, "biuf"), (operator.index, "iu")):
            if right.dtype.kind in kinds:
                assert convert(one) == convert(right)
            elif right.dtype.kind == "c" or convert is operator.index:
                with pytest.raises(TypeError):
                    convert(one)

    run(request, test, "conversions")
