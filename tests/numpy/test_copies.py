"""What `copy=` means where arrays are made, converted and given other extents. NumPy says what is right."""

from __future__ import annotations

import numpy
import pytest

import cupola.numpy as np

ROWS = numpy.arange(12.0).reshape(3, 4)

# Expressions of the namespace n, and of x in row-major, f in column-major order.
CASES = """
n.array(x, copy=False)
n.array(x, order="C", copy=False)
n.array(x, order="F", copy=False)
n.array(x, order="K", copy=False)
n.array(x, order="A", copy=False)
n.array(f, order="C", copy=False)
n.array(f, order="F", copy=False)
n.array(f, order="A", copy=False)
n.array(x, "f4", copy=False)
n.array(x, "f8", copy=False)
n.array(x, copy=False, ndmin=3)
n.array(x, copy=None)
n.array(x, order="F", copy=None)
n.array(f, order="F", copy=None)
n.array(x, "f4", copy=None)
n.array(f, order="F")
n.array([1, 2], copy=False)
n.array(3.0, copy=False)
n.asarray(x, copy=False)
n.asarray(x, order="F", copy=False)
n.asarray(f, order="F", copy=False)
n.asarray(f, order="C", copy=False)
n.asarray(x, "i4", copy=False)
n.asarray(x, copy=True)
n.asarray(x, order="F")
n.asarray(f, order="F")
n.asarray([1, 2], copy=False)
n.asanyarray(f, order="C", copy=False)
x.astype("f8", copy=False)
x.astype("f4", copy=False)
x.astype("f8", order="F", copy=False)
f.astype("f8", order="F", copy=False)
f.astype("f8", order="C", copy=False)
n.astype(x, "f8", copy=False)
x.reshape(4, 3, copy=False)
x.reshape(4, 3, copy=True)
x.T.reshape(12, copy=False)
f.reshape(12, copy=False)
f.reshape(12, order="F", copy=False)
x.reshape(12, order="F", copy=False)
x[:, :2].reshape(6, copy=False)
n.reshape(x, (2, 6), copy=False)
n.reshape(f, (2, 6), copy=False)
n.reshape(f, (2, 6), order="F", copy=False)
n.reshape(f, (2, 6), copy=None)
""".strip().splitlines()


@pytest.mark.parametrize("text", CASES)
def test_copies_are_made_where_numpy_makes_them(text):
    x, f = ROWS.copy(), numpy.asfortranarray(ROWS)
    ours = {"n": np, "x": np.asarray(x), "f": np.asarray(f)}
    try:
        wanted = eval(text, {"n": numpy, "x": x, "f": f})
    except ValueError:
        with pytest.raises(ValueError, match="copy"):
            eval(text, ours)
        return
    found = eval(text, ours)
    numpy.testing.assert_array_equal(found.to_numpy(), wanted)
    assert found.flags.c_contiguous == wanted.flags.c_contiguous
    assert found.flags.f_contiguous == wanted.flags.f_contiguous
    for name, given in (("x", x), ("f", f)):
        assert np.shares_memory(found, ours[name]) == numpy.shares_memory(wanted, given)


@pytest.mark.parametrize(
    ("more", "why"), [({}, "memory of the host"), ({"dtype": "f4"}, "float64"), ({"order": "F"}, "the order 'F'")]
)
def test_the_error_says_why_a_copy_is_needed(more, why):
    with pytest.raises(ValueError, match=why):
        np.array(np.asarray(ROWS) if more else ROWS, copy=False, **more)
