"""How results lie in memory: as those of the installed NumPy (order K), whatever the operands look like."""

from __future__ import annotations

import itertools

import numpy
import pytest

import cupola.numpy as np
from cupola.numpy import _evaluate, _lazy

ROWS = numpy.random.default_rng(0).random((3, 4, 5))

# Arrays of each layout, of a namespace.
LAYOUTS = {
    "rows": lambda n: n.asarray(ROWS),
    "columns": lambda n: n.asarray(numpy.asfortranarray(ROWS)),
    "permuted": lambda n: n.asarray(numpy.ascontiguousarray(ROWS.transpose(1, 2, 0))).transpose(2, 0, 1),
    "backwards": lambda n: n.asarray(ROWS)[:, ::-1],
    "broadcast": lambda n: n.broadcast_to(n.asarray(ROWS[0, :, :1].copy()), (3, 4, 5)),
    "row": lambda n: n.asarray(ROWS[0, 0]),
    "column": lambda n: n.asarray(ROWS[0, :, :1].copy()),
}
WHOLE = ("rows", "columns", "permuted", "backwards")

# Expressions of the namespace n and two arrays.
PAIRS = """
x + y
x * 2 - y * x
n.where(x > 0.5, x, y)
n.add(x, y, order="C")
n.add(x, y, order="F")
n.add(x, y, order="A")
n.hypot(x, y) / (y + 1)
""".strip().splitlines()

# Expressions of the namespace n and an array.
CASES = """
-x
n.sqrt(x)
x.astype("f4")
x.astype("f4", order="C")
x.astype("f4", order="F")
x.astype("f4", order="A")
x.astype(float, order="F")
x.copy(), x.copy("K"), x.copy("F")
n.copy(x), n.array(x), n.array(x, order="F"), n.array(x, "f4"), n.array(x, ndmin=4)
n.ones_like(x), n.zeros_like(x, "f4"), n.full_like(x, 2)
n.sum(x, axis=0), n.sum(x, axis=1), n.sum(x, axis=2), n.sum(x, axis=(0, 2)), n.sum(x), n.sum(x, axis=())
n.max(x * 2, axis=0, keepdims=True), n.max(x * 2, axis=1, keepdims=True), n.all(x > 0, axis=-1, keepdims=True)
n.mean(x, axis=0), n.std(x, axis=1), n.var(x, axis=2, keepdims=True), n.prod(x, axis=1, where=x > 0.5)
n.min(x, axis=0, initial=0.5), n.sum((x * 4).astype("i2"), axis=1, dtype="f4")
n.cumsum(x, axis=0), n.cumsum(x, axis=1), n.cumprod(x, axis=2), n.hypot.accumulate(x, 0), n.maximum.accumulate(x, 1)
n.sort(x, axis=0), n.sort(x, axis=1), n.sort(x), n.argsort(x, axis=0), n.argsort(x)
n.argmax(x, axis=0), n.argmin(x, axis=1, keepdims=True)
n.fft.fft(x, axis=0), n.fft.rfft(x, axis=1), n.fft.ifft(x)
n.divmod(x, 2)
n.modf(x)
n.frexp(x)
n.clip(x, 0.2, 0.8), n.rint(x), n.nan_to_num(x), n.isclose(x, 1)
n.tril(x), n.angle(x), n.sinc(x), n.diff(x, axis=0)
n.ravel(x + 1), n.ravel(x + 1, "F"), n.ravel(x + 1, "K"), n.reshape(x + 1, (4, 15)), (x + 1).reshape(4, 15, order="F")
""".strip().splitlines()


def layout(x):
    """The shape, and the strides where they mean something."""
    return x.shape, [stride for extent, stride in zip(x.shape, x.strides, strict=True) if extent != 1]


def compare(text, **makers):
    """Compute an expression of arrays with both namespaces; the layout is that before and after it is computed."""
    theirs, ours = (eval(text, {"n": n, **{name: make(n) for name, make in makers.items()}}) for n in (numpy, np))
    pairs = zip(theirs, ours, strict=True) if isinstance(theirs, tuple) else [(theirs, ours)]
    for wanted, found in pairs:
        before = layout(found)
        numpy.testing.assert_allclose(found.to_numpy(), wanted, rtol=1e-5, err_msg=text)
        assert layout(found) == before == layout(numpy.asarray(wanted)), text


@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_results_of_two_operands_lie_as_those_of_numpy(one, other):
    for text in PAIRS:
        compare(text, x=LAYOUTS[one], y=LAYOUTS[other])


@pytest.mark.parametrize("of", WHOLE)
@pytest.mark.parametrize("text", CASES)
def test_results_of_functions_lie_as_those_of_numpy(text, of):
    compare(text, x=LAYOUTS[of])


@pytest.mark.parametrize("of", WHOLE)
def test_arrays_of_nothing_yet_lie_as_those_of_numpy(of):
    for order in "CFAK":
        theirs, ours = (n.empty_like(LAYOUTS[of](n), order=order) for n in (numpy, np))
        assert layout(ours) == layout(theirs), order


def test_reductions_of_broadcast_operands():
    compare("n.sum(x, axis=0), n.max(x + 1, axis=1), n.cumsum(x, axis=1)", x=LAYOUTS["broadcast"])


@pytest.mark.parametrize(("of", "to"), [*itertools.product(WHOLE, "CF")])
def test_results_written_into_arrays_of_any_layout(of, to):
    for n, x in ((numpy, LAYOUTS[of](numpy)), (np, LAYOUTS[of](np))):
        made = n.zeros((3, 4, 5), order=to)
        n.add(x, n.asarray(ROWS), out=made)
        made *= LAYOUTS["columns"](n)
        made[1:] += x[:-1]
        n.sqrt(made, out=made)
        made.T[...] = made.T + x.T
        n.cumsum(made, axis=0, out=made)
        found = made if n is numpy else made.to_numpy()
        if n is numpy:
            wanted = found
    numpy.testing.assert_allclose(found, wanted)


def test_operands_that_lie_alike_are_read_in_one_piece():
    """The kernel of column-major operands is the one of row-major operands: no place follows from strides."""
    kernels = []
    made = _evaluate.elementwise

    def noted(value, to, at, combine, modes, axes, wide):
        kernels.append((modes, axes))
        return made(value, to, at, combine, modes, axes, wide)

    _lazy.use(elementwise=noted)
    try:
        x = np.asarray(numpy.asfortranarray(ROWS).astype("f4"))
        y = np.zeros((3, 4, 5), numpy.float32, order="F")
        (x * y - x * np.float32(3) + y / np.float32(7)).to_numpy()
        np.subtract(x * y * np.float32(5), y, out=y)
    finally:
        _lazy.use(elementwise=made)
    assert kernels
    assert all(set(modes) == {"c"} and axes == -1 for modes, axes in kernels)


def test_raw_parameters_number_elements_in_row_major_order():
    first = np.ElementwiseKernel("raw T x, T y", "T z", "z = x[i] - y", "first_less")
    x = np.asarray(numpy.asfortranarray(ROWS))
    found = first(x + 1, np.asarray(ROWS))
    numpy.testing.assert_array_equal(found.to_numpy(), ROWS + 1 - ROWS)


def test_numbers_of_elements_in_arrays_of_any_layout():
    made = np.zeros((3, 4), order="F")
    np.random.default_rng(1).random(out=made)
    numpy.testing.assert_array_equal(made.to_numpy(), np.random.default_rng(1).random((3, 4)).to_numpy())


def test_orders_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="order must be one of"):
        np.add(np.ones(3), 1, order="Z")
