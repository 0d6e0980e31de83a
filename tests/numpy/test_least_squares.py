"""Least squares: solution, residuals, rank and singular values are those of NumPy, and so are the errors."""

from __future__ import annotations

import numpy
import pytest

import cupola.numpy as np

_random = numpy.random.default_rng(3)
TALL = _random.normal(size=(9, 4))
SIDE = _random.normal(size=9)
# Equations with a column that is a difference of others, and with one that counts as zero beside them.
DEFICIENT = numpy.column_stack([TALL[:, :3], TALL[:, 0] - TALL[:, 1]])
SCALED = TALL * [1, 0.5, 1e-18, 30]

SOLVABLE = {
    "tall": (TALL, SIDE),
    "several sides": (TALL, _random.normal(size=(9, 3))),
    "one column": (TALL[:, :1], SIDE),
    "one row more": (TALL[:5], SIDE[:5]),
    "as many rows as columns": (TALL[:4], SIDE[:4]),
    "wide": (TALL.T, SIDE[:4]),
    "columns first": (numpy.asfortranarray(TALL), SIDE),
    "every other row": (TALL[::2], SIDE[::2]),
    "zeros": (TALL * 0, SIDE),
    "small": (TALL * 1e-300, SIDE),
    "large": (TALL * 1e300, SIDE),
    "smallest": (TALL * 1e-315, SIDE * 1e-20),
    "largest": (TALL * 1e307, SIDE),
    "small float32": (TALL.astype("f4") * numpy.float32(1e-30), SIDE.astype("f4")),
    "large wide": (TALL.T * 1e300, SIDE[:4]),
    "no rows": (TALL[:0], SIDE[:0]),
    "no columns": (TALL[:, :0], SIDE),
    "no sides": (TALL, numpy.ones((9, 0))),
    "sides without a number": (TALL, SIDE * numpy.nan),
    "integers": (_random.integers(-9, 9, (9, 4)), _random.integers(-9, 9, 9)),
    "complex": (TALL + 1j * TALL[::-1], SIDE),
    "complex sides": (TALL, SIDE[:, None] * [1, 1j]),
    "float32": (TALL.astype("f4"), SIDE.astype("f4")),
    "complex64": ((TALL + 1j * TALL[::-1]).astype("F"), SIDE.astype("f4")),
    "float32 and float64": (TALL.astype("f4"), SIDE),
}


@pytest.mark.parametrize("name", SOLVABLE)
def test_solutions(device, name):
    _compare(*SOLVABLE[name], None)


@pytest.mark.parametrize("rcond", [None, -1, 0, 1e-12, 1e-3, 0.5, 1, 7.0])
@pytest.mark.parametrize("a", [TALL, DEFICIENT, SCALED, DEFICIENT.T, SCALED.astype("f4")])
def test_ranks(device, a, rcond):
    _compare(a, SIDE[: len(a)].astype(a.dtype), rcond)


def _compare(a, b, rcond):
    expected = numpy.linalg.lstsq(a, b, rcond)
    found = np.linalg.lstsq(np.asarray(a), np.asarray(b), rcond)
    precision = 3e-5 if expected[0].dtype.char in "fF" else 1e-12
    for one, right in zip(found, expected, strict=True):
        one = one.to_numpy()
        assert one.dtype == right.dtype and one.shape == right.shape
        largest = abs(right).max(initial=0)
        numpy.testing.assert_allclose(one, right, rtol=precision, atol=precision * largest)


@pytest.mark.parametrize(
    "a, b",
    [
        (TALL, SIDE[:4]), (TALL[0], SIDE), (TALL[None], SIDE), (TALL, SIDE[:, None, None]), (TALL, SIDE[0]),
        (TALL * numpy.nan, SIDE), (TALL.T * numpy.nan, SIDE[:4]),
        (TALL.astype("e"), SIDE.astype("e")),
    ],
)  # fmt: skip
def test_refused(device, a, b):
    with pytest.raises((numpy.linalg.LinAlgError, TypeError)) as theirs:
        numpy.linalg.lstsq(a, b, None)
    with pytest.raises(theirs.type) as ours:
        np.linalg.lstsq(np.asarray(a), np.asarray(b), None)
    assert str(ours.value) == str(theirs.value)


def test_infinite(device):
    """NumPy may look for singular values without end."""
    with pytest.raises(numpy.linalg.LinAlgError, match="did not converge in Linear Least Squares"):
        np.linalg.lstsq(np.asarray(numpy.where(TALL > 1, numpy.inf, TALL)), np.asarray(SIDE))
