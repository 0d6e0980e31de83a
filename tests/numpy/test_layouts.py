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


# Arrays that are a part of others, or in which elements are repeated.
PARTS = {
    "step": lambda n: n.asarray(numpy.arange(12.0))[::2],
    "backwards": lambda n: n.asarray(numpy.arange(5.0))[::-1],
    "column": lambda n: n.asarray(numpy.arange(12.0).reshape(3, 4))[:, :1],
    "rows of columns": lambda n: n.asarray(numpy.asfortranarray(numpy.arange(12.0).reshape(3, 4)))[::2],
    "one element": lambda n: n.broadcast_to(n.asarray(numpy.array(3.0)), (2, 3)),
    "rows": lambda n: n.broadcast_to(n.asarray(numpy.arange(4.0)), (3, 4)),
    "columns": lambda n: n.broadcast_to(n.asarray(numpy.arange(3.0)[:, None]), (3, 4)),
    "turned": lambda n: n.broadcast_to(n.asarray(numpy.arange(6.0).reshape(2, 3)), (4, 2, 3)).transpose(2, 0, 1),
    "contiguous": lambda n: n.asarray(numpy.arange(6.0).reshape(2, 3)),
    "no dimensions": lambda n: n.asarray(numpy.array(2.0)),
}
OF_PARTS = """
x.ravel(), x.ravel("K"), x.ravel("F"), x.ravel("A"), x.flatten(), x.flatten("K"), x.flatten("F"), n.ravel(x, "K")
x.reshape(-1), x.reshape(-1, order="F"), x.reshape(-1, order="A")
x + 1, n.sqrt(x), x.copy("K"), x.astype("f4"), x.astype("f4", "A"), n.asfortranarray(x), n.ascontiguousarray(x)
n.nan_to_num(x), n.round(x, 1), n.round(x, -1), n.unwrap(x.reshape(1, -1)), n.gradient(x) if x.ndim == 1 else x
n.sort(x, axis=0) if x.ndim else x, n.partition(x, 0, axis=0) if x.ndim else x
n.require(x, requirements="C"), n.require(x, None, ["F", "W"]), n.require(x, "f4", ["f_contiguous"]), n.require(x)
""".strip().splitlines()


@pytest.mark.parametrize("of", PARTS)
@pytest.mark.parametrize("text", OF_PARTS)
def test_parts_and_repeated_elements_lie_as_those_of_numpy(text, of):
    theirs, ours = (eval(text, {"n": n, "x": PARTS[of](n)}) for n in (numpy, np))
    for wanted, found in zip(theirs, ours, strict=True):
        numpy.testing.assert_allclose(found.to_numpy(), wanted, rtol=1e-5)
        assert layout(found) == layout(numpy.asarray(wanted))


@pytest.mark.parametrize("of", PARTS)
def test_one_dimension_of_all_elements_is_a_view_where_numpy_has_one(of):
    for order in "CFAK":
        shared = [n.shares_memory(x.ravel(order), x) for n in (numpy, np) for x in [PARTS[of](n)]]
        assert shared[0] == shared[1], order


def test_a_kernel_that_writes_all_elements_writes_a_copy():
    """To a kernel an array is a pointer, so the elements have to follow each other."""
    x = np.arange(8.0)
    fill = np.RawKernel('extern "C" __global__ void fill(double* p) { p[threadIdx.x] = -1; }', "fill")
    flat = x[::2].ravel()
    fill((1,), (4,), (flat,))
    assert flat.tolist() == [-1.0] * 4
    assert x.tolist() == list(range(8))


def test_orders_that_exclude_each_other_are_refused():
    with pytest.raises(ValueError, match="Cannot specify both"):
        np.require(np.ones((2, 2)), requirements=["C", "F"])
    view = np.ones(4)[1:]
    assert np.require(view, requirements="O").base is None and np.require(view, requirements="W") is view


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
